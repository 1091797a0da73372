//! CORE: what can go wrong with a verb of the debugger, one variant per thing a caller does differently.

use std::path::PathBuf;

use baton_agent_base::fault::Kind;

use crate::types::SessionId;

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
    #[error("{} has {n_lines} lines; there is no line {line}", path.display())]
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
    #[error("the hit condition `{text}` is not valid")]
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
    /// Somebody else has another breakpoint at that place.
    #[error("{what} already exists there")]
    OthersBreakpoint {
        /// ``the user's breakpoint with condition `i > 4` ``.
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
    #[error("too many debug sessions (limit {limit})")]
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
    /// The user started the session in their editor, which alone can start it again.
    #[error("the user started debug session {session} in the editor, and only they can restart it")]
    UsersSession {
        /// Which one.
        session: SessionId,
    },
    /// A part of a compound of the editor's, the first part of which has ended.
    #[error("debug session {session} is a part of a compound, which alone can start it again")]
    PartAlone {
        /// Which one.
        session: SessionId,
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
    /// The frame is from an earlier stop.
    #[error("frame {frame_id} is from an earlier stop")]
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
    /// The reference is from an earlier stop.
    #[error("variables reference {reference} is from an earlier stop")]
    StaleReference {
        /// What was asked for.
        reference: i64,
    },
    /// No container of variables ever had this reference.
    #[error("there is no variables reference {reference}")]
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
    /// The expression took too long.
    #[error("the expression did not end within {seconds} s and was interrupted")]
    Interrupted {
        /// The bound.
        seconds: u64,
    },
    /// An expression that took too long, and could not be interrupted.
    #[error("`{expression}` is still being evaluated, and the debugger does nothing else until it ends")]
    Evaluating {
        /// Which one.
        expression: String,
    },
    /// The adapter refused a request.
    #[error("the debug adapter refused `{command}`: {message}")]
    Refused {
        /// Which request.
        command: String,
        /// What it says.
        message: String,
    },
    /// What a crash left behind is to run.
    #[error("this is a core dump of a program that has ended; nothing in it can run")]
    CoreDump,
    /// The adapter cannot do it.
    #[error("the debug adapter {adapter} does not support {what}")]
    Unsupported {
        /// Which adapter.
        adapter: String,
        /// `memory reads`.
        what: &'static str,
    },
    /// A request that changes where a session stands; it has a verb of its own.
    #[error("`{command}` cannot be sent as a custom request")]
    OfVerb {
        /// The request.
        command: String,
    },
    /// A frame or a reference of another session than the one that was named.
    #[error("the frame or reference belongs to debug session {session}")]
    ForeignId {
        /// Whose it is.
        session: SessionId,
    },
    /// An id that another agent gave out, or an earlier run of this one.
    #[error("{what} is of another window, or of an earlier run of this one")]
    OfAnotherRun {
        /// `frame 3`.
        what: String,
    },
    /// The adapter tells no threads.
    #[error("the debugger reported no threads")]
    NoThreads,
    /// The program does not read from a terminal of ours.
    #[error("the program has no terminal to type into")]
    NoTerminal,
    /// What a start would give the program to read cannot reach it.
    #[error("{why}")]
    NoInput {
        /// `a program under gdb has no terminal to read from`.
        why: String,
        /// What to do instead.
        hint: String,
    },
    /// The program does not read what it was given.
    #[error("the program has not read its earlier input yet")]
    StdinFull,
    /// The adapter does not answer.
    #[error("the debug adapter did not respond to `{command}` within {seconds} s")]
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
    /// What it is, for programs.
    pub fn kind(&self) -> Kind {
        match self {
            Self::FileNotFound { .. } => Kind::FileNotFound,
            Self::LineOutsideFile { .. } => Kind::LineOutsideFile,
            Self::BadCondition { .. } => Kind::BadCondition,
            Self::BadHitCondition { .. } => Kind::BadHitCondition,
            Self::NoPlace { .. } => Kind::NoPlace,
            Self::NoSuchBreakpoint { .. } => Kind::NoSuchBreakpoint,
            Self::OthersBreakpoint { .. } => Kind::OthersBreakpoint,
            Self::BadConfiguration { .. } => Kind::BadConfiguration,
            Self::UnknownType { .. } => Kind::UnknownType,
            Self::AdapterMissing { .. } => Kind::AdapterMissing,
            Self::StartFailed { .. } => Kind::StartFailed,
            Self::Untrusted { .. } => Kind::Untrusted,
            Self::TooManySessions { .. } => Kind::TooManySessions,
            Self::NoSession => Kind::NoSession,
            Self::NoSuchSession { .. } => Kind::NoSuchSession,
            Self::SessionEnded { .. } => Kind::SessionEnded,
            Self::AdapterDied { .. } => Kind::AdapterDied,
            Self::NoSuchThread { .. } => Kind::NoSuchThread,
            Self::NotStopped { .. } => Kind::NotStopped,
            Self::Busy { .. } | Self::Evaluating { .. } => Kind::Busy,
            Self::StaleFrame { .. } => Kind::StaleFrame,
            Self::NoSuchFrame { .. } => Kind::NoSuchFrame,
            Self::StaleReference { .. } => Kind::StaleReference,
            Self::NoSuchReference { .. } => Kind::NoSuchReference,
            Self::EvaluationFailed { .. } | Self::Interrupted { .. } => Kind::EvaluationFailed,
            Self::Refused { .. } => Kind::AdapterRefused,
            Self::Unsupported { .. }
            | Self::CoreDump
            | Self::UsersSession { .. }
            | Self::PartAlone { .. } => Kind::Unsupported,
            Self::OfVerb { .. } => Kind::NotARequest,
            Self::ForeignId { .. } | Self::OfAnotherRun { .. } => Kind::ForeignId,
            Self::NoThreads => Kind::NoThreads,
            Self::NoTerminal | Self::NoInput { .. } => Kind::NoTerminal,
            Self::StdinFull => Kind::StdinFull,
            Self::NoAnswer { .. } => Kind::AdapterTimeout,
            Self::ShuttingDown => Kind::ShuttingDown,
        }
    }

    /// What to try next, in one sentence; `None` where that is a verb, which each toolset calls something else.
    pub fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::FileNotFound { .. } => "Give an absolute path, or one relative to the window's folder.",
            Self::LineOutsideFile { .. } => "Use a line of the file; lines start at 1.",
            Self::BadCondition { .. } => "Give an expression in the language of the program.",
            Self::BadHitCondition { .. } => {
                "Write a comparison with a number: `> 5`, `>= 5`, `< 5`, `<= 5`, `== 3`, `% 2 == 0`, or a plain number."
            }
            Self::NoPlace { .. } => "Use one that the debugger knows.",
            Self::OthersBreakpoint { .. } => {
                "Use it as it is, use another line, or remove it first if it is no longer needed."
            }
            Self::BadConfiguration { .. } => "Fix the configuration in .vscode/launch.json.",
            Self::UnknownType { .. } => "Use a configuration whose `type` is among the known ones.",
            Self::AdapterMissing { hint, .. } | Self::NoInput { hint, .. } => hint,
            Self::StartFailed { .. } => "Fix the configuration or the program and start again.",
            Self::Busy { .. } => "Wait for the other call, or cancel it.",
            Self::EvaluationFailed { .. } => {
                "Check the names in the expression against the frame's variables."
            }
            Self::Interrupted { .. } => {
                "The program is still at the same place; what the expression changed stays changed."
            }
            Self::Evaluating { .. } => "Wait for it, or end the program.",
            Self::Unsupported { .. } => "Use another way, or another debug adapter that can.",
            Self::CoreDump => "Look at its frames and variables, or start the program to run it.",
            Self::UsersSession { .. } => "Ask the user, or start a session of your own.",
            Self::PartAlone { .. } => "Stop it, and start the compound by its name.",
            Self::ForeignId { .. } => "Omit the session, or name that one.",
            Self::OfAnotherRun { .. } => "Use an ID from this window's latest answers.",
            Self::NoThreads => "Wait until the program runs, or stop it.",
            Self::NoTerminal => "Start it with `console` set to integratedTerminal.",
            Self::StdinFull => "Let the program run until it reads.",
            Self::ShuttingDown => "The call may have taken effect: check before you repeat it.",
            Self::NoSuchBreakpoint { .. }
            | Self::Untrusted { .. }
            | Self::TooManySessions { .. }
            | Self::NoSession
            | Self::SessionEnded { .. }
            | Self::NoSuchSession { .. }
            | Self::AdapterDied { .. }
            | Self::NoSuchThread { .. }
            | Self::NotStopped { .. }
            | Self::StaleFrame { .. }
            | Self::NoSuchFrame { .. }
            | Self::StaleReference { .. }
            | Self::NoSuchReference { .. }
            | Self::Refused { .. }
            | Self::OfVerb { .. }
            | Self::NoAnswer { .. } => return None,
        })
    }
}
