//! The task that owns a server's process: starts it, keeps its documents in step with the disk, asks and answers.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{Span, debug, info, warn};

use super::life::{Input, Life, Output};
use super::log::log_lines;
use super::session::{self, Progress};
use super::watchers::Watchers;
use super::{Activity, Agreed, Answered, Ask, Command, DiagnosticMap, Published, ServerError, Shared};
use crate::documents::{DID_OPEN, Documents, Notice, Snapshot, Stamp};
use crate::files;
use crate::lsp::answers::FileDiagnostics;
use crate::lsp::lenient::Or;
use crate::lsp::notices::{Asked, Initialized, Logged, Options, Registration, SyncOptions};
use crate::lsp::{self, Message};
use crate::servers::{Choice, ServerSpec};
use crate::text::{Encoding, Text};
use crate::types::{ChangeKind, FileChange};
use baton_agent_base::census::Counted;
use baton_agent_base::pipe::Pipe;
use baton_agent_base::process::{self, OwnedProcess};
use baton_agent_base::walk;
use baton_agent_base::wire::read;

/// Calls that wait for a start.
const MAX_WAITING: usize = 256;
/// A question is asked once more after a crash.
const MAX_TRIES: u32 = 2;
/// What a call has to have left after the pause before a restart; with less it is told of the pause at once.
const MIN_LEFT: Duration = Duration::from_secs(2);
/// How long a server may take to end by itself.
const STOP_PATIENCE: Duration = Duration::from_millis(1000);
/// Files that changed at once and are opened.
const MAX_CHANGED: usize = 50;
/// A server that says nothing of what it was shown is taken to have read it.
const UNREAD_LIMIT: Duration = Duration::from_secs(10);
/// How long one looks at its open files again, when another one that they include has changed.
const INCLUDERS: Duration = Duration::from_secs(1);
/// Of more it is only told; so long after that, it is taken to have read them.
const BY_ITSELF: Duration = Duration::from_secs(3);
/// How often the memory of a server is looked at.
const MEMORY_CHECK: Duration = Duration::from_secs(5);
/// From so much of what it may take on, clients are told.
const WARN_PERCENT: u64 = 80;

/// The protocol's codes for "ask again": content modified, server cancelled.
const ASK_AGAIN: [i64; 2] = [-32801, -32802];

struct Job {
    id: u64,
    ask: Ask,
    reply: oneshot::Sender<Result<Answered, ServerError>>,
    deadline: Instant,
    n_tries: u32,
    /// The call that asks.
    span: Span,
}

impl Job {
    fn can_wait(&self, now: Instant, pause: Duration) -> bool {
        pause.is_zero() || now + pause + MIN_LEFT <= self.deadline
    }
}

enum Flight {
    Initialize,
    Job(Job),
}

struct Running {
    process: OwnedProcess,
    /// Among all that run.
    counted: Counted,
    pipe: Pipe<Bytes>,
    last_id: i64,
    in_flight: HashMap<i64, Flight>,
    agreed: Arc<Agreed>,
    is_incremental: bool,
    progress: Progress,
    /// By the id under which the server registered it.
    registered: HashMap<String, Registration>,
    watchers: Watchers,
    /// The edit that the server wanted made last. It is not made: whoever ran a command looks at it first.
    wanted_edit: Value,
    started: SystemTime,
    first_words: Arc<OnceLock<String>>,
    /// Whether clients were told that it takes nearly too much memory.
    is_warned_of: bool,
}

pub(super) struct Task {
    choice: Choice,
    /// See [`baton_agent_base::process`].
    mark: String,
    activity: watch::Sender<Activity>,
    diagnostics: DiagnosticMap,
    shared: Shared,
    life: Life,
    documents: Documents,
    running: Option<Running>,
    waiting: VecDeque<Job>,
    /// Shown, but not read by the server yet, which answers from what it has read; with the end of that, as a server
    /// need not tell anything of a text that it knew before.
    unread: HashMap<PathBuf, Instant>,
    /// When it is taken to have read what was not shown, and how many files that are.
    reads_until: Option<(Instant, usize)>,
    next_memory_check: Instant,
}

