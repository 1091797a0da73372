//! CORE: what the verbs of [`crate::Debugger`] take and give: plain data, 1-based lines and columns, our own
//! ids.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::control::Stdin;
use self::triggers::TriggerBreakpoint;

pub mod control;
pub mod triggers;

/// The handle of a debug session; unique over all agents, so that it names a window too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub String);

impl SessionId {
    /// The handle as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An id of ours that a client gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Of a frame.
    Frame(i64),
    /// Of what contains variables.
    Reference(i64),
}

/// A wish for a breakpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetBreakpoint {
    /// Absolute and canonical.
    pub path: PathBuf,
    /// 1-based.
    pub line: u32,
    /// 1-based.
    pub column: Option<u32>,
    /// Stop only when this expression is true.
    pub condition: Option<String>,
    /// Stop only at some hits: `> 5`, `== 3`, `% 2 == 0`.
    pub hit_condition: Option<String>,
    /// Log this instead of stopping; `{expression}` is replaced by its value.
    pub log_message: Option<String>,
    /// On whose behalf, in the caller's own words; `None` for the user of the editor.
    pub owner: Option<String>,
}

/// Which breakpoints to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoveBreakpoint {
    /// The one with this id.
    Id(i64),
    /// All of a line.
    Location {
        /// Absolute and canonical.
        path: PathBuf,
        /// 1-based; the line it was asked for, or the one it moved to.
        line: u32,
        /// Only those that stop this client's programs.
        owner: Option<String>,
    },
    /// All that were set first on behalf of this owner.
    Of(Option<String>),
    /// All there are.
    All,
}

/// A breakpoint as it stands now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakpoint {
    /// Ours: stable, and no other agent's.
    pub id: i64,
    /// True once a running session has bound it to code.
    pub verified: bool,
    /// Absolute.
    pub path: PathBuf,
    /// The line that was asked for.
    pub line: u32,
    /// The column that was asked for.
    pub column: Option<u32>,
    /// As asked for.
    pub condition: Option<String>,
    /// As asked for.
    pub hit_condition: Option<String>,
    /// As asked for.
    pub log_message: Option<String>,
    /// What is to be known about it: why it is not verified, where it moved.
    pub message: Option<String>,
    /// The line it was bound to, when a session told one.
    pub actual_line: Option<u32>,
    /// Who set it first; `None` for the user of the editor.
    pub owner: Option<String>,
    /// The session's debugger cannot have it as it is, whatever code it loads later (`reason` `failed` of DAP's
    /// `Breakpoint`, or a capability that it lacks): `message` says why.
    pub is_refused: bool,
}

/// What to start or attach to.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The configuration of launch.json, with everything resolved: no `${...}` is left.
    pub configuration: Map<String, Value>,
    /// Its name.
    pub name: String,
    /// The folder whose launch.json has it; only an editor needs to know.
    pub folder: Option<PathBuf>,
    /// The editor looks the configuration up by its name, and completes it.
    pub left_to_editor: bool,
    /// Run without debugging: no breakpoint is hit, the wait is for the end.
    pub no_debug: bool,
    /// On whose behalf, in the caller's own words; sessions tell it.
    pub owner: Option<String>,
    /// What the program reads on its standard input, when it runs in a terminal of ours.
    pub stdin: Option<Stdin>,
    /// End it when no verb was about it for so long, unless the window has a limit of its own; 30 minutes when not given.
    pub idle_limit: Option<Duration>,
}

/// How a stopped thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// To the next stop.
    Continue,
    /// To the next line, over calls.
    StepOver,
    /// To the next line, into calls.
    StepInto,
    /// To the caller.
    StepOut,
    /// Back to the line before.
    StepBack,
    /// Back to the stop before.
    ReverseContinue,
    /// To the beginning of a frame's function.
    RestartFrame {
        /// Ours, of the latest stop.
        frame_id: i64,
    },
    /// To another place, without running what lies between.
    Goto {
        /// One of the targets that `gotoTargets` told.
        target_id: i64,
    },
}

