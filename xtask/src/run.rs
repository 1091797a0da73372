//! Child processes: progress for anything slow, a log for each, and what a person needs when one fails.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

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

/// A command of a program, in the workspace root.
#[expect(clippy::disallowed_methods, reason = "the one place where tasks start programs")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs a step whose output only matters when it fails: it goes to a log, whose end is printed then.
pub(crate) fn logged(label: &str, command: &mut Command) -> Result<()> {
    let log_path = cache().join("logs").join(format!("{}.log", label.replace([' ', '/'], "-")));
    let log = create(&log_path)?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| format!("{program} cannot be started"))?;
    let status = wait(label, child)?;
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

/// Whether a machine runs this that others use at the same moment: there a failure counts when it comes twice.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// Runs a suite as [`shown`]; in CI a second time when it fails, which is said.
pub(crate) fn shown_again(label: &str, command: &mut Command) -> Result<()> {
    let first = shown(label, command);
    if first.is_ok() || !is_ci() {
        return first;
    }
    say(&format!("{label} failed; once more, as the machine may have been busy"));
    shown(label, command)?;
    say(&format!("UNSTEADY: {label} passed at the second try only"));
    Ok(())
}

/// Standard output of a quick command, or `None` when it cannot run or fails.
pub(crate) fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn wait(label: &str, mut child: Child) -> Result<ExitStatus> {
    let start = Instant::now();
    let mut next_progress = FIRST_PROGRESS;
    loop {
        if let Some(status) = child.try_wait()? {
            if start.elapsed() > FIRST_PROGRESS {
                say(&format!("  {label}: {:.0} s", start.elapsed().as_secs_f32()));
            }
            return Ok(status);
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
