//! A state of the model: coordinators around the real `Election`, agents around the real `Fence`, a disk, calls in flight.
//!
//! What an agent does with a notice, and the order of registration, answer and event stream, follow
//! `window-agent/src/membership.rs` and `coordinator/election/src/keeper.rs`; everything that decides is called, not copied.

pub(crate) mod agent;
pub(crate) mod coordinator;
mod seen;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use baton_election::election::Input;
use baton_proto::ids::{Term, WindowId};

use self::agent::Window;
use self::coordinator::{Coordinator, Disk};
use crate::setup::{Plant, Setup};

/// A step of time; all bounds of the election are whole seconds, but the heartbeat's.
const TICK: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) ticks: u32,
    /// Milliseconds by the wall clock.
    clock: u64,
    pub(crate) disk: Disk,
    pub(crate) coordinators: Vec<Coordinator>,
    pub(crate) windows: Vec<Window>,
    /// The window that the user looks at.
    pub(crate) focused: Option<usize>,
    pub(crate) calls: Vec<Call>,
    /// Who ran a call of each term.
    ran: BTreeMap<Term, usize>,
    /// Who was granted each term.
    pub(crate) granted: BTreeMap<Term, usize>,
    /// The highest term under which the client was answered.
    answered: Term,
    pub(crate) n_faults: u8,
    pub(crate) n_wishes: u8,
    /// The first rule that was broken.
    pub(crate) violation: Option<&'static str>,
}

#[derive(Clone, Copy, Hash)]
pub(crate) struct Call {
    pub(crate) window: usize,
    incarnation: u64,
    term: Term,
    /// The highest term that the client knew when it called.
    after: Term,
}

pub(crate) fn id(window: usize) -> WindowId {
    format!("w{window}").parse().expect("a window id")
}

fn number_of(id: &WindowId) -> usize {
    id.as_str()[1..].parse().expect("an id of ours")
}

fn base() -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(|| Instant::now() + Duration::from_secs(3_600))
}

impl World {
    /// Nothing runs, nothing was ever written.
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            ticks: 0,
            clock: 1_000_000,
            disk: Disk::default(),
            coordinators: Vec::new(),
            windows: setup.auto_start.iter().map(|auto_start| Window::new(*auto_start)).collect(),
            focused: None,
            calls: Vec::new(),
            ran: BTreeMap::new(),
            granted: BTreeMap::new(),
            answered: Term::default(),
            n_faults: 0,
            n_wishes: 0,
            violation: None,
        }
    }

    /// The same for worlds that are the same as far as anything that comes depends on it.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn now(&self) -> Instant {
        base() + TICK * self.ticks
    }

    /// The coordinator that clients reach: the newest.
    pub(crate) fn serving(&self) -> Option<&Coordinator> {
        self.coordinators.last()
    }

    pub(crate) fn break_rule(&mut self, rule: &'static str) {
        self.violation = self.violation.or(Some(rule));
    }

    fn find(&mut self, number: u64) -> Option<usize> {
        self.coordinators.iter().position(|one| one.number == number)
    }

    /// A call of the client sets out for the live window.
    pub(crate) fn send_call(&mut self) {
        let now = self.now().into();
        let Some((live, term)) = self.serving().and_then(|one| one.election.roster(now, 0).live) else {
            return;
        };
        let window = number_of(&live);
        let incarnation = self.windows[window].incarnation;
        self.calls.push(Call { window, incarnation, term, after: self.answered });
    }

    /// The agent comes to the call.
    pub(crate) fn run_call(&mut self, setup: &Setup, call: usize) {
        let call = self.calls.remove(call);
        let now = self.now();
        let window = &mut self.windows[call.window];
        if !window.is_open || window.incarnation != call.incarnation {
            return;
        }
        if setup.plant == Plant::NoFence {
            window.fence.handle_acknowledgement(now);
        }
        if window.fence.admit(now, call.term).is_err() {
            return;
        }
        if self.ran.insert(call.term, call.window).is_some_and(|other| other != call.window) {
            self.break_rule("two windows ran calls of one term");
        }
        if call.term < call.after {
            self.break_rule("a client was answered under a lower term than before");
        }
        self.answered = self.answered.max(call.term);
    }

    /// Time passes: heartbeats, sweepers, and coordinators that find their lock gone.
    pub(crate) fn tick(&mut self, setup: &Setup) {
        self.ticks += 1;
        let now = self.now();
        for at in (0..self.coordinators.len()).rev() {
            if !self.coordinators[at].is_stalled && !self.coordinators[at].has_lock {
                self.end(at);
            }
        }
        for window in 0..self.windows.len() {
            self.beat(setup, window, now);
        }
        for at in 0..self.coordinators.len() {
            if self.coordinators[at].is_stalled {
                continue;
            }
            self.expire_streams(setup, at);
            let before = self.live_of(at);
            self.coordinators[at].election.handle_timeout(now.into());
            self.drive(setup, at, before, false);
        }
    }

    /// A command of the user.
    pub(crate) fn wish(&mut self, setup: &Setup, coordinator: usize, wish: Input) {
        match &wish {
            Input::Take(window) => {
                let wishes = &mut self.windows[number_of(window)].wishes;
                (wishes.was_taken, wishes.stopped) = (true, false);
            }
            Input::Stop(window) => self.windows[number_of(window)].wishes.stopped = true,
            Input::SetAutoStart(window, on) => self.windows[number_of(window)].wishes.auto_start = *on,
            _ => {}
        }
        self.input(setup, coordinator, wish);
    }

    pub(crate) fn live_of(&self, coordinator: usize) -> Option<(usize, Term)> {
        let roster = self.coordinators[coordinator].election.roster(self.now().into(), 0);
        roster.live.map(|(window, term)| (number_of(&window), term))
    }
}
