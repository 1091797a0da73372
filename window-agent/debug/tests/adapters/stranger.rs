//! Another user of the machine: what of a session they can reach, and what they try there.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_link, read_to_string};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde_json::json;

/// The user `nobody`.
pub(crate) const STRANGER: u32 = 65534;

/// How long an answer is awaited: on loopback one comes at once, and an adapter that runs something tells that.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Does something as another user: to Linux a user belongs to a thread, and to the sockets that it makes.
pub(crate) fn as_stranger<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let act = || {
        let (uid, gid) = (Uid::from_raw(STRANGER), Gid::from_raw(STRANGER));
        let became = set_thread_groups(&[])
            .and_then(|()| set_thread_res_gid(gid, gid, gid))
            .and_then(|()| set_thread_res_uid(uid, uid, uid));
        became.expect("run the tests of the adapters as root: they need a second user");
        act()
    };
    std::thread::scope(|scope| scope.spawn(act).join()).unwrap()
}

/// Where processes listen.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    pub(crate) ports: BTreeSet<u16>,
    pub(crate) paths: BTreeSet<PathBuf>,
}

impl Sockets {
    /// All ports of this machine on which something listens.
    pub(crate) fn listening() -> Self {
        let lines = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().flat_map(table);
        let ports = lines.filter(|line| line[3] == LISTENS).map(|line| port_of(&line[1]));
        Self { ports: ports.collect(), ..Self::default() }
    }

    /// The ports of these that were not there.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self { ports: &self.ports - &before.ports, ..Self::default() }
    }

    /// The ports of these that are among others.
    pub(crate) fn among(&self, others: &Self) -> Self {
        Self { ports: &self.ports & &others.ports, ..Self::default() }
    }

    /// Those of some processes. Nothing of them listens to other machines.
    pub(crate) fn of(pids: &BTreeSet<i32>) -> Self {
        let inodes: BTreeSet<String> = pids.iter().flat_map(|&pid| inodes_of(pid)).collect();
        let mut sockets = Self::default();
        for line in ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().flat_map(table) {
            if line[3] == LISTENS && inodes.contains(&line[9]) {
                let (address, _) = line[1].rsplit_once(':').unwrap();
                assert!(LOOPBACK.contains(&address), "{pids:?} listen to other machines on {address}");
                sockets.ports.insert(port_of(&line[1]));
            }
        }
        for line in table("/proc/net/unix") {
            /// The kernel's `__SO_ACCEPTCON`.
            const ACCEPTS: &str = "00010000";
            if line[3] == ACCEPTS && inodes.contains(&line[6]) {
                sockets.paths.insert(PathBuf::from(line.get(7).map_or("", String::as_str)));
            }
        }
        sockets
    }

    /// Tries everything on all of them. `marker` is a file that nobody is to make.
    pub(crate) fn attack(&self, marker: &Path) {
        let tries: Vec<(u16, &str, Vec<u8>)> =
            self.ports.iter().flat_map(|&port| tries(port, marker)).collect();
        let answers: Vec<String> = as_stranger(|| {
            std::thread::scope(|scope| {
                let all: Vec<_> =
                    tries.iter().map(|(port, _, bytes)| scope.spawn(|| ask(*port, bytes))).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            })
        });
        for ((port, what, _), answer) in tries.iter().zip(answers) {
            println!("{port} {what}: {:?}", answer.lines().next().unwrap_or_default());
            // Node answers HTTP with its version, or with an error. All else is silent.
            let leaks = ["\"seq\"", "ws://", "ws=", "devtools", " 101 ", "JDWP-Handshake"];
            let leaked: Vec<&&str> = leaks.iter().filter(|leak| answer.contains(**leak)).collect();
            assert_eq!(leaked, Vec::<&&str>::new(), "port {port} answers a stranger's {what}: {answer}");
            assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "port {port}, {what}: {answer}");
        }
        for path in &self.paths {
            let connected = as_stranger(|| UnixStream::connect(path).err().map(|error| error.kind()));
            let denied = Some(std::io::ErrorKind::PermissionDenied);
            assert_eq!(connected, denied, "a stranger's connection to {}", path.display());
        }
        assert!(!marker.exists(), "a stranger's program has run");
    }
}

