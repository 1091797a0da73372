//! Tasks that go on while programs are debugged: each is started once, waited for until it says that it is ready, and
//! ended with its window.

use std::sync::LazyLock;

use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::process::OwnedProcess;
use baton_agent_base::tasks::{self, Step};
use regex::Regex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{PIECE, Tail, Tasks, code_of, failed, how, spawn};

/// Most that a window has at once.
const MAX_RUNNING: usize = 20;
/// A line that is longer is looked at in parts.
const MAX_LINE: usize = 64 * 1024;

/// One that was started; dropping it ends it.
#[derive(Debug)]
pub(super) struct Background {
    step: Step,
    told: watch::Receiver<Told>,
    _end: DropGuard,
}

/// Where it stands.
#[derive(Debug, Default)]
struct Told {
    is_ready: bool,
    /// How it ended.
    ended: Option<Ended>,
    /// The end of what it printed, on both streams.
    printed: Tail,
}

/// The exit code; `None` after a signal.
type Ended = Option<i32>;

impl Tasks {
    /// Starts it unless it runs already, and waits until it is ready. Gives what is worth knowing.
    pub(super) async fn begin(
        &self,
        step: &Step,
        background: &tasks::Background,
    ) -> Result<Option<String>, Fault> {
        let ready = background.ready.as_deref().map(Regex::new);
        let (mut told, is_new) = self.running(step, ready.clone().and_then(Result::ok))?;
        // An error: nobody tells any more, as after its end.
        let _ = told.wait_for(|told| told.is_ready || told.ended.is_some()).await;
        let told = told.borrow();
        match told.ended {
            // It did its work, or left it to another process.
            Some(Some(0)) => return Ok(None),
            Some(code) => return Err(failed(step, &how(code), &told.printed.text())),
            None => {}
        }
        let what = format!("The task `{}` runs in the background, until this window is closed", step.label);
        Ok(is_new.then(|| match ready {
            Some(Ok(_)) => format!("{what}."),
            Some(Err(_)) => format!("{what}; its `endsPattern` cannot be read, so it was not waited for."),
            None => format!("{what}; no `endsPattern` says when it is ready, so it was not waited for."),
        }))
    }

    /// The one that runs, or a new one.
    fn running(&self, step: &Step, ready: Option<Regex>) -> Result<(watch::Receiver<Told>, bool), Fault> {
        let mut all = self.background.lock();
        all.retain(|known| known.told.borrow().ended.is_none() && known.told.has_changed().is_ok());
        if let Some(known) = all.iter().find(|known| known.step == *step) {
            return Ok((known.told.clone(), false));
        }
        if all.len() >= MAX_RUNNING {
            let why = format!("{MAX_RUNNING} tasks run in the background of this window already.");
            return Err(Fault::new(Kind::TaskFailed, why).hint("Restart the window: that ends them."));
        }
        let process = spawn(step, &self.mark)?;
        let (teller, told) = watch::channel(Told { is_ready: ready.is_none(), ..Told::default() });
        let end = CancellationToken::new();
        let follow = follow(process, ready, teller);
        tokio::spawn(end.clone().run_until_cancelled_owned(follow));
        tracing::info!(label = step.label, "a task begins in the background");
        all.push(Background { step: step.clone(), told: told.clone(), _end: end.drop_guard() });
        Ok((told, true))
    }

    /// What a task in the background has printed; `None` when there is none.
    pub(super) fn printed(&self, step: &Step) -> Option<String> {
        let all = self.background.lock();
        all.iter().find(|known| known.step == *step).map(|known| known.told.borrow().printed.text())
    }
}

/// Tells what the process does, until its end. With it goes the process.
async fn follow(mut process: OwnedProcess, ready: Option<Regex>, told: watch::Sender<Told>) {
    // Watchers end with their standard input.
    let Some((_stdin, stdout, stderr)) = process.take_streams() else { return };
    let printing = async {
        tokio::join!(read(stdout, ready.as_ref(), &told), read(stderr, ready.as_ref(), &told));
    };
    let code = code_of(&mut process, printing).await;
    told.send_modify(|told| told.ended = Some(code));
}

async fn read(mut stream: impl AsyncRead + Unpin, ready: Option<&Regex>, told: &watch::Sender<Told>) {
    let mut piece = vec![0; PIECE];
    let mut text = Vec::new();
    while let Ok(n_read @ 1..) = stream.read(&mut piece).await {
        text.extend_from_slice(&piece[..n_read]);
        let is_ready = ready.is_some_and(|ready| says(&text, ready));
        // A line without an end may go on.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        text.drain(..end.max(text.len().saturating_sub(MAX_LINE)));
        told.send_modify(|told| {
            told.is_ready |= is_ready;
            told.printed.push(&piece[..n_read]);
        });
    }
}

/// Whether a line matches, without what colors it and moves the cursor.
fn says(text: &[u8], ready: &Regex) -> bool {
    static ESCAPES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[@-Za-z])").ok());
    let text = String::from_utf8_lossy(text);
    let plain = ESCAPES.as_ref().map(|escapes| escapes.replace_all(&text, ""));
    plain.is_some_and(|plain| plain.lines().any(|line| ready.is_match(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_without_its_colors() {
        let ready = Regex::new(r"^Found \d+ errors?\.$").unwrap();
        for text in [
            "x\nFound 0 errors.\r\n",
            "\x1bcFound 1 error.\n",
            "\x1b[90mFound \x1b[96m0\x1b[0m errors.\x1b[0m",
        ] {
            assert!(says(text.as_bytes(), &ready), "{text:?}");
        }
        for text in ["", "Found no errors.", "a Found 0 errors."] {
            assert!(!says(text.as_bytes(), &ready), "{text:?}");
        }
    }
}
