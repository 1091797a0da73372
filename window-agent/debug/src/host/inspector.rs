//! Takes the 40 ms out of each answer of a program that node runs.
//!
//! Node's inspector writes messages in a row, with Nagle's algorithm on: the second one lies in node's socket until
//! js-debug's kernel acknowledges the first, which by default is 40 ms later. JavaScript can neither acknowledge
//! sooner nor reach that socket, and js-debug connects only when its session runs. But the socket is one object for
//! whoever has it open: this opens node's end a second time, says that it is to write at once, and closes it again.
//! Where that cannot be done (not Linux 5.6 or later, or not permitted) everything works as before, 40 ms later.

use serde::Deserialize;

/// What js-debug tells its watchdog, which speaks with the program, in its environment.
const WATCHDOG: &[u8] = b"NODE_INSPECTOR_INFO=";

/// What of it is used.
#[derive(Debug, Deserialize)]
struct Watched {
    /// The program's process id.
    pid: String,
    #[serde(rename = "inspectorURL")]
    inspector: String,
}

/// A place where a program waits for its debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inspector {
    port: u16,
    /// Whose it is; when nobody knows, it is looked for.
    pid: Option<i32>,
}

/// Lets the programs of a session that carry its mark write at once, and the one behind `attached`, a port of this
/// machine that was attached to. Gives how many connections that are; doing it again does no harm.
///
/// Reads files of every process of the machine: some milliseconds, on a thread that may block.
pub(crate) fn hasten(mark: &str, attached: Option<u16>) -> usize {
    let entry = format!("{}={mark}", baton_agent_base::process::MARK);
    let mut inspectors: Vec<Inspector> = baton_agent_base::process::all()
        .into_iter()
        .filter_map(|pid| watched(pid, entry.as_bytes()))
        .collect();
    inspectors.extend(attached.map(|port| Inspector { port, pid: None }));
    linux::hasten(&inspectors)
}

/// What this process watches, if it is a watchdog and what it watches carries the mark.
fn watched(pid: i32, mark: &[u8]) -> Option<Inspector> {
    let environment = baton_agent_base::process::environment_of(pid)?;
    let told = environment.split(|&byte| byte == 0).find_map(|line| line.strip_prefix(WATCHDOG))?;
    let inspector = parse(told)?;
    let of_program = baton_agent_base::process::environment_of(inspector.pid?)?;
    of_program.split(|&byte| byte == 0).any(|line| line == mark).then_some(inspector)
}

fn parse(told: &[u8]) -> Option<Inspector> {
    let watched: Watched = serde_json::from_slice(told).ok()?;
    // ws://127.0.0.1:38815/004e42aa-...
    let (_, rest) = watched.inspector.split_once("://")?;
    let (_, port) = rest.split('/').next()?.rsplit_once(':')?;
    Some(Inspector { port: port.parse().ok()?, pid: Some(watched.pid.parse().ok()?) })
}

