//! Starting, signalling and finding processes of a test.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// How often something that offers no event is looked at.
const POLL: Duration = Duration::from_millis(5);

/// A command; tests start programs through this alone.
#[expect(clippy::disallowed_methods, reason = "the one place where tests start programs")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Sends a signal to a process that the test started, directly or not.
pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid is positive");
    kill_process(pid, signal).expect("the process is there to be signalled");
}

/// `kill -9`.
pub fn kill9(pid: u32) {
    signal(pid, Signal::KILL);
}

/// The same, of a process that may end by itself meanwhile.
pub fn kill9_if_there(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid is positive");
    let killed = kill_process(pid, Signal::KILL);
    assert!(matches!(killed, Ok(()) | Err(Errno::SRCH)), "{killed:?}");
}

/// Looks until `found` gives something; `None` when it does not in time.
pub fn await_some<T>(within: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(value) = found() {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL);
    }
}

/// True while the process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Processes whose environment says `BATON_HOME=home`: all that a world started, however indirectly.
pub fn of_home(home: &Path) -> Vec<(u32, String)> {
    let wanted = [b"BATON_HOME=".as_slice(), home.as_os_str().as_encoded_bytes()].concat();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_ours = environment.split(|byte| *byte == 0).any(|variable| variable == wanted);
        if is_ours && pid != std::process::id() && is_alive(pid) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned()));
        }
    }
    found
}

/// Resident memory of a process in KiB.
pub fn rss_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// Processor time that a process has used.
pub fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // Fields 14 and 15 of the line; what follows the name begins with field 3.
    let ticks = after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 1_000 / rustix::param::clock_ticks_per_second())
}

/// A process and all that it started and that still have it above them, itself first.
pub fn tree(root: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pairs: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut found = vec![root];
    let mut at = 0;
    while let Some(above) = found.get(at).copied() {
        found.extend(pairs.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        at += 1;
    }
    found
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// All these ports; each process begins elsewhere.
pub fn ports_in_turn(ports: Range<u16>) -> impl Iterator<Item = u16> {
    let n_ports = ports.end - ports.start;
    let first = std::process::id().wrapping_mul(37) % u32::from(n_ports);
    let first = u16::try_from(first).expect("below the range's length");
    (first..n_ports).chain(0..first).map(move |step| ports.start + step)
}

/// A port of these that nobody listens on.
pub fn free_port(ports: Range<u16>) -> Option<u16> {
    ports_in_turn(ports).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
}

/// The loopback port on which a process listens: how a test reaches the agent of a window without being told.
pub fn listening_port(pid: u32) -> Option<u16> {
    listening_ports(pid).first().copied()
}

/// All TCP ports on which a process listens.
pub fn listening_ports(pid: u32) -> Vec<u16> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let sockets: Vec<String> = folder
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?;
            Some(target.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
        })
        .collect();
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let found = lines.filter_map(|line| {
        const LISTEN: &str = "0A";
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_wanted = *fields.get(3)? == LISTEN && sockets.iter().any(|inode| inode == fields[9]);
        let port = fields[1].split(':').nth(1)?;
        is_wanted.then(|| u16::from_str_radix(port, 16).ok()).flatten()
    });
    found.collect()
}
