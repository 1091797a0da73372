//! `baton window DIR`: a window without an editor. It starts the agent, keeps it running, and ends it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use baton_link::explain::Explanation;
use baton_link::home::{Home, HomeError};
use clap::Args;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use super::outcome::{Done, Failed, exit};
use super::output;
use identity::Identity;

mod identity;

/// Environment variable that names the agent's program, for tests and unusual installations.
const AGENT_VARIABLE: &str = "BATON_AGENT_BIN";

/// Exit code of an agent that wants to be started again: the user restarts the window.
const EXIT_RESTART: i32 = 75;

/// An agent ends itself within two seconds of the end of its input.
const END_TIMEOUT: Duration = Duration::from_millis(2_500);

/// First pause before an agent that crashed again is started; doubles up to [`MAX_BACK_OFF`].
const MIN_BACK_OFF: Duration = Duration::from_millis(100);

/// See [`MIN_BACK_OFF`].
const MAX_BACK_OFF: Duration = Duration::from_secs(10);

/// An agent that ran for this long did not crash because of its start.
const STABLE_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct WindowOptions {
    /// Folder of the window
    dir: PathBuf,
    /// Name of the window [default: the name of the folder]
    #[arg(long)]
    name: Option<String>,
    /// Stay off until you start or take the window
    #[arg(long)]
    no_auto_start: bool,
}

/// How a run of the agent ended.
enum Ended {
    /// We were told to end, and it did.
    Asked,
    /// By itself, with its exit code.
    Itself(Option<i32>),
}

pub(super) async fn run(options: WindowOptions) -> Done {
    let folder = std::fs::canonicalize(&options.dir)
        .ok()
        .filter(|folder| folder.is_dir())
        .ok_or_else(|| Failed::new(exit::USAGE, format!("{} is not a directory", options.dir.display())))?;
    let name = options.name.unwrap_or_else(|| folder_name(&folder));
    let home = Home::from_env()?;
    let identity = Identity::claim(&home, &folder, &name).map_err(|source| not_claimed(&home, source))?;
    let mut signals = Signals::new()?;
    let mut back_off = Duration::ZERO;
    loop {
        let started_at = Instant::now();
        let mut child = spawn_agent(&identity, &name, &folder, !options.no_auto_start)?;
        match supervise(&mut child, &mut signals).await {
            Ended::Asked => return Ok(()),
            Ended::Itself(Some(0)) => {
                output::note("The agent exited: it was stopped, or another agent has this window now");
                return Ok(());
            }
            Ended::Itself(Some(EXIT_RESTART)) => back_off = Duration::ZERO,
            Ended::Itself(code) => {
                let how =
                    code.map_or("because of a signal".to_owned(), |code| format!("with exit code {code}"));
                output::warning(format!("the agent exited {how}; restarting it"));
                // The first restart is at once: calls are waiting.
                let is_first = started_at.elapsed() > STABLE_AFTER || back_off.is_zero();
                if !is_first && wait(back_off, &mut signals).await {
                    return Ok(());
                }
                back_off = if is_first { MIN_BACK_OFF } else { (back_off * 2).min(MAX_BACK_OFF) };
            }
        }
    }
}

/// Why a window has no id: mostly that nothing can be written in the state folder.
fn not_claimed(home: &Home, source: io::Error) -> Failed {
    match source.kind() {
        io::ErrorKind::Other => Failed::new(exit::FAILED, format!("cannot reserve a window ID: {source}")),
        _ => HomeError::Io { path: home.path().to_owned(), source }.into(),
    }
}

fn spawn_agent(identity: &Identity, name: &str, folder: &Path, auto_start: bool) -> Result<Child, Failed> {
    let program = agent_program()?;
    let mut command = Command::new(&program);
    command.args(["--window", identity.id().as_str(), "--name", name, "--kind", "headless"]);
    command.arg("--folder").arg(folder).args(["--auto-start", if auto_start { "true" } else { "false" }]);
    // The agent notices the end of its input: that is how it ends when we are killed.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().map_err(|error| {
        let message = format!("cannot run {}: {error}", program.display());
        Failed::new(exit::UNAVAILABLE, message).with_hint("reinstall Baton")
    })
}

