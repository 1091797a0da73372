//! CORE: one registered window, and what is remembered of one that has gone.

use std::sync::Arc;
use std::time::Duration;

use baton_proto::control::{
    DebugSession, FOLLOW_FOCUS_MS, Heartbeat, Notice, Register, WindowRef, WindowState,
};
use baton_proto::ids::{Term, WindowId};
use tokio::time::Instant;

use super::{LEASE, SUSPECT};
use crate::roster::{Address, Before, Window};

/// How long a window is focused before the live place follows (R12).
const FOLLOW_FOCUS: Duration = Duration::from_millis(FOLLOW_FOCUS_MS);
/// Sessions that are remembered after their agent has gone.
const MAX_ENDED: usize = 16;

/// A registered window.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// What everybody sees.
    pub(super) window: Arc<Window>,
    pub(super) pid_start: u64,
    /// The user stopped it (R5).
    pub(super) stopped: bool,
    pub(super) last_heard: Instant,
    /// When the live place would follow the focus to this window; set when the window gets the focus.
    pub(super) follow_at: Option<Instant>,
    /// The last state notice.
    pub(super) told: Option<Notice>,
    /// Auto-start as its agent said it; the user may have switched it since.
    pub(super) said_auto_start: bool,
    pub(super) is_focused: bool,
    heartbeat_seq: Option<u64>,
}

/// What is remembered, for a while, of a window that has gone.
#[derive(Clone, Debug)]
pub(super) struct Departed {
    pub(super) incarnation: u64,
    /// It said so: no message of this incarnation counts any more.
    pub(super) left: bool,
    pub(super) auto_start: bool,
    pub(super) until: Instant,
    /// As it was.
    pub(super) window: Arc<Window>,
}

impl Departed {
    pub(super) fn of(seat: &Seat, left: bool, until: Instant) -> Self {
        let (incarnation, auto_start) = (seat.window.incarnation, seat.window.auto_start);
        Self { incarnation, left, auto_start, until, window: seat.window.clone() }
    }

    /// Whether a registration of `incarnation` comes too late.
    pub(super) fn outdates(&self, incarnation: u64) -> bool {
        incarnation < self.incarnation || (self.left && incarnation == self.incarnation)
    }
}

/// The sessions that ended with the agents of the window before that incarnation.
fn ended(last: &Window, incarnation: u64) -> Vec<(u64, DebugSession)> {
    let mut ended = last.before.ended.clone();
    if last.incarnation < incarnation {
        let of_clients = last.debug_sessions.iter().filter(|session| !session.by_user);
        ended.extend(of_clients.map(|session| (last.incarnation, session.clone())));
    }
    ended.split_off(ended.len().saturating_sub(MAX_ENDED))
}

impl Seat {
    /// The seat of a window that registers; `known` is the seat it had until now.
    ///
    /// Of a run that this coordinator knows it remembers auto-start better than the agent does, who may not have heard
    /// that it was switched: `auto_start` is that. `last` is the window as it was before, here or gone.
    pub(super) fn new(
        now: Instant,
        id: &WindowId,
        register: Register,
        (stopped, auto_start): (bool, Option<bool>),
        known: Option<&Self>,
        last: Option<&Window>,
    ) -> Self {
        let same_run = known.filter(|seat| seat.window.incarnation == register.incarnation);
        let reported =
            register.focused_ms_ago.and_then(|ago_ms| now.checked_sub(Duration::from_millis(ago_ms)));
        let is_focused = register.focused_ms_ago == Some(0);
        let follow_at = match known {
            Some(seat) if seat.is_focused && is_focused => seat.follow_at,
            _ => is_focused.then(|| now + FOLLOW_FOCUS),
        };
        let trees = register.folders.iter().cloned().zip(register.trees).filter(|(_, tree)| !tree.is_empty());
        let window = Window {
            id: id.clone(),
            name: register.name,
            kind: register.kind,
            trees: trees.collect(),
            folders: register.folders,
            state: known.map_or(WindowState::Off, |seat| seat.window.state),
            why: known.map(|seat| seat.window.why.clone()).unwrap_or_default(),
            responsive: true,
            auto_start: auto_start.unwrap_or(register.auto_start),
            pid: register.pid,
            address: match register.socket {
                Some(socket) => Address::Socket(socket),
                None if register.protocol < 2 => Address::OldPort(register.port),
                None => Address::Port(register.port),
            },
            incarnation: register.incarnation,
            debug_sessions: register.debug_sessions,
            last_focus: reported.max(known.and_then(|seat| seat.window.last_focus)),
            before: Before {
                breakpoints: register.breakpoints_kept,
                ended: last.map(|last| ended(last, register.incarnation)).unwrap_or_default(),
            },
        };
        Self {
            window: Arc::new(window),
            pid_start: register.pid_start,
            stopped,
            last_heard: now,
            follow_at,
            told: same_run.and_then(|seat| seat.told.clone()),
            said_auto_start: register.auto_start,
            // A registration begins a new connection, on which the agent may count anew.
            heartbeat_seq: None,
            is_focused,
        }
    }

