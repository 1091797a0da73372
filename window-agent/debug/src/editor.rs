//! VS Code as the engine sees it: which session of the editor belongs to which of the engine's, and breakpoints that
//! are the same on both sides.

mod mirror;

use baton_link::logs::BODIES;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_proto::shim::{
    AddEditorBreakpoint, EditorBreakpoint, EditorBreakpointIds, EditorExceptions, EditorMessage,
    EditorSession, EditorStart, RemoveEditorBreakpoints, SetEditorExceptions,
};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

use self::mirror::Mirror;
use crate::breakpoints::hits::normal_hits;
use crate::breakpoints::place::{Place, place_of, plain};
use crate::dap::body;
use crate::types::triggers::{SetTrigger, Trigger, TriggerBreakpoint};
use crate::types::{Breakpoint, SetBreakpoint};
use baton_agent_base::shim::Shim;

/// Events of one session on their way to its host.
const MAX_EVENTS: usize = 1_024;

/// How long a session may wait for its host, which asks within milliseconds; then nobody will.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a session that the user restarts may take to begin: its tasks are run before.
const AGAIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long after its parent a child may be heard.
const CHILDREN_GRACE: Duration = Duration::from_millis(300);
/// How long the editor may take to take breakpoints.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a session of the engine is in the editor.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// To be started.
    Start(Box<EditorStart>),
    /// Begun already, by another one.
    Begun {
        /// VS Code's id.
        session: String,
        /// A child process, which ends with its parent, and not the next part of a compound.
        is_child: bool,
        /// The user started it, or its parent.
        is_users: bool,
        /// What starts it once more, when the user has restarted what a client had started by this.
        start: Option<Box<EditorStart>>,
    },
}

impl Target {
    /// Whether the user started it.
    pub(crate) fn is_users(&self) -> bool {
        matches!(self, Self::Begun { is_users: true, .. })
    }

    /// Whether it is the next part of a compound.
    pub(crate) fn is_part(&self) -> bool {
        matches!(self, Self::Begun { is_child: false, is_users: false, start: None, .. })
    }

    /// The same when the user restarts it, as this session of the editor.
    pub(crate) fn again(&self, session: String) -> Self {
        let (is_users, start) = match self {
            Self::Start(start) => (false, Some(start.clone())),
            Self::Begun { is_users, start, .. } => (*is_users, start.clone()),
        };
        Self::Begun { session, is_child: false, is_users, start }
    }
}

/// What happens to a session in the editor.
#[derive(Debug)]
pub(crate) enum EditorEvent {
    /// The session that was to be started is there.
    Began(EditorSession),
    /// It has a child; or a compound has one more part.
    Child(EditorSession),
    /// Editor and adapter speak.
    Message { from_adapter: bool, message: Value },
    /// It is over.
    Ended,
}

/// A handle on the editor; clones share it.
#[derive(Clone, Debug)]
pub struct Editor {
    shim: Shim,
    state: Arc<Mutex<State>>,
    changes: mpsc::Sender<Change>,
    /// Bumped whenever a session is not heard any more.
    gone: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Starts under way, by their marks, and the session that came of each.
    starts: BTreeMap<String, (mpsc::Sender<EditorEvent>, bool)>,
    /// Sessions of the editor that are the engine's too.
    sessions: BTreeMap<String, mpsc::Sender<EditorEvent>>,
    /// Children whose host has not asked for them yet.
    unclaimed: BTreeMap<String, mpsc::Receiver<EditorEvent>>,
    /// Sessions that the user restarts, until they begin; they keep their ids.
    again: BTreeMap<String, Again>,
    /// Children that are still heard, and the session whose children they are.
    parents: BTreeMap<String, String>,
    breakpoints: Mirror,
    /// Types of configurations that it debugs.
    types: Vec<String>,
    /// See [`Editor::let_go`].
    has_let_go: bool,
}

/// The way to the host of a session that is to begin once more.
#[derive(Debug)]
struct Again {
    sender: mpsc::Sender<EditorEvent>,
    /// Until its host has asked for it.
    receiver: Option<mpsc::Receiver<EditorEvent>>,
}

/// The editor's breakpoints, as the engine is to have them.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) lines: Vec<SetBreakpoint>,
    pub(crate) functions: Vec<SetTrigger>,
    /// Those that the editor has not heard of yet.
    pub(crate) unheard: BTreeSet<Place>,
    /// Where those were that it has elsewhere now.
    pub(crate) moved: BTreeMap<Place, Place>,
}

