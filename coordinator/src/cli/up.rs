//! `baton up` and `baton down`.

use std::time::Duration;

use baton_daemon::holder::Lease;
use baton_link::find::{FindError, end_lock_holder, find};
use baton_link::home::Home;
use baton_link::process::{is_running, start_time};
use clap::Args;
use tokio::time::{Instant, sleep};

use super::outcome::{Done, Failed, exit};
use super::output;
use super::reach::{PortOption, started, url};

/// A coordinator lets calls in flight end before it ends itself.
const END_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct UpOptions {
    #[command(flatten)]
    port: PortOption,
    /// Replace the running coordinator with this version without losing a call or connection
    #[arg(long)]
    replace: bool,
}

pub(super) async fn up(options: UpOptions) -> Done {
    let port = options.port.port;
    let before = if options.replace { find(&Home::from_env()?).await.ok() } else { None };
    let before = before.map(|connection| connection.hello().pid);
    let mut connection = started(port).await?;
    if before == Some(connection.hello().pid) {
        let program = std::env::current_exe().map_err(|error| {
            Failed::new(exit::FAILED, format!("cannot determine the path of this program: {error}"))
        })?;
        connection.replace(&program).await?;
        connection = started(None).await?;
    }
    let running = connection.hello().port;
    if let Some(port) = port.filter(|port| *port != 0 && *port != running) {
        let failed =
            Failed::new(exit::FAILED, format!("the coordinator is already running on port {running}"));
        return Err(failed.with_hint(format!("change the port with `baton port {port}`")));
    }
    output::line(url(running));
    Ok(())
}

pub(super) async fn down() -> Done {
    let home = Home::from_env()?;
    let mut connection = match find(&home).await {
        Ok(connection) => connection,
        Err(FindError::NotRunning) => {
            release_port(&home).await;
            output::note("The coordinator is not running");
            return Ok(());
        }
        Err(
            error @ (FindError::PortTaken { .. } | FindError::Hung { .. } | FindError::Unreachable { .. }),
        ) => {
            return end_silent(&home, error).await;
        }
        Err(error) => return Err(error.into()),
    };
    let pid = connection.hello().pid;
    let pid_start = start_time(pid);
    connection.shutdown().await?;
    drop(connection);
    if let Some(pid_start) = pid_start {
        await_end(pid, pid_start).await?;
    }
    output::note("Stopped the coordinator");
    Ok(())
}

/// One that does not answer cannot be asked. Windows that are open miss it and start another, unless it only waited
/// for its port.
async fn end_silent(home: &Home, why: FindError) -> Done {
    if !end_lock_holder(home).await {
        return Err(why.into());
    }
    release_port(home).await;
    output::note(match why {
        FindError::PortTaken { .. } => "Stopped the coordinator, which was waiting for its port",
        _ => "Killed the coordinator, which was not responding; open windows will start a new one",
    });
    Ok(())
}

/// What was killed has let nobody know that its port may be free.
async fn release_port(home: &Home) {
    if let Some(left) = Lease::take(home).await {
        left.lease.release();
    }
}

async fn await_end(pid: u32, pid_start: u64) -> Done {
    let since = Instant::now();
    while is_running(pid, pid_start) {
        if since.elapsed() > END_TIMEOUT {
            let failed = Failed::new(exit::FAILED, format!("the coordinator (process {pid}) did not exit"));
            return Err(failed.with_hint(format!("end it with `kill {pid}`")));
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
