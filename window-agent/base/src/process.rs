//! The only module that spawns children. Each carries a mark in its environment, by which its whole tree is found
//! again, whoever became its parent meanwhile.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

#[cfg_attr(sim, path = "sim/sentinel.rs")]
mod sentinel;

pub use self::sentinel::Sentinel;

/// The environment variable that marks what a debug session started.
pub const MARK: &str = "BATON_DEBUG_SESSION";

/// A program to run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// Without its own name.
    pub args: Vec<OsString>,
    /// The folder it runs in; `None`: ours.
    pub cwd: Option<PathBuf>,
    /// Set or, without a value, removed.
    pub env: Vec<(OsString, Option<OsString>)>,
}

/// Starts a program with piped standard streams in a process group of its own.
pub fn spawn_piped(program: &Program, mark: &str) -> io::Result<Child> {
    let mut command = new_command(&program.path);
    command.args(&program.args).env(MARK, mark);
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    for (name, value) in &program.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true).spawn()
}

/// Runs a program to its end and gives its standard output; `None` when it cannot be run or takes too long.
pub async fn output_of(path: &Path, args: &[&OsStr], timeout: Duration) -> Option<Vec<u8>> {
    let mut command = new_command(path);
    command.args(args).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(timeout, command.output()).await.ok()?.ok()?;
    output.status.success().then_some(output.stdout)
}

/// Runs a program to its end, in our own process group: an interrupt of the terminal ends it with us.
pub async fn run_to_end(program: &Program) -> io::Result<std::process::Output> {
    let mut command = new_command(&program.path);
    command.args(&program.args).stdin(Stdio::null()).kill_on_drop(true);
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    command.output().await
}

/// What a quick program prints on either stream, standard output first; `None` when it cannot be run.
#[expect(clippy::disallowed_methods, reason = "this is the file that spawns")]
pub fn text_of(path: &Path, args: &[&OsStr], cwd: Option<&Path>) -> Option<String> {
    let mut command = std::process::Command::new(path);
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    let output = command.args(args).stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[expect(clippy::disallowed_methods, reason = "this is the file that spawns")]
fn new_command(path: &Path) -> Command {
    Command::from(std::process::Command::new(path))
}

/// A program in a terminal of its own.
pub struct Terminal {
    /// Its process id.
    pub pid: u32,
    /// What it prints; ends with it.
    pub reader: Box<dyn io::Read + Send>,
    /// What it reads.
    pub writer: Box<dyn io::Write + Send>,
    /// Keeps the terminal open, and reaps the program.
    pub keep: (Box<dyn portable_pty::MasterPty + Send>, Box<dyn portable_pty::Child + Send + Sync>),
}

/// Starts a program in a pseudo terminal.
pub fn spawn_in_terminal(program: &Program, mark: &str) -> io::Result<Terminal> {
    let pty = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default());
    let pty = pty.map_err(chained)?;
    let mut command = portable_pty::CommandBuilder::new(&program.path);
    command.args(&program.args);
    command.env(MARK, mark);
    if let Some(cwd) = &program.cwd {
        command.cwd(cwd);
    }
    for (name, value) in &program.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        }
    }
    let child = pty.slave.spawn_command(command).map_err(chained)?;
    let pid = child.process_id().ok_or_else(|| io::Error::other("the program has no process id"))?;
    let reader = pty.master.try_clone_reader().map_err(chained)?;
    let writer = pty.master.take_writer().map_err(chained)?;
    Ok(Terminal { pid, reader, writer, keep: (pty.master, child) })
}

