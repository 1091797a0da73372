//! Runs an adapter that is a server: spawns it, learns where it listens, connects, and hands messages over.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::debug::adapters::{Address, Listening, PORT, SOCKET, Server};
use crate::debug::connection::{Connection, connect};
use crate::debug::dap::Incoming;
use crate::debug::error::DebugError;
use crate::debug::host::direct::{EXIT_GRACE, FromHost, Inbox, MAX_KEPT_WORDS, QuickRead, describe_end};
use crate::debug::output::OutputLog;
use crate::debug::types::control::Category;
use crate::process::{self, Program};

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
    let running = match Running::spawn(server, mark.unwrap_or_default()) {
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

/// Where a server was told to listen.
enum Place {
    ItSays(String),
    Port(u16),
    Socket(PathBuf),
}

impl Running {
    /// Spawns the program of a server.
    pub(crate) fn spawn(server: &Server, mark: &str) -> io::Result<Self> {
        let (place, replaced) = match &server.listening {
            Listening::Announced(before) => (Place::ItSays(before.clone()), None),
            Listening::Given => {
                let port = free_port()?;
                (Place::Port(port), Some((PORT, port.to_string())))
            }
            Listening::Unix => {
                let name = format!("baton-{}.sock", uuid::Uuid::new_v4().simple());
                let path = std::env::temp_dir().join(name);
                let text = path.to_string_lossy().into_owned();
                (Place::Socket(path), Some((SOCKET, text)))
            }
        };
        let mut program = server.program.clone();
        if let Some((placeholder, value)) = replaced {
            fill(&mut program, placeholder, &value);
        }
        let mut child = process::spawn_piped(&program, mark)?;
        let (sender, pieces) = mpsc::channel(MAX_PIECES);
        let last_words = Arc::new(Mutex::new(OutputLog::new(MAX_KEPT_WORDS)));
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(read(stdout, sender.clone(), Arc::clone(&last_words)));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(read(stderr, sender, Arc::clone(&last_words)));
        }
        Ok(Self { child, pieces, last_words, place })
    }

    /// Waits until it listens, and connects; the error says what it said.
    pub(crate) async fn connect(&mut self) -> Result<(Address, Connection), String> {
        let deadline = Instant::now() + LISTEN_TIMEOUT;
        let address = match &self.place {
            Place::ItSays(before) => {
                let before = before.clone();
                let port = self.announced_port(&before, deadline).await?;
                Address::Tcp("127.0.0.1".to_owned(), port)
            }
            Place::Port(port) => Address::Tcp("127.0.0.1".to_owned(), *port),
            Place::Socket(path) => Address::Unix(path.clone()),
        };
        loop {
            match open(&address).await {
                Ok(connection) => return Ok((address, connection)),
                Err(error) if Instant::now() > deadline => {
                    return Err(format!("does not accept a connection: {error}"));
                }
                Err(_) => {}
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
            (address, connection.with_answers_after_end().with_late_output())
        }
        Ok((address, connection)) if server.late_output => (address, connection.with_late_output()),
        Ok(connected) => connected,
        Err(how) => {
            let message = format!("the debug adapter {how}");
            return Some(FromHost::Failed(DebugError::StartFailed { message }));
        }
    };
    let _ = server.address.set(address);
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
            stream.set_nodelay(true)?;
            let (read, write) = stream.into_split();
            Ok(connect(QuickRead(read), write))
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            // The name has done its work.
            let _ = std::fs::remove_file(path);
            let (read, write) = stream.into_split();
            Ok(connect(read, write))
        }
    }
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
        if let Ok(mut ring) = last_words.lock() {
            ring.push(Category::Stderr, &text);
        }
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
