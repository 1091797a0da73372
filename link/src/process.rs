//! Start times of processes, and killing only the process that is meant.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::time::{ClockId, clock_gettime};

use crate::folders::HOME_VARIABLE;

/// A process, told from a later one with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// See [`start_time`].
    pub pid_start: u64,
}

/// When a process started, in the kernel's own unit: a pid that was used again has another one.
#[cfg(target_os = "linux")]
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    start_time_of_stat(&stat)
}

/// When a process started: on systems without `/proc`, a digest of what `ps` prints.
#[cfg(not(target_os = "linux"))]
pub fn start_time(pid: u32) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "ps is the portable way to a start time; it ends at once")]
    let output = std::process::Command::new("ps")
        .args(["-o", "lstart=", "-p", &pid.to_string()])
        // The same text in every process, wherever the user travels.
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .output()
        .ok()?;
    let text = output.stdout.trim_ascii();
    // FNV-1a: any digest that is the same in every process will do.
    let digest = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    (!text.is_empty()).then(|| text.iter().fold(0xcbf2_9ce4_8422_2325, digest))
}

/// The id of this process.
pub fn own_id() -> u32 {
    std::process::id()
}

/// How long this machine runs: its own clock, not the one of the wall, which can be set back.
pub fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// When this process started; 0 when the system does not tell.
pub fn own_start_time() -> u64 {
    start_time(std::process::id()).unwrap_or(0)
}

/// True while a process with this pid and start time exists (a zombie has ended).
pub fn is_running(pid: u32, pid_start: u64) -> bool {
    start_time(pid) == Some(pid_start) && !is_zombie(pid)
}

/// Ends a process at once, if it is still the one that started at `pid_start`. True when it was signalled.
pub fn kill_verified(pid: u32, pid_start: u64) -> bool {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // Never ourselves, never the first process, never a process group.
    if pid == std::process::id() || pid <= 1 || pid_start == 0 {
        return false;
    }
    signal_verified(raw, pid, pid_start)
}

/// The process of ours that holds an exclusive lock on this very file (flock(2)), as far as the system tells. After
/// a lock was handed on, it is whoever of its holders is found first.
pub fn lock_holder(path: &Path) -> Option<Process> {
    let wanted = std::fs::canonicalize(path).ok()?;
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let descriptors = std::fs::read_dir(process.path().join("fd")).ok()?.flatten();
        let mut open = descriptors.filter(|one| std::fs::read_link(one.path()).is_ok_and(|to| to == wanted));
        let is_holder = open.any(|descriptor| {
            let info = process.path().join("fdinfo").join(descriptor.file_name());
            let info = std::fs::read_to_string(info).unwrap_or_default();
            info.lines()
                .any(|line| line.starts_with("lock:") && line.contains("FLOCK") && line.contains("WRITE"))
        });
        // After the look: a pid that was used again meanwhile is another process.
        let pid_start = start_time(pid).filter(|_| is_holder)?;
        Some(Process { pid, pid_start })
    })
}

/// Who listens on a loopback port, for people, as far as the system tells.
pub fn port_owner(port: u16) -> String {
    let Some(socket) = ["tcp", "tcp6"].iter().find_map(|table| {
        listening_socket(&std::fs::read_to_string(format!("/proc/net/{table}")).ok()?, port)
    }) else {
        return "another program".to_owned();
    };
    match process_with_socket(&socket.inode) {
        Some(pid) => {
            let name = name_of(pid);
            // A program that was replaced while it runs.
            let name = name.trim_end().trim_end_matches(" (deleted)");
            match state_folder_of(pid).filter(|_| name == "baton") {
                // It is no stranger, and "baton" alone would sound as if it were the coordinator that is wanted.
                Some(folder) => format!("another Baton coordinator (process {pid}, state folder {folder})"),
                None => format!("{name} (process {pid})"),
            }
        }
        None => format!("a program run by user {}", socket.uid),
    }
}

/// 127.0.0.1, ::1, and all addresses of either kind, as the table writes them on a machine of either byte order: who
/// listens on another one is not in the way.
const LOOPBACK: [&str; 6] = [
    "0100007F",
    "7F000001",
    "00000000",
    "00000000000000000000000001000000",
    "00000000000000000000000000000001",
    "00000000000000000000000000000000",
];

/// Whether anybody listens on a loopback port; `None` where the system does not tell.
pub fn has_listener(port: u16) -> Option<bool> {
    let tables = ["tcp", "tcp6"].map(|table| std::fs::read_to_string(format!("/proc/net/{table}")).ok());
    let mut tables = tables.iter().flatten().peekable();
    tables.peek()?;
    Some(tables.any(|table| listening_socket(table, port).is_some()))
}

/// True when whoever listens on a loopback port is of this user, as far as the system tells.
pub fn is_own_listener(port: u16) -> bool {
    let us = rustix::process::geteuid().as_raw().to_string();
    ["tcp", "tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        listening_socket(&table, port).is_some_and(|socket| socket.uid == us)
    })
}