/// How a wait ended.
#[derive(Clone, Debug)]
pub enum Waited {
    /// The program stopped. It can be in another session than the one resumed: a child process.
    Stopped(Box<StopEvent>),
    /// The session ended.
    Completed(Box<Completed>),
    /// The program still runs; waiting again (continue) picks up its next stop.
    TimedOut {
        /// The session that runs.
        session: SessionId,
        /// What it printed meanwhile.
        output: OutputTail,
        /// It reads its standard input, and nobody writes there.
        waits_for_input: bool,
    },
    /// The client or the user ended the wait; the program still runs.
    Interrupted {
        /// The session that runs.
        session: SessionId,
        /// What it printed meanwhile.
        output: OutputTail,
    },
}

impl Waited {
    /// Whose program it is.
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Stopped(stop) => &stop.session,
            Self::Completed(completed) => &completed.session,
            Self::TimedOut { session, .. } | Self::Interrupted { session, .. } => session,
        }
    }
}

/// The end of a session.
#[derive(Clone, Debug)]
pub struct Completed {
    /// Which one.
    pub session: SessionId,
    /// Exit code of the program, when the adapter told it.
    pub exit_code: Option<i64>,
    /// What it printed since the last answer.
    pub output: OutputTail,
    /// Breakpoints that were set and never hit in it (log points do not count).
    pub never_hit: Vec<Breakpoint>,
    /// Ids of those among them of which an earlier end told the same, in files that this program is not known to use:
    /// left from other work, as likely as not.
    pub told_before: BTreeSet<i64>,
    /// The same for those on functions.
    pub never_called: Vec<TriggerBreakpoint>,
    /// How it ended when that is not plain: stopped by a call, detached.
    pub note: Option<String>,
}

/// The last of what a program printed; bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputTail {
    /// Text; log points and errors of the debugger are among it.
    pub text: String,
    /// Bytes printed before it that are not in it.
    pub omitted_bytes: u64,
}

impl OutputTail {
    /// True when nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.omitted_bytes == 0
    }
}

/// Why and where a program stopped, captured at that moment.
#[derive(Clone, Debug)]
pub struct StopEvent {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// The session; to be handed to the next call.
    pub session: SessionId,
    /// `breakpoint`, `step`, `exception`, `pause`, `entry`, ...
    pub reason: String,
    /// The adapter's id of the thread; 0 is one.
    pub thread_id: i64,
    /// Text for people.
    pub description: Option<String>,
    /// Of an exception: what it says.
    pub text: Option<String>,
    /// Whether all threads stopped.
    pub all_threads_stopped: Option<bool>,
    /// File of the top frame.
    pub source: Option<Source>,
    /// Line of the top frame.
    pub line: Option<i64>,
    /// Column of the top frame.
    pub column: Option<i64>,
    /// Innermost first; bounded, see `total_frames`.
    pub call_stack: Vec<Frame>,
    /// How many frames there are, when the adapter told it.
    pub total_frames: Option<i64>,
    /// Variables of the first scope of the top frame.
    pub top_frame_variables: Option<ScopeVariables>,
    /// The frame of the program's own that called the library in which an exception, a signal or a pause stopped it.
    pub own: Option<OwnFrame>,
    /// Ours; `None` when no breakpoint was hit.
    pub hit_breakpoint_ids: Option<Vec<i64>>,
    /// What was printed since the last answer.
    pub output: OutputTail,
}

impl StopEvent {
    /// The frame that is meant where none is named: what the program itself was doing.
    pub fn meant_frame(&self) -> Option<i64> {
        let own = self.own.as_ref().map(|own| own.frame_id);
        own.or(self.call_stack.first().map(|top| top.frame_id))
    }
}

