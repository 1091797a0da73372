//! CORE: the live place: who has it, for whom it is held, and the rules that move it.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_proto::control::{Notice, WindowRef};
use baton_proto::ids::{MAX_GENERATION, Term, WindowId};
use tokio::time::Instant;

use super::reason::Reason;
use super::seat::{Described, Seat};
use super::{Election, HOLD, Output, Preferred, RETURN, Refused, SETTLE};
use crate::roster::Grant;

/// Terms that are remembered for people.
const MAX_GRANTS: usize = 64;

/// Coordinators that may have started after the one that an agent reports, with a clock that was set back, granted a term
/// and died before the agent heard it.
const UNHEARD_STARTS: u64 = 1_000;

/// Who has the live place.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Nobody.
    Empty,
    /// A registered window, or for a moment one that is about to be replaced.
    Live { window: WindowId, term: Term, claim: Claim, why: Reason },
    /// Nobody yet: it is kept for this window.
    Held { window: WindowId, until: Instant, term: Option<Term>, claim: Claim, cause: Cause },
    /// Nobody yet: the window awaited has let go, and who came after it has not registered (R9).
    Unclear { until: Instant },
}

/// Why a place is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// R6.
    Vanished,
    /// R7.
    Restart,
    /// R9: the state file names it.
    Recovery,
    /// R9: it says that it was live, and may not know better.
    Claimed,
}

/// What a window's right to the place rests on, the weakest first (R9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Claim {
    /// A rule of this coordinator.
    Rule,
    /// A term that an earlier coordinator granted.
    Held(Term),
    /// The user said so.
    User,
}

/// A window that was gone for longer than its place was held, as one that reloads with many extensions is.
#[derive(Clone, Debug)]
pub(super) struct Displaced {
    pub(super) window: WindowId,
    pub(super) claim: Claim,
    /// Until when it has the place again when it comes.
    pub(super) until: Instant,
}

/// How a window comes, as far as its place depends on it.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) held: Option<Term>,
    /// None of all: it was with no coordinator before.
    pub(super) highest: Option<Term>,
    /// Others may know of a later term than `held`.
    pub(super) is_fenced: bool,
    /// This coordinator knew the window a while ago.
    pub(super) was_known: bool,
    /// And in the same incarnation.
    pub(super) is_same_run: bool,
}

impl Place {
    /// The place at the start of a coordinator that knows who was live.
    pub(super) fn recovering(until: Instant, previous: &Preferred) -> Self {
        let (window, term) = (previous.window.clone(), previous.term);
        Self::Held { window, until, term, claim: Claim::Rule, cause: Cause::Recovery }
    }

    pub(super) fn live(&self) -> Option<(&WindowId, Term)> {
        match self {
            Self::Live { window, term, .. } => Some((window, *term)),
            _ => None,
        }
    }

    pub(super) fn awaiting(&self) -> Option<(&WindowId, Instant)> {
        match self {
            Self::Held { window, until, .. } => Some((window, *until)),
            _ => None,
        }
    }

    /// The window for which the place is kept because it says that it was live.
    pub(super) fn claimant(&self) -> Option<&WindowId> {
        match self {
            Self::Held { window, cause: Cause::Claimed, .. } => Some(window),
            _ => None,
        }
    }

    pub(super) fn term_of(&self, id: &WindowId) -> Option<Term> {
        self.live().filter(|(live, _)| *live == id).map(|(_, term)| term)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Held { until, .. } | Self::Unclear { until } => Some(*until),
            Self::Empty | Self::Live { .. } => None,
        }
    }

    pub(super) fn extend(&mut self, at_least: Instant) {
        if let Self::Held { until, .. } | Self::Unclear { until } = self {
            *until = (*until).max(at_least);
        }
    }

    /// R6: the place of a live window that vanished is held.
    pub(super) fn on_vanished(&mut self, id: &WindowId, until: Instant) {
        match self {
            Self::Live { window, term, claim, .. } if window == id => {
                let (window, term, claim) = (window.clone(), Some(*term), *claim);
                *self = Self::Held { window, until, term, claim, cause: Cause::Vanished };
            }
            // It takes its time from when it ended, not from the command.
            Self::Held { window, until: held, cause: Cause::Restart, .. } if window == id => *held = until,
            _ => {}
        }
    }

    pub(super) fn described(&self, seats: &BTreeMap<WindowId, Seat>) -> Described {
        let name_of = |id: &WindowId| seats.get(id).map_or(id.as_str(), |seat| &seat.window.name).to_owned();
        let standby_because = match self {
            Self::Live { window, .. } => format!("{} is live", name_of(window)),
            Self::Held { window, .. } => format!("waiting for {} to come back", name_of(window)),
            Self::Unclear { .. } => "waiting for the window that was live".to_owned(),
            Self::Empty => "you stopped the live window".to_owned(),
        };
        let live_because = match self {
            Self::Live { why, .. } => why.text().to_owned(),
            _ => String::new(),
        };
        Described { live_because, standby_because }
    }
}