impl Task {
    pub(super) fn new(
        choice: Choice,
        mark: String,
        (activity, diagnostics): (watch::Sender<Activity>, DiagnosticMap),
        shared: Shared,
    ) -> Self {
        let limits = *shared.limits.borrow();
        Self {
            choice,
            mark,
            activity,
            diagnostics,
            shared,
            life: Life::new(limits),
            documents: Documents::default(),
            running: None,
            waiting: VecDeque::new(),
            unread: HashMap::new(),
            reads_until: None,
            next_memory_check: Instant::now(),
        }
    }

    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut limits = self.shared.limits.subscribe();
        loop {
            let timeout = self.next_timeout();
            tokio::select! {
                Ok(()) = limits.changed() => self.life.limit(*limits.borrow_and_update()),
                command = commands.recv() => match command {
                    Some(command) => self.on_command(command).await,
                    None => return,
                },
                body = next_body(&mut self.running) => match body {
                    Some(body) => self.on_body(&body).await,
                    None => self.on_exit(),
                },
                () = sleep_until(timeout) => {}
            }
            self.drive(Instant::now()).await;
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let documents = self.running.is_some().then(|| self.documents.poll_timeout()).flatten();
        let memory = self.running.is_some().then_some(self.next_memory_check);
        let progress =
            self.running.as_ref().and_then(|running| running.progress.poll_timeout(Instant::now()));
        let reads_until = self.reads_until.map(|(until, _)| until);
        let unread = self.unread.values().min().copied();
        [self.life.poll_timeout(), documents, memory, progress, reads_until, unread]
            .into_iter()
            .flatten()
            .min()
    }

    async fn drive(&mut self, now: Instant) {
        self.life.handle_timeout(now);
        while let Some(output) = self.life.poll_output() {
            match output {
                Output::Spawn => self.start().await,
                Output::Kill => {
                    warn!(server = %self.choice.spec.name, "does not come up and is killed");
                    self.lose_running();
                }
                Output::Stop => {
                    let Some(mut running) = self.take_running() else { continue };
                    // What it has not answered the next one is asked.
                    self.waiting.extend(running.take_jobs());
                    tokio::spawn(running.end());
                    if !self.waiting.is_empty() {
                        self.life.handle(now, Input::Wanted);
                    }
                }
            }
            self.life.handle_timeout(now);
        }
        if self.life.is_ready() {
            let notices = self.documents.close_idle(now);
            self.send_all(notices).await;
        }
        self.check_memory(now);
        self.publish();
    }

    fn check_memory(&mut self, now: Instant) {
        let Some(running) = &mut self.running else { return };
        if now < self.next_memory_check {
            return;
        }
        self.next_memory_check = now + MEMORY_CHECK;
        let set = self.shared.limits.borrow().memory_mb;
        let max_mb = self.choice.spec.max_memory_mb.unwrap_or(set);
        let bytes = process::memory_of_group(running.process.pid());
        let server = self.choice.spec.name.clone();
        let taken_mb = bytes / (1024 * 1024);
        if bytes > max_mb.saturating_mul(1024 * 1024) {
            warn!(%server, bytes, "takes too much memory and is ended");
            let jobs: Vec<Job> = running.take_jobs().collect();
            if jobs.is_empty() && self.waiting.is_empty() {
                self.tell(format!(
                    "The language server {server} took {taken_mb} MB of memory and was ended (limit {max_mb} MB, setting \
                     server_memory_mb); the next call starts it again."
                ));
            }
            let error = ServerError::OutOfMemory { server, max_mb };
            for job in jobs {
                let _ = job.reply.send(Err(error.clone()));
            }
            self.fail_waiting(&error);
            self.lose_running();
            // The next call starts it again: nobody may be waiting.
            self.life = Life::new(*self.shared.limits.borrow());
        } else if taken_mb.saturating_mul(100) > max_mb.saturating_mul(WARN_PERCENT) && !running.is_warned_of
        {
            running.is_warned_of = true;
            self.tell(format!(
                "The language server {server} takes {taken_mb} MB of memory, and is ended when it takes more than \
                 {max_mb} MB (setting server_memory_mb)."
            ));
        }
    }