/// A frame of the program's own files, which is not where it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFrame {
    /// It is in the call stack.
    pub frame_id: i64,
    /// Its variables.
    pub variables: Option<ScopeVariables>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Full path.
    pub path: String,
    /// Base name.
    pub name: String,
}

/// A frame of a call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Ours; good until the program goes on. 0 of a thread that runs: nothing can be asked of such a frame.
    pub frame_id: i64,
    /// Name of the function.
    pub function_name: String,
    /// Full path; empty when there is no source.
    pub file_path: String,
    /// 1-based.
    pub line_number: i64,
    /// 1-based.
    pub column_number: i64,
    /// Address of its instruction, as a token of the adapter.
    pub instruction_pointer: Option<String>,
}

/// The variables of one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeVariables {
    /// Name of the scope.
    pub scope_name: String,
    /// Bounded to [`MAX_TOP_VARIABLES`].
    pub variables: Vec<Variable>,
    /// How many more there are.
    pub omitted: usize,
}

/// Variables told with a stop; the rest is a `variables` call away.
pub const MAX_TOP_VARIABLES: usize = 50;

/// A scope of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// `Locals`, `Globals`, ...
    pub name: String,
    /// Ours; 0 when there is nothing in it.
    pub variables_reference: i64,
    /// Fetching its variables may take long.
    pub expensive: bool,
    /// How many named ones there are, when told.
    pub named_variables: Option<i64>,
    /// How many indexed ones there are, when told.
    pub indexed_variables: Option<i64>,
}

/// A variable, or a child of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value as text; cut at [`MAX_VALUE_LEN`].
    pub value: String,
    /// Its type, when told.
    pub type_name: Option<String>,
    /// Ours; 0 when it has no children.
    pub variables_reference: i64,
    /// An expression that gives it.
    pub evaluate_name: Option<String>,
    /// Its address, as a token of the adapter.
    pub memory_reference: Option<String>,
    /// How many named children it has, when told.
    pub named_variables: Option<i64>,
    /// How many indexed children it has, when told.
    pub indexed_variables: Option<i64>,
}

/// Longest value of a variable told with a stop, in bytes: most are looked at by nobody.
pub const MAX_TOP_VALUE_LEN: usize = 200;

/// Longest value of a variable that is told, in bytes; `evaluate` gives the whole.
pub const MAX_VALUE_LEN: usize = 1024;

/// Which children of a reference to fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    /// First one, from 0.
    pub start: Option<usize>,
    /// How many; at most [`MAX_VARIABLES`].
    pub count: Option<usize>,
}

/// Most variables in one answer.
pub const MAX_VARIABLES: usize = 500;

/// A page of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variables {
    /// In the adapter's order.
    pub variables: Vec<Variable>,
    /// How many more there are behind this page, as far as known.
    pub omitted: usize,
}

/// An expression to evaluate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluate {
    /// In the language of the program.
    pub expression: String,
    /// Ours, of the latest stop.
    pub frame_id: i64,
    /// `watch` (default), `repl`, `hover` or `clipboard`.
    pub context: Option<String>,
}

/// What an expression gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluated {
    /// As text.
    pub result: String,
    /// Its type, when told.
    pub type_name: Option<String>,
    /// Ours; 0 when it has no children.
    pub variables_reference: i64,
    /// Where it lies in memory, when told.
    pub memory_reference: Option<String>,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The adapter is being started.
    Starting,
    /// Breakpoints are being handed over.
    Configuring,
    /// The program runs.
    Running,
    /// A thread is stopped.
    Stopped,
    /// It was asked to end.
    Terminating,
    /// It ended.
    Terminated,
}

/// A session, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its handle.
    pub id: SessionId,
    /// Name of its configuration.
    pub name: String,
    /// Where it stands.
    pub phase: Phase,
    /// The session whose program started this one's.
    pub parent: Option<SessionId>,
    /// The user started it in the editor, or its parent.
    pub by_user: bool,
}
