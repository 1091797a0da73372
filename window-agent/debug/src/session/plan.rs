//! CORE: what a session is to do once its adapter is reached.

use serde_json::Value;

use crate::adapter::Adapter;
use crate::dap::body::read;
use crate::dap::configuration::Configuration;

/// The part of a plan that the session follows.
#[derive(Clone, Debug)]
pub(crate) struct SessionPlan {
    pub(crate) adapter: &'static Adapter,
    pub(crate) kind: StartKind,
    pub(crate) arguments: Value,
    pub(crate) no_debug: bool,
    /// The program is to stop at its first line.
    pub(crate) stops_at_entry: bool,
    /// That is the first line of this function; the adapter itself cannot do it well.
    pub(crate) entry_function: Option<String>,
    /// A program that fails calls one of these functions, and the adapter knows nothing of it.
    pub(crate) crash_functions: Vec<String>,
}

impl SessionPlan {
    /// To begin it, and nothing else.
    pub(crate) fn new(adapter: &'static Adapter, kind: StartKind, arguments: Value) -> Self {
        Self {
            adapter,
            kind,
            arguments,
            no_debug: false,
            stops_at_entry: false,
            entry_function: None,
            crash_functions: Vec::new(),
        }
    }
}

impl SessionPlan {
    /// Whether there is a program that lives on when the session ends: one that was attached to, and not what one left
    /// behind.
    pub(crate) fn leaves_program(&self) -> bool {
        self.kind == StartKind::Attach && !self.opens_core()
    }

    /// Whether it looks at a core dump.
    pub(crate) fn opens_core(&self) -> bool {
        read::<Configuration>(&self.arguments).core_file.is_some()
    }
}

/// `launch` or `attach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartKind {
    Launch,
    Attach,
}

impl StartKind {
    /// The request's name.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Attach => "attach",
        }
    }
}

/// How an adapter came to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It was started for it.
    Spawned,
    /// It was there before, and may serve others.
    Connected,
}
