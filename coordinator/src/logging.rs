//! Where tracing goes: daily files of the state folder, and standard error for people.
//!
//! **Invariant:** standard output is a protocol channel or an answer to the user; nothing is logged there.

use std::io;
use std::sync::Mutex;

use baton_link::home::Home;
use baton_link::logs::{DailyFile, OneLine, is_logged, without_bodies};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Environment variable with the filter, as of `tracing-subscriber`.
pub(crate) const FILTER_VARIABLE: &str = "BATON_LOG";

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
    let files = DailyFile::open(&home.logs_path(), "baton");
    let problem = files.as_ref().err().map(ToString::to_string);
    let to_file = files.ok().map(|files| {
        fmt::layer().with_ansi(false).with_writer(Mutex::new(OneLine(files))).log_internal_errors(false)
    });
    let to_stderr = (stderr == Stderr::Shown).then(|| {
        let layer = fmt::layer().with_target(false).with_ansi(false);
        layer.with_writer(|| OneLine(io::stderr())).log_internal_errors(false)
    });
    let registry = tracing_subscriber::registry().with(filter("info")).with(filter_fn(is_logged));
    // Only a second call in one process fails, and then the first one is in force.
    let _ = registry.with(to_file).with(to_stderr).try_init();
    if let Some(problem) = problem {
        tracing::warn!("cannot write log files: {problem}");
    }
    log_panics();
}

/// Logs of a command: warnings, on standard error.
pub(crate) fn start_command() {
    let to_stderr = fmt::layer().with_target(false).with_ansi(false).without_time();
    let to_stderr = to_stderr.with_writer(|| OneLine(io::stderr()));
    let registry = tracing_subscriber::registry().with(filter("error")).with(filter_fn(is_logged));
    let _ = registry.with(to_stderr).try_init();
}

fn filter(default: &str) -> EnvFilter {
    let asked = std::env::var(FILTER_VARIABLE).ok();
    let asked = asked.and_then(|asked| EnvFilter::try_new(without_bodies(&asked)).ok());
    asked.unwrap_or_else(|| EnvFilter::new(default))
}

/// A panic of a detached coordinator would otherwise be lost with its standard error.
fn log_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("{panic}");
        default(panic);
    }));
}
