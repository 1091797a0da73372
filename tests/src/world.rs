//! One state folder, one coordinator, any number of headless windows: all real processes.

mod owned;
mod windows;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use baton_proto::control::{Status, WindowState, WindowStatus};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use tempfile::TempDir;

use crate::client::{Client, ClientKind};
use crate::process::{await_some, command, is_alive, of_home, signal};
use crate::user::User;
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
    /// Whose processes they are, when not ours.
    owner: Option<User>,
    may_leave_processes: bool,
}

/// How a window is started.
#[derive(Default)]
pub struct WindowOptions {
    /// `--no-auto-start`.
    pub no_auto_start: bool,
    /// Nothing it or what it starts writes to a file gets there, as on a full disk; see [`space_again`].
    pub full_disk: bool,
    /// Folder to open; a copy of the fixture project of the window's name otherwise.
    pub folder: Option<PathBuf>,
    /// What the window calls itself, where several have one name; otherwise the name that the test has for it.
    pub title: Option<String>,
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
        let (windows, owner) = (BTreeMap::new(), None);
        Self {
            temp,
            port,
            _reservation: reservation,
            windows,
            environment,
            owner,
            may_leave_processes: false,
        }
    }

    /// A world whose processes get one more environment variable.
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The state folder (`BATON_HOME`).
    pub fn home(&self) -> PathBuf {
        // In a folder where the user may make it.
        let of_user = self.owner.map(|_| "user/.local/state/baton");
        self.temp.path().join(of_user.unwrap_or("state"))
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
        let mut baton = self.command(self.program("baton"));
        baton.args(arguments);
        baton
    }

    /// The same; nothing it or what it starts writes to a file gets there, see [`space_again`].
    pub fn baton_without_space(&self, arguments: &[&str]) -> Command {
        // The signal that comes with the limit is ignored, so that a write fails as it does without space.
        let mut shell = self.command("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -S -f 0; exec \"$0\" \"$@\""]);
        shell.arg(self.program("baton")).args(arguments);
        shell
    }

    /// A program of ours that the world's user can run.
    fn program(&self, name: &str) -> PathBuf {
        match self.owner {
            Some(_) => self.temp.path().join("bin").join(name),
            None => place::program(name),
        }
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
        if let Some(owner) = self.owner {
            command.uid(owner.id()).gid(owner.id()).current_dir(self.temp.path().join("user"));
        }
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

    /// The client token.
    pub fn token(&self) -> String {
        self.baton_ok(&["token"])
    }

    /// An official MCP client, connected to the stable URL, which offers it the tools of `crate::story` as well.
    pub fn client(&self, kind: ClientKind) -> Client {
        Client::connect(self, kind, &format!("{}?toolsets=debugger,debug,code,windows", self.url()))
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

/// A process that was started with [`WindowOptions::full_disk`] or [`World::baton_without_space`], or by one that was,
/// can write again.
pub fn space_again(pid: u32) {
    set_space(pid, None);
}

/// The same, as far as no file gets longer than so many bytes.
pub fn space_for(pid: u32, n_bytes: u64) {
    set_space(pid, Some(n_bytes));
}

fn set_space(pid: u32, current: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("a process id");
    let before = rustix::process::prlimit(Some(pid), Resource::Fsize, Rlimit { current, maximum: None });
    before.expect("a process of ours takes a limit");
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
    let reserve = |port| {
        let reservation = TcpListener::bind(("127.0.0.2", port)).ok()?;
        TcpListener::bind(("127.0.0.1", port)).ok().map(|_| (port, reservation))
    };
    process::ports_in_turn(PORTS).find_map(reserve).unwrap_or_else(|| panic!("no port of {PORTS:?} is free"))
}
