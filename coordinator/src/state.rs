//! `state.json`: what the coordinator remembers over its restarts; written only under the lock.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_link::home::Home;
use baton_proto::control::Settings;
use baton_proto::ids::{Term, WindowId};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::singleton::Lock;

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
    lock: Arc<Lock>,
    memory: Arc<Mutex<Memory>>,
}

#[derive(Debug)]
struct Memory {
    state: State,
    /// False after a write that failed: the next one is made even when nothing changed.
    is_written: bool,
}

impl StateFile {
    /// Reads the file. One that cannot be believed is set aside as `state.json.broken`, and everything starts
    /// anew; agents then report the terms they have seen, so that the generation still grows.
    pub fn load(home: &Home, lock: Arc<Lock>) -> Self {
        let state = match home.read_state::<State>() {
            Ok(state) => state.unwrap_or_default(),
            Err(error) => {
                warn!("state.json cannot be used ({error}); starting anew");
                // When it cannot even be renamed, the next write says so.
                let _ = std::fs::rename(home.state_path(), home.state_path().with_extension("json.broken"));
                State::default()
            }
        };
        let memory = Memory { state, is_written: true };
        Self { home: home.clone(), lock, memory: Arc::new(Mutex::new(memory)) }
    }

    /// What is stored now.
    pub fn current(&self) -> State {
        self.memory().state.clone()
    }

    /// Changes the state and writes it when that made a difference. Blocks for the time of an fsync. The change
    /// is in force even when it could not be written.
    pub fn update(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        // Held while writing: the file holds the latest change, whoever made it.
        let mut memory = self.memory();
        let before = memory.state.clone();
        change(&mut memory.state);
        if memory.state == before && memory.is_written {
            return Ok(());
        }
        memory.is_written = false;
        if !self.lock.is_intact() {
            return Err(io::Error::other("the lock file is gone; the file is a successor's by now"));
        }
        let bytes = serde_json::to_vec_pretty(&memory.state)?;
        self.home.replace("state.json", &bytes)?;
        memory.is_written = true;
        Ok(())
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open(home: &Home) -> StateFile {
        StateFile::load(home, Arc::new(Lock::acquire(home).await.unwrap()))
    }

    #[tokio::test]
    async fn a_change_is_there_after_a_restart_and_unknown_fields_stay() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        home.replace("state.json", br#"{"generation":4,"of_a_newer_version":{"a":1}}"#).unwrap();
        open(&home).await.update(|state| state.generation += 1).unwrap();
        let state = open(&home).await.current();
        assert_eq!((state.generation, state.client_epoch), (5, 0));
        assert_eq!(state.other["of_a_newer_version"]["a"], 1);
    }

    #[tokio::test]
    async fn a_torn_file_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        for broken in ["", "{\"generation\":", "[]", "{\"generation\":-1}"] {
            home.replace("state.json", broken.as_bytes()).unwrap();
            assert_eq!(open(&home).await.current(), State::default(), "{broken}");
            assert_eq!(std::fs::read_to_string(dir.path().join("state.json.broken")).unwrap(), broken);
            assert!(!home.state_path().exists());
        }
    }

    #[tokio::test]
    async fn nothing_is_written_without_the_lock_and_a_failed_write_is_made_up_for() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let state = open(&home).await;
        let aside = dir.path().join("aside");
        std::fs::rename(home.lock_path(), &aside).unwrap();
        assert!(state.update(|state| state.generation = 7).is_err());
        assert!(!home.state_path().exists());
        assert_eq!(state.current().generation, 7, "it is in force all the same");
        std::fs::rename(&aside, home.lock_path()).unwrap();
        state.update(|_| {}).unwrap();
        assert_eq!(home.read_state::<State>().unwrap().unwrap().generation, 7);
    }
}
