//! CORE: what the verbs about running sessions take and give: how to go on, requests of any kind, state, output.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::types::{Frame, OutputTail, Phase, Resume, SessionId, StopEvent, Waited};

/// How a stopped thread is to go on, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeWish {
    /// The one that stopped or started last, when not given.
    pub session: Option<SessionId>,
    /// The one that stopped last, when not given.
    pub thread_id: Option<i64>,
    /// In which way.
    pub how: Resume,
    /// How far a step goes; a step of the source when not given.
    pub granularity: Option<Granularity>,
    /// Leave the other threads stopped.
    pub single_thread: bool,
    /// Of a step into calls: one of the targets that `stepInTargets` told.
    pub target_id: Option<i64>,
}

impl ResumeWish {
    /// With nothing special.
    pub fn new(session: Option<SessionId>, thread_id: Option<i64>, how: Resume) -> Self {
        Self { session, thread_id, how, granularity: None, single_thread: false, target_id: None }
    }
}

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// A statement.
    Statement,
    /// A line.
    Line,
    /// An instruction.
    Instruction,
}

impl Granularity {
    /// As the protocol has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Line => "line",
            Self::Instruction => "instruction",
        }
    }
}

/// Any request of the protocol. Ids of frames and references of variables in it, and in its answer, are ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When not given: that of the ids in the arguments, else the one that stopped or started last.
    pub session: Option<SessionId>,
    /// `readMemory`, `modules`, ..., or one of the adapter's own.
    pub command: String,
    /// As the protocol has them.
    pub arguments: Map<String, Value>,
    /// What the adapter has to be able to do.
    pub gate: Option<Gate>,
    /// How long the adapter may take; the default when not given.
    pub timeout: Option<Duration>,
}

/// A capability that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// `supportsReadMemoryRequest`.
    pub capability: &'static str,
    /// For people: `memory reads`.
    pub what: &'static str,
}

/// Capabilities of the requests that need one.
pub mod gates {
    use super::Gate;

    /// `disassemble`.
    pub const DISASSEMBLE: Gate = Gate { capability: "supportsDisassembleRequest", what: "disassembly" };
    /// `readMemory`.
    pub const READ_MEMORY: Gate = Gate { capability: "supportsReadMemoryRequest", what: "memory reads" };
    /// `writeMemory`.
    pub const WRITE_MEMORY: Gate = Gate { capability: "supportsWriteMemoryRequest", what: "memory writes" };
    /// `modules`.
    pub const MODULES: Gate = Gate { capability: "supportsModulesRequest", what: "module listings" };
    /// `loadedSources`.
    pub const LOADED_SOURCES: Gate =
        Gate { capability: "supportsLoadedSourcesRequest", what: "loaded source listings" };
    /// `setVariable`.
    pub const SET_VARIABLE: Gate = Gate { capability: "supportsSetVariable", what: "setting variables" };
    /// `setExpression`.
    pub const SET_EXPRESSION: Gate =
        Gate { capability: "supportsSetExpression", what: "setting expressions" };
    /// `restartFrame`.
    pub const RESTART_FRAME: Gate = Gate { capability: "supportsRestartFrame", what: "restarting frames" };
    /// `stepBack`, `reverseContinue`.
    pub const STEP_BACK: Gate = Gate { capability: "supportsStepBack", what: "stepping back" };
    /// `gotoTargets`, `goto`.
    pub const GOTO: Gate = Gate { capability: "supportsGotoTargetsRequest", what: "jumps" };
    /// `stepInTargets`.
    pub const STEP_IN_TARGETS: Gate =
        Gate { capability: "supportsStepInTargetsRequest", what: "step-in targets" };
    /// `completions`.
    pub const COMPLETIONS: Gate = Gate { capability: "supportsCompletionsRequest", what: "completions" };
    /// `exceptionInfo`.
    pub const EXCEPTION_INFO: Gate =
        Gate { capability: "supportsExceptionInfoRequest", what: "exception details" };
    /// `dataBreakpointInfo`.
    pub const DATA_BREAKPOINTS: Gate =
        Gate { capability: "supportsDataBreakpoints", what: "data breakpoints" };
    /// A step by instructions or statements.
    pub const GRANULARITY: Gate =
        Gate { capability: "supportsSteppingGranularity", what: "step granularity" };
    /// Going on with one thread alone.
    pub const SINGLE_THREAD: Gate = Gate {
        capability: "supportsSingleThreadExecutionRequests",
        what: "running one thread while the others stay stopped",
    };
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The adapter's; 0 is one.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Whether it is stopped.
    pub is_stopped: bool,
}

/// A part of a call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackTrace {
    /// The thread it is of.
    pub thread_id: i64,
    /// The thread runs: this is where it was when the adapter was asked, and its frames have no ids.
    pub is_running: bool,
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// How many frames there are, when the adapter told it.
    pub total: Option<i64>,
}

/// A pause that was sent, and that no stop has followed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PendingPause {
    /// The adapter has not answered.
    Sent,
    /// It has, and the program has not stopped.
    Taken,
}

/// What a program does that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Its session.
    pub session: SessionId,
    /// What is known of it.
    pub doing: Doing,
    /// What it printed since the last answer.
    pub output: OutputTail,
}

/// See [`Activity`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Where its threads are, and how many threads more there are.
    Stacks {
        /// The first ones.
        threads: Vec<(Thread, Vec<Frame>)>,
        /// How many are not among them.
        n_more: usize,
    },
    /// Nothing: it waits in its event loop.
    Idle,
    /// It is inside native code, which lets no debugger in.
    Native,
}