    /// The next answer of the window tells it.
    fn tell(&self, news: String) {
        self.shared.news.lock().push(news);
    }

    /// The server's line of the table, with the other trees that it can be told to leave out.
    async fn spec_here(&self) -> ServerSpec {
        let (spec, root) = (self.choice.spec.clone(), self.choice.root.clone());
        if spec.leaves_out.is_none() {
            return (*spec).clone();
        }
        let looked = tokio::task::spawn_blocking(move || spec.without(&walk::other_trees(&root), &root));
        looked.await.unwrap_or_else(|_| (*self.choice.spec).clone())
    }

    async fn start(&mut self) {
        let spec = self.spec_here().await;
        let started = SystemTime::now();
        let process = match OwnedProcess::spawn(&self.choice.program, &self.mark) {
            Ok(process) => process,
            Err(error) => {
                let failed = ServerError::Start { server: spec.name.clone(), why: error.to_string() };
                self.fail_waiting(&failed);
                return self.life.handle(Instant::now(), Input::Exited);
            }
        };
        let mut process = process;
        let Some((stdin, stdout, stderr)) = process.take_streams() else { return };
        let first_words = log_lines(spec.name.clone(), stderr);
        info!(server = %spec.name, pid = process.pid(), root = %self.choice.root.display(), "starts");
        let mut running = Running {
            process,
            counted: self.shared.census.begin(&spec.name),
            pipe: Pipe::new(stdout, stdin, Some),
            last_id: 0,
            in_flight: HashMap::new(),
            agreed: Arc::default(),
            is_incremental: false,
            progress: Progress::new(Instant::now(), &spec, &self.choice.root),
            registered: HashMap::new(),
            watchers: Watchers::default(),
            wanted_edit: Value::Null,
            started,
            first_words,
            is_warned_of: false,
        };
        running
            .request("initialize", session::initialize(&spec, &self.choice.root), Flight::Initialize)
            .await;
        self.running = Some(running);
        self.next_memory_check = Instant::now() + MEMORY_CHECK;
    }

    fn take_running(&mut self) -> Option<Running> {
        let running = self.running.take()?;
        info!(server = %self.choice.spec.name, "stops");
        self.documents = Documents::default();
        self.forget_told();
        Some(running)
    }

    async fn on_command(&mut self, command: Command) {
        match command {
            Command::Ask { id, ask, deadline, reply, span } => {
                self.on_ask(Job { id, ask, reply, deadline, n_tries: 0, span }).await;
            }
            Command::Cancel { id } => self.on_cancel(id).await,
            Command::Changed { changes } => self.on_changed(&changes).await,
            Command::Stop { reply } => {
                self.fail_waiting(&ServerError::ShuttingDown);
                if let Some(running) = self.take_running() {
                    running.end().await;
                }
                self.life = Life::new(*self.shared.limits.borrow());
                let _ = reply.send(());
            }
        }
    }

    async fn on_ask(&mut self, job: Job) {
        let now = Instant::now();
        self.life.handle(now, Input::Wanted);
        if self.life.is_ready() {
            return self.dispatch(job).await;
        }
        let server = self.choice.spec.name.clone();
        let pause = self.life.pausing_until().map(|until| until.saturating_duration_since(now));
        if let Some(pause) = pause.filter(|pause| !job.can_wait(now, *pause)) {
            let _ = job.reply.send(Err(ServerError::Crashed { server, pause }));
        } else if self.waiting.len() >= MAX_WAITING {
            let _ = job.reply.send(Err(ServerError::Busy { server }));
        } else {
            self.waiting.push_back(job);
        }
    }

    async fn on_cancel(&mut self, id: u64) {
        self.waiting.retain(|job| job.id != id);
        let Some(running) = &mut self.running else { return };
        let is_it = |flight: &Flight| matches!(flight, Flight::Job(job) if job.id == id);
        let found = running.in_flight.iter().find(|(_, flight)| is_it(flight)).map(|(id, _)| *id);
        if let Some(id) = found {
            running.in_flight.remove(&id);
            running.notify("$/cancelRequest", json!({"id": id})).await;
        }
    }

