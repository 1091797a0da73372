//! Runs an adapter that is a server: spawns it, learns where it listens, connects, and hands messages over.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use baton_link::peer::{self, is_trusted_peer};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, connect, with_answers_after_end, with_late_output};
use crate::dap::Incoming;
use crate::error::DebugError;
use crate::host::end::{EXIT_GRACE, MAX_KEPT_WORDS, describe_end};
use crate::host::inbox::{FromHost, Inbox};
use crate::host::reach::{Address, Listening, PORT, SOCKET, Server};
use crate::host::tcp::from_tcp;
use crate::output::OutputLog;
use crate::types::control::Category;
use baton_agent_base::process::{self, Program};

/// How long a server may take to listen; a cold Java or a cold disk need seconds.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two tries to connect to a server that does not say when it listens.
const RETRY: Duration = Duration::from_millis(10);
/// A program's last words can lie in the server's pipe when its end is already told.
const QUIET: Duration = Duration::from_millis(20);
/// Pieces of a server's output on their way.
const MAX_PIECES: usize = 64;
/// Longest line in which a port is looked for.
const MAX_LINE: usize = 4096;

/// Runs the host of a session whose adapter is a server.
pub(crate) async fn run(server: &Server, mark: Option<&str>, over: &CancellationToken, inbox: &Inbox) {
    let running = match Running::spawn(server, mark.unwrap_or_default()).await {
        Ok(running) => running,
        Err(error) => {
            let message = format!("cannot run {}: {error}", server.program.path.display());
            return inbox.tell(FromHost::Failed(DebugError::StartFailed { message })).await;
        }
    };
    let pid = running.child.id();
    let how = converse(running, server, over, inbox).await;
    if let Some(pid) = pid {
        process::kill_group(pid);
    }
    if let Some(how) = how {
        inbox.tell(how).await;
    }
}

/// A server that was spawned.
pub(crate) struct Running {
    pub(crate) child: Child,
    pieces: mpsc::Receiver<String>,
    last_words: Arc<Mutex<OutputLog>>,
    place: Place,
}

/// Where a server and we meet.
enum Place {
    ItSays(String),
    Port(u16),
    /// It comes to us.
    Here(TcpListener),
    /// At its standard streams; once.
    Pipes(Option<(ChildStdout, ChildStdin)>),
    /// In a folder that nobody else may enter; it goes with the session.
    Socket(PathBuf, #[expect(dead_code, reason = "kept")] TempDir),
}

impl Running {
    /// Spawns the program of a server.
    pub(crate) async fn spawn(server: &Server, mark: &str) -> io::Result<Self> {
        let (mut place, replaced) = match &server.listening {
            Listening::Pipes => (Place::Pipes(None), None),
            Listening::Announced(before) => (Place::ItSays(before.clone()), None),
            Listening::Given => {
                let port = free_port()?;
                (Place::Port(port), Some((PORT, port.to_string())))
            }
            Listening::Back => {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
                let port = listener.local_addr()?.port();
                (Place::Here(listener), Some((PORT, port.to_string())))
            }
            Listening::Unix => {
                let folder = private_folder(mark)?;
                let path = folder.path().join("adapter.sock");
                let text = path.to_string_lossy().into_owned();
                (Place::Socket(path, folder), Some((SOCKET, text)))
            }
        };
        let mut program = server.program.clone();
        if let Some((placeholder, value)) = replaced {
            fill(&mut program, placeholder, &value);
        }
        let mut child = process::spawn_piped(&program, mark)?;
        let (sender, pieces) = mpsc::channel(MAX_PIECES);
        let last_words = Arc::new(Mutex::new(OutputLog::new(MAX_KEPT_WORDS)));
        if let Place::Pipes(pipes) = &mut place {
            *pipes = child.stdout.take().zip(child.stdin.take());
        } else if let Some(stdout) = child.stdout.take() {
            tokio::spawn(read(stdout, sender.clone(), Arc::clone(&last_words)));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(read(stderr, sender, Arc::clone(&last_words)));
        }
        Ok(Self { child, pieces, last_words, place })
    }

