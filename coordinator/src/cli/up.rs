//! `baton up` and `baton down`.

use std::time::Duration;

use baton_link::find::{FindError, end_waiting, find};
use baton_link::home::Home;
use baton_link::process::is_running;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Done, Failed, exit, output, started, url};

/// A coordinator lets calls in flight end before it ends itself.
const END_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn up(port: Option<u16>) -> Done {
    let connection = started(port).await?;
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
        Err(error) => return Err(error.into()),
    };
    let pid = connection.hello().pid;
    let pid_start = home.discovery().filter(|discovery| discovery.pid == pid).map(|found| found.pid_start);
    let _: serde_json::Value = connection.post("/v1/shutdown", &json!({})).await?;
    drop(connection);
    let since = Instant::now();
    while pid_start.is_some_and(|start| is_running(pid, start)) {
        if since.elapsed() > END_TIMEOUT {
            let message = format!("process {pid} was asked to end and has not; end it with `kill {pid}`");
            return Err(Failed::new(exit::FAILED, message));
        }
        sleep(Duration::from_millis(10)).await;
    }
    output::note("the coordinator has ended");
    Ok(())
}
