//! Programs as clients name them, started without a configuration.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::ToolError;
use crate::debug::types::{Breakpoint, Phase, SessionId};
use crate::paths::{self, Given};
use crate::window::Window;

/// Waits until a session that is being started runs, or did not come to it: before that nothing can be paused.
pub(super) async fn begun(window: &Window, session: Option<&SessionId>, timeout: Duration) {
    let Ok(status) = window.debugger.status(session).await else { return };
    let is_starting = |phase| matches!(phase, Phase::Starting | Phase::Configuring);
    if !is_starting(status.phase) {
        return;
    }
    let mut sessions = window.debugger.watch_sessions();
    let begun = sessions.wait_for(|all| all.iter().all(|one| one.id != status.id || !is_starting(one.phase)));
    let _ = tokio::time::timeout(timeout, begun).await;
}

/// That a file changed since a program that still runs was started: what the debugger knows are its old lines.
pub(super) async fn changed(window: &Window, path: &Path) -> Option<String> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    let mut all = window.debugger.statuses().await;
    all.retain(|status| status.phase != Phase::Terminated);
    let is_older = all.iter().any(|status| SystemTime::from(status.started_at) < modified);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    is_older.then(|| format!("{name} changed since the program started; lines are those of the old text"))
}

/// Breakpoints with a word about files that changed.
pub(super) async fn with_changes(window: &Window, mut all: Vec<Breakpoint>) -> Vec<Breakpoint> {
    for breakpoint in &mut all {
        if let Some(note) = changed(window, &breakpoint.path).await {
            let message = breakpoint.message.take();
            breakpoint.message = Some(message.map_or(note.clone(), |message| format!("{message}; {note}")));
        }
    }
    all
}

/// The folder that `cwd` names: absolute, or relative to a folder of the window.
pub(super) async fn folder(window: &Window, cwd: &str) -> Result<PathBuf, ToolError> {
    let found = match paths::parse(cwd) {
        Ok(Given::Absolute(path)) => Some(path),
        Ok(Given::Relative(path)) => {
            let joined = |folder: &crate::launch_config::variables::Folder| folder.path.join(&path);
            window.workspace().folders().iter().map(joined).find(|path| path.is_dir())
        }
        Err(_) => None,
    };
    found.filter(|path| path.is_dir()).ok_or_else(|| {
        let shown: String = cwd.chars().take(200).collect();
        ToolError::new("folder_not_found", format!("There is no folder {shown:?} in this window."))
            .hint("Give an absolute path, or one relative to the window's folder.")
    })
}

/// The program that a client names: in `cwd`, else as any file of the window. A folder can be one (Go's packages).
pub(super) async fn program(window: &Window, given: &str, cwd: Option<&Path>) -> Result<PathBuf, ToolError> {
    let bases = || {
        let folders =
            window.workspace().folders().iter().map(|folder| folder.path.clone()).collect::<Vec<_>>();
        cwd.map(Path::to_owned).into_iter().chain(folders)
    };
    match paths::parse(given) {
        Ok(Given::Relative(path)) => {
            let in_cwd = cwd.map(|cwd| cwd.join(&path)).filter(|path| path.is_file());
            let package = || bases().map(|base| base.join(&path)).find(|path| path.is_dir());
            if let Some(found) = in_cwd.or_else(package) {
                return Ok(std::fs::canonicalize(&found).unwrap_or(found));
            }
        }
        Ok(Given::Absolute(path)) if path.is_dir() => return Ok(path),
        _ => {}
    }
    window.workspace().resolve_file(given).await
}