    /// Waits until it listens, and connects; the error says what it said.
    pub(crate) async fn connect(&mut self) -> Result<(Option<Address>, Connection), String> {
        let deadline = Instant::now() + LISTEN_TIMEOUT;
        let address = match &mut self.place {
            Place::Pipes(pipes) => {
                let (stdout, stdin) = pipes.take().ok_or("has no standard streams")?;
                return Ok((None, connect(stdout, stdin)));
            }
            Place::ItSays(before) => {
                let before = before.clone();
                let port = self.announced_port(&before, deadline).await?;
                Address::Tcp("127.0.0.1".to_owned(), port)
            }
            Place::Port(port) => Address::Tcp("127.0.0.1".to_owned(), *port),
            Place::Socket(path, _) => Address::Unix(path.clone()),
            Place::Here(listener) => {
                let stream = tokio::select! {
                    stream = accept_own(listener) => stream.map_err(|error| error.to_string())?,
                    status = self.child.wait() => return Err(describe_end(status.ok(), &self.last_words)),
                    () = sleep_until(deadline) => return Err("does not connect".to_owned()),
                };
                return Ok((None, from_tcp(stream)));
            }
        };
        loop {
            match tokio::time::timeout_at(deadline, open(&address)).await {
                Ok(Ok(connection)) => return Ok((Some(address), connection)),
                Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(format!("cannot be reached: {error}"));
                }
                Ok(Err(error)) if Instant::now() > deadline => {
                    return Err(format!("does not accept a connection: {error}"));
                }
                Ok(Err(_)) => {}
                Err(_) => return Err("does not accept a connection".to_owned()),
            }
            tokio::select! {
                status = self.child.wait() => return Err(describe_end(status.ok(), &self.last_words)),
                () = sleep(RETRY) => {}
            }
        }
    }

    async fn announced_port(&mut self, before: &str, deadline: Instant) -> Result<u16, String> {
        let mut said = String::new();
        loop {
            let piece = match tokio::time::timeout_at(deadline, self.pieces.recv()).await {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    let status = timeout(EXIT_GRACE, self.child.wait()).await.ok().and_then(Result::ok);
                    return Err(describe_end(status, &self.last_words));
                }
                Err(_) => return Err("does not say where it listens".to_owned()),
            };
            said.push_str(&piece);
            if let Some(port) = port_after(&said, before) {
                return Ok(port);
            }
            let kept = said.len().saturating_sub(MAX_LINE);
            said.drain(..said.ceil_char_boundary(kept));
        }
    }
}

/// Hands messages over until the session is over (`None`), or tells how the adapter went away.
async fn converse(
    mut running: Running,
    server: &Server,
    over: &CancellationToken,
    inbox: &Inbox,
) -> Option<FromHost> {
    let connected = tokio::select! {
        connected = running.connect() => connected,
        () = over.cancelled() => return None,
    };
    let (address, Connection { outgoing, mut incoming, writer }) = match connected {
        Ok((address, connection)) if server.answers_after_end => {
            (address, with_late_output(with_answers_after_end(connection)))
        }
        Ok((address, connection)) if server.late_output => (address, with_late_output(connection)),
        Ok(connected) => connected,
        Err(how) => {
            let message = format!("the debug adapter {how}");
            return Some(FromHost::Failed(DebugError::StartFailed { message }));
        }
    };
    if let Some(address) = address {
        let _ = server.address.set(address);
    }
    inbox.tell(FromHost::Reached(outgoing)).await;
    loop {
        tokio::select! {
            biased;
            () = over.cancelled() => {
                // Let the farewell go out, and be heard.
                let _ = timeout(EXIT_GRACE, writer).await;
                let _ = timeout(EXIT_GRACE, running.child.wait()).await;
                return None;
            }
            Some(piece) = running.pieces.recv() => {
                if server.prints_program_output {
                    inbox.tell(FromHost::Printed(Category::Stdout, piece)).await;
                } else if server.exit_code_sign.as_ref().is_some_and(|sign| piece.contains(sign)) {
                    let body = json!({"category": "console", "output": piece});
                    let output = Incoming::Event { event: "output".to_owned(), body };
                    inbox.tell(FromHost::Message(output)).await;
                }
            }
            message = incoming.recv() => {
                let Some(message) = message else { break };
                if server.prints_program_output && is_end(&message) {
                    while let Ok(Some(piece)) = timeout(QUIET, running.pieces.recv()).await {
                        inbox.tell(FromHost::Printed(Category::Stdout, piece)).await;
                    }
                }
                let message = with_full_paths(message, &server.source_roots);
                inbox.tell(FromHost::Message(message)).await;
            }
        }
    }
    let status = timeout(EXIT_GRACE, running.child.wait()).await.ok().and_then(Result::ok);
    Some(FromHost::Closed { how: describe_end(status, &running.last_words) })
}