/// Inodes of the established connections in one of the kernel's tables whose own end is one of these ports.
fn connections(table: &str, is_meant: impl Fn(u16) -> bool) -> impl Iterator<Item = u64> {
    /// The kernel's `TCP_ESTABLISHED`.
    const ESTABLISHED: &str = "01";
    // sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid  timeout inode ...
    table.lines().skip(1).filter_map(move |line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        let is_established = *fields.get(3)? == ESTABLISHED;
        if is_established && is_meant(port) { fields.get(9)?.parse().ok() } else { None }
    })
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;

    use rustix::net::sockopt::set_tcp_nodelay;
    use rustix::process::{ForeignRawFd, Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

    use super::Inspector;

    pub(super) fn hasten(inspectors: &[Inspector]) -> usize {
        if inspectors.is_empty() {
            return 0;
        }
        let is_meant = |port| inspectors.iter().any(|inspector| inspector.port == port);
        let inodes: BTreeSet<u64> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .into_iter()
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .flat_map(|table| super::connections(&table, is_meant).collect::<Vec<_>>())
            .collect();
        if inodes.is_empty() {
            return 0;
        }
        let known: Option<Vec<i32>> = inspectors.iter().map(|inspector| inspector.pid).collect();
        let holders: BTreeSet<i32> =
            known.unwrap_or_else(baton_agent_base::process::all).into_iter().collect();
        holders.into_iter().map(|pid| hasten_process(pid, &inodes)).sum()
    }

    /// How many of these connections the process holds and now writes to at once.
    fn hasten_process(pid: i32, inodes: &BTreeSet<u64>) -> usize {
        let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
        let sockets = files.flatten().filter_map(|file| {
            let link = std::fs::read_link(file.path()).ok()?;
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
            if inodes.contains(&inode) { file.file_name().to_str()?.parse().ok() } else { None }
        });
        sockets.filter(|&socket| write_at_once(pid, socket).is_some()).count()
    }

    fn write_at_once(pid: i32, socket: ForeignRawFd) -> Option<()> {
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty());
        let opened = process.and_then(|process| pidfd_getfd(process, socket, PidfdGetfdFlags::empty()));
        let done = opened.and_then(|socket| set_tcp_nodelay(socket, true));
        done.inspect_err(|error| tracing::info!(pid, %error, "the inspector keeps its delay")).ok()
    }

    #[cfg(test)]
    mod tests {
        use std::net::{TcpListener, TcpStream};

        use super::*;

        #[test]
        fn only_the_inspectors_own_end_is_changed() {
            let pair = || {
                let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
                let port = listener.local_addr().unwrap().port();
                let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
                (port, listener.accept().unwrap().0, client, listener)
            };
            let (port, inspector, debugger, _listener) = pair();
            let (_, other, _client, _other_listener) = pair();
            let own = i32::try_from(std::process::id()).unwrap();
            assert_eq!(hasten(&[Inspector { port, pid: Some(own) }]), 1);
            assert!(inspector.nodelay().unwrap());
            assert!(!debugger.nodelay().unwrap() && !other.nodelay().unwrap());
        }

        #[test]
        fn who_holds_a_port_that_was_attached_to_is_found() {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let inspector = Inspector { port, pid: None };
            assert_eq!(hasten(&[inspector]), 0, "nobody is connected");
            let _client = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            assert_eq!(hasten(&[inspector]), 1);
            assert!(accepted.nodelay().unwrap());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    /// There is no way to another process's sockets.
    pub(super) fn hasten(_inspectors: &[super::Inspector]) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdogs_errand_is_read() {
        let told = r#"{"ipcAddress":"/tmp/node-cdp.1-x.sock","pid":"21679","telemetry":{"cwd":"/"},"scriptName":"/a.js",
            "inspectorURL":"ws://127.0.0.1:38815/004e42aa-6f4e-4752-b558-1efe1b5432","waitForDebugger":true}"#;
        assert_eq!(parse(told.as_bytes()), Some(Inspector { port: 38815, pid: Some(21679) }));
        let six = told.replace("127.0.0.1", "[::1]");
        assert_eq!(parse(six.as_bytes()), Some(Inspector { port: 38815, pid: Some(21679) }));
        for broken in [
            "",
            "{}",
            r#"{"pid":"1","inspectorURL":"ws://x/y"}"#,
            r#"{"pid":"","inspectorURL":"ws://x:1/y"}"#,
        ] {
            assert_eq!(parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn the_kernels_table_is_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:97CF 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0 100 0 0 10 0
   1: 0100007F:97CF 0100007F:EB6E 01 00000000:00000000 00:00000000 00000000     0        0 200 1 0 20 4 30 10 -1
   2: 0100007F:EB6E 0100007F:97CF 01 00000000:00000000 00:00000000 00000000     0        0 300 1 0 20 4 30 10 -1
   3: broken\n";
        let found: Vec<u64> = connections(table, |port| port == 0x97CF).collect();
        assert_eq!(found, [200], "neither what listens nor the debugger's end");
    }
}
