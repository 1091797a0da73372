//! `state.json`: what the coordinator remembers over its restarts; written only under the lock.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use baton_link::home::Home;
use baton_proto::control::Settings;
use baton_proto::ids::{MAX_GENERATION, Term, WindowId};
use parking_lot::{Mutex, MutexGuard};
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
    #[serde(deserialize_with = "baton_link::home::port")]
    pub port: Option<u16>,
    /// The window that was live last: the next coordinator holds the place for it (R9).
    pub preferred: Option<Preferred>,
    /// Nobody is live because the user wanted it so (R5).
    pub vacated: bool,
    /// The term that the user ended then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vacated_at: Option<Term>,
    /// The coordinator that wrote this did not know yet who was live before it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    /// The last settings that were good.
    pub settings: Settings,
    /// There was a file that said them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub configured: bool,
    /// Rotations of the client token.
    pub client_epoch: u32,
    /// The user stopped the coordinator: agents that were connected do not start another.
    pub stopped: bool,
    /// Who showed a client token that was not theirs, last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_by: Option<HeardBy>,
    /// What a newer version wrote; kept for it.
    #[serde(flatten)]
    pub other: serde_json::Map<String, serde_json::Value>,
}

/// Another user of the machine who showed the client token, which was revoked then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardBy {
    /// That user.
    pub uid: u32,
    /// When, by the wall clock.
    pub unix_seconds: u64,
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

impl State {
    /// Whether a coordinator can have written it: after it there is room for many more starts.
    fn is_possible(&self) -> bool {
        let term = self.preferred.as_ref().and_then(|preferred| preferred.term);
        self.generation < MAX_GENERATION && term.is_none_or(Term::is_believable)
    }
}

/// The file, held by the one process that has the lock.
#[derive(Clone, Debug)]
pub struct StateFile {
    home: Home,
    lock: Arc<Lock>,
    found: Found,
    memory: Arc<Mutex<State>>,
    /// False after a write that failed: the next one is made even when nothing changed.
    is_written: Arc<AtomicBool>,
}

/// What was there when the coordinator started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file that can be believed.
    State,
    /// None.
    Nothing,
    /// One that cannot be believed; it was set aside.
    Broken,
}

/// What a coordinator finds out, at its start, about those before it.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// What the file was.
    pub found: Found,
    /// Whether our own generation could be written.
    pub is_written: bool,
    /// See [`State::generation`].
    pub known: u64,
    /// The generation in `discovery.json`, or in the lock file when that is higher; 0 without any.
    pub discovered: u64,
    /// See [`State::unsure`].
    pub unsure: bool,
    /// Whoever started us lost a coordinator.
    pub has_lost_one: bool,
}

impl Evidence {
    /// Why the file cannot be the last word on who was live; `None`: it is believed.
    pub fn doubt(self) -> Option<&'static str> {
        match self.found {
            _ if !self.is_written => Some("state.json cannot be written"),
            Found::Broken => Some("state.json could not be read"),
            Found::Nothing if self.has_lost_one || self.discovered > 0 => Some("state.json is lost"),
            Found::State if self.discovered > self.known => Some("state.json is out of date"),
            Found::State if self.unsure => Some("the last coordinator did not know which window was live"),
            Found::State | Found::Nothing => None,
        }
    }
}

/// A generation above `known` that nobody needs to remember: without a file it is the time, so that a coordinator whose
/// predecessors left nothing still exceeds them. Whoever answers no sooner than a millisecond later shares it with
/// nobody. A clock that was set back matters when the file is lost, too; the agents' reports exceed it then. And two
/// that could not write theirs begin at the same: with such a clock they differ by what they threw.
pub fn generation_above(known: u64, thrown: u64, now: SystemTime) -> u64 {
    /// So far apart.
    const SPREAD: u64 = 1_000;
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let by_clock = u64::try_from(since_epoch.as_millis()).unwrap_or(0);
    // A clock beyond belief is as good as none.
    let by_clock = Some(by_clock).filter(|generation| *generation < MAX_GENERATION).unwrap_or(0);
    let by_file = known.saturating_add(1 + thrown % SPREAD);
    let generation = if by_clock > known { by_clock } else { by_file };
    generation.min(MAX_GENERATION)
}

impl StateFile {
    /// Reads the file. One that cannot be believed is set aside as `state.json.broken`, and everything starts
    /// anew; agents then report the terms they have seen, so that the generation still grows.
    pub fn load(home: &Home, lock: Arc<Lock>) -> Self {
        let read = home.read_state::<State>().and_then(|state| match state {
            Some(state) if !state.is_possible() => Err(io::Error::other("its generation is out of range")),
            state => Ok(state),
        });
        let (found, state) = match read {
            Ok(Some(state)) => (Found::State, state),
            Ok(None) => (Found::Nothing, State::default()),
            Err(error) => {
                warn!("cannot use state.json ({error}); starting from scratch");
                // When it cannot even be renamed, the next write says so.
                let _ = std::fs::rename(home.state_path(), home.state_path().with_extension("json.broken"));
                (Found::Broken, State::default())
            }
        };
        let (memory, is_written) = (Arc::new(Mutex::new(state)), Arc::new(AtomicBool::new(true)));
        Self { home: home.clone(), lock, found, memory, is_written }
    }

