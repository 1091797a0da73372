//! The debug engine: breakpoints and debug sessions, behind the verbs that the tools use.
//!
//! | module | what |
//! |---|---|
//! | [`types`], [`error`] | what the verbs take and give |
//! | `verbs` | more verbs: triggers, pausing, state, output, requests of any kind |
//! | `engine` | the one task that owns breakpoints, sessions, ids and waits |
//! | `session` | CORE: one session as a state machine |
//! | `breakpoints`, `handles`, `output` | CORE: breakpoints, our ids, the last of what was printed |
//! | `adapters` | which adapter serves a configuration, how to reach it |
//! | `host`, `connection`, `dap`, `from_dap` | the way to an adapter and its messages |
//! | [`editor`] | VS Code, which does the debugging in its windows |

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_proto::shim::{EditorBreakpoint, EditorSession};
use tokio::sync::{mpsc, oneshot, watch};

use crate::debug::adapters::shelf::Shelf;
use crate::debug::adapters::wish::Wish;
use crate::debug::breakpoints::{HitCondition, location};
use crate::debug::editor::Editor;
use crate::debug::engine::waits::{WaitId, WaitReply};
use crate::debug::engine::{Command, Early, Engine};
use crate::debug::error::DebugError;
use crate::debug::types::control::ResumeWish;
use crate::debug::types::{
    Breakpoint, Evaluate, Evaluated, Paging, RemoveBreakpoint, Resume, Scope, SessionId, SessionSummary,
    SetBreakpoint, Start, Variables, Wait, Waited,
};
use crate::process;

pub mod adapters;
mod breakpoints;
pub(crate) mod connection;
pub(crate) mod dap;
pub mod editor;
mod engine;
pub mod error;
mod from_dap;
mod handles;
pub(crate) mod host;
mod output;
mod session;
pub mod types;
mod verbs;

/// Commands on their way to the engine; it answers in microseconds.
const MAX_COMMANDS: usize = 64;
/// How long an adapter may take to answer about a stopped program.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an expression may run.
const EVALUATE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long running sessions may take to take a breakpoint; afterwards it is told as it stands.
const BREAKPOINT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a session may take to go; its processes are killed well before.
const STOP_TIMEOUT: Duration = Duration::from_secs(4);
/// How long an interpreter may take to parse a condition; afterwards it is taken as it is.
const SYNTAX_TIMEOUT: Duration = Duration::from_secs(2);

/// See [`DebuggerOptions::max_sessions`]: each costs processes of some 100 MB.
pub const DEFAULT_MAX_SESSIONS: usize = 10;

/// What a [`Debugger`] needs to know of its window and surroundings.
#[derive(Clone, Debug, Default)]
pub struct DebuggerOptions {
    /// Folders of the window, absolute; the first is the default working directory of programs.
    pub folders: Vec<PathBuf>,
    /// The Python interpreter of the environment variable `BATON_PYTHON`.
    pub python: Option<PathBuf>,
    /// The editor that debugs; without one the engine runs adapters itself.
    pub editor: Option<Editor>,
    /// The search path for interpreters and adapters (environment variable `PATH`).
    pub search_path: Option<std::ffi::OsString>,
    /// Most sessions at once that are nobody's children; [`DEFAULT_MAX_SESSIONS`] when not given.
    pub max_sessions: Option<usize>,
    /// End a session when no verb was about it for so long, whatever its toolset would allow.
    pub idle_limit: Option<Duration>,
    /// Where debug adapters are installed.
    pub shelf: Shelf,
}

impl DebuggerOptions {
    /// Options for a window with these folders, the rest from the environment.
    pub fn from_env(folders: Vec<PathBuf>) -> Self {
        Self {
            folders,
            python: std::env::var_os("BATON_PYTHON").map(PathBuf::from),
            editor: None,
            search_path: std::env::var_os("PATH"),
            max_sessions: number_from_env("BATON_MAX_SESSIONS").and_then(|limit| usize::try_from(limit).ok()),
            idle_limit: number_from_env("BATON_IDLE_MINUTES")
                .map(|minutes| Duration::from_secs(minutes * 60)),
            shelf: Shelf::from_env(),
        }
    }
}

