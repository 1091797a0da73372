//! The processes of a simulated machine.

use std::path::Path;
use std::time::Duration;

use crate::sim::{self, Wish};

/// A process, told from a later one with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// See [`start_time`].
    pub pid_start: u64,
}

/// How long the machine ran before the simulation began.
const UP_BEFORE: Duration = Duration::from_secs(1_000);

/// The id of this process.
pub fn own_id() -> u32 {
    sim::current()
}

/// How long this machine runs.
pub fn since_boot() -> Duration {
    UP_BEFORE + sim::now()
}

/// When a process started, while it runs.
pub fn start_time(pid: u32) -> Option<u64> {
    sim::start_of(pid)
}

/// When this process started.
pub fn own_start_time() -> u64 {
    start_time(own_id()).unwrap_or(0)
}

/// True while a process with this pid and start time runs, or is stopped.
pub fn is_running(pid: u32, pid_start: u64) -> bool {
    start_time(pid) == Some(pid_start)
}

/// Ends a process, if it is still the one that started at `pid_start`. True when it was signalled.
pub fn kill_verified(pid: u32, pid_start: u64) -> bool {
    if pid == own_id() || !is_running(pid, pid_start) {
        return false;
    }
    sim::wish(Wish::Kill(pid));
    true
}

/// The coordinator that has run for longest, while somebody holds the lock.
pub fn lock_holder(path: &Path) -> Option<Process> {
    let file = std::fs::OpenOptions::new().read(true).open(path).ok()?;
    if file.try_lock().is_ok() {
        return None;
    }
    let pid = sim::first_coordinator()?;
    Some(Process { pid, pid_start: start_time(pid)? })
}

/// Who listens on a port, for people.
pub fn port_owner(_port: u16) -> String {
    "another program".to_owned()
}

/// Whether anybody listens on a port; nothing outside the simulation is looked at.
pub fn has_listener(_port: u16) -> Option<bool> {
    None
}

/// True when a coordinator listens on a port, or its holder does.
pub fn is_own_listener(port: u16) -> bool {
    crate::net::owner(port).is_some_and(|owner| owner.is_none_or(sim::is_coordinator))
}
