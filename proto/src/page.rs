//! Coordinator -> its page and `baton top`: what there is to see, as JSON.
//!
//! The page gets [`Overview`] with each change, and [`Call`]s as they come and end, as server-sent events `overview`
//! and `calls`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::{DebugSession, Tally, WindowKind, WindowState};
use crate::ids::{InstanceId, WindowId};

/// All that there is to see at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    /// Everything but the calls.
    pub overview: Overview,
    /// The calls that run, and the last hundred, in the order of their last change.
    pub calls: Vec<Call>,
}

/// Everything but the calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// This run of the coordinator.
    pub instance: InstanceId,
    /// Version of its program.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// The URL for clients.
    pub url: String,
    /// When it started, in milliseconds since 1970.
    pub since_ms: u64,
    /// The live window.
    pub live: Option<WindowId>,
    /// The window whose place is held (R6, R9).
    pub awaiting: Option<WindowId>,
    /// All windows, ordered by name.
    pub windows: Vec<WindowView>,
    /// What happened to them, the latest last.
    pub story: Vec<Happening>,
    /// Who has called since the coordinator started, the one that did so last first.
    pub clients: Vec<ClientView>,
}

/// A window, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowView {
    /// Its id.
    pub id: WindowId,
    /// Its name.
    pub name: String,
    /// VS Code or headless.
    pub kind: WindowKind,
    /// Its absolute folders.
    pub folders: Vec<String>,
    /// Where it stands.
    pub state: WindowState,
    /// Why, in a few words.
    pub why: String,
    /// False while its agent does not answer (R10).
    pub responsive: bool,
    /// Its auto-start setting.
    pub auto_start: bool,
    /// Process id of its agent.
    pub pid: u32,
    /// Its debug sessions.
    pub sessions: Vec<DebugSession>,
    /// Where its breakpoints stand; the first ones.
    #[serde(default)]
    pub breakpoints: Vec<String>,
    /// How many more there are.
    #[serde(default)]
    pub more_breakpoints: u32,
    /// Debug adapters and language servers that its agent runs, or that died.
    #[serde(default)]
    pub programs: Vec<Tally>,
}

/// What happened to a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Happening {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Name of the window.
    pub window: String,
    /// What.
    pub what: What,
}

/// See [`Happening`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// It registered.
    Opened,
    /// It is gone.
    Closed,
    /// It became live.
    Live {
        /// The rule that decided: `R1` to `R12`.
        rule: String,
        /// Why, in a few words.
        why: String,
    },
    /// It yields to another, or waits for it.
    Standby {
        /// Why, in a few words.
        why: String,
    },
    /// It must not start by itself.
    Off {
        /// Why, in a few words.
        why: String,
    },
    /// Its agent does not answer.
    Silent,
    /// Its agent answers again.
    Answers,
}

/// An AI client, by what it calls itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientView {
    /// Its name, shortened.
    pub name: String,
    /// How many tools it has called.
    pub n_calls: u64,
    /// When it did so last, in milliseconds since 1970.
    pub last_ms: u64,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// What it is called in the logs: `baton logs --call ID`.
    pub id: String,
    /// Grows with each change of any call: what is newer than the last one that was seen has changed.
    pub seq: u64,
    /// When it came, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its tool; `other` for one that no window of this version has.
    pub tool: String,
    /// What the client calls itself, shortened.
    pub client: String,
    /// What it was called with, shortened and without secrets; only while [`crate::control::Settings::show_arguments`] is
    /// on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The window it went to last; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowId>,
    /// Where it stands.
    pub state: CallState,
}

/// See [`Call`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CallState {
    /// It has no complete answer yet.
    Running,
    /// It waits for a window.
    Held,
    /// It has had its answer.
    Done {
        /// After so many milliseconds.
        ms: u64,
        /// What went wrong, in a word; absent for a good answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Length of the window's answer, in bytes; 0 for an answer of the coordinator's own.
        n_bytes: u64,
    },
    /// Another coordinator goes on with it.
    PassedOn,
}
