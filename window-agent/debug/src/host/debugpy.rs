//! Takes the 40 ms out of each answer of a Python program that an editor debugs.
//!
//! Between debugpy's adapter and the program, both ends write small messages in a row with Nagle's algorithm on, and
//! each second one waits for an acknowledgement of the first, which comes 40 ms later. What Baton starts itself needs no
//! adapter in between; what an editor starts has one.

use std::collections::BTreeSet;
use std::path::Path;

use super::nodelay::{self, Connection};

/// Lets the adapters of debugpy that this user runs, and their programs, write to each other at once. Gives how many
/// ends of connections that are; doing it again does no harm.
///
/// Reads files of every process of the machine: some milliseconds, on a thread that may block.
pub(crate) fn hasten() -> usize {
    let all = baton_agent_base::process::all();
    let adapters: BTreeSet<i32> = all.iter().copied().filter(|pid| is_adapter(*pid)).collect();
    let programs = all.into_iter().filter(|pid| is_python(*pid)).collect();
    hasten_between(&adapters, &programs)
}

fn hasten_between(adapters: &BTreeSet<i32>, programs: &BTreeSet<i32>) -> usize {
    let all = nodelay::connections();
    let theirs: Vec<Connection> = adapters.iter().flat_map(|pid| nodelay::held(*pid, &all)).collect();
    let is_met = |end: &&Connection| theirs.iter().any(|own| (own.own, own.other) == (end.other, end.own));
    let ends = theirs.iter().chain(all.iter().filter(is_met));
    nodelay::hasten(&adapters.union(programs).copied().collect(), &ends.map(|end| end.inode).collect())
}

/// `python -m debugpy.adapter`, or a path that ends with its folder.
fn is_adapter(pid: i32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).any(names_adapter)
}

fn names_adapter(argument: &[u8]) -> bool {
    argument == b"debugpy.adapter" || argument.ends_with(b"debugpy/adapter")
}

fn is_python(pid: i32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    program.file_name().map(Path::new).and_then(Path::to_str).is_some_and(|name| name.contains("python"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn both_ends_of_what_an_adapter_holds_write_at_once() {
        use std::net::{TcpListener, TcpStream};

        let pair = || {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let (one, other) = pair();
        let own = BTreeSet::from([i32::try_from(std::process::id()).unwrap()]);
        assert_eq!(hasten_between(&BTreeSet::new(), &own), 0, "no adapter, no change");
        assert!(!one.nodelay().unwrap());
        assert!(hasten_between(&own, &own) >= 2);
        assert!(one.nodelay().unwrap() && other.nodelay().unwrap());
    }

    #[test]
    fn adapters_are_known_by_their_command_lines() {
        for line in ["debugpy.adapter", "/ext/ms-python.debugpy/bundled/libs/debugpy/adapter"] {
            assert!(names_adapter(line.as_bytes()), "{line}");
        }
        for line in ["debugpy", "debugpy/launcher", "my_debugpy.adapter.py"] {
            assert!(!names_adapter(line.as_bytes()), "{line}");
        }
    }
}
