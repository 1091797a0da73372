//! What the fuzzer tries here: files of the state folder. Bytes in; a panic says that a property is broken.

use std::cell::RefCell;

use baton_proto::discovery::Discovery;

use crate::home::Home;

#[cfg(test)]
#[path = "../../tests/fuzz/oracle/replay.rs"]
mod replay;
#[path = "../../tests/fuzz/oracle/scratch.rs"]
mod scratch;

use scratch::Scratch;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: &[Target] = &[("discovery", discovery)];

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// `discovery.json` and `waiting.json`: what is believed is what a coordinator can have written.
pub fn discovery(bytes: &[u8]) {
    SCRATCH.with_borrow(|scratch| {
        scratch.put("discovery.json", bytes);
        if let Some(found) = scratch.home.discovery() {
            check(&found);
            let written = serde_json::to_vec(&found).expect("it is written like this");
            scratch.put("discovery.json", &written);
            assert_eq!(scratch.home.discovery(), Some(found), "what is written is read again");
        }
        scratch.put("waiting.json", bytes);
        if let Some(waiting) = scratch.home.waiting() {
            assert!(waiting.pid != 0 && waiting.port != 0, "{waiting:?}");
        }
    });
}

fn check(found: &Discovery) {
    assert!(found.pid != 0 && i32::try_from(found.pid).is_ok(), "a process can have this id: {}", found.pid);
    assert_ne!(found.port, 0, "nobody listens on port 0");
    assert!(found.protocol.0 <= found.protocol.1, "from the oldest to the newest: {:?}", found.protocol);
    for text in [&found.instance.0, &found.version] {
        let is_short = (1..=64).contains(&text.len());
        assert!(is_short && text.bytes().all(|byte| byte.is_ascii_graphic()), "fit for a log line: {text:?}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_holds() {
        super::replay::replay(super::TARGETS);
    }
}
