//! Reaches adapters without an editor: spawns or connects, hands messages over, and leaves nothing behind.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::process::{Child, ChildStderr};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::debug::adapters::table::Adapter;
use crate::debug::adapters::{EXIT_ADAPTER_MISSING, Plan, Reach};
use crate::debug::breakpoints::SessionKey;
use crate::debug::connection::{Connection, connect};
use crate::debug::dap::Incoming;
use crate::debug::error::DebugError;
use crate::debug::host::{server, vscode};
use crate::debug::output::OutputLog;
use crate::debug::types::control::{Category, Stdin};
use crate::process::{self, Program};

/// How long a connection to an adapter may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an adapter may take to end by itself once its session is over.
pub(super) const EXIT_GRACE: Duration = Duration::from_millis(500);
/// How long the end of the process and the end of its output may lie apart.
const DRAIN_GRACE: Duration = Duration::from_millis(300);
/// Bytes kept of what an adapter says besides the protocol.
pub(super) const MAX_KEPT_WORDS: usize = 16 * 1024;
/// Texts for a program that it has not read yet.
const MAX_STDIN: usize = 64;
/// Last words of an adapter that are told.
const MAX_LAST_WORDS: usize = 400;

/// What a session's host tells the engine.
#[derive(Debug)]
pub(crate) enum FromHost {
    /// The adapter is reached. Comes again when the first one tried proved useless.
    Reached(mpsc::Sender<Bytes>),
    /// A message of the adapter.
    Message(Incoming),
    /// Something printed this that is not the adapter speaking: a terminal that the program runs in.
    Printed(Category, String),
    /// The program runs in this terminal.
    Terminal(TerminalWriter),
    /// The program in the terminal ended.
    TerminalEnded { exit_code: Option<i64> },
    /// The adapter cannot be reached at all.
    Failed(DebugError),
    /// The user ends the session in the editor: who waits for it is to hear that.
    UserStops,
    /// The adapter went away.
    Closed { how: String },
    /// Nothing of the session is left.
    Gone,
}

/// The way to a program that runs in a terminal of ours.
#[derive(Clone, Debug)]
pub(crate) struct TerminalWriter {
    /// Its process id.
    pub(crate) pid: u32,
    texts: std::sync::mpsc::SyncSender<Vec<u8>>,
}

impl TerminalWriter {
    /// Hands text over; the program may read it later.
    pub(crate) fn write(&self, stdin: Stdin) -> Result<(), DebugError> {
        /// What ends the input of a terminal, at the beginning of a line.
        const END_OF_INPUT: u8 = 4;
        let mut bytes = stdin.text.into_bytes();
        if stdin.is_last {
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            bytes.push(END_OF_INPUT);
        }
        self.texts.try_send(bytes).map_err(|_| DebugError::StdinFull)
    }
}

/// Where a host reports to.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) key: SessionKey,
    pub(crate) sender: mpsc::Sender<(SessionKey, FromHost)>,
}

impl Inbox {
    pub(crate) async fn tell(&self, event: FromHost) {
        // An engine that is gone needs to know nothing.
        let _ = self.sender.send((self.key, event)).await;
    }
}

/// Runs the host of one session until nothing of it is left. `over` says that the session is.
pub(crate) async fn run(plan: Plan, mark: Option<String>, over: CancellationToken, inbox: Inbox) {
    match &plan.reach {
        Reach::Stdio(programs) => run_spawned(programs, &plan, mark.as_deref(), &over, &inbox).await,
        Reach::Server(server) => server::run(server, mark.as_deref(), &over, &inbox).await,
        Reach::Tcp { host, port } => run_connected((host, *port), plan.adapter, &over, &inbox).await,
        Reach::Editor(editor, target) => {
            return vscode::run(editor.clone(), target.clone(), over, inbox).await;
        }
    }
    if let Some(mark) = mark {
        // Reads a file of every process of the machine.
        let _ = tokio::task::spawn_blocking(move || process::kill_marked(&mark)).await;
    }
    inbox.tell(FromHost::Gone).await;
}

/// Connects to what is attached to.
pub(crate) async fn open(host: &str, port: u16) -> Result<TcpStream, DebugError> {
    let message = match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect((host, port))).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(error)) => format!(
            "nothing to attach to at {host}:{port} ({error}); is the program running with a debugger that listens there?"
        ),
        Err(_) => {
            format!("{host}:{port} did not accept a connection within {} s", CONNECT_TIMEOUT.as_secs())
        }
    };
    Err(DebugError::StartFailed { message })
}