/// A handle on the debug engine of a window; clones share it. When the last one is dropped, every session and
/// every process the engine started ends.
#[derive(Clone, Debug)]
pub struct Debugger {
    commands: mpsc::Sender<Command>,
    sessions: watch::Receiver<Vec<SessionSummary>>,
    options: Arc<DebuggerOptions>,
    prefix: Arc<str>,
    last_wait: Arc<AtomicU64>,
}

impl Debugger {
    /// Starts the engine's task.
    pub fn spawn(options: DebuggerOptions) -> Self {
        let (commands, receiver) = mpsc::channel(MAX_COMMANDS);
        let (published, sessions) = watch::channel(Vec::new());
        let prefix = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        tokio::spawn(Engine::new(prefix.clone(), &options, receiver, published).run());
        let (options, prefix) = (Arc::new(options), prefix.into());
        Self { commands, sessions, options, prefix, last_wait: Arc::default() }
    }

    /// What the ids of all its sessions begin with: eight hexadecimal digits.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Sets a breakpoint, or changes the one at the same place. Answers once every running session has taken it.
    pub async fn set_breakpoint(&self, wish: SetBreakpoint) -> Result<Breakpoint, DebugError> {
        let n_lines = count_lines(&wish.path)?;
        if wish.line == 0 || wish.line as usize > n_lines {
            return Err(DebugError::LineOutsideFile { path: wish.path, line: wish.line, n_lines });
        }
        if let Some(text) = &wish.hit_condition
            && HitCondition::parse(text).is_none()
        {
            return Err(DebugError::BadHitCondition { text: text.clone() });
        }
        self.check_syntax(&wish).await?;
        let asked = self.ask(|reply| Command::SetBreakpoint { wish: wish.clone(), reply });
        let asked = tokio::time::timeout(BREAKPOINT_TIMEOUT, asked).await;
        self.settle_editor().await;
        match asked {
            Ok(breakpoint) => breakpoint,
            Err(_) => {
                let place = |known: &Breakpoint| (known.path.clone(), known.line, known.column);
                let is_ours =
                    |known: &Breakpoint| place(known) == (wish.path.clone(), wish.line, wish.column);
                self.breakpoints().await.into_iter().find(is_ours).ok_or(DebugError::ShuttingDown)
            }
        }
    }

    /// Whether an editor does the debugging.
    pub fn has_editor(&self) -> bool {
        self.options.editor.is_some()
    }

    /// The user started a session in the editor: clients may look at it, and go on with it.
    pub async fn adopt(&self, session: &EditorSession) {
        let Some(editor) = self.options.editor.clone() else { return };
        let plan = Box::new(adapters::plan_users(editor, session, &self.options));
        let _ = self.commands.send(Command::Adopt { plan, name: session.name.clone() }).await;
    }

    /// The user changed breakpoints in the editor; these are all there are now.
    pub async fn take_editor_breakpoints(&self, all: Vec<EditorBreakpoint>) {
        let _ = self.commands.send(Command::EditorBreakpoints { all }).await;
    }

    /// Removes breakpoints; gives the removed ones.
    pub async fn remove_breakpoint(&self, which: RemoveBreakpoint) -> Result<Vec<Breakpoint>, DebugError> {
        let what = match &which {
            RemoveBreakpoint::Id(id) => Some(format!("with id {id}")),
            RemoveBreakpoint::Location { path, line } => Some(location(path, *line)),
            RemoveBreakpoint::All => None,
        };
        let asked = self.ask(|reply| Command::RemoveBreakpoint { which, reply });
        let Ok(removed) = tokio::time::timeout(BREAKPOINT_TIMEOUT, asked).await else {
            let seconds = BREAKPOINT_TIMEOUT.as_secs();
            return Err(DebugError::NoAnswer { command: "setBreakpoints".to_owned(), seconds });
        };
        self.settle_editor().await;
        match (removed?, what) {
            (removed, Some(what)) if removed.is_empty() => Err(DebugError::NoSuchBreakpoint { what }),
            (removed, _) => Ok(removed),
        }
    }

