//! Where the user's own files lie that no state depends on: what Baton installed, what the user configured.

use std::path::PathBuf;

use directories::ProjectDirs;

/// Environment variable that names another state folder.
pub const HOME_VARIABLE: &str = "BATON_HOME";

/// The folder for downloads of this kind; `variable` of the environment names another one. In `BATON_HOME` when it is
/// set.
pub fn installed(kind: &str, variable: &str) -> Option<PathBuf> {
    let user = || Some(dirs()?.data_local_dir().join(kind));
    absolute(set(variable).or_else(|| Some(set(HOME_VARIABLE)?.join(kind))).or_else(user)?)
}

/// The user's configuration file of this name. In `BATON_HOME` when it is set.
pub fn config(name: &str) -> Option<PathBuf> {
    absolute(set(HOME_VARIABLE).or_else(user_config)?.join(name))
}

/// The folder of the user's configuration files when `BATON_HOME` is not set.
pub(crate) fn user_config() -> Option<PathBuf> {
    Some(dirs()?.config_dir().to_owned())
}

/// The folder for what is known of changes of files that are being made, in the state folder.
pub fn changes() -> Option<PathBuf> {
    absolute(set(HOME_VARIABLE).or_else(state)?.join("changes"))
}

/// The folder that Baton's state lies in when `BATON_HOME` is not set.
pub(crate) fn state() -> Option<PathBuf> {
    let dirs = dirs()?;
    Some(dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned())
}

fn dirs() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "baton")
}

fn set(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn absolute(path: PathBuf) -> Option<PathBuf> {
    Some(std::path::absolute(&path).unwrap_or(path))
}