async fn run_connected(
    (host, port): (&str, u16),
    adapter: &Adapter,
    over: &CancellationToken,
    inbox: &Inbox,
) {
    let connected = tokio::select! {
        connected = open(host, port) => connected,
        () = over.cancelled() => return,
    };
    let stream = match connected {
        Ok(stream) => stream,
        Err(error) => return inbox.tell(FromHost::Failed(error)).await,
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::warn!(%error, "cannot set TCP_NODELAY on a connection to an adapter");
    }
    let (read, write) = stream.into_split();
    let connection = connect(QuickRead(read), write);
    let connection = if adapter.late_output { connection.with_late_output() } else { connection };
    let Connection { outgoing, mut incoming, writer } = connection;
    inbox.tell(FromHost::Reached(outgoing)).await;
    loop {
        tokio::select! {
            message = incoming.recv() => match message {
                Some(message) => inbox.tell(FromHost::Message(message)).await,
                None => {
                    inbox.tell(FromHost::Closed { how: "closed its connection".to_owned() }).await;
                    break;
                }
            },
            () = over.cancelled() => {
                // Let the farewell go out.
                let _ = tokio::time::timeout(EXIT_GRACE, writer).await;
                break;
            }
        }
    }
}

/// Acknowledges at once what it reads: an adapter that writes two messages in a row without TCP_NODELAY holds the
/// second one back until then, and by default that is 40 ms later. The option is not permanent.
pub(super) struct QuickRead(pub(super) OwnedReadHalf);

impl AsyncRead for QuickRead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.0).poll_read(context, buffer);
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_quickack(self.0.as_ref(), true);
        poll
    }
}

async fn run_spawned(
    programs: &[Program],
    plan: &Plan,
    mark: Option<&str>,
    over: &CancellationToken,
    inbox: &Inbox,
) {
    for program in programs {
        let child = match process::spawn_piped(program, mark.unwrap_or_default()) {
            Ok(child) => child,
            Err(error) => {
                let message = format!("cannot run {}: {error}", program.path.display());
                return inbox.tell(FromHost::Failed(DebugError::StartFailed { message })).await;
            }
        };
        let pid = child.id();
        let outcome = pump(child, plan.adapter, over, inbox).await;
        if let Some(pid) = pid {
            process::kill_group(pid);
        }
        match outcome {
            Pumped::Missing => {}
            Pumped::Over => return,
            Pumped::Closed(how) => return inbox.tell(FromHost::Closed { how }).await,
        }
    }
    let tried: Vec<String> = programs.iter().map(|program| program.path.display().to_string()).collect();
    let message = format!("{} is not installed in {}", plan.adapter.name, tried.join(" nor in "));
    let hint = plan.install_hint.clone();
    inbox.tell(FromHost::Failed(DebugError::AdapterMissing { message, hint })).await;
}

/// How a child's conversation ended.
enum Pumped {
    /// It said that it has no adapter to run.
    Missing,
    /// It ended by itself.
    Closed(String),
    /// Its session was over.
    Over,
}

/// Hands messages over until the child has ended, or its session is over and the child was given time to end.
async fn pump(mut child: Child, adapter: &Adapter, over: &CancellationToken, inbox: &Inbox) -> Pumped {
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Pumped::Closed("has no standard streams".to_owned());
    };
    let last_words = keep_last_words(stderr);
    let connection = connect(stdout, stdin);
    let connection = if adapter.late_output { connection.with_late_output() } else { connection };
    let Connection { outgoing, mut incoming, writer: _ } = connection;
    inbox.tell(FromHost::Reached(outgoing)).await;
    let mut spoke = false;
    let mut deadline = None;
    let mut status = None;
    loop {
        let grace = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = incoming.recv() => match message {
                Some(message) => {
                    spoke = true;
                    inbox.tell(FromHost::Message(message)).await;
                }
                // Its output ended: the process should, too.
                None => {
                    if status.is_none() {
                        status = tokio::time::timeout(DRAIN_GRACE, child.wait()).await.ok().and_then(Result::ok);
                    }
                    break;
                }
            },
            ended = child.wait(), if status.is_none() => {
                status = ended.ok();
                deadline = Some(tokio::time::Instant::now() + DRAIN_GRACE);
            }
            () = over.cancelled(), if deadline.is_none() => {
                deadline = Some(tokio::time::Instant::now() + EXIT_GRACE);
            }
            () = grace => break,
        }
    }
    if over.is_cancelled() {
        return Pumped::Over;
    }
    match status {
        Some(status) if !spoke && status.code() == Some(EXIT_ADAPTER_MISSING) => Pumped::Missing,
        status => Pumped::Closed(describe_end(status, &last_words)),
    }
}

