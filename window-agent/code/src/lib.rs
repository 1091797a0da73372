//! The code engine: outlines, symbols, references and diagnostics from language servers, behind the verbs that the
//! tools use.
//!
//! | module | what |
//! |---|---|
//! | [`outline`], [`references`], [`diagnostics`], [`navigate`], [`change`], [`complete`], [`actions`] | the verbs |
//! | [`types`], `choose` | CORE: what the verbs give; which symbol a name means |
//! | `left_out` | references that a server does not tell |
//! | `told` | whether the files that a server tells of are as it knows them, and of which tree they are |
//! | [`editor`] | VS Code as a server, and what its user has not saved |
//! | [`servers`] | which server serves a file, as data |
//! | [`server`] | one server: its task, CORE: its life, its documents |
//! | [`text`], [`symbols`] | CORE: lines, encodings, changes; the tree of symbols, names |
//! | [`lsp`] | CORE: the messages that are looked into |
//! | [`search`], [`edits`] | CORE: what a text alone tells, where no server can; new texts out of edits |
//! | [`plan`] | CORE: what becomes of each file that a server's edit creates, changes, moves or deletes |
//! | [`files`], [`watch`], `write`, `journal` | the disk: what a file holds, what changed; all changes or none |
//! | `kept`, [`undo`] | what files held before a change; taking it back |

pub mod actions;
mod aim;
pub mod change;
pub mod choose;
pub mod complete;
pub mod diagnostics;
pub mod documents;
pub mod editor;
pub mod edits;
pub mod files;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod journal;
mod kept;
mod left_out;
pub mod lsp;
pub mod navigate;
pub mod outline;
pub mod plan;
mod protected;
pub mod references;
pub mod rename;
pub mod search;
pub mod server;
pub mod servers;
pub mod symbols;
pub mod text;
mod told;
pub mod types;
pub mod undo;
pub mod watch;
pub(crate) mod write;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

pub use self::server::life::Limits as ServerLimits;

use self::editor::CodeEditor;
use self::files::FileError;
use self::journal::Ledger;
use self::server::{Ask, Server, ServerError, Shared};
use self::servers::{Choice, NoServer, Places, Table};
use self::types::{FileChange, Freshness, Subject, View};
use self::watch::Watch;
use baton_agent_base::census::Census;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::process::Sentinel;
use baton_agent_base::shim::Shim;
use baton_agent_base::trees::Whose;
use baton_agent_base::workspace::Workspace;

/// Servers at once; the one used longest ago is stopped for another.
const MAX_SERVERS: usize = 8;
/// Changes are told to the servers after so long, when no call does it before: they come in bursts.
const QUIET: Duration = Duration::from_millis(200);
/// A server that has just come up may not have begun to index yet.
const INDEX_GRACE: Duration = Duration::from_millis(700);

/// Why no server runs in a folder that is open in Restricted Mode.
const UNTRUSTED: &str =
    "the user has not trusted this folder, so no language server runs in it; ask them to trust it in VS Code";

/// In a window of VS Code, whose extensions may be starting, or have nothing for this kind of question.
const AWAITED: &str = "the extensions that VS Code has for this language have not responded yet";

/// A handle on the code engine of a window; clones share it. It costs nothing until it is first asked.
#[derive(Clone, Debug)]
pub struct CodeIndex {
    inner: Arc<Inner>,
}

struct Inner {
    places: Places,
    /// VS Code, in a window of it.
    editor: Option<CodeEditor>,
    /// Without trust nothing of a folder is run: most servers run its build scripts.
    is_trusted: AtomicBool,
    /// Whether the user lets tools change what git, editors and package managers keep for themselves.
    allows_protected: AtomicBool,
    /// What all servers share.
    shared: Shared,
    ledger: Ledger,
    table: OnceLock<Table>,
    servers: Mutex<HashMap<(String, PathBuf), Running>>,
    /// What the processes of all servers carry, and who ends them when we are killed.
    mark: OnceLock<String>,
    sentinel: OnceLock<Sentinel>,
    /// When a file was asked about first.
    began: OnceLock<SystemTime>,
    /// Held while changes are handed on, so that no call overtakes them.
    watching: tokio::sync::Mutex<Watching>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CodeIndex").field("places", &self.places).finish_non_exhaustive()
    }
}

