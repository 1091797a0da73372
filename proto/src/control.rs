//! Agent and command line <-> coordinator: JSON over HTTP under `/v1`.
//!
//! | route | body -> answer |
//! |---|---|
//! | `POST /v1/hello` | [`crate::discovery::HelloCredential`] as bearer -> [`crate::discovery::HelloAnswer`] |
//! | `GET /v1/ping` | -> [`Pong`] |
//! | `POST /v1/windows/{id}/register` | [`Register`] -> [`Registered`] |
//! | `POST /v1/windows/{id}/heartbeat` | [`Heartbeat`] -> [`Registered`] |
//! | `POST /v1/windows/{id}/leave` | [`Leave`] -> `{}` |
//! | `GET /v1/windows/{id}/events?incarnation=N` | -> newline-delimited [`Notice`]s; its end means that one of the two died; to be opened within 2 s of the registration |
//! | `POST /v1/windows/{id}/take`, `start`, `stop`, `restart` | -> [`Outcome`] |
//! | `PATCH /v1/windows/{id}` | [`WindowSettings`] -> [`Outcome`] |
//! | `GET /v1/settings`, `PATCH /v1/settings` | [`Settings`] / [`SettingsChange`] -> [`Settings`] |
//! | `GET /v1/status` | -> [`Status`] |
//! | `POST /v1/token/rotate` | -> [`Rotated`] |
//! | `POST /v1/token/heard` | [`TokenHeard`] -> `{}` |
//! | `POST /v1/port` | [`PortChange`] -> [`PortChanged`] |
//! | `GET /v1/look` | -> [`crate::page::Look`] |
//! | `POST /v1/page` | -> [`PageLink`] |
//! | `POST /v1/replace` | [`Replace`] -> [`Replaced`]; the coordinator hands its lock and listeners over, then ends |
//! | `POST /v1/shutdown` | -> `{}`; the coordinator answers, then ends |
//!
//! In a path, `{id}` of take, start, stop, restart and PATCH may be a unique prefix, a name or a folder
//! (percent-encoded). Errors are [`Failure`] with a 4xx or 5xx status.
//! Unknown fields are ignored and new ones are optional: a peer of the previous version keeps working.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{InstanceId, Term, WindowId};
pub use crate::settings::{AiHandover, LogFormat, Routing, Settings, SettingsChange};

/// How often an agent sends a heartbeat, in milliseconds (R10).
pub const HEARTBEAT_MS: u64 = 1_500;
/// A window without a heartbeat for this long is suspect: shown as not responsive, nothing else (R10).
pub const SUSPECT_MS: u64 = 3_000;
/// An agent runs no call of its term this long after its last acknowledged heartbeat (R10).
pub const FENCE_MS: u64 = 4_000;
/// A window without a heartbeat for this long is evicted (R10); also the lease that a new coordinator honours (R9).
pub const LEASE_MS: u64 = 6_000;
/// How long the live place is held for a window that vanished (R6).
pub const HOLD_MS: u64 = 5_000;
/// How long calls of an old term may run on after a handover (R4).
pub const DRAIN_MS: u64 = 30_000;
/// How long a standby window must be focused to become live, with `followFocus` (R12).
pub const FOLLOW_FOCUS_MS: u64 = 1_000;

/// What a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WindowKind {
    /// A VS Code window.
    Vscode,
    /// A window on a folder without an editor.
    Headless,
}

/// Where a window stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WindowState {
    /// The window that `/mcp` reaches.
    Live,
    /// Would start, but yields to the live one.
    Standby,
    /// Must not start by itself.
    Off,
}

/// An MCP debug session of a window, as far as routing needs it (R11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DebugSession {
    /// The handle that tools take as `session_id`.
    pub id: String,
    /// Name of the configuration.
    pub name: String,
    /// The user started it: it is there for clients to look at, and holds no place (R11).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_user: bool,
}

