//! The one task that owns breakpoints, sessions, ids and waits: commands and adapters' messages in, answers out.
//!
//! Each session's connection is served by a task of its own ([`crate::host`]); what its messages mean is
//! decided by its core ([`crate::session`]).
//!
//! | module | what |
//! |---|---|
//! | `life` | sessions begin, have children and terminals, end, begin again |
//! | `moves` | stops are told, programs go on, calls wait |
//! | [`points`] | breakpoints of all kinds |
//! | `asks` | what an adapter is asked about a program |
//! | `expression`, `late` | CORE: an expression that is evaluated; those that take too long |
//! | `look`, `limits` | what the processes of sessions take; CORE: whether that is too much |
//! | `news` | CORE: what happened to clients' programs, until they are told |
//! | [`waits`] | CORE: which calls a stop or an end answers |

use baton_link::logs::BODIES;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baton_proto::shim::EditorBreakpoint;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::breakpoints::kept::Kept;
use crate::breakpoints::{Breakpoints, SessionKey};
use crate::dap;
use crate::editor::Editor;
use crate::engine::moves::EarlyPause;
use crate::engine::news::Untold;
use crate::engine::points::{Gather, TriggersReply};
use crate::engine::usage::Usage;
use crate::engine::waits::{Wait, WaitId, Waits};
use crate::error::DebugError;
use crate::from_dap::Ids;
use crate::host::inbox::{FromHost, TerminalWriter};
use crate::host::reach::Plan;
use crate::ids::Base;
use crate::options::{DEFAULT_MAX_SESSIONS, DebuggerOptions};
use crate::output::OutputLog;
use crate::session::{Input, Output, Session, Ticket};
use crate::types::control::{
    Category, Limits, News, OutputPage, OutputWish, Request, ResumeWish, StackTrace, Status, Stdin, Thread,
};
use crate::types::triggers::{RemoveTriggers, SetTrigger, TriggerBreakpoint};
use crate::types::{
    Breakpoint, Completed, Evaluate, Evaluated, Given, OutputTail, Paging, Phase, RemoveBreakpoint, Scope,
    SessionId, SessionSummary, SetBreakpoint, StopEvent, Variables, Waited,
};
use baton_agent_base::census::{Census, Counted};
use baton_agent_base::process::{self, Sentinel};

mod again;
mod asks;
mod compounds;
mod expression;
mod late;
mod life;
mod limits;
mod look;
mod moves;
mod news;
pub(crate) mod points;
mod usage;
pub(crate) mod waits;

/// Messages of hosts on their way to the engine.
const MAX_INBOX: usize = 256;

/// The answer to a verb that can fail.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, DebugError>>;
/// The answer to a call that waits.
pub(crate) type WaitReply = Reply<Waited>;

/// How the engine tells its sessions and what is to be kept, and hears its limits.
pub(crate) type Ways = (watch::Sender<Vec<SessionSummary>>, watch::Sender<Kept>, watch::Receiver<Limits>);

