//! One state folder on a small disk of its own, two builds, a few windows: all real processes, looked at without trust.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use baton_proto::control::{Status, WindowState};
use baton_tests::place;
use baton_tests::process::{await_some, command, free_port, is_alive, of_home};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Names of the windows.
pub(crate) const WINDOWS: [&str; 4] = ["w0", "w1", "w2", "w3"];
/// Size of the disk that holds the state folder.
const DISK: &str = "size=24m,mode=0755";
/// Longest run of a command of ours.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(40);
/// How long everything may take to end by itself when a world ends.
const FAREWELL: Duration = Duration::from_secs(12);
/// Ports of chaos: above those of the other test worlds, below every ephemeral range.
pub(crate) const PORTS: std::ops::Range<u16> = 28_000..32_000;

/// What a command of ours printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Printed {
    /// Exit code; -1 when a signal ended it.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// How a world is set up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    /// libfaketime, when clocks are to be stepped.
    pub(crate) faketime: Option<PathBuf>,
    /// Whether the state folder has a disk of its own, which only root can make.
    pub(crate) has_disk: bool,
}

/// See the file.
pub(crate) struct World {
    temp: TempDir,
    setting: Setting,
    port: AtomicU16,
    token: String,
    builds: [PathBuf; 2],
    windows: Mutex<BTreeMap<&'static str, (Child, usize)>>,
}