/// A window announces itself with everything a coordinator needs to know about it; repeated after every
/// reconnection, so that a new coordinator needs nothing but this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Register {
    /// Control protocol of the agent.
    pub protocol: u32,
    /// Version of the agent's program.
    pub version: String,
    /// Name for people; not unique.
    pub name: String,
    /// VS Code or headless.
    pub kind: WindowKind,
    /// Absolute folders of the window.
    pub folders: Vec<String>,
    /// The root of the git tree that each of `folders` is in, in their order; an empty text where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<String>,
    /// The window's auto-start setting.
    pub auto_start: bool,
    /// Process id of the agent.
    pub pid: u32,
    /// Start time of that process, as in [`crate::discovery::Discovery::pid_start`].
    #[serde(default)]
    pub pid_start: u64,
    /// Loopback port on which the agent serves MCP; 1024 or higher. 0 when it serves on `socket`.
    pub port: u16,
    /// Since protocol 2: the Unix socket on which the agent serves MCP, as its name in the folder `sockets` of the state
    /// folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Grows with every start of an agent of this window (milliseconds since the epoch will do); messages of a
    /// lower one are late and are ignored.
    pub incarnation: u64,
    /// Highest term the agent has seen; `[generation, 0]` when it was with a coordinator of that generation and has seen
    /// no term of it. None of all: it was with no coordinator yet, so that nobody can be missed for its sake.
    #[serde(default)]
    pub highest_term: Option<Term>,
    /// Term the agent holds, when it is live in its own eyes.
    #[serde(default)]
    pub held_term: Option<Term>,
    /// The agent lost touch with its coordinator long ago: another window may have been granted a later term than
    /// `held_term` without its knowing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fenced: bool,
    /// True when the user stopped this window (R5): it stays off over a restart of the coordinator.
    #[serde(default)]
    pub stopped: bool,
    /// Another window has been live since then: that this one is stopped is no reason for nobody to be live.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live_since: bool,
    /// Running MCP debug sessions.
    #[serde(default)]
    pub debug_sessions: Vec<DebugSession>,
    /// How long ago the window was focused, in milliseconds; 0 while it is.
    #[serde(default)]
    pub focused_ms_ago: Option<u64>,
    /// Highest epoch of client tokens the agent has heard of: a coordinator that lost its state must not take those
    /// again that were revoked.
    #[serde(default)]
    pub client_epoch: u32,
    /// Breakpoints that the window's agent before this one left, and that are set again. None of an agent that does not
    /// keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakpoints_kept: Option<u32>,
}

/// The coordinator's view of the window, as answer to [`Register`] and [`Heartbeat`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// Run of the coordinator.
    pub instance: InstanceId,
    /// Its generation.
    pub generation: u64,
    /// Where the window stands.
    pub state: WindowState,
    /// The term it holds when it is live.
    pub term: Option<Term>,
    /// See [`Notice::State`].
    #[serde(default)]
    pub awaited: bool,
    /// Settings in force.
    pub settings: Settings,
    /// The port of the stable URL: another one than that of this connection, after a change.
    #[serde(default)]
    pub port: Option<u16>,
    /// Epoch of the client tokens that are taken.
    #[serde(default)]
    pub client_epoch: u32,
}

/// Every [`HEARTBEAT_MS`], and at once when something in it changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Heartbeat {
    /// As registered.
    pub incarnation: u64,
    /// Grows with every heartbeat of an incarnation; a late one changes nothing.
    pub seq: u64,
    /// Whether the window is focused now.
    #[serde(default)]
    pub focused: bool,
    /// Running MCP debug sessions.
    #[serde(default)]
    pub debug_sessions: Vec<DebugSession>,
    /// Folders, when they changed.
    #[serde(default)]
    pub folders: Option<Vec<String>>,
    /// Name, when it can change.
    #[serde(default)]
    pub name: Option<String>,
    /// What became of the programs that the agent ran for its tools, over its whole life.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tallies: Vec<Tally>,
    /// Where the window's breakpoints stand, as people write it: `main.py:12`; the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakpoints: Vec<String>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_breakpoints: u32,
}

