//! The only file that spawns children. Each carries a mark in its environment, by which its whole tree is found
//! again, whoever became its parent meanwhile.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

/// The environment variable that marks what a debug session started.
pub(crate) const MARK: &str = "BATON_DEBUG_SESSION";

/// A program to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: Option<PathBuf>,
    /// Set or, without a value, removed.
    pub(crate) env: Vec<(OsString, Option<OsString>)>,
}

/// Starts a program with piped standard streams in a process group of its own.
pub(crate) fn spawn_piped(program: &Program, mark: &str) -> io::Result<Child> {
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
pub(crate) async fn output_of(path: &Path, args: &[&OsStr], timeout: Duration) -> Option<Vec<u8>> {
    let mut command = new_command(path);
    command.args(args).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(timeout, command.output()).await.ok()?.ok()?;
    output.status.success().then_some(output.stdout)
}

#[expect(clippy::disallowed_methods, reason = "this is the file that spawns")]
fn new_command(path: &Path) -> Command {
    Command::from(std::process::Command::new(path))
}

/// A program in a terminal of its own.
pub(crate) struct Terminal {
    /// Its process id.
    pub(crate) pid: u32,
    /// What it prints; ends with it.
    pub(crate) reader: Box<dyn io::Read + Send>,
    /// Keeps the terminal open, and reaps the program.
    pub(crate) keep: (Box<dyn portable_pty::MasterPty + Send>, Box<dyn portable_pty::Child + Send + Sync>),
}

/// Starts a program in a pseudo terminal.
pub(crate) fn spawn_in_terminal(program: &Program, mark: &str) -> anyhow::Result<Terminal> {
    let pty = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default())?;
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
    let child = pty.slave.spawn_command(command)?;
    let pid = child.process_id().ok_or_else(|| anyhow::anyhow!("the program has no process id"))?;
    let reader = pty.master.try_clone_reader()?;
    Ok(Terminal { pid, reader, keep: (pty.master, child) })
}

/// Kills a process group.
pub(crate) fn kill_group(leader: u32) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Kills every process that carries `mark`, and returns when none is left. A program can fork while we look, and
/// a killed process takes a moment to go; one that does not go at all (in the kernel) is left after a while.
pub(crate) fn kill_marked(mark: &str) {
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

/// The living processes that carry `mark`; those of other users cannot be read and are not ours.
fn marked_processes(mark: &str) -> Vec<Pid> {
    let entry = format!("{MARK}={mark}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|process| {
            let pid = Pid::from_raw(process.file_name().to_str()?.parse().ok()?)?;
            let environment = std::fs::read(process.path().join("environ")).ok()?;
            let is_marked = environment.split(|&byte| byte == 0).any(|line| line == entry.as_bytes());
            is_marked.then_some(pid)
        })
        .collect()
}
