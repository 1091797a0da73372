//! What can go wrong with a verb of the debugger, one variant per thing a caller does differently.

use std::path::PathBuf;

use crate::debug::types::SessionId;

/// Why a verb failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DebugError {
    /// There is no such source file.
    #[error("the file {} does not exist", path.display())]
    FileNotFound {
        /// What was asked for.
        path: PathBuf,
    },
    /// The line is not in the file.
    #[error("{} has {n_lines} lines, there is no line {line}", path.display())]
    LineOutsideFile {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        line: u32,
        /// Lines of the file.
        n_lines: usize,
    },
    /// The condition does not parse.
    #[error("the condition `{condition}` does not parse: {reason}")]
    BadCondition {
        /// What was asked for.
        condition: String,
        /// What the language says.
        reason: String,
    },
    /// The hit condition is not understood.
    #[error("the hit condition `{text}` is not understood")]
    BadHitCondition {
        /// What was asked for.
        text: String,
    },
    /// A breakpoint without a place.
    #[error("the {what} of the breakpoint is missing")]
    NoPlace {
        /// `function name`.
        what: &'static str,
    },
    /// There is no such breakpoint.
    #[error("there is no breakpoint {what}")]
    NoSuchBreakpoint {
        /// `with id 3`, `on line 4 of ...`.
        what: String,
    },
    /// The configuration cannot be used.
    #[error("{message}")]
    BadConfiguration {
        /// What is wrong.
        message: String,
    },
    /// No adapter serves this type of configuration.
    #[error("no debug adapter serves configurations of type `{kind}`; known types: {known}")]
    UnknownType {
        /// The `type`.
        kind: String,
        /// The types there are adapters for.
        known: String,
    },
    /// The adapter is not installed.
    #[error("{message}")]
    AdapterMissing {
        /// What is missing.
        message: String,
        /// How to install it.
        hint: String,
    },
    /// The program could not be started, or attached to.
    #[error("{message}")]
    StartFailed {
        /// The real cause.
        message: String,
    },
    /// The user does not trust the workspace of the editor.
    #[error("{message}")]
    Untrusted {
        /// What the editor says.
        message: String,
    },
    /// As many sessions run as may.
    #[error("as many debug sessions run as may: {limit}")]
    TooManySessions {
        /// The bound.
        limit: usize,
    },
    /// No session is running.
    #[error("no debug session is running")]
    NoSession,
    /// A session of this name never was, or ended long ago.
    #[error("there is no debug session {session}")]
    NoSuchSession {
        /// What was asked for.
        session: SessionId,
    },
    /// The session ended.
    #[error("debug session {session} has ended{}", exit_code.map(|code| format!(" with exit code {code}")).unwrap_or_default())]
    SessionEnded {
        /// Which one.
        session: SessionId,
        /// Exit code of its program, when known.
        exit_code: Option<i64>,
    },
    /// The adapter died or hung up while its session was running.
    #[error("the debug adapter of session {session} {how}{}", if output.is_empty() { String::new() } else { format!(": {output}") })]
    AdapterDied {
        /// Which session.
        session: SessionId,
        /// `was killed by signal 9`, `closed its connection`.
        how: String,
        /// Last words.
        output: String,
    },
    /// No such thread in the session.
    #[error("there is no thread {thread_id}; threads: {known}")]
    NoSuchThread {
        /// What was asked for.
        thread_id: i64,
        /// Ids and names there are.
        known: String,
    },
    /// The thread runs.
    #[error("thread {thread_id} is running")]
    NotStopped {
        /// Which thread.
        thread_id: i64,
    },
    /// Another call waits on this thread.
    #[error("another call is already waiting on thread {thread_id}")]
    Busy {
        /// Which thread.
        thread_id: i64,
    },
    /// The frame belongs to an earlier stop.
    #[error("frame {frame_id} belongs to an earlier stop; use a frame_id of the latest stop_event_data")]
    StaleFrame {
        /// What was asked for.
        frame_id: i64,
    },
    /// No frame ever had this id.
    #[error("there is no frame {frame_id}")]
    NoSuchFrame {
        /// What was asked for.
        frame_id: i64,
    },
    /// The reference belongs to an earlier stop.
    #[error(
        "variables_reference {reference} belongs to an earlier stop; fetch it again from the latest stop_event_data"
    )]
    StaleReference {
        /// What was asked for.
        reference: i64,
    },
    /// No container of variables ever had this reference.
    #[error("there is no variables_reference {reference}")]
    NoSuchReference {
        /// What was asked for.
        reference: i64,
    },
    /// The expression could not be evaluated.
    #[error("{message}")]
    EvaluationFailed {
        /// What the language says.
        message: String,
    },
    /// The adapter refused a request.
    #[error("the debug adapter refused `{command}`: {message}")]
    Refused {
        /// Which request.
        command: String,
        /// What it says.
        message: String,
    },
    /// The adapter cannot do it.
    #[error("the debug adapter {adapter} does not support {what}")]
    Unsupported {
        /// Which adapter.
        adapter: String,
        /// `memory reads`.
        what: &'static str,
    },
    /// A request that changes where a session stands; it has a verb of its own.
    #[error("`{command}` cannot be sent as a request of its own")]
    OfVerb {
        /// The request.
        command: String,
        /// What to use instead.
        verb: &'static str,
    },
    /// A frame or a reference of another session than the one that was named.
    #[error("the frame or reference belongs to debug session {session}")]
    ForeignId {
        /// Whose it is.
        session: SessionId,
    },
    /// The adapter tells no threads.
    #[error("the debugger reported no threads")]
    NoThreads,
    /// The program does not read from a terminal of ours.
    #[error("the program does not run in a terminal of its own, so that nothing can be typed into it")]
    NoTerminal,
    /// The program does not read what it was given.
    #[error("the program has not read what was written to it before")]
    StdinFull,
    /// The adapter does not answer.
    #[error("the debug adapter did not answer `{command}` within {seconds} s")]
    NoAnswer {
        /// Which request.
        command: String,
        /// The bound.
        seconds: u64,
    },
    /// The debugger of this window is shutting down.
    #[error("the debugger is shutting down")]
    ShuttingDown,
}