    /// A start must not overtake the breakpoints.
    async fn settle_editor(&self) {
        if let Some(editor) = &self.options.editor {
            editor.settled().await;
        }
    }

    /// All breakpoints, by id.
    pub async fn breakpoints(&self) -> Vec<Breakpoint> {
        self.ask(|reply| Command::Breakpoints { reply }).await.unwrap_or_default()
    }

    /// The configuration for a program or a process, with the adapter that serves it best; to be started.
    pub fn configure(&self, wish: &Wish) -> Result<Start, DebugError> {
        adapters::configure(wish, &self.options)
    }

    /// Launches or attaches, and waits for the first stop or the end.
    pub async fn start(&self, mut start: Start, wait: Wait) -> Result<Waited, DebugError> {
        adapters::prepare(&mut start, &self.options).await?;
        let plan = Box::new(adapters::plan(&start, &self.options)?);
        // In an editor its user sees the session, and may be looking at it for as long as it pleases.
        let idle_limit = self.options.idle_limit.or(start.idle_limit).filter(|_| !self.has_editor());
        let name = start.name;
        self.wait(wait, |id, reply| Command::Start { plan, name, idle_limit, wait: id, reply }).await
    }

    /// Lets a stopped thread go on, and waits for the next stop or the end.
    ///
    /// `Continue` on a program that runs (an earlier wait timed out) waits only; a stop or an end that nobody was
    /// told yet is the answer at once. Without `session` the one that stopped or started last is meant.
    pub async fn resume(
        &self,
        session: Option<&SessionId>,
        thread_id: i64,
        how: Resume,
        wait: Wait,
    ) -> Result<Waited, DebugError> {
        self.resume_as(ResumeWish::new(session.cloned(), Some(thread_id), how), wait).await
    }

    /// The scopes of a frame of the latest stop.
    pub async fn scopes(&self, frame_id: i64) -> Result<Vec<Scope>, DebugError> {
        self.ask_adapter("scopes", REQUEST_TIMEOUT, |reply| Command::Scopes { frame_id, reply }).await
    }

    /// What a scope or a variable contains.
    pub async fn variables(&self, reference: i64, paging: Paging) -> Result<Variables, DebugError> {
        let command = |reply| Command::Variables { reference, paging, reply };
        self.ask_adapter("variables", REQUEST_TIMEOUT, command).await
    }

    /// Evaluates an expression in a frame of the latest stop.
    pub async fn evaluate(&self, evaluate: Evaluate) -> Result<Evaluated, DebugError> {
        let command = |reply| Command::Evaluate { evaluate, reply };
        self.ask_adapter("evaluate", EVALUATE_TIMEOUT, command).await
    }

    /// Ends a session with its children: kills a launched program, detaches from one that was attached to. Gives
    /// the session.
    pub async fn stop(&self, session: Option<&SessionId>) -> Result<SessionId, DebugError> {
        let session = session.cloned();
        self.ask_adapter("disconnect", STOP_TIMEOUT, |reply| Command::Stop { session, reply }).await
    }

    /// Ends all sessions, for good, but what the user started in the editor; returns when their processes are gone (bounded).
    pub async fn stop_all(&self) {
        if let Some(editor) = &self.options.editor {
            editor.let_go();
        }
        let asked = self.ask(|reply| Command::StopAll { reply });
        if tokio::time::timeout(STOP_TIMEOUT, asked).await.is_err() {
            tracing::warn!("debug sessions did not end in time");
        }
    }

    /// The user wants no more waiting: every running wait ends as [`Waited::Interrupted`]; programs run on.
    pub async fn interrupt_waits(&self) {
        let _ = self.commands.send(Command::InterruptWaits).await;
    }

    /// The sessions that have not ended, oldest first.
    pub fn sessions(&self) -> Vec<SessionSummary> {
        self.sessions.borrow().clone()
    }

