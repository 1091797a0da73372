//! `state.json`: what the coordinator remembers over its restarts; written only under the lock.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_link::home::Home;
use baton_proto::control::Settings;
use baton_proto::ids::{Term, WindowId};
use serde::{Deserialize, Serialize};
use tracing::warn;

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Grows with every start of a coordinator.
    pub generation: u64,
    /// The port that was chosen for good; `None` before the first start.
    pub port: Option<u16>,
    /// The window that was live last: the next coordinator holds the place for it (R9).
    pub preferred: Option<Preferred>,
    /// Nobody is live because the user wanted it so (R5).
    pub vacated: bool,
    /// Settings of the user.
    pub settings: Settings,
    /// Rotations of the client token.
    pub client_epoch: u32,
    /// The user stopped the coordinator: agents that were connected do not start another.
    pub stopped: bool,
    /// What a newer version wrote; kept for it.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

/// A window that was live, with the process that proves whether it still can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preferred {
    /// Its id.
    pub window: WindowId,
    /// Process id of its agent.
    pub pid: u32,
    /// Start time of that process, see [`baton_link::process::start_time`].
    pub pid_start: u64,
    /// Its term.
    #[serde(default)]
    pub term: Option<Term>,
}

/// The file, held by the one process that has the lock.
#[derive(Clone, Debug)]
pub struct StateFile {
    home: Home,
    state: Arc<Mutex<State>>,
}

impl StateFile {
    /// Reads the file. One that cannot be believed is set aside as `state.json.broken`, and everything starts
    /// anew; agents then report the terms they have seen, so that the generation still grows.
    pub fn load(home: &Home) -> Self {
        let state = match home.read_state::<State>() {
            Ok(state) => state.unwrap_or_default(),
            Err(error) => {
                warn!("state.json cannot be used ({error}); starting anew");
                // When it cannot even be renamed, the next write says so.
                let _ = std::fs::rename(home.state_path(), home.state_path().with_extension("json.broken"));
                State::default()
            }
        };
        Self { home: home.clone(), state: Arc::new(Mutex::new(state)) }
    }

    /// What is stored now.
    pub fn current(&self) -> State {
        self.lock().clone()
    }

    /// Changes the state and writes it when that made a difference. Blocks for the time of an fsync. The change
    /// is in force even when it could not be written.
    pub fn update(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        // Held while writing: the file holds the latest change, whoever made it.
        let mut state = self.lock();
        let before = state.clone();
        change(&mut state);
        if *state == before {
            return Ok(());
        }
        let bytes = serde_json::to_vec_pretty(&*state)?;
        self.home.replace("state.json", &bytes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_there_after_a_restart_and_unknown_fields_stay() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        home.replace("state.json", br#"{"generation":4,"of_a_newer_version":{"a":1}}"#).unwrap();
        StateFile::load(&home).update(|state| state.generation += 1).unwrap();
        let state = StateFile::load(&home).current();
        assert_eq!((state.generation, state.client_epoch), (5, 0));
        assert_eq!(state.other["of_a_newer_version"]["a"], 1);
    }

    #[test]
    fn a_torn_file_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        for broken in ["", "{\"generation\":", "[]", "{\"generation\":-1}"] {
            home.replace("state.json", broken.as_bytes()).unwrap();
            assert_eq!(StateFile::load(&home).current(), State::default(), "{broken}");
            assert_eq!(std::fs::read_to_string(dir.path().join("state.json.broken")).unwrap(), broken);
            assert!(!home.state_path().exists());
        }
    }
}
