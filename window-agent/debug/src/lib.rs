//! The debug engine of a window: breakpoints and debug sessions, behind the verbs of a [`Debugger`].
//!
//! It promises to know no tool, no client and no language server: a verb takes and gives the plain values of
//! [`types`], waits no longer than it is told, and fails with a [`error::DebugError`] that says what to try.
//! One task owns all that changes; dropping the last [`Debugger`] ends every session and every process it started.
//!
//! | module | what |
//! |---|---|
//! | [`types`], [`error`] | CORE: what the verbs take and give |
//! | `verbs` | more verbs: triggers, pausing, state, output, requests of any kind |
//! | `engine` | the one task that owns breakpoints, sessions, ids and waits |
//! | `session` | CORE: one session as a state machine |
//! | `breakpoints`, `handles`, `ids`, `output` | CORE: breakpoints, our ids, the last of what was printed |
//! | [`adapters`] | which adapter serves a configuration, how to reach it |
//! | `dap`, `from_dap` | CORE: the messages of adapters |
//! | `host`, `connection` | the way to an adapter |
//! | [`editor`] | VS Code, which does the debugging in its windows |
//! | [`probe`] | starts an adapter and hears its first answer |

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_link::blocking;
use baton_proto::shim::{EditorBreakpoint, EditorSession};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::adapters::wish::Wish;
use crate::breakpoints::hits::HitCondition;
pub use crate::breakpoints::kept::Kept;
use crate::breakpoints::location;
use crate::engine::waits::WaitId;
use crate::engine::{Command, Early, Engine, WaitReply};
use crate::error::DebugError;
use crate::ids::Base;
pub use crate::options::{DEFAULT_MAX_SESSIONS, DebuggerOptions, Shelf, program_on_path};
use crate::types::control::{Limits, ResumeWish};
use crate::types::{
    Breakpoint, Evaluate, Evaluated, Given, Paging, RemoveBreakpoint, Resume, Scope, SessionId,
    SessionSummary, SetBreakpoint, Start, Variables, Waited,
};
use baton_agent_base::census::Census;
use baton_agent_base::process;

pub mod adapter;
pub mod adapters;
mod breakpoints;
mod codelldb;
pub(crate) mod connection;
pub(crate) mod dap;
pub mod editor;
mod engine;
pub mod error;
mod from_dap;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod handles;
pub(crate) mod host;
mod ids;
mod options;
mod output;
mod pages;
pub mod probe;
mod session;
mod tuples;
mod type_names;
pub mod types;
mod values;
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
/// How long nobody may use a session, when nothing else is said.
const IDLE_LIMIT: Duration = Duration::from_secs(30 * 60);
/// How long an interpreter may take to parse a condition; afterwards it is taken as it is.
const SYNTAX_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a verb may wait, and what ends the wait early.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The bound; the program runs on after it.
    pub timeout: Duration,
    /// Cancelled when the client gave up; the program runs on.
    pub cancelled: CancellationToken,
}

/// A handle on the debug engine of a window; clones share it. When the last one is dropped, every session and
/// every process the engine started ends.
#[derive(Clone, Debug)]
pub struct Debugger {
    commands: mpsc::Sender<(Span, Command)>,
    sessions: watch::Receiver<Vec<SessionSummary>>,
    kept: watch::Receiver<Kept>,
    limits: Arc<watch::Sender<Limits>>,
    options: Arc<DebuggerOptions>,
    prefix: Arc<str>,
    base: Base,
    last_wait: Arc<AtomicU64>,
}

impl Debugger {
    /// Starts the engine's task.
    pub fn spawn(options: DebuggerOptions) -> Self {
        let (commands, receiver) = mpsc::channel(MAX_COMMANDS);
        let (published, sessions) = watch::channel(Vec::new());
        let (keeper, kept) = watch::channel(options.kept.clone());
        let prefix = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        let base = if options.has_own_ids { Base::of(&prefix) } else { Base::default() };
        let (limits, limited) = watch::channel(options.limits);
        let ways = (published, keeper, limited);
        tokio::spawn(Engine::new((prefix.clone(), base), &options, receiver, ways).run());
        let (limits, options, prefix) = (Arc::new(limits), Arc::new(options), prefix.into());
        Self { commands, sessions, kept, limits, options, prefix, base, last_wait: Arc::default() }
    }

    /// What sessions may take from now on, those that run included; what the options limit stays as it is.
    pub fn limit(&self, limits: Limits) {
        let first = self.options.limits;
        self.limits.send_replace(Limits {
            idle: first.idle.or(limits.idle),
            memory: first.memory.or(limits.memory),
            processes: first.processes.or(limits.processes),
            answer: first.answer.or(limits.answer),
            expression: first.expression.or(limits.expression),
        });
    }

    /// Where adapters are that the user has somewhere of their own, for sessions that start from now on.
    pub fn set_programs(&self, programs: &BTreeMap<String, String>) {
        self.options.shelf.programs.set(programs);
    }

    fn answer_timeout(&self) -> Duration {
        self.limits.borrow().answer.unwrap_or(REQUEST_TIMEOUT)
    }