    /// Takes a heartbeat; true when it changed something that others see.
    pub(super) fn beat(&mut self, now: Instant, heartbeat: Heartbeat) -> bool {
        if self.heartbeat_seq.is_some_and(|last| heartbeat.seq <= last) {
            return false;
        }
        self.heartbeat_seq = Some(heartbeat.seq);
        let mut changed = self.heard(now) | self.focus(now, heartbeat.focused);
        if self.window.debug_sessions != heartbeat.debug_sessions {
            Arc::make_mut(&mut self.window).debug_sessions = heartbeat.debug_sessions;
            changed = true;
        }
        if let Some(folders) = heartbeat.folders.filter(|folders| *folders != self.window.folders) {
            Arc::make_mut(&mut self.window).folders = folders;
            changed = true;
        }
        if let Some(name) = heartbeat.name.filter(|name| *name != self.window.name) {
            Arc::make_mut(&mut self.window).name = name;
            changed = true;
        }
        changed
    }

    /// A sign of life; true when the window was suspect.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        self.last_heard = self.last_heard.max(now);
        let was_suspect = !self.window.responsive;
        if was_suspect {
            Arc::make_mut(&mut self.window).responsive = true;
        }
        was_suspect
    }

    /// Marks the window as suspect when it is due; true when that is new.
    pub(super) fn suspect(&mut self, now: Instant) -> bool {
        let becomes_suspect = self.window.responsive && now.duration_since(self.last_heard) >= SUSPECT;
        if becomes_suspect {
            Arc::make_mut(&mut self.window).responsive = false;
        }
        becomes_suspect
    }

    /// One more lease, and no focus that grew old while we did not look.
    pub(super) fn grace(&mut self, now: Instant) {
        self.last_heard = self.last_heard.max(now);
        if let Some(at) = &mut self.follow_at {
            *at = (*at).max(now + FOLLOW_FOCUS);
        }
    }

    /// When silence has its next consequence (R10).
    pub(super) fn silence_deadline(&self) -> Instant {
        self.last_heard + if self.window.responsive { SUSPECT } else { LEASE }
    }

    /// Whether a rule may make it live.
    pub(super) fn may_start(&self) -> bool {
        self.window.auto_start && !self.stopped
    }

    /// Orders windows for promotion (R6): answering ones, then the one focused last.
    pub(super) fn promotion_rank(&self) -> impl Ord + use<> {
        (self.window.responsive, self.is_focused, self.window.last_focus)
    }

    /// The window as published; a focused one is focused now.
    pub(super) fn published(&self, now: Instant) -> Arc<Window> {
        if !self.is_focused {
            return self.window.clone();
        }
        Arc::new(Window { last_focus: Some(now), ..(*self.window).clone() })
    }

    /// Sets where the window stands and returns what it must know.
    pub(super) fn stand(
        &mut self,
        term: Option<Term>,
        awaited: bool,
        live: Option<&WindowRef>,
        place: &Described,
    ) -> Notice {
        let (state, why) = if term.is_some() {
            (WindowState::Live, place.live_because.clone())
        } else if self.stopped {
            (WindowState::Off, "you stopped it".to_owned())
        } else if !self.window.auto_start {
            (WindowState::Off, "auto-start is off".to_owned())
        } else {
            (WindowState::Standby, place.standby_because.clone())
        };
        if self.window.state != state || self.window.why != why {
            let window = Arc::make_mut(&mut self.window);
            window.state = state;
            window.why.clone_from(&why);
        }
        Notice::State { state, term, live: live.cloned(), why, awaited }
    }

    /// True when the window got or lost the focus.
    fn focus(&mut self, now: Instant, is_focused: bool) -> bool {
        let changed = self.is_focused != is_focused;
        if changed {
            self.is_focused = is_focused;
            self.follow_at = is_focused.then(|| now + FOLLOW_FOCUS);
        }
        if changed || is_focused {
            Arc::make_mut(&mut self.window).last_focus = Some(now);
        }
        changed
    }
}

/// The live place in a few words for a tooltip.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) live_because: String,
    pub(super) standby_because: String,
}
