//! Agents of the model, around the real `Fence`; after `membership.rs` of the agent.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use baton_agent_base::fence::Fence;
use baton_election::election::Input;
use baton_proto::control::{DebugSession, Heartbeat, Notice, Register, Registered, WindowKind, WindowState};
use baton_proto::ids::Term;

use super::coordinator::Stream;
use super::{World, id};
use crate::setup::{Plant, Setup};

/// Three pings of a second each: a coordinator that is silent for so long is hung.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// A window and its agent.
#[derive(Clone)]
pub(crate) struct Window {
    pub(crate) is_open: bool,
    pub(crate) is_stalled: bool,
    pub(crate) auto_start: bool,
    pub(crate) incarnation: u64,
    pub(crate) fence: Fence,
    pub(crate) is_stopped: bool,
    /// Another has been live since.
    pub(crate) live_since: bool,
    pub(crate) wishes: Wishes,
    /// What it held when it registered.
    pub(crate) claimed: Option<Term>,
    seq: u64,
    pub(crate) link: Link,
    /// A registration that is delivered twice, the second time late.
    pub(super) late: Option<(u64, Register)>,
}

/// What the user wished of a window, whether its agent has heard of it or not.
#[derive(Clone, Copy, Hash)]
pub(crate) struct Wishes {
    /// Once, at any time.
    pub(crate) was_taken: bool,
    pub(crate) auto_start: bool,
    pub(crate) stopped: bool,
}

/// How an agent stands with its coordinator.
#[derive(Clone)]
pub(crate) enum Link {
    None,
    /// Its registration is answered; it has not read that yet.
    Asked {
        number: u64,
        sent_at: Instant,
        answer: Registered,
    },
    /// Its stream is open; the answer to its last heartbeat may be unread.
    Up {
        number: u64,
        answer: Option<(Sent, Registered)>,
    },
}

/// A heartbeat, as `membership::touch::Sent`.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(super) at: Instant,
    pub(super) known: Option<Term>,
}

impl Link {
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Asked { number, .. } | Self::Up { number, .. } => Some(*number),
        }
    }
}

impl Window {
    pub(super) fn new(auto_start: bool) -> Self {
        Self {
            is_open: false,
            is_stalled: false,
            auto_start,
            incarnation: 0,
            fence: Fence::default(),
            is_stopped: false,
            live_since: false,
            wishes: Wishes { was_taken: false, auto_start, stopped: false },
            claimed: None,
            seq: 0,
            link: Link::None,
            late: None,
        }
    }

    /// As `Membership::apply_state`.
    fn apply_state(&mut self, setup: &Setup, state: WindowState, term: Option<Term>, awaited: bool) {
        match (state, term) {
            (WindowState::Live, Some(term)) => self.fence.handle_grant(term),
            _ if setup.plant == Plant::NoRevocation => {}
            _ => self.fence.handle_revocation(awaited),
        }
        self.is_stopped = state == WindowState::Off && (self.is_stopped || self.auto_start);
        self.live_since &= self.is_stopped;
    }
}

fn sessions(setup: &Setup, window: usize) -> Vec<DebugSession> {
    let session = || DebugSession { id: String::new(), name: String::new(), by_user: false };
    if setup.debugs && window == 0 { vec![session()] } else { Vec::new() }
}

impl World {
    /// The agent of a window starts, for the first time or again.
    pub(crate) fn open(&mut self, window: usize) {
        let it = &mut self.windows[window];
        it.is_open = true;
        it.incarnation += 1;
        (it.fence, it.is_stopped, it.live_since, it.claimed) = (Fence::default(), false, false, None);
        (it.seq, it.link) = (0, Link::None);
    }

    /// Its process is gone; its stream ends with it.
    pub(crate) fn close(&mut self, setup: &Setup, window: usize) {
        let it = &mut self.windows[window];
        (it.is_open, it.is_stalled) = (false, false);
        self.break_link(setup, window);
    }

    /// The connection between a window and its coordinator breaks.
    pub(crate) fn break_link(&mut self, setup: &Setup, window: usize) {
        let link = std::mem::replace(&mut self.windows[window].link, Link::None);
        let incarnation = self.windows[window].incarnation;
        let Some(at) = link.number().and_then(|number| self.find(number)) else { return };
        if let Some(Stream::Open { incarnation: open, .. }) = self.coordinators[at].streams.get(&window)
            && *open == incarnation
        {
            self.coordinators[at].streams.remove(&window);
            self.input(setup, at, Input::EventsClosed(id(window), incarnation));
        }
    }

    fn registration(&mut self, setup: &Setup, window: usize) -> Register {
        let (now, is_focused) = (self.now(), self.focused == Some(window));
        let it = &mut self.windows[window];
        let mut claim = it.fence.handle_registration(now);
        it.claimed = claim.held;
        if setup.plant == Plant::NoClaims {
            (claim.highest, claim.held) = (None, None);
        }
        if setup.plant == Plant::NoDoubt {
            claim.highest = claim.held;
        }
        Register {
            protocol: 1,
            version: String::new(),
            name: String::new(),
            kind: WindowKind::Headless,
            folders: Vec::new(),
            trees: Vec::new(),
            auto_start: it.auto_start,
            pid: u32::try_from(window).unwrap_or(0),
            pid_start: it.incarnation,
            port: 4_000,
            socket: None,
            incarnation: it.incarnation,
            highest_term: claim.highest,
            held_term: claim.held,
            fenced: claim.held.is_some() && claim.is_fenced,
            stopped: it.is_stopped,
            live_since: it.live_since,
            debug_sessions: sessions(setup, window),
            focused_ms_ago: is_focused.then_some(0),
            client_epoch: 0,
            breakpoints_kept: None,
        }
    }

