//! CORE: what the coordinator knows of all windows at one moment: published by the keeper, read by everybody else.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_proto::control::{DebugSession, Settings, WindowKind, WindowRef, WindowState};
use baton_proto::ids::{InstanceId, Term, WindowId};
use tokio::time::Instant;

/// A consistent view; a new one is published after every change (`watch<Arc<Roster>>`).
#[derive(Clone, Debug)]
pub struct Roster {
    /// This run of the coordinator.
    pub instance: InstanceId,
    /// Its generation.
    pub generation: u64,
    /// The live window with its term.
    pub live: Option<(WindowId, Term)>,
    /// The window whose place is held, and until when (R6, R9).
    pub awaiting: Option<(WindowId, Instant)>,
    /// All registered windows.
    pub windows: BTreeMap<WindowId, Arc<Window>>,
    /// Windows that vanished a moment ago, and may be back in the next: they reload, or their agent is started again.
    pub departed: Vec<Arc<Window>>,
    /// Settings in force.
    pub settings: Arc<Settings>,
    /// Rotations of the client token, see [`baton_proto::discovery::Role::Client`].
    pub client_epoch: u32,
    /// How many terms this coordinator has granted, by the rule that did: `R1` to `R12`.
    pub granted: BTreeMap<&'static str, u64>,
    /// The last of them, oldest first.
    pub grants: Arc<Vec<Grant>>,
}

/// A window became live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When.
    pub at: Instant,
    /// Which window.
    pub window: WindowRef,
    /// Its term.
    pub term: Term,
    /// The rule that decided: `R1` to `R12`.
    pub rule: &'static str,
    /// Why, in a few words.
    pub why: &'static str,
}

/// One registered window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Its id.
    pub id: WindowId,
    /// Its name; not unique.
    pub name: String,
    /// VS Code or headless.
    pub kind: WindowKind,
    /// Its absolute folders.
    pub folders: Vec<String>,
    /// The root of the git tree of each folder that was in one when the window registered.
    pub trees: BTreeMap<String, String>,
    /// Where it stands.
    pub state: WindowState,
    /// Why, in a few words.
    pub why: String,
    /// False while it is suspect (R10).
    pub responsive: bool,
    /// Its auto-start setting.
    pub auto_start: bool,
    /// Process id of its agent.
    pub pid: u32,
    /// Where its agent is called.
    pub address: Address,
    /// Which start of its agent this is.
    pub incarnation: u64,
    /// Its MCP debug sessions.
    pub debug_sessions: Vec<DebugSession>,
    /// When it was focused last.
    pub last_focus: Option<Instant>,
    /// What became of what its agents before this one had.
    pub before: Before,
}

/// What the earlier agents of a window had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Breakpoints that are set again; `None` when the agent does not say it.
    pub breakpoints: Option<u32>,
    /// Sessions of clients that ended with their agent, with its incarnation; the last ones.
    pub ended: Vec<(u64, DebugSession)>,
}

/// Where an agent is called, and with which token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A name in the folder of the sockets; the token is that of its incarnation.
    Socket(String),
    /// A loopback port; the token is that of its incarnation.
    Port(u16),
    /// A loopback port of an agent of control protocol 1; the token is that of its window.
    OldPort(u16),
}

impl Roster {
    /// The live window, when it is registered (its place may be held while it is not).
    pub fn live_window(&self) -> Option<(&Arc<Window>, Term)> {
        let (id, term) = self.live.as_ref()?;
        Some((self.windows.get(id)?, *term))
    }
}

impl Window {
    /// Id and name.
    pub fn to_ref(&self) -> WindowRef {
        WindowRef { id: self.id.clone(), name: self.name.clone() }
    }
}
