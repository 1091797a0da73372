//! Programs begin again: by a client's wish, and by the user's in the editor.

use std::time::Instant;

use super::waits::WaitId;
use super::{Again, Ended, Engine, Live, SessionKey};
use crate::editor::Target;
use crate::error::DebugError;
use crate::host::reach::{Host, Plan, Reach};
use crate::session::{End, Ending};
use crate::types::SessionId;
use crate::types::control::UserAct;

impl Engine {
    /// The same once more: the program ends with all its children, and begins under the same id.
    pub(super) fn on_restart(&mut self, session: Option<&SessionId>, wait: WaitId) {
        let key = match self.resolve(session) {
            Ok(key) => key,
            Err(error) => match self.ending_root(session) {
                Some(key) => key,
                None => return self.on_restart_ended(session, wait, error),
            },
        };
        let root = self.sessions.get(&key).map_or(key, |live| live.root);
        let Some(live) = self.sessions.get(&root) else { return self.give_up(wait) };
        let (session, compound) = (live.id.clone(), live.compound);
        if live.plan.is_users() {
            return self.answer(wait, Err(DebugError::UsersSession { session }));
        }
        // It begins again as a whole.
        let Some(first) = self.sessions.get_mut(&compound) else {
            return self.answer(wait, Err(DebugError::PartAlone { session }));
        };
        let replaced = first.restart.replace(wait);
        replaced.into_iter().for_each(|wait| self.give_up(wait));
        self.roots_of(compound).into_iter().for_each(|root| self.stop_tree(root));
    }

    /// One that has ended, while its host is still there.
    fn ending_root(&self, session: Option<&SessionId>) -> Option<SessionKey> {
        let is_meant = |live: &Live| session.is_none_or(|id| live.id == *id) && live.begins_again();
        self.sessions.iter().rev().find(|(_, live)| is_meant(live)).map(|(&key, _)| key)
    }

    /// One that has ended, by itself or because its adapter died, begins again: the last one, unless one is named.
    fn on_restart_ended(&mut self, session: Option<&SessionId>, wait: WaitId, otherwise: DebugError) {
        let has_room = self.has_room();
        let is_meant = |ended: &Ended| session.is_none_or(|id| ended.status.id == *id);
        let meant = self.ended.iter_mut().rev().filter(|ended| is_meant(ended));
        match (meant.map(|ended| &mut ended.again).find(|again| again.is_some()), has_room) {
            (None, _) => self.answer(wait, Err(otherwise)),
            (Some(_), Err(error)) => self.answer(wait, Err(error)),
            (Some(again), Ok(())) => {
                if let Some(again) = again.take() {
                    self.begin_again(again, wait);
                }
            }
        }
    }

    pub(super) fn begin_again(&mut self, again: Again, wait: WaitId) {
        self.ended.retain(|ended| ended.status.id != again.id);
        let key = self.begin(self::again(again.plan), again.name, again.owner, None, Some(again.id));
        self.active = Some(key);
        if let Some(begun) = self.sessions.get_mut(&key) {
            begun.usage = again.usage.again(Instant::now());
        }
        self.wait_for_start(key, wait);
    }

    /// The user starts the program of a session once more.
    pub(super) fn on_begins_again(&mut self, key: SessionKey, session: String) {
        self.on_user_acts(key, UserAct::Restarted);
        if let Some(live) = self.sessions.get_mut(&key).filter(|live| live.root == key) {
            live.again = Some(session);
        }
    }

    /// When the user started it once more, the session goes on, and so do the calls that wait for it. The editor begins
    /// it in a moment.
    pub(super) fn goes_on(&mut self, key: SessionKey, end: &End) -> bool {
        let Some(live) = self.sessions.get_mut(&key) else { return false };
        let (Host::Editor(editor, target), Some(session)) = (&live.plan.host, live.again.take()) else {
            return false;
        };
        if end.how == Ending::Asked || live.restart.is_some() {
            return false;
        }
        tracing::info!(session = %live.id, "the user restarts the debug session");
        self.ids.forget(key, None);
        let host = Host::Editor(editor.clone(), target.again(session));
        let plan = Plan { host, ..live.plan.clone() };
        let (id, name, owner) = (live.id.clone(), live.name.clone(), live.owner.clone());
        let (usage, output) = (live.usage.again(Instant::now()), std::mem::take(&mut live.output));
        let kin = std::mem::take(&mut live.kin);
        live.outgoing = None;
        live.over.cancel();
        live.stops.clear();
        live.untold.clear();
        for key in kin.into_iter().chain([key]) {
            self.breakpoints.unbind(key);
        }
        self.stop_children(key);
        let next = self.begin(plan, name, owner, None, Some(id));
        self.replace(key, next);
        if let Some(live) = self.sessions.get_mut(&next) {
            (live.usage, live.output) = (usage, output);
        }
        true
    }

    /// What was about one session is about another one.
    fn replace(&mut self, old: SessionKey, next: SessionKey) {
        let of_old = self.sessions.get(&old).map_or(old, |live| live.compound);
        let compound = if of_old == old { next } else { of_old };
        for (&key, live) in &mut self.sessions {
            if key == next || (live.compound == old && key != old) {
                live.compound = compound;
            }
        }
        self.waits.replace((old, next), compound);
        if self.active == Some(old) {
            self.active = Some(next);
        }
    }
}

/// The same plan for another session.
fn again(mut plan: Plan) -> Plan {
    match &mut plan.host {
        // By its mark the editor's session is known as this one.
        Host::Editor(_, target) => {
            if let Target::Begun { start: Some(start), .. } = target {
                *target = Target::Start(start.clone());
            }
            if let Target::Start(start) = target {
                start.start = uuid::Uuid::new_v4().to_string();
            }
        }
        Host::Direct(Reach::Server(server)) => server.address = Default::default(),
        _ => {}
    }
    plan
}
