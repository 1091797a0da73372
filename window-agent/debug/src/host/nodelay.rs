//! Lets other processes of this user write at once to connections of this machine that they have open.
//!
//! A socket is one object for whoever has it open: this opens it a second time, says that it is to write at once, and
//! closes it again. Where that cannot be done (not Linux 5.6 or later, or not permitted) nothing changes.

use std::collections::BTreeSet;

/// One end of an established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    /// Its port.
    pub(super) own: u16,
    /// The port of the other end.
    pub(super) other: u16,
    /// Its socket.
    pub(super) inode: u64,
}

/// All of this machine, but for those of other network namespaces.
pub(super) fn connections() -> Vec<Connection> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    let tables = tables.filter_map(|path| std::fs::read_to_string(path).ok());
    tables.flat_map(|table| table.lines().skip(1).filter_map(read).collect::<Vec<_>>()).collect()
}

fn read(line: &str) -> Option<Connection> {
    /// The kernel's `TCP_ESTABLISHED`.
    const ESTABLISHED: &str = "01";
    // sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid  timeout inode ...
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let port = |at: usize| u16::from_str_radix(fields.get(at)?.rsplit_once(':')?.1, 16).ok();
    if *fields.get(3)? != ESTABLISHED {
        return None;
    }
    Some(Connection { own: port(1)?, other: port(2)?, inode: fields.get(9)?.parse().ok()? })
}

/// The sockets that a process has open: their numbers there, and what they are.
fn sockets(pid: i32) -> Vec<(i32, u64)> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let socket = |file: std::fs::DirEntry| {
        let link = std::fs::read_link(file.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((file.file_name().to_str()?.parse().ok()?, inode))
    };
    files.filter_map(socket).collect()
}

/// What a process has open, of these.
pub(super) fn held(pid: i32, among: &[Connection]) -> Vec<Connection> {
    let inodes: BTreeSet<u64> = sockets(pid).into_iter().map(|(_, inode)| inode).collect();
    among.iter().filter(|connection| inodes.contains(&connection.inode)).copied().collect()
}

/// How many of these sockets the processes hold and now write to at once.
pub(super) fn hasten(pids: &BTreeSet<i32>, inodes: &BTreeSet<u64>) -> usize {
    if inodes.is_empty() {
        return 0;
    }
    let held =
        pids.iter().flat_map(|pid| sockets(*pid).into_iter().map(|(socket, inode)| (*pid, socket, inode)));
    let meant = held.filter(|(_, _, inode)| inodes.contains(inode));
    meant.filter(|(pid, socket, _)| write_at_once(*pid, *socket).is_some()).count()
}

#[cfg(target_os = "linux")]
fn write_at_once(pid: i32, socket: i32) -> Option<()> {
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

    let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty());
    let opened = process.and_then(|process| pidfd_getfd(process, socket, PidfdGetfdFlags::empty()));
    let done = opened.and_then(|socket| rustix::net::sockopt::set_tcp_nodelay(socket, true));
    done.inspect_err(|error| tracing::info!(pid, %error, "a debugger's connection keeps its delay")).ok()
}

/// There is no way to another process's sockets.
#[cfg(not(target_os = "linux"))]
fn write_at_once(_pid: i32, _socket: i32) -> Option<()> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:97CF 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0 100 0 0 10 0
   1: 0100007F:97CF 0100007F:EB6E 01 00000000:00000000 00:00000000 00000000     0        0 200 1 0 20 4 30 10 -1
   2: 0100007F:EB6E 0100007F:97CF 01 00000000:00000000 00:00000000 00000000     0        0 300 1 0 20 4 30 10 -1
   3: broken\n";
        let found: Vec<u64> = table
            .lines()
            .skip(1)
            .filter_map(read)
            .filter(|end| end.own == 0x97CF)
            .map(|end| end.inode)
            .collect();
        assert_eq!(found, [200], "neither what listens nor the debugger's end");
    }
}
