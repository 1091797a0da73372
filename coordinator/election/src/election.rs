//! CORE: which window is live. Rules R1 to R12; no IO, no clock.
//!
//! | rule | event | effect |
//! |---|---|---|
//! | R1 | a window registers with auto-start, none is live or awaited | it becomes live |
//! | R2 | the same, another is live or awaited | standby |
//! | R3 | a window registers without auto-start | off; no rule ever makes it live |
//! | R4 | the user takes or starts a window | live at once, whatever its setting |
//! | R5 | the user stops the live window | off, nobody is promoted |
//! | R6 | the live window vanishes | its place is held, then the standby window focused last becomes live; if it comes back soon, and only that rule moved the place since, it has it again |
//! | R7 | the user restarts a window | its place is held until it is back, with a new term |
//! | R8 | auto-start is switched | on: as R1 and R2; off: a standby window goes off |
//! | R9 | a new coordinator starts | the previous live window gets its place back, or a lease passes |
//! | R10 | a window stops answering | suspect, later evicted |
//! | R11 | the live window debugs | no rule takes the place from it |
//! | R12 | `followFocus`: a standby window is focused for a while | it becomes live, subject to R11 |
//!
//! The owner feeds [`Election::handle`], drains [`Election::poll_output`], and calls
//! [`Election::handle_timeout`] when the moment of [`Election::poll_timeout`] has come.
//!
//! **Invariant:** terms are granted in strictly growing order, and exceed every term an agent ever reported.

mod place;
mod reason;
mod seat;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use baton_proto::control::{
    DebugSession, HOLD_MS, Heartbeat, LEASE_MS, Notice, Outcome, Register, Registered, SUSPECT_MS, Settings,
};
use baton_proto::ids::{InstanceId, MAX_GENERATION, Term, WindowId};
use tokio::time::Instant;

use crate::roster::{Grant, Roster};
use place::{Displaced, Place};
use seat::{Departed, Seat};

/// Most windows at once; each is a process of the same user, so more of them are a fault.
pub(crate) const MAX_WINDOWS: usize = 2_048;

const HOLD: Duration = Duration::from_millis(HOLD_MS);
/// How long a window that comes back is no new one, and has its place again, after that was given away by a rule: an
/// editor with many extensions reloads a window in so much time.
const RETURN: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_millis(LEASE_MS);
const SUSPECT: Duration = Duration::from_millis(SUSPECT_MS);
/// The sweeper runs at least this often while there is anybody to watch.
const TICK: Duration = Duration::from_secs(1);
/// How long a coordinator that does not know who was live hears everybody who may say so, before it believes one that
/// may be wrong. Agents look for a coordinator within milliseconds after they lost one.
const SETTLE: Duration = Duration::from_secs(1);
/// Not having run for this long means that we were stopped, not that all windows fell silent.
const STALL: Duration = Duration::from_secs(2);

/// What a new coordinator knows before any agent spoke to it (R9).
#[derive(Clone, Debug)]
pub struct Start {
    /// This run of the coordinator.
    pub instance: InstanceId,
    /// Its generation.
    pub generation: u64,
    /// The generation that the state file knew: an agent that has seen a later one shows that the file is not the
    /// last word.
    pub known: u64,
    /// False when what follows cannot be believed: the state file was lost, could not be read, or cannot be written.
    pub is_trusted: bool,
    /// Settings in force.
    pub settings: Settings,
    /// The window that was live, when one was.
    pub previous: Option<Preferred>,
    /// Whether the process of `previous` is proven dead: its place is not held then.
    pub previous_is_dead: bool,
    /// The term that the user ended, when nobody was live because the user wanted it so (R5).
    pub vacated: Option<Term>,
}

/// The live window, as it is written down for the next coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preferred {
    /// Its id.
    pub window: WindowId,
    /// Process id of its agent.
    pub pid: u32,
    /// Start time of that process.
    pub pid_start: u64,
    /// Its term; without it the agents' own reports decide.
    pub term: Option<Term>,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A window announces itself, again or for the first time.
    Register(WindowId, Box<Register>),
    /// A sign of life with what changed.
    Heartbeat(WindowId, Heartbeat),
    /// A window ends on purpose.
    Leave(WindowId, u64),
    /// The event stream of this incarnation opened: it is told where it stands.
    EventsOpened(WindowId, u64),
    /// The event stream of this incarnation ended: the window vanished.
    EventsClosed(WindowId, u64),
    /// The user takes or starts a window (R4).
    Take(WindowId),
    /// The user stops a window (R5).
    Stop(WindowId),
    /// The user restarts a window (R7).
    Restart(WindowId),
    /// The user switches auto-start (R8).
    SetAutoStart(WindowId, bool),
    /// The user changes settings.
    SetSettings(Settings),
}

