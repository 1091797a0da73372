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
/// No step takes longer. A download of some hundred megabytes on a slow line may come in several tries, as pip, npm and
/// apt keep what they have.
const STEP_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Before a download is tried again.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(8)];

/// Runs a program that downloads, and again when it fails: a registry that stumbles is there again in a moment. `mend`
/// runs before each further try.
pub(super) async fn download(
    label: &str,
    program: &Program,
    mend: impl AsyncFn() -> Result<(), String>,
) -> Result<String, String> {
    download_with(label, program, mend, &PAUSES).await
}

/// The same with pauses of one's own.
async fn download_with(
    label: &str,
    program: &Program,
    mend: impl AsyncFn() -> Result<(), String>,
    pauses: &[Duration],
) -> Result<String, String> {
    let mut outcome = run(label, program).await;
    for (idx, pause) in pauses.iter().enumerate() {
        let Err(problem) = &outcome else { break };
        note(problem);
        note(&format!(
            "  {label}: trying again in {} s ({} of {})",
            pause.as_secs(),
            idx + 2,
            pauses.len() + 1
        ));
        tokio::time::sleep(*pause).await;
        outcome = match mend().await {
            Ok(()) => run(label, program).await,
            Err(problem) => Err(problem),
        };
    }
    outcome
}

/// For a download that needs nothing before it is tried again.
pub(super) async fn nothing() -> Result<(), String> {
    Ok(())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails as often as told, then says how often it ran.
    fn failing(n_times: u32, counter: &Path) -> Program {
        let script = "echo x >> \"$1\"; n=$(wc -l < \"$1\"); echo \"try $n\"; test \"$n\" -gt \"$2\"";
        let times = n_times.to_string();
        program("/bin/sh", ["-c", script, "sh", &counter.to_string_lossy(), &times])
    }

    #[tokio::test]
    async fn a_download_that_fails_twice_comes_at_the_third_try() {
        let folder = tempfile::tempdir().unwrap();
        let counter = folder.path().join("tries");
        let mends = folder.path().join("mends");
        let mend = async || std::fs::write(&mends, "").map_err(|error| error.to_string());
        let pauses = [Duration::from_millis(10); 2];
        let said = download_with("fetching", &failing(2, &counter), mend, &pauses).await.unwrap();
        assert_eq!(said.trim(), "try 3");
        assert!(mends.exists());
    }

    #[tokio::test]
    async fn a_download_that_never_comes_says_what_its_tool_said() {
        let folder = tempfile::tempdir().unwrap();
        let tries = failing(9, &folder.path().join("tries"));
        let pauses = [Duration::from_millis(10); 2];
        let problem = download_with("fetching", &tries, nothing, &pauses).await.unwrap_err();
        assert!(problem.contains("fetching failed") && problem.contains("try 3"), "{problem}");
    }
}
