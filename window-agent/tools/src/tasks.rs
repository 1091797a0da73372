//! Runs what a configuration of launch.json wants to be run before it and after it, and what goes on beside it.
//!
//! | module | what |
//! |---|---|
//! | `background` | tasks that go on: watchers, servers |

mod background;

use std::sync::OnceLock;
use std::time::Duration;

use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::process::{OwnedProcess, Program, Sentinel};
use baton_agent_base::tasks::Step;
use baton_agent_debug::Wait;
use baton_agent_debug::types::{SessionId, SessionSummary};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use self::background::Background;

/// Of what a task prints, so much is told: its end.
const TOLD: usize = 2_000;
/// So much is read at once.
const PIECE: usize = 16 * 1024;
/// What a task leaves running may hold its output open for so long.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Longest that a task after a session may take: nobody waits for it.
const AFTER_MAX: Duration = Duration::from_secs(10 * 60);

/// The tasks of a window.
#[derive(Debug)]
pub(crate) struct Tasks {
    /// Marks what they start.
    mark: String,
    /// Ends all that is marked so when this process is killed. Tried once.
    sentinel: OnceLock<Option<Sentinel>>,
    background: Mutex<Vec<Background>>,
    /// Those that wait for the end of a session, or run after it.
    after: TaskTracker,
}

impl Tasks {
    /// Of the window whose debug sessions have ids that begin so.
    pub(crate) fn new(prefix: &str) -> Self {
        let mark = format!("{prefix}-task");
        Self { mark, sentinel: OnceLock::new(), background: Mutex::default(), after: TaskTracker::new() }
    }

    /// Runs one after the other, all within `wait`; the first that fails ends it. Those in the background are waited for
    /// until they are ready. Gives what is worth knowing.
    pub(crate) async fn run(&self, steps: &[Step], wait: Wait) -> Result<Vec<String>, Fault> {
        let Wait { timeout, cancelled } = wait;
        let until = Instant::now() + timeout;
        let mut notes = Vec::new();
        for step in steps {
            self.guard();
            let run = async {
                match &step.background {
                    Some(background) => notes.extend(self.begin(step, background).await?),
                    None => run_one(step, &self.mark).await?,
                }
                Ok(())
            };
            let ran = tokio::select! {
                ran = tokio::time::timeout_at(until, run) => ran,
                () = cancelled.cancelled() => return Err(failed(step, "was stopped", "")),
            };
            match ran {
                Ok(ran) => ran?,
                Err(_) => return Err(self.late(step, timeout)),
            }
        }
        Ok(notes)
    }

    /// Runs these once the session has ended.
    pub(crate) fn after(
        &self,
        session: SessionId,
        mut sessions: watch::Receiver<Vec<SessionSummary>>,
        steps: Vec<Step>,
    ) {
        let mark = self.mark.clone();
        self.guard();
        self.after.spawn(async move {
            // Without the engine there is no session either.
            let _ = sessions.wait_for(|all| all.iter().all(|one| one.id != session)).await;
            for step in &steps {
                let label = &step.label;
                let ran = tokio::time::timeout(AFTER_MAX, run_one(step, &mark)).await;
                match ran {
                    Ok(Ok(())) => tracing::info!(%session, label, "a task was run after a session"),
                    Ok(Err(fault)) => return tracing::warn!(%session, label, "{}", fault.message),
                    Err(_) => return tracing::warn!(%session, label, "the task takes too long and is ended"),
                }
            }
        });
    }

    /// Waits for those after sessions, which have ended, and ends those in the background.
    pub(crate) async fn end(&self) {
        self.after.close();
        self.after.wait().await;
        self.background.lock().clear();
    }

    fn guard(&self) {
        self.sentinel.get_or_init(|| {
            Sentinel::spawn(&self.mark).inspect_err(|error| tracing::warn!(%error, "no sentinel")).ok()
        });
    }

    fn late(&self, step: &Step, timeout: Duration) -> Fault {
        let seconds = timeout.as_secs();
        let Some(printed) = self.printed(step) else {
            return failed(step, &format!("did not end within {seconds} s"), "");
        };
        failed(
            step,
            &format!("is not ready after {seconds} s; it goes on, and the next start waits for it"),
            &printed,
        )
    }
}

async fn run_one(step: &Step, mark: &str) -> Result<(), Fault> {
    let mut process = spawn(step, mark)?;
    let Some((stdin, stdout, stderr)) = process.take_streams() else { return Ok(()) };
    drop(stdin);
    let (mut out, mut err) = (Tail::default(), Tail::default());
    let printing = async { tokio::join!(out.read(stdout), err.read(stderr)) };
    let code = code_of(&mut process, printing).await;
    if code == Some(0) { Ok(()) } else { Err(failed(step, &how(code), &both(&out, &err))) }
}

fn spawn(step: &Step, mark: &str) -> Result<OwnedProcess, Fault> {
    let set = |(name, value): &(String, String)| (name.into(), Some(value.into()));
    let program = Program {
        path: step.program.clone().into(),
        args: step.args.iter().map(Into::into).collect(),
        cwd: Some(step.cwd.clone()),
        env: step.env.iter().map(set).collect(),
    };
    // The system says the same of it as of a program that is missing.
    if !step.cwd.is_dir() {
        return Err(failed(step, &format!("runs in {}, which is no folder", step.cwd.display()), ""));
    }
    let cannot = |error: std::io::Error| failed(step, &format!("cannot run `{}`: {error}", step.program), "");
    OwnedProcess::spawn(&program, mark).map_err(cannot)
}

/// The exit code, once all that it printed has been read.
async fn code_of<T>(process: &mut OwnedProcess, printing: impl Future<Output = T>) -> Option<i32> {
    tokio::pin!(printing);
    let code = tokio::select! {
        code = process.code() => code,
        _ = &mut printing => return process.code().await,
    };
    let _ = tokio::time::timeout(LAST_WORDS, printing).await;
    code
}

/// How a process ended that should not have ended so.
fn how(code: Option<i32>) -> String {
    code.map_or_else(|| "was ended by a signal".to_owned(), |code| format!("exited with code {code}"))
}

fn failed(step: &Step, how: &str, printed: &str) -> Fault {
    let printed = if printed.is_empty() { String::new() } else { format!("\n{printed}") };
    Fault::new(Kind::TaskFailed, format!("The task `{}` {how}.{printed}", step.label))
        .hint("Fix what it says, and start again.")
}

fn both(out: &Tail, err: &Tail) -> String {
    let texts = [out, err].map(Tail::text);
    let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// The end of what a stream tells.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    async fn read(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut piece = vec![0; PIECE];
        while let Ok(n_read @ 1..) = stream.read(&mut piece).await {
            self.push(&piece[..n_read]);
        }
    }

    fn push(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
        let n_over = self.0.len().saturating_sub(TOLD);
        self.0.drain(..n_over);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}