pub(super) fn agent_program() -> Result<PathBuf, Failed> {
    if let Some(path) = std::env::var_os(AGENT_VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(path.into());
    }
    let own = std::env::current_exe()
        .map_err(|error| Failed::new(exit::UNAVAILABLE, format!("cannot find baton-agent: {error}")))?;
    Ok(own.with_file_name(format!("baton-agent{}", std::env::consts::EXE_SUFFIX)))
}

async fn supervise(child: &mut Child, signals: &mut Signals) -> Ended {
    let stdin = child.stdin.take();
    let reports = child.stdout.take().map(print_reports);
    tokio::select! {
        status = child.wait() => Ended::Itself(status.ok().and_then(|status| status.code())),
        () = signals.recv() => {
            drop(stdin);
            if timeout(END_TIMEOUT, child.wait()).await.is_err() {
                output::warning("the agent did not exit in time; killing it");
                // Whatever goes wrong here, `kill_on_drop` is the last resort.
                let _ = child.kill().await;
            }
            if let Some(reports) = reports {
                reports.abort();
            }
            Ended::Asked
        }
    }
}

/// Tells people what the agent reports.
fn print_reports(stdout: tokio::process::ChildStdout) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let mut lines = BufReader::new(stdout).lines();
        let mut last = None;
        while let Ok(Some(line)) = lines.next_line().await {
            let news = serde_json::from_str(&line).ok().as_ref().and_then(describe);
            // A change that people cannot see, such as a new term, is none.
            if let Some(news) = news.filter(|news| last.as_ref() != Some(news)) {
                match &news {
                    News::Standing(text) => output::note(text),
                    News::Problem(why) => output::error(why),
                }
                last = Some(news);
            }
        }
    })
}

/// What a line of the agent says to people.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Standing(String),
    Problem(Explanation),
}

/// A line of the agent, for people.
fn describe(report: &Value) -> Option<News> {
    if let Some(ready) = report.get("ready") {
        return Some(News::Standing(format!("Window {} is ready", ready.get("window")?.as_str()?)));
    }
    if let Some(problem) = report.get("problem") {
        let hint = problem.get("hint").and_then(Value::as_str).map(str::to_owned);
        return Some(News::Problem(Explanation {
            hint,
            ..Explanation::new(problem.get("message")?.as_str()?)
        }));
    }
    let notice = report.get("state")?;
    let state = notice.get("state")?.as_str()?;
    let why = notice.get("why").and_then(Value::as_str).unwrap_or_default();
    Some(News::Standing(if why.is_empty() { state.to_owned() } else { format!("{state}: {why}") }))
}

/// Waits; true when we were told to end meanwhile.
async fn wait(pause: Duration, signals: &mut Signals) -> bool {
    tokio::select! {
        () = sleep(pause) => false,
        () = signals.recv() => true,
    }
}

fn folder_name(folder: &Path) -> String {
    folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}

/// What tells us to end.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> Result<Self, Failed> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failed::new(exit::FAILED, format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_are_told_in_words() {
        let told = |report: Value| describe(&report);
        let standing = |text: &str| Some(News::Standing(text.to_owned()));
        assert_eq!(told(json!({"ready":{"port":1,"window":"w-1"}})), standing("Window w-1 is ready"));
        let state =
            json!({"state":{"notice":"state","state":"standby","term":null,"live":null,"why":"api is live"}});
        assert_eq!(told(state), standing("standby: api is live"));
        let problem =
            json!({"problem":{"code":"port_taken","message":"port 7717 is in use","hint":"move it"}});
        let why = Explanation::new("port 7717 is in use").with_hint("move it");
        assert_eq!(told(problem), Some(News::Problem(why)));
        assert_eq!(told(json!({"of_a_newer_version":1})), None);
    }
}
