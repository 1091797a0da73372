//! Child processes: progress for anything slow, a log for each, and what a person needs when one fails.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::sweep;

/// A step that takes longer than this says so, and then again each time this long has doubled.
const FIRST_PROGRESS: Duration = Duration::from_secs(2);
/// How often a running step is looked at.
const POLL: Duration = Duration::from_millis(50);
/// How much of a failed step's log is printed.
const TAIL_LINES: usize = 40;

/// The workspace root.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// The ignored folder for everything that is installed.
pub(crate) fn cache() -> PathBuf {
    root().join(".cache")
}

/// One line for the person who waits; on standard error, like cargo's own.
#[expect(clippy::print_stderr, reason = "a task talks to a person")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// A command of a program, in the workspace root; what it starts ends with this run.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = unmarked(program);
    sweep::mark(&mut command);
    command
}

/// The same for what outlives this run.
#[expect(clippy::disallowed_methods, reason = "the one place where tasks start programs")]
pub(crate) fn unmarked(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Before a download is tried again.
const PAUSES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(12)];
/// No download takes longer: one that stalls is tried again.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Runs a step that downloads, as [`logged`], and again when it fails: a registry that stumbles is there again in a
/// moment. What it has by then, pip, npm and apt keep.
pub(crate) fn download(label: &str, command: &mut Command) -> Result<()> {
    download_with(label, command, || Ok(()), &PAUSES)
}

/// The same; `mend` runs before each further try.
pub(crate) fn download_with(
    label: &str,
    command: &mut Command,
    mend: impl Fn() -> Result<()>,
    pauses: &[Duration],
) -> Result<()> {
    let mut outcome = within(label, command, DOWNLOAD_LIMIT);
    for (idx, pause) in pauses.iter().enumerate() {
        let Err(error) = &outcome else { break };
        say(&format!(
            "{error:#}; trying again in {} s ({} of {})",
            pause.as_secs(),
            idx + 2,
            pauses.len() + 1
        ));
        std::thread::sleep(*pause);
        outcome = mend().and_then(|()| within(label, command, DOWNLOAD_LIMIT));
    }
    outcome
}

/// apt-get with these arguments, as a download: what was interrupted is finished first, another apt that runs is waited
/// for, and the lists of packages are made anew before a second try.
pub(crate) fn apt(label: &str, arguments: &[&str], folder: &Path) -> Result<()> {
    const WAIT: [&str; 2] = ["-o", "DPkg::Lock::Timeout=240"];
    // Where nothing was interrupted it does nothing; who is not root is told so by apt-get itself.
    let _ = within("dpkg --configure -a", command("dpkg").args(["--configure", "-a"]), DOWNLOAD_LIMIT);
    let update = || within("apt-get update", command("apt-get").args(WAIT).arg("update"), DOWNLOAD_LIMIT);
    let mut apt = command("apt-get");
    apt.args(WAIT).args(arguments).current_dir(folder).env("DEBIAN_FRONTEND", "noninteractive");
    download_with(label, &mut apt, update, &PAUSES)
}

/// Runs a step whose output only matters when it fails: it goes to a log, whose end is printed then.
pub(crate) fn logged(label: &str, command: &mut Command) -> Result<()> {
    within(label, command, Duration::MAX)
}

/// The same; one that takes longer than `limit` is ended.
fn within(label: &str, command: &mut Command, limit: Duration) -> Result<()> {
    let log_path = cache().join("logs").join(format!("{}.log", label.replace([' ', '/'], "-")));
    let log = create(&log_path)?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| format!("{program} cannot be started"))?;
    let status = wait(label, child, limit)?;
    if !status.success() {
        say(&tail(&log_path));
        bail!("{label} failed ({status}); the whole log is {}", log_path.display());
    }
    Ok(())
}

/// Runs a step that talks to the person itself (cargo, the demo, the benches).
pub(crate) fn shown(label: &str, command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("{program} cannot be started"))?;
    if !status.success() {
        bail!("{label} failed ({status}); what it printed is above");
    }
    Ok(())
}

/// Standard output of a quick command, or `None` when it cannot run or fails.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn wait(label: &str, mut child: Child, limit: Duration) -> Result<ExitStatus> {
    let start = Instant::now();
    let mut next_progress = FIRST_PROGRESS;
    loop {
        if let Some(status) = child.try_wait()? {
            if start.elapsed() > FIRST_PROGRESS {
                say(&format!("  {label}: {:.0} s", start.elapsed().as_secs_f32()));
            }
            return Ok(status);
        }
        if start.elapsed() > limit {
            // What it has started reads from it, writes to it, and ends with it.
            let _ = child.kill();
            let _ = child.wait();
            bail!("{label} did not finish within {} s", limit.as_secs());
        }
        if start.elapsed() > next_progress {
            say(&format!("  {label} ... ({} s so far)", start.elapsed().as_secs()));
            next_progress *= 2;
        }
        std::thread::sleep(POLL);
    }
}

fn create(path: &Path) -> Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let mut file = File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
    file.flush()?;
    Ok(file)
}

fn tail(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails as often as told.
    fn failing(n_times: u32, counter: &Path) -> Command {
        let mut shell = command("sh");
        shell.args(["-c", "echo x >> \"$1\"; test $(wc -l < \"$1\") -gt \"$2\"", "sh"]);
        shell.arg(counter).arg(n_times.to_string());
        shell
    }

    #[test]
    fn a_download_that_fails_twice_comes_at_the_third_try() {
        let folder = tempfile::tempdir().unwrap();
        let pauses = [Duration::from_millis(10); 2];
        let mended = std::cell::Cell::new(0);
        let mend = || {
            mended.set(mended.get() + 1);
            Ok(())
        };
        download_with("test download", &mut failing(2, &folder.path().join("a")), mend, &pauses).unwrap();
        assert_eq!(mended.get(), 2);
        let never = download_with("test download", &mut failing(9, &folder.path().join("b")), mend, &pauses);
        assert!(never.unwrap_err().to_string().contains("test download failed"));
    }

    #[test]
    fn a_step_that_hangs_is_ended() {
        let begun = Instant::now();
        let hung = within("test hang", command("sleep").arg("600"), Duration::from_millis(200));
        assert!(hung.unwrap_err().to_string().contains("did not finish"));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
