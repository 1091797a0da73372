//! CORE: which calls of which term this agent may run, and when it must run none.

use std::time::{Duration, Instant};

use baton_proto::control::FENCE_MS;
use baton_proto::edge::{REFUSED_FENCED, REFUSED_STALE_TERM};
use baton_proto::ids::Term;

/// Terms as this agent knows them, and when the coordinator last acknowledged it.
///
/// **Invariant:** nothing that was over is ever admitted again: a term at or below `over` stays refused,
/// whatever late message repeats its grant.
#[derive(Debug, Default)]
pub struct Fence {
    highest: Option<Term>,
    held: Option<Term>,
    over: Option<Term>,
    acknowledged_at: Option<Instant>,
}

/// Why a call is refused, provably unrun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The call's term is over.
    StaleTerm,
    /// The agent lost touch with the coordinator.
    Fenced,
}

impl Refusal {
    /// Value of [`baton_proto::edge::REFUSED_HEADER`].
    pub fn header_value(self) -> &'static str {
        match self {
            Refusal::StaleTerm => REFUSED_STALE_TERM,
            Refusal::Fenced => REFUSED_FENCED,
        }
    }
}

impl Fence {
    /// The coordinator grants `term`. A repeated or late grant changes nothing.
    pub fn handle_grant(&mut self, term: Term) {
        if Some(term) > self.over && Some(term) >= self.highest {
            self.highest = Some(term);
            self.held = Some(term);
        }
    }

    /// This window is not live: every term seen so far is over.
    pub fn handle_revocation(&mut self) {
        self.held = None;
        self.over = self.over.max(self.highest);
    }

    /// The coordinator acknowledged a message that was sent at `sent_at`. The time of sending counts, not that
    /// of the answer: the coordinator's own lease started no earlier.
    pub fn handle_acknowledgement(&mut self, sent_at: Instant) {
        self.acknowledged_at = self.acknowledged_at.max(Some(sent_at));
    }

    /// Decides about a call of `term` at the moment it would run. A higher term than any seen is a grant that
    /// overtook its notice.
    pub fn admit(&mut self, now: Instant, term: Term) -> Result<(), Refusal> {
        if Some(term) <= self.over || Some(term) < self.highest {
            return Err(Refusal::StaleTerm);
        }
        if self.is_fenced(now) {
            return Err(Refusal::Fenced);
        }
        self.handle_grant(term);
        Ok(())
    }

    /// True when the last acknowledgement is too old, or there never was one.
    pub fn is_fenced(&self, now: Instant) -> bool {
        const LIMIT: Duration = Duration::from_millis(FENCE_MS);
        self.acknowledged_at.is_none_or(|at| now.saturating_duration_since(at) >= LIMIT)
    }

    /// The term this window holds, in its own eyes.
    pub fn held(&self) -> Option<Term> {
        self.held
    }

    /// The highest term this window has seen.
    pub fn highest(&self) -> Option<Term> {
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(generation: u64, seq: u64) -> Term {
        Term { generation, seq }
    }

    /// A fence that was acknowledged at the returned instant.
    fn fence() -> (Fence, Instant) {
        let now = Instant::now();
        let mut fence = Fence::default();
        fence.handle_acknowledgement(now);
        (fence, now)
    }

    #[test]
    fn a_lower_term_is_refused_and_a_higher_one_is_a_grant() {
        let (mut fence, now) = fence();
        fence.handle_grant(term(1, 3));
        assert_eq!(fence.admit(now, term(1, 3)), Ok(()));
        assert_eq!(fence.admit(now, term(1, 2)), Err(Refusal::StaleTerm));
        assert_eq!(fence.admit(now, term(2, 0)), Ok(()));
        assert_eq!(fence.held(), Some(term(2, 0)));
        assert_eq!(fence.admit(now, term(1, 3)), Err(Refusal::StaleTerm));
    }

    #[test]
    fn a_revoked_term_stays_over_whatever_comes_late() {
        let (mut fence, now) = fence();
        fence.handle_grant(term(1, 3));
        fence.handle_revocation();
        assert_eq!(fence.held(), None);
        fence.handle_grant(term(1, 3));
        assert_eq!(fence.held(), None);
        assert_eq!(fence.admit(now, term(1, 3)), Err(Refusal::StaleTerm));
        assert_eq!(fence.admit(now, term(1, 5)), Ok(()));
        assert_eq!(fence.highest(), Some(term(1, 5)));
    }

    #[test]
    fn it_fences_itself_four_seconds_after_the_last_acknowledged_heartbeat() {
        let (mut fence, now) = fence();
        fence.handle_grant(term(1, 1));
        let after = |ms| now + Duration::from_millis(ms);
        assert_eq!(fence.admit(after(3_999), term(1, 1)), Ok(()));
        assert_eq!(fence.admit(after(4_000), term(1, 1)), Err(Refusal::Fenced));
        // A late acknowledgement of an older heartbeat does not open it.
        fence.handle_acknowledgement(now);
        assert_eq!(fence.admit(after(4_000), term(1, 1)), Err(Refusal::Fenced));
        fence.handle_acknowledgement(after(4_000));
        assert_eq!(fence.admit(after(4_001), term(1, 1)), Ok(()));
    }

    #[test]
    fn without_any_acknowledgement_it_is_fenced() {
        let mut fence = Fence::default();
        assert_eq!(fence.admit(Instant::now(), term(1, 1)), Err(Refusal::Fenced));
        // Being fenced takes no grant.
        assert_eq!(fence.held(), None);
    }
}