/// What the engine is asked.
#[derive(Debug)]
pub(crate) enum Command {
    SetBreakpoint {
        wish: SetBreakpoint,
        reply: oneshot::Sender<Result<Breakpoint, DebugError>>,
    },
    RemoveBreakpoint {
        which: RemoveBreakpoint,
        reply: oneshot::Sender<Vec<Breakpoint>>,
    },
    Breakpoints {
        reply: oneshot::Sender<Vec<Breakpoint>>,
    },
    EditorBreakpoints {
        all: Vec<EditorBreakpoint>,
    },
    SetTrigger {
        session: Option<SessionId>,
        wish: SetTrigger,
        reply: TriggersReply,
    },
    SetExceptions {
        owner: Option<String>,
        wishes: Option<Vec<SetTrigger>>,
        reply: TriggersReply,
    },
    RemoveTriggers {
        which: RemoveTriggers,
        reply: TriggersReply,
    },
    Triggers {
        reply: oneshot::Sender<Vec<TriggerBreakpoint>>,
    },
    Start {
        plan: Box<Plan>,
        name: String,
        owner: Option<String>,
        stdin: Option<Stdin>,
        idle_limit: Option<Duration>,
        wait: WaitId,
        reply: WaitReply,
    },
    Adopt {
        plan: Box<Plan>,
        name: String,
    },
    Restart {
        session: Option<SessionId>,
        wait: WaitId,
        reply: WaitReply,
    },
    Resume {
        wish: ResumeWish,
        wait: WaitId,
        reply: WaitReply,
    },
    Pause {
        session: Option<SessionId>,
        thread_id: Option<i64>,
        wait: WaitId,
        reply: WaitReply,
    },
    WaitStop {
        session: Option<SessionId>,
        wait: WaitId,
        reply: WaitReply,
    },
    EndWait {
        wait: WaitId,
        early: Early,
    },
    InterruptWaits,
    Scopes {
        frame_id: i64,
        reply: Reply<Vec<Scope>>,
    },
    Variables {
        reference: i64,
        paging: Paging,
        reply: Reply<Variables>,
    },
    Evaluate {
        evaluate: Evaluate,
        limit: Duration,
        reply: Reply<Evaluated>,
    },
    SessionOf {
        id: Given,
        reply: oneshot::Sender<Option<SessionId>>,
    },
    Threads {
        session: Option<SessionId>,
        reply: Reply<Vec<Thread>>,
    },
    StackTrace {
        session: Option<SessionId>,
        thread_id: Option<i64>,
        page: (i64, i64),
        reply: Reply<StackTrace>,
    },
    Request {
        request: Request,
        reply: Reply<Value>,
    },
    Status {
        session: Option<SessionId>,
        reply: Reply<Status>,
    },
    Serving {
        path: PathBuf,
        reply: oneshot::Sender<Vec<Status>>,
    },
    Statuses {
        reply: oneshot::Sender<Vec<Status>>,
    },
    News {
        client: String,
        reply: oneshot::Sender<Vec<News>>,
    },
    Output {
        wish: OutputWish,
        reply: Reply<OutputPage>,
    },
    WriteStdin {
        session: Option<SessionId>,
        stdin: Stdin,
        reply: Reply<()>,
    },
    Stop {
        session: Option<SessionId>,
        reply: Reply<SessionId>,
    },
    StopAll {
        reply: oneshot::Sender<()>,
    },
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
    /// The first part of the compound that it is of; else the root itself.
    compound: SessionKey,
    /// It debugs nothing itself: its first child does, and goes by its id.
    is_shell: bool,
    /// Its connections were told to write at once.
    is_hastened: bool,
    /// How long its adapter lets expressions run.
    expression_limit: Option<Duration>,
    core: Session,
    outgoing: Option<mpsc::Sender<Bytes>>,
    over: CancellationToken,
    /// By which its processes are found; `None` when they are another's.
    mark: Option<String>,
    /// Its adapter, among all that run.
    counted: Option<Counted>,
    /// Where each stopped thread stands.
    stops: BTreeMap<i64, StopEvent>,
    /// Stopped threads that nobody was told of, oldest first.
    untold: VecDeque<i64>,
    /// Of a root: what its tree printed.
    output: OutputLog,
    /// Of a root: our ids of the breakpoints its tree hit.
    hit: BTreeSet<i64>,
    /// Of a root: the sessions of its tree, also those that have ended.
    kin: Vec<SessionKey>,
    /// Of a root: what its program is to read, until there is a terminal.
    stdin: Option<Stdin>,
    /// What the program reads from, when it runs in a terminal of ours.
    terminal: Option<TerminalWriter>,
    /// It runs a program in a terminal of ours, or did.
    has_terminal: bool,
    /// Who is told once it has gone.
    stoppers: Vec<Reply<SessionId>>,
    /// It is to begin again once it has gone.
    restart: Option<WaitId>,
    /// The user starts it once more in the editor, as this session there.
    again: Option<String>,
    /// Of a root: on whose behalf it was started.
    owner: Option<String>,
    /// Of a root: how long it may be used by nobody.
    usage: Usage,
    /// Of a root: its client was told, or is to be, that it comes near a limit.
    was_warned: bool,
    /// Why it is being ended, when nobody asked for it.
    end_reason: Option<String>,
    /// Why its host gave up.
    failure: Option<DebugError>,
    started_at: Timestamp,
    last_used_at: Timestamp,
}

impl Live {
    /// Whether its plan starts it once more.
    fn begins_again(&self) -> bool {
        self.parent.is_none() && !self.plan.is_users() && !self.plan.is_part()
    }