/// Asks for a profile, of a window's agent or of the coordinator itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileWish {
    /// For how long; at most [`MAX_PROFILE_S`].
    pub seconds: u64,
    /// An id, the beginning of one, a name, or a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// Longest time for which a profile is taken, in seconds.
pub const MAX_PROFILE_S: u64 = 300;

/// Where a process spent its processor time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// For how long it was looked at.
    pub seconds: u64,
    /// How often it was found to run; none when it did nothing.
    pub n_samples: u64,
    /// A flame graph; empty without samples.
    pub svg: String,
    /// The same for pprof, as its messages are encoded; empty without samples.
    pub pprof: Vec<u8>,
}

/// Starts a record of calls, or ends the one that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordWish {
    /// Name of the record that is to start: letters, digits, `-`, `_` and `.`, at most 64. Without one the record that
    /// runs ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

/// A record of calls, see [`crate::record`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// When it began, in milliseconds since 1970.
    pub since_ms: u64,
    /// Calls in it.
    pub n_calls: u64,
    /// Its size.
    pub n_bytes: u64,
    /// Calls that are not in it because they came faster than they could be written.
    pub n_left_out: u64,
    /// Why it ended by itself; none while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// The record that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// None, or the last one, which may have ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Recorded>,
}

/// Looks at the raw event streams, and switches their keeping on or off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RawWish {
    /// Whether events are to be kept from now on; absent: as before. Off forgets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<bool>,
    /// Only events of a higher number.
    #[serde(default)]
    pub after: u64,
}

/// The last events that went to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RawLook {
    /// Whether events are being kept.
    pub on: bool,
    /// How many there have been since; the oldest are forgotten.
    pub n_all: u64,
    /// Those that are wanted, oldest first.
    pub events: Vec<RawEvent>,
}

/// An event of a stream of server-sent events, as it went to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RawEvent {
    /// From 1, over all streams.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Which stream it went out on.
    pub stream: u64,
    /// What the client calls itself.
    pub client: String,
    /// Its lines, without the empty one at the end.
    pub text: String,
}

/// Most [`Heartbeat::tallies`].
pub const MAX_TALLIES: usize = 64;
/// Most [`Heartbeat::breakpoints`].
pub const MAX_BREAKPOINTS: usize = 16;

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What became of the programs of one name that an agent ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// What they are.
    pub kind: ProgramKind,
    /// The name in the table of adapters or servers; `other` when it is longer than 64 letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// How many were started.
    pub started: u64,
    /// How many of them ended though nobody asked for it.
    pub died: u64,
    /// How many run.
    pub running: u64,
}

/// What an agent runs for its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramKind {
    /// A debug adapter.
    Adapter,
    /// A language server.
    Server,
}

impl Tally {
    /// Whether a program may be told by this name.
    pub fn is_name(name: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
    }
}

/// A window ends or reloads on purpose. The place of a live one is held all the same (R6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leave {
    /// As registered.
    pub incarnation: u64,
}

/// One line of a window's event stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// First line, and after every change: where this window stands and who is live.
    State {
        /// Where this window stands.
        state: WindowState,
        /// The term it holds when it is live; granted by this notice.
        term: Option<Term>,
        /// The live window.
        live: Option<WindowRef>,
        /// Why, in a few words for a tooltip.
        why: String,
        /// It is not live yet, and the place is kept for it until others have spoken (R9): it goes on claiming what it
        /// held.
        #[serde(default)]
        awaited: bool,
    },
    /// Settings changed.
    Settings {
        /// Settings in force.
        settings: Box<Settings>,
    },
    /// R8 was switched from elsewhere: the agent registers with it from now on.
    AutoStart {
        /// On or off.
        auto_start: bool,
    },
    /// The user restarts this window (R7): the agent ends its sessions and starts anew.
    Restart,
    /// The user stopped this window (R5): waits of running calls end as `interrupted`.
    Stop,
    /// An agent with a higher incarnation took this window's place; this one must end.
    Superseded,
    /// The user ended the coordinator: the agent starts no successor and waits until somebody else does.
    Down,
    /// An AI client asks to make this window live (`aiHandover`: ask).
    AskHandover {
        /// To be repeated when the user agrees: `POST /v1/windows/{id}/take`.
        client: String,
    },
    /// Keeps the stream alive.
    Tick,
}