    async fn on_changed(&mut self, changes: &[FileChange]) {
        // Before that nothing may be told, and what it reads afterwards is new.
        if !self.life.is_ready() {
            return;
        }
        self.open_changed(changes).await;
        let Some(running) = self.running.as_ref().filter(|_| self.life.is_ready()) else { return };
        let events: Vec<Value> = changes
            .iter()
            .filter(|(path, _)| path.starts_with(&self.choice.root))
            .filter(|(path, kind)| running.watchers.want(path, *kind))
            .map(|(path, kind)| json!({"uri": lsp::uri(path), "type": *kind as u8}))
            .collect();
        for (path, kind) in changes {
            if *kind == ChangeKind::Deleted {
                self.diagnostics.lock().remove(path);
            }
        }
        if events.is_empty() {
            return;
        }
        self.sync_open(&[]).await;
        let notice = Notice { method: "workspace/didChangeWatchedFiles", params: json!({"changes": events}) };
        self.send_all(vec![notice]).await;
    }

    /// Opens what changed: a server that is told of a change on disk looks at it some time later, or never, but what
    /// is opened counts for the next question. After a change of a whole tree one of the latter is started anew.
    async fn open_changed(&mut self, changes: &[FileChange]) {
        let is_own =
            |path: &Path| path.starts_with(&self.choice.root) && self.choice.spec.language_of(path).is_some();
        let own = changes.iter().filter(|(path, _)| is_own(path) && self.documents.version(path).is_none());
        let own: Vec<FileChange> = own.cloned().collect();
        if own.len() > MAX_CHANGED {
            if self.choice.spec.reads_only_opened {
                return self.life.handle(Instant::now(), Input::Outdated);
            }
            self.reads_until = Some((Instant::now() + BY_ITSELF, own.len()));
        }
        let comes_or_goes = own.iter().filter(|(_, kind)| *kind != ChangeKind::Changed).count();
        if let Some(ms) = self.choice.spec.regroups_after_ms.filter(|_| comes_or_goes > 0) {
            let until = Instant::now() + Duration::from_millis(ms);
            if self.reads_until.is_none_or(|(later, _)| later < until) {
                self.reads_until = Some((until, comes_or_goes));
            }
        }
        let there = own.into_iter().filter(|(_, kind)| *kind != ChangeKind::Deleted).map(|(path, _)| path);
        let mut saved = Vec::new();
        for (path, read) in files::read_all(there.take(MAX_CHANGED).collect()).await {
            if let Ok(snapshot) = read {
                self.show(&snapshot).await;
                let params = json!({"textDocument": {"uri": lsp::uri(&path)}});
                saved.push(Notice { method: "textDocument/didSave", params });
            }
        }
        if self.choice.spec.reads_only_opened && !saved.is_empty() {
            // Only then does it look again at what includes them.
            self.reads_until = Some((Instant::now() + INCLUDERS, saved.len()));
            self.send_all(saved).await;
        }
    }

    /// Open files that changed on disk, whoever asks for what, but for those that are shown anyway.
    async fn sync_open(&mut self, except: &[Snapshot]) {
        let changed: Vec<_> = self
            .documents
            .stamps()
            .filter(|(path, _)| !except.iter().any(|shown| shown.path == *path))
            .filter(|(path, stamp)| stamp.modified.is_none() || files::stamp(path).as_ref() != Some(stamp))
            .map(|(path, _)| path.to_owned())
            .collect();
        if changed.is_empty() {
            return;
        }
        for (path, read) in files::read_all(changed).await {
            match read {
                Ok(snapshot) => self.show(&snapshot).await,
                Err(_) => {
                    // rust-analyzer looks some time later whether it is gone; that it is empty counts at once.
                    let stamp = Stamp { modified: None, len: 0, inode: 0 };
                    let text = Arc::new(Text::new(String::new()));
                    self.show(&Snapshot { path: path.clone(), text, stamp }).await;
                    self.unread.remove(&path);
                    let notice = self.documents.close(&path);
                    self.send_all(notice.into_iter().collect()).await;
                }
            }
        }
    }

