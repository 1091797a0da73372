//! Takes the 40 ms out of each answer of a program that node runs.
//!
//! Node's inspector writes messages in a row, with Nagle's algorithm on: the second one lies in node's socket until
//! js-debug's kernel acknowledges the first, which by default is 40 ms later. JavaScript can neither acknowledge
//! sooner nor reach that socket, and js-debug connects only when its session runs. But the socket is one object for
//! whoever has it open: this opens node's end a second time, says that it is to write at once, and closes it again.
//! Where that cannot be done (not Linux 5.6 or later, or not permitted) everything works as before, 40 ms later.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::nodelay;

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

/// Lets the programs of a session that carry its mark write at once (without a mark: all of this user that js-debug
/// has started), and the one behind `attached`, a port of this machine that was attached to. Gives how many connections
/// that are; doing it again does no harm.
///
/// Reads files of every process of the machine: some milliseconds, on a thread that may block.
pub(crate) fn hasten(mark: Option<&str>, attached: Option<u16>) -> usize {
    let entry = mark.map(|mark| format!("{}={mark}", baton_agent_base::process::MARK));
    let mut inspectors: Vec<Inspector> = baton_agent_base::process::all()
        .into_iter()
        .filter_map(|pid| watched(pid, entry.as_deref().map(str::as_bytes)))
        .collect();
    inspectors.extend(attached.map(|port| Inspector { port, pid: None }));
    hasten_all(&inspectors)
}

/// What this process watches, if it is a watchdog and what it watches carries the mark, when there is one.
fn watched(pid: i32, mark: Option<&[u8]>) -> Option<Inspector> {
    let environment = baton_agent_base::process::environment_of(pid)?;
    let told = environment.split(|&byte| byte == 0).find_map(|line| line.strip_prefix(WATCHDOG))?;
    let inspector = parse(told)?;
    let of_program = baton_agent_base::process::environment_of(inspector.pid?)?;
    let is_meant = |mark: &[u8]| of_program.split(|&byte| byte == 0).any(|line| line == mark);
    mark.is_none_or(is_meant).then_some(inspector)
}

fn parse(told: &[u8]) -> Option<Inspector> {
    let watched: Watched = serde_json::from_slice(told).ok()?;
    // ws://127.0.0.1:38815/004e42aa-...
    let (_, rest) = watched.inspector.split_once("://")?;
    let (_, port) = rest.split('/').next()?.rsplit_once(':')?;
    Some(Inspector { port: port.parse().ok()?, pid: Some(watched.pid.parse().ok()?) })
}

fn hasten_all(inspectors: &[Inspector]) -> usize {
    if inspectors.is_empty() {
        return 0;
    }
    let is_meant = |port| inspectors.iter().any(|inspector| inspector.port == port);
    let ends = nodelay::connections().into_iter().filter(|connection| is_meant(connection.own));
    let inodes: BTreeSet<u64> = ends.map(|connection| connection.inode).collect();
    let known: Option<Vec<i32>> = inspectors.iter().map(|inspector| inspector.pid).collect();
    let holders: BTreeSet<i32> = known.unwrap_or_else(baton_agent_base::process::all).into_iter().collect();
    nodelay::hasten(&holders, &inodes)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[cfg(target_os = "linux")]
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
        assert_eq!(hasten_all(&[Inspector { port, pid: Some(own) }]), 1);
        assert!(inspector.nodelay().unwrap());
        assert!(!debugger.nodelay().unwrap() && !other.nodelay().unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_holds_a_port_that_was_attached_to_is_found() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let inspector = Inspector { port, pid: None };
        assert_eq!(hasten_all(&[inspector]), 0, "nobody is connected");
        let _client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(hasten_all(&[inspector]), 1);
        assert!(accepted.nodelay().unwrap());
    }

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
}
