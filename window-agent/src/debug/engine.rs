//! The one task that owns breakpoints, sessions, ids and waits: commands and adapters' messages in, answers out.
//!
//! Each session's connection is served by a task of its own ([`crate::debug::host`]); what its messages mean is
//! decided by its core ([`crate::debug::session`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::Instant;

use baton_proto::shim::EditorBreakpoint;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::debug::adapters::{self, Plan, Reach, StartKind};
use crate::debug::breakpoints::{Breakpoints, SessionKey, Wanted};
use crate::debug::editor::Editor;
use crate::debug::engine::waits::{Wait, WaitId, WaitReply, Waits};
use crate::debug::error::DebugError;
use crate::debug::from_dap::{self, Ids};
use crate::debug::handles::Lookup;
use crate::debug::host::direct::{self, FromHost, Inbox};
use crate::debug::output::OutputRing;
use crate::debug::session::capture::Captured;
use crate::debug::session::{End, Ending, Input, Output, Session, Ticket};
use crate::debug::types::{
    Breakpoint, Completed, Evaluate, Evaluated, MAX_VARIABLES, OutputTail, Paging, Phase, RemoveBreakpoint,
    Resume, Scope, SessionId, SessionSummary, SetBreakpoint, StopEvent, Variables, Waited,
};
use crate::process;

mod asks;
pub(crate) mod waits;

/// Most sessions at once, child sessions included: each costs processes of some 100 MB.
const MAX_SESSIONS: usize = 32;
/// Messages of hosts on their way to the engine.
const MAX_INBOX: usize = 256;
/// Ended sessions that are remembered, to be able to say that they ended.
const MAX_REMEMBERED: usize = 64;

/// What the engine is asked.
#[derive(Debug)]
pub(crate) enum Command {
    SetBreakpoint { wish: SetBreakpoint, reply: oneshot::Sender<Breakpoint> },
    RemoveBreakpoint { which: RemoveBreakpoint, reply: oneshot::Sender<Vec<Breakpoint>> },
    Breakpoints { reply: oneshot::Sender<Vec<Breakpoint>> },
    EditorBreakpoints { all: Vec<EditorBreakpoint> },
    Start { plan: Box<Plan>, name: String, wait: WaitId, reply: WaitReply },
    Resume { session: Option<SessionId>, thread_id: i64, how: Resume, wait: WaitId, reply: WaitReply },
    EndWait { wait: WaitId, early: Early },
    InterruptWaits,
    Scopes { frame_id: i64, reply: oneshot::Sender<Result<Vec<Scope>, DebugError>> },
    Variables { reference: i64, paging: Paging, reply: oneshot::Sender<Result<Variables, DebugError>> },
    Evaluate { evaluate: Evaluate, reply: oneshot::Sender<Result<Evaluated, DebugError>> },
    Stop { session: Option<SessionId>, reply: oneshot::Sender<Result<SessionId, DebugError>> },
    StopAll { reply: oneshot::Sender<()> },
}

/// Why a wait ended before its program stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    TimedOut,
    Interrupted,
}

/// A session that has not gone yet.
struct Live {
    id: SessionId,
    name: String,
    plan: Plan,
    parent: Option<SessionKey>,
    root: SessionKey,
    core: Session,
    outgoing: Option<mpsc::Sender<Bytes>>,
    over: CancellationToken,
    /// By which its processes are found; `None` when they are another's.
    mark: Option<String>,
    /// A stop that nobody was told.
    unseen: Option<StopEvent>,
    /// Of a root: what its tree printed since the last answer.
    output: OutputRing,
    /// Of a root: our ids of the breakpoints its tree hit.
    hit: BTreeSet<i64>,
    /// Who is told once it has gone.
    stoppers: Vec<oneshot::Sender<Result<SessionId, DebugError>>>,
}

/// A session that ended.
struct Ended {
    id: SessionId,
    exit_code: Option<i64>,
    /// Its end, when nobody was told.
    unseen: Option<Completed>,
}