/// What must be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Publish [`Election::roster`].
    Changed,
    /// Send a notice to a window.
    Notify(WindowId, Notice),
    /// End the event stream of a window, after what was sent to it before.
    CloseEvents(WindowId),
}

/// Why an input was refused; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The window must register first.
    #[error("this window is not registered")]
    NotRegistered,
    /// A message of an earlier start of the window's agent.
    #[error("a newer agent has registered for this window")]
    StaleIncarnation,
    /// Too many windows.
    #[error("too many windows (limit {MAX_WINDOWS})")]
    TooManyWindows,
    /// A term that no coordinator granted.
    #[error("term out of range (limit {MAX_GENERATION})")]
    ImpossibleTerm,
}

/// The state of the election.
#[derive(Clone, Debug)]
pub struct Election {
    instance: InstanceId,
    generation: u64,
    /// The last `seq` granted in `generation`.
    last_seq: u64,
    place: Place,
    /// Nobody is live because the user wanted it so: windows that merely come back are not promoted.
    /// Nobody is live because the user ended this term (R5); 0.0 when it is not known.
    vacated: Option<Term>,
    /// While set, agents that held a term of an earlier coordinator may claim the place (R9).
    recovery_until: Option<Instant>,
    /// While set, what only may be the last word is not acted on (R9).
    settle_until: Option<Instant>,
    /// What was known of earlier coordinators.
    past: Past,
    preferred: Option<Preferred>,
    /// The window that was live last, as the coordinator before knew; its process has died meanwhile.
    fallen: Option<WindowId>,
    /// The window whose place a rule gave away because it was gone for longer than a hold (R6).
    displaced: Option<Displaced>,
    seats: BTreeMap<WindowId, Seat>,
    departed: BTreeMap<WindowId, Departed>,
    /// Windows that may come back: whether the user had stopped them, and how long that is remembered.
    away: BTreeMap<WindowId, (bool, Instant)>,
    settings: Arc<Settings>,
    last_run: Instant,
    /// Terms that were granted, by rule.
    granted: BTreeMap<&'static str, u64>,
    /// The last terms that were granted.
    grants: Arc<Vec<Grant>>,
    outputs: VecDeque<Output>,
    is_dirty: bool,
}

/// What a coordinator knew at its start of those before it (R9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Past {
    /// Our own first generation.
    first: u64,
    /// See [`Start::known`].
    known: u64,
    /// See [`Start::is_trusted`].
    is_trusted: bool,
    /// The window that was live has ended; nobody is awaited.
    has_died: bool,
    /// A window is stopped, and nobody has been live since, as far as it knows: that may be why nobody is (R5).
    was_stopped: bool,
}

impl Election {
    /// The state of a coordinator that just started.
    pub fn new(now: Instant, start: Start) -> Self {
        let place = match &start.previous {
            Some(previous) if !start.previous_is_dead => Place::recovering(now + LEASE, previous),
            // Whoever was live will say so.
            _ if !start.is_trusted && start.vacated.is_none() => Place::Unclear { until: now + LEASE },
            _ => Place::Empty,
        };
        let past = Past {
            first: start.generation,
            known: start.known,
            is_trusted: start.is_trusted,
            has_died: start.previous.is_some() && start.previous_is_dead,
            was_stopped: false,
        };
        Self {
            instance: start.instance,
            generation: start.generation,
            last_seq: 0,
            vacated: start.vacated.filter(|_| matches!(place, Place::Empty)),
            place,
            recovery_until: Some(now + LEASE),
            settle_until: Some(now + SETTLE),
            past,
            fallen: start
                .previous
                .as_ref()
                .filter(|_| start.previous_is_dead)
                .map(|fallen| fallen.window.clone()),
            preferred: start.previous.filter(|_| !start.previous_is_dead),
            displaced: None,
            seats: BTreeMap::new(),
            departed: BTreeMap::new(),
            away: BTreeMap::new(),
            settings: Arc::new(start.settings),
            last_run: now,
            granted: BTreeMap::new(),
            grants: Arc::default(),
            outputs: VecDeque::new(),
            is_dirty: false,
        }
    }

