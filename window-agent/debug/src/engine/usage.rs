//! CORE: when a session counts as used by nobody.

use std::time::{Duration, Instant};

/// When verbs were about a session, and how long there may be none. Each question takes what the user set as a limit for
/// all sessions, if anything; otherwise the session's own counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    own: Option<Duration>,
    last: Instant,
    has_run_out: bool,
}

impl Usage {
    /// Used now; without a limit it may be forgotten for ever.
    pub(crate) fn new(own: Option<Duration>, now: Instant) -> Self {
        Self { own, last: now, has_run_out: false }
    }

    /// A verb is about it.
    pub(crate) fn note(&mut self, now: Instant) {
        self.last = now;
    }

    /// The same limit for another start of it.
    pub(crate) fn again(&self, now: Instant) -> Self {
        Self::new(self.own, now)
    }

    /// When it is to be looked at.
    pub(crate) fn ends_at(&self, set: Option<Duration>) -> Option<Instant> {
        let limit = set.or(self.own).filter(|_| !self.has_run_out)?;
        self.last.checked_add(limit)
    }

    /// How long nobody used it, when that is too long; told once. A call that waits is a use.
    pub(crate) fn run_out(
        &mut self,
        set: Option<Duration>,
        now: Instant,
        is_waited_for: bool,
    ) -> Option<Duration> {
        if self.ends_at(set)? > now {
            return None;
        }
        if is_waited_for {
            self.note(now);
            return None;
        }
        self.has_run_out = true;
        set.or(self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(600);

    /// A verb, a call that begins to wait or ends, or nothing but time.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Step {
        Verb,
        WaitBegins,
        WaitEnds,
        Minutes(u64),
    }

    /// Seconds after the start at which it ran out, looked at whenever it is due.
    fn run(steps: &[Step]) -> Option<u64> {
        let start = Instant::now();
        let (mut usage, mut now, mut is_waited_for) = (Usage::new(Some(LIMIT), start), start, false);
        for step in steps {
            match step {
                Step::Verb => usage.note(now),
                Step::WaitBegins | Step::WaitEnds => {
                    usage.note(now);
                    is_waited_for = *step == Step::WaitBegins;
                }
                Step::Minutes(minutes) => {
                    let until = now + Duration::from_secs(minutes * 60);
                    while let Some(due) = usage.ends_at(None).filter(|due| *due <= until) {
                        if usage.run_out(None, due, is_waited_for).is_some() {
                            return Some((due - start).as_secs());
                        }
                    }
                    now = until;
                }
            }
        }
        None
    }

    #[test]
    fn ten_minutes_without_a_verb_are_too_many() {
        use Step::{Minutes, Verb, WaitBegins, WaitEnds};
        assert_eq!(run(&[Minutes(9), Verb, Minutes(9), Verb, Minutes(9)]), None);
        assert_eq!(run(&[Minutes(60)]), Some(600));
        assert_eq!(run(&[Minutes(9), Verb, Minutes(60)]), Some(9 * 60 + 600));
        // A call that waits for an hour uses it for an hour.
        assert_eq!(run(&[WaitBegins, Minutes(60), WaitEnds, Minutes(9)]), None);
        assert_eq!(run(&[WaitBegins, Minutes(60), WaitEnds, Minutes(10)]), Some(70 * 60));
    }

    #[test]
    fn without_a_limit_nothing_runs_out_and_a_limit_runs_out_once() {
        let now = Instant::now();
        assert_eq!(Usage::new(None, now).ends_at(None), None);
        assert_eq!(Usage::new(None, now).run_out(None, now + 100 * LIMIT, false), None);
        let mut usage = Usage::new(Some(LIMIT), now);
        assert_eq!(usage.run_out(None, now + LIMIT, false), Some(LIMIT));
        assert_eq!(usage.run_out(None, now + LIMIT, false), None);
        assert_eq!(usage.ends_at(None), None);
    }

    #[test]
    fn what_the_user_sets_counts_instead_as_long_as_it_is_set() {
        let now = Instant::now();
        let (less, more) = (Some(LIMIT / 2), Some(2 * LIMIT));
        let mut usage = Usage::new(Some(LIMIT), now);
        assert_eq!(
            (usage.ends_at(less), usage.ends_at(more)),
            (Some(now + LIMIT / 2), Some(now + 2 * LIMIT))
        );
        assert_eq!(usage.run_out(more, now + LIMIT, false), None);
        assert_eq!(usage.run_out(less, now + LIMIT, false), less);
        assert_eq!(usage.ends_at(more), None, "it has run out");
    }

    #[test]
    fn another_start_has_the_same_limit_from_then_on() {
        let now = Instant::now();
        let later = now + Duration::from_secs(300);
        assert_eq!(Usage::new(Some(LIMIT), now).again(later).ends_at(None), Some(later + LIMIT));
    }
}