impl Election {
    /// R1, R2, R3, R6, R7, R9: what a registration means for the place.
    pub(super) fn place_registered(&mut self, now: Instant, id: &WindowId, arrival: Arrival) {
        let stopped = self.seats.get(id).is_some_and(|seat| seat.stopped);
        match &self.place {
            Place::Live { window, .. } if window == id && arrival.is_same_run => {}
            Place::Live { window, claim, .. } if window == id => self.grant(id, *claim, Reason::Back),
            Place::Held { window, .. } if window == id && stopped => self.vacate(),
            Place::Held { window, cause, .. } if window == id => {
                self.place_awaited(now, id, *cause, &arrival)
            }
            Place::Live { claim: Claim::Rule, .. } if !stopped && self.returns(now, id) => {
                let claim = self.displaced.as_ref().map_or(Claim::Rule, |displaced| displaced.claim);
                self.grant(id, claim, Reason::Back);
            }
            _ if self.has_claim(now, stopped, &arrival) => {
                let claim = arrival.held.map_or(Claim::Rule, Claim::Held);
                self.give_back(now, id, claim, &arrival);
            }
            Place::Empty if !self.merely_comes_back(now, &arrival) => match self.others_may_claim(&arrival) {
                Some(until) if until > now && self.seats.get(id).is_some_and(Seat::may_start) => {
                    self.place = Place::Unclear { until };
                }
                _ => self.start_if_wanted(id),
            },
            _ => {}
        }
    }

    /// R6: whether a window that was gone for longer than a hold has its place again. R11 stands above it.
    fn returns(&self, now: Instant, id: &WindowId) -> bool {
        let is_meant = |displaced: &Displaced| displaced.window == *id && displaced.until > now;
        let is_busy = self.place.live().is_some_and(|(live, _)| self.has_debugging_client(live));
        self.displaced.as_ref().is_some_and(is_meant) && !is_busy
    }

    /// R4.
    pub(super) fn on_take(&mut self, id: &WindowId) -> Result<(), Refused> {
        let seat = self.seats.get_mut(id).ok_or(Refused::NotRegistered)?;
        seat.stopped = false;
        (self.recovery_until, self.settle_until) = (None, None);
        // Also when it is the one that is live: the user wants it so.
        self.displaced = None;
        if self.place.term_of(id).is_none() {
            self.grant(id, Claim::User, Reason::Chosen);
        }
        // A focus older than this moves nothing: the user may have chosen from that very window.
        for seat in self.seats.values_mut() {
            seat.follow_at = None;
        }
        Ok(())
    }

    /// R5.
    pub(super) fn on_stop(&mut self, id: &WindowId) -> Result<(), Refused> {
        let seat = self.seats.get_mut(id).ok_or(Refused::NotRegistered)?;
        if !seat.stopped {
            seat.stopped = true;
            self.past.was_stopped = true;
            self.is_dirty = true;
            self.outputs.push_back(Output::Notify(id.clone(), Notice::Stop));
        }
        let is_awaited = self.place.awaiting().is_some_and(|(awaited, _)| awaited == id);
        // The user stops the one that was live, before anybody has followed it.
        let is_fallen = self.place.live().is_none() && self.fallen.as_ref() == Some(id);
        if is_awaited || is_fallen || self.place.term_of(id).is_some() {
            (self.recovery_until, self.settle_until) = (None, None);
            self.vacate();
        }
        Ok(())
    }