/// The engine's state.
pub(crate) struct Engine {
    commands: mpsc::Receiver<Command>,
    inbox: mpsc::Receiver<(SessionKey, FromHost)>,
    to_inbox: mpsc::Sender<(SessionKey, FromHost)>,
    hosts: JoinSet<()>,
    published: watch::Sender<Vec<SessionSummary>>,
    prefix: String,
    editor: Option<Editor>,
    breakpoints: Breakpoints,
    ids: Ids,
    waits: Waits,
    sessions: BTreeMap<SessionKey, Live>,
    last_key: SessionKey,
    /// The session that stopped or started last.
    active: Option<SessionKey>,
    ended: VecDeque<Ended>,
    asked: BTreeMap<Ticket, asks::Asked>,
    last_ticket: Ticket,
    /// Breakpoint verbs that wait for adapters, by a key of their own.
    gathers: BTreeMap<u64, asks::Gather>,
    stop_all: Vec<oneshot::Sender<()>>,
}

impl Engine {
    /// An engine without sessions. `prefix` makes its sessions' ids unique over all agents.
    pub(crate) fn new(
        prefix: String,
        editor: Option<Editor>,
        commands: mpsc::Receiver<Command>,
        published: watch::Sender<Vec<SessionSummary>>,
    ) -> Self {
        let (to_inbox, inbox) = mpsc::channel(MAX_INBOX);
        Self {
            commands,
            inbox,
            to_inbox,
            hosts: JoinSet::new(),
            published,
            prefix,
            editor,
            breakpoints: Breakpoints::default(),
            ids: Ids::default(),
            waits: Waits::default(),
            sessions: BTreeMap::new(),
            last_key: 0,
            active: None,
            ended: VecDeque::new(),
            asked: BTreeMap::new(),
            last_ticket: 0,
            gathers: BTreeMap::new(),
            stop_all: Vec::new(),
        }
    }