    /// Tells when [`Debugger::sessions`] changes.
    pub fn watch_sessions(&self) -> watch::Receiver<Vec<SessionSummary>> {
        self.sessions.clone()
    }

    /// Waits for an answer that may take as long as the caller bears; then the engine is told that nobody waits.
    async fn wait(
        &self,
        wait: Wait,
        command: impl FnOnce(WaitId, WaitReply) -> Command,
    ) -> Result<Waited, DebugError> {
        let id = self.last_wait.fetch_add(1, Ordering::Relaxed);
        let (reply, mut answer) = oneshot::channel();
        self.commands.send(command(id, reply)).await.map_err(|_| DebugError::ShuttingDown)?;
        let early = tokio::select! {
            biased;
            answer = &mut answer => return answer.unwrap_or(Err(DebugError::ShuttingDown)),
            () = wait.cancelled.cancelled() => Early::Interrupted,
            () = tokio::time::sleep(wait.timeout) => Early::TimedOut,
        };
        let ended = Command::EndWait { wait: id, early };
        self.commands.send(ended).await.map_err(|_| DebugError::ShuttingDown)?;
        // The engine answers at once: as told, or with a stop that came first.
        let mut waited = answer.await.unwrap_or(Err(DebugError::ShuttingDown));
        if let Ok(Waited::TimedOut { session, waits_for_input, .. }) = &mut waited
            && !self.has_editor()
        {
            // Looks at every process of the machine.
            let mark = format!("{session}-");
            let look = tokio::task::spawn_blocking(move || process::waits_for_input(&mark));
            *waits_for_input = look.await.unwrap_or(false);
        }
        waited
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, DebugError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| DebugError::ShuttingDown)?;
        answer.await.map_err(|_| DebugError::ShuttingDown)
    }

    async fn ask_adapter<T>(
        &self,
        name: &str,
        timeout: Duration,
        command: impl FnOnce(oneshot::Sender<Result<T, DebugError>>) -> Command,
    ) -> Result<T, DebugError> {
        match tokio::time::timeout(timeout, self.ask(command)).await {
            Ok(answer) => answer?,
            Err(_) => Err(DebugError::NoAnswer { command: name.to_owned(), seconds: timeout.as_secs() }),
        }
    }

    /// Asks the interpreter whether the condition of a breakpoint in a Python file parses: debugpy itself would
    /// tell at the first hit only.
    async fn check_syntax(&self, wish: &SetBreakpoint) -> Result<(), DebugError> {
        const SCRIPT: &str = "import sys\ntry: compile(sys.argv[1].strip(), '<condition>', 'eval')\nexcept (SyntaxError, ValueError) as error: print(getattr(error, 'msg', error))";
        let is_python = matches!(wish.path.extension().and_then(OsStr::to_str), Some("py" | "pyw"));
        let Some(condition) = wish.condition.as_ref().filter(|_| is_python) else { return Ok(()) };
        let Some(python) = adapters::debugpy::find_pythons(&self.options).into_iter().next() else {
            return Ok(());
        };
        let args = ["-I", "-S", "-c", SCRIPT, condition].map(OsStr::new);
        let Some(output) = process::output_of(&python, &args, SYNTAX_TIMEOUT).await else { return Ok(()) };
        let reason = String::from_utf8_lossy(&output).trim().to_owned();
        if reason.is_empty() {
            return Ok(());
        }
        Err(DebugError::BadCondition { condition: condition.clone(), reason })
    }
}

/// A positive number of an environment variable; anything else counts as not given.
fn number_from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.trim().parse().ok().filter(|number| *number > 0)
}

/// Lines of a file; a last one without an end counts.
fn count_lines(path: &Path) -> Result<usize, DebugError> {
    let not_found = |_| DebugError::FileNotFound { path: path.to_owned() };
    let text = std::fs::read(path).map_err(not_found)?;
    let n_ends = memchr::memchr_iter(b'\n', &text).count();
    Ok(n_ends + usize::from(text.last().is_some_and(|last| *last != b'\n')))
}