/// With all its causes.
fn chained(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{error:#}"))
}

/// Kills a process group.
pub fn kill_group(leader: u32) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Kills every process that carries `mark`, and returns when none is left. A program can fork while we look, and
/// a killed process takes a moment to go; one that does not go at all (in the kernel) is left after a while.
pub fn kill_marked(mark: &str) {
    const PATIENCE: Duration = Duration::from_millis(500);
    const PAUSE: Duration = Duration::from_millis(2);
    let begun = std::time::Instant::now();
    loop {
        let marked = marked_processes(mark);
        if marked.is_empty() || begun.elapsed() > PATIENCE {
            return;
        }
        for pid in marked {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
}

fn marked_processes(mark: &str) -> Vec<Pid> {
    marked(|known| known == mark).into_keys().filter_map(Pid::from_raw).collect()
}

/// The living processes whose mark is wanted, and their descendants, which may have an environment of their own, with
/// the mark; those of other users cannot be read and are not ours.
fn marked(is_wanted: impl Fn(&str) -> bool) -> BTreeMap<i32, String> {
    let beginning = format!("{MARK}=");
    let (mut marked, mut others) = (BTreeMap::new(), Vec::new());
    for pid in all() {
        let Some(environment) = environment_of(pid) else { continue };
        let lines = environment.split(|&byte| byte == 0);
        let mut marks = lines.filter_map(|line| line.strip_prefix(beginning.as_bytes()));
        let mark = marks.find_map(|mark| str::from_utf8(mark).ok().filter(|mark| is_wanted(mark)));
        match mark {
            Some(mark) => drop(marked.insert(pid, mark.to_owned())),
            None => others.push(pid),
        }
    }
    if !marked.is_empty() {
        // A parent's id is mostly, not always, the lower one.
        let parents: Vec<(i32, i32)> =
            others.into_iter().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
        let mut n_before = 0;
        while n_before < marked.len() {
            n_before = marked.len();
            let children = parents.iter().filter(|(pid, _)| !marked.contains_key(pid));
            let children = children.filter_map(|(pid, parent)| Some((*pid, marked.get(parent)?.clone())));
            let children: Vec<(i32, String)> = children.collect();
            marked.extend(children);
        }
    }
    marked
}

/// What the processes of one mark take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Resident memory, in bytes.
    pub bytes: u64,
    /// How many there are.
    pub n_processes: u64,
}

/// What the processes take whose mark begins like this, by mark. Memory that several of them share counts for each,
/// unless it comes to more than `enough` bytes so: then the kernel is asked for the share of each, which takes longer.
pub fn taken(beginning: &str, enough: u64) -> BTreeMap<String, Taken> {
    let mut processes: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for (pid, mark) in marked(|mark| mark.starts_with(beginning)) {
        processes.entry(mark).or_default().push(pid);
    }
    let all = processes.into_iter().map(|(mark, pids)| {
        let roughly: u64 = pids.iter().filter_map(|pid| memory_of(*pid)).sum();
        let exactly = || pids.iter().filter_map(|pid| share_of(*pid)).sum();
        let bytes = if roughly > enough { exactly() } else { roughly };
        (mark, Taken { bytes, n_processes: pids.len() as u64 })
    });
    all.collect()
}

/// Bytes of memory that this machine has, or that this process and others together may take, if that is less.
pub fn memory_of_machine() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let allowed = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let allowed = allowed.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    Some(allowed.min(total * 1024))
}

/// Ids of the processes that there are.
pub fn all() -> Vec<i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes.flatten().filter_map(|process| process.file_name().to_str()?.parse().ok()).collect()
}

/// The environment that a process began with, its lines ended by zeros; `None` of other users.
pub fn environment_of(pid: i32) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{pid}/environ")).ok()
}

/// Whether a program whose mark begins like this is in the middle of reading its standard input. What we started
/// directly does not count, unless it has a terminal: adapters read what we write.
pub fn waits_for_input(mark: &str) -> bool {
    let beginning = format!("{MARK}={mark}");
    let own = i32::try_from(std::process::id()).ok();
    all().into_iter().any(|pid| {
        let Some(environment) = environment_of(pid) else { return false };
        let path = PathBuf::from(format!("/proc/{pid}"));
        let is_marked =
            environment.split(|&byte| byte == 0).any(|line| line.starts_with(beginning.as_bytes()));
        if !is_marked || !is_reading(&path) {
            return false;
        }
        let input = std::fs::read_link(path.join("fd/0")).unwrap_or_default();
        let has_terminal = input.starts_with("/dev/pts");
        let is_open =
            has_terminal || ["pipe:", "socket:"].iter().any(|kind| input.to_string_lossy().starts_with(kind));
        is_open && (has_terminal || parent_of(pid) != own)
    })
}

/// Whether a thread of a process is in a `read` of standard input, as the kernel tells it.
fn is_reading(process: &Path) -> bool {
    const READ: &str = if cfg!(target_arch = "aarch64") { "63 0x0 " } else { "0 0x0 " };
    let tasks = std::fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    tasks.into_iter().any(|task| {
        std::fs::read_to_string(task.path().join("syscall")).is_ok_and(|call| call.starts_with(READ))
    })
}

fn parent_of(pid: i32) -> Option<i32> {
    parent_and_group_of(pid).map(|(parent, _)| parent)
}

/// Of a process that has not ended.
fn parent_and_group_of(pid: i32) -> Option<(i32, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    let both = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (state != "Z").then_some(both)
}

/// A child whose whole process group is killed with it.
pub struct OwnedProcess {
    child: Child,
    pid: u32,
}

impl OwnedProcess {
    /// Starts a program with piped standard streams.
    pub fn spawn(program: &Program, mark: &str) -> io::Result<Self> {
        let child = spawn_piped(program, mark)?;
        let pid = child.id().ok_or_else(|| io::Error::other("the program exited immediately"))?;
        Ok(Self { child, pid })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Standard input, output and error; once.
    pub fn take_streams(&mut self) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?, self.child.stderr.take()?))
    }

    /// Waits for its end.
    pub async fn wait(&mut self) {
        let _ = self.child.wait().await;
    }

    /// Waits for its end, and gives its exit code; `None` when it has none.
    pub async fn code(&mut self) -> Option<i32> {
        self.child.wait().await.ok()?.code()
    }
}

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        // The group outlives its leader: wrappers start the real server as a child.
        kill_group(self.pid);
    }
}

/// Bytes of memory that the processes of a group have resident: wrappers start the real server as a child.
pub fn memory_of_group(leader: u32) -> u64 {
    let is_member = |pid: &i32| parent_and_group_of(*pid).is_some_and(|(_, group)| group as u32 == leader);
    all().into_iter().filter(is_member).filter_map(memory_of).sum()
}

/// Bytes of a process's memory, where what it shares with others counts as its part of that; `None` of a process that
/// is gone.
fn share_of(pid: i32) -> Option<u64> {
    let told = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let share = told.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    Some(share.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn memory_of(pid: i32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
