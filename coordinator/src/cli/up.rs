//! `baton up` and `baton down`.

use std::time::Duration;

use baton_link::find::{FindError, end_waiting, find, replace};
use baton_link::home::Home;
use baton_link::process::{is_running, kill_verified};
use clap::Args;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Done, Failed, PortOption, exit, output, started, url};

/// A coordinator lets calls in flight end before it ends itself.
const END_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct UpOptions {
    #[command(flatten)]
    port: PortOption,
    /// Let this program follow the coordinator that runs: no call is lost and no connection refused
    #[arg(long)]
    replace: bool,
}

pub(super) async fn up(options: UpOptions) -> Done {
    let port = options.port.port;
    let before =
        options.replace.then(|| Home::from_env().map(|home| home.discovery())).transpose()?.flatten();
    let mut connection = started(port).await?;
    if before.is_some_and(|before| before.pid == connection.hello().pid) {
        let program = std::env::current_exe()
            .map_err(|error| Failed::new(exit::FAILED, format!("this program cannot be found: {error}")))?;
        replace(&mut connection, &program).await?;
        connection = started(None).await?;
    }
    let running = connection.hello().port;
    if let Some(port) = port.filter(|port| *port != 0 && *port != running) {
        let message = format!("the coordinator runs on port {running}; move it with `baton port {port}`");
        return Err(Failed::new(exit::FAILED, message));
    }
    output::line(url(running));
    Ok(())
}

pub(super) async fn down() -> Done {
    let home = Home::from_env()?;
    let mut connection = match find(&home).await {
        Ok(connection) => connection,
        Err(FindError::NotRunning) => {
            output::note("no coordinator runs");
            return Ok(());
        }
        Err(FindError::PortTaken { .. }) if end_waiting(&home).await => {
            output::note("the coordinator, which waited for its port, has ended");
            return Ok(());
        }
        Err(FindError::Hung { pid }) => return end_hung(&home, pid).await,
        Err(error) => return Err(error.into()),
    };
    let pid = connection.hello().pid;
    let pid_start = home.discovery().filter(|discovery| discovery.pid == pid).map(|found| found.pid_start);
    let _: serde_json::Value = connection.post("/v1/shutdown", &json!({})).await?;
    drop(connection);
    if let Some(pid_start) = pid_start {
        await_end(pid, pid_start).await?;
    }
    output::note("the coordinator has ended");
    Ok(())
}

/// One that does not answer cannot be asked. Windows that are open miss it and start another.
async fn end_hung(home: &Home, pid: u32) -> Done {
    let found = home.discovery().filter(|discovery| discovery.pid == pid);
    if let Some(discovery) = found.filter(|discovery| kill_verified(pid, discovery.pid_start)) {
        await_end(pid, discovery.pid_start).await?;
    }
    output::note("the coordinator did not answer and was killed; windows that are open start another one");
    Ok(())
}

async fn await_end(pid: u32, pid_start: u64) -> Done {
    let since = Instant::now();
    while is_running(pid, pid_start) {
        if since.elapsed() > END_TIMEOUT {
            let message = format!("process {pid} was asked to end and has not; end it with `kill {pid}`");
            return Err(Failed::new(exit::FAILED, message));
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
