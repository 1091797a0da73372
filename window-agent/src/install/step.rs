//! A program of an installation: progress for anything slow, and the last of what it said when it fails.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::say::note;
use baton_agent_base::process::{self, Program};

/// A step that takes longer than this says so, and then again each time this long has doubled.
const FIRST_PROGRESS: Duration = Duration::from_secs(2);
/// How much of what a failed step said is told.
const TAIL_LINES: usize = 12;
/// Downloads of some hundred megabytes on a slow line take their time; nothing takes longer.
const STEP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Runs a program to its end and gives what it printed; a failure is its last lines.
pub(super) async fn run(label: &str, program: &Program) -> Result<String, String> {
    let begun = Instant::now();
    let mut ending = std::pin::pin!(process::run_to_end(program));
    let mut next = FIRST_PROGRESS;
    let ended = loop {
        match timeout(next.saturating_sub(begun.elapsed()), &mut ending).await {
            Ok(ended) => break ended,
            Err(_) if begun.elapsed() > STEP_TIMEOUT => {
                return Err(format!("{label} did not finish within {} minutes", STEP_TIMEOUT.as_secs() / 60));
            }
            Err(_) => {
                note(&format!("  {label} ... ({} s)", begun.elapsed().as_secs()));
                next *= 2;
            }
        }
    };
    let output = ended.map_err(|error| format!("cannot run {}: {error}", program.path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let said = text + &String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n    ");
    Err(format!("{label} failed ({}):\n    {tail}", output.status))
}

/// A program with arguments.
pub(super) fn program<'a>(path: impl AsRef<Path>, args: impl IntoIterator<Item = &'a str>) -> Program {
    Program {
        path: path.as_ref().to_owned(),
        args: args.into_iter().map(Into::into).collect(),
        ..Program::default()
    }
}
