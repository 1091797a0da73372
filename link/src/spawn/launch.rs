//! The process of a coordinator: how it is started, and what it says of its start.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use baton_proto::start::Handshake;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::time::{Instant, timeout};

use super::{PORT_ALIAS, PORT_VARIABLE, Spawn, SpawnError};
use crate::home::HOME_VARIABLE;

/// A start takes milliseconds; a loaded machine and a slow disk get this long.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest handshake line.
const MAX_HANDSHAKE_LEN: u64 = 16 * 1024;

/// Starts of this process, see [`super::MAX_SPAWNS`].
static STARTS: Mutex<VecDeque<Instant>> = Mutex::new(VecDeque::new());

/// Lets `look` at the starts of this process.
pub(super) fn with_starts<T>(look: impl FnOnce(&mut VecDeque<Instant>) -> T) -> T {
    look(&mut STARTS.lock())
}

/// Starts a coordinator and waits for its handshake. An heir that is not ready is ended: it holds what is
/// another's.
pub(super) async fn launch(spawn: Spawn<'_>) -> Result<Handshake, SpawnError> {
    let Spawn { home, program, port, inheritance } = spawn;
    let is_heir = inheritance.is_some();
    let program_error = |source| SpawnError::Program { program: program.to_owned(), source };
    let mut command = Command::new(program);
    command.args(["serve", "--detached"]).env(HOME_VARIABLE, home.path()).current_dir("/");
    if home.known_port().is_some() {
        // What this process was started with may be older than what the user has moved Baton to since.
        command.env_remove(PORT_VARIABLE).env_remove(PORT_ALIAS);
    }
    if let Some(port) = port {
        command.arg("--port").arg(port.to_string());
    }
    match inheritance {
        Some(socket) => {
            command.arg("--inherit").stdin(Stdio::from(socket));
        }
        None => {
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
