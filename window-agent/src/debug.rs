//! The debug engine: breakpoints and debug sessions, behind the verbs that the tools use.
//!
//! | module | what |
//! |---|---|
//! | [`types`], [`error`] | what the verbs take and give |

use std::path::PathBuf;

use tokio::sync::watch;

use crate::debug::error::DebugError;
use crate::debug::types::{
    Breakpoint, Evaluate, Evaluated, Paging, RemoveBreakpoint, Resume, Scope, SessionId, SessionSummary,
    SetBreakpoint, Start, Variables, Wait, Waited,
};

pub mod error;
pub mod types;

/// What a [`Debugger`] needs to know of its window and surroundings.
#[derive(Clone, Debug, Default)]
pub struct DebuggerOptions {
    /// Folders of the window, absolute; the first is the default working directory of programs.
    pub folders: Vec<PathBuf>,
    /// The Python interpreter of the environment variable `BATON_PYTHON`.
    pub python: Option<PathBuf>,
    /// The search path for interpreters and adapters (environment variable `PATH`).
    pub search_path: Option<std::ffi::OsString>,
}

impl DebuggerOptions {
    /// Options for a window with these folders, the rest from the environment.
    pub fn from_env(folders: Vec<PathBuf>) -> Self {
        Self {
            folders,
            python: std::env::var_os("BATON_PYTHON").map(PathBuf::from),
            search_path: std::env::var_os("PATH"),
        }
    }
}

/// A handle on the debug engine of a window; clones share it. When the last one is dropped, every session and
/// every process the engine started ends.
#[derive(Clone, Debug)]
pub struct Debugger {
    sessions: watch::Receiver<Vec<SessionSummary>>,
}

impl Debugger {
    /// Starts the engine's task.
    pub fn spawn(_options: DebuggerOptions) -> Self {
        unimplemented_yet()
    }

    /// Sets a breakpoint, or changes the one at the same place. Answers once every running session has taken it.
    pub async fn set_breakpoint(&self, _wish: SetBreakpoint) -> Result<Breakpoint, DebugError> {
        unimplemented_yet()
    }

    /// Removes breakpoints; gives the removed ones.
    pub async fn remove_breakpoint(&self, _which: RemoveBreakpoint) -> Result<Vec<Breakpoint>, DebugError> {
        unimplemented_yet()
    }

    /// All breakpoints, by id.
    pub async fn breakpoints(&self) -> Vec<Breakpoint> {
        unimplemented_yet()
    }

    /// Launches or attaches, and waits for the first stop or the end.
    pub async fn start(&self, _start: Start, _wait: Wait) -> Result<Waited, DebugError> {
        unimplemented_yet()
    }

    /// Lets a stopped thread go on, and waits for the next stop or the end.
    ///
    /// `Continue` on a program that runs (an earlier wait timed out) waits only; a stop that nobody was told yet
    /// is the answer at once. Without `session` the one that stopped or started last is meant.
    pub async fn resume(
        &self,
        _session: Option<&SessionId>,
        _thread_id: i64,
        _how: Resume,
        _wait: Wait,
    ) -> Result<Waited, DebugError> {
        unimplemented_yet()
    }

    /// The scopes of a frame of the latest stop.
    pub async fn scopes(&self, _frame_id: i64) -> Result<Vec<Scope>, DebugError> {
        unimplemented_yet()
    }

    /// What a scope or a variable contains.
    pub async fn variables(&self, _reference: i64, _paging: Paging) -> Result<Variables, DebugError> {
        unimplemented_yet()
    }

    /// Evaluates an expression in a frame of the latest stop.
    pub async fn evaluate(&self, _evaluate: Evaluate) -> Result<Evaluated, DebugError> {
        unimplemented_yet()
    }

    /// Ends a session: kills a launched program, detaches from one that was attached to. Gives the session.
    pub async fn stop(&self, _session: Option<&SessionId>) -> Result<SessionId, DebugError> {
        unimplemented_yet()
    }

    /// Ends all sessions; returns when their processes are gone (bounded).
    pub async fn stop_all(&self) {
        unimplemented_yet()
    }

    /// The user wants no more waiting: every running wait ends as [`Waited::Interrupted`]; programs run on.
    pub async fn interrupt_waits(&self) {
        unimplemented_yet()
    }

    /// The sessions that have not ended, oldest first.
    pub fn sessions(&self) -> Vec<SessionSummary> {
        self.sessions.borrow().clone()
    }

    /// Tells when [`Debugger::sessions`] changes.
    pub fn watch_sessions(&self) -> watch::Receiver<Vec<SessionSummary>> {
        self.sessions.clone()
    }
}

fn unimplemented_yet<T>() -> T {
    panic!("the debug engine is being built")
}
