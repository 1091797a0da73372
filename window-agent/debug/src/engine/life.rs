//! Sessions begin, have children and terminals, end, and begin again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use bytes::Bytes;
use jiff::Timestamp;

use super::usage::Usage;
use super::waits::WaitId;
use super::{Again, Ended, Engine, Live, Reply};
use crate::adapter::Dialect;
use crate::adapters::{self, go};
use crate::breakpoints::{SessionKey, WantedAll};
use crate::dap::body::read;
use crate::dap::configuration::Configuration;
use crate::editor::Target;
use crate::error::DebugError;
use crate::host::inbox::Inbox;
use crate::host::reach::{Host, Plan};
use crate::host::{self, debugpy, inspector, terminal};
use crate::output::{OutputLog, last_words};
use crate::session::plan::{Link, SessionPlan};
use crate::session::{End, Ending, Input, Session};
use crate::types::control::{News, OutputPage, OutputWish, Status, Stdin, What};
use crate::types::triggers::{TriggerBreakpoint, TriggerKind};
use crate::types::{Breakpoint, Completed, OutputTail, Phase, SessionId, Waited};
use baton_agent_base::census::Counted;
use baton_agent_base::process::Sentinel;
use baton_proto::shim::EditorSession;

/// Most sessions at once, child sessions included: a program that starts children without end is told to stop.
const MAX_SESSIONS: usize = 64;
/// Ended sessions that are remembered, to be able to say that they ended.
const MAX_REMEMBERED: usize = 64;
/// Ended sessions whose output is kept: it can be a megabyte each.
const MAX_LOGS: usize = 4;

impl Engine {
    pub(super) fn on_start(
        &mut self,
        plan: Plan,
        name: String,
        owner: Option<String>,
        stdin: Option<Stdin>,
        idle_limit: Option<Duration>,
        wait: WaitId,
    ) {
        if let Err(error) = self.has_room() {
            return self.answer(wait, Err(error));
        }
        let key = self.begin(plan, name, owner, None, None);
        if let Some(live) = self.sessions.get_mut(&key) {
            live.usage = Usage::new(idle_limit, Instant::now());
            live.stdin = stdin;
        }
        self.active = Some(key);
        self.wait_for_start(key, wait);
    }

    pub(super) fn wait_for_start(&mut self, key: SessionKey, wait: WaitId) {
        if let Some(live) = self.sessions.get(&key) {
            self.waits.push(live.wait(key, wait, None));
        }
    }

    pub(super) fn has_room(&self) -> Result<(), DebugError> {
        let counts = |live: &&Live| {
            live.parent.is_none() && !live.plan.is_users() && live.core.phase() != Phase::Terminated
        };
        let limit = self.max_sessions;
        if self.sessions.values().filter(counts).count() >= limit || self.sessions.len() >= MAX_SESSIONS {
            return Err(DebugError::TooManySessions { limit });
        }
        Ok(())
    }

    /// A session that the user started in the editor. It is nobody's default: who means it names it.
    pub(super) fn on_adopt(&mut self, plan: Plan, name: String) {
        if self.sessions.len() < MAX_SESSIONS {
            self.begin(plan, name, None, None, None);
        } else if let Host::Editor(editor, Target::Begun { session, .. }) = &plan.host {
            editor.forget(session);
        }
    }

