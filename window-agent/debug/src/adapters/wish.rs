//! CORE: a program or a process to debug, without a configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to debug.
#[derive(Clone, Debug)]
pub enum Wish {
    /// Start a program.
    Launch(Launch),
    /// Join one that runs.
    Attach(Attach),
}

/// A program to start.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Name of the adapter, when it is not to be chosen.
    pub adapter: Option<String>,
    /// Absolute: a source file that is run as it is, a compiled program, or a folder (Go).
    pub program: PathBuf,
    /// A Python module to run instead, as `python -m` does.
    pub module: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Working directory; without one the window's first folder.
    pub cwd: Option<PathBuf>,
    /// Added to its environment.
    pub env: BTreeMap<String, String>,
    /// Stop at its first line.
    pub stop_on_entry: bool,
    /// Run it in a terminal, so that it can be typed to.
    pub terminal: bool,
}

/// A process to join: by id, or by the address where a debugger listens in it.
#[derive(Clone, Debug, Default)]
pub struct Attach {
    /// Name of the adapter, when it is not to be chosen.
    pub adapter: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Host; without one this machine.
    pub host: Option<String>,
    /// Port.
    pub port: Option<u16>,
    /// Working directory of the adapter.
    pub cwd: Option<PathBuf>,
}

impl Wish {
    /// Name of the adapter, when it is not to be chosen.
    pub(crate) fn adapter(&self) -> Option<&str> {
        match self {
            Self::Launch(launch) => launch.adapter.as_deref().or(launch.module.as_ref().map(|_| "debugpy")),
            Self::Attach(attach) => attach.adapter.as_deref(),
        }
    }
}
