//! What a coordinator leaves for the next one in `state.json`, and what it makes of what it finds there.

use std::time::{Duration, SystemTime};

use baton_election::election::Start;
use baton_election::keeper::Saved;
use baton_link::blocking;
use baton_link::explain::Explanation;
use baton_link::home::Home;
use baton_link::plant::{self, Plant};
use baton_link::process::is_running;
use baton_proto::ids::{InstanceId, MAX_GENERATION};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::state::{Evidence, State, StateFile, generation_above};

/// After a write of `state.json` that failed.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// Where this coordinator stands among those before and after it.
pub(super) struct Beginning {
    pub(super) at: Instant,
    pub(super) generation: u64,
    /// What the state file knew.
    known: u64,
    /// Why the file cannot be the last word on who was live.
    doubt: Option<&'static str>,
}

/// **Invariant:** the generation is written, under the lock, before the port answers, or the state is not trusted.
pub(super) fn begin(
    home: &Home,
    instance: &InstanceId,
    state: &StateFile,
    before: &State,
    fallback_port: Option<u16>,
) -> Beginning {
    let discovered = home.discovery().map_or(0, |discovery| discovery.generation);
    // One beyond belief was written by nobody.
    let discovered = Some(discovered).filter(|generation| *generation < MAX_GENERATION).unwrap_or(0);
    let discovered = discovered.max(state.locked());
    let known = before.generation;
    let generation = match plant::has(Plant::SameGeneration) {
        true => 1,
        false => generation_above(known.max(discovered), number_of(instance), SystemTime::now()),
    };
    let at = Instant::now();
    let has_lost_one = fallback_port.is_some();
    let evidence = Evidence {
        found: state.found(),
        is_written: true,
        known,
        discovered,
        unsure: before.unsure,
        has_lost_one,
    };
    // Written with the generation: from here on the file looks as good as any, and we may die before we know more.
    let unsure = evidence.doubt().is_some();
    save(state, |state| (state.generation, state.stopped, state.unsure) = (generation, false, unsure));
    let doubt = Evidence { is_written: state.is_written(), ..evidence }.doubt();
    if let Some(doubt) = doubt {
        warn!(doubt, "no window becomes live until all open windows have reported which one was live");
    }
    Beginning { at, generation, known, doubt }
}

/// A number out of the random name of a coordinator.
fn number_of(instance: &InstanceId) -> u64 {
    instance.0.bytes().fold(0, |number: u64, byte| number.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// Writes the file again when it was removed: who follows is to know what we know.
pub(super) async fn mend(state: &StateFile) {
    let state = state.clone();
    let look = move || {
        state.look();
        save(&state, |_| {});
    };
    // The runtime ends; then we do.
    let _ = blocking::run(look).await;
}

/// Keeps the file in step with the keeper, never in the way of a takeover.
pub(super) async fn write_saved(mut saved: watch::Receiver<Saved>, state: StateFile) {
    loop {
        tokio::select! {
            changed = saved.changed() => if changed.is_err() { return },
            // There may be space again.
            () = sleep(WRITE_AGAIN), if !state.is_written() => {}
        }
        saved.mark_unchanged();
        if plant::has(Plant::Unsaved) {
            continue;
        }
        let (latest, state) = (saved.clone(), state.clone());
        // Read under the lock of the file: a write that was late would undo a later one.
        let written = blocking::run(move || save(&state, |state| remember(state, &latest.borrow())));
        if written.await.is_err() {
            return;
        }
    }
}

pub(super) fn remember(state: &mut State, saved: &Saved) {
    state.generation = state.generation.max(saved.generation);
    state.preferred = saved.preferred.as_ref().map(|preferred| crate::state::Preferred {
        window: preferred.window.clone(),
        pid: preferred.pid,
        pid_start: preferred.pid_start,
        term: preferred.term,
    });
    (state.vacated, state.vacated_at) = (saved.vacated.is_some(), saved.vacated);
    state.unsure = saved.unsure;
    state.settings = saved.settings.clone();
    // The file comes first when the token is rotated.
    state.client_epoch = state.client_epoch.max(saved.client_epoch);
}

/// A full disk or a read-only folder does not stop the coordinator: agents report the terms they have seen.
pub(super) fn save(state: &StateFile, change: impl FnOnce(&mut State)) {
    let was_written = state.is_written();
    match state.update(change) {
        Err(error) if was_written => warn!(
            "cannot write state.json: {error}; retrying every second; free up disk space or make the state folder \
             writable"
        ),
        Err(_) => {}
        Ok(()) if !was_written && state.is_written() => info!("state.json is writable again"),
        Ok(()) => {}
    }
}

/// Why a change that a successor must know of was not made.
pub(super) fn not_written(what: &str, error: &std::io::Error) -> Explanation {
    Explanation::new(format!("the {what} did not change: cannot write state.json ({error})"))
        .with_hint("free up disk space or make the state folder writable, then try again")
}

pub(super) fn to_start(instance: &InstanceId, beginning: &Beginning, state: State) -> Start {
    let known = state.preferred.filter(|_| !plant::has(Plant::NoLease));
    let previous = known.map(|preferred| baton_election::election::Preferred {
        window: preferred.window,
        pid: preferred.pid,
        pid_start: preferred.pid_start,
        term: preferred.term,
    });
    let vacated = state.vacated.then(|| state.vacated_at.unwrap_or_default());
    let is_dead = |previous: &baton_election::election::Preferred| {
        previous.pid_start != 0 && !is_running(previous.pid, previous.pid_start)
    };
    Start {
        instance: instance.clone(),
        generation: beginning.generation,
        known: beginning.known,
        is_trusted: beginning.doubt.is_none() || plant::has(Plant::Trusting),
        settings: state.settings,
        previous_is_dead: previous.as_ref().is_some_and(is_dead),
        previous,
        vacated: vacated.filter(|_| !plant::has(Plant::StopForgotten)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::singleton::Lock;

    #[tokio::test]
    async fn who_dies_before_it_knows_who_was_live_leaves_a_file_that_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let lock = Arc::new(Lock::acquire(&home).await.unwrap());
        let began = |fallback_port| {
            let state = StateFile::load(&home, lock.clone());
            begin(&home, &InstanceId("i".to_owned()), &state, &state.current(), fallback_port).doubt
        };
        assert_eq!(began(None), None, "the very first");
        assert_eq!(began(None), None);
        std::fs::remove_file(home.state_path()).unwrap();
        assert_eq!(began(Some(7_717)), Some("state.json is lost"));
        assert_eq!(began(None), Some("the last coordinator did not know which window was live"));
    }
}
