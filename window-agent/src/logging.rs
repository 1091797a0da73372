//! Where the agent's log goes: daily files of the state folder, and standard error.

use std::io;

use baton_link::home::Home;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt};

/// Environment variable with the filter.
const FILTER_VARIABLE: &str = "BATON_LOG";
/// rmcp tells three things about each call at `info`, which is the level of lifecycles here.
const DEFAULT_FILTER: &str = "info,rmcp=warn";
/// Days of logs that are kept.
const MAX_FILES: usize = 7;

/// Logs to the state folder, and what matters enough to standard error.
pub fn start(home: Option<&Home>, to_stderr_from: LevelFilter) {
    let filter = EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let to_file = home
        .and_then(log_files)
        .map(|files| fmt::layer().with_ansi(false).with_writer(files).log_internal_errors(false));
    let to_stderr = fmt::layer()
        .with_target(false)
        .with_ansi(false)
        .without_time()
        .with_writer(io::stderr)
        .log_internal_errors(false);
    let to_stderr = to_stderr.with_filter(to_stderr_from);
    // Only a second call in one process fails, and then the first one is in force.
    let _ = tracing_subscriber::registry().with(filter).with(to_file).with(to_stderr).try_init();
}

/// A full disk or a read-only folder costs the log, not the agent.
fn log_files(home: &Home) -> Option<RollingFileAppender> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home.logs_path()).ok()?;
    let files = RollingFileAppender::builder().rotation(Rotation::DAILY).filename_prefix("agent");
    let files = files.filename_suffix("log").max_log_files(MAX_FILES).build(home.logs_path()).ok()?;
    make_private(home);
    Some(files)
}

/// The folder is ours alone already. (A umask would be simpler, and the programs we debug would inherit it.)
fn make_private(home: &Home) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(entries) = std::fs::read_dir(home.logs_path()) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with("agent.") {
            let _ = std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o600));
        }
    }
}
