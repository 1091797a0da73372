//! What the agent tells its supervisor: one JSON line each on standard output, or messages to the extension.

use baton_link::explain::Explanation;
use baton_link::find::FindError;
use baton_link::spawn::SpawnError;
use baton_proto::ids::WindowId;
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

/// Something that keeps Baton from working.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// Stable, for programs.
    pub code: &'static str,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What it names, for a translation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

impl Problem {
    /// One whose sentence names nothing.
    pub fn new(code: &'static str, Explanation { message, hint }: Explanation) -> Self {
        Self { code, message, hint, args: Vec::new() }
    }

    /// The user ended the coordinator.
    pub fn stopped() -> Self {
        Self::new("stopped", FindError::Stopped.explain())
    }
}

impl From<&FindError> for Problem {
    fn from(error: &FindError) -> Self {
        let (code, args) = match error {
            FindError::PortTaken { port, by } => ("port_taken", vec![port.to_string(), by.clone()]),
            FindError::Home(error) => ("state_folder", vec![error.explain().to_string()]),
            FindError::Stopped => ("stopped", Vec::new()),
            FindError::Hung { pid } => ("coordinator_hangs", vec![pid.to_string()]),
            FindError::Spawn(SpawnError::Paused { .. }) => ("coordinator_dies", Vec::new()),
            FindError::Spawn(SpawnError::Program { program, .. }) => {
                ("program_missing", vec![program.display().to_string()])
            }
            FindError::Unreachable { pid: Some(pid), .. } => ("coordinator_hangs", vec![pid.to_string()]),
            FindError::Unreachable { pid: None, .. }
            | FindError::NotRunning
            | FindError::Spawn(_)
            | FindError::Failed(_) => ("coordinator_unreachable", Vec::new()),
        };
        Self { code, message: error.to_string(), hint: error.hint(), args }
    }
}

/// One line.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// MCP is served.
    Ready {
        /// On this loopback port; 0 when there is none.
        port: u16,
        /// On this socket in the state folder.
        #[serde(skip_serializing_if = "Option::is_none")]
        socket: Option<String>,
        /// The window.
        window: WindowId,
    },
    /// The coordinator was reached.
    Connected {
        /// On this port.
        port: u16,
    },
    /// A [`baton_proto::control::Notice::State`], as it came.
    State(Value),
    /// Something that a person may want to know.
    Problem(Problem),
    /// An AI client asks for this window, and the user is to be asked.
    AskHandover {
        /// Name of the client.
        client: String,
    },
}

/// Lines that wait for a slow reader; more are left out, for none of them is needed.
pub const MAX_WAITING: usize = 64;

/// Hands reports to the task that writes them; cheap to clone.
#[derive(Clone, Debug)]
pub struct Reporter {
    sender: mpsc::Sender<Report>,
}

impl Reporter {
    /// A reporter on standard output.
    pub fn spawn() -> Self {
        let (sender, mut receiver) = mpsc::channel::<Report>(MAX_WAITING);
        tokio::spawn(async move {
            let mut stdout = tokio::io::stdout();
            while let Some(report) = receiver.recv().await {
                let Ok(mut line) = serde_json::to_vec(&report) else { continue };
                line.push(b'\n');
                if stdout.write_all(&line).await.is_err() || stdout.flush().await.is_err() {
                    return;
                }
            }
        });
        Self { sender }
    }

    /// A reporter to somebody else.
    pub fn to(sender: mpsc::Sender<Report>) -> Self {
        Self { sender }
    }

    /// Never waits.
    pub fn send(&self, report: Report) {
        let _ = self.sender.try_send(report);
    }
}