    /// Takes one input.
    pub fn handle(&mut self, now: Instant, input: Input) -> Result<(), Refused> {
        self.notice_stall(now);
        let result = match input {
            Input::Register(window, register) => self.on_register(now, &window, *register),
            Input::Heartbeat(window, heartbeat) => self.on_heartbeat(now, &window, heartbeat),
            Input::Leave(window, incarnation) => self.on_gone(now, &window, incarnation, true),
            Input::EventsOpened(window, incarnation) => self.on_events_opened(now, &window, incarnation),
            Input::EventsClosed(window, incarnation) => self.on_gone(now, &window, incarnation, false),
            Input::Take(window) => self.on_take(&window),
            Input::Stop(window) => self.on_stop(&window),
            Input::Restart(window) => self.on_restart(now, &window),
            Input::SetAutoStart(window, auto_start) => self.on_auto_start(&window, auto_start),
            Input::SetSettings(settings) => {
                self.on_settings(settings);
                Ok(())
            }
        };
        self.follow_focus(now);
        self.settle();
        result
    }

    /// Does what is due at `now`; harmless when nothing is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.notice_stall(now);
        self.sweep(now);
        self.expire_place(now);
        self.follow_focus(now);
        let n_departed = self.departed.len();
        self.departed.retain(|_, departed| departed.until > now);
        self.is_dirty |= self.departed.len() < n_departed;
        self.away.retain(|_, (_, until)| *until > now);
        if self.seats.is_empty() && self.departed.is_empty() && matches!(self.place, Place::Empty) {
            // A wish of R5 ends with the last window.
            self.is_dirty |= self.vacated.take().is_some();
        }
        self.settle();
    }

    /// When [`Election::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let silent = self.seats.values().map(Seat::silence_deadline);
        let departed = self.departed.values().map(|departed| departed.until);
        let follow = self.followers().map(|(at, _)| at);
        let is_watching = !self.seats.is_empty() || self.place.deadline().is_some();
        let tick = is_watching.then(|| self.last_run + TICK);
        let away = self.away.values().map(|(_, until)| *until);
        silent.chain(departed).chain(away).chain(follow).chain(self.place.deadline()).chain(tick).min()
    }

    /// What must be done now; call until it is `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What everybody else sees of this.
    pub fn roster(&self, now: Instant, client_epoch: u32) -> Roster {
        let windows = self.seats.iter().map(|(id, seat)| (id.clone(), seat.published(now))).collect();
        Roster {
            instance: self.instance.clone(),
            generation: self.generation,
            live: self.place.live().map(|(id, term)| (id.clone(), term)),
            awaiting: self.place.awaiting().map(|(id, until)| (id.clone(), until)),
            windows,
            departed: self.departed.values().map(|departed| departed.window.clone()).collect(),
            settings: self.settings.clone(),
            client_epoch,
            granted: self.granted.clone(),
            grants: self.grants.clone(),
        }
    }

    /// The answer to a registration or heartbeat.
    pub fn registered(&self, window: &WindowId) -> Result<Registered, Refused> {
        let seat = self.seats.get(window).ok_or(Refused::NotRegistered)?;
        Ok(Registered {
            instance: self.instance.clone(),
            generation: self.generation,
            state: seat.window.state,
            term: self.place.term_of(window),
            awaited: self.place.claimant() == Some(window),
            settings: (*self.settings).clone(),
            port: None,
            client_epoch: 0,
        })
    }

    /// The answer to a command of the user.
    pub fn outcome(&self, window: &WindowId) -> Result<Outcome, Refused> {
        let seat = self.seats.get(window).ok_or(Refused::NotRegistered)?;
        Ok(Outcome {
            window: seat.window.to_ref(),
            state: seat.window.state,
            term: self.place.term_of(window),
        })
    }

    /// Generation of the terms granted from now on.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether this coordinator does not know yet who was live before it: the next one must not believe its file.
    pub fn is_unsure(&self) -> bool {
        self.recovery_until.is_some() && !self.past.is_trusted && self.place.live().is_none()
    }

    /// The window the next coordinator should await.
    pub fn preferred(&self) -> Option<&Preferred> {
        self.preferred.as_ref()
    }

    /// The window that has the place again when it comes (R6).
    pub fn displaced(&self) -> Option<&WindowId> {
        self.displaced.as_ref().map(|displaced| &displaced.window)
    }

    /// The term that the user ended, while nobody is live because the user wanted it so (R5); the lowest one while that
    /// is as much as anybody knows.
    pub fn vacated(&self) -> Option<Term> {
        self.vacated.or((self.is_unsure() && self.has_stop()).then(Term::default))
    }

    /// Whether a window is stopped, and that may be why nobody is live.
    fn has_stop(&self) -> bool {
        let is_here = self.seats.values().any(|seat| seat.stopped);
        self.past.was_stopped && (is_here || self.away.values().any(|(stopped, _)| *stopped))
    }

    /// Settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn on_register(&mut self, now: Instant, id: &WindowId, register: Register) -> Result<(), Refused> {
        self.admit(id, &register)?;
        let (held, is_fenced) = (register.held_term, register.fenced);
        let highest = register.highest_term.max(held);
        let is_reason = register.stopped && !register.live_since;
        let known = self.seats.get(id);
        let departed = self.departed.remove(id);
        let away = self.away.remove(id);
        let was_known = known.is_some() || away.is_some();
        let is_same_run = known.is_some_and(|seat| seat.window.incarnation == register.incarnation);
        // Of a window it knows, the coordinator remembers the user's wish better than the agent does.
        let stopped = match known {
            Some(seat) => seat.stopped,
            None => register.stopped || away.is_some_and(|(stopped, _)| stopped),
        };
        let auto_start = match (known, &departed) {
            (Some(seat), _) if is_same_run => Some(seat.window.auto_start),
            (None, Some(gone)) if gone.incarnation == register.incarnation => Some(gone.auto_start),
            _ => None,
        };
        if known.is_some() && !is_same_run {
            self.outputs.push_back(Output::Notify(id.clone(), Notice::Superseded));
            self.outputs.push_back(Output::CloseEvents(id.clone()));
        }
        let last = known.map(|seat| &*seat.window).or(departed.as_ref().map(|gone| &*gone.window));
        let seat = Seat::new(now, id, register, (stopped, auto_start), known, last);
        self.seats.insert(id.clone(), seat);
        self.is_dirty = true;
        self.past.was_stopped |= is_reason;
        self.notice_lost_state(now, highest);
        self.learn_term(id, highest);
        let returned_run =
            is_same_run || departed.is_some_and(|gone| gone.incarnation == self.incarnation_of(id));
        self.place_registered(
            now,
            id,
            place::Arrival { held, highest, is_fenced, was_known, is_same_run: returned_run },
        );
        Ok(())
    }

    /// Refuses a registration that must not change anything.
    fn admit(&self, id: &WindowId, register: &Register) -> Result<(), Refused> {
        let terms = [register.highest_term, register.held_term];
        if !terms.into_iter().flatten().all(Term::is_believable) {
            return Err(Refused::ImpossibleTerm);
        }
        if self.seats.get(id).is_some_and(|seat| register.incarnation < seat.window.incarnation) {
            return Err(Refused::StaleIncarnation);
        }
        if self.departed.get(id).is_some_and(|gone| gone.outdates(register.incarnation)) {
            return Err(Refused::StaleIncarnation);
        }
        if !self.seats.contains_key(id) && self.seats.len() >= MAX_WINDOWS {
            return Err(Refused::TooManyWindows);
        }
        Ok(())
    }

    fn on_heartbeat(&mut self, now: Instant, id: &WindowId, heartbeat: Heartbeat) -> Result<(), Refused> {
        let seat = self.seat_of(id, heartbeat.incarnation)?;
        self.is_dirty |= seat.beat(now, heartbeat);
        Ok(())
    }

    fn on_events_opened(&mut self, now: Instant, id: &WindowId, incarnation: u64) -> Result<(), Refused> {
        let seat = self.seat_of(id, incarnation)?;
        seat.heard(now);
        // A stream begins with where the window stands, also when it was told before.
        seat.told = None;
        let auto_start = seat.window.auto_start;
        // It was switched when there was no stream to tell it, or on one that broke.
        if seat.said_auto_start != auto_start {
            self.outputs.push_back(Output::Notify(id.clone(), Notice::AutoStart { auto_start }));
        }
        self.is_dirty = true;
        Ok(())
    }

    fn on_gone(&mut self, now: Instant, id: &WindowId, incarnation: u64, left: bool) -> Result<(), Refused> {
        match self.seat_of(id, incarnation) {
            Ok(_) => {}
            // Gone already: a leave and the end of its stream come in any order.
            Err(Refused::NotRegistered) => return self.note_leave(id, incarnation, left),
            Err(refused) => return Err(refused),
        }
        self.remove(now, id, left);
        self.place.on_vanished(id, now + HOLD);
        Ok(())
    }

    /// A leave that comes after the end of its stream still outdates the incarnation.
    fn note_leave(&mut self, id: &WindowId, incarnation: u64, left: bool) -> Result<(), Refused> {
        if let Some(gone) = self.departed.get_mut(id).filter(|gone| gone.incarnation == incarnation) {
            gone.left |= left;
        }
        Ok(())
    }

    fn on_settings(&mut self, settings: Settings) {
        if *self.settings == settings {
            return;
        }
        self.settings = Arc::new(settings.clone());
        self.is_dirty = true;
        for id in self.seats.keys() {
            let notice = Notice::Settings { settings: Box::new(settings.clone()) };
            self.outputs.push_back(Output::Notify(id.clone(), notice));
        }
    }

    /// The seat of exactly this incarnation.
    fn seat_of(&mut self, id: &WindowId, incarnation: u64) -> Result<&mut Seat, Refused> {
        let seat = self.seats.get_mut(id).ok_or(Refused::NotRegistered)?;
        match incarnation.cmp(&seat.window.incarnation) {
            std::cmp::Ordering::Less => Err(Refused::StaleIncarnation),
            std::cmp::Ordering::Equal => Ok(seat),
            std::cmp::Ordering::Greater => Err(Refused::NotRegistered),
        }
    }

    fn incarnation_of(&self, id: &WindowId) -> u64 {
        self.seats.get(id).map_or(0, |seat| seat.window.incarnation)
    }

    /// Whether a client debugs in that window (R11); what the user debugs there does not count.
    fn has_debugging_client(&self, id: &WindowId) -> bool {
        let is_clients = |session: &DebugSession| !session.by_user;
        self.seats.get(id).is_some_and(|seat| seat.window.debug_sessions.iter().any(is_clients))
    }

    fn remove(&mut self, now: Instant, id: &WindowId, left: bool) {
        if let Some(seat) = self.seats.remove(id) {
            if self.departed.len() >= MAX_WINDOWS {
                self.departed.pop_first();
            }
            if self.away.len() >= MAX_WINDOWS {
                self.away.pop_first();
            }
            self.away.insert(id.clone(), (seat.stopped, now + RETURN));
            self.departed.insert(id.clone(), Departed::of(&seat, left, now + HOLD));
            self.is_dirty = true;
        }
    }

    /// R10: marks silent windows as suspect and evicts those that stay silent.
    fn sweep(&mut self, now: Instant) {
        for seat in self.seats.values_mut() {
            self.is_dirty |= seat.suspect(now);
        }
        let is_silent = |seat: &Seat| now.duration_since(seat.last_heard) >= LEASE;
        let silent: Vec<_> =
            self.seats.iter().filter(|(_, seat)| is_silent(seat)).map(|(id, _)| id.clone()).collect();
        for id in &silent {
            self.remove(now, id, false);
            self.outputs.push_back(Output::CloseEvents(id.clone()));
        }
        // The lease was longer than a hold: its place is free at once.
        if self.place.live().is_some_and(|(live, _)| silent.contains(live)) {
            self.promote();
        }
    }

    /// Gives everyone one more lease when it was us who did not run.
    fn notice_stall(&mut self, now: Instant) {
        let was_stalled = now.saturating_duration_since(self.last_run) >= STALL;
        self.last_run = self.last_run.max(now);
        if !was_stalled {
            return;
        }
        for seat in self.seats.values_mut() {
            seat.grace(now);
        }
        self.place.extend(now + HOLD);
        if let Some(until) = &mut self.recovery_until {
            *until = (*until).max(now + HOLD);
        }
        if let Some(until) = &mut self.settle_until {
            *until = (*until).max(now + SETTLE);
        }
    }

    /// Brings what windows and readers know in step with what is.
    fn settle(&mut self) {
        if !std::mem::take(&mut self.is_dirty) {
            return;
        }
        let live = self.place.live().and_then(|(id, _)| Some(self.seats.get(id)?.window.to_ref()));
        let setting = self.place.described(&self.seats);
        for (id, seat) in &mut self.seats {
            let is_awaited = self.place.claimant() == Some(id);
            let notice = seat.stand(self.place.term_of(id), is_awaited, live.as_ref(), &setting);
            if seat.told.as_ref() != Some(&notice) {
                seat.told = Some(notice.clone());
                self.outputs.push_back(Output::Notify(id.clone(), notice));
            }
        }
        self.outputs.push_back(Output::Changed);
    }
}