    /// A call waits for this session, whose key this is.
    fn wait(&self, key: SessionKey, id: WaitId, thread_id: Option<i64>) -> Wait {
        Wait { id, session: key, root: self.root, compound: self.compound, thread_id, pauses: false }
    }
}

/// A session that ended.
struct Ended {
    status: Status,
    /// What it printed; of the last ones alone.
    output: Option<OutputLog>,
    /// Its end, or its adapter's, when nobody was told.
    untold: Option<Result<Completed, DebugError>>,
    /// How it begins again; once its host has gone, and never for a child or what the user started.
    again: Option<Again>,
}

/// What a session begins again with, under its id.
struct Again {
    id: SessionId,
    plan: Plan,
    name: String,
    owner: Option<String>,
    usage: usage::Usage,
}

/// The engine's state.
pub(crate) struct Engine {
    commands: mpsc::Receiver<(Span, Command)>,
    inbox: mpsc::Receiver<(SessionKey, FromHost)>,
    to_inbox: mpsc::Sender<(SessionKey, FromHost)>,
    hosts: JoinSet<()>,
    published: watch::Sender<Vec<SessionSummary>>,
    prefix: String,
    editor: Option<Editor>,
    max_sessions: usize,
    /// The window's.
    folders: Vec<PathBuf>,
    /// Ends what we started when we are killed; there from the first session on.
    sentinel: Option<Sentinel>,
    breakpoints: Breakpoints,
    /// What of them outlasts this agent.
    kept: watch::Sender<Kept>,
    ids: Ids,
    waits: Waits,
    /// What happened to clients' programs.
    untold: Untold,
    census: Census,
    /// What sessions may take; it can change at any time.
    limits: watch::Receiver<Limits>,
    /// The ways to answer the calls that wait, also those that are not among `waits` at the moment.
    waiting: BTreeMap<WaitId, WaitReply>,
    /// Pauses that came before there was a thread.
    early_pauses: Vec<EarlyPause>,
    sessions: BTreeMap<SessionKey, Live>,
    last_key: SessionKey,
    /// The session that stopped or started last.
    active: Option<SessionKey>,
    ended: VecDeque<Ended>,
    asked: BTreeMap<Ticket, asks::Asked>,
    last_ticket: Ticket,
    /// Breakpoint verbs that wait for adapters, by a key of their own.
    gathers: BTreeMap<u64, Gather>,
    stop_all: Vec<oneshot::Sender<()>>,
}