struct Running {
    server: Server,
    last_used: Instant,
}

enum Watching {
    Off,
    Starting { folders: Vec<PathBuf>, watch: JoinHandle<notify::Result<Watch>> },
    On { folders: Vec<PathBuf>, watch: Arc<Watch> },
    Impossible { folders: Vec<PathBuf> },
}

impl CodeIndex {
    /// An engine that looks for servers in these places.
    pub fn new(places: Places) -> Self {
        Self::with(places, None)
    }

    /// An engine that asks VS Code first, and starts no server before [`CodeIndex::set_trusted`].
    pub fn in_editor(places: Places, shim: Shim) -> Self {
        Self::with(places, Some(CodeEditor::new(shim)))
    }

    /// Whether tools may change what git, editors and package managers keep for themselves.
    pub fn allow_protected(&self, is_allowed: bool) {
        self.inner.allows_protected.store(is_allowed, Ordering::Relaxed);
    }

    /// What a server may take from now on, those that run included.
    pub fn limit(&self, limits: &ServerLimits) {
        self.inner.shared.limits.send_if_modified(|set| std::mem::replace(set, *limits) != *limits);
    }

    /// Where servers are that the user has somewhere of their own, for those that start from now on.
    pub fn set_programs(&self, programs: &BTreeMap<String, String>) {
        self.inner.places.programs.set(programs);
    }

    /// How many servers it ran, by name.
    pub fn census(&self) -> &Census {
        &self.inner.shared.census
    }

    /// Whether the user trusts the window's folders.
    pub fn set_trusted(&self, is_trusted: bool) {
        self.inner.is_trusted.store(is_trusted, Ordering::Relaxed);
    }

