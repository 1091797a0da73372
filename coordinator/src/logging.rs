//! Where tracing goes: daily files of the state folder, and standard error for people.
//!
//! **Invariant:** standard output is a protocol channel or an answer to the user; nothing is logged there.

use std::io;

use baton_link::home::Home;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Environment variable with the filter, as of `tracing-subscriber`.
pub(crate) const FILTER_VARIABLE: &str = "BATON_LOG";

/// Days of logs that are kept.
const MAX_FILES: usize = 7;

/// Who reads standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stderr {
    /// A person, or nobody in particular.
    Shown,
    /// It is closed or not ours.
    Quiet,
}

/// Logs to the files of the state folder. A full disk or a read-only folder costs the log, not the coordinator.
pub(crate) fn start_daemon(home: &Home, stderr: Stderr) {
    let files = log_files(home);
    let problem = files.as_ref().err().map(ToString::to_string);
    let to_file =
        files.ok().map(|files| fmt::layer().with_ansi(false).with_writer(files).log_internal_errors(false));
    let to_stderr = (stderr == Stderr::Shown)
        .then(|| fmt::layer().with_target(false).with_writer(io::stderr).log_internal_errors(false));
    // Only a second call in one process fails, and then the first one is in force.
    let _ = tracing_subscriber::registry().with(filter("info")).with(to_file).with(to_stderr).try_init();
    if let Some(problem) = problem {
        tracing::warn!("no log files: {problem}");
    }
    log_panics();
}

/// Logs of a command: warnings, on standard error.
pub(crate) fn start_command() {
    let to_stderr = fmt::layer().with_target(false).without_time().with_writer(io::stderr);
    let _ = tracing_subscriber::registry().with(filter("error")).with(to_stderr).try_init();
}

fn filter(default: &str) -> EnvFilter {
    EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new(default))
}

fn log_files(home: &Home) -> anyhow::Result<RollingFileAppender> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home.logs_path())?;
    let files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("baton")
        .filename_suffix("log")
        .max_log_files(MAX_FILES)
        .build(home.logs_path())?;
    Ok(files)
}

/// A panic of a detached coordinator would otherwise be lost with its standard error.
fn log_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("{panic}");
        default(panic);
    }));
}