/// This process, and what of debug sessions descends from it: found quickly, for a port may be open for a moment.
pub(crate) fn family() -> BTreeSet<i32> {
    let mut found = BTreeSet::from([i32::try_from(std::process::id()).unwrap()]);
    let mut parents: Vec<i32> = found.iter().copied().collect();
    while let Some(parent) = parents.pop() {
        let threads = read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let children = threads.filter_map(|thread| read_to_string(thread.path().join("children")).ok());
        for child in children.flat_map(|all| all.split(' ').flat_map(str::parse).collect::<Vec<i32>>()) {
            let environment = std::fs::read(format!("/proc/{child}/environ")).unwrap_or_default();
            if String::from_utf8_lossy(&environment).contains("BATON_DEBUG_SESSION=") && found.insert(child) {
                parents.push(child);
            }
        }
    }
    found
}

/// The kernel's `TCP_LISTEN`.
const LISTENS: &str = "0A";

/// As the kernel writes them: 127.0.0.1, ::1 and ::ffff:127.0.0.1.
const LOOPBACK: [&str; 3] =
    ["0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"];

fn table(path: &str) -> Vec<Vec<String>> {
    let lines = read_to_string(path).unwrap();
    let split = |line: &str| line.split_ascii_whitespace().map(str::to_owned).collect();
    lines.lines().skip(1).map(split).collect()
}

fn port_of(address: &str) -> u16 {
    u16::from_str_radix(address.rsplit_once(':').unwrap().1, 16).unwrap()
}

/// Sockets that a process has open, as the kernel's tables number them.
fn inodes_of(pid: i32) -> Vec<String> {
    let files = read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let socket = |path: PathBuf| {
        let link = read_link(path).ok()?.to_str()?.to_owned();
        Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    files.filter_map(|file| socket(file.path())).collect()
}

/// What a stranger says to a port, whatever listens there.
fn tries(port: u16, marker: &Path) -> Vec<(u16, &'static str, Vec<u8>)> {
    let get = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{more}\r\n").into_bytes()
    };
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let guess = format!("/{}", uuid::Uuid::new_v4());
    vec![
        (port, "launch", launch(marker)),
        (port, "list of debuggees", get("/json/list", "")),
        (port, "list of debuggees, the older way", get("/json", "")),
        (port, "version", get("/json/version", "")),
        (port, "upgrade", get("/", upgrade)),
        (port, "upgrade of a guess", get(&guess, upgrade)),
        (port, "handshake of Java", b"JDWP-Handshake".to_vec()),
        (port, "question of gdb", b"+$qSupported:multiprocess+#c6".to_vec()),
    ]
}

/// A launch that makes the file, for every adapter there is.
fn launch(marker: &Path) -> Vec<u8> {
    let touch = format!("touch {}", marker.display());
    let launch = json!({
        "type": "pwa-node", "request": "launch", "name": "x", "cwd": "/", "noDebug": true,
        "console": "internalConsole", "terminal": "console", "stopOnEntry": false,
        "runtimeExecutable": "/usr/bin/touch", "runtimeArgs": [marker],
        "program": "/usr/bin/touch", "args": [marker], "mode": "exec",
        "python": ["/bin/sh", "-c", touch], "code": "1",
        "initCommands": [format!("platform shell {touch}")],
        "preRunCommands": [format!("platform shell {touch}")],
    });
    let requests = [
        json!({"command": "initialize", "arguments": {"adapterID": "x", "pathFormat": "path"}}),
        json!({"command": "launch", "arguments": launch}),
        json!({"command": "setBreakpoints", "arguments": {"source": {"path": "/x"}, "breakpoints": []}}),
        json!({"command": "configurationDone", "arguments": {}}),
        json!({"command": "threads", "arguments": {}}),
    ];
    let mut bytes = Vec::new();
    for (mut request, seq) in requests.into_iter().zip(1..) {
        request["type"] = json!("request");
        request["seq"] = json!(seq);
        let body = request.to_string();
        bytes.extend(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes());
    }
    bytes
}

/// Says it, and gives what comes back before the other end closes or falls silent.
fn ask(port: u16, bytes: &[u8]) -> String {
    let hosts = ["127.0.0.1", "::1"];
    let Some(mut stream) = hosts.into_iter().find_map(|host| TcpStream::connect((host, port)).ok()) else {
        return String::new();
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    let _ = stream.write_all(bytes);
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}