pub(super) fn describe_end(
    status: Option<std::process::ExitStatus>,
    last_words: &Mutex<OutputLog>,
) -> String {
    use std::os::unix::process::ExitStatusExt;
    let how = match status {
        None => "closed its connection".to_owned(),
        Some(status) => match (status.code(), status.signal()) {
            (_, Some(signal)) => format!("was killed by signal {signal}"),
            (Some(code), _) => format!("exited with code {code}"),
            _ => "ended".to_owned(),
        },
    };
    let words = last_words.lock().map(|ring| ring.last_words(MAX_LAST_WORDS)).unwrap_or_default();
    if words.is_empty() { how } else { format!("{how}: {words}") }
}

/// Reads a child's standard error to its end; what came last is kept.
fn keep_last_words(mut stderr: ChildStderr) -> Arc<Mutex<OutputLog>> {
    let ring = Arc::new(Mutex::new(OutputLog::new(MAX_KEPT_WORDS)));
    let kept = Arc::clone(&ring);
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
            if let Ok(mut ring) = kept.lock() {
                ring.push(Category::Stderr, &String::from_utf8_lossy(&buffer[..n]));
            }
        }
    });
    ring
}

/// Runs a program in a terminal of its own, for an adapter that asked for it; answers it with the process id.
pub(crate) async fn run_in_terminal(arguments: Value, mark: String, inbox: Inbox) -> Result<Value, String> {
    let program = terminal_program(&arguments).ok_or("runInTerminal without a program")?;
    let spawned = tokio::task::spawn_blocking(move || process::spawn_in_terminal(&program, &mark));
    let terminal = spawned.await.map_err(|error| error.to_string())?.map_err(|error| format!("{error:#}"))?;
    let pid = terminal.pid;
    let (texts, to_write) = std::sync::mpsc::sync_channel::<Vec<u8>>(MAX_STDIN);
    let mut writer = terminal.writer;
    // Writing blocks while the program does not read; the thread ends when nobody can write any more.
    std::thread::spawn(move || {
        while let Ok(bytes) = to_write.recv() {
            if writer.write_all(&bytes).and_then(|()| writer.flush()).is_err() {
                break;
            }
        }
    });
    inbox.tell(FromHost::Terminal(TerminalWriter { pid, texts })).await;
    // The terminal is read by blocking reads only; the thread ends with the last process in it.
    std::thread::spawn(move || {
        let (mut reader, mut buffer, mut rest) = (terminal.reader, [0; 4096], Vec::new());
        let (_master, mut child) = terminal.keep;
        while let Ok(n @ 1..) = std::io::Read::read(&mut reader, &mut buffer) {
            rest.extend_from_slice(&buffer[..n]);
            let n_whole = match std::str::from_utf8(&rest) {
                Ok(_) => rest.len(),
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Err(_) => rest.len(),
            };
            let text = String::from_utf8_lossy(&rest[..n_whole]).into_owned();
            rest.drain(..n_whole);
            if inbox.sender.blocking_send((inbox.key, FromHost::Printed(Category::Stdout, text))).is_err() {
                break;
            }
        }
        // One that a signal ended has no code of its own.
        let exit_code = child.wait().ok().filter(|status| status.signal().is_none());
        let exit_code = exit_code.map(|status| i64::from(status.exit_code()));
        let _ = inbox.sender.blocking_send((inbox.key, FromHost::TerminalEnded { exit_code }));
    });
    Ok(serde_json::json!({"processId": pid}))
}

fn terminal_program(arguments: &Value) -> Option<Program> {
    let mut args = arguments["args"].as_array()?.iter().filter_map(Value::as_str);
    let path = args.next()?.into();
    let env = arguments["env"].as_object().into_iter().flatten();
    Some(Program {
        path,
        args: args.map(Into::into).collect(),
        cwd: arguments["cwd"].as_str().filter(|cwd| !cwd.is_empty()).map(Into::into),
        env: env.map(|(name, value)| (name.into(), value.as_str().map(Into::into))).collect(),
    })
}
