//! VS Code as the engine sees it: which session of the editor belongs to which of the engine's, and breakpoints that
//! are the same on both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_proto::shim::{
    AddEditorBreakpoint, EditorBreakpoint, EditorBreakpointIds, EditorExceptions, EditorMessage,
    EditorSession, RemoveEditorBreakpoints, SetEditorExceptions,
};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

use crate::debug::adapters::table::HitStyle;
use crate::debug::breakpoints::HitCondition;
use crate::debug::host::vscode::Target;
use crate::debug::types::triggers::{SetTrigger, Trigger, TriggerBreakpoint};
use crate::debug::types::{Breakpoint, SetBreakpoint};
use crate::shim::Shim;

/// Events of one session on their way to its host.
const MAX_EVENTS: usize = 1_024;

/// How long a session may wait for its host, which asks within milliseconds; then nobody will.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);
/// How long after its parent a child may be heard.
const CHILDREN_GRACE: Duration = Duration::from_millis(300);
/// How long the editor may take to take breakpoints.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

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
    /// Children that are still heard, and the session whose children they are.
    parents: BTreeMap<String, String>,
    breakpoints: Mirror,
    /// Types of configurations that it debugs.
    types: Vec<String>,
    /// See [`Editor::let_go`].
    has_let_go: bool,
}

/// What the editor calls the breakpoints, and which changes it has not heard of yet.
#[derive(Debug, Default)]
struct Mirror {
    ids: BTreeMap<Place, String>,
    adding: BTreeSet<Place>,
    removing: BTreeSet<String>,
}

/// Where a breakpoint of the editor is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// File, line, column; the first column is none.
    Line(PathBuf, u32, Option<u32>),
    /// The beginning of a function.
    Function(String),
}

/// The editor's breakpoints, as the engine is to have them.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) lines: Vec<SetBreakpoint>,
    pub(crate) functions: Vec<SetTrigger>,
    /// Those that the editor has not heard of yet.
    pub(crate) unheard: BTreeSet<Place>,
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

    pub(crate) fn shim(&self) -> &Shim {
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
            Target::Begun { session, .. } => state.unclaimed.remove(session).unwrap_or(receiver),
        }
    }

    /// No more events of it.
    pub(crate) fn detach(&self, target: &Target, session: Option<&str>) {
        let mut state = self.state();
        if let Target::Start(start) = target {
            state.starts.remove(&start.start);
        }
        if let Some(session) = session {
            state.sessions.remove(session);
            state.unclaimed.remove(session);
            state.parents.remove(session);
        }
        drop(state);
        self.gone.send_replace(());
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
    pub(crate) fn on_debuggers(&self, types: Vec<String>) {
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
    pub(crate) async fn on_began(&self, session: EditorSession) -> Option<EditorSession> {
        let (id, parent) = (session.session.clone(), session.parent.clone().unwrap_or_default());
        let (sender, event) = {
            let mut state = self.state();
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
    pub(crate) async fn on_message(&self, message: EditorMessage) {
        let EditorMessage { session, from_adapter, message } = message;
        let sender = self.state().sessions.get(&session).cloned();
        if let Some(sender) = sender {
            tracing::trace!(from_adapter, %message, "in the editor");
            self.hand(&session, sender, EditorEvent::Message { from_adapter, message }).await;
        }
    }

    /// A session of the editor is over.
    pub(crate) async fn on_ended(&self, session: &str) {
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
        let replaced = {
            let mut state = self.state();
            state.breakpoints.adding.insert(place.clone());
            let replaced = state.breakpoints.ids.remove(&place);
            state.breakpoints.removing.extend(replaced.clone());
            replaced
        };
        if let Some(id) = replaced {
            self.change(Change::Remove(vec![id]));
        }
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
        let ids: Vec<String> = {
            let mut state = self.state();
            let ids: Vec<String> = places.filter_map(|place| state.breakpoints.ids.remove(&place)).collect();
            state.breakpoints.removing.extend(ids.iter().cloned());
            ids
        };
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
        let mut state = self.state();
        let mirror = &mut state.breakpoints;
        mirror.ids.clear();
        let mut heard = Heard::default();
        for known in all {
            if mirror.removing.contains(&known.id) {
                continue;
            }
            if let Some(name) = known.function {
                mirror.ids.insert(Place::Function(name.clone()), known.id);
                let (condition, hit_condition) = (known.condition, known.hit_condition);
                let wish = SetTrigger { trigger: Trigger::Function { name }, condition, hit_condition };
                heard.functions.extend(known.enabled.then_some(wish));
                continue;
            }
            let wish = SetBreakpoint {
                path: std::fs::canonicalize(&known.path).unwrap_or_else(|_| PathBuf::from(&known.path)),
                line: known.line,
                column: plain(known.column),
                condition: known.condition,
                hit_condition: known.hit_condition,
                log_message: known.log_message,
            };
            mirror.ids.insert(place_of(&wish), known.id);
            heard.lines.extend(known.enabled.then_some(wish));
        }
        heard.unheard = mirror.adding.clone();
        heard
    }

    fn change(&self, change: Change) {
        if self.changes.try_send(change).is_err() {
            tracing::warn!("the editor does not take breakpoints any more");
        }
    }

    async fn send_changes(self, mut changes: mpsc::Receiver<Change>) {
        while let Some(change) = changes.recv().await {
            match change {
                Change::Add(breakpoint, place) => {
                    let added = self.shim.ask::<AddEditorBreakpoint>(*breakpoint).await;
                    let mut state = self.state();
                    state.breakpoints.adding.remove(&place);
                    match added {
                        Ok(added) => drop(state.breakpoints.ids.insert(place, added.id)),
                        Err(error) => tracing::warn!(%error, "the editor did not take a breakpoint"),
                    }
                }
                Change::Exceptions(exceptions) => {
                    if let Err(error) = self.shim.ask::<SetEditorExceptions>(exceptions).await {
                        tracing::warn!(%error, "the editor did not take a choice of exceptions");
                    }
                }
                Change::Settle(done) => drop(done.send(())),
                Change::Remove(ids) => {
                    let removed =
                        self.shim.ask::<RemoveEditorBreakpoints>(EditorBreakpointIds { ids: ids.clone() });
                    if let Err(error) = removed.await {
                        tracing::warn!(%error, "the editor did not remove a breakpoint");
                    }
                    let mut state = self.state();
                    state.breakpoints.removing.retain(|id| !ids.contains(id));
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Hit conditions in the form that adapters take.
pub(crate) fn normal_hits(text: &str) -> String {
    HitCondition::parse(text).map_or_else(|| text.to_owned(), |hit| hit.to_adapter(HitStyle::Operators))
}

/// The place of a breakpoint.
pub(crate) fn place_of(wish: &SetBreakpoint) -> Place {
    Place::Line(wish.path.clone(), wish.line, plain(wish.column))
}

/// To the editor, the first column is no column.
fn plain(column: Option<u32>) -> Option<u32> {
    column.filter(|column| *column > 1)
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
            Target::Begun { session, is_child: true, is_users: true }
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
}
