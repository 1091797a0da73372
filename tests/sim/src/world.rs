//! Processes and time: each process has a runtime of its own with a clock that stands still, and gets its turn in every
//! step. To kill one is to drop its runtime; to stop one is to give it no turn.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use baton_link::home::{DEFAULT_PORT, Home};
use baton_link::net;
use baton_link::sim::{self, Event, Wish};
use baton_proto::start::Handshake;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::{self, Answered};
use crate::oracle::Oracle;
use crate::parts;

/// Nothing happens in between.
pub(crate) const STEP: Duration = Duration::from_millis(2);
/// Windows of a world.
pub(crate) const WINDOWS: usize = 3;
/// Clients of a world, see [`client`].
pub(crate) const CLIENTS: usize = 7;

/// The folder of each window, a tree of its own: the last one lies in the one before.
const TREES: [&str; WINDOWS] = ["tree-0", "tree-1", "tree-1/nested"];
/// The window whose tree lies in another one.
pub(crate) const INNER: usize = 2;

/// More than a client ever makes: the calls of one that begins anew have names of their own.
const CALLS_OF_A_CLIENT: usize = 1_000;

/// The adapter for the programs of a world; what stands for its own program is never run.
const ADAPTERS: &str = r#"{"adapters": [{
    "name": "scripted", "types": ["scripted"], "languages": ["Script"], "extensions": ["scripted"],
    "commands": [["/bin/sh"]], "transport": "stdio", "tells_exit_code": true, "stop_on_entry": {}
}]}"#;
/// What there is to debug in each tree.
const LAUNCH: &str = r#"{"version": "0.2.0", "configurations": [
    {"type": "scripted", "request": "launch", "name": "program", "program": "${workspaceFolder}/main.scripted"}
]}"#;

/// The program of another version: it is looked at, and never run.
const PROGRAM: &str = "baton";
/// Each of these files tells that there was a coordinator.
const WITNESSES: [&str; 3] = ["state.json", "discovery.json", "coordinator.lock"];

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Coordinator,
    Window(usize),
    Client(usize),
    User,
    Stranger,
}

struct Process {
    pid: u32,
    kind: Kind,
    runtime: Runtime,
    task: JoinHandle<()>,
    /// Since when it gets no turn.
    stopped_at: Option<Duration>,
}

/// All processes, and what is known of them.
pub(crate) struct World {
    folder: PathBuf,
    pub(crate) now: Duration,
    processes: Vec<Process>,
    next_pid: u32,
    /// When a window or a client that has ended is started again.
    again: Vec<(Duration, Kind)>,
    /// How often each client was started.
    n_client_starts: [usize; CLIENTS],
    pub(crate) oracle: Oracle,
}

impl World {
    /// A world in that folder, in which everything starts at once.
    pub(crate) fn new(folder: PathBuf) -> Self {
        let mut world = Self {
            folder,
            now: Duration::ZERO,
            processes: Vec::new(),
            next_pid: 100,
            again: Vec::new(),
            n_client_starts: [0; CLIENTS],
            oracle: Oracle::default(),
        };
        baton_election::keeper::witness::tell(|window, term| {
            sim::note(Event::Granted { window: window.clone(), term });
        });
        world.start(Kind::User, |_| std::future::pending());
        for window in 0..WINDOWS {
            world.start_window(window);
        }
        (0..CLIENTS).for_each(|number| world.start_client(number));
        world
    }

    fn start_client(&mut self, number: usize) {
        let trees = std::array::from_fn(|window| self.tree(window));
        let first_call = CALLS_OF_A_CLIENT * self.n_client_starts[number];
        self.n_client_starts[number] += 1;
        self.start(Kind::Client(number), |home| client::run(home, trees, number, first_call));
    }

    /// Ends a client in the middle of what it does; it begins anew later.
    pub(crate) fn restart_client(&mut self, number: usize, pause: Duration) {
        for pid in self.pids(Kind::Client(number)) {
            self.kill(pid);
            self.oracle.on_client_ends(number);
            self.again.push((self.now + pause, Kind::Client(number)));
        }
    }

    /// The state folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// The folder of a window.
    fn tree(&self, window: usize) -> PathBuf {
        self.folder.join(TREES[window])
    }

    /// Moves the folder of the inner window away, or back.
    pub(crate) fn move_tree(&mut self, is_away: bool) {
        let (place, away) = (self.tree(INNER), self.folder.join("away"));
        let (from, to) = if is_away { (place, away) } else { (away, place) };
        let moved = std::fs::rename(from, to);
        let what = match (moved.is_ok(), is_away) {
            (true, true) => "is moved away",
            (true, false) => "is moved back",
            (false, _) => "is where it was",
        };
        self.tell(&format!("the folder of w{INNER} {what}"));
    }

