//! A language server: a handle on the one task that owns its process, its documents and what was asked of it.

mod editor;
pub mod life;
mod log;
mod session;
mod task;
mod watchers;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::Span;

use self::life::Limits;
use super::documents::Snapshot;
use super::lsp::notices::Capabilities;
use super::lsp::{self, Diagnostic, Position};
use super::servers::Choice;
use super::text::Encoding;
use super::types::{FileChange, Subject};
use baton_agent_base::census::Census;
use baton_agent_base::shim::Shim;

/// Commands on their way to the task.
const MAX_COMMANDS: usize = 256;
/// Before a question that was overtaken is asked again: while a server reads a project, one change follows the other.
const OVERTAKEN_PAUSE: Duration = Duration::from_millis(20);

/// Why a server did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// Its program cannot be run.
    #[error("{server} cannot be started: {why}")]
    Start {
        /// Which.
        server: String,
        /// The reason.
        why: String,
    },
    /// It ended again and again.
    #[error("{server} keeps ending")]
    Crashed {
        /// Which.
        server: String,
        /// When it is started again.
        pause: Duration,
    },
    /// It was ended for what it took.
    #[error("{server} took more than {max_mb} MB of memory")]
    OutOfMemory {
        /// Which.
        server: String,
        /// What it may take, in MiB.
        max_mb: u64,
    },
    /// Time is over.
    #[error("{server} did not respond in time")]
    Timeout {
        /// Which.
        server: String,
        /// Whether it was not even up.
        is_starting: bool,
    },
    /// It answered that it cannot.
    #[error("{server} refused: {message}")]
    Refused {
        /// Which.
        server: String,
        /// Its own words.
        message: String,
    },
    /// The project changed under the question; it is to be asked again.
    #[error("the answer was overtaken by a change")]
    Overtaken,
    /// Too many calls wait.
    #[error("too many calls wait for {server}")]
    Busy {
        /// Which.
        server: String,
    },
    /// The window closes.
    #[error("the window is closing")]
    ShuttingDown,
}

/// What was agreed upon with a running server.
#[derive(Clone, Debug, Default)]
pub struct Agreed {
    /// How it counts.
    pub encoding: Encoding,
    /// What it can.
    pub(crate) capabilities: Capabilities,
}

/// What a server is doing, for those who wait for it to settle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// Whether it answers.
    pub is_ready: bool,
    /// When it was ready first, this time.
    pub ready_since: Option<Instant>,
    /// When its process was started: what has not changed since then it has read as it is.
    pub started: Option<SystemTime>,
    /// What it is busy with, such as `indexing 40 %`.
    pub progress: Option<String>,
    /// Why it does not know all of the project.
    pub problem: Option<String>,
    /// Whether it was busy at all since it was started.
    pub was_busy: bool,
    /// Whether diagnostics are asked for; otherwise it tells them.
    pub pulls: bool,
    /// Whether it can be asked for those of the whole project.
    pub pulls_workspace: bool,
    /// Counts what it told of all files.
    pub n_published: u64,
    /// Its process.
    pub pid: Option<u32>,
}

/// The diagnostics that a server told of one file.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// What it told.
    pub items: Arc<[Diagnostic]>,
    /// Whether that was about the newest text.
    pub is_current: bool,
    /// Counts how often it told.
    pub n_told: u64,
}

/// Diagnostics by file, as the server told them last; a leaf lock.
pub type DiagnosticMap = Arc<Mutex<HashMap<PathBuf, Published>>>;

/// How to make the parameters of a request once it is known how the server counts.
pub type Params = Arc<dyn Fn(&Agreed) -> Value + Send + Sync>;

/// A question to a server.
#[derive(Clone)]
pub struct Ask {
    /// Of the protocol; empty when the server need only be up and have the files open.
    pub method: &'static str,
    /// See [`Params`].
    pub params: Params,
    /// Files that the server must have open as they are here.
    pub show: Vec<Snapshot>,
}

impl Ask {
    /// One whose parameters are the same however the server counts.
    pub fn new(method: &'static str, params: Value, show: Vec<Snapshot>) -> Self {
        Self { method, params: Arc::new(move |_| params.clone()), show }
    }

    /// A request about a place, which counts code points.
    pub(crate) fn about(method: &'static str, subject: &Subject, place: Position, more: Value) -> Self {
        let (uri, text) = (lsp::uri(&subject.snapshot.path), subject.snapshot.text.clone());
        let params = Arc::new(move |agreed: &Agreed| {
            let position = text.position(text.offset(place, Encoding::Utf32), agreed.encoding);
            let mut params = json!({"textDocument": {"uri": uri}, "position": position});
            if let (Value::Object(params), Value::Object(more)) = (&mut params, &more) {
                params.extend(more.clone());
            }
            params
        });
        Self { method, params, show: subject.shown() }
    }
}

/// What a server answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// As it came.
    pub result: Value,
    /// How it counts.
    pub agreed: Arc<Agreed>,
}

enum Command {
    Ask {
        id: u64,
        ask: Ask,
        deadline: Instant,
        reply: oneshot::Sender<Result<Answered, ServerError>>,
        /// What the log names as the reason.
        span: Span,
    },
    Cancel {
        id: u64,
    },
    Changed {
        changes: Arc<[FileChange]>,
    },
    Stop {
        reply: oneshot::Sender<()>,
    },
}