    /// Makes a session and starts its host. One that begins again keeps its id.
    pub(super) fn begin(
        &mut self,
        plan: Plan,
        name: String,
        owner: Option<String>,
        parent: Option<SessionKey>,
        id: Option<SessionId>,
    ) -> SessionKey {
        self.last_key += 1;
        let key = self.last_key;
        let root = parent.and_then(|parent| self.sessions.get(&parent)).map_or(key, |parent| parent.root);
        let id = id.unwrap_or_else(|| SessionId(format!("{}-{key}", self.prefix)));
        let wanted = if plan.session.no_debug {
            WantedAll::default()
        } else {
            let client =
                if root == key { owner.as_deref().unwrap_or_default() } else { self.client_of(root) };
            self.breakpoints.wanted_by(root, client, |path| plan.session.adapter.serves_source(path))
        };
        let link = plan.host.link();
        let core = Session::new(&plan.session, link, wanted, self.folders.clone());
        let mark = (link == Link::Spawned).then(|| format!("{}-{key}-{}", self.prefix, std::process::id()));
        if mark.is_some() && self.sentinel.is_none() {
            let sentinel = Sentinel::spawn(&format!("{}-", self.prefix));
            self.sentinel = sentinel.inspect_err(|error| tracing::warn!(%error, "no sentinel")).ok();
        }
        let over = CancellationToken::new();
        let inbox = Inbox { key, sender: self.to_inbox.clone() };
        self.hosts.spawn(host::run(plan.clone(), mark.clone(), over.clone(), inbox));
        let adapter = &plan.session.adapter.name;
        tracing::info!(session = %id, adapter, "debug session begins");
        let counted = mark.is_some().then(|| self.census.begin(adapter));
        let live = Live {
            id,
            name,
            plan,
            parent,
            root,
            compound: self.sessions.get(&root).map_or(root, |root| root.compound),
            is_shell: false,
            is_hastened: false,
            core,
            outgoing: None,
            over,
            mark,
            counted,
            stops: Default::default(),
            untold: Default::default(),
            output: OutputLog::default(),
            hit: Default::default(),
            kin: Vec::new(),
            stdin: None,
            terminal: None,
            has_terminal: false,
            stoppers: Vec::new(),
            restart: None,
            expression_limit: None,
            again: None,
            owner,
            usage: Usage::new(None, Instant::now()),
            was_warned: false,
            end_reason: None,
            failure: None,
            started_at: Timestamp::now(),
            last_used_at: Timestamp::now(),
        };
        self.sessions.insert(key, live);
        if let Some(root) = self.sessions.get_mut(&root).filter(|_| root != key) {
            root.kin.push(key);
        }
        key
    }

    pub(super) fn on_stop(&mut self, key: SessionKey, reply: Reply<SessionId>) {
        // The program is meant, with all its children.
        let root = self.sessions.get(&key).map_or(key, |live| live.root);
        if let Some(live) = self.sessions.get_mut(&root) {
            live.stoppers.push(reply);
        }
        self.stop_tree(root);
    }

    pub(super) fn stop_tree(&mut self, root: SessionKey) {
        for key in self.tree(root).into_iter().rev() {
            self.feed(key, Input::Stop);
        }
    }

    pub(super) fn on_gone(&mut self, key: SessionKey) {
        let Some(mut live) = self.sessions.remove(&key) else { return };
        if let Some(binary) = go::own_binary(&live.plan) {
            let _ = std::fs::remove_file(binary);
        }
        for stopper in std::mem::take(&mut live.stoppers) {
            let _ = stopper.send(Ok(live.id.clone()));
        }
        if self.active == Some(key) {
            self.active = live.parent;
        }
        let restart = live.restart.take();
        if live.begins_again() {
            let Live { id, plan, name, owner, usage, .. } = live;
            let again = Again { id, plan, name, owner, usage };
            if let Some(wait) = restart {
                self.begin_again(again, wait);
            } else if let Some(ended) = self.ended.iter_mut().rev().find(|ended| ended.status.id == again.id)
            {
                ended.again = Some(again);
            }
        }
        self.drive_stop_all();
    }

    pub(super) fn drive_stop_all(&mut self) {
        if self.sessions.is_empty() {
            for reply in self.stop_all.drain(..) {
                let _: Result<(), ()> = oneshot::Sender::send(reply, ());
            }
        }
    }

    /// The adapter asks for a child of its session.
    pub(super) fn on_start_child(
        &mut self,
        key: SessionKey,
        request_seq: i64,
        request: &str,
        configuration: Value,
    ) {
        let given: Configuration = read(&configuration);
        let name = given.name.unwrap_or_else(|| "child".to_owned());
        // js-debug's first session has no threads; the program is its first child.
        let is_program = given.pending_target_id.is_some();
        let Some(live) = self.sessions.get(&key) else { return };
        let result = match adapters::plan_child(&live.plan, request, configuration) {
            Some(plan) => self.begin_child(key, plan, name, is_program).map(|()| json!({})),
            None => Err("the child's configuration names no address".to_owned()),
        };
        self.feed(key, Input::Reply { request_seq, command: "startDebugging".to_owned(), result });
    }

