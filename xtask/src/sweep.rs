//! Ends what a run of the tests has started, however the run ends: a test that a Ctrl-C or a kill cuts off cannot do it
//! itself, and coordinators, windows and browsers are made to outlive who started them.
//!
//! Everything that is started carries a mark in its environment, and has one folder for temporary files. A process beside
//! the task waits for the task's end, then kills whatever still carries the mark, and removes the folder: editors and
//! debuggers leave sockets and folders even when they end by themselves. Only Linux tells the environment of a process.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::run;

/// Name of the mark.
const MARK: &str = "XTASK_RUN";
/// The word on the command line that makes this program the process that waits.
pub(crate) const WORD: &str = "sweep";
/// What is being started while the others are killed is found in the next round.
const ROUNDS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// Anybody's programs write there, as in any folder for temporary files.
const EVERYBODYS: u32 = 0o1777;

struct Run {
    mark: String,
    folder: PathBuf,
}

static RUN: OnceLock<Run> = OnceLock::new();

/// Puts the mark of this run on a program, once there is one.
pub(crate) fn mark(command: &mut Command) {
    if let Some(run) = RUN.get() {
        command.env(MARK, &run.mark).env("TMPDIR", &run.folder);
    }
}

/// The process that waits.
pub(crate) struct Sweeper {
    /// Its standard input ends with us.
    _waiting: Child,
}

impl Sweeper {
    /// From here on all that is started belongs to this run.
    pub(crate) fn start() -> Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let program = std::env::current_exe().context("this program is not found")?;
        let run = Run { mark: format!("{}-{}", std::process::id(), started()), folder: folder()? };
        let run = RUN.get_or_init(|| run);
        let mut waiting = run::unmarked(program);
        // A Ctrl-C is for the group of the task.
        waiting.arg(WORD).arg(&run.mark).arg(&run.folder).stdin(Stdio::piped()).process_group(0);
        Ok(Self { _waiting: waiting.spawn().context("the process that cleans up cannot be started")? })
    }
}

/// A new folder for temporary files. Its name is short: the paths of sockets below it are.
fn folder() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("xt-{}", std::process::id()));
    let make = || {
        // One of a run of the same process id, which was ended together with what cleans up.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder)?;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(EVERYBODYS))
    };
    make().with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    Ok(folder)
}

/// Nanoseconds since 1970: no two runs of one process id have the same.
fn started() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Waits for the end of standard input, kills what carries the mark, and removes its folder.
pub(crate) fn wait_and_sweep(run: &str, folder: &Path) {
    // The rest of it is of no interest; an error is an end as well.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    sweep(run);
    // What has been removed already is no problem.
    let _ = std::fs::remove_dir_all(folder);
}

fn sweep(run: &str) {
    for round in 0..ROUNDS {
        let marked = marked(run);
        if marked.is_empty() && round > 0 {
            return;
        }
        for pid in marked {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
}

/// The processes that carry the mark.
fn marked(run: &str) -> Vec<rustix::process::Pid> {
    let mark = format!("{MARK}={run}").into_bytes();
    let carries = |entry: &std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == mark)
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter(carries).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(rustix::process::Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A run of a test of its own, with a process that outlives its parent, as a coordinator does.
    #[test]
    fn what_a_run_leaves_behind_is_ended_and_nothing_else() {
        let (run, other) = (format!("test-{}", started()), format!("other-{}", started()));
        let start = |run: &str| {
            let mut shell = run::unmarked("sh");
            shell.args(["-c", "sleep 600 & sleep 600"]).env(MARK, run);
            shell.spawn().unwrap()
        };
        let (mut ours, mut theirs) = (start(&run), start(&other));
        let until = Instant::now() + Duration::from_secs(20);
        while marked(&run).len() < 3 || marked(&other).len() < 3 {
            assert!(Instant::now() < until, "the programs did not start");
            std::thread::yield_now();
        }
        sweep(&run);
        ours.wait().unwrap();
        assert_eq!(marked(&run), []);
        assert_eq!(marked(&other).len(), 3);
        sweep(&other);
        theirs.wait().unwrap();
    }
}