    /// R7.
    pub(super) fn on_restart(&mut self, now: Instant, id: &WindowId) -> Result<(), Refused> {
        if !self.seats.contains_key(id) {
            return Err(Refused::NotRegistered);
        }
        self.outputs.push_back(Output::Notify(id.clone(), Notice::Restart));
        if let Place::Live { window, term, claim, .. } = &self.place
            && window == id
        {
            let (window, term, claim) = (window.clone(), Some(*term), *claim);
            self.place = Place::Held { window, until: now + HOLD, term, claim, cause: Cause::Restart };
            self.is_dirty = true;
        }
        Ok(())
    }

    /// R8.
    pub(super) fn on_auto_start(&mut self, id: &WindowId, on: bool) -> Result<(), Refused> {
        let seat = self.seats.get_mut(id).ok_or(Refused::NotRegistered)?;
        if seat.window.auto_start == on {
            return Ok(());
        }
        Arc::make_mut(&mut seat.window).auto_start = on;
        // Whoever switched it, the agent says it again to the next coordinator.
        self.outputs.push_back(Output::Notify(id.clone(), Notice::AutoStart { auto_start: on }));
        self.is_dirty = true;
        if on {
            seat.stopped = false;
            if matches!(self.place, Place::Empty) {
                self.start_if_wanted(id);
            }
        }
        Ok(())
    }

    /// R6, R7, R9: the time of a held place is over.
    pub(super) fn expire_place(&mut self, now: Instant) {
        let was_unsure = self.is_unsure();
        for until in [&mut self.recovery_until, &mut self.settle_until] {
            *until = until.filter(|until| *until > now);
        }
        self.is_dirty |= was_unsure != self.is_unsure();
        if self.place.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        match &self.place {
            // It never went: it gets the place back.
            Place::Held { window, cause: Cause::Restart, claim, .. } if self.seats.contains_key(window) => {
                let (window, claim) = (window.clone(), *claim);
                self.grant(&window, claim, Reason::Restarted);
            }
            // It said that it was live, and nobody knew better.
            Place::Held { window, cause: Cause::Claimed, claim, .. } if self.seats.contains_key(window) => {
                let (window, claim) = (window.clone(), *claim);
                self.grant(&window, claim, Reason::Before);
            }
            // And has vanished meanwhile (R6).
            Place::Held { window, cause: Cause::Claimed, claim, .. } => {
                let (window, claim) = (window.clone(), *claim);
                let (until, cause) = (now + HOLD, Cause::Vanished);
                self.place = Place::Held { window, until, term: None, claim, cause };
            }
            // Nobody knows who was live, but somebody was stopped: as far as anybody can tell, that is why (R5).
            Place::Unclear { .. } if !self.past.is_trusted && self.has_stop() => self.vacate(),
            Place::Held { window, cause: Cause::Vanished | Cause::Restart, claim, .. } => {
                let displaced = Displaced { window: window.clone(), claim: *claim, until: now + RETURN };
                self.promote();
                self.displaced = Some(displaced);
            }
            _ => self.promote(),
        }
    }

    /// The standby window focused last becomes live; none: nobody.
    pub(super) fn promote(&mut self) {
        let standby = self.seats.iter().filter(|(_, seat)| seat.may_start());
        // Of equals the first by id: `max_by_key` would take the last.
        let best = standby.rev().max_by_key(|(_, seat)| seat.promotion_rank()).map(|(id, _)| id.clone());
        match best {
            Some(id) => self.grant(&id, Claim::Rule, Reason::Promoted),
            None => self.empty(),
        }
    }

    /// R12, subject to R11.
    pub(super) fn follow_focus(&mut self, now: Instant) {
        let due = self.followers().filter(|(at, _)| *at <= now).max();
        if let Some(id) = due.map(|(_, id)| id.clone()) {
            self.grant(&id, Claim::Rule, Reason::Focused);
            // Two can say that they have it, as in two browsers: the one that got it first moves nothing after this.
            for seat in self.seats.values_mut() {
                seat.follow_at = seat.follow_at.filter(|at| *at > now);
            }
        }
    }

    /// The windows to which the place would follow the focus, and when.
    pub(super) fn followers(&self) -> impl Iterator<Item = (Instant, &WindowId)> {
        let may_move = self.place.live().is_some_and(|(live, _)| !self.has_debugging_client(live));
        let follows = self.settings.follow_focus && may_move;
        let standby = move |id: &WindowId, seat: &Seat| seat.may_start() && self.place.term_of(id).is_none();
        self.seats
            .iter()
            .filter(move |(id, seat)| follows && standby(id, seat))
            .filter_map(|(id, seat)| Some((seat.follow_at?, id)))
    }

