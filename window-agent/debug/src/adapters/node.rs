//! A node that runs already is told to listen for its debugger: js-debug itself attaches by port alone.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::adapters::configuration::bad;
use crate::error::DebugError;

/// Where node listens for its debugger, unless it was told otherwise.
const USUAL_PORT: u16 = 9229;
/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked whether it does: node tells it to nobody but its own standard error.
const LOOK: Duration = Duration::from_millis(20);

/// The port on which the debugger of this process can be reached; opens it when it is not open.
pub(crate) async fn open_inspector(pid: u32) -> Result<u16, DebugError> {
    let own = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let own = own.ok_or_else(|| bad(format!("there is no process {pid}")))?;
    let before = ports_of(pid).await;
    if before.contains(&USUAL_PORT) {
        return Ok(USUAL_PORT);
    }
    // Whoever does not await this signal is killed by it.
    if !awaits_signal(pid) {
        let message = format!(
            "process {pid} does not let a debugger in while it runs; start it with `node --inspect` and attach by port"
        );
        return Err(bad(message));
    }
    kill_process(own, Signal::USR1)
        .map_err(|error| bad(format!("cannot make process {pid} accept a debugger: {error}")))?;
    let opened = async {
        loop {
            if let Some(port) = ports_of(pid).await.difference(&before).next() {
                return *port;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, opened).await.map_err(|_| {
        bad(format!(
            "process {pid} did not open a port for its debugger: another program may listen on {USUAL_PORT}, or its debugger is open already; attach by port then"
        ))
    })
}

/// Ports of this machine on which the process listens.
async fn ports_of(pid: u32) -> BTreeSet<u16> {
    // Reads files of every process of the machine.
    let all = tokio::task::spawn_blocking(|| listeners::get_all().unwrap_or_default()).await;
    let is_its = |listener: &listeners::Listener| {
        listener.process.pid == pid && listener.protocol == listeners::Protocol::TCP
    };
    all.unwrap_or_default().into_iter().filter(is_its).map(|listener| listener.socket.port()).collect()
}

/// Whether the process has a handler for the signal that opens node's debugger.
#[cfg(target_os = "linux")]
fn awaits_signal(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| catches(&status, Signal::USR1.as_raw()))
}

/// Nothing tells; that it is a node was looked at.
#[cfg(not(target_os = "linux"))]
fn awaits_signal(_pid: u32) -> bool {
    true
}

/// Whether `SigCgt` of a `/proc/PID/status` has this signal.
#[cfg(any(target_os = "linux", test))]
fn catches(status: &str, signal: i32) -> bool {
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_read() {
        let status = "Name:\tnode\nSigIgn:\t0000000000001000\nSigCgt:\t0000000108004603\nCapInh:\t0\n";
        assert!(catches(status, 10) && catches(status, 1) && !catches(status, 12) && !catches(status, 13));
        assert!(!catches("", 10) && !catches("SigCgt:\tx", 10));
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the process is the test's own")]
    async fn a_process_that_awaits_no_debugger_is_left_alone() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let error = open_inspector(child.id()).await.unwrap_err();
        assert!(error.to_string().contains("does not let a debugger in"), "{error}");
        assert_eq!(child.try_wait().unwrap(), None, "it lives");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