    /// A session has begun in the editor beside one that is known.
    pub(super) fn on_child_in_editor(&mut self, key: SessionKey, child: EditorSession) {
        let plan = self.sessions.get(&key).and_then(|live| adapters::plan_editors(&live.plan, &child));
        let is_program = adapters::is_program(&child);
        let begun = plan.is_some_and(|plan| self.begin_child(key, plan, child.name, is_program).is_ok());
        if let Some(editor) = self.editor.as_ref().filter(|_| !begun) {
            editor.forget(&child.session);
        }
    }

    /// A child that is the program of its parent takes the parent's place: the first, and the next one when that has ended
    /// and was started again.
    fn begin_child(
        &mut self,
        key: SessionKey,
        plan: Plan,
        name: String,
        is_program: bool,
    ) -> Result<(), String> {
        let is_full = self.sessions.len() >= MAX_SESSIONS;
        let Some(live) = self.sessions.get(&key) else { return Err("its session is over".to_owned()) };
        let is_whole = live.parent.is_none() && !live.core.has_stopped();
        let is_taken = self.sessions.iter().any(|(other, known)| {
            *other != key && known.id == live.id && known.core.phase() != Phase::Terminated
        });
        // Elsewhere it could be any process that the program has left behind.
        let may_be_next = !live.is_shell || matches!(live.plan.host, Host::Editor(..));
        let stands_for_parent = is_program && is_whole && may_be_next && !is_taken;
        if is_full {
            return Err("too many debug sessions".to_owned());
        }
        if plan.is_part() {
            self.begin_part(key, plan, name);
            return Ok(());
        }
        let (id, name) = match stands_for_parent {
            true => (Some(live.id.clone()), live.name.clone()),
            false => (None, name),
        };
        if let Some(live) = self.sessions.get_mut(&key) {
            live.is_shell |= stands_for_parent;
        }
        self.ended.retain(|ended| Some(&ended.status.id) != id.as_ref());
        let child = self.begin(plan, name, None, Some(key), id);
        if stands_for_parent {
            self.waits.hand_over(key, child);
        }
        Ok(())
    }

    /// The debugger has reached a program: what it answers is to come at once.
    pub(super) fn hasten(&mut self, key: SessionKey) {
        let Some(live) = self.sessions.get_mut(&key) else { return };
        let is_first = !std::mem::replace(&mut live.is_hastened, true);
        let (root, adapter) = (live.root, live.plan.session.adapter);
        let Some(root) = self.sessions.get(&root) else { return };
        let attached = root.plan.attached_port();
        // What an editor starts has no mark of ours. That somebody else's program writes sooner harms nobody.
        let mark = match (adapter.dialect, adapter.known_in_editor) {
            (Dialect::JsDebug, _) => Some(root.mark.clone().unwrap_or_default()),
            (_, Some(Dialect::JsDebug)) => None,
            (_, Some(Dialect::Debugpy)) if is_first => return self.hasten_by(key, debugpy::hasten),
            _ => return,
        };
        self.hasten_by(key, move || inspector::hasten(mark.as_deref(), attached));
    }

    fn hasten_by(&mut self, key: SessionKey, hasten: impl FnOnce() -> usize + Send + 'static) {
        self.hosts.spawn(async move {
            let n_hastened = tokio::task::spawn_blocking(hasten).await.unwrap_or_default();
            tracing::debug!(key, n_hastened, "debuggers and programs write at once");
        });
    }