/// A line of `/proc/net/tcp`.
#[derive(Debug, PartialEq, Eq)]
struct ListeningSocket {
    uid: String,
    inode: String,
}

fn listening_socket(table: &str, port: u16) -> Option<ListeningSocket> {
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        // Local address, state (0A is listening), user, inode.
        let (local, state) = (fields.get(1)?, fields.get(3)?);
        let is_ours = local.strip_suffix(&suffix).is_some_and(|address| LOOPBACK.contains(&address));
        (is_ours && *state == "0A").then_some(())?;
        Some(ListeningSocket { uid: (*fields.get(7)?).to_owned(), inode: (*fields.get(9)?).to_owned() })
    })
}

/// Only processes of our own show their descriptors.
fn process_with_socket(inode: &str) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let mut descriptors = std::fs::read_dir(process.path().join("fd")).ok()?.flatten();
        descriptors
            .any(|descriptor| {
                std::fs::read_link(descriptor.path())
                    .is_ok_and(|target| target.as_os_str() == wanted.as_str())
            })
            .then_some(pid)
    })
}

/// The descriptor pins the process, so that the pid cannot be used again between the check and the signal.
#[cfg(target_os = "linux")]
fn signal_verified(raw: Pid, pid: u32, pid_start: u64) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(descriptor) => {
            start_time(pid) == Some(pid_start) && pidfd_send_signal(descriptor, Signal::KILL).is_ok()
        }
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            start_time(pid) == Some(pid_start) && rustix::process::kill_process(raw, Signal::KILL).is_ok()
        }
        Err(_) => false,
    }
}

#[cfg(not(target_os = "linux"))]
fn signal_verified(raw: Pid, pid: u32, pid_start: u64) -> bool {
    start_time(pid) == Some(pid_start) && rustix::process::kill_process(raw, Signal::KILL).is_ok()
}

/// The file that runs; of another user's process the name it goes by, which a program can choose.
fn name_of(pid: u32) -> String {
    let file = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    match file.as_deref().and_then(Path::file_name) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default(),
    }
}

/// The state folder of a coordinator or its holder, in one line: every one that Baton starts is told by its environment.
fn state_folder_of(pid: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let named =
        |entry: &[u8]| Some(entry.strip_prefix(HOME_VARIABLE.as_bytes())?.strip_prefix(b"=")?.to_vec());
    let folder = environment.split(|byte| *byte == 0).find_map(named)?;
    Some(String::from_utf8_lossy(&folder).chars().filter(|letter| !letter.is_control()).collect())
}

#[cfg(target_os = "linux")]
fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    matches!(after_name(&stat).and_then(|rest| rest.split(' ').next()), Some("Z" | "X"))
}

#[cfg(not(target_os = "linux"))]
fn is_zombie(_pid: u32) -> bool {
    false
}

/// Field 22 of `/proc/PID/stat`.
#[cfg(target_os = "linux")]
fn start_time_of_stat(stat: &str) -> Option<u64> {
    // What follows the name begins with field 3.
    after_name(stat)?.split(' ').nth(19)?.parse().ok()
}

/// The name, field 2, may itself hold spaces and parentheses; the last parenthesis ends it.
#[cfg(target_os = "linux")]
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(") ").map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_name_with_parentheses_does_not_confuse() {
        let fields: Vec<_> = (4..=30).map(|n: u32| n.to_string()).collect();
        let stat = format!("17 (a) b (c) S {}", fields.join(" "));
        assert_eq!(start_time_of_stat(&stat), Some(22));
        assert_eq!(start_time_of_stat("17 (a"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_holds_a_lock_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = std::fs::File::create(&path).unwrap();
        assert_eq!(lock_holder(&path), None, "open is not locked");
        file.lock_shared().unwrap();
        assert_eq!(lock_holder(&path), None, "shared is not held");
        file.lock().unwrap();
        assert_eq!(lock_holder(&path).unwrap().pid, std::process::id());
        std::fs::remove_file(&path).unwrap();
        std::fs::File::create(&path).unwrap();
        assert_eq!(lock_holder(&path), None, "it is another file by now");
    }

    #[test]
    fn the_owner_of_a_port_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if cfg!(target_os = "linux") {
            assert!(port_owner(port).ends_with(&format!("(process {})", std::process::id())));
        }
        drop(listener);
        assert_eq!(port_owner(port), "another program");
        // Linux has all of 127.0.0.0/8.
        if let Ok(_elsewhere) = std::net::TcpListener::bind(("127.0.0.2", port)) {
            assert_eq!(port_owner(port), "another program");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs a process to kill")]
    fn only_the_process_that_is_meant_is_killed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let start = start_time(child.id()).unwrap();
        assert!(is_running(child.id(), start));
        assert!(!kill_verified(child.id(), start + 1));
        assert!(!kill_verified(child.id(), 0));
        assert!(child.try_wait().unwrap().is_none(), "it still runs");
        assert!(kill_verified(child.id(), start));
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        assert!(!kill_verified(child.id(), start));
        assert!(!kill_verified(std::process::id(), own_start_time()));
    }
}