    fn start<F>(&mut self, kind: Kind, main: impl FnOnce(PathBuf) -> F) -> u32
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let pid = self.next_pid;
        self.next_pid += 1;
        sim::add_process(pid, kind == Kind::Coordinator);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without IO always starts");
        sim::enter(pid);
        let task = runtime.spawn(main(self.home()));
        sim::enter(0);
        self.processes.push(Process { pid, kind, runtime, task, stopped_at: None });
        pid
    }

    pub(crate) fn start_window(&mut self, window: usize) {
        let folder = self.tree(window);
        let pid = self.start(Kind::Window(window), |home| parts::window(home, folder, window));
        self.oracle.on_window_starts(self.now, window);
        self.tell(&format!("window w{window} starts (process {pid})"));
    }

    /// A program that is none of ours takes the coordinators' port, where it is free.
    pub(crate) fn start_stranger(&mut self, time: Duration, is_port_known: bool) {
        if is_port_known && let Ok(home) = Home::open(self.home()) {
            let state = format!("{{\"generation\":1,\"port\":{DEFAULT_PORT}}}");
            let is_left = home.replace("state.json", state.as_bytes()).is_ok();
            self.tell(if is_left { "there was a coordinator before" } else { "nothing is known of before" });
        }
        if self.pids(Kind::Stranger).is_empty() {
            let pid = self.start(Kind::Stranger, |_| parts::stranger(DEFAULT_PORT, time));
            self.tell(&format!("a stranger wants port {DEFAULT_PORT} (process {pid})"));
        }
    }

    fn start_coordinator(
        &mut self,
        by: u32,
        wish: (Option<u16>, Option<u16>),
        inheritance: Option<(OwnedFd, Arc<AtomicU32>)>,
        said: oneshot::Sender<Handshake>,
    ) {
        let (left, heir) = inheritance.unzip();
        let pid = self.start(Kind::Coordinator, |home| parts::coordinator(home, wish, left, said));
        let what = if heir.is_some() { "a coordinator to follow it" } else { "a coordinator" };
        heir.inspect(|heir| heir.store(pid, Ordering::Relaxed));
        self.tell(&format!("process {by} starts {what} (process {pid})"));
    }

    /// One step of time, a turn for each process.
    pub(crate) fn step(&mut self) {
        sim::set_now(self.now);
        net::deliver();
        for process in &mut self.processes {
            if process.stopped_at.is_none() {
                sim::enter(process.pid);
                process.runtime.block_on(async { tokio::time::sleep(STEP).await });
            }
        }
        sim::enter(0);
        self.now += STEP;
        sim::set_now(self.now);
        self.reap();
        for (by, wish) in sim::take_wishes() {
            match wish {
                Wish::Start { port, fallback_port, inheritance, said } => {
                    self.start_coordinator(by, (port, fallback_port), inheritance, said);
                }
                Wish::Kill(pid) => {
                    self.tell(&format!("process {by} kills process {pid}"));
                    self.oracle.on_coordinator_suffers(self.now, false);
                    self.kill(pid);
                }
            }
        }
        self.oracle.n_coordinators = self.pids(Kind::Coordinator).len();
        // Within one step a call can be sent, run and answered.
        let is_sent = |answered: &Answered| matches!(answered, Answered::Sent { .. });
        let (sent, told): (Vec<_>, Vec<_>) = client::take_answered().into_iter().partition(is_sent);
        sent.iter().for_each(|answered| self.oracle.on_answered(self.now, answered));
        for (_, pid, event) in sim::take_events() {
            self.oracle.on_event(self.now, pid, &event);
        }
        told.iter().for_each(|answered| self.oracle.on_answered(self.now, answered));
        let (due, later) = std::mem::take(&mut self.again).into_iter().partition(|(at, _)| *at <= self.now);
        self.again = later;
        let due: Vec<(Duration, Kind)> = due;
        for (_, kind) in due {
            match kind {
                Kind::Window(window) => self.start_window(window),
                Kind::Client(number) => {
                    self.tell(&format!("client c{number} begins anew"));
                    self.start_client(number);
                }
                Kind::Coordinator | Kind::User | Kind::Stranger => {}
            }
        }
    }

    /// Takes processes off that have ended by themselves.
    fn reap(&mut self) {
        while let Some(idx) = self.processes.iter().position(|process| process.task.is_finished()) {
            let process = self.processes.remove(idx);
            let (pid, kind) = (process.pid, process.kind);
            let panicked = process.runtime.block_on(process.task).is_err_and(|error| error.is_panic());
            sim::enter(pid);
            drop(process.runtime);
            sim::enter(0);
            sim::end_process(pid);
            self.tell(&format!("{} (process {pid}) has ended", name(kind)));
            if panicked {
                self.oracle.violate(self.now, format!("{} panicked", name(kind)));
            }
            match kind {
                Kind::Window(window) => {
                    self.oracle.on_window_ends(self.now, window);
                    self.again.push((self.now + Duration::from_millis(100), kind));
                }
                Kind::Coordinator => self.oracle.on_coordinator_suffers(self.now, false),
                Kind::Client(_) | Kind::User | Kind::Stranger => {}
            }
        }
    }

    /// The processes of a kind.
    pub(crate) fn pids(&self, kind: Kind) -> Vec<u32> {
        self.processes.iter().filter(|process| process.kind == kind).map(|process| process.pid).collect()
    }

    /// Ends a process at once: it does nothing more.
    pub(crate) fn kill(&mut self, pid: u32) -> Option<Kind> {
        let idx = self.processes.iter().position(|process| process.pid == pid)?;
        let process = self.processes.remove(idx);
        let kind = process.kind;
        sim::enter(pid);
        sim::set_dying(true);
        drop(process);
        sim::set_dying(false);
        sim::enter(0);
        sim::end_process(pid);
        if let Kind::Window(window) = kind {
            self.oracle.on_window_ends(self.now, window);
        }
        Some(kind)
    }

    /// Kills a window, which is started again later.
    pub(crate) fn kill_window(&mut self, window: usize, pause: Duration) {
        for pid in self.pids(Kind::Window(window)) {
            self.kill(pid);
            self.again.push((self.now + pause, Kind::Window(window)));
        }
    }

    /// Gives a process no turn.
    pub(crate) fn stop(&mut self, pid: u32) {
        let now = self.now;
        let process = self.processes.iter_mut().find(|process| process.pid == pid);
        if let Some(process) = process.filter(|process| process.stopped_at.is_none()) {
            process.stopped_at = Some(now);
        }
    }

    /// Gives it its turns again; its clock jumps.
    pub(crate) fn go_on(&mut self, pid: u32) {
        let Some(process) = self.processes.iter_mut().find(|process| process.pid == pid) else { return };
        let Some(since) = process.stopped_at.take() else { return };
        sim::enter(pid);
        process.runtime.block_on(tokio::time::advance(self.now - since));
        sim::enter(0);
        self.tell(&format!("process {pid} goes on"));
    }

    /// Has the user order something of a window.
    pub(crate) fn order(&mut self, window: usize, verb: parts::Verb) {
        self.have_user(|home| parts::order(home, window, verb));
        self.oracle.on_order(self.now, window, verb);
    }

    /// Has the user do something.
    pub(crate) fn have_user<F>(&mut self, what: impl FnOnce(PathBuf) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let home = self.home();
        let Some(user) = self.processes.iter().find(|process| process.kind == Kind::User) else { return };
        sim::enter(user.pid);
        user.runtime.spawn(what(home));
        sim::enter(0);
    }

    /// What another version would be.
    pub(crate) fn other_version(&self) -> PathBuf {
        self.folder.join(PROGRAM)
    }

    /// One more line of the story.
    pub(crate) fn tell(&mut self, line: &str) {
        self.oracle.tell(self.now, line.to_owned());
    }

    /// Removes a file of the state folder.
    pub(crate) fn lose(&mut self, name: &str) {
        let removed = std::fs::remove_file(self.home().join(name));
        let what = if removed.is_ok() { "is lost" } else { "was not there to lose" };
        self.tell(&format!("{name} {what}"));
        if WITNESSES.iter().all(|name| !self.home().join(name).exists()) {
            self.oracle.on_memory_lost(self.now);
        }
    }

    /// Leaves of a file of the state folder what a machine without power may leave: half of it, or nothing in it, and
    /// half of what was to replace it.
    pub(crate) fn tear(&mut self, name: &str, is_emptied: bool) {
        let path = self.home().join(name);
        let Ok(bytes) = std::fs::read(&path) else {
            return self.tell(&format!("{name} was not there to tear"));
        };
        let left = if is_emptied { 0 } else { bytes.len() / 2 };
        let opened = OpenOptions::new().write(true).open(&path);
        let torn = opened.and_then(|file| file.set_len(left as u64));
        let beside = std::fs::write(self.home().join(format!("{name}.0.tmp")), &bytes[..bytes.len() / 2]);
        let what = if torn.and(beside).is_ok() { "is torn" } else { "could not be torn" };
        self.tell(&format!("{name} {what}: {left} bytes are left"));
    }

    /// Ends everything.
    pub(crate) fn end(mut self) -> (Oracle, PathBuf) {
        while let Some(pid) = self.processes.last().map(|process| process.pid) {
            self.kill(pid);
        }
        (std::mem::take(&mut self.oracle), self.folder)
    }
}

/// For people.
pub(crate) fn name(kind: Kind) -> String {
    match kind {
        Kind::Coordinator => "the coordinator".to_owned(),
        Kind::Window(window) => format!("window w{window}"),
        Kind::Client(client) => format!("client c{client}"),
        Kind::User => "the user".to_owned(),
        Kind::Stranger => "the stranger".to_owned(),
    }
}

/// An empty folder for a world: the same one for the same seed, because its path is in the traffic.
pub(crate) fn folder(seed: u64) -> std::io::Result<PathBuf> {
    let memory = Path::new("/dev/shm");
    let common = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let folder = common.join(format!("baton-sim-{seed}"));
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(PROGRAM), "")?;
    std::fs::write(parts::adapters(&folder), ADAPTERS)?;
    for tree in TREES.map(|tree| folder.join(tree)) {
        std::fs::create_dir_all(tree.join(".git"))?;
        std::fs::create_dir_all(tree.join(".vscode"))?;
        std::fs::write(tree.join(".vscode/launch.json"), LAUNCH)?;
        std::fs::write(tree.join("main.scripted"), "one line\n")?;
    }
    Ok(folder)
}