/// Some servers name a source by its package.
fn with_full_paths(mut message: Incoming, roots: &[PathBuf]) -> Incoming {
    let Incoming::Response(response) = &mut message else { return message };
    let frames = response.body.get_mut("stackFrames").and_then(|frames| frames.as_array_mut());
    for frame in frames.into_iter().flatten() {
        let Some(Value::String(path)) = frame.pointer_mut("/source/path") else { continue };
        let full = roots.iter().map(|root| root.join(&*path)).find(|full| full.is_file());
        if let Some(full) = full.filter(|_| !path.starts_with('/')) {
            *path = full.to_string_lossy().into_owned();
        }
    }
    message
}

fn is_end(message: &Incoming) -> bool {
    matches!(message, Incoming::Event { event, .. } if event == "terminated" || event == "exited")
}

async fn open(address: &Address) -> io::Result<Connection> {
    match address {
        Address::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            peer::check_server(&stream).await?;
            Ok(from_tcp(stream))
        }
        Address::Unix(path) => open_unix(path).await,
    }
}

/// Connects to a socket that only we can reach.
pub(super) async fn open_unix(path: &Path) -> io::Result<Connection> {
    let (read, write) = UnixStream::connect(path).await?.into_split();
    Ok(connect(read, write))
}

/// The first connection that comes from a process of ours: anybody can connect, and is not heard.
async fn accept_own(listener: &TcpListener) -> io::Result<TcpStream> {
    loop {
        let (stream, from) = listener.accept().await?;
        if is_trusted_peer(&stream) {
            return Ok(stream);
        }
        tracing::warn!(%from, "another user connected where a debug adapter was awaited, and was turned away");
    }
}

/// A folder of one session, which nobody else may enter. Its name begins with the mark, by which it is found when
/// we are killed.
fn private_folder(mark: &str) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o700)).prefix(&format!("baton-{mark}-")).tempdir()
}

/// Reads a stream of a server to its end. What nobody takes any more is read nevertheless: it must not block.
async fn read(
    mut stream: impl AsyncRead + Unpin,
    sender: mpsc::Sender<String>,
    last_words: Arc<Mutex<OutputLog>>,
) {
    let (mut buffer, mut rest) = ([0; 4096], Vec::new());
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        rest.extend_from_slice(&buffer[..n]);
        let n_whole = match std::str::from_utf8(&rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => rest.len(),
        };
        let text = String::from_utf8_lossy(&rest[..n_whole]).into_owned();
        rest.drain(..n_whole);
        last_words.lock().push(Category::Stderr, &text);
        let _ = sender.send(text).await;
    }
}

/// The port in a text, once the line that announces it is complete enough: something follows the digits.
fn port_after(text: &str, before: &str) -> Option<u16> {
    let rest = &text[text.find(before)? + before.len()..];
    let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if n_digits == rest.len() { None } else { rest[..n_digits].parse().ok() }
}

/// A port that is free now. Somebody else could take it before the server does; then the server says so and ends.
fn free_port() -> io::Result<u16> {
    std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr().map(|address| address.port())
}

fn fill(program: &mut Program, placeholder: &str, value: &str) {
    for argument in &mut program.args {
        if let Some(text) = argument.to_str()
            && text.contains(placeholder)
        {
            *argument = OsString::from(text.replace(placeholder, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_port_is_read_once_it_is_whole() {
        let before = "listening at 127.0.0.1:";
        assert_eq!(port_after("DAP server listening at: x", before), None);
        assert_eq!(port_after("server listening at 127.0.0.1:40", before), None, "more digits may follow");
        assert_eq!(port_after("server listening at 127.0.0.1:4071\n", before), Some(4071));
        assert_eq!(port_after("noise\nserver listening at 127.0.0.1:99999\n", before), None);
    }
}