/// A change on its way to the editor; they go one after the other.
#[derive(Debug)]
enum Change {
    Add(Box<EditorBreakpoint>, Place),
    Remove(Vec<String>),
    Exceptions(EditorExceptions),
    /// Everything before it was done.
    Settle(oneshot::Sender<()>),
}

impl Editor {
    /// The editor behind this channel.
    pub fn new(shim: Shim) -> Self {
        let (changes, to_send) = mpsc::channel(MAX_EVENTS);
        let editor = Self { shim, state: Arc::default(), changes, gone: watch::Sender::default() };
        tokio::spawn(editor.clone().send_changes(to_send));
        editor
    }

    /// The channel to it.
    pub fn shim(&self) -> &Shim {
        &self.shim
    }

    /// The events of a session, from now on.
    pub(crate) fn attach(&self, target: &Target) -> mpsc::Receiver<EditorEvent> {
        let mut state = self.state();
        let (sender, receiver) = mpsc::channel(MAX_EVENTS);
        match target {
            Target::Start(start) => {
                state.starts.insert(start.start.clone(), (sender, false));
                receiver
            }
            // One that has ended meanwhile has nothing to say; its channel is closed.
            Target::Begun { session, .. } => {
                let again = state.again.get_mut(session).and_then(|again| again.receiver.take());
                again.or_else(|| state.unclaimed.remove(session)).unwrap_or(receiver)
            }
        }
    }

    /// No more events of it; the receiver of those is gone.
    pub(crate) fn detach(&self, target: &Target, session: Option<&str>) {
        let mut state = self.state();
        if let Target::Start(start) = target {
            state.starts.remove(&start.start);
        }
        state.again.retain(|_, again| !again.sender.is_closed());
        // The one that was started again by the same id lives.
        let is_other =
            |session: &&str| state.sessions.get(*session).is_some_and(|sender| !sender.is_closed());
        if let Some(session) = session.filter(|session| !is_other(session)) {
            state.sessions.remove(session);
            state.unclaimed.remove(session);
            state.parents.remove(session);
        }
        drop(state);
        self.gone.send_replace(());
    }