/// What became of a pause.
#[derive(Clone, Debug)]
pub enum Paused {
    /// The program stopped, or the wait ended otherwise.
    Waited(Waited),
    /// Not yet, and it may take as long as it pleases: the pause stands, and this is what the program does meanwhile.
    Pending(Activity),
}

/// What the user of an editor did to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAct {
    /// Let it run.
    Continued,
    /// Let it take a step, or jump.
    Stepped,
    /// Ended it.
    Stopped,
    /// Ended it, and started it once more.
    Restarted,
}

/// Something about a client's program of which the client has not heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The session of the program.
    pub session: SessionId,
    /// Name of its configuration.
    pub name: String,
    /// What there is to tell.
    pub what: What,
}

/// What there is to tell of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// What its user did last.
    Act(UserAct),
    /// That it is near a limit or was ended at one, in words that follow its name.
    Limit(String),
}

/// What sessions may take before they are ended, which is not limited when it is not given; and how long calls wait for
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How long nobody may use a session, whatever its toolset allows.
    pub idle: Option<Duration>,
    /// Memory of all processes of a session, in bytes.
    pub memory: Option<u64>,
    /// Processes of a session, its adapter's among them.
    pub processes: Option<u64>,
    /// How long an adapter may take to answer about a stopped program; 10 s when not given.
    pub answer: Option<Duration>,
    /// How long an expression may run, where a call does not say; 30 s when not given.
    pub expression: Option<Duration>,
}

/// Where a session stands; also one that has ended, as long as it is remembered.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its handle.
    pub id: SessionId,
    /// Name of its configuration.
    pub name: String,
    /// The session whose program started this one's.
    pub parent: Option<SessionId>,
    /// On whose behalf it, or its parent, was started; nobody's when the user started it.
    pub owner: Option<String>,
    /// Where it stands.
    pub phase: Phase,
    /// Name of the adapter.
    pub adapter: String,
    /// Whether it attached to a running program.
    pub is_attached: bool,
    /// Whether the adapter said that it has started the program, or come to it.
    pub is_started: bool,
    /// What is debugged, when the configuration tells it.
    pub program: Option<String>,
    /// Where it runs, when the configuration tells it.
    pub cwd: Option<String>,
    /// Process id of the program, when told.
    pub pid: Option<i64>,
    /// The thread that stopped or was resumed last.
    pub thread_id: i64,
    /// The adapter tells the stacks of threads that run.
    pub tells_running_stacks: bool,
    /// The adapter takes a pause while the program idles, and none while it is in native code.
    pub takes_idle_pauses: bool,
    /// A pause that no stop has followed yet.
    pub pending_pause: Option<PendingPause>,
    /// The latest stop while it lasts; `output` of it is empty.
    pub last_stop: Option<Box<StopEvent>>,
    /// What the adapter can do, by the protocol's names.
    pub capabilities: Map<String, Value>,
    /// `configurationDone` has not been sent yet, and the adapter wants it.
    pub needs_configuration_done: bool,
    /// Whether the program has a terminal of ours, or had one: what it reads is written there.
    pub has_terminal: bool,
    /// Whether more was printed than is kept.
    pub output_truncated: bool,
    /// Exit code of the program, when told.
    pub exit_code: Option<i64>,
    /// How it ended, in a sentence.
    pub end: Option<String>,
    /// Whether it ended because its adapter did.
    pub adapter_died: bool,
    /// When it began.
    pub started_at: Timestamp,
    /// When a verb was last about it.
    pub last_used_at: Timestamp,
}

impl Status {
    /// What `end` is when there is nothing to be said about it.
    pub const PLAIN_END: &str = "the program ended";

    /// One for tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn of(id: &str, phase: Phase) -> Self {
        Self {
            id: SessionId(id.to_owned()),
            name: format!("{id}.py"),
            parent: None,
            owner: None,
            phase,
            adapter: "debugpy".to_owned(),
            is_attached: false,
            is_started: true,
            program: None,
            cwd: None,
            pid: None,
            thread_id: 1,
            tells_running_stacks: false,
            takes_idle_pauses: false,
            pending_pause: None,
            last_stop: None,
            capabilities: Map::new(),
            needs_configuration_done: false,
            has_terminal: false,
            output_truncated: false,
            exit_code: None,
            end: None,
            adapter_died: false,
            started_at: Timestamp::UNIX_EPOCH,
            last_used_at: Timestamp::UNIX_EPOCH,
        }
    }
}

/// Where the program, or the debugger, printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// The program's standard output, or its terminal.
    Stdout,
    /// The program's standard error.
    Stderr,
    /// The debugger itself, log points among it.
    Console,
}

impl Category {
    /// `stdout`, `stderr`, `console`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Console => "console",
        }
    }
}

/// Which part of what was printed to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputWish {
    /// The one that stopped or started last, when not given.
    pub session: Option<SessionId>,
    /// What comes behind this cursor of an earlier page; 0 is the beginning. Without it: the end of what there is.
    pub since: Option<u64>,
    /// All when empty.
    pub categories: Vec<Category>,
    /// At most so many bytes of text.
    pub max_bytes: usize,
}

/// A part of what was printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputPage {
    /// In the order in which it was printed.
    pub entries: Vec<OutputEntry>,
    /// The cursor behind the page.
    pub next: u64,
    /// Whether there is more behind the page now.
    pub has_more: bool,
    /// Bytes between the cursor asked for (the beginning, without one) and the page that are not in it: they fell
    /// out of the ring, or lie before the end that was asked for.
    pub dropped_bytes: u64,
}

/// Text of one category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputEntry {
    /// Where it was printed.
    pub category: Category,
    /// The text, with plain line ends.
    pub text: String,
}

/// Something for the program to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stdin {
    /// The text; line ends included.
    pub text: String,
    /// No more will come.
    pub is_last: bool,
}
