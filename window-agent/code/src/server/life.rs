//! CORE: the life of one language server on given time: started on demand, restarted with back-off, stopped when
//! idle.

use std::time::{Duration, Instant};

/// What a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory in megabytes, unless its entry in the table says otherwise.
    pub memory_mb: u64,
    /// Longest start; what takes longer hangs.
    pub start: Duration,
    /// One that nobody asked for so long is stopped.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_mb: 4096, start: Duration::from_secs(60), idle: Duration::from_secs(10 * 60) }
    }
}

/// After so long without a crash the earlier ones are forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(120);
/// Pauses before the first, second, ... restart; the last one repeats.
const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Somebody asks for the server.
    Wanted,
    /// It answered `initialize`.
    Initialized,
    /// Its process, or the connection to it, ended.
    Exited,
    /// So much changed that it is better started anew.
    Outdated,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Start the process.
    Spawn,
    /// Kill it: it does not come up.
    Kill,
    /// Ask it to end: nobody uses it, or it is to be started anew by the next call.
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Down,
    Starting { since: Instant },
    Ready { since: Instant },
    Pausing { until: Instant },
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Life {
    phase: Phase,
    n_crashes: usize,
    last_wanted: Option<Instant>,
    output: Option<Output>,
    limits: Limits,
}

impl Default for Life {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Life {
    /// The life of a server that has not been asked for.
    pub fn new(limits: Limits) -> Self {
        Self { phase: Phase::Down, n_crashes: 0, last_wanted: None, output: None, limits }
    }

