//! One state folder, one coordinator, any number of headless windows: all real processes.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use baton_proto::control::{Status, WindowState, WindowStatus};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::client::{Client, ClientKind};
use crate::process::{await_some, command, is_alive, of_home, signal};
use crate::{place, process};

/// How long a test waits for what should take milliseconds; generous, because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long everything may take to end by itself when a world ends.
const FAREWELL: Duration = Duration::from_secs(8);
/// Ports of test worlds: below every ephemeral range, above the well-known ones.
const PORTS: std::ops::Range<u16> = 18_000..28_000;

/// A state folder, a port, and the processes that were started for them.
///
/// Dropping it ends all of them; what does not end by itself is killed and fails the test.
pub struct World {
    temp: TempDir,
    port: u16,
    /// Holds 127.0.0.2:port, so that no other world picks the same port while this one lives.
    _reservation: TcpListener,
    windows: BTreeMap<String, Child>,
    environment: Vec<(String, String)>,
    may_leave_processes: bool,
}

/// How a window is started.
#[derive(Default)]
pub struct WindowOptions {
    /// `--no-auto-start`.
    pub no_auto_start: bool,
    /// Folder to open; a copy of the fixture project of the window's name otherwise.
    pub folder: Option<PathBuf>,
}

/// What a command of ours printed, and how it ended.
#[derive(Debug)]
pub struct Printed {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// An empty world: nothing runs yet.
    pub fn new() -> Self {
        let temp = tempfile::Builder::new().prefix("baton-world-").tempdir().expect("a temporary folder");
        let (port, reservation) = reserve_port();
        std::fs::create_dir(temp.path().join("user")).expect("a temporary folder");
        let environment = vec![];
        let windows = BTreeMap::new();
        Self { temp, port, _reservation: reservation, windows, environment, may_leave_processes: false }
    }

    /// A world whose processes get one more environment variable.
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The state folder (`BATON_HOME`).
    pub fn home(&self) -> PathBuf {
        self.temp.path().join("state")
    }

    /// A scratch folder, removed with the world: home folder of the user, projects, logs.
    pub fn scratch(&self) -> &Path {
        self.temp.path()
    }

    /// The coordinator's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The stable URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// A command of the `baton` binary in this world.
    pub fn baton_command(&self, arguments: &[&str]) -> Command {
        let mut baton = self.command(place::program("baton"));
        baton.args(arguments);
        baton
    }