    async fn show(&mut self, snapshot: &Snapshot) {
        let Some(running) = &self.running else { return };
        let language = self.documents.language(&snapshot.path).map(str::to_owned);
        let language = language.or_else(|| self.choice.spec.language_of(&snapshot.path).map(str::to_owned));
        // Unsaved texts of other languages come along.
        let Some(language) = language else { return };
        let notices = self.documents.show(
            Instant::now(),
            snapshot,
            &language,
            running.agreed.encoding,
            running.is_incremental,
        );
        if !notices.is_empty() {
            let mut told = self.diagnostics.lock();
            if let Some(published) = told.get_mut(&snapshot.path) {
                published.is_current = false;
            }
            if self.choice.spec.reads_only_opened {
                self.unread.insert(snapshot.path.clone(), Instant::now() + UNREAD_LIMIT);
            }
        }
        self.send_all(notices).await;
    }

    async fn dispatch(&mut self, mut job: Job) {
        if job.reply.is_closed() {
            return;
        }
        self.sync_open(&job.ask.show).await;
        for snapshot in std::mem::take(&mut job.ask.show) {
            self.show(&snapshot).await;
            job.ask.show.push(snapshot);
        }
        let Some(running) = &mut self.running else { return };
        job.n_tries += 1;
        if job.ask.method.is_empty() {
            let _ = job.reply.send(Ok(Answered { result: Value::Null, agreed: running.agreed.clone() }));
            return;
        }
        let (server, method) = (&self.choice.spec.name, job.ask.method);
        debug!(parent: &job.span, %server, method, "asks the server");
        let params = (job.ask.params)(&running.agreed);
        running.request(job.ask.method, params, Flight::Job(job)).await;
    }

