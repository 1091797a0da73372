//! `state.json`: what is believed could have been written, and two readers of it read the same.

use std::cell::RefCell;

use super::scratch::Scratch;
use crate::state::State;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

pub(super) fn run(bytes: &[u8]) {
    SCRATCH.with_borrow(|scratch| {
        let read = || scratch.home.read_state::<State>().ok().flatten();
        scratch.put("state.json", bytes);
        let stored = scratch.home.stored_state();
        let Some(state) = read() else { return };
        assert_ne!(state.port, Some(0), "no client has stored port 0");
        let same = (stored.port, stored.client_epoch, stored.stopped);
        assert_eq!(same, (state.port, state.client_epoch, state.stopped), "one file, one meaning");
        assert_eq!(scratch.home.expected_port(None), state.port.unwrap_or(baton_link::home::DEFAULT_PORT));
        let written = serde_json::to_vec_pretty(&state).expect("it is written like this");
        scratch.put("state.json", &written);
        // Half of a file that is nearly too large fits no more with its white space.
        let Some(again) = read() else {
            assert!(written.len() > bytes.len(), "what was written is not believed");
            return;
        };
        // Of a newer version's fields a fraction may be written shorter than it was.
        let known = |mut state: State| {
            state.other.clear();
            state
        };
        assert_eq!(known(again), known(state), "what is written is read again");
    });
}