    /// Makes sure that the terms to come exceed `reported`, as when the file with the generation was lost.
    pub(super) fn learn_term(&mut self, id: &WindowId, reported: Option<Term>) {
        let last = Term { generation: self.generation, seq: self.last_seq };
        // Ours, and granted to somebody else: an earlier coordinator has granted it as well.
        let is_twice = |term: Term| {
            term == last && self.place.live().is_some_and(|(live, granted)| live != id && granted == term)
        };
        let Some(reported) = reported.filter(|reported| *reported > last || is_twice(*reported)) else {
            return;
        };
        // At the end of all generations, which none but a lie brings about, `seq` goes on.
        // Two that hear of the same term at once do not grant the same one.
        let above = reported.generation + UNHEARD_STARTS + self.past.first % UNHEARD_STARTS;
        (self.generation, self.last_seq) =
            if above >= MAX_GENERATION { (MAX_GENERATION, reported.seq) } else { (above, 0) };
        self.is_dirty = true;
        match &mut self.place {
            Place::Live { window, claim, why, .. } => {
                let (window, claim, why) = (window.clone(), *claim, *why);
                self.grant(&window, claim, why);
            }
            // Whoever comes back gets a new term. That of a recovery is compared with agents' reports.
            Place::Held { term, cause: Cause::Vanished | Cause::Restart, .. } => *term = None,
            Place::Held { .. } | Place::Unclear { .. } | Place::Empty => {}
        }
    }

    /// An agent that was with a later coordinator than the file knew of shows that the file was lost, or an old one.
    pub(super) fn notice_lost_state(&mut self, now: Instant, highest: Option<Term>) {
        let Some(highest) = highest.filter(|_| self.recovery_until.is_some_and(|until| until > now)) else {
            return;
        };
        let last = Term { generation: self.generation, seq: self.last_seq };
        let is_ours = highest.generation >= self.past.first && highest <= last;
        if self.past.is_trusted && highest.generation > self.past.known && !is_ours {
            self.past.is_trusted = false;
            self.settle_until = Some(now + SETTLE);
            self.is_dirty = true;
        }
    }

    /// The window for which the place is held has come.
    fn place_awaited(&mut self, now: Instant, id: &WindowId, cause: Cause, arrival: &Arrival) {
        let Place::Held { until, term, claim, .. } = &self.place else { return };
        let (until, term, claim) = (*until, *term, *claim);
        match cause {
            Cause::Vanished => match term.filter(|_| arrival.is_same_run && arrival.held == term) {
                // Only its connection broke: the term it holds is good.
                Some(term) => {
                    let why = Reason::BackInTime;
                    self.place = Place::Live { window: id.clone(), term, claim, why };
                }
                None => self.grant(id, claim, Reason::BackInTime),
            },
            // Still the run that is about to end.
            Cause::Restart if arrival.is_same_run => {}
            Cause::Restart => self.grant(id, claim, Reason::Restarted),
            // Others may still know better.
            Cause::Claimed if arrival.is_same_run => {}
            Cause::Recovery | Cause::Claimed => {
                // A new agent of the window knows no term. One that knows its own and does not hold it was
                // told that it lost the place, by a coordinator that died before it wrote so.
                let knows_term = arrival.highest.is_some() && arrival.highest >= term;
                if arrival.held.is_none() && knows_term {
                    let until = self.recovery_until.map_or(until, |recovery| recovery.max(until));
                    self.place = Place::Unclear { until };
                } else {
                    let claim = arrival.held.max(term).map_or(Claim::Rule, Claim::Held);
                    self.give_back(now, id, claim, arrival);
                }
            }
        }
    }

