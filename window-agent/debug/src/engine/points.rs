//! Breakpoints of all kinds: every session is told, and a verb is answered once all of them have answered.

use std::collections::BTreeSet;
use std::path::PathBuf;

use baton_proto::shim::EditorBreakpoint;
use tokio::sync::oneshot;

use super::{Engine, asks::Asked};
use crate::breakpoints::{SessionKey, triggers};
use crate::error::DebugError;
use crate::session::Input;
use crate::types::triggers::{RemoveTriggers, SetTrigger, TriggerBreakpoint, TriggerKind};
use crate::types::{Breakpoint, Phase, RemoveBreakpoint, SessionId, SetBreakpoint};

/// A breakpoint verb that waits until every session has taken the change.
pub(super) struct Gather {
    n_left: usize,
    then: Then,
}

pub(super) enum Then {
    Set { id: i64, reply: oneshot::Sender<Result<Breakpoint, DebugError>> },
    Removed { removed: Vec<Breakpoint>, reply: oneshot::Sender<Vec<Breakpoint>> },
    Triggers { ids: Vec<i64>, reply: TriggersReply },
    TriggersRemoved { removed: Vec<TriggerBreakpoint>, reply: TriggersReply },
    Nothing,
}

/// The answer to a verb about triggers.
pub(crate) type TriggersReply = oneshot::Sender<Result<Vec<TriggerBreakpoint>, DebugError>>;

impl Engine {
    pub(super) fn on_set_breakpoint(
        &mut self,
        wish: SetBreakpoint,
        reply: oneshot::Sender<Result<Breakpoint, DebugError>>,
    ) {
        if let Some(what) = self.breakpoints.others(&wish) {
            return drop(reply.send(Err(DebugError::OthersBreakpoint { what })));
        }
        let (path, owner) = (wish.path.clone(), wish.owner.clone());
        if let Some(editor) = &self.editor {
            editor.add_breakpoint(&wish);
        }
        let id = self.breakpoints.set(wish);
        self.hand_over(&BTreeSet::from([path]), &BTreeSet::from([owner]), Then::Set { id, reply });
    }

    pub(super) fn on_remove_breakpoint(
        &mut self,
        which: &RemoveBreakpoint,
        reply: oneshot::Sender<Vec<Breakpoint>>,
    ) {
        let removed = self.breakpoints.remove(which);
        if let Some(editor) = &self.editor {
            editor.remove_breakpoints(&removed);
        }
        let paths = removed.iter().map(|breakpoint| breakpoint.path.clone()).collect();
        let owners = removed.iter().map(|breakpoint| breakpoint.owner.clone()).collect();
        self.hand_over(&paths, &owners, Then::Removed { removed, reply });
    }

    /// The user's changes; what the editor has not heard of yet stays.
    pub(super) fn on_editor_breakpoints(&mut self, all: Vec<EditorBreakpoint>) {
        let Some(editor) = &self.editor else { return };
        let heard = editor.on_breakpoints(all);
        let mut changed = self.breakpoints.move_along(&heard.moved);
        changed.extend(self.breakpoints.replace(heard.lines, &heard.unheard));
        let everybodys = BTreeSet::from([None]);
        self.hand_over(&changed, &everybodys, Then::Nothing);
        if self.breakpoints.replace_functions(heard.functions, &heard.unheard) {
            self.hand_over_kinds(&BTreeSet::from([TriggerKind::Function]), &everybodys, Then::Nothing);
        }
    }

    pub(super) fn on_set_trigger(
        &mut self,
        session: Option<&SessionId>,
        wish: SetTrigger,
        reply: TriggersReply,
    ) {
        let kind = wish.trigger.kind();
        let meant = self.resolve(session);
        let tree = match (&meant, kind.is_of_session() || session.is_some()) {
            (Ok(key), _) => self.sessions.get(key).map_or(0, |live| live.root),
            (Err(error), true) => return drop(reply.send(Err(error.clone()))),
            (Err(_), false) => 0,
        };
        if let (Ok(key), Some(capability)) = (meant, triggers::capability(kind))
            && let Some(live) = self.sessions.get(&key)
            && (kind.is_of_session() || self.breakpoints.concerns(&wish.owner, self.client_of(key)))
            && !matches!(live.core.phase(), Phase::Starting)
            && !live.core.can(capability)
        {
            let error = DebugError::Unsupported {
                adapter: live.plan.session.adapter.name.clone(),
                what: kind.name(),
            };
            return drop(reply.send(Err(error)));
        }
        if let Some(what) = self.breakpoints.others_trigger(&wish, tree) {
            return drop(reply.send(Err(DebugError::OthersBreakpoint { what })));
        }
        if let Some(editor) = &self.editor {
            editor.add_trigger(&wish);
        }
        // What means something in one session only is told to that one, whoever started it.
        let owner = wish.owner.clone().filter(|_| !kind.is_of_session());
        let ids = vec![self.breakpoints.set_trigger(wish, tree)];
        if kind == TriggerKind::Exception {
            self.tell_exceptions_to_editor();
        }
        let owners = BTreeSet::from([owner]);
        self.hand_over_kinds(&BTreeSet::from([kind]), &owners, Then::Triggers { ids, reply });
    }

    pub(super) fn on_set_exceptions(
        &mut self,
        owner: Option<String>,
        wishes: Option<Vec<SetTrigger>>,
        reply: TriggersReply,
    ) {
        let ids = self.breakpoints.set_exceptions(owner.clone(), wishes);
        self.tell_exceptions_to_editor();
        let (kinds, owners) = (BTreeSet::from([TriggerKind::Exception]), BTreeSet::from([owner]));
        self.hand_over_kinds(&kinds, &owners, Then::Triggers { ids, reply });
    }