/// A handle; clones share the task. When the last one is dropped, the process ends.
#[derive(Clone)]
pub struct Server {
    /// Its name in the table.
    pub name: Arc<str>,
    /// The project that it serves.
    pub root: Arc<Path>,
    /// See [`super::servers::ServerSpec`].
    pub indexes: bool,
    commands: mpsc::Sender<Command>,
    activity: watch::Receiver<Activity>,
    diagnostics: DiagnosticMap,
    last_id: Arc<AtomicU64>,
}

/// What the servers of a window have in common; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// What each may take.
    pub limits: Arc<watch::Sender<Limits>>,
    /// Where they are counted.
    pub census: Census,
    /// What the next answer tells beside its own: sentences.
    pub news: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// A server that is started when it is first asked; its processes carry the mark.
    pub fn spawn(choice: Choice, mark: &str, shared: Shared) -> Self {
        let (commands, receiver) = mpsc::channel(MAX_COMMANDS);
        let (published, activity) = watch::channel(Activity::default());
        let diagnostics = DiagnosticMap::default();
        let (name, root, indexes) =
            (choice.spec.name.as_str().into(), choice.root.as_path().into(), choice.spec.indexes);
        let told = (published, diagnostics.clone());
        tokio::spawn(task::Task::new(choice, mark.to_owned(), told, shared).run(receiver));
        Self { name, root, indexes, commands, activity, diagnostics, last_id: Arc::default() }
    }

    /// VS Code in the place of a server.
    pub fn editor(shim: Shim) -> Self {
        let (commands, receiver) = mpsc::channel(MAX_COMMANDS);
        let activity = Activity {
            is_ready: true,
            ready_since: Some(Instant::now()),
            started: Some(SystemTime::now()),
            ..Activity::default()
        };
        let (published, activity) = watch::channel(activity);
        tokio::spawn(editor::run(shim, receiver, published));
        Self {
            name: editor::NAME.into(),
            root: Path::new("/").into(),
            indexes: false,
            commands,
            activity,
            diagnostics: DiagnosticMap::default(),
            last_id: Arc::default(),
        }
    }

    /// Asks, waiting for the server to be up, and again as long as it says that the answer was overtaken. A question
    /// that is dropped is cancelled at the server.
    pub async fn ask(&self, ask: Ask, deadline: Instant) -> Result<Answered, ServerError> {
        loop {
            match self.ask_once(ask.clone(), deadline).await {
                Err(ServerError::Overtaken) => tokio::time::sleep(OVERTAKEN_PAUSE).await,
                answered => return answered,
            }
        }
    }

    async fn ask_once(&self, ask: Ask, deadline: Instant) -> Result<Answered, ServerError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let command = Command::Ask { id, ask, deadline, reply, span: Span::current() };
        let mut guard = CancelOnDrop { id, commands: Some(self.commands.clone()) };
        let asked = async {
            self.commands.send(command).await.map_err(|_| ServerError::ShuttingDown)?;
            answer.await.map_err(|_| ServerError::ShuttingDown)?
        };
        let answered = tokio::time::timeout_at(deadline.into(), asked).await;
        if answered.is_ok() {
            guard.commands = None;
        }
        answered.unwrap_or_else(|_| {
            let is_starting = !self.activity.borrow().is_ready;
            Err(ServerError::Timeout { server: self.name.to_string(), is_starting })
        })
    }

    /// Tells of changes on disk; they go before what is asked later.
    pub async fn tell(&self, changes: Arc<[FileChange]>) {
        let _ = self.commands.send(Command::Changed { changes }).await;
    }

    /// Ends the process; returns when it is gone.
    pub async fn stop(&self) {
        let (reply, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop { reply }).await.is_ok() {
            let _ = stopped.await;
        }
    }

    /// What it does now.
    pub fn activity(&self) -> Activity {
        self.activity.borrow().clone()
    }

    /// Waits until `is_so` or the deadline; tells which.
    pub async fn wait_for(&self, deadline: Instant, is_so: impl FnMut(&Activity) -> bool) -> bool {
        let mut activity = self.activity.clone();
        let waited = tokio::time::timeout_at(deadline.into(), activity.wait_for(is_so)).await;
        matches!(waited, Ok(Ok(_)))
    }

    /// What it told about a file.
    pub fn published(&self, path: &Path) -> Option<Published> {
        self.diagnostics.lock().get(path).cloned()
    }

    /// What it told about all files.
    pub fn all_published(&self) -> Vec<(PathBuf, Published)> {
        let map = self.diagnostics.lock();
        map.iter().map(|(path, published)| (path.clone(), published.clone())).collect()
    }
}

/// A call whose client went away stops costing the server anything.
struct CancelOnDrop {
    id: u64,
    commands: Option<mpsc::Sender<Command>>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(commands) = self.commands.take() {
            // With a full channel the answer comes for nobody, which costs the server only its time.
            let _ = commands.try_send(Command::Cancel { id: self.id });
        }
    }
}