    fn expression_timeout(&self) -> Duration {
        self.limits.borrow().expression.unwrap_or(EVALUATE_TIMEOUT)
    }

    /// What the ids of all its sessions begin with: eight hexadecimal digits.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How many adapters it ran, by name; those that VS Code runs are not known.
    pub fn census(&self) -> &Census {
        &self.options.census
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
            Ok(breakpoint) => breakpoint?,
            Err(_) => {
                let is_ours = |known: &Breakpoint| {
                    (&known.path, known.line, known.column) == (&wish.path, wish.line, wish.column)
                        && self.concerns(&known.owner, wish.owner.as_deref().unwrap_or_default())
                };
                self.breakpoints().await.into_iter().find(is_ours).ok_or(DebugError::ShuttingDown)
            }
        }
    }

    /// Whether an editor does the debugging.
    pub fn has_editor(&self) -> bool {
        self.options.editor.is_some()
    }

    /// Whether a breakpoint of this owner stops the programs of this client: those in an editor stop everybody's.
    pub fn concerns(&self, owner: &Option<String>, client: &str) -> bool {
        self.has_editor() || owner.as_deref().is_none_or(|owner| owner == client)
    }

    /// The user started a session in the editor: clients may look at it, and go on with it.
    pub async fn adopt(&self, session: &EditorSession) {
        let Some(editor) = self.options.editor.clone() else { return };
        let plan = Box::new(adapters::plan_users(editor, session, &self.options));
        let _ = self.tell(Command::Adopt { plan, name: session.name.clone() }).await;
    }

    /// The user changed breakpoints in the editor; these are all there are now.
    pub async fn take_editor_breakpoints(&self, mut all: Vec<EditorBreakpoint>) {
        // The editor tells paths as it opened them. Their file system may be slow.
        let located = tokio::task::spawn_blocking(move || {
            for known in all.iter_mut().filter(|known| known.function.is_none()) {
                if let Some(path) = std::fs::canonicalize(&known.path)
                    .ok()
                    .and_then(|path| path.into_os_string().into_string().ok())
                {
                    known.path = path;
                }
            }
            all
        });
        let Ok(all) = located.await else { return };
        let _ = self.tell(Command::EditorBreakpoints { all }).await;
    }

    /// Removes breakpoints; gives the removed ones.
    pub async fn remove_breakpoint(&self, which: RemoveBreakpoint) -> Result<Vec<Breakpoint>, DebugError> {
        let what = match &which {
            RemoveBreakpoint::Id(id) => Some(format!("with id {id}")),
            RemoveBreakpoint::Location { path, line, .. } => Some(location(path, *line)),
            RemoveBreakpoint::Of(_) | RemoveBreakpoint::All => None,
        };
        let id = if let RemoveBreakpoint::Id(id) = which { Some(id) } else { None };
        let asked = self.ask(|reply| Command::RemoveBreakpoint { which, reply });
        let Ok(removed) = tokio::time::timeout(BREAKPOINT_TIMEOUT, asked).await else {
            let seconds = BREAKPOINT_TIMEOUT.as_secs();
            return Err(DebugError::NoAnswer { command: "setBreakpoints".to_owned(), seconds });
        };
        self.settle_editor().await;
        match (removed?, what) {
            (removed, Some(what)) if removed.is_empty() => Err(self.no_breakpoint(id, what)),
            (removed, _) => Ok(removed),
        }
    }

    /// Why there is no such breakpoint; one that is named by its id may be another agent's.
    fn no_breakpoint(&self, id: Option<i64>, what: String) -> DebugError {
        match id.filter(|id| self.base.is_of_another(*id)) {
            Some(id) => DebugError::OfAnotherRun { what: format!("breakpoint {id}") },
            None => DebugError::NoSuchBreakpoint { what },
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
    pub async fn configure(&self, wish: &Wish) -> Result<Start, DebugError> {
        let wish = wish.clone();
        self.look(move |options| adapters::configure(&wish, options)).await
    }

    /// The adapter that would give a program of `adapter`'s what it reads: that one, or another of its languages that
    /// is installed. `None` where there is none, and in an editor, whose terminal is its user's.
    pub async fn reader(&self, adapter: &str) -> Option<String> {
        let adapter = adapter.to_owned();
        self.look(move |options| adapters::input::reader(&adapter, options)).await.ok().flatten()
    }

    /// Launches or attaches, and waits for the first stop or the end.
    pub async fn start(&self, mut start: Start, wait: Wait) -> Result<Waited, DebugError> {
        adapters::prepare(&mut start, &self.options).await?;
        let planned = start.clone();
        let plan = Box::new(self.look(move |options| adapters::plan(&planned, options)).await?);
        // In an editor its user sees the session, and may be looking at it for as long as it pleases.
        let idle_limit = start.idle_limit.or(Some(IDLE_LIMIT)).filter(|_| !self.has_editor());
        let (name, owner) = (start.name, start.owner);
        // With an empty text, it is given piece by piece later.
        let stdin = start.stdin.filter(|stdin| !stdin.text.is_empty());
        let start = |id, reply| Command::Start { plan, name, owner, stdin, idle_limit, wait: id, reply };
        self.wait(wait, start).await
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

    /// The session of a frame or a container of the latest stop; `None` when the id means nothing any more.
    pub async fn session_of(&self, id: Given) -> Option<SessionId> {
        self.ask(|reply| Command::SessionOf { id, reply }).await.ok().flatten()
    }

    /// The scopes of a frame of the latest stop.
    pub async fn scopes(&self, frame_id: i64) -> Result<Vec<Scope>, DebugError> {
        self.ask_adapter("scopes", self.answer_timeout(), |reply| Command::Scopes { frame_id, reply }).await
    }

    /// What a scope or a variable contains.
    pub async fn variables(&self, reference: i64, paging: Paging) -> Result<Variables, DebugError> {
        let command = |reply| Command::Variables { reference, paging, reply };
        self.ask_adapter("variables", self.answer_timeout(), command).await
    }

    /// Evaluates an expression in a frame of the latest stop.
    pub async fn evaluate(&self, evaluate: Evaluate) -> Result<Evaluated, DebugError> {
        self.evaluate_within(evaluate, None).await
    }

    /// The same for a caller with a limit of its own. An expression that takes longer is interrupted, where the
    /// debugger can; elsewhere its session does nothing else until it ends.
    pub async fn evaluate_within(
        &self,
        evaluate: Evaluate,
        limit: Option<Duration>,
    ) -> Result<Evaluated, DebugError> {
        let limit = limit.unwrap_or_else(|| self.expression_timeout());
        let whole = limit + self.answer_timeout();
        self.ask_adapter("evaluate", whole, |reply| Command::Evaluate { evaluate, limit, reply }).await
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
        let _ = self.tell(Command::InterruptWaits).await;
    }

    /// The sessions that have not ended, oldest first.
    pub fn sessions(&self) -> Vec<SessionSummary> {
        self.sessions.borrow().clone()
    }

    /// Tells when [`Debugger::sessions`] changes.
    pub fn watch_sessions(&self) -> watch::Receiver<Vec<SessionSummary>> {
        self.sessions.clone()
    }

    /// Breakpoints that were there from the start: those that it was given as kept.
    pub fn n_restored(&self) -> u32 {
        u32::try_from(self.options.kept.len()).unwrap_or(u32::MAX)
    }

    /// What the next agent of the window is to begin with, with each change.
    pub fn watch_kept(&self) -> watch::Receiver<Kept> {
        self.kept.clone()
    }

    /// Waits for an answer that may take as long as the caller bears; then the engine is told that nobody waits.
    async fn wait(
        &self,
        wait: Wait,
        command: impl FnOnce(WaitId, WaitReply) -> Command,
    ) -> Result<Waited, DebugError> {
        let id = self.last_wait.fetch_add(1, Ordering::Relaxed);
        let (reply, mut answer) = oneshot::channel();
        self.tell(command(id, reply)).await?;
        let early = tokio::select! {
            biased;
            answer = &mut answer => return answer.unwrap_or(Err(DebugError::ShuttingDown)),
            () = wait.cancelled.cancelled() => Early::Interrupted,
            () = tokio::time::sleep(wait.timeout) => Early::TimedOut,
        };
        let ended = Command::EndWait { wait: id, early };
        self.tell(ended).await?;
        // The engine answers at once: as told, or with a stop that came first.
        let mut waited = answer.await.unwrap_or(Err(DebugError::ShuttingDown));
        if let Ok(Waited::TimedOut { session, waits_for_input, .. }) = &mut waited
            && !self.has_editor()
        {
            // Looks at every process of the machine.
            let mark = format!("{session}-");
            let look = blocking::run(move || process::waits_for_input(&mark));
            *waits_for_input = look.await.unwrap_or(false);
        }
        waited
    }

    /// Looks at the machine off the thread of the calls: what is installed may be asked for its version.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&DebuggerOptions) -> Result<T, DebugError> + Send + 'static,
    ) -> Result<T, DebugError> {
        let options = Arc::clone(&self.options);
        let looked = blocking::run(move || look(&options)).await;
        looked.unwrap_or(Err(DebugError::ShuttingDown))
    }

    /// The engine logs what it does for a call as done for that.
    async fn tell(&self, command: Command) -> Result<(), DebugError> {
        self.commands.send((Span::current(), command)).await.map_err(|_| DebugError::ShuttingDown)
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, DebugError> {
        let (reply, answer) = oneshot::channel();
        self.tell(command(reply)).await?;
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

/// Lines of a file; a last one without an end counts.
fn count_lines(path: &Path) -> Result<usize, DebugError> {
    let not_found = |_| DebugError::FileNotFound { path: path.to_owned() };
    let text = std::fs::read(path).map_err(not_found)?;
    let n_ends = memchr::memchr_iter(b'\n', &text).count();
    Ok(n_ends + usize::from(text.last().is_some_and(|last| *last != b'\n')))
}