impl DebugError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::FileNotFound { .. } => "file_not_found",
            Self::LineOutsideFile { .. } => "line_outside_file",
            Self::BadCondition { .. } => "bad_condition",
            Self::BadHitCondition { .. } => "bad_hit_condition",
            Self::NoPlace { .. } => "no_place",
            Self::NoSuchBreakpoint { .. } => "no_such_breakpoint",
            Self::BadConfiguration { .. } => "bad_configuration",
            Self::UnknownType { .. } => "unknown_type",
            Self::AdapterMissing { .. } => "adapter_missing",
            Self::StartFailed { .. } => "start_failed",
            Self::Untrusted { .. } => "untrusted",
            Self::TooManySessions { .. } => "too_many_sessions",
            Self::NoSession => "no_session",
            Self::NoSuchSession { .. } => "no_such_session",
            Self::SessionEnded { .. } => "session_ended",
            Self::AdapterDied { .. } => "adapter_died",
            Self::NoSuchThread { .. } => "no_such_thread",
            Self::NotStopped { .. } => "not_stopped",
            Self::Busy { .. } => "busy",
            Self::StaleFrame { .. } => "stale_frame",
            Self::NoSuchFrame { .. } => "no_such_frame",
            Self::StaleReference { .. } => "stale_reference",
            Self::NoSuchReference { .. } => "no_such_reference",
            Self::EvaluationFailed { .. } => "evaluation_failed",
            Self::Refused { .. } => "adapter_refused",
            Self::Unsupported { .. } => "unsupported",
            Self::OfVerb { .. } => "not_a_request",
            Self::ForeignId { .. } => "foreign_id",
            Self::NoThreads => "no_threads",
            Self::NoTerminal => "no_terminal",
            Self::StdinFull => "stdin_full",
            Self::NoAnswer { .. } => "adapter_timeout",
            Self::ShuttingDown => "shutting_down",
        }
    }

    /// What to try next, in one sentence.
    pub fn hint(&self) -> String {
        match self {
            Self::FileNotFound { .. } => "Give an absolute path, or one relative to the window's folder.",
            Self::LineOutsideFile { .. } => "Give a line_number inside the file; lines count from 1.",
            Self::BadCondition { .. } => "Give an expression in the language of the program.",
            Self::BadHitCondition { .. } => {
                "Write a comparison with a number: `> 5`, `>= 5`, `< 5`, `<= 5`, `== 3`, `% 2 == 0`, or a plain number."
            }
            Self::NoPlace { .. } => "Give one that the debugger knows.",
            Self::NoSuchBreakpoint { .. } => "Call get_breakpoints for the ones there are.",
            Self::BadConfiguration { .. } => "Correct the configuration in .vscode/launch.json.",
            Self::UnknownType { .. } => "Use a configuration whose `type` is among the known ones.",
            Self::AdapterMissing { hint, .. } => hint,
            Self::StartFailed { .. } => "Correct the configuration or the program and start again.",
            Self::Untrusted { .. } => "Call start_debugging again when the user has said that they trust it.",
            Self::TooManySessions { .. } => "Stop one with stop_debugging.",
            Self::NoSession | Self::SessionEnded { .. } => "Call start_debugging to start one.",
            Self::NoSuchSession { .. } => "Use the session_id of the latest stop_event_data, or leave it out.",
            Self::AdapterDied { .. } => "The session is over and its processes are gone; call start_debugging.",
            Self::NoSuchThread { .. } => "Use the thread_id of the latest stop_event_data.",
            Self::NotStopped { .. } => "Call continue_debugging to wait for its next stop, or stop_debugging.",
            Self::Busy { .. } => "Wait for the other call, or cancel it.",
            Self::StaleFrame { .. } | Self::NoSuchFrame { .. } => {
                "Use a frame_id of call_stack in the latest stop_event_data."
            }
            Self::StaleReference { .. } | Self::NoSuchReference { .. } => {
                "Call get_scopes with a frame_id of the latest stop_event_data."
            }
            Self::EvaluationFailed { .. } => "Check the names in the expression against the frame's variables.",
            Self::Refused { .. } => "Check the arguments against the latest stop_event_data.",
            Self::Unsupported { .. } => "Use another way, or another debug adapter that can.",
            Self::OfVerb { verb, .. } => return format!("Use {verb} for it."),
            Self::ForeignId { .. } => "Leave the session out, or name that one.",
            Self::NoThreads => "Wait until the program runs, or stop it.",
            Self::NoTerminal => "Start it with `console` set to integratedTerminal.",
            Self::StdinFull => "Let the program run until it reads.",
            Self::NoAnswer { .. } => "The program may be busy; try again, or call stop_debugging.",
            Self::ShuttingDown => "Try again in a moment.",
        }
        .to_owned()
    }
}
