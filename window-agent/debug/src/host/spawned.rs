//! Runs the adapter of a session and hands messages over. A simulation (`--cfg sim`) has one of its own.

use std::sync::Arc;
use std::time::Duration;

use baton_link::blocking;
use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr};
use tokio_util::sync::CancellationToken;

use crate::adapter::Adapter;
use crate::connection::{Connection, connect, with_late_output};
use crate::error::DebugError;
use crate::host::end::{EXIT_GRACE, MAX_KEPT_WORDS, describe_end};
use crate::host::inbox::{FromHost, Inbox};
use crate::host::reach::{EXIT_ADAPTER_MISSING, Plan};
use crate::output::OutputLog;
use crate::types::control::Category;
use baton_agent_base::process::{self, Program};

/// How long the end of the process and the end of its output may lie apart.
const DRAIN_GRACE: Duration = Duration::from_millis(300);

/// Runs the first of the programs that is there until it ends, or its session is over.
pub(super) async fn run_spawned(
    programs: &[Program],
    plan: &Plan,
    mark: Option<&str>,
    over: &CancellationToken,
    inbox: &Inbox,
) {
    for program in programs {
        let child = match process::spawn_piped(program, mark.unwrap_or_default()) {
            Ok(child) => child,
            Err(error) => {
                let message = format!("cannot run {}: {error}", program.path.display());
                return inbox.tell(FromHost::Failed(DebugError::StartFailed { message })).await;
            }
        };
        let pid = child.id();
        let outcome = pump(child, plan.session.adapter, over, inbox).await;
        if let Some(pid) = pid {
            process::kill_group(pid);
        }
        match outcome {
            Pumped::Missing => {}
            Pumped::Over => return,
            Pumped::Closed(how) => return inbox.tell(FromHost::Closed { how }).await,
        }
    }
    let tried: Vec<String> = programs.iter().map(|program| program.path.display().to_string()).collect();
    let message = format!("{} is not installed in {}", plan.session.adapter.name, tried.join(" nor in "));
    let hint = plan.install_hint.clone();
    inbox.tell(FromHost::Failed(DebugError::AdapterMissing { message, hint })).await;
}

/// Ends what the programs of a session have left behind.
pub(super) async fn sweep(mark: String) {
    // Reads a file of every process of the machine.
    let _ = blocking::run(move || process::kill_marked(&mark)).await;
}

/// How a child's conversation ended.
enum Pumped {
    /// It said that it has no adapter to run.
    Missing,
    /// It ended by itself.
    Closed(String),
    /// Its session was over.
    Over,
}

/// Hands messages over until the child has ended, or its session is over and the child was given time to end.
async fn pump(mut child: Child, adapter: &Adapter, over: &CancellationToken, inbox: &Inbox) -> Pumped {
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Pumped::Closed("has no standard streams".to_owned());
    };
    let last_words = keep_last_words(stderr);
    let connection = connect(stdout, stdin);
    let connection = if adapter.late_output { with_late_output(connection) } else { connection };
    let Connection { outgoing, mut incoming, writer: _ } = connection;
    inbox.tell(FromHost::Reached(outgoing)).await;
    let mut spoke = false;
    let mut deadline = None;
    let mut status = None;
    loop {
        let grace = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = incoming.recv() => match message {
                Some(message) => {
                    spoke = true;
                    inbox.tell(FromHost::Message(message)).await;
                }
                // Its output ended: the process should, too.
                None => {
                    if status.is_none() {
                        status = tokio::time::timeout(DRAIN_GRACE, child.wait()).await.ok().and_then(Result::ok);
                    }
                    break;
                }
            },
            ended = child.wait(), if status.is_none() => {
                status = ended.ok();
                deadline = Some(tokio::time::Instant::now() + DRAIN_GRACE);
            }
            () = over.cancelled(), if deadline.is_none() => {
                deadline = Some(tokio::time::Instant::now() + EXIT_GRACE);
            }
            () = grace => break,
        }
    }
    if over.is_cancelled() {
        return Pumped::Over;
    }
    match status {
        Some(status) if !spoke && status.code() == Some(EXIT_ADAPTER_MISSING) => Pumped::Missing,
        status => Pumped::Closed(describe_end(status, &last_words)),
    }
}

/// Reads a child's standard error to its end; what came last is kept.
fn keep_last_words(mut stderr: ChildStderr) -> Arc<Mutex<OutputLog>> {
    let ring = Arc::new(Mutex::new(OutputLog::new(MAX_KEPT_WORDS)));
    let kept = Arc::clone(&ring);
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
            kept.lock().push(Category::Stderr, &String::from_utf8_lossy(&buffer[..n]));
        }
    });
    ring
}