    pub(super) fn on_remove_triggers(&mut self, which: &RemoveTriggers, reply: TriggersReply) {
        let removed = self.breakpoints.remove_triggers(which);
        if let Some(editor) = &self.editor {
            editor.remove_triggers(&removed);
        }
        let mut kinds: BTreeSet<TriggerKind> = removed.iter().map(|known| known.trigger.kind()).collect();
        if matches!(which, RemoveTriggers::All | RemoveTriggers::Kind(TriggerKind::Exception)) {
            kinds.insert(TriggerKind::Exception);
        }
        if kinds.contains(&TriggerKind::Exception) {
            self.tell_exceptions_to_editor();
        }
        let whose = |known: &TriggerBreakpoint| {
            known.owner.clone().filter(|_| known.trigger.kind() == TriggerKind::Function)
        };
        let all = kinds.contains(&TriggerKind::Exception).then_some(None);
        let owners = removed.iter().map(whose).chain(all).collect();
        self.hand_over_kinds(&kinds, &owners, Then::TriggersRemoved { removed, reply });
    }

    /// VS Code has no interface for them: the extension puts them into what it says to an adapter.
    fn tell_exceptions_to_editor(&self) {
        if let Some(editor) = &self.editor {
            editor.choose_exceptions(self.breakpoints.exception_choice());
        }
    }

    /// The sessions that breakpoints of these owners stop: the others are left alone, for an adapter that is told the
    /// same once more may count hits anew.
    fn concerned(&self, owners: &BTreeSet<Option<String>>) -> Vec<SessionKey> {
        let keys = self.sessions.keys().copied();
        let is_concerned = |key: &SessionKey| {
            let client = self.client_of(*key);
            owners.iter().any(|owner| self.breakpoints.concerns(owner, client))
        };
        keys.filter(is_concerned).collect()
    }

    /// The next agent of the window begins with what there is now.
    fn keep(&self) {
        let now = self.breakpoints.kept();
        self.kept.send_if_modified(|kept| {
            let is_changed = *kept != now;
            *kept = now;
            is_changed
        });
    }

    /// Tells sessions the breakpoints of these files; the verb is answered when all have answered.
    fn hand_over(&mut self, paths: &BTreeSet<PathBuf>, owners: &BTreeSet<Option<String>>, then: Then) {
        self.keep();
        let keys = self.concerned(owners);
        let gather = self.gather(keys.len() * paths.len(), then);
        for path in paths {
            for &key in &keys {
                let wanted = self.breakpoints.of_file(path, self.client_of(key));
                let ticket = self.ask(Asked::Breakpoints { gather });
                self.feed(key, Input::SetBreakpoints { ticket, path: path.clone(), wanted });
            }
        }
        self.on_gathered(gather);
    }

    /// Tells sessions the triggers of these kinds.
    fn hand_over_kinds(
        &mut self,
        kinds: &BTreeSet<TriggerKind>,
        owners: &BTreeSet<Option<String>>,
        then: Then,
    ) {
        self.keep();
        let tree_of = |key: SessionKey| Some((key, self.sessions.get(&key)?.root));
        let trees: Vec<(SessionKey, SessionKey)> =
            self.concerned(owners).into_iter().filter_map(tree_of).collect();
        let gather = self.gather(trees.len() * kinds.len(), then);
        for &kind in kinds {
            for &(key, tree) in &trees {
                let wanted = self.breakpoints.of_kind(kind, tree, self.client_of(key));
                let ticket = self.ask(Asked::Breakpoints { gather });
                self.feed(key, Input::SetTriggers { ticket, wanted });
            }
        }
        self.on_gathered(gather);
    }

    /// Begins to count answers; one more than there are is due, so that no answer is the last one too early.
    fn gather(&mut self, n_answers: usize, then: Then) -> u64 {
        self.last_ticket += 1;
        self.gathers.insert(self.last_ticket, Gather { n_left: n_answers + 1, then });
        self.last_ticket
    }

    pub(super) fn on_gathered(&mut self, gather: u64) {
        let Some(entry) = self.gathers.get_mut(&gather) else { return };
        entry.n_left -= 1;
        if entry.n_left > 0 {
            return;
        }
        match self.gathers.remove(&gather).map(|gather| gather.then) {
            Some(Then::Set { id, reply }) => {
                if let Some(breakpoint) = self.breakpoints.find(id) {
                    let _ = reply.send(Ok(breakpoint));
                }
            }
            Some(Then::Removed { removed, reply }) => drop(reply.send(removed)),
            Some(Then::Triggers { ids, reply }) => {
                let known: Vec<TriggerBreakpoint> =
                    ids.iter().filter_map(|id| self.breakpoints.find_trigger(*id)).collect();
                let _ = reply.send(self.without_refused(known));
            }
            Some(Then::TriggersRemoved { removed, reply }) => drop(reply.send(Ok(removed))),
            Some(Then::Nothing) | None => {}
        }
    }

    /// One that means something in its session only, and not to its adapter, is not kept.
    fn without_refused(
        &mut self,
        known: Vec<TriggerBreakpoint>,
    ) -> Result<Vec<TriggerBreakpoint>, DebugError> {
        let is_refused = |known: &&TriggerBreakpoint| known.trigger.kind().is_of_session() && !known.verified;
        let Some(refused) = known.iter().find(is_refused) else { return Ok(known) };
        self.breakpoints.forget_trigger(refused.id);
        let command = triggers::command(refused.trigger.kind()).to_owned();
        let message = refused.message.clone().unwrap_or_else(|| "it was not bound".to_owned());
        Err(DebugError::Refused { command, message })
    }
}