    /// An agent registers; with `twice` the same arrives once more, some time later.
    pub(crate) fn register(&mut self, setup: &Setup, window: usize, coordinator: usize, twice: bool) {
        let register = self.registration(setup, window);
        let number = self.coordinators[coordinator].number;
        if twice {
            self.windows[window].late = Some((number, register.clone()));
        }
        let sent_at = self.now();
        if self.deliver(setup, window, coordinator, register)
            && let Ok(answer) = self.coordinators[coordinator].election.registered(&id(window))
        {
            self.windows[window].link = Link::Asked { number, sent_at, answer };
        }
    }

    pub(crate) fn has_late(&self, window: usize) -> bool {
        let late = self.windows[window].late.as_ref();
        late.is_some_and(|(number, _)| self.coordinators.iter().any(|one| one.number == *number))
    }

    pub(crate) fn deliver_late(&mut self, setup: &Setup, window: usize) {
        let Some((number, register)) = self.windows[window].late.take() else { return };
        if let Some(at) = self.find(number) {
            self.deliver(setup, window, at, register);
        }
    }

    /// The agent reads the answer to its registration, and opens its stream.
    pub(crate) fn read_answer(&mut self, setup: &Setup, window: usize) {
        let it = &mut self.windows[window];
        let Link::Asked { number, sent_at, answer } = it.link.clone() else { return };
        it.link = Link::None;
        it.fence.handle_coordinator(answer.generation);
        it.apply_state(setup, answer.state, answer.term, answer.awaited);
        it.fence.handle_acknowledgement(sent_at);
        let incarnation = it.incarnation;
        let Some(at) = self.find(number) else { return };
        let notices = VecDeque::new();
        let before = self.coordinators[at].streams.insert(window, Stream::Open { incarnation, notices });
        if self.input(setup, at, Input::EventsOpened(id(window), incarnation)) {
            self.windows[window].link = Link::Up { number, answer: None };
        } else {
            self.coordinators[at].streams.remove(&window);
            self.coordinators[at].streams.extend(before.map(|stream| (window, stream)));
        }
    }

    /// The next notice, when there is one.
    pub(crate) fn next_notice(&self, window: usize) -> Option<&Notice> {
        let Link::Up { number, .. } = &self.windows[window].link else { return None };
        let coordinator = self.coordinators.iter().find(|one| one.number == *number)?;
        match coordinator.streams.get(&window)? {
            Stream::Open { incarnation, notices } if *incarnation == self.windows[window].incarnation => {
                notices.front()
            }
            _ => None,
        }
    }

    pub(crate) fn hear(&mut self, setup: &Setup, window: usize) {
        let number = self.windows[window].link.number();
        let Some(at) = number.and_then(|number| self.find(number)) else { return };
        let Some(Stream::Open { notices, .. }) = self.coordinators[at].streams.get_mut(&window) else {
            return;
        };
        let Some(notice) = notices.pop_front() else { return };
        match notice {
            Notice::State { state, term, awaited, live, .. } => {
                let it = &mut self.windows[window];
                it.apply_state(setup, state, term, awaited);
                it.live_since |= it.is_stopped && live.is_some();
            }
            Notice::Stop => {
                let it = &mut self.windows[window];
                (it.is_stopped, it.live_since) = (true, false);
            }
            Notice::AutoStart { auto_start } => self.windows[window].auto_start = auto_start,
            Notice::Restart | Notice::Superseded => self.close(setup, window),
            _ => {}
        }
    }

    /// The agent reads the answer to its heartbeat: as `Membership::on_acknowledged`.
    pub(crate) fn read_beat(&mut self, setup: &Setup, window: usize) {
        let it = &mut self.windows[window];
        let Link::Up { answer, .. } = &mut it.link else { return };
        let Some((sent, registered)) = answer.take() else { return };
        it.fence.handle_coordinator(registered.generation);
        it.fence.handle_acknowledgement(sent.at);
        match (registered.state, registered.term) {
            (WindowState::Live, Some(term)) => it.fence.handle_early_grant(term),
            _ if setup.plant == Plant::NoRevocation => {}
            _ => it.fence.handle_late_revocation(sent.known, registered.awaited),
        }
    }

    /// As `membership::touch::Beat`: one heartbeat at a time, and one that is not answered for too long is the last.
    pub(super) fn beat(&mut self, setup: &Setup, window: usize, now: Instant) {
        let is_focused = self.focused == Some(window);
        let it = &mut self.windows[window];
        let Link::Up { number, answer } = &it.link else { return };
        if it.is_stalled || !it.is_open {
            return;
        }
        let number = *number;
        match answer {
            Some((sent, _)) if now - sent.at >= SILENCE_LIMIT => return self.break_link(setup, window),
            Some(_) => return,
            None => {}
        }
        it.seq += 1;
        let sent = Sent { at: now, known: it.fence.highest() };
        let beat = Heartbeat {
            incarnation: it.incarnation,
            seq: it.seq,
            focused: is_focused,
            debug_sessions: sessions(setup, window),
            folders: None,
            name: None,
            tallies: Vec::new(),
            breakpoints: Vec::new(),
            more_breakpoints: 0,
        };
        let Some(at) = self.find(number).filter(|at| !self.coordinators[*at].is_stalled) else { return };
        if !self.input(setup, at, Input::Heartbeat(id(window), beat)) {
            self.break_link(setup, window);
        } else if let Ok(registered) = self.coordinators[at].election.registered(&id(window))
            && let Link::Up { answer, .. } = &mut self.windows[window].link
        {
            *answer = Some((sent, registered));
        }
    }
}