impl Engine {
    /// An engine without sessions. `prefix` makes its sessions' ids unique over all agents, `base` all others.
    pub(crate) fn new(
        (prefix, base): (String, Base),
        options: &DebuggerOptions,
        commands: mpsc::Receiver<(Span, Command)>,
        (published, kept, limits): Ways,
    ) -> Self {
        let (to_inbox, inbox) = mpsc::channel(MAX_INBOX);
        let mut breakpoints = Breakpoints::from_base(base, options.editor.is_some());
        breakpoints.restore(options.kept.clone());
        Self {
            commands,
            inbox,
            to_inbox,
            hosts: JoinSet::new(),
            published,
            prefix,
            editor: options.editor.clone(),
            max_sessions: options.max_sessions.unwrap_or(DEFAULT_MAX_SESSIONS),
            folders: options.folders.clone(),
            sentinel: None,
            breakpoints,
            kept,
            ids: Ids::from_base(base),
            waits: Waits::default(),
            untold: Untold::default(),
            census: options.census.clone(),
            limits,
            waiting: BTreeMap::new(),
            early_pauses: Vec::new(),
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
        if self.editor.is_none() {
            let (sessions, limits) = (self.published.subscribe(), self.limits.clone());
            let looks = look::run(self.prefix.clone(), sessions, limits, self.to_inbox.downgrade());
            self.hosts.spawn(looks);
        }
        loop {
            let next = self.sessions.values().filter_map(|live| live.core.poll_timeout());
            let next = next.chain(self.next_idle()).chain(self.next_pause()).chain(self.next_late()).min();
            let timer = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some((span, command)) => span.in_scope(|| self.on_command(command)),
                    None => return,
                },
                event = self.inbox.recv() => {
                    if let Some((key, event)) = event {
                        self.on_host(key, event);
                    }
                }
                () = timer => self.on_timer(),
                // When a session counts as used by nobody.
                Ok(()) = self.limits.changed() => {}
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
            Command::SetTrigger { session, wish, reply } => {
                self.on_set_trigger(session.as_ref(), wish, reply);
            }
            Command::SetExceptions { owner, wishes, reply } => {
                self.on_set_exceptions(owner, wishes, reply);
            }
            Command::RemoveTriggers { which, reply } => self.on_remove_triggers(&which, reply),
            Command::Triggers { reply } => drop(reply.send(self.breakpoints.triggers())),
            Command::Start { plan, name, owner, stdin, idle_limit, wait, reply } => {
                self.waiting.insert(wait, reply);
                self.on_start(*plan, name, owner, stdin, idle_limit, wait);
            }
            Command::Adopt { plan, name } => self.on_adopt(*plan, name),
            Command::Restart { session, wait, reply } => {
                self.waiting.insert(wait, reply);
                self.on_restart(session.as_ref(), wait);
            }
            Command::Resume { wish, wait, reply } => {
                self.waiting.insert(wait, reply);
                self.on_resume(wish, wait);
            }
            Command::Pause { session, thread_id, wait, reply } => {
                self.waiting.insert(wait, reply);
                self.on_pause(session.as_ref(), thread_id, wait);
            }
            Command::WaitStop { session, wait, reply } => {
                self.waiting.insert(wait, reply);
                self.on_wait_stop(session.as_ref(), wait);
            }
            Command::EndWait { wait, early } => self.on_end_wait(wait, early),
            Command::InterruptWaits => {
                for wait in self.waits.take_all() {
                    self.answer_early(wait, Early::Interrupted);
                }
            }
            Command::Scopes { frame_id, reply } => self.on_scopes(frame_id, reply),
            Command::Variables { reference, paging, reply } => self.on_variables(reference, paging, reply),
            Command::Evaluate { evaluate, limit, reply } => self.on_evaluate(evaluate, limit, reply),
            Command::SessionOf { id, reply } => drop(reply.send(self.session_of_id(id))),
            Command::Threads { session, reply } => self.on_list_threads(session.as_ref(), reply),
            Command::StackTrace { session, thread_id, page, reply } => {
                self.on_stack_trace(session.as_ref(), thread_id, page, reply);
            }
            Command::Request { request, reply } => self.on_request(request, reply),
            Command::Status { session, reply } => drop(reply.send(self.status(session.as_ref()))),
            Command::Serving { path, reply } => drop(reply.send(self.serving(&path))),
            Command::Statuses { reply } => drop(reply.send(self.statuses())),
            Command::News { client, reply } => drop(reply.send(self.untold.take(&client))),
            Command::Output { wish, reply } => drop(reply.send(self.output(&wish))),
            Command::WriteStdin { session, stdin, reply } => {
                let _ = reply.send(self.write_stdin(session.as_ref(), stdin));
            }
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
            FromHost::Message(message) => {
                tracing::trace!(target: BODIES, key, ?message, "from the adapter");
                self.feed(key, Input::Message(message));
            }
            FromHost::Child(child) => self.on_child_in_editor(key, child),
            FromHost::Printed(category, text) => {
                // In a terminal both streams of the program are one.
                let adapter = self.sessions.get(&key).map(|live| live.plan.session.adapter);
                let text = match adapter {
                    Some(adapter) => adapter.without_stderr_noise(text),
                    None => text,
                };
                self.print(key, category, &text);
            }
            FromHost::Terminal(terminal) => {
                if let Some(live) = self.sessions.get_mut(&key) {
                    live.terminal = Some(terminal);
                    live.has_terminal = true;
                }
                self.give_stdin(key);
            }
            FromHost::TerminalEnded { exit_code } => self.feed(key, Input::TerminalEnded { exit_code }),
            FromHost::UserActs(act) => self.on_user_acts(key, act),
            FromHost::BeginsAgain(session) => self.on_begins_again(key, session),
            FromHost::Closed { how } => self.feed(key, Input::Closed { how }),
            FromHost::Failed(error) => {
                let how = error.to_string();
                if let Some(live) = self.sessions.get_mut(&key) {
                    live.failure = Some(error);
                }
                self.feed(key, Input::Closed { how });
            }
            FromHost::Gone => self.on_gone(key),
            FromHost::Taken(taken) => self.on_taken(&taken),
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
        self.end_idle(now);
        self.end_late(now);
        self.retry_pauses(now);
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
        self.give_stdin(key);
    }

    /// Gives a program what it is to read, once it runs: what starts it in its terminal may empty that first.
    fn give_stdin(&mut self, key: SessionKey) {
        let Some(live) = self.sessions.get(&key) else { return };
        let (root, runs) = (live.root, matches!(live.core.phase(), Phase::Running | Phase::Stopped));
        let is_wished = self.sessions.get(&root).is_some_and(|root| root.stdin.is_some());
        let has_terminal =
            |key: &SessionKey| self.sessions.get(key).is_some_and(|live| live.terminal.is_some());
        let Some(owner) = [key, root].into_iter().find(has_terminal).filter(|_| runs && is_wished) else {
            return;
        };
        let stdin = self.sessions.get_mut(&root).and_then(|root| root.stdin.take());
        let terminal = self.sessions.get(&owner).and_then(|live| live.terminal.as_ref());
        if let (Some(stdin), Some(terminal)) = (stdin, terminal) {
            // Nothing was written yet, so there is room.
            let _ = terminal.write(stdin);
        }
    }

    fn on_output(&mut self, key: SessionKey, output: Output) {
        match output {
            Output::Send(message) => self.send(key, &message),
            Output::Answer { ticket, result } => self.on_answer(ticket, result),
            Output::Bound { id, binding } => self.breakpoints.bind(key, id, binding),
            Output::Resumed { thread_id } => self.on_resumed(key, thread_id),
            Output::ResumeRefused { thread_id, message } => {
                for wait in self.waits.take_thread(key, thread_id) {
                    let command = "resume".to_owned();
                    self.answer(wait.id, Err(DebugError::Refused { command, message: message.clone() }));
                }
            }
            Output::PauseRefused { message } => {
                for wait in self.waits.take_pauses(key) {
                    let command = "pause".to_owned();
                    self.answer(wait.id, Err(DebugError::Refused { command, message: message.clone() }));
                }
            }
            Output::ThreadStarted => self.hasten(key),
            Output::Stopped(captured) => self.on_stopped(key, &captured),
            // What the program prints in a terminal is read there.
            Output::Printed(Category::Stdout | Category::Stderr, _) if self.has_terminal(key) => {}
            Output::Printed(category, text) => self.print(key, category, &text),
            Output::StartChild { request_seq, request, configuration } => {
                self.on_start_child(key, request_seq, &request, configuration);
            }
            Output::RunInTerminal { request_seq, arguments } => {
                self.on_run_in_terminal(key, request_seq, arguments);
            }
            Output::Ended(end) => {
                if !self.goes_on(key, &end) {
                    self.on_ended(key, &end);
                }
            }
        }
    }

    fn send(&mut self, key: SessionKey, message: &Value) {
        let Some(live) = self.sessions.get_mut(&key) else { return };
        let Some(outgoing) = &live.outgoing else { return };
        tracing::trace!(target: BODIES, session = %live.id, %message, "to the adapter");
        tracing::debug!(session = %live.id, command = dap::command(message), "asks the adapter");
        // A full channel belongs to an adapter that reads nothing any more; it counts as closed.
        if outgoing.try_send(Bytes::from(message.to_string())).is_err() {
            live.outgoing = None;
        }
    }

    fn print(&mut self, key: SessionKey, category: Category, text: &str) {
        let root = self.sessions.get(&key).map(|live| live.root);
        if let Some(root) = root.and_then(|root| self.sessions.get_mut(&root)) {
            root.output.push(category, text);
        }
    }

    /// Whether the program of a tree runs in a terminal of ours.
    fn has_terminal(&self, key: SessionKey) -> bool {
        let root = self.sessions.get(&key).and_then(|live| self.sessions.get(&live.root));
        root.is_some_and(|root| root.has_terminal)
    }

    fn take_output(&mut self, root: SessionKey) -> OutputTail {
        self.sessions.get_mut(&root).map(|root| root.output.take_tail()).unwrap_or_default()
    }

    /// The session that is meant; without an id the active one, or else the youngest. It counts as used.
    fn resolve(&mut self, session: Option<&SessionId>) -> Result<SessionKey, DebugError> {
        let key = self.find(session)?;
        self.note_use(key);
        Ok(key)
    }

    /// A verb is about this session, and its program.
    fn note_use(&mut self, key: SessionKey) {
        let root = self.sessions.get(&key).map(|live| live.root);
        for key in root.into_iter().chain([key]) {
            if let Some(live) = self.sessions.get_mut(&key) {
                live.usage.note(Instant::now());
                live.last_used_at = Timestamp::now();
            }
        }
    }

    fn find(&self, session: Option<&SessionId>) -> Result<SessionKey, DebugError> {
        // A child may end a moment after its root, with which everything is over.
        let has_ended = |live: &Live| live.core.phase() == Phase::Terminated;
        let is_running =
            |live: &Live| !has_ended(live) && !self.sessions.get(&live.root).is_some_and(has_ended);
        let Some(session) = session else {
            let active = self.active.filter(|key| self.sessions.get(key).is_some_and(is_running));
            let is_candidate = |live: &Live| is_running(live) && !live.plan.is_users();
            let youngest =
                || self.sessions.iter().rev().find(|(_, live)| is_candidate(live)).map(|(&key, _)| key);
            let key = active.or_else(youngest).ok_or(DebugError::NoSession)?;
            // What goes by its id now.
            let is_meant = |live: &Live| {
                is_running(live) && self.sessions.get(&key).is_some_and(|known| known.id == live.id)
            };
            let meant = self.sessions.iter().rev().find(|(_, live)| is_meant(live));
            return Ok(meant.map_or(key, |(&key, _)| key));
        };
        // The child of a shell goes before it.
        let mut meant = self.sessions.iter().rev();
        if let Some((&key, _)) = meant.find(|(_, live)| live.id == *session && is_running(live)) {
            return Ok(key);
        }
        Err(match self.ended.iter().rev().find(|ended| ended.status.id == *session) {
            Some(ended) => {
                let exit_code = ended.status.exit_code;
                DebugError::SessionEnded { session: session.clone(), exit_code }
            }
            None => DebugError::NoSuchSession { session: session.clone() },
        })
    }

    /// An end that nobody was told: of the session that is meant, or else of the last one.
    fn untold_end(&mut self, session: Option<&SessionId>) -> Option<Result<Waited, DebugError>> {
        let is_meant = |ended: &&mut Ended| session.is_none_or(|session| ended.status.id == *session);
        let untold = self.ended.iter_mut().rev().find(is_meant)?.untold.take()?;
        Some(untold.map(|completed| Waited::Completed(Box::new(completed))))
    }

    /// Who started the program of a session; nobody told, or the user did, when it is empty.
    fn client_of(&self, key: SessionKey) -> &str {
        let root = self.sessions.get(&key).and_then(|live| self.sessions.get(&live.root));
        root.and_then(|root| root.owner.as_deref()).unwrap_or_default()
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

    /// Whether another session goes by its id at the moment.
    fn is_hidden(&self, live: &Live) -> bool {
        let is_meant = |other: &Live| !other.is_shell && other.core.phase() != Phase::Terminated;
        live.is_shell && self.sessions.values().any(|other| other.id == live.id && is_meant(other))
    }

    fn parent_id(&self, live: &Live) -> Option<SessionId> {
        let parent = self.sessions.get(&live.parent?)?;
        (parent.id != live.id).then(|| parent.id.clone())
    }

    fn publish(&mut self) {
        let is_shown = |live: &&Live| live.core.phase() != Phase::Terminated && !self.is_hidden(live);
        let is_same = {
            let published = self.published.borrow();
            let mut running = self.sessions.values().filter(is_shown);
            // Most messages change nothing here, and a flood of output is many messages.
            published.iter().all(|known| {
                running.next().is_some_and(|live| live.id == known.id && live.core.phase() == known.phase)
            }) && running.next().is_none()
        };
        if is_same {
            return;
        }
        let summaries: Vec<SessionSummary> = self
            .sessions
            .values()
            .filter(is_shown)
            .map(|live| SessionSummary {
                id: live.id.clone(),
                name: live.name.clone(),
                phase: live.core.phase(),
                parent: self.parent_id(live),
                by_user: live.plan.is_users(),
            })
            .collect();
        self.published.send_replace(summaries);
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