    /// The user restarts a session: it ends, and begins once more by the same id.
    fn expect_again(&self, session: &str) {
        let mut state = self.state();
        if !state.sessions.contains_key(session) || state.again.contains_key(session) {
            return;
        }
        let (sender, receiver) = mpsc::channel(MAX_EVENTS);
        let again = Again { sender: sender.clone(), receiver: Some(receiver) };
        state.again.insert(session.to_owned(), again);
        let (editor, session) = (self.clone(), session.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN_TIMEOUT).await;
            let mut state = editor.state();
            if state.again.get(&session).is_some_and(|again| again.sender.same_channel(&sender)) {
                state.again.remove(&session);
                // Its host waits for nothing else.
                let _ = sender.try_send(EditorEvent::Ended);
            }
        });
    }

    /// Nobody will ask for it.
    pub(crate) fn forget(&self, session: &str) {
        let mut state = self.state();
        state.sessions.remove(session);
        state.unclaimed.remove(session);
        state.parents.remove(session);
        drop(state);
        self.gone.send_replace(());
    }

    /// Forgets a session that nobody has asked for in time: its parent had ended already, for example.
    fn expire(&self, session: String) {
        let editor = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(CLAIM_TIMEOUT).await;
            if editor.state().unclaimed.contains_key(&session) {
                tracing::debug!(session, "nobody asks for a debug session of the editor");
                editor.forget(&session);
            }
        });
    }

    /// What the editor debugs, by the types of configurations.
    pub fn on_debuggers(&self, types: Vec<String>) {
        self.state().types = types;
    }

    /// Whether it debugs configurations of this type.
    pub(crate) fn debugs(&self, kind: &str) -> bool {
        self.state().types.iter().any(|known| known == kind)
    }

    /// The agent ends: what the user started lives on.
    pub(crate) fn let_go(&self) {
        self.state().has_let_go = true;
    }

    pub(crate) fn has_let_go(&self) -> bool {
        self.state().has_let_go
    }

    /// Returns when everything of the session's children was heard: what they print counts as the session's, and it
    /// comes before its end. Bounded, for a child may live on.
    pub(crate) async fn children_gone(&self, session: &str) {
        let mut gone = self.gone.subscribe();
        let wait = async {
            while self.state().parents.values().any(|parent| parent == session) {
                if gone.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(CHILDREN_GRACE, wait).await;
    }

    /// Returns when the editor has heard of every change of breakpoints. Bounded, for it may hang.
    pub(crate) async fn settled(&self) {
        let (sender, settled) = oneshot::channel();
        self.change(Change::Settle(sender));
        let _ = tokio::time::timeout(SETTLE_TIMEOUT, settled).await;
    }

    /// A session began in the editor. One that no session of the engine's has to do with is given back: the user
    /// started it, and the engine may adopt it.
    pub async fn on_began(&self, session: EditorSession) -> Option<EditorSession> {
        let (id, parent) = (session.session.clone(), session.parent.clone().unwrap_or_default());
        let (sender, event) = {
            let mut state = self.state();
            if let Some(Again { sender, receiver }) = state.again.remove(&id) {
                state.sessions.insert(id.clone(), sender);
                // When its host has not come, the session that it was has ended otherwise.
                let receiver = receiver?;
                state.unclaimed.insert(id.clone(), receiver);
                drop(state);
                self.expire(id);
                return Some(session);
            }
            let to_parent = state.sessions.get(&parent).cloned();
            let start = session.start.as_ref().and_then(|start| state.starts.get_mut(start));
            match (to_parent, start) {
                (None, Some((sender, has_begun))) if !*has_begun => {
                    *has_begun = true;
                    let sender = sender.clone();
                    state.sessions.insert(session.session.clone(), sender.clone());
                    (sender, EditorEvent::Began(session))
                }
                (Some(sender), _) => (sender, state.claimable(session)),
                (None, Some((sender, _))) => {
                    let sender = sender.clone();
                    (sender, state.claimable(session))
                }
                (None, None) => {
                    state.claimable(session.clone());
                    drop(state);
                    self.expire(id);
                    return Some(session);
                }
            }
        };
        if matches!(event, EditorEvent::Child(_)) {
            self.expire(id);
        }
        self.hand(&parent, sender, event).await;
        None
    }

    /// Editor and adapter speak.
    pub async fn on_message(&self, message: EditorMessage) {
        let EditorMessage { session, from_adapter, message } = message;
        let sender = self.state().sessions.get(&session).cloned();
        if !from_adapter && body::restarts(&message) {
            self.expect_again(&session);
        }
        if let Some(sender) = sender {
            tracing::trace!(target: BODIES, from_adapter, %message, "in the editor");
            self.hand(&session, sender, EditorEvent::Message { from_adapter, message }).await;
        }
    }

    /// A session of the editor is over.
    pub async fn on_ended(&self, session: &str) {
        let sender = self.state().sessions.remove(session);
        if let Some(sender) = sender {
            self.hand(session, sender, EditorEvent::Ended).await;
        }
    }

    /// Whoever tells waits for a host that is busy, but never for one that may not come.
    async fn hand(&self, session: &str, sender: mpsc::Sender<EditorEvent>, event: EditorEvent) {
        let is_claimed = !self.state().unclaimed.contains_key(session);
        if is_claimed {
            let _ = sender.send(event).await;
        } else if sender.try_send(event).is_err() {
            tracing::warn!(session, "nobody hears a debug session of the editor; it is forgotten");
            self.forget(session);
        }
    }

    /// The engine set a breakpoint: the editor shows it.
    pub(crate) fn add_breakpoint(&self, wish: &SetBreakpoint) {
        let place = place_of(wish);
        let breakpoint = EditorBreakpoint {
            id: String::new(),
            path: wish.path.to_string_lossy().into_owned(),
            line: wish.line,
            column: plain(wish.column),
            enabled: true,
            condition: wish.condition.clone(),
            hit_condition: wish.hit_condition.as_deref().map(normal_hits),
            log_message: wish.log_message.clone(),
            function: None,
        };
        self.add(breakpoint, place);
    }

    /// The engine set a trigger: the editor shows it, when it is on a function. VS Code has no others.
    pub(crate) fn add_trigger(&self, wish: &SetTrigger) {
        let Trigger::Function { name } = &wish.trigger else { return };
        let breakpoint = EditorBreakpoint {
            id: String::new(),
            path: String::new(),
            line: 0,
            column: None,
            enabled: true,
            condition: wish.condition.clone(),
            hit_condition: wish.hit_condition.as_deref().map(normal_hits),
            log_message: None,
            function: Some(name.clone()),
        };
        self.add(breakpoint, Place::Function(name.clone()));
    }

    fn add(&self, breakpoint: EditorBreakpoint, place: Place) {
        let replaced = self.state().breakpoints.add(place.clone());
        self.remove_ids(replaced);
        self.change(Change::Add(Box::new(breakpoint), place));
    }

    /// The engine removed breakpoints: the editor does, too.
    pub(crate) fn remove_breakpoints(&self, removed: &[Breakpoint]) {
        let place = |known: &Breakpoint| Place::Line(known.path.clone(), known.line, plain(known.column));
        self.remove(removed.iter().map(place));
    }

    /// The same for triggers.
    pub(crate) fn remove_triggers(&self, removed: &[TriggerBreakpoint]) {
        self.remove(removed.iter().filter_map(|known| match &known.trigger {
            Trigger::Function { name } => Some(Place::Function(name.clone())),
            _ => None,
        }));
    }

    fn remove(&self, places: impl Iterator<Item = Place>) {
        let ids = self.state().breakpoints.remove(places);
        self.remove_ids(ids);
    }

    fn remove_ids(&self, ids: Vec<String>) {
        if !ids.is_empty() {
            self.change(Change::Remove(ids));
        }
    }

    /// The exceptions that stop the clients' sessions from now on; `None`: those that the user chose.
    pub(crate) fn choose_exceptions(&self, arguments: Option<Map<String, Value>>) {
        self.change(Change::Exceptions(EditorExceptions { arguments }));
    }

    /// The editor's breakpoints, as the engine is to have them: without those it has removed itself.
    pub(crate) fn on_breakpoints(&self, all: Vec<EditorBreakpoint>) -> Heard {
        let located = all.into_iter().map(|known| {
            let place = match &known.function {
                Some(name) => Place::Function(name.clone()),
                None => Place::Line(PathBuf::from(&known.path), known.line, plain(known.column)),
            };
            (place, known.id.clone(), known)
        });
        let located = located.collect();
        let mut state = self.state();
        let (kept, moved) = state.breakpoints.list(located);
        let mut heard = Heard { unheard: state.breakpoints.unheard(), moved, ..Heard::default() };
        drop(state);
        for known in kept.into_iter().filter(|known| known.enabled) {
            let (condition, hit_condition) = (known.condition, known.hit_condition);
            if let Some(name) = known.function {
                heard.functions.push(SetTrigger {
                    trigger: Trigger::Function { name },
                    condition,
                    hit_condition,
                    owner: None,
                });
                continue;
            }
            heard.lines.push(SetBreakpoint {
                path: PathBuf::from(known.path),
                line: known.line,
                column: plain(known.column),
                condition,
                hit_condition,
                log_message: known.log_message,
                owner: None,
            });
        }
        heard
    }

    fn change(&self, change: Change) {
        if self.changes.try_send(change).is_err() {
            tracing::warn!("the editor no longer accepts breakpoints");
        }
    }

    async fn send_changes(self, mut changes: mpsc::Receiver<Change>) {
        while let Some(change) = changes.recv().await {
            match change {
                Change::Add(breakpoint, place) => {
                    let added = self.shim.ask::<AddEditorBreakpoint>(*breakpoint).await;
                    if let Err(error) = &added {
                        tracing::warn!(%error, "the editor did not take a breakpoint");
                    }
                    let outdated =
                        self.state().breakpoints.answered(&place, added.ok().map(|added| added.id));
                    self.remove_ids(outdated);
                }
                Change::Exceptions(exceptions) => {
                    if let Err(error) = self.shim.ask::<SetEditorExceptions>(exceptions).await {
                        tracing::warn!(%error, "the editor did not take a choice of exceptions");
                    }
                }
                Change::Settle(done) => drop(done.send(())),
                Change::Remove(ids) => {
                    let removed = self.shim.ask::<RemoveEditorBreakpoints>(EditorBreakpointIds { ids });
                    if let Err(error) = removed.await {
                        tracing::warn!(%error, "the editor did not remove a breakpoint");
                    }
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// A session that a host of its own will ask for.
    fn claimable(&mut self, session: EditorSession) -> EditorEvent {
        let (sender, receiver) = mpsc::channel(MAX_EVENTS);
        if let Some(parent) = &session.parent {
            self.parents.insert(session.session.clone(), parent.clone());
        }
        self.sessions.insert(session.session.clone(), sender);
        self.unclaimed.insert(session.session.clone(), receiver);
        EditorEvent::Child(session)
    }
}

#[cfg(test)]
impl Editor {
    /// Whether it still keeps something of the session.
    pub(crate) fn knows(&self, session: &str) -> bool {
        let state = self.state();
        state.sessions.contains_key(session)
            || state.unclaimed.contains_key(session)
            || state.parents.contains_key(session)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn editor() -> Editor {
        Editor::new(Shim::alone())
    }

    fn session(id: &str, parent: Option<&str>) -> EditorSession {
        let (session, parent) = (id.to_owned(), parent.map(str::to_owned));
        let (name, kind, request) = (id.to_owned(), "mock".to_owned(), "launch".to_owned());
        EditorSession { session, parent, name, kind, start: None, request }
    }

    fn message(session: &str) -> EditorMessage {
        EditorMessage { session: session.to_owned(), from_adapter: true, message: json!({"type": "event"}) }
    }

    #[tokio::test]
    async fn a_session_that_nobody_claims_holds_nobody_up() {
        let editor = editor();
        assert!(editor.on_began(session("one", None)).await.is_some());
        let told = async {
            for _ in 0..=MAX_EVENTS {
                editor.on_message(message("one")).await;
            }
            editor.on_ended("one").await;
        };
        tokio::time::timeout(Duration::from_secs(20), told).await.expect("the desk goes on");
        assert!(!editor.knows("one"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_that_nobody_claims_in_time_is_forgotten_and_one_in_time_hears_all() {
        let editor = editor();
        editor.on_began(session("parent", None)).await;
        let begun = |session: &str| {
            let session = session.to_owned();
            Target::Begun { session, is_child: true, is_users: true, start: None }
        };
        let mut parent = editor.attach(&begun("parent"));
        for child in ["late", "quick"] {
            editor.on_began(session(child, Some("parent"))).await;
            editor.on_message(message(child)).await;
            editor.on_ended(child).await;
            assert!(matches!(parent.recv().await, Some(EditorEvent::Child(_))));
        }
        // It ended before its host came.
        let mut quick = editor.attach(&begun("quick"));
        assert!(matches!(quick.recv().await, Some(EditorEvent::Message { .. })));
        assert!(matches!(quick.recv().await, Some(EditorEvent::Ended)));
        assert!(editor.knows("late"));
        tokio::time::sleep(CLAIM_TIMEOUT * 2).await;
        assert!(!editor.knows("late"));
        assert!(editor.attach(&begun("late")).recv().await.is_none());
        assert!(editor.knows("parent"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_the_user_restarts_is_told_to_the_host_that_is_there_for_it() {
        let editor = editor();
        let target =
            Target::Begun { session: "one".to_owned(), is_child: false, is_users: true, start: None };
        let restart = || EditorMessage {
            session: "one".to_owned(),
            from_adapter: false,
            message: json!({"type": "request", "command": "terminate", "arguments": {"restart": true}}),
        };
        assert!(editor.on_began(session("one", None)).await.is_some());
        let mut events = editor.attach(&target);
        editor.on_message(restart()).await;
        editor.on_ended("one").await;
        assert!(matches!(events.recv().await, Some(EditorEvent::Message { .. })));
        assert!(matches!(events.recv().await, Some(EditorEvent::Ended)));
        // The next one is there before the last has gone, and before it begins or after.
        let mut next = editor.attach(&target);
        assert!(editor.on_began(session("one", None)).await.is_none());
        drop(events);
        editor.detach(&target, Some("one"));
        editor.on_message(message("one")).await;
        assert!(matches!(next.recv().await, Some(EditorEvent::Message { .. })));
        // Nobody is there for it any more: it is whoever's it will be.
        editor.on_message(restart()).await;
        editor.on_ended("one").await;
        assert!(editor.on_began(session("one", None)).await.is_some());
        let mut next = editor.attach(&target);
        // It never begins.
        editor.on_message(restart()).await;
        editor.on_ended("one").await;
        let mut never = editor.attach(&target);
        assert!(matches!(next.recv().await, Some(EditorEvent::Message { .. })));
        assert!(matches!(never.recv().await, Some(EditorEvent::Ended)));
        // Its host does not wait for it any more.
        assert!(editor.on_began(session("one", None)).await.is_some());
        let mut last = editor.attach(&target);
        editor.on_message(restart()).await;
        editor.on_ended("one").await;
        assert!(matches!(last.recv().await, Some(EditorEvent::Message { .. })));
        drop(editor.attach(&target));
        editor.detach(&target, Some("one"));
        assert!(editor.on_began(session("one", None)).await.is_some());
    }
}