impl World {
    /// A coordinator and all windows, the first one live.
    pub(crate) fn start(setting: Setting) -> Result<Self> {
        let temp = tempfile::Builder::new().prefix("baton-chaos-").tempdir()?;
        for folder in ["user", "disk", "builds/a", "builds/b"] {
            std::fs::create_dir_all(temp.path().join(folder))?;
        }
        if setting.has_disk {
            let disk = temp.path().join("disk");
            let status = command("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(&disk).status()?;
            ensure!(
                status.success(),
                "no small disk could be mounted; run this as root, or leave out `disk-*`"
            );
        }
        std::fs::write(temp.path().join("clock"), "+0\n")?;
        let builds = ["a", "b"].map(|build| temp.path().join("builds").join(build));
        make_builds(&builds)?;
        let port = free_port(PORTS).context("no port is free")?;
        let mut world = Self {
            temp,
            setting,
            port: AtomicU16::new(port),
            token: String::new(),
            builds,
            windows: Mutex::default(),
        };
        let up = world.baton(&["up", "--port", &port.to_string()]);
        ensure!(up.code == 0, "baton up: {}", up.err);
        world.token = world.read_token().context("baton token prints no token")?;
        for name in WINDOWS {
            std::fs::create_dir_all(world.folder(name))?;
            world.start_window(name, 0)?;
        }
        let is_ready = || world.status().filter(|status| problem(status).is_none());
        ensure!(
            await_some(COMMAND_TIMEOUT, is_ready).is_some(),
            "the windows do not start:\n{}",
            world.logs()
        );
        Ok(world)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.temp.path().join("disk/state")
    }

    /// The disk that the state folder is on.
    pub(crate) fn disk(&self) -> PathBuf {
        self.temp.path().join("disk")
    }

    pub(crate) fn scratch(&self) -> &Path {
        self.temp.path()
    }

    pub(crate) fn folder(&self, window: &str) -> PathBuf {
        self.temp.path().join("projects").join(window)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    /// The user has moved the port.
    pub(crate) fn moved(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// The client token at the beginning.
    pub(crate) fn token(&self) -> String {
        self.token.clone()
    }

    /// The client token as `baton token` prints it now.
    pub(crate) fn read_token(&self) -> Option<String> {
        let printed = self.baton(&["token"]);
        (printed.code == 0).then(|| printed.out.trim().to_owned())
    }

    /// Steps the clock of all processes.
    pub(crate) fn set_clock(&self, offset_s: i64) {
        // Replaced at one blow, so that nobody reads half of it.
        let (fresh, path) = (self.temp.path().join("clock.new"), self.temp.path().join("clock"));
        let written = std::fs::write(&fresh, format!("{offset_s:+}\n"));
        written.and_then(|()| std::fs::rename(fresh, path)).expect("a temporary folder can be written to");
    }

    /// The program of a build.
    pub(crate) fn program(&self, build: usize) -> PathBuf {
        self.builds[build].join("baton")
    }

    /// A command of that build's `baton`.
    pub(crate) fn baton_command(&self, build: usize, arguments: &[&str]) -> Command {
        let mut baton = command(self.program(build));
        baton
            .args(arguments)
            .env("BATON_HOME", self.home())
            .env("HOME", self.temp.path().join("user"))
            .env("NO_PROXY", "127.0.0.1,localhost")
            .env_remove("BATON_PORT")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .current_dir(self.temp.path())
            .stdin(Stdio::null());
        if let Some(faketime) = &self.setting.faketime {
            baton
                .env("LD_PRELOAD", faketime)
                .env("FAKETIME_TIMESTAMP_FILE", self.temp.path().join("clock"))
                .env("FAKETIME_NO_CACHE", "1")
                .env("FAKETIME_DONT_RESET", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        baton
    }

    /// Runs `baton` to its end, or for as long as anybody would wait.
    pub(crate) fn baton(&self, arguments: &[&str]) -> Printed {
        self.baton_of(0, arguments)
    }

    /// [`World::baton`] of a build.
    pub(crate) fn baton_of(&self, build: usize, arguments: &[&str]) -> Printed {
        let mut baton = self.baton_command(build, arguments);
        let (out, err) = (tempfile::tempfile(), tempfile::tempfile());
        let (out, err) = (out.expect("a temporary file"), err.expect("a temporary file"));
        baton.stdout(out.try_clone().expect("a descriptor")).stderr(err.try_clone().expect("a descriptor"));
        let mut child = baton.spawn().expect("baton starts");
        let ended = await_some(COMMAND_TIMEOUT, || child.try_wait().ok().flatten());
        if ended.is_none() {
            // It hangs: that is told by its code.
            let _ = child.kill();
            let _ = child.wait();
        }
        let code = ended.and_then(|status| status.code()).unwrap_or(-1);
        Printed { code, out: read(out), err: read(err) }
    }

    /// What `baton status --json` says.
    pub(crate) fn status(&self) -> Option<Status> {
        let printed = self.baton(&["status", "--json"]);
        if printed.code == 0 { serde_json::from_str(&printed.out).ok() } else { None }
    }

    /// Starts a window with a build, and lets go of the one of that name.
    pub(crate) fn start_window(&self, name: &'static str, build: usize) -> Result<()> {
        let mut baton = self.baton_command(build, &["window"]);
        baton.arg(self.folder(name)).args(["--name", name]);
        let child = baton.stdout(self.log(name)).stderr(self.log(name)).spawn()?;
        if let Some((mut before, _)) = self.windows().insert(name, (child, build)) {
            // It has ended, or is on its way.
            let _ = before.try_wait();
        }
        Ok(())
    }

    /// Processes of `baton window` that have ended, and how.
    pub(crate) fn ended_windows(&self) -> Vec<(&'static str, String)> {
        let mut windows = self.windows();
        let ended = windows.iter_mut().filter_map(|(name, (child, _))| {
            let status = child.try_wait().ok().flatten()?;
            Some((*name, status.to_string()))
        });
        ended.collect()
    }

    /// The process `baton window` of a window, and its build.
    pub(crate) fn supervisor(&self, name: &str) -> Option<(u32, usize)> {
        self.windows().get(name).map(|(child, build)| (child.id(), *build))
    }

    fn windows(&self) -> MutexGuard<'_, BTreeMap<&'static str, (Child, usize)>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All processes, with their command lines.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        of_home(&self.home())
    }

    /// Processes whose command line has all these words.
    pub(crate) fn find(&self, words: &[&str]) -> Vec<u32> {
        let all = self.processes().into_iter();
        let found =
            all.filter(|(_, line)| words.iter().all(|word| line.split(' ').any(|part| part == *word)));
        found.map(|(pid, _)| pid).collect()
    }

    /// The coordinators; more than one while one follows another.
    pub(crate) fn coordinators(&self) -> Vec<u32> {
        self.find(&["serve"])
    }

    /// The processes that keep the listening socket.
    pub(crate) fn holders(&self) -> Vec<u32> {
        self.find(&["hold-port"])
    }

    /// The agent of a window.
    pub(crate) fn agent(&self, name: &str) -> Option<u32> {
        self.find(&["--window", "--kind", name]).into_iter().next_back()
    }

    /// A log file that processes append to.
    pub(crate) fn log(&self, name: &str) -> File {
        let path = self.temp.path().join(format!("{name}.log"));
        File::options().create(true).append(true).open(path).expect("a temporary file")
    }

    /// The ends of all logs, for the person who reads a failure.
    pub(crate) fn logs(&self) -> String {
        let mut all = String::new();
        for folder in [self.temp.path(), &self.home().join("logs")] {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_log = path.extension().is_some_and(|extension| extension == "log");
                let text = if is_log { std::fs::read_to_string(&path).unwrap_or_default() } else { continue };
                let tail: Vec<&str> = text.lines().rev().take(30).collect();
                let lines: Vec<&str> = tail.into_iter().rev().collect();
                all += &format!("--- {}\n{}\n", path.display(), lines.join("\n"));
            }
        }
        all
    }

    /// Ends everything; says what was left: processes, sockets, temporary files.
    pub(crate) fn end(&self) -> Vec<String> {
        for (pid, _) in self.processes() {
            send(pid, Signal::CONT);
        }
        let supervisors: Vec<u32> = self.windows().values().map(|(child, _)| child.id()).collect();
        for pid in supervisors {
            send(pid, Signal::TERM);
        }
        let deadline = Instant::now() + FAREWELL;
        for (child, _) in self.windows().values_mut() {
            while Instant::now() < deadline && child.try_wait().is_ok_and(|status| status.is_none()) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let down = self.baton(&["down"]);
        let mut left = Vec::new();
        if down.code != 0 {
            left.push(format!("`baton down` ended {}: {}", down.code, down.err.trim()));
        }
        if await_some(FAREWELL, || self.processes().is_empty().then_some(())).is_none() {
            for (pid, line) in self.processes() {
                left.push(format!("process {pid}: {line}"));
                send(pid, Signal::KILL);
            }
        }
        left.extend(strange_files(&self.home()));
        if self.setting.has_disk {
            // The mount ends with our own name space at the latest.
            let _ = command("umount").arg("-l").arg(self.disk()).status();
        }
        left
    }
}

/// Why the status is not the one of a quiet world: all windows there, one of them live.
pub(crate) fn problem(status: &Status) -> Option<String> {
    let n_live = status.windows.iter().filter(|window| window.state == WindowState::Live).count();
    if status.live.is_none() || n_live != 1 {
        return Some(format!("{n_live} windows are live, awaiting {:?}", status.awaiting));
    }
    let is_there =
        |name: &&str| status.windows.iter().any(|window| window.name == **name && window.responsive);
    let missing: Vec<&str> = WINDOWS.into_iter().filter(|name| !is_there(name)).collect();
    (!missing.is_empty()).then(|| format!("not there: {}", missing.join(", ")))
}

/// Sends a signal; the process may have ended.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
        && is_alive(pid.as_raw_nonzero().get().unsigned_abs())
    {
        // It ended in between.
        let _ = kill_process(pid, signal);
    }
}

/// Files of a state folder that nobody reads again.
fn strange_files(home: &Path) -> Vec<String> {
    let (mut folders, mut found) = (vec![home.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_socket = entry.file_type().is_ok_and(|kind| {
                use std::os::unix::fs::FileTypeExt as _;
                kind.is_socket()
            });
            if is_socket {
                found.push(format!("socket {}", path.display()));
            } else if path.is_dir() {
                folders.push(path);
            } else if name.starts_with('.') || name.contains(".tmp") {
                found.push(format!("temporary file {}", path.display()));
            }
        }
    }
    found
}

/// The programs as they were built, and the same with another version in them.
fn make_builds(builds: &[PathBuf; 2]) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let (head, last) = version.split_at(version.len() - 1);
    let newer = format!("{head}{}", if last == "9" { "8" } else { "9" });
    for name in ["baton", "baton-agent"] {
        let program = place::program(name);
        std::fs::copy(&program, builds[0].join(name))?;
        let mut bytes = std::fs::read(&program)?;
        for at in memchr::memmem::find_iter(&bytes.clone(), version.as_bytes()) {
            bytes[at..at + newer.len()].copy_from_slice(newer.as_bytes());
        }
        let path = builds[1].join(name);
        std::fs::write(&path, bytes)?;
        std::fs::set_permissions(&path, std::fs::metadata(&program)?.permissions())?;
    }
    Ok(())
}

fn read(mut file: File) -> String {
    use std::io::{Read as _, Seek as _};
    let mut text = Vec::new();
    // What cannot be read was not printed.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut text));
    String::from_utf8_lossy(&text).into_owned()
}
