//! Starts `baton serve` detached and hears over a pipe how it went; a start is a handshake, never a sleep.

#[cfg_attr(sim, path = "sim/launch.rs")]
mod launch;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_proto::start::Handshake;
use tokio::time::Instant;

use crate::home::Home;
pub use launch::keep_descriptors;

/// Environment variable that names the program to start, for tests and unusual installations.
pub const PROGRAM_VARIABLE: &str = "BATON_BIN";

/// Environment variable with the port of the first coordinator there is.
pub const PORT_VARIABLE: &str = "BATON_PORT";
/// The same by the name that another tool gives it; ours comes first.
pub const PORT_ALIAS: &str = "LCP_PORT";

/// The port that the environment names.
pub fn port_of_env() -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|port| !port.is_empty());
    set(PORT_VARIABLE).or_else(|| set(PORT_ALIAS))
}

/// Starts allowed within [`SPAWN_WINDOW`]: a coordinator that dies at once must not be started in a loop.
const MAX_SPAWNS: usize = 5;

/// See [`MAX_SPAWNS`].
const SPAWN_WINDOW: Duration = Duration::from_secs(30);

/// Why no coordinator was started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Too many starts: the coordinator dies at once, or somebody keeps killing it.
    #[error("the coordinator exited {MAX_SPAWNS} times within 30 seconds")]
    Paused {
        /// When the next start is allowed.
        retry_in: Duration,
    },
    /// The program is not there or cannot be run.
    #[error("cannot run {}", program.display())]
    Program {
        /// What was to be run.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It ended or fell silent without a handshake.
    #[error("the coordinator failed to start ({why})")]
    NoHandshake {
        /// What happened.
        why: String,
    },
}

impl SpawnError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Paused { retry_in } => {
                format!("check `baton logs`, then try again in {} s", retry_in.as_secs() + 1)
            }
            Self::Program { .. } => format!("reinstall Baton, or set {PROGRAM_VARIABLE}"),
            Self::NoHandshake { .. } => "check `baton logs`".to_owned(),
        })
    }
}

/// The `baton` program: the one `BATON_BIN` names, else the one beside this program.
pub fn program() -> io::Result<PathBuf> {
    if let Some(path) = std::env::var_os(PROGRAM_VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(path.into());
    }
    let own = std::env::current_exe()?;
    Ok(own.with_file_name(format!("baton{}", std::env::consts::EXE_SUFFIX)))
}

/// What to start.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// The state folder.
    pub home: &'a Home,
    /// The program.
    pub program: &'a Path,
    /// The port it must use.
    pub port: Option<u16>,
    /// A socket with what a predecessor leaves it; it becomes the standard input.
    pub inheritance: Option<OwnedFd>,
}

/// Starts a coordinator and waits for its handshake. An heir that is not ready is ended: it holds what is
/// another's.
pub async fn spawn(spawn: Spawn<'_>) -> Result<Handshake, SpawnError> {
    if spawn.inheritance.is_none() {
        allow_spawn(Instant::now())?;
    }
    launch::launch(spawn).await
}

/// A start that came to nothing because another coordinator won is no failure: it is not counted.
pub(crate) fn forgive_last_spawn() {
    launch::with_starts(|starts| {
        starts.pop_back();
    });
}

fn allow_spawn(now: Instant) -> Result<(), SpawnError> {
    let allowed = launch::with_starts(|starts| count_spawn(starts, now));
    allowed.map_err(|retry_in| SpawnError::Paused { retry_in })
}

fn count_spawn(spawns: &mut VecDeque<Instant>, now: Instant) -> Result<(), Duration> {
    while spawns.front().is_some_and(|first| now.duration_since(*first) >= SPAWN_WINDOW) {
        spawns.pop_front();
    }
    match spawns.front() {
        Some(first) if spawns.len() >= MAX_SPAWNS => Err(SPAWN_WINDOW - now.duration_since(*first)),
        _ => {
            spawns.push_back(now);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_starts_in_thirty_seconds_are_enough() {
        let (mut spawns, start) = (VecDeque::new(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for second in 0..5 {
            assert_eq!(count_spawn(&mut spawns, at(second)), Ok(()));
        }
        assert_eq!(count_spawn(&mut spawns, at(10)), Err(Duration::from_secs(20)));
        assert_eq!(count_spawn(&mut spawns, at(30)), Ok(()));
        assert_eq!(count_spawn(&mut spawns, at(30)), Err(Duration::from_secs(1)));
    }
}
