//! CORE: which calls of which term this agent may run, and when it must run none.

use std::time::{Duration, Instant};

use baton_proto::control::FENCE_MS;
use baton_proto::edge::{REFUSED_FENCED, REFUSED_STALE_TERM};
use baton_proto::ids::Term;

/// Terms as this agent knows them, and when the coordinator last acknowledged it.
///
/// **Invariant:** nothing that was over is ever admitted again: a term at or below `over` stays refused,
/// whatever late message repeats its grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fence {
    highest: Option<Term>,
    held: Option<Term>,
    /// What it held until a coordinator came that waits for others to say who was live: no call runs by it, and the next
    /// coordinator hears of it.
    claimed: Option<Term>,
    over: Option<Term>,
    /// Highest term of which the coordinator has spoken, or was told by us: a call may have come before its notice.
    told: Option<Term>,
    /// Highest generation of a coordinator that took this window.
    seen: Option<u64>,
    acknowledged_at: Option<Instant>,
}

/// What an agent tells the next coordinator of its terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Claim {
    /// See [`baton_proto::control::Register::highest_term`].
    pub highest: Option<Term>,
    /// See [`baton_proto::control::Register::held_term`].
    pub held: Option<Term>,
    /// See [`baton_proto::control::Register::fenced`].
    pub is_fenced: bool,
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
    /// The coordinator grants `term`. A repeated or late grant changes nothing, nor does one that no coordinator makes:
    /// above it no other would ever be taken.
    pub fn handle_grant(&mut self, term: Term) {
        self.handle_early_grant(term);
        self.told = self.told.max(Some(term).filter(|term| term.is_believable()));
    }

    /// The same, by a call or an answer to a heartbeat: it may have overtaken its notice and those before it.
    pub fn handle_early_grant(&mut self, term: Term) {
        if term.is_believable() && Some(term) > self.over && Some(term) >= self.highest {
            self.highest = Some(term);
            self.held = Some(term);
            self.claimed = None;
        }
    }

    /// A coordinator of this generation knows this window.
    pub fn handle_coordinator(&mut self, generation: u64) {
        let is_believable = Term { generation, seq: 0 }.is_believable();
        self.seen = self.seen.max(Some(generation).filter(|_| is_believable));
    }

    /// This window is not live: every term of which the coordinator has spoken is over, and so is every one of those
    /// before it. One that came early was granted later: its notice comes after this one. When it is `awaited`, it may be
    /// live yet: it claims what it held until it hears more.
    pub fn handle_revocation(&mut self, awaited: bool) {
        let before = self.seen.map(|generation| Term { generation, seq: 0 });
        self.end(self.told.max(before), awaited);
    }

    /// This window was not live when the coordinator answered a message: `known`, the highest term when that message
    /// was sent, is over with all before it. It ends a term that came early and whose notices went to a stream that
    /// broke.
    pub fn handle_late_revocation(&mut self, known: Option<Term>, awaited: bool) {
        self.end(known, awaited);
    }

    fn end(&mut self, last: Option<Term>, awaited: bool) {
        let claimed = self.held.or(self.claimed);
        self.over = self.over.max(last);
        self.held = self.held.filter(|held| Some(*held) > self.over);
        self.claimed = claimed.filter(|_| awaited && self.held.is_none());
    }

    /// This agent registers with what is returned; the answer speaks of all of it.
    pub fn handle_registration(&mut self, now: Instant) -> Claim {
        self.told = self.told.max(self.highest);
        self.claim(now)
    }

    /// The coordinator acknowledged a message that was sent at `sent_at`. The time of sending counts, not that
    /// of the answer: the coordinator's own lease started no earlier.
    pub fn handle_acknowledgement(&mut self, sent_at: Instant) {
        self.acknowledged_at = self.acknowledged_at.max(Some(sent_at));
    }

    /// Decides about a call of `term` at the moment it would run. A higher term than any seen is a grant that
    /// overtook its notice.
    pub fn admit(&mut self, now: Instant, term: Term) -> Result<(), Refusal> {
        if Some(term) <= self.over || Some(term) < self.highest || !term.is_believable() {
            return Err(Refusal::StaleTerm);
        }
        if self.is_fenced(now) {
            return Err(Refusal::Fenced);
        }
        self.handle_early_grant(term);
        Ok(())
    }

    /// True when the last acknowledgement is too old, or there never was one.
    pub fn is_fenced(&self, now: Instant) -> bool {
        const LIMIT: Duration = Duration::from_millis(FENCE_MS);
        self.acknowledged_at.is_none_or(|at| now.saturating_duration_since(at) >= LIMIT)
    }

    /// What to tell a coordinator at `now`, for it to know who was live.
    pub fn claim(&self, now: Instant) -> Claim {
        let seen = self.seen.map(|generation| Term { generation, seq: 0 });
        let held = self.held.or(self.claimed);
        // Of one that was awaited, others may still know better.
        let is_fenced = self.is_fenced(now) || (self.held.is_none() && self.claimed.is_some());
        Claim { highest: self.highest.max(seen), held, is_fenced }
    }

    /// Everything that decides about calls from `now` on; the last is for how many milliseconds more it is open.
    pub fn view(&self, now: Instant) -> (Claim, Option<Term>, Option<Term>, u128) {
        const LIMIT: Duration = Duration::from_millis(FENCE_MS);
        let open_until = self.acknowledged_at.map(|at| at + LIMIT);
        let open_for = open_until.map_or(0, |until| until.saturating_duration_since(now).as_millis());
        (self.claim(now), self.over, self.told, open_for)
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
        fence.handle_revocation(false);
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
    fn a_call_that_overtakes_two_notices_is_not_undone_by_the_first() {
        let (mut fence, now) = fence();
        fence.handle_grant(term(1, 1));
        // Taken by another window and taken back, and this agent has read of neither.
        assert_eq!(fence.admit(now, term(1, 3)), Ok(()));
        fence.handle_revocation(false);
        assert_eq!(fence.admit(now, term(1, 1)), Err(Refusal::StaleTerm));
        assert_eq!((fence.held(), fence.admit(now, term(1, 3))), (Some(term(1, 3)), Ok(())));
        fence.handle_grant(term(1, 3));
        assert_eq!(fence.admit(now, term(1, 3)), Ok(()));
        fence.handle_revocation(false);
        assert_eq!((fence.held(), fence.admit(now, term(1, 3))), (None, Err(Refusal::StaleTerm)));
        // The answer to a heartbeat overtakes notices as well.
        fence.handle_early_grant(term(1, 5));
        fence.handle_revocation(false);
        assert_eq!(fence.held(), Some(term(1, 5)));
    }

    #[test]
    fn a_new_coordinator_ends_what_came_early_from_the_one_before_it() {
        let (mut fence, now) = fence();
        assert_eq!(fence.admit(now, term(1, 3)), Ok(()));
        fence.handle_coordinator(2);
        fence.handle_revocation(false);
        assert_eq!((fence.held(), fence.admit(now, term(1, 3))), (None, Err(Refusal::StaleTerm)));
    }

    #[test]
    fn what_it_registers_with_is_what_the_answer_decides_about() {
        let (mut fence, now) = fence();
        assert_eq!(fence.admit(now, term(1, 3)), Ok(()));
        assert_eq!(fence.handle_registration(now).held, Some(term(1, 3)));
        fence.handle_revocation(false);
        assert_eq!((fence.held(), fence.admit(now, term(1, 3))), (None, Err(Refusal::StaleTerm)));
    }

    #[test]
    fn a_term_that_came_after_the_registration_is_ended_by_the_answer_to_a_later_heartbeat() {
        let (mut fence, now) = fence();
        fence.handle_registration(now);
        // Of a call that set out before the user took another window.
        assert_eq!(fence.admit(now, term(1, 2)), Ok(()));
        fence.handle_revocation(false);
        assert_eq!(fence.held(), Some(term(1, 2)), "the answer may be older than the term");
        let known = fence.highest();
        fence.handle_early_grant(term(1, 4));
        fence.handle_late_revocation(known, false);
        assert_eq!(fence.held(), Some(term(1, 4)), "the heartbeat was older than this one");
        fence.handle_late_revocation(fence.highest(), false);
        assert_eq!((fence.held(), fence.admit(now, term(1, 4))), (None, Err(Refusal::StaleTerm)));
    }

    #[test]
    fn while_the_place_is_kept_for_it_it_claims_what_it_held_and_runs_nothing() {
        let (mut fence, now) = fence();
        fence.handle_grant(term(1, 3));
        // A coordinator that lost its state, and one that comes before that has decided.
        for generation in [2, 3] {
            assert_eq!(fence.handle_registration(now).held, Some(term(1, 3)));
            fence.handle_coordinator(generation);
            fence.handle_revocation(true);
            fence.handle_late_revocation(fence.highest(), true);
            assert_eq!((fence.held(), fence.admit(now, term(1, 3))), (None, Err(Refusal::StaleTerm)));
            assert!(fence.claim(now).is_fenced, "others may know better");
        }
        let mut granted = fence.clone();
        granted.handle_grant(term(3, 1));
        assert_eq!(granted.claim(now).held, Some(term(3, 1)));
        granted.handle_revocation(true);
        assert_eq!(granted.claim(now).held, Some(term(3, 1)));
        fence.handle_revocation(false);
        assert_eq!(fence.claim(now).held, None, "another one was live");
        fence.handle_late_revocation(fence.highest(), true);
        assert_eq!(fence.claim(now).held, None, "an answer that is older than that");
    }

    #[test]
    fn a_term_beyond_belief_is_no_grant() {
        let (mut fence, now) = fence();
        fence.handle_grant(term(u64::MAX, 1));
        fence.handle_coordinator(u64::MAX);
        assert_eq!(fence.admit(now, term(1, u64::MAX)), Err(Refusal::StaleTerm));
        assert_eq!(fence.claim(now), Claim::default());
        assert_eq!(fence.admit(now, term(1, 1)), Ok(()));
    }

    #[test]
    fn it_tells_with_which_coordinator_it_was_and_whether_that_is_long_ago() {
        let (mut fence, now) = fence();
        assert_eq!(fence.claim(now).highest, None, "it was with none");
        fence.handle_coordinator(3);
        assert_eq!(fence.claim(now).highest, Some(term(3, 0)));
        fence.handle_grant(term(3, 1));
        let claim = Claim { highest: Some(term(3, 1)), held: Some(term(3, 1)), is_fenced: false };
        assert_eq!(fence.claim(now), claim);
        let later = now + Duration::from_secs(4);
        assert_eq!(fence.claim(later), Claim { is_fenced: true, ..claim });
    }

    #[test]
    fn without_any_acknowledgement_it_is_fenced() {
        let mut fence = Fence::default();
        assert_eq!(fence.admit(Instant::now(), term(1, 1)), Err(Refusal::Fenced));
        // Being fenced takes no grant.
        assert_eq!(fence.held(), None);
    }
}
