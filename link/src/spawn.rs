//! Starts `baton serve` detached and hears over a pipe how it went; a start is a handshake, never a sleep.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use baton_proto::start::Handshake;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::time::{Instant, timeout};

use crate::home::{HOME_VARIABLE, Home};

/// Environment variable that names the program to start, for tests and unusual installations.
pub const PROGRAM_VARIABLE: &str = "BATON_BIN";

/// Environment variable with the port of the first coordinator there is.
pub const PORT_VARIABLE: &str = "BATON_PORT";

/// Starts allowed within [`SPAWN_WINDOW`]: a coordinator that dies at once must not be started in a loop.
const MAX_SPAWNS: usize = 5;

/// See [`MAX_SPAWNS`].
const SPAWN_WINDOW: Duration = Duration::from_secs(30);

/// A start takes milliseconds; a loaded machine and a slow disk get this long.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest handshake line.
const MAX_HANDSHAKE_LEN: u64 = 16 * 1024;

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
    let Spawn { home, program, port, inheritance } = spawn;
    let is_heir = inheritance.is_some();
    let program_error = |source| SpawnError::Program { program: program.to_owned(), source };
    let mut command = Command::new(program);
    command.args(["serve", "--detached"]).env(HOME_VARIABLE, home.path()).current_dir("/");
    if home.known_port().is_some() {
        // What this process was started with may be older than what the user has moved Baton to since.
        command.env_remove(PORT_VARIABLE);
    }
    if let Some(port) = port {
        command.arg("--port").arg(port.to_string());
    }
    match inheritance {
        Some(socket) => {
            command.arg("--inherit").stdin(Stdio::from(socket));
        }
        None => {
            allow_spawn(Instant::now())?;
            if let Some(port) = home.last_port() {
                command.arg("--fallback-port").arg(port.to_string());
            }
            command.stdin(Stdio::null());
        }
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    keep_descriptors();
    let mut child = command.spawn().map_err(program_error)?;
    let stdout = child.stdout.take().ok_or_else(|| program_error(io::ErrorKind::BrokenPipe.into()))?;
    let handshake = read_handshake(stdout).await;
    if is_heir && !matches!(handshake, Ok(Handshake::Ready { .. })) {
        // It may have ended by itself.
        let _ = child.kill().await;
    }
    handshake
}

/// To be called before a process is started that outlives us: a descriptor of ours in its hands would keep our files,
/// sockets and locks open.
pub fn keep_descriptors() {
    close_fds::set_fds_cloexec(3, &[]);
}

async fn read_handshake(stdout: ChildStdout) -> Result<Handshake, SpawnError> {
    let mut line = String::new();
    let mut reader = BufReader::new(stdout.take(MAX_HANDSHAKE_LEN));
    match timeout(HANDSHAKE_TIMEOUT, reader.read_line(&mut line)).await {
        Ok(Ok(_)) => serde_json::from_str(&line).map_err(|_| SpawnError::NoHandshake {
            why: if line.is_empty() {
                "it exited immediately".to_owned()
            } else {
                format!("it printed {line:?}")
            },
        }),
        Ok(Err(error)) => Err(SpawnError::NoHandshake { why: error.to_string() }),
        Err(_) => Err(SpawnError::NoHandshake { why: "it did not respond within 10 s".to_owned() }),
    }
}

/// A start that came to nothing because another coordinator won is no failure: it is not counted.
pub(crate) fn forgive_last_spawn() {
    if let Ok(mut spawns) = SPAWNS.lock() {
        spawns.pop_back();
    }
}

/// Starts of this process within [`SPAWN_WINDOW`].
static SPAWNS: Mutex<VecDeque<Instant>> = Mutex::new(VecDeque::new());

fn allow_spawn(now: Instant) -> Result<(), SpawnError> {
    let mut spawns = SPAWNS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    count_spawn(&mut spawns, now).map_err(|retry_in| SpawnError::Paused { retry_in })
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