/// A window, named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowRef {
    /// Its id.
    pub id: WindowId,
    /// Its name.
    pub name: String,
}

/// Answer to a command of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The window it was done to.
    pub window: WindowRef,
    /// Where it stands now.
    pub state: WindowState,
    /// Its term when it is live.
    pub term: Option<Term>,
}

/// What can be changed of one window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowSettings {
    /// R8.
    #[serde(default)]
    pub auto_start: Option<bool>,
}

/// `baton status --json` while the coordinator runs. Scripts depend on the names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Always true in an answer; false is what the command line prints when there is none.
    pub running: bool,
    /// Process id of the coordinator.
    pub pid: u32,
    /// Version of its program.
    pub version: String,
    /// Its generation.
    pub generation: u64,
    /// The URL for clients.
    pub url: String,
    /// Its port.
    pub port: u16,
    /// The live window.
    pub live: Option<WindowId>,
    /// Its term.
    pub term: Option<Term>,
    /// The window whose place is held (R6, R9).
    pub awaiting: Option<WindowId>,
    /// All windows, ordered by id.
    pub windows: Vec<WindowStatus>,
    /// What a person should know and do something about, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One window of [`Status`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowStatus {
    /// Its id.
    pub id: WindowId,
    /// Its name.
    pub name: String,
    /// Its absolute folders.
    pub folders: Vec<String>,
    /// VS Code or headless.
    pub kind: WindowKind,
    /// Where it stands.
    pub state: WindowState,
    /// False while it is suspect (R10).
    pub responsive: bool,
    /// Its auto-start setting.
    pub auto_start: bool,
    /// Process id of its agent.
    pub pid: u32,
    /// Ids of its MCP debug sessions.
    pub debug_sessions: Vec<String>,
    /// When it was focused last, RFC 3339 in UTC; null when never.
    pub last_focus: Option<String>,
}

/// Answer to `GET /v1/ping`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pong {
    /// Run of the coordinator.
    pub instance: InstanceId,
}

/// Answer to `POST /v1/token/rotate`: the new epoch; the token itself is derived by the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rotated {
    /// See [`crate::discovery::Role::Client`].
    pub epoch: u32,
}

/// Another user of this machine showed the client token to a process of ours: it is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenHeard {
    /// That user.
    pub uid: u32,
    /// Rotations of the token that was shown; one that is no longer in force need not be revoked.
    pub epoch: u32,
}

/// The user moves the coordinator to another port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortChange {
    /// 1024 or higher.
    pub port: u16,
}

/// The coordinator listens on the new port; the old one answers for one more minute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortChanged {
    /// The new URL.
    pub url: String,
}

/// The page of this coordinator, for a browser on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageLink {
    /// Where it is; good for one use within a minute.
    pub url: String,
}

/// A coordinator of another version is to follow this one, on the same listeners.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replace {
    /// The program of the successor, as an absolute path.
    pub program: String,
}

/// The successor answers; this coordinator finishes the calls it has and ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replaced {
    /// The port of both.
    pub port: u16,
}

/// The answer to what has nothing to answer: `{}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// Every error of `/v1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Stable, for programs: `unknown_window`, `ambiguous_window`, `stale_incarnation`, ...
    pub code: String,
    /// What went wrong, in one sentence for people.
    pub message: String,
    /// What to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The windows it could have been, when the name was ambiguous.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<WindowRef>,
}