    fn with(places: Places, editor: Option<CodeEditor>) -> Self {
        let inner = Inner {
            ledger: Ledger { folder: places.changes.clone() },
            places,
            is_trusted: AtomicBool::new(editor.is_none()),
            allows_protected: AtomicBool::new(false),
            shared: Shared::default(),
            editor,
            table: OnceLock::new(),
            servers: Mutex::default(),
            mark: OnceLock::new(),
            sentinel: OnceLock::new(),
            began: OnceLock::new(),
            watching: tokio::sync::Mutex::new(Watching::Off),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The servers that are known.
    pub fn table(&self) -> &Table {
        self.inner.table.get_or_init(|| Table::open(&self.inner.places))
    }

    /// Where servers are looked for.
    pub fn places(&self) -> &Places {
        &self.inner.places
    }

    /// Ends all servers.
    pub async fn stop_all(&self) {
        let all: Vec<Server> = self.servers().drain().map(|(_, running)| running.server).collect();
        futures_util::future::join_all(all.iter().map(Server::stop)).await;
    }

    /// The file that `given` names, when it is a text inside the window's folders.
    pub async fn open(
        &self,
        workspace: &Workspace,
        given: &str,
        deadline: Instant,
    ) -> Result<Subject, Fault> {
        self.inner.began.get_or_init(SystemTime::now);
        let path = workspace.resolve_file(given).await?;
        let mut trees = workspace.trees();
        let read = tokio::task::spawn_blocking(move || {
            let folder = match trees.whose(&path) {
                Whose::Own(folder) => folder,
                Whose::Other(top) => return Err(of_another_tree(&path, &top)),
                Whose::Outside => return Err(outside(&path)),
            };
            let snapshot = files::read(&path).map_err(|error| file_error(&path, &error))?;
            Ok(Subject { snapshot, folder, view: View::default() })
        });
        let subject = read.await.map_err(|_| closing())??;
        Ok(self.in_view(subject, deadline).await)
    }

    /// The file as VS Code has it, in a window of it.
    async fn in_view(&self, mut subject: Subject, deadline: Instant) -> Subject {
        if let Some(editor) = &self.inner.editor {
            subject.view = editor.view(&subject.snapshot, deadline).await;
            if let Some(unsaved) = subject.view.unsaved.find(&subject.snapshot.path) {
                subject.snapshot = unsaved.clone();
            }
        }
        subject
    }

    /// The server for a file; a sentence says why there is none.
    fn server_for(&self, subject: &Subject) -> Result<Server, String> {
        if let Some(editor) = self.inner.editor.as_ref().filter(|_| subject.view.is_served) {
            return Ok(editor.server().clone());
        }
        if !self.inner.is_trusted.load(Ordering::Relaxed) {
            return Err(UNTRUSTED.to_owned());
        }
        match self.table().choose(&self.inner.places, &subject.snapshot.path, &subject.folder) {
            Ok(choice) => Ok(self.server(choice)),
            Err(no_server) => Err(self.why_none(subject, &no_server)),
        }
    }

    fn why_none(&self, subject: &Subject, no_server: &NoServer) -> String {
        let why = match no_server {
            NoServer::Unknown if subject.view.is_awaited => format!("{AWAITED}; try again in a moment"),
            NoServer::Unknown => {
                let extension = subject.snapshot.path.extension();
                let extension = extension.map(|extension| format!(".{}", extension.to_string_lossy()));
                format!("no language server is known for {} files", extension.unwrap_or_default())
            }
            NoServer::NotInstalled(names) => {
                let name = names.first().map(String::as_str).unwrap_or_default();
                match self.inner.places.programs.get(name) {
                    Some(path) => format!(
                        "{}, which the setting `programs` has for the language server {name}, cannot be run",
                        path.display()
                    ),
                    None if subject.view.is_awaited => {
                        format!("{AWAITED}; try again in a moment, or run `baton servers install {name}`")
                    }
                    None => format!(
                        "no language server for it is installed; `baton servers install {name}` would"
                    ),
                }
            }
        };
        match &self.table().problem {
            Some(problem) => format!("{why} ({problem})"),
            None => why,
        }
    }

    fn server(&self, choice: Choice) -> Server {
        let key = (choice.spec.name.clone(), choice.root.clone());
        let mut servers = self.servers();
        if servers.len() >= MAX_SERVERS && !servers.contains_key(&key) {
            let oldest =
                servers.iter().min_by_key(|(_, running)| running.last_used).map(|(key, _)| key.clone());
            oldest.map(|key| servers.remove(&key));
        }
        let running = servers
            .entry(key)
            .or_insert_with(|| Running { server: self.spawn(choice), last_used: Instant::now() });
        running.last_used = Instant::now();
        running.server.clone()
    }

    fn spawn(&self, choice: Choice) -> Server {
        let mark = self.inner.mark.get_or_init(|| {
            let mark = format!("servers-{}", baton_link::scratch::unique());
            // A server that is busy, or deaf, does not see that its client has gone. Beside its start, which it would
            // hold up.
            let (inner, beginning) = (Arc::downgrade(&self.inner), mark.clone());
            tokio::task::spawn_blocking(move || match (Sentinel::spawn(&beginning), inner.upgrade()) {
                (Ok(sentinel), Some(inner)) => drop(inner.sentinel.set(sentinel)),
                (Err(error), _) => tracing::warn!(%error, "no sentinel"),
                (Ok(_), None) => {}
            });
            mark
        });
        Server::spawn(choice, mark, self.inner.shared.clone())
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<(String, PathBuf), Running>> {
        self.inner.servers.lock()
    }

    /// The servers that were asked before.
    fn started(&self) -> Vec<Server> {
        self.servers().values().map(|running| running.server.clone()).collect()
    }

    /// Hands all changes on disk up to now to the servers. With a deadline, waits until the folders are watched.
    async fn sync(&self, workspace: &Workspace, deadline: Option<Instant>) {
        let folders: Vec<PathBuf> = workspace.folders().iter().map(|folder| folder.path.clone()).collect();
        let lock = self.inner.watching.lock();
        // Another call may be waiting for the folders to be watched, and for longer than this one may.
        let Ok(mut watching) = tokio::time::timeout_at(deadline.unwrap_or_else(far).into(), lock).await
        else {
            return;
        };
        let known = match &*watching {
            Watching::Off => None,
            Watching::Starting { folders, .. }
            | Watching::On { folders, .. }
            | Watching::Impossible { folders } => Some(folders),
        };
        if known != Some(&folders) {
            // What changed since a server was first asked it may not have seen.
            let is_first = matches!(*watching, Watching::Off);
            let began = *self.inner.began.get_or_init(SystemTime::now);
            let (to_watch, since) = (folders.clone(), if is_first { began } else { SystemTime::now() });
            let watch = tokio::task::spawn_blocking(move || Watch::open(&to_watch, since));
            *watching = Watching::Starting { folders: folders.clone(), watch };
        }
        if let Watching::Starting { watch, .. } = &mut *watching {
            let opened = match deadline {
                Some(deadline) => tokio::time::timeout_at(deadline.into(), watch).await.ok(),
                None if watch.is_finished() => Some(watch.await),
                None => None,
            };
            let Some(opened) = opened else { return };
            *watching = match opened {
                Ok(Ok(watch)) => {
                    let watch = Arc::new(watch);
                    self.tell_when_quiet(&watch, workspace);
                    Watching::On { folders, watch }
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the folders cannot be watched");
                    Watching::Impossible { folders }
                }
                Err(_) => Watching::Impossible { folders },
            };
        }
        if let Watching::On { watch, .. } = &*watching {
            let changes: Arc<[FileChange]> = watch.changes().await.into();
            if !changes.is_empty() {
                if let Some(editor) = &self.inner.editor {
                    let is_source = |(path, _): &&FileChange| self.table().knows(path);
                    editor.server().tell(changes.iter().filter(is_source).cloned().collect()).await;
                }
                for server in self.started() {
                    server.tell(changes.clone()).await;
                }
            }
        }
    }

    /// Servers hear of changes soon, so that the next call does not pay for them.
    fn tell_when_quiet(&self, watch: &Arc<Watch>, workspace: &Workspace) {
        let changed = watch.changed();
        let (watch, inner) = (Arc::downgrade(watch), Arc::downgrade(&self.inner));
        let workspace = workspace.clone();
        tokio::spawn(async move {
            loop {
                changed.notified().await;
                tokio::time::sleep(QUIET).await;
                let Some(inner) = inner.upgrade().filter(|_| watch.strong_count() > 0) else { return };
                CodeIndex { inner }.sync(&workspace, None).await;
            }
        });
    }

    /// See [`ask_settled`].
    async fn ask_settled(
        &self,
        server: &Server,
        ask: Ask,
        deadline: Instant,
    ) -> Result<(server::Answered, Freshness), Fault> {
        ask_settled(server, ask, deadline).await
    }
}

/// Asks again while the server is still reading the project, as far as the time allows.
async fn ask_settled(
    server: &Server,
    ask: Ask,
    deadline: Instant,
) -> Result<(server::Answered, Freshness), Fault> {
    loop {
        let answered = server.ask(ask.clone(), deadline).await;
        let freshness = freshness_of(server);
        // What it does not know yet a server refuses, too.
        let may_change = matches!(answered, Ok(_) | Err(ServerError::Refused { .. }));
        let may_change = may_change && matches!(freshness, Freshness::Indexing(_));
        if !may_change || !wait_settled(server, deadline).await {
            return answered.map(|answered| (answered, freshness)).map_err(server_error);
        }
    }
}

/// How far an answer that just came can be trusted.
fn freshness_of(server: &Server) -> Freshness {
    let activity = server.activity();
    if let Some(progress) = activity.progress {
        return Freshness::Indexing(progress);
    }
    let is_young = activity.ready_since.is_none_or(|since| since.elapsed() < INDEX_GRACE);
    match server.indexes && !activity.was_busy && is_young {
        true => Freshness::Indexing("starting".to_owned()),
        false => activity.problem.map_or(Freshness::Settled, Freshness::Incomplete),
    }
}

/// Later than any call lasts.
fn far() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// Whether a file is this server's, and not one's of a project inside of its own, which it knows less of.
fn is_own(server: &Server, all: &[Server], file: &Path) -> bool {
    let is_inner = |other: &&Server| {
        other.name == server.name && other.root != server.root && other.root.starts_with(&*server.root)
    };
    !all.iter().filter(is_inner).any(|inner| file.starts_with(&*inner.root))
}

/// Waits for the end of the work that the server tells of; false when the time is over first.
async fn wait_settled(server: &Server, deadline: Instant) -> bool {
    let is_busy = |activity: &server::Activity| activity.progress.is_some() || activity.was_busy;
    let grace = server.activity().ready_since.map(|since| since + INDEX_GRACE).unwrap_or(deadline);
    if server.indexes && !server.wait_for(grace.min(deadline), is_busy).await {
        return Instant::now() < deadline;
    }
    server.wait_for(deadline, |activity| activity.is_ready && activity.progress.is_none()).await
}

fn file_error(path: &Path, error: &FileError) -> Fault {
    let message = format!("{} {error}.", path.display());
    match error {
        FileError::NotAFile => Fault::new(Kind::NotAFile, message).hint("Pass a file."),
        FileError::TooLarge => {
            Fault::new(Kind::FileTooLarge, message).hint("Read the part that you need with another tool.")
        }
        FileError::NotText(_) => Fault::new(Kind::NotText, message).hint("Name a source file."),
        FileError::Unreadable(_) => {
            Fault::new(Kind::UnreadableFile, message).hint("Check the path and its permissions.")
        }
    }
}

fn outside(path: &Path) -> Fault {
    let message = format!("{} is outside this window's folders.", path.display());
    Fault::new(Kind::OutsideWindow, message)
        .hint("Open a window on its folder (`baton window DIR`), or read it with another tool.")
        .detail("path", path.display().to_string())
}

/// A file that lies in the window's folders, but in a tree that the window does not serve.
fn of_another_tree(path: &Path, top: &Path) -> Fault {
    let message = format!("{} belongs to another tree, {}.", path.display(), top.display());
    Fault::new(Kind::OutsideWindow, message)
        .hint(format!("Open a window on that folder: `baton window {}`.", top.display()))
        .detail("path", path.display().to_string())
}

fn closing() -> Fault {
    Fault::new(Kind::ShuttingDown, "The window is closing.").hint("Try again in a moment.")
}

/// The sentences for what went wrong with a server.
fn server_error(error: ServerError) -> Fault {
    match error {
        ServerError::Start { server, why } => Fault::new(
            Kind::ServerUnavailable,
            format!("The language server {server} cannot be started: {why}."),
        )
        .hint(format!("Install it again with `baton servers install {server}`.")),
        ServerError::Crashed { server, pause } => Fault::new(
            Kind::ServerUnavailable,
            format!("Static analysis is not available at the moment: the language server {server} exited."),
        )
        .hint(match pause.as_secs() {
            0 => "It was started again: try again.".to_owned(),
            seconds => format!("It is started again in {seconds} s: try again then."),
        }),
        ServerError::OutOfMemory { server, max_mb } => Fault::new(
            Kind::ServerUnavailable,
            format!("The language server {server} took more than {max_mb} MB of memory and was ended."),
        )
        .hint(
            "The next call starts it again; `baton settings server_memory_mb N` allows more, or max_memory_mb of its \
             entry in servers.json.",
        ),
        ServerError::Timeout { server, is_starting } => {
            let why = if is_starting { "is still starting" } else { "did not respond in time" };
            Fault::new(Kind::Timeout, format!("The language server {server} {why}."))
                .hint("Try again in a moment, or give a longer timeout (seconds).")
        }
        ServerError::Refused { server, message } => Fault::new(
            Kind::ServerRefused,
            format!("The language server {server} could not answer: {message}."),
        )
        .hint("Check the position or the name."),
        ServerError::Busy { server } => {
            Fault::new(Kind::Busy, format!("Too many calls wait for the language server {server}."))
                .hint("Try again in a moment.")
        }
        ServerError::Overtaken => Fault::new(Kind::Busy, "The project changes faster than it is read.")
            .hint("Try again in a moment."),
        ServerError::ShuttingDown => closing(),
    }
}
