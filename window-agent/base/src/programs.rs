//! Programs that the user has somewhere of their own: debug adapters and language servers, by their names in the tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// Where they are; clones share what is set.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// What the environment says, which counts more.
    of_environment: Arc<BTreeMap<String, PathBuf>>,
    set: Arc<Mutex<BTreeMap<String, PathBuf>>>,
}

impl Programs {
    /// Those of environment variables that begin so: of `BATON_ADAPTER_LLDB_DAP` the name is `lldb-dap`.
    pub fn from_env(prefix: &str) -> Self {
        let named = std::env::vars_os().filter_map(|(variable, value)| {
            let name = variable.to_str()?.strip_prefix(prefix)?.to_lowercase().replace('_', "-");
            Some((name, PathBuf::from(value)))
        });
        Self { of_environment: Arc::new(named.collect()), set: Arc::default() }
    }

    /// From now on these are where the settings say.
    pub fn set(&self, programs: &BTreeMap<String, String>) {
        let programs = programs.iter().map(|(name, path)| (name.clone(), PathBuf::from(path)));
        *self.set.lock() = programs.collect();
    }

    /// The one of that name.
    pub fn get(&self, name: &str) -> Option<PathBuf> {
        let set = || self.set.lock().get(name).cloned();
        self.of_environment.get(name).cloned().or_else(set)
    }
}

/// A command line of a table, run from where the user has the program: in the place of what Baton installed, or of the
/// program itself.
pub fn at(command: &[String], program: &Path) -> Vec<String> {
    let own = command.iter().position(|part| part.contains("{installed}")).unwrap_or(0);
    let mut command = command.to_vec();
    if let Some(part) = command.get_mut(own) {
        *part = program.to_string_lossy().into_owned();
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_heard_by_all_that_share_them() {
        let (programs, set) =
            (Programs::default(), |path: &str| BTreeMap::from([("ty".to_owned(), path.to_owned())]));
        let other = programs.clone();
        assert_eq!(other.get("ty"), None);
        programs.set(&set("/a"));
        assert_eq!(other.get("ty"), Some(PathBuf::from("/a")));
        programs.set(&BTreeMap::new());
        assert_eq!(other.get("ty"), None);
        let of_environment = Arc::new(BTreeMap::from([("ty".to_owned(), PathBuf::from("/env"))]));
        let programs = Programs { of_environment, ..Programs::default() };
        programs.set(&set("/a"));
        assert_eq!(programs.get("ty"), Some(PathBuf::from("/env")));
    }

    #[test]
    fn a_program_takes_the_place_of_the_installed_one() {
        let at = |command: &[&str]| {
            let command: Vec<String> = command.iter().map(|part| (*part).to_owned()).collect();
            at(&command, Path::new("/own")).join(" ")
        };
        assert_eq!(at(&["{installed}/bin/gdb", "-q"]), "/own -q");
        assert_eq!(at(&["{node}", "{installed}/server.js", "{socket}"]), "{node} /own {socket}");
        assert_eq!(at(&["dlv", "dap"]), "/own dap");
    }
}