    async fn on_body(&mut self, body: &Bytes) {
        let message: Message<'_> = match serde_json::from_slice(body) {
            Ok(message) => message,
            Err(error) => return debug!(%error, len = body.len(), "the server sent what is no message"),
        };
        match (message.id, message.method) {
            (Some(id), Some(method)) => self.on_request(id, &method, &message.params).await,
            (None, Some(method)) => self.on_notice(&method, &message.params),
            (Some(id), None) => {
                let answer = match message.error {
                    Some(error) => Err(error),
                    None => Ok(message.result),
                };
                self.on_answer(id.as_i64().unwrap_or_default(), answer).await;
            }
            (None, None) => {}
        }
    }

    async fn on_request(&mut self, id: Value, method: &str, params: &Value) {
        let Some(running) = &mut self.running else { return };
        let mut asked: Asked = read(params);
        let all = asked.registrations.0.drain(..).map(|one| (one.id.clone(), one));
        running.registered.extend(all);
        for gone in &asked.unregistrations.0 {
            running.registered.remove(&gone.id);
        }
        if method.ends_with("registerCapability") {
            running.watchers = Watchers::new(running.registered_for("workspace/didChangeWatchedFiles"));
        }
        if method == "workspace/applyEdit" {
            running.wanted_edit = std::mem::take(&mut asked.edit);
        }
        let answer = match session::answer(&self.choice.spec, &self.choice.root, method, &asked) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        running.send(&answer).await;
    }

    fn on_notice(&mut self, method: &str, params: &Value) {
        let Some(running) = &mut self.running else { return };
        match method {
            "$/progress" => running.progress.on_progress(Instant::now(), read(params)),
            "textDocument/clangd.fileStatus" => {
                running.progress.on_file_status(Instant::now(), &read(params));
            }
            "experimental/serverStatus" => running.progress.on_status(&read(params)),
            "textDocument/publishDiagnostics" => self.on_published(read(params)),
            "window/logMessage" | "window/showMessage" => {
                let message = read::<Logged>(params).message;
                running.progress.on_log(&message);
                debug!(server = %self.choice.spec.name, message, "says");
            }
            _ => {}
        }
    }

    fn on_published(&mut self, told: FileDiagnostics) {
        let Some(path) = lsp::path(&told.uri) else { return };
        let (items, version) = (told.items.0.into(), told.version);
        let newest = self.documents.version(&path).map(i64::from);
        let is_current = match (version, newest) {
            (Some(version), Some(newest)) => version >= newest,
            _ => true,
        };
        if is_current {
            self.unread.remove(&path);
        }
        let mut told = self.diagnostics.lock();
        let n_told = told.get(&path).map_or(0, |before| before.n_told) + 1;
        told.insert(path, Published { items, is_current, n_told });
        drop(told);
        self.activity.send_modify(|activity| activity.n_published += 1);
    }

    async fn on_answer(&mut self, id: i64, answer: Result<Value, lsp::ResponseError>) {
        let Some(running) = &mut self.running else { return };
        let Some(flight) = running.in_flight.remove(&id) else { return };
        let server = self.choice.spec.name.clone();
        match (flight, answer) {
            (Flight::Initialize, Ok(result)) => self.on_initialized(&result).await,
            (Flight::Initialize, Err(error)) => {
                let why = format!("it refused to: {}", error.message);
                self.fail_waiting(&ServerError::Start { server, why });
                self.on_exit();
            }
            (Flight::Job(job), answer) => {
                // What a command gives is what it wanted changed; that it was not makes some servers call it a failure.
                let answer = match job.ask.method {
                    "workspace/executeCommand" => Ok(std::mem::take(&mut running.wanted_edit)),
                    _ => answer,
                };
                let agreed = running.agreed.clone();
                let told = answer.map(|result| Answered { result, agreed });
                let _ = job.reply.send(told.map_err(|error| match ASK_AGAIN.contains(&error.code) {
                    true => ServerError::Overtaken,
                    false => ServerError::Refused { server, message: error.message },
                }));
            }
        }
    }

    async fn on_initialized(&mut self, result: &Value) {
        let Some(running) = &mut self.running else { return };
        let capabilities = read::<Initialized>(result).capabilities;
        let encoding = Encoding::from_name(&capabilities.position_encoding);
        let sync = &capabilities.text_document_sync;
        running.is_incremental = matches!(sync, Some(Or::Plain(2) | Or::More(SyncOptions { change: 2 })));
        running.agreed = Arc::new(Agreed { encoding: encoding.unwrap_or_default(), capabilities });
        running.notify("initialized", json!({})).await;
        let settings = &self.choice.spec.settings;
        running.notify("workspace/didChangeConfiguration", json!({"settings": settings})).await;
        self.life.handle(Instant::now(), Input::Initialized);
        let notices = self.documents.reopen();
        self.send_all(notices).await;
        self.publish();
        for job in std::mem::take(&mut self.waiting) {
            self.dispatch(job).await;
        }
    }

    /// The process is gone, or as good as gone. What was asked is asked again, once.
    fn on_exit(&mut self) {
        let now = Instant::now();
        let was_running = self.running.is_some();
        self.life.handle(now, Input::Exited);
        if was_running {
            warn!(server = %self.choice.spec.name, n_crashes = self.life.n_crashes(), "exited");
        }
        self.lose_running();
    }

    fn lose_running(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        self.forget_told();
        let server = self.choice.spec.name.clone();
        let never_came_up = running.in_flight.values().any(|flight| matches!(flight, Flight::Initialize));
        let why = running.first_words.get().cloned().filter(|_| never_came_up);
        let pause = self.life.pausing_until().map(|until| until.saturating_duration_since(Instant::now()));
        let pause = pause.unwrap_or_default();
        let jobs: Vec<Job> = running.take_jobs().collect();
        running.counted.died();
        for job in jobs.into_iter().chain(std::mem::take(&mut self.waiting)) {
            if job.n_tries >= MAX_TRIES || !job.can_wait(Instant::now(), pause) {
                let server = server.clone();
                let error = match &why {
                    Some(why) => ServerError::Start { server, why: why.clone() },
                    None => ServerError::Crashed { server, pause },
                };
                let _ = job.reply.send(Err(error));
            } else {
                self.waiting.push_back(job);
            }
        }
    }

    fn forget_told(&mut self) {
        self.unread.clear();
        self.reads_until = None;
        self.diagnostics.lock().clear();
    }

    fn fail_waiting(&mut self, error: &ServerError) {
        for job in std::mem::take(&mut self.waiting) {
            let _ = job.reply.send(Err(error.clone()));
        }
    }

    async fn send_all(&mut self, notices: Vec<Notice>) {
        let Some(running) = &mut self.running else { return };
        for notice in notices {
            if notice.method == DID_OPEN {
                running.progress.on_opened(Instant::now());
            }
            running.notify(notice.method, notice.params).await;
        }
    }

    fn publish(&mut self) {
        let is_ready = self.life.is_ready() && self.running.is_some();
        let now = Instant::now();
        self.reads_until = self.reads_until.filter(|(until, _)| now < *until);
        self.unread.retain(|_, until| now < *until);
        let n_unread = self.reads_until.map_or(self.unread.len(), |(_, n_files)| n_files);
        let reads = || (n_unread > 0).then(|| format!("reading {n_unread} files"));
        let progress =
            self.running.as_ref().and_then(|running| running.progress.shown(Instant::now()).or_else(reads));
        let problem = self.running.as_ref().and_then(|running| running.progress.problem());
        let pulls = self.running.as_ref().map(Running::pulls).unwrap_or_default();
        let pid = self.running.as_ref().map(|running| running.process.pid());
        let started = self.running.as_ref().map(|running| running.started);
        self.activity.send_if_modified(|activity| {
            let before = activity.clone();
            activity.was_busy = progress.is_some() || (activity.was_busy && activity.pid == pid);
            activity.ready_since = activity.ready_since.filter(|_| activity.pid == pid);
            activity.ready_since = is_ready.then(|| activity.ready_since.unwrap_or_else(Instant::now));
            (activity.is_ready, activity.progress, activity.pid) = (is_ready, progress, pid);
            (activity.pulls, activity.pulls_workspace) = pulls;
            (activity.problem, activity.started) = (problem, started);
            before != *activity
        });
    }
}