    /// R9: whether a window that was live under an earlier coordinator has a better right than whoever is now.
    fn has_claim(&self, now: Instant, stopped: bool, arrival: &Arrival) -> bool {
        let Some(held) = arrival.held.filter(|_| !stopped) else { return false };
        if held.generation >= self.generation || self.recovery_until.is_none_or(|until| until <= now) {
            return false;
        }
        match &self.place {
            // One that was out of touch when the user ended a later term does not know of it (R5).
            Place::Empty => self.vacated.is_none_or(|ended| held > ended),
            Place::Unclear { .. } => true,
            Place::Held { term, cause: Cause::Recovery | Cause::Claimed, .. } => {
                term.is_none_or(|term| held > term)
            }
            Place::Held { .. } => false,
            // R11 stands above it.
            Place::Live { window, claim, .. } => {
                Claim::Held(held) > *claim && !self.has_debugging_client(window)
            }
        }
    }

    /// R9: the place goes back to the window that was live. Without a file that says so, one that was out of touch or is
    /// new waits a moment for others that know better.
    fn give_back(&mut self, now: Instant, id: &WindowId, claim: Claim, arrival: &Arrival) {
        let until = self.settle_until.filter(|until| *until > now);
        let may_be_wrong = arrival.is_fenced || arrival.held.is_none();
        match (until, claim) {
            (Some(until), Claim::Held(term)) if !self.past.is_trusted && may_be_wrong => {
                let (window, cause) = (id.clone(), Cause::Claimed);
                self.place = Place::Held { window, until, term: Some(term), claim, cause };
                self.is_dirty = true;
            }
            _ => self.grant(id, claim, Reason::Before),
        }
    }

    /// R9: until when R1 is put off because another window may have been live. A window that comes from an earlier
    /// coordinator would have been live there if nobody was.
    fn others_may_claim(&self, arrival: &Arrival) -> Option<Instant> {
        let is_new = arrival.highest.is_none();
        match (self.past.is_trusted, is_new) {
            (true, true) => None,
            // Who was live has ended; only when the file was old, somebody else was.
            (true, false) if self.past.has_died => self.settle_until,
            _ => self.recovery_until,
        }
    }

    /// R5 outlasts a lost connection and a new coordinator: a window that comes back is not a new one, nor is one that was
    /// with an earlier coordinator.
    fn merely_comes_back(&self, now: Instant, arrival: &Arrival) -> bool {
        let recovers = self.recovery_until.is_some_and(|until| until > now);
        self.vacated.is_some() && (arrival.was_known || arrival.highest.is_some() || recovers)
    }

    /// R1.
    fn start_if_wanted(&mut self, id: &WindowId) {
        if self.seats.get(id).is_some_and(Seat::may_start) {
            self.grant(id, Claim::Rule, Reason::Alone);
        }
    }

    /// The only place where a term is made.
    fn grant(&mut self, id: &WindowId, claim: Claim, why: Reason) {
        self.last_seq += 1;
        *self.granted.entry(why.rule()).or_default() += 1;
        let term = Term { generation: self.generation, seq: self.last_seq };
        self.place = Place::Live { window: id.clone(), term, claim, why };
        self.note_grant(id, term, why);
        self.vacated = None;
        self.displaced = None;
        self.is_dirty = true;
        if let Some(seat) = self.seats.get_mut(id) {
            seat.follow_at = None;
            let (window, pid) = (id.clone(), seat.window.pid);
            self.fallen = None;
            self.preferred = Some(Preferred { window, pid, pid_start: seat.pid_start, term: Some(term) });
        }
    }

    /// For people who ask later why a window is live.
    fn note_grant(&mut self, id: &WindowId, term: Term, why: Reason) {
        let name = self.seats.get(id).map_or_else(|| id.to_string(), |seat| seat.window.name.clone());
        let window = WindowRef { id: id.clone(), name };
        let grant = Grant { at: self.last_run, window, term, rule: why.rule(), why: why.text() };
        let grants = Arc::make_mut(&mut self.grants);
        let n_over = (grants.len() + 1).saturating_sub(MAX_GRANTS);
        grants.drain(..n_over);
        grants.push(grant);
    }

    /// Nobody is live, and that is the user's wish.
    fn vacate(&mut self) {
        let ended = match &self.place {
            Place::Live { term, .. } => Some(*term),
            Place::Held { term, .. } => *term,
            Place::Unclear { .. } | Place::Empty => None,
        };
        self.vacated = Some(ended.unwrap_or_default());
        self.empty();
    }

    fn empty(&mut self) {
        self.place = Place::Empty;
        self.preferred = None;
        self.is_dirty = true;
    }
}