    /// The generation that the lock file knew when this coordinator had written none yet.
    pub fn locked(&self) -> u64 {
        self.lock.generation()
    }

    /// What was there when this was loaded.
    pub fn found(&self) -> Found {
        self.found
    }

    /// False while the file lacks a change, because it could not be written.
    pub fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Relaxed)
    }

    /// Notices that the file was removed: then it lacks everything.
    pub fn look(&self) {
        if !self.home.state_path().exists() {
            self.is_written.store(false, Ordering::Relaxed);
        }
    }

    /// What is stored now.
    pub fn current(&self) -> State {
        self.memory().clone()
    }

    /// Changes the state and writes it when that made a difference. Blocks for the time of an fsync. The change
    /// is in force even when it could not be written.
    pub fn update(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        // Held while writing: the file holds the latest change, whoever made it.
        self.change(&mut self.memory(), change)
    }

    /// As [`StateFile::update`], but what could not be written is not in force either.
    pub fn update_or_undo(&self, change: impl FnOnce(&mut State)) -> io::Result<()> {
        let mut memory = self.memory();
        let before = memory.clone();
        self.change(&mut memory, change).inspect_err(|_| *memory = before)
    }

    fn change(&self, memory: &mut State, change: impl FnOnce(&mut State)) -> io::Result<()> {
        let before = memory.clone();
        change(memory);
        if *memory == before && self.is_written() {
            return Ok(());
        }
        self.is_written.store(false, Ordering::Relaxed);
        if !self.lock.is_intact() {
            return Err(io::Error::other("the lock file is gone"));
        }
        let bytes = serde_json::to_vec_pretty(memory)?;
        let written = self.home.replace("state.json", &bytes);
        // Afterwards: who dies in between has left a file that is as good as it says.
        self.lock.note_generation(memory.generation);
        written?;
        self.is_written.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn memory(&self) -> MutexGuard<'_, State> {
        self.memory.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let (last, beyond) =
            (format!("{{\"generation\":{MAX_GENERATION}}}"), format!("{{\"generation\":{}}}", u64::MAX));
        for broken in ["", "{\"generation\":", "[]", "{\"generation\":-1}", &last, &beyond] {
            home.replace("state.json", broken.as_bytes()).unwrap();
            assert_eq!(open(&home).await.current(), State::default(), "{broken}");
            assert_eq!(std::fs::read_to_string(dir.path().join("state.json.broken")).unwrap(), broken);
            assert!(!home.state_path().exists());
        }
    }

    #[test]
    fn a_generation_exceeds_what_is_known_and_what_is_forgotten() {
        let at = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        assert_eq!(generation_above(0, 5, at(1_700_000_000_000)), 1_700_000_000_000);
        assert_eq!(
            generation_above(7, 0, at(1_700_000_000_000)),
            1_700_000_000_000,
            "of the time before the clock"
        );
        assert_eq!(
            generation_above(1_700_000_000_000, 0, at(1_600_000_000_000)),
            1_700_000_000_001,
            "set back"
        );
        assert_eq!(generation_above(7, 1_234, UNIX_EPOCH), 242, "thrown");
        assert_eq!(generation_above(7, 0, UNIX_EPOCH - Duration::from_secs(1)), 8);
        assert_eq!(generation_above(7, 0, at(u64::MAX / 2)), 8, "a clock beyond belief");
        assert_eq!(generation_above(u64::MAX, 9, at(1)), MAX_GENERATION, "nothing wraps");
    }

    #[tokio::test]
    async fn a_file_that_was_removed_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let state = open(&home).await;
        state.update(|state| state.generation = 7).unwrap();
        std::fs::remove_file(home.state_path()).unwrap();
        state.update(|_| {}).unwrap();
        assert!(!home.state_path().exists(), "nobody has looked");
        state.look();
        state.update(|_| {}).unwrap();
        assert_eq!(home.read_state::<State>().unwrap().unwrap().generation, 7);
    }

    #[tokio::test]
    async fn the_lock_file_tells_of_a_generation_that_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let state = open(&home).await;
        assert_eq!(state.locked(), 0);
        state.update(|state| state.generation = 1_893_456_010_348).unwrap();
        state.update(|state| state.generation = 1_893_456_010_349).unwrap();
        drop(state);
        std::fs::remove_file(home.state_path()).unwrap();
        assert_eq!(open(&home).await.locked(), 1_893_456_010_349);
        for broken in ["", "18934", "no number of all\n", "9999999999999999\n"] {
            std::fs::write(home.lock_path(), broken).unwrap();
            assert!(open(&home).await.locked() < 100_000, "{broken}");
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
        assert!(!home.state_path().exists() && !state.is_written());
        assert_eq!(state.current().generation, 7, "it is in force all the same");
        std::fs::rename(&aside, home.lock_path()).unwrap();
        state.update(|_| {}).unwrap();
        assert_eq!(home.read_state::<State>().unwrap().unwrap().generation, 7);
    }
}