    /// From now on it may take so much.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match (input, self.phase) {
            (Input::Wanted, phase) => {
                self.last_wanted = Some(now);
                if phase == Phase::Down {
                    self.spawn(now);
                }
            }
            (Input::Initialized, Phase::Starting { .. }) => self.phase = Phase::Ready { since: now },
            (Input::Initialized, _) => {}
            (Input::Outdated, Phase::Ready { .. }) => self.stop(),
            (Input::Outdated, _) => {}
            (Input::Exited, Phase::Down | Phase::Pausing { .. }) => {}
            (Input::Exited, phase) => {
                if matches!(phase, Phase::Ready { since } if now.duration_since(since) >= FORGET_AFTER) {
                    self.n_crashes = 0;
                }
                let pause = PAUSES[self.n_crashes.min(PAUSES.len() - 1)];
                self.n_crashes += 1;
                self.phase = Phase::Pausing { until: now + pause };
            }
        }
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Starting { since } if now >= since + self.limits.start => {
                self.output = Some(Output::Kill);
                self.handle(now, Input::Exited);
            }
            Phase::Pausing { until } if now >= until => {
                // A restart that nobody waits for is left to the next call.
                let is_wanted = self.last_wanted.is_some_and(|wanted| now < wanted + self.limits.idle);
                if is_wanted { self.spawn(now) } else { self.phase = Phase::Down }
            }
            Phase::Ready { .. } if self.idle_at().is_some_and(|idle| now >= idle) => self.stop(),
            _ => {}
        }
    }

    /// When [`Life::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Down => None,
            Phase::Starting { since } => Some(since + self.limits.start),
            Phase::Ready { .. } => self.idle_at(),
            Phase::Pausing { until } => Some(until),
        }
    }

    /// What is to be done now.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.output.take()
    }

    /// Whether it answers.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready { .. })
    }

    /// Crashes one after the other.
    pub fn n_crashes(&self) -> usize {
        self.n_crashes
    }

    /// When it starts again, after a crash.
    pub fn pausing_until(&self) -> Option<Instant> {
        match self.phase {
            Phase::Pausing { until } => Some(until),
            _ => None,
        }
    }

    fn spawn(&mut self, now: Instant) {
        self.phase = Phase::Starting { since: now };
        self.output = Some(Output::Spawn);
    }

    fn stop(&mut self) {
        self.phase = Phase::Down;
        self.n_crashes = 0;
        self.output = Some(Output::Stop);
    }

    fn idle_at(&self) -> Option<Instant> {
        self.last_wanted.map(|wanted| wanted + self.limits.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const START_LIMIT: Duration = Duration::from_secs(60);
    const IDLE_LIMIT: Duration = Duration::from_secs(600);

    #[test]
    fn a_limit_that_changes_counts_at_once() {
        let (mut life, start) = (Life::default(), Instant::now());
        life.handle(start, Input::Wanted);
        assert_eq!(life.poll_timeout(), Some(start + START_LIMIT));
        life.limit(Limits { start: 5 * SECOND, idle: 2 * SECOND, ..Limits::default() });
        assert_eq!(life.poll_timeout(), Some(start + 5 * SECOND));
        life.handle(start + SECOND, Input::Initialized);
        assert_eq!(life.poll_timeout(), Some(start + 2 * SECOND));
    }

    #[test]
    fn it_starts_on_demand_and_stops_when_idle() {
        let (mut life, start) = (Life::default(), Instant::now());
        assert_eq!(life.poll_timeout(), None);
        life.handle(start, Input::Wanted);
        assert_eq!(life.poll_output(), Some(Output::Spawn));
        life.handle(start, Input::Wanted);
        assert_eq!(life.poll_output(), None, "one start is enough");
        life.handle(start + SECOND, Input::Initialized);
        assert!(life.is_ready());
        life.handle(start + 9 * SECOND, Input::Wanted);
        life.handle_timeout(start + IDLE_LIMIT);
        assert_eq!(life.poll_output(), None, "it was used since");
        assert_eq!(life.poll_timeout(), Some(start + 9 * SECOND + IDLE_LIMIT));
        life.handle_timeout(start + 9 * SECOND + IDLE_LIMIT);
        assert_eq!(life.poll_output(), Some(Output::Stop));
        life.handle(start + 2 * IDLE_LIMIT, Input::Exited);
        life.handle(start + 2 * IDLE_LIMIT, Input::Wanted);
        assert_eq!(life.poll_output(), Some(Output::Spawn), "the end it was told to make is no crash");
    }

    #[test]
    fn what_is_outdated_is_stopped_and_starts_with_the_next_call() {
        let (mut life, now) = (Life::default(), Instant::now());
        life.handle(now, Input::Outdated);
        assert_eq!(life.poll_output(), None, "it does not run");
        life.handle(now, Input::Wanted);
        life.poll_output();
        life.handle(now, Input::Initialized);
        life.handle(now, Input::Outdated);
        assert_eq!(life.poll_output(), Some(Output::Stop));
        life.handle(now, Input::Wanted);
        assert_eq!(life.poll_output(), Some(Output::Spawn));
    }

    #[test]
    fn it_comes_back_ever_more_slowly() {
        let (mut life, mut now) = (Life::default(), Instant::now());
        life.handle(now, Input::Wanted);
        assert_eq!(life.poll_output(), Some(Output::Spawn));
        for pause in [PAUSES[0], PAUSES[1], PAUSES[2], PAUSES[3], PAUSES[4], PAUSES[4]] {
            life.handle(now, Input::Exited);
            assert_eq!(life.poll_timeout(), Some(now + pause));
            life.handle(now, Input::Wanted);
            assert_eq!(life.poll_output(), None, "not before its time");
            now += pause;
            life.handle_timeout(now);
            assert_eq!(life.poll_output(), Some(Output::Spawn));
        }
        life.handle(now, Input::Initialized);
        now += FORGET_AFTER;
        life.handle(now, Input::Exited);
        assert_eq!(life.poll_timeout(), Some(now), "long up: at once");
    }

    #[test]
    fn a_start_that_hangs_is_ended() {
        let (mut life, start) = (Life::default(), Instant::now());
        life.handle(start, Input::Wanted);
        life.poll_output();
        life.handle_timeout(start + START_LIMIT);
        assert_eq!(life.poll_output(), Some(Output::Kill));
        assert!(life.pausing_until().is_some());
    }
}
