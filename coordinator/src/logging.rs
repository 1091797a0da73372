//! What each way to run this program logs, and where to.

use baton_errors::Process;
use baton_link::home::Home;
use baton_link::logging::{self, LIFECYCLES, Stderr};
use tracing::level_filters::LevelFilter;

/// Logs to the files of the state folder, and to standard error when a person reads it.
pub(crate) fn start_daemon(home: &Home, is_shown: bool) {
    let stderr = is_shown.then_some(Stderr { from: LevelFilter::TRACE, has_time: true });
    if let Err(problem) = logging::start(Some((home, "baton")), LIFECYCLES, stderr) {
        tracing::warn!("cannot write log files: {problem}");
    }
    logging::log_panics();
    baton_errors::install(Process::Coordinator);
}

/// Logs of a command: errors, on standard error.
pub(crate) fn start_command() {
    // There is no file that could not be opened.
    let _ = logging::start(None, "error", Some(Stderr { from: LevelFilter::TRACE, has_time: false }));
}