impl Running {
    /// Asks it to end, so that it can clear up what it has on disk, and kills it when it does not.
    async fn end(mut self) {
        let asked = async {
            self.send(&json!({"jsonrpc": "2.0", "id": i64::MAX, "method": "shutdown"})).await;
            while let Some(body) = self.pipe.incoming.recv().await {
                let message: Result<Message<'_>, _> = serde_json::from_slice(&body);
                if message.is_ok_and(|message| message.id.is_some_and(|id| id == i64::MAX)) {
                    break;
                }
            }
            self.notify("exit", Value::Null).await;
            self.process.wait().await;
        };
        let _ = tokio::time::timeout(STOP_PATIENCE, asked).await;
    }

    /// What it was asked and has not answered.
    fn take_jobs(&mut self) -> impl Iterator<Item = Job> + use<> {
        std::mem::take(&mut self.in_flight).into_values().filter_map(|flight| match flight {
            Flight::Job(job) => Some(job),
            Flight::Initialize => None,
        })
    }

    async fn request(&mut self, method: &str, params: Value, flight: Flight) {
        self.last_id += 1;
        let id = self.last_id;
        self.in_flight.insert(id, flight);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    async fn send(&self, message: &Value) {
        // When the server is gone, the end of what it sends tells.
        let _ = self.pipe.outgoing.send(Bytes::from(message.to_string())).await;
    }

    /// Whether diagnostics are asked for, by file and for the whole project.
    fn pulls(&self) -> (bool, bool) {
        let fixed = self.agreed.capabilities.diagnostic_provider.as_ref();
        let all: Vec<_> = fixed.into_iter().chain(self.registered_for("textDocument/diagnostic")).collect();
        (!all.is_empty(), all.iter().any(|options| options.workspace_diagnostics))
    }

    /// How it wants to be asked or told something, as it said since it is up.
    fn registered_for(&self, method: &str) -> impl Iterator<Item = &Options> {
        let all = self.registered.values().filter(move |one| one.method == method);
        all.map(|one| &one.register_options)
    }
}

async fn next_body(running: &mut Option<Running>) -> Option<Bytes> {
    match running {
        Some(running) => running.pipe.incoming.recv().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