    pub(super) fn on_run_in_terminal(&mut self, key: SessionKey, request_seq: i64, arguments: Value) {
        let Some(live) = self.sessions.get(&key) else { return };
        let mark = live.mark.clone().unwrap_or_default();
        let Some(outgoing) = live.outgoing.clone() else { return };
        let inbox = Inbox { key, sender: self.to_inbox.clone() };
        self.hosts.spawn(async move {
            let (success, body, message) = match terminal::run(arguments, mark, inbox).await {
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

    pub(super) fn on_ended(&mut self, key: SessionKey, end: &End) {
        self.ids.forget(key, None);
        let Some(live) = self.sessions.get(&key) else { return };
        let root = live.root;
        let stands_for_root = root != key && self.sessions.get(&root).is_some_and(|root| root.id == live.id);
        self.forget_closed();
        let mut waits = self.waits.take_ended(key);
        if stands_for_root {
            // The end of the program is that of its shell, which follows.
            for mut wait in std::mem::take(&mut waits) {
                (wait.session, wait.thread_id) = (root, None);
                self.waits.push(wait);
            }
        }
        // What a child printed is told with its parent's end, unless somebody waits for the child.
        let is_told = root == key || !waits.is_empty();
        let output = if is_told { self.take_output(root) } else { OutputTail::default() };
        let (never_hit, told_before) = if root == key { self.never_hit(key) } else { Default::default() };
        let never_called = if root == key { self.never_called(key) } else { Vec::new() };
        if root == key {
            // Until here it counts what its children made of them.
            let kin = self.sessions.get_mut(&key).map(|live| std::mem::take(&mut live.kin));
            for key in kin.into_iter().flatten().chain([key]) {
                self.breakpoints.unbind(key);
            }
        }
        let runs_on = (!stands_for_root).then(|| self.parent_that_runs(key)).flatten();
        let Some(live) = self.sessions.get_mut(&key) else { return };
        tracing::info!(session = %live.id, exit_code = end.exit_code, how = ?end.how, "debug session ended");
        live.terminal = None;
        if !stands_for_root {
            // The farewell is in the channel; behind it the connection closes. That of a child goes with its shell's:
            // js-debug forgets what the program printed last when it loses it.
            live.outgoing = None;
            live.over.cancel();
        }
        live.stops.clear();
        live.untold.clear();
        let session = live.id.clone();
        let result = match (live.failure.take(), &end.how) {
            (Some(failure), _) => Err(failure),
            (None, Ending::NotStarted(message)) => {
                Err(DebugError::StartFailed { message: with_words(message, &output) })
            }
            (None, Ending::Lost(how)) => {
                live.counted.take().into_iter().for_each(Counted::died);
                let output = last_words(&output.text, usize::MAX);
                Err(DebugError::AdapterDied { session: session.clone(), how: how.clone(), output })
            }
            (None, Ending::Plain | Ending::Asked) => {
                let note = live.end_reason.as_ref().map(|why| format!("the debug session was ended: {why}"));
                let note = note.or_else(|| end_note(end, &live.plan.session));
                let note = note.or_else(|| runs_on.map(|parent| child_note(&session, &parent)));
                let exit_code = end.exit_code;
                Ok(Completed { session, exit_code, output, never_hit, told_before, never_called, note })
            }
        };
        let is_news = waits.is_empty() && end.how != Ending::Asked && root == key;
        let untold = is_news.then(|| result.clone());
        if waits.is_empty() && root == key {
            self.tell_limit(key);
        }
        let ending = match &result {
            Ok(completed) => completed.note.clone().unwrap_or_else(|| Status::PLAIN_END.to_owned()),
            Err(error) => error.to_string(),
        };
        for wait in waits {
            self.answer(wait.id, result.clone().map(|completed| Waited::Completed(Box::new(completed))));
        }
        if !stands_for_root {
            // That of a program that the engine killed is the engine's.
            let exit_code = end.exit_code.filter(|_| end.how != Ending::Asked);
            let adapter_died = matches!(result, Err(DebugError::AdapterDied { .. }));
            self.remember(key, (ending, adapter_died), exit_code, untold);
        }
        self.stop_children(key);
        self.stop_others(key, &end.how);
    }

    /// Children do not outlive their parent's adapter.
    pub(super) fn stop_children(&mut self, key: SessionKey) {
        for child in self.tree(key).into_iter().filter(|child| *child != key) {
            self.feed(child, Input::Stop);
            let ended = self.sessions.get_mut(&child).filter(|live| live.core.phase() == Phase::Terminated);
            if let Some(child) = ended {
                child.outgoing = None;
                child.over.cancel();
            }
        }
    }

    /// Who started a session that was ended at a limit, and does not wait for it, hears of that with the next answer.
    fn tell_limit(&mut self, key: SessionKey) {
        let Some(live) = self.sessions.get(&key) else { return };
        let Some(why) = &live.end_reason else { return };
        let what = What::Limit(format!("was ended: {why}"));
        let news = News { session: live.id.clone(), name: live.name.clone(), what };
        self.untold.note(live.owner.as_deref().unwrap_or_default(), news);
    }

    /// Id and name of the session whose child this one is, when that one goes on.
    fn parent_that_runs(&self, key: SessionKey) -> Option<(SessionId, String)> {
        let live = self.sessions.get(&key)?;
        let root = self.sessions.get(&live.root).filter(|_| live.root != key)?;
        let goes_on = matches!(root.core.phase(), Phase::Running | Phase::Stopped);
        goes_on.then(|| (root.id.clone(), root.name.clone()))
    }

    fn remember(
        &mut self,
        key: SessionKey,
        (ending, adapter_died): (String, bool),
        exit_code: Option<i64>,
        untold: Option<Result<Completed, DebugError>>,
    ) {
        let Some(mut status) = self.status_of(key) else { return };
        status.phase = Phase::Terminated;
        status.exit_code = exit_code;
        status.end = Some(ending);
        status.adapter_died = adapter_died;
        let output = self.sessions.get_mut(&key).filter(|live| live.root == key);
        let output = output.map(|live| std::mem::take(&mut live.output));
        self.ended.push_back(Ended { status, output, untold, again: None });
        if self.ended.len() > MAX_REMEMBERED {
            self.ended.pop_front();
        }
        let logs = self.ended.iter_mut().rev().filter(|ended| ended.output.is_some());
        for old in logs.skip(MAX_LOGS) {
            old.output = None;
        }
    }

    /// Breakpoints that a tree could have hit and did not, and which of them are nothing new; log points never count
    /// as hit.
    fn never_hit(&mut self, root: SessionKey) -> (Vec<Breakpoint>, BTreeSet<i64>) {
        let Some(live) = self.sessions.get(&root).filter(|live| !live.plan.session.no_debug) else {
            return Default::default();
        };
        let is_missed = |breakpoint: &Breakpoint| {
            breakpoint.log_message.is_none()
                && self.breakpoints.concerns(&breakpoint.owner, self.client_of(root))
                && !live.hit.contains(&breakpoint.id)
                && live.plan.session.adapter.serves_source(&breakpoint.path)
        };
        let mut missed: Vec<Breakpoint> = self.breakpoints.list().into_iter().filter(is_missed).collect();
        for breakpoint in &mut missed {
            breakpoint.message = Some(why_not_hit(breakpoint));
        }
        let hit = live.hit.iter().filter_map(|&id| self.breakpoints.find(id));
        let mut used: BTreeSet<PathBuf> = hit.map(|breakpoint| breakpoint.path).collect();
        used.extend(live.plan.session.arguments["program"].as_str().map(PathBuf::from));
        let mut told_before = BTreeSet::new();
        for Breakpoint { id, path, message, .. } in &missed {
            let was_told = self.breakpoints.note_missed(*id, message.as_deref().unwrap_or_default());
            if was_told && !used.contains(path) {
                told_before.insert(*id);
            }
        }
        (missed, told_before)
    }

    /// Functions with breakpoints that a tree could have called and did not.
    fn never_called(&self, root: SessionKey) -> Vec<TriggerBreakpoint> {
        let Some(live) = self.sessions.get(&root).filter(|live| !live.plan.session.no_debug) else {
            return Vec::new();
        };
        let mut all = self.breakpoints.triggers();
        all.retain(|known| {
            known.trigger.kind() == TriggerKind::Function
                && self.breakpoints.concerns(&known.owner, self.client_of(root))
                && !live.hit.contains(&known.id)
        });
        all
    }

    /// When the next session is to be looked at that nobody may be using.
    pub(super) fn next_idle(&self) -> Option<Instant> {
        let set = self.idle_limit();
        self.sessions.values().filter_map(|live| idle_end(live, set)).min()
    }

    /// Ends sessions that nobody used for too long.
    pub(super) fn end_idle(&mut self, now: Instant) {
        let set = self.idle_limit();
        let due = self.sessions.iter().filter(|(_, live)| idle_end(live, set).is_some_and(|end| end <= now));
        let due: Vec<SessionKey> = due.map(|(&key, _)| key).collect();
        self.forget_closed();
        for key in due {
            let Some(live) = self.sessions.get_mut(&key) else { continue };
            let is_waited_for = self.waits.is_waited_for(live.compound);
            let Some(limit) = live.usage.run_out(set, now, is_waited_for) else { continue };
            let seconds = limit.as_secs_f64();
            tracing::info!(session = %live.id, seconds, "nobody uses the debug session");
            let time =
                if seconds < 120.0 { format!("{seconds} s") } else { format!("{} minutes", seconds / 60.0) };
            live.end_reason = Some(format!("nobody used it for {time}"));
            self.stop_tree(key);
        }
    }

    /// What the user set for all sessions. In an editor they see them, and may be looking for as long as they please.
    fn idle_limit(&self) -> Option<Duration> {
        self.limits.borrow().idle.filter(|_| self.editor.is_none())
    }

    /// Where a session stands; also one that has ended.
    pub(super) fn status(&mut self, session: Option<&SessionId>) -> Result<Status, DebugError> {
        match self.resolve(session) {
            Ok(key) => self.status_of(key).ok_or(DebugError::NoSession),
            Err(error) => {
                let is_meant = |ended: &&Ended| session.is_some_and(|id| ended.status.id == *id);
                self.ended.iter().rev().find(is_meant).map(|ended| ended.status.clone()).ok_or(error)
            }
        }
    }

    /// Those that have ended, as far as remembered, then those that run; oldest first.
    pub(super) fn statuses(&self) -> Vec<Status> {
        let running = self.running(|_| true);
        self.ended.iter().map(|ended| ended.status.clone()).chain(running).collect()
    }

    /// Those that run and whose adapter debugs this file.
    pub(super) fn serving(&self, path: &Path) -> Vec<Status> {
        self.running(|live| live.plan.session.adapter.serves_source(path)).collect()
    }

    fn running(&self, is_meant: impl Fn(&Live) -> bool) -> impl Iterator<Item = Status> {
        let is_shown = |live: &Live| live.core.phase() != Phase::Terminated && !self.is_hidden(live);
        let running = self.sessions.iter().filter(move |(_, live)| is_shown(live) && is_meant(live));
        running.filter_map(|(&key, _)| self.status_of(key))
    }

    fn status_of(&self, key: SessionKey) -> Option<Status> {
        let live = self.sessions.get(&key)?;
        let given: Configuration = read(&live.plan.session.arguments);
        // Debuggers attach to children, which end with the program all the same.
        let root = self.sessions.get(&live.root).unwrap_or(live);
        let core = &live.core;
        let last_stop = live.stops.get(&core.last_thread()).or(live.stops.values().next());
        Some(Status {
            id: live.id.clone(),
            name: live.name.clone(),
            parent: self.parent_id(live),
            owner: root.owner.clone(),
            phase: core.phase(),
            adapter: live.plan.session.adapter.name.clone(),
            is_attached: root.plan.session.leaves_program(),
            is_started: core.is_started(),
            program: given.program.or(given.module),
            cwd: given.cwd,
            pid: core.pid().or(live.terminal.as_ref().map(|terminal| i64::from(terminal.pid))),
            thread_id: core.last_thread(),
            tells_running_stacks: live.plan.session.adapter.tells_running_stacks,
            takes_idle_pauses: live.plan.session.adapter.takes_idle_pauses,
            pending_pause: core.pending_pause(),
            last_stop: last_stop.cloned().map(Box::new),
            capabilities: core.capabilities().clone(),
            needs_configuration_done: core.needs_configuration_done(),
            has_terminal: live.has_terminal,
            output_truncated: root.output.is_truncated(),
            exit_code: core.exit_code(),
            end: None,
            adapter_died: false,
            started_at: live.started_at,
            last_used_at: live.last_used_at,
        })
    }

    /// Part of what a tree printed.
    pub(super) fn output(&mut self, wish: &OutputWish) -> Result<OutputPage, DebugError> {
        let page = |log: &mut OutputLog| log.page(wish.since, &wish.categories, wish.max_bytes);
        match self.resolve(wish.session.as_ref()) {
            Ok(key) => {
                let root = self.sessions.get(&key).map_or(key, |live| live.root);
                let live = self.sessions.get_mut(&root).ok_or(DebugError::NoSession)?;
                Ok(page(&mut live.output))
            }
            Err(error) => {
                let session = wish.session.as_ref();
                let is_meant = |ended: &&mut Ended| {
                    session.is_none_or(|id| ended.status.id == *id) && ended.output.is_some()
                };
                let ended = self.ended.iter_mut().rev().find(is_meant);
                ended.and_then(|ended| ended.output.as_mut()).map(page).ok_or(error)
            }
        }
    }

    /// Gives the program something to read.
    pub(super) fn write_stdin(
        &mut self,
        session: Option<&SessionId>,
        stdin: Stdin,
    ) -> Result<(), DebugError> {
        let key = self.resolve(session)?;
        let root = self.sessions.get(&key).map_or(key, |live| live.root);
        let tree = [key].into_iter().chain(self.tree(root));
        let terminal = tree.filter_map(|key| self.sessions.get(&key)?.terminal.as_ref()).next();
        terminal.ok_or(DebugError::NoTerminal)?.write(stdin)
    }
}

/// When a session counts as used by nobody.
fn idle_end(live: &Live, set: Option<Duration>) -> Option<Instant> {
    let is_root = live.parent.is_none() && live.core.phase() != Phase::Terminated;
    live.usage.ends_at(set).filter(|_| is_root)
}

/// How it ended, when that is not plain.
fn end_note(end: &End, plan: &SessionPlan) -> Option<String> {
    match (&end.how, plan.leaves_program(), &end.signal) {
        (Ending::Asked, false, _) => Some("the debug session was stopped".to_owned()),
        (Ending::Asked, true, _) => Some("the debugger was detached; the program keeps running".to_owned()),
        (_, _, Some(signal)) => Some(format!("the program was ended by {signal}")),
        _ => None,
    }
}

/// That a child ended, and its program has not.
fn child_note(child: &SessionId, (parent, name): &(SessionId, String)) -> String {
    format!(
        "the child process (session {child}) ended; {name} (session {parent}) is still running: continue waits for it"
    )
}

/// Why a program that has ended did not stop there.
fn why_not_hit(breakpoint: &Breakpoint) -> String {
    let Breakpoint { line, actual_line, condition, hit_condition, message, .. } = breakpoint;
    if !breakpoint.verified {
        let why = message.as_deref().unwrap_or("no code of it was loaded");
        return format!("never bound: {why}");
    }
    let moved = actual_line.filter(|actual| actual != line);
    let place =
        moved.map_or_else(|| format!("line {line}"), |actual| format!("line {actual} (moved from {line})"));
    match (condition, hit_condition) {
        (None, None) => format!("{place} was never reached"),
        (Some(condition), None) => {
            format!("{place} was never reached while `{condition}` was true")
        }
        (_, Some(hits)) => format!("{place} was not reached often enough for the hit condition {hits}"),
    }
}

/// A failure with the last of what was printed before it: the real cause is often there.
fn with_words(message: &str, output: &OutputTail) -> String {
    const MAX_WORDS: usize = 600;
    let words = last_words(&output.text, MAX_WORDS);
    if words.is_empty() { message.to_owned() } else { format!("{message}: {words}") }
}

#[cfg(test)]
mod tests {
    use baton_proto::shim::EditorSession;
    use tokio::sync::{mpsc, watch};

    use crate::editor::Editor;
    use crate::ids::Base;
    use crate::options::DebuggerOptions;
    use baton_agent_base::shim::Shim;

    use super::*;

    #[tokio::test]
    async fn a_child_in_the_editor_that_is_one_too_many_is_forgotten() {
        let editor = Editor::new(Shim::alone());
        let options = DebuggerOptions { editor: Some(editor.clone()), ..DebuggerOptions::default() };
        let (_commands, to_engine) = mpsc::channel(1);
        let (_limit, limits) = watch::channel(Default::default());
        let ways = (Default::default(), Default::default(), limits);
        let mut engine = Engine::new(("e".to_owned(), Base::default()), &options, to_engine, ways);
        let session = |id: &str, parent: Option<&str>| EditorSession {
            session: id.to_owned(),
            parent: parent.map(str::to_owned),
            name: id.to_owned(),
            kind: "pwa-node".to_owned(),
            start: None,
            request: "launch".to_owned(),
        };
        let root = editor.on_began(session("root", None)).await.unwrap();
        let plan = adapters::plan_users(editor.clone(), &root, &options);
        for n in 0..=MAX_SESSIONS {
            engine.on_adopt(plan.clone(), format!("session {n}"));
        }
        assert_eq!(engine.sessions.len(), MAX_SESSIONS);
        let child = session("child", Some("root"));
        editor.on_began(child.clone()).await;
        engine.on_child_in_editor(1, child);
        assert_eq!(engine.sessions.len(), MAX_SESSIONS);
        assert!(!editor.knows("child"));
    }
}
