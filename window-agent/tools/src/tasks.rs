//! Runs what a configuration of launch.json wants to be run before it.

use std::time::Duration;

use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::process::{OwnedProcess, Program};
use baton_agent_base::tasks::Step;
use baton_agent_debug::Wait;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Marks what a task starts.
const MARK: &str = "task";
/// Of what a task prints, so much is told: its end.
const TOLD: usize = 2_000;
/// So much is read at once.
const PIECE: usize = 16 * 1024;
/// What a task leaves running may hold its output open for so long.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Runs one after the other, all within `wait`; the first that fails ends it.
pub(super) async fn run(steps: &[Step], wait: Wait) -> Result<(), Fault> {
    let Wait { timeout, cancelled } = wait;
    let until = Instant::now() + timeout;
    for step in steps {
        let ran = tokio::select! {
            ran = tokio::time::timeout_at(until, run_one(step)) => ran,
            () = cancelled.cancelled() => return Err(failed(step, "was stopped", "")),
        };
        match ran {
            Ok(ran) => ran?,
            Err(_) => return Err(failed(step, &format!("did not end within {} s", timeout.as_secs()), "")),
        }
    }
    Ok(())
}

async fn run_one(step: &Step) -> Result<(), Fault> {
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
    let mut process = OwnedProcess::spawn(&program, MARK).map_err(cannot)?;
    let Some((stdin, stdout, stderr)) = process.take_streams() else { return Ok(()) };
    drop(stdin);
    let (mut out, mut err) = (Tail::default(), Tail::default());
    let code = {
        let printing = async { tokio::join!(out.read(stdout), err.read(stderr)) };
        tokio::pin!(printing);
        let ended = async {
            tokio::select! {
                code = process.code() => (code, false),
                _ = &mut printing => (process.code().await, true),
            }
        };
        let (code, has_printed) = ended.await;
        if !has_printed {
            let _ = tokio::time::timeout(LAST_WORDS, printing).await;
        }
        code
    };
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(failed(step, &format!("exited with code {code}"), &both(&out, &err))),
        None => Err(failed(step, "was ended by a signal", &both(&out, &err))),
    }
}

fn failed(step: &Step, how: &str, printed: &str) -> Fault {
    let printed = if printed.is_empty() { String::new() } else { format!("\n{printed}") };
    Fault::new(Kind::TaskFailed, format!("The task `{}` {how}.{printed}", step.label))
        .hint("Fix what it says, and start again.")
}

fn both(out: &Tail, err: &Tail) -> String {
    let texts = [out, err].map(|tail| String::from_utf8_lossy(&tail.0).trim().to_owned());
    let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// The end of what a stream tells.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    async fn read(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut piece = vec![0; PIECE];
        while let Ok(n_read @ 1..) = stream.read(&mut piece).await {
            self.0.extend_from_slice(&piece[..n_read]);
            let n_over = self.0.len().saturating_sub(TOLD);
            self.0.drain(..n_over);
        }
    }
}