    /// Runs until every handle on the engine is gone; then everything it started is killed.
    pub(crate) async fn run(mut self) {
        loop {
            let next = self.sessions.values().filter_map(|live| live.core.poll_timeout()).min();
            let timer = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.on_command(command),
                    None => return,
                },
                event = self.inbox.recv() => {
                    if let Some((key, event)) = event {
                        self.on_host(key, event);
                    }
                }
                () = timer => self.on_timer(),
                Some(_) = self.hosts.join_next() => {}
            }
            self.publish();
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::SetBreakpoint { wish, reply } => self.on_set_breakpoint(wish, reply),
            Command::RemoveBreakpoint { which, reply } => self.on_remove_breakpoint(&which, reply),
            Command::Breakpoints { reply } => drop(reply.send(self.breakpoints.list())),
            Command::EditorBreakpoints { all } => self.on_editor_breakpoints(all),
            Command::Start { plan, name, wait, reply } => self.on_start(*plan, name, wait, reply),
            Command::Resume { session, thread_id, how, wait, reply } => {
                match self.resolve(session.as_ref()) {
                    Ok(key) => self.on_resume(key, thread_id, how, wait, reply),
                    Err(error) => drop(reply.send(self.unseen_end(session.as_ref()).ok_or(error))),
                }
            }
            Command::EndWait { wait, early } => self.on_end_wait(wait, early),
            Command::InterruptWaits => {
                for wait in self.waits.take_all() {
                    self.answer_early(wait, Early::Interrupted);
                }
            }
            Command::Scopes { frame_id, reply } => self.on_scopes(frame_id, reply),
            Command::Variables { reference, paging, reply } => self.on_variables(reference, paging, reply),
            Command::Evaluate { evaluate, reply } => self.on_evaluate(evaluate, reply),
            Command::Stop { session, reply } => match self.resolve(session.as_ref()) {
                Ok(key) => self.on_stop(key, reply),
                Err(error) => drop(reply.send(Err(error))),
            },
            Command::StopAll { reply } => {
                self.stop_all.push(reply);
                let keys: Vec<SessionKey> = self.sessions.keys().copied().collect();
                for key in keys {
                    self.feed(key, Input::Stop);
                }
                self.drive_stop_all();
            }
        }
    }

    fn on_start(&mut self, plan: Plan, name: String, wait: WaitId, reply: WaitReply) {
        if self.sessions.len() >= MAX_SESSIONS {
            return drop(reply.send(Err(DebugError::TooManySessions { limit: MAX_SESSIONS })));
        }
        let key = self.begin(plan, name, None);
        self.active = Some(key);
        self.waits.push(Wait { id: wait, session: key, root: key, thread_id: None, reply });
    }

    /// Makes a session and starts its host.
    fn begin(&mut self, plan: Plan, name: String, parent: Option<SessionKey>) -> SessionKey {
        self.last_key += 1;
        let key = self.last_key;
        let root = parent.and_then(|parent| self.sessions.get(&parent)).map_or(key, |parent| parent.root);
        let id = SessionId(format!("{}-{key}", self.prefix));
        let served = self.breakpoints.paths().into_iter().filter(|path| plan.adapter.serves_source(path));
        let wanted: BTreeMap<PathBuf, Vec<Wanted>> =
            served.map(|path| (path.to_owned(), self.breakpoints.of_file(path))).collect();
        let is_connected = !matches!(plan.reach, Reach::Stdio(_));
        let tuning = plan.adapter.attach_tuning.filter(|_| is_connected);
        let core = Session::new(&plan, tuning, if plan.no_debug { BTreeMap::new() } else { wanted });
        let mark = (!is_connected).then(|| format!("{}-{}", id, std::process::id()));
        let over = CancellationToken::new();
        let inbox = Inbox { key, sender: self.to_inbox.clone() };
        self.hosts.spawn(direct::run(plan.clone(), mark.clone(), over.clone(), inbox));
        tracing::info!(session = %id, adapter = plan.adapter.name, "debug session begins");
        let live = Live {
            id,
            name,
            plan,
            parent,
            root,
            core,
            outgoing: None,
            over,
            mark,
            unseen: None,
            output: OutputRing::default(),
            hit: BTreeSet::new(),
            stoppers: Vec::new(),
        };
        self.sessions.insert(key, live);
        key
    }

    fn on_resume(&mut self, key: SessionKey, thread_id: i64, how: Resume, id: WaitId, reply: WaitReply) {
        if self.waits.is_busy(key, thread_id) {
            return drop(reply.send(Err(DebugError::Busy { thread_id })));
        }
        let Some(live) = self.sessions.get_mut(&key) else { return };
        let wait = Wait { id, session: key, root: live.root, thread_id: Some(thread_id), reply };
        if let Some(stop) = live.unseen.take() {
            // It stopped after an earlier wait had ended: that is news.
            return self.tell_stop(key, stop, vec![wait]);
        }
        match (live.core.phase(), live.core.is_stopped(thread_id)) {
            // A stop that is about to be told: nobody may run past it unheard.
            (Phase::Stopped, _) if live.core.is_capturing() => self.waits.push(wait),
            (Phase::Stopped, Some(true)) => self.resume(wait, thread_id, how),
            (Phase::Stopped, _) => self.ask_threads(wait, thread_id, how),
            (Phase::Terminating | Phase::Terminated, _) => self.waits.push(wait),
            _ if how == Resume::Continue => self.wait_on(wait),
            _ => drop(wait.reply.send(Err(DebugError::NotStopped { thread_id }))),
        }
    }

    /// Lets a thread that is known to be stopped go on. The wait is armed before the request goes out.
    fn resume(&mut self, wait: Wait, thread_id: i64, how: Resume) {
        let key = wait.session;
        self.wait_on(wait);
        self.feed(key, Input::Resume { thread_id, how });
    }

    /// Arms a wait; a stop in its tree that nobody was told answers it at once.
    fn wait_on(&mut self, wait: Wait) {
        let is_kin = |live: &Live| live.root == wait.root && live.unseen.is_some();
        let kin = self
            .sessions
            .iter_mut()
            .find(|(_, live)| is_kin(live))
            .map(|(&key, live)| (key, live.unseen.take()));
        match kin {
            Some((key, Some(stop))) => self.tell_stop(key, stop, vec![wait]),
            _ => self.waits.push(wait),
        }
    }

    fn on_end_wait(&mut self, id: WaitId, early: Early) {
        if let Some(wait) = self.waits.take(id).or_else(|| self.take_asking(id)) {
            self.answer_early(wait, early);
        }
    }

    fn answer_early(&mut self, wait: Wait, early: Early) {
        let output = self.take_output(wait.root);
        let session = self
            .sessions
            .get(&wait.session)
            .map_or_else(|| SessionId(self.prefix.clone()), |live| live.id.clone());
        let waited = match early {
            Early::TimedOut => Waited::TimedOut { session, output },
            Early::Interrupted => Waited::Interrupted { session, output },
        };
        let _ = wait.reply.send(Ok(waited));
    }

    fn on_stop(&mut self, key: SessionKey, reply: oneshot::Sender<Result<SessionId, DebugError>>) {
        // The program is meant, with all its children.
        let root = self.sessions.get(&key).map_or(key, |live| live.root);
        if let Some(live) = self.sessions.get_mut(&root) {
            live.stoppers.push(reply);
        }
        let tree: Vec<SessionKey> = self.tree(root);
        for key in tree.into_iter().rev() {
            self.feed(key, Input::Stop);
        }
    }

    fn on_host(&mut self, key: SessionKey, event: FromHost) {
        match event {
            FromHost::Reached(outgoing) => {
                let Some(live) = self.sessions.get_mut(&key) else { return };
                if live.core.phase() == Phase::Terminated {
                    return;
                }
                live.outgoing = Some(outgoing);
                self.feed(key, Input::Connected);
            }
            FromHost::Message(message) => self.feed(key, Input::Message(message)),
            FromHost::Printed(text) => self.print(key, &text),
            FromHost::UserStops => {
                let root = self.sessions.get(&key).map_or(key, |live| live.root);
                for wait in self.waits.take_ended(key).into_iter().chain(self.waits.take_ended(root)) {
                    self.answer_early(wait, Early::Interrupted);
                }
            }
            FromHost::Closed { how } => self.feed(key, Input::Closed { how }),
            FromHost::Failed(error) => {
                for wait in self.waits.take_ended(key) {
                    let _ = wait.reply.send(Err(error.clone()));
                }
                self.feed(key, Input::Closed { how: error.to_string() });
            }
            FromHost::Gone => self.on_gone(key),
        }
    }

    fn on_gone(&mut self, key: SessionKey) {
        let Some(mut live) = self.sessions.remove(&key) else { return };
        for stopper in std::mem::take(&mut live.stoppers) {
            let _ = stopper.send(Ok(live.id.clone()));
        }
        if self.active == Some(key) {
            self.active = live.parent;
        }
        self.drive_stop_all();
    }

    fn drive_stop_all(&mut self) {
        if self.sessions.is_empty() {
            for reply in self.stop_all.drain(..) {
                let _ = reply.send(());
            }
        }
    }

    fn on_timer(&mut self) {
        let now = Instant::now();
        let due =
            self.sessions.iter().filter(|(_, live)| live.core.poll_timeout().is_some_and(|at| at <= now));
        for key in due.map(|(&key, _)| key).collect::<Vec<_>>() {
            if let Some(live) = self.sessions.get_mut(&key) {
                live.core.handle_timeout(now);
            }
            self.drive_outputs(key);
        }
    }

    /// Gives a session an input and does what follows from it.
    fn feed(&mut self, key: SessionKey, input: Input) {
        let Some(live) = self.sessions.get_mut(&key) else { return };
        live.core.handle(Instant::now(), input);
        self.drive_outputs(key);
    }

    fn drive_outputs(&mut self, key: SessionKey) {
        while let Some(output) = self.sessions.get_mut(&key).and_then(|live| live.core.poll_output()) {
            self.on_output(key, output);
        }
    }

    fn on_output(&mut self, key: SessionKey, output: Output) {
        match output {
            Output::Send(message) => self.send(key, &message),
            Output::Answer { ticket, result } => self.on_answer(ticket, result),
            Output::Bound { id, binding } => self.breakpoints.bind(key, id, binding),
            Output::Resumed => {
                self.ids.forget(key);
                if let Some(live) = self.sessions.get_mut(&key) {
                    live.unseen = None;
                }
            }
            Output::ResumeRefused { thread_id, message } => {
                for wait in self.waits.take_thread(key, thread_id) {
                    let command = "resume".to_owned();
                    let _ = wait.reply.send(Err(DebugError::Refused { command, message: message.clone() }));
                }
            }
            Output::Stopped(captured) => self.on_stopped(key, &captured),
            Output::Printed(text) => self.print(key, &text),
            Output::StartChild { request_seq, request, configuration } => {
                self.on_start_child(key, request_seq, &request, configuration);
            }
            Output::RunInTerminal { request_seq, arguments } => {
                self.on_run_in_terminal(key, request_seq, arguments);
            }
            Output::Ended(end) => self.on_ended(key, &end),
        }
    }

    fn send(&mut self, key: SessionKey, message: &Value) {
        let Some(live) = self.sessions.get_mut(&key) else { return };
        let Some(outgoing) = &live.outgoing else { return };
        tracing::trace!(session = %live.id, %message, "to the adapter");
        // A full channel belongs to an adapter that reads nothing any more; it counts as closed.
        if outgoing.try_send(Bytes::from(message.to_string())).is_err() {
            live.outgoing = None;
        }
    }

    fn on_stopped(&mut self, key: SessionKey, captured: &Captured) {
        let Some(live) = self.sessions.get(&key) else { return };
        let (root, id) = (live.root, live.id.clone());
        let mut stop = from_dap::stop_event(captured, (key, id), jiff::Timestamp::now(), &mut self.ids);
        if captured.hit.is_none() && stop.reason.contains("breakpoint") {
            let path = stop.source.as_ref().map_or("", |source| &source.path);
            let here = self.breakpoints.at(path, stop.line.unwrap_or(0));
            stop.hit_breakpoint_ids = Some(here).filter(|here| !here.is_empty());
        }
        if let Some(root) = self.sessions.get_mut(&root) {
            root.hit.extend(stop.hit_breakpoint_ids.iter().flatten());
        }
        let all = stop.all_threads_stopped.unwrap_or(true);
        let waits = self.waits.take_stopped(root, key, stop.thread_id, all);
        if waits.is_empty() {
            if let Some(live) = self.sessions.get_mut(&key) {
                live.unseen = Some(stop);
            }
            return;
        }
        self.tell_stop(key, stop, waits);
    }

    /// Tells a stop to those who wait; when none of them listens any more, it stays untold.
    fn tell_stop(&mut self, key: SessionKey, mut stop: StopEvent, waits: Vec<Wait>) {
        let Some(root) = self.sessions.get(&key).map(|live| live.root) else { return };
        self.active = Some(key);
        stop.output = self.take_output(root);
        let mut is_told = false;
        for wait in waits {
            is_told |= wait.reply.send(Ok(Waited::Stopped(Box::new(stop.clone())))).is_ok();
        }
        if !is_told && let Some(live) = self.sessions.get_mut(&key) {
            live.unseen = Some(stop);
        }
    }

    fn on_start_child(&mut self, key: SessionKey, request_seq: i64, request: &str, configuration: Value) {
        let name = configuration["name"].as_str().unwrap_or("child").to_owned();
        let plan =
            self.sessions.get(&key).and_then(|live| adapters::plan_child(&live.plan, request, configuration));
        let result = match plan {
            Some(_) if self.sessions.len() >= MAX_SESSIONS => Err("too many debug sessions".to_owned()),
            Some(plan) => {
                self.begin(plan, name, Some(key));
                Ok(json!({}))
            }
            None => Err("the child's configuration names no address".to_owned()),
        };
        self.feed(key, Input::Reply { request_seq, command: "startDebugging".to_owned(), result });
    }

    fn on_run_in_terminal(&mut self, key: SessionKey, request_seq: i64, arguments: Value) {
        let Some(live) = self.sessions.get(&key) else { return };
        let mark = live.mark.clone().unwrap_or_default();
        let Some(outgoing) = live.outgoing.clone() else { return };
        let inbox = Inbox { key, sender: self.to_inbox.clone() };
        self.hosts.spawn(async move {
            let (success, body, message) = match direct::run_in_terminal(arguments, mark, inbox).await {
                Ok(body) => (true, body, Value::Null),
                Err(message) => (false, Value::Null, Value::String(message)),
            };
            let reply = json!({
                "seq": 0, "type": "response", "request_seq": request_seq, "command": "runInTerminal",
                "success": success, "body": body, "message": message,
            });
            let _ = outgoing.send(Bytes::from(reply.to_string())).await;
        });
    }

    fn on_ended(&mut self, key: SessionKey, end: &End) {
        self.ids.forget(key);
        self.breakpoints.unbind(key);
        let mut waits = self.waits.take_ended(key);
        waits.retain(|wait| !wait.reply.is_closed());
        let Some(root) = self.sessions.get(&key).map(|live| live.root) else { return };
        // What a child printed is told with its parent's end, unless somebody waits for the child.
        let is_told = root == key || !waits.is_empty();
        let output = if is_told { self.take_output(root) } else { OutputTail::default() };
        let never_hit = if root == key { self.never_hit(key) } else { Vec::new() };
        let Some(live) = self.sessions.get_mut(&key) else { return };
        tracing::info!(session = %live.id, exit_code = end.exit_code, how = ?end.how, "debug session ended");
        // The farewell is in the channel; behind it the connection closes.
        live.outgoing = None;
        live.over.cancel();
        live.unseen = None;
        let session = live.id.clone();
        let result = match &end.how {
            Ending::NotStarted(message) => {
                Err(DebugError::StartFailed { message: with_words(message, &output) })
            }
            Ending::Lost(how) => {
                let output = output.text.trim().to_owned();
                Err(DebugError::AdapterDied { session: session.clone(), how: how.clone(), output })
            }
            Ending::Plain | Ending::Asked => {
                let note = (end.how == Ending::Asked).then(|| match live.plan.kind {
                    StartKind::Launch => "the debug session was stopped".to_owned(),
                    StartKind::Attach => "the debugger was detached; the program runs on".to_owned(),
                });
                let session = session.clone();
                Ok(Completed { session, exit_code: end.exit_code, output, never_hit, note })
            }
        };
        let is_news = waits.is_empty() && end.how != Ending::Asked && root == key;
        let unseen = result.clone().ok().filter(|_| is_news);
        for wait in waits {
            let _ = wait.reply.send(result.clone().map(|completed| Waited::Completed(Box::new(completed))));
        }
        self.ended.push_back(Ended { id: session, exit_code: end.exit_code, unseen });
        if self.ended.len() > MAX_REMEMBERED {
            self.ended.pop_front();
        }
        // Children do not outlive their parent's adapter.
        for child in self.tree(key).into_iter().filter(|child| *child != key) {
            self.feed(child, Input::Stop);
        }
    }

    /// Breakpoints that a tree could have hit and did not; log points never count as hit.
    fn never_hit(&self, root: SessionKey) -> Vec<Breakpoint> {
        let Some(live) = self.sessions.get(&root).filter(|live| !live.plan.no_debug) else {
            return Vec::new();
        };
        let is_missed = |breakpoint: &Breakpoint| {
            breakpoint.log_message.is_none()
                && !live.hit.contains(&breakpoint.id)
                && live.plan.adapter.serves_source(&breakpoint.path)
        };
        self.breakpoints.list().into_iter().filter(is_missed).collect()
    }

    fn print(&mut self, key: SessionKey, text: &str) {
        let root = self.sessions.get(&key).map(|live| live.root);
        if let Some(root) = root.and_then(|root| self.sessions.get_mut(&root)) {
            root.output.push(text);
        }
    }

    fn take_output(&mut self, root: SessionKey) -> OutputTail {
        self.sessions.get_mut(&root).map(|root| root.output.take()).unwrap_or_default()
    }

    /// The session that is meant; without an id the active one, or else the youngest.
    fn resolve(&self, session: Option<&SessionId>) -> Result<SessionKey, DebugError> {
        let is_running = |live: &Live| live.core.phase() != Phase::Terminated;
        let Some(session) = session else {
            let active = self.active.filter(|key| self.sessions.get(key).is_some_and(is_running));
            let youngest =
                || self.sessions.iter().rev().find(|(_, live)| is_running(live)).map(|(&key, _)| key);
            return active.or_else(youngest).ok_or(DebugError::NoSession);
        };
        if let Some((&key, _)) =
            self.sessions.iter().find(|(_, live)| live.id == *session && is_running(live))
        {
            return Ok(key);
        }
        Err(match self.ended.iter().find(|ended| ended.id == *session) {
            Some(ended) => DebugError::SessionEnded { session: session.clone(), exit_code: ended.exit_code },
            None => DebugError::NoSuchSession { session: session.clone() },
        })
    }

    /// An end that nobody was told: of the session that is meant, or else of the last one.
    fn unseen_end(&mut self, session: Option<&SessionId>) -> Option<Waited> {
        let is_meant = |ended: &&mut Ended| session.is_none_or(|session| ended.id == *session);
        let completed = self.ended.iter_mut().rev().find(is_meant)?.unseen.take()?;
        Some(Waited::Completed(Box::new(completed)))
    }

    /// A session and its descendants, parents first.
    fn tree(&self, root: SessionKey) -> Vec<SessionKey> {
        let mut tree = vec![root];
        // Children are younger than their parents, so one pass finds all.
        for (&key, live) in &self.sessions {
            if live.parent.is_some_and(|parent| tree.contains(&parent)) {
                tree.push(key);
            }
        }
        tree
    }

    fn publish(&mut self) {
        let is_running = |live: &&Live| live.core.phase() != Phase::Terminated;
        let parent_id = |live: &Live| Some(self.sessions.get(&live.parent?)?.id.clone());
        let summaries: Vec<SessionSummary> = self
            .sessions
            .values()
            .filter(is_running)
            .map(|live| SessionSummary {
                id: live.id.clone(),
                name: live.name.clone(),
                phase: live.core.phase(),
                parent: parent_id(live),
            })
            .collect();
        self.published.send_if_modified(|published| {
            let is_changed = *published != summaries;
            if is_changed {
                *published = summaries;
            }
            is_changed
        });
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The hosts kill their own children when they are dropped; this takes the children's children.
        for live in self.sessions.values() {
            if let Some(mark) = &live.mark {
                process::kill_marked(mark);
            }
        }
    }
}

/// A failure with the last of what was printed before it: the real cause is often there.
fn with_words(message: &str, output: &OutputTail) -> String {
    const MAX_WORDS: usize = 600;
    let words = output.text.trim();
    let words = &words[words.ceil_char_boundary(words.len().saturating_sub(MAX_WORDS))..];
    if words.is_empty() { message.to_owned() } else { format!("{message}: {words}") }
}
