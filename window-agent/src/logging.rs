//! Where the agent's log goes: daily files of the state folder, and standard error.

use std::io;
use std::sync::Mutex;

use baton_link::home::Home;
use baton_link::logs::{DailyFile, OneLine, is_logged, without_bodies};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

/// Environment variable with the filter.
const FILTER_VARIABLE: &str = "BATON_LOG";
/// rmcp tells three things about each call at `info`, which is the level of lifecycles here.
const DEFAULT_FILTER: &str = "info,rmcp=warn";

/// Logs to the state folder, and what matters enough to standard error.
pub fn start(home: Option<&Home>, to_stderr_from: LevelFilter) {
    let asked = std::env::var(FILTER_VARIABLE).ok();
    let asked = asked.and_then(|asked| EnvFilter::try_new(without_bodies(&asked)).ok());
    let filter = asked.unwrap_or_else(|| EnvFilter::new(DEFAULT_FILTER));
    // A full disk or a read-only folder costs the log, not the agent.
    let files = home.and_then(|home| DailyFile::open(&home.logs_path(), "agent").ok());
    let to_file = files.map(|files| {
        fmt::layer().with_ansi(false).with_writer(Mutex::new(OneLine(files))).log_internal_errors(false)
    });
    let to_stderr = fmt::layer()
        .with_target(false)
        .with_ansi(false)
        .without_time()
        .with_writer(|| OneLine(io::stderr()))
        .log_internal_errors(false);
    let to_stderr = to_stderr.with_filter(to_stderr_from);
    // Only a second call in one process fails, and then the first one is in force.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(filter_fn(is_logged))
        .with(to_file)
        .with(to_stderr)
        .try_init();
}