    /// Any program in this world's environment.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = command(program);
        command
            .env("BATON_HOME", self.home())
            .env("BATON_PORT", self.port.to_string())
            .env("BATON_PYTHON", place::python())
            .env("HOME", self.temp.path().join("user"))
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs `baton` to its end.
    pub fn baton(&self, arguments: &[&str]) -> Printed {
        let output = self.baton_command(arguments).output().expect("baton starts");
        Printed {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs `baton`, which must end well; its standard output, trimmed.
    pub fn baton_ok(&self, arguments: &[&str]) -> String {
        let printed = self.baton(arguments);
        assert_eq!(printed.code, 0, "baton {arguments:?}: {}{}", printed.out, printed.err);
        printed.out.trim().to_owned()
    }

    /// Starts a window on a copy of the fixture project of that name, without waiting for it.
    pub fn start_window(&mut self, name: &str, options: WindowOptions) {
        let folder = options.folder.unwrap_or_else(|| {
            let copy = self.folder(name);
            if !copy.exists() {
                place::copy_folder(&place::project(name), &copy);
            }
            copy
        });
        let log_path = self.temp.path().join(format!("{name}.log"));
        let log = File::options().create(true).append(true).open(log_path).expect("a temporary file");
        let mut baton = self.baton_command(&["window"]);
        baton.arg(folder).args(["--name", name]);
        if options.no_auto_start {
            baton.arg("--no-auto-start");
        }
        baton.stdout(log.try_clone().expect("a descriptor")).stderr(log);
        let child = baton.spawn().expect("baton starts");
        self.windows.insert(name.to_owned(), child);
    }

    /// Starts a window and waits until the coordinator knows it.
    pub fn window(&mut self, name: &str) -> WindowStatus {
        self.window_with(name, WindowOptions::default())
    }

    /// [`World::window`] with options.
    pub fn window_with(&mut self, name: &str, options: WindowOptions) -> WindowStatus {
        self.start_window(name, options);
        let status =
            self.await_status(&format!("window {name} registers"), |status| find(status, name).is_some());
        find(&status, name).expect("it was just there").clone()
    }

    /// The folder of a window started on a fixture project.
    pub fn folder(&self, name: &str) -> PathBuf {
        let scratch = self.temp.path().canonicalize().expect("the temporary folder is there");
        scratch.join("projects").join(name)
    }

    /// What `baton status --json` says; `None` while no coordinator runs.
    pub fn status(&self) -> Option<Status> {
        let printed = self.baton(&["status", "--json"]);
        match printed.code {
            0 => {
                Some(serde_json::from_str(&printed.out).unwrap_or_else(|error| {
                    panic!("status is not what it promises: {error}: {}", printed.out)
                }))
            }
            // Not running, or running and silent.
            3 | 69 => None,
            code => panic!("baton status ended {code}: {}{}", printed.out, printed.err),
        }
    }

    /// Waits until the status is as wanted.
    pub fn await_status(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        let start = Instant::now();
        let mut last = None;
        let found = await_some(PATIENCE, || {
            last = self.status();
            last.clone().filter(|status| wanted(status))
        });
        found.unwrap_or_else(|| {
            panic!("not within {:?}: {what}; the last status was {last:#?}\n{}", start.elapsed(), self.logs())
        })
    }

    /// Waits until the named window is live.
    pub fn await_live(&self, name: &str) -> Status {
        self.await_status(&format!("{name} is live"), |status| live_name(status) == Some(name))
    }

    /// Waits until nobody is live and no place is held.
    pub fn await_nobody_live(&self) -> Status {
        self.await_status("nobody is live", |status| status.live.is_none() && status.awaiting.is_none())
    }

    /// `baton take NAME`.
    pub fn take(&self, name: &str) {
        self.baton_ok(&["take", name]);
    }

    /// The coordinator's process.
    pub fn coordinator_pid(&self) -> u32 {
        self.status().expect("a coordinator runs").pid
    }

    /// The agent of a window.
    pub fn agent_pid(&self, name: &str) -> u32 {
        let status = self.status().expect("a coordinator runs");
        find(&status, name).unwrap_or_else(|| panic!("there is no window {name}")).pid
    }

    /// The supervisor of a window.
    pub fn supervisor_pid(&self, name: &str) -> u32 {
        self.windows[name].id()
    }

    /// Kills the supervisor and the agent of a window at one blow: the window is gone for good.
    pub fn kill_window(&mut self, name: &str) {
        let agent = self.agent_pid(name);
        let mut supervisor = self.windows.remove(name).expect("the window was started");
        supervisor.kill().expect("the supervisor runs");
        supervisor.wait().expect("a killed child ends");
        if is_alive(agent) {
            process::kill9(agent);
        }
        // Until the coordinator has noticed, a call may still be written to it, and end as unknown.
        self.await_status("the death is noticed", |status| live_name(status) != Some(name));
    }

    /// Ends a window as a user closes one.
    pub fn close_window(&mut self, name: &str) {
        let mut supervisor = self.windows.remove(name).expect("the window was started");
        signal(supervisor.id(), Signal::TERM);
        supervisor.wait().expect("a child ends");
    }

    /// The client token.
    pub fn token(&self) -> String {
        self.baton_ok(&["token"])
    }

    /// An official MCP client, connected to the stable URL.
    pub fn client(&self, kind: ClientKind) -> Client {
        Client::connect(self, kind, &self.url())
    }

    /// What every process logged: for the person who reads a failure.
    pub fn logs(&self) -> String {
        let mut all = String::new();
        let coordinator = self.home().join("logs");
        for folder in [self.temp.path(), &coordinator] {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                let tail: Vec<&str> = text.lines().rev().take(30).collect();
                if !tail.is_empty() {
                    let lines: Vec<&str> = tail.into_iter().rev().collect();
                    all += &format!("--- {}\n{}\n", entry.path().display(), lines.join("\n"));
                }
            }
        }
        all
    }

    /// Allows processes to be left when the world ends (they are killed): for tests that stop or break them.
    pub fn may_leave_processes(&mut self) {
        self.may_leave_processes = true;
    }

    /// Leaves everything running and the folder in place; says what was started.
    pub fn leave_running(mut self) -> Vec<(u32, String)> {
        self.temp.disable_cleanup(true);
        let processes = of_home(&self.home());
        std::mem::forget(self);
        processes
    }

    /// Ends everything; the processes that did not end by themselves and had to be killed.
    pub fn end(&mut self) -> Vec<(u32, String)> {
        for child in self.windows.values() {
            if is_alive(child.id()) {
                signal(child.id(), Signal::TERM);
            }
        }
        for child in std::mem::take(&mut self.windows).values_mut() {
            let id = child.id();
            if await_some(FAREWELL, || (!is_alive(id)).then_some(())).is_some() {
                // Reaps it; it has ended.
                let _ = child.wait();
            }
        }
        if !of_home(&self.home()).is_empty() {
            let _ = self.baton(&["down"]);
        }
        let home = self.home();
        if await_some(FAREWELL, || of_home(&home).is_empty().then_some(())).is_some() {
            return vec![];
        }
        let survivors = of_home(&home);
        for (pid, _) in &survivors {
            if is_alive(*pid) {
                process::kill9(*pid);
            }
        }
        survivors
    }
}

impl Drop for World {
    #[expect(clippy::print_stdout, reason = "a failing test shows what its processes logged")]
    fn drop(&mut self) {
        let logs = if std::thread::panicking() { self.logs() } else { String::new() };
        let survivors = self.end();
        if std::thread::panicking() {
            println!("{logs}");
        } else if !self.may_leave_processes {
            assert!(survivors.is_empty(), "left running and killed: {survivors:?}");
        }
    }
}

/// The window of that name.
pub fn find<'a>(status: &'a Status, name: &str) -> Option<&'a WindowStatus> {
    status.windows.iter().find(|window| window.name == name)
}

/// Name of the live window.
pub fn live_name(status: &Status) -> Option<&str> {
    let live = status.live.as_ref()?;
    status.windows.iter().find(|window| window.id == *live).map(|window| window.name.as_str())
}

/// Where the named window stands.
pub fn state_of(status: &Status, name: &str) -> Option<WindowState> {
    find(status, name).map(|window| window.state)
}

fn reserve_port() -> (u16, TcpListener) {
    let n_ports = u32::from(PORTS.end - PORTS.start);
    let first = std::process::id().wrapping_mul(37) % n_ports;
    for step in 0..n_ports {
        let port = PORTS.start + u16::try_from((first + step) % n_ports).expect("below the range's length");
        let Ok(reservation) = TcpListener::bind(("127.0.0.2", port)) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return (port, reservation);
        }
    }
    panic!("no port of {PORTS:?} is free");
}
