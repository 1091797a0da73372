//! CORE: who waits for what: which calls a stop or an end of a session answers.

use crate::breakpoints::SessionKey;

/// Names a wait; chosen by the call that waits.
pub(crate) type WaitId = u64;

/// A call that waits.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) id: WaitId,
    pub(crate) session: SessionKey,
    /// The session whose tree it is about.
    pub(crate) root: SessionKey,
    /// The first part of the compound that this is of; else the root itself.
    pub(crate) compound: SessionKey,
    /// The thread it resumed; a start has none.
    pub(crate) thread_id: Option<i64>,
    /// Whether it asked for a pause.
    pub(crate) pauses: bool,
}

/// All calls that wait.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    waits: Vec<Wait>,
}

impl Waits {
    /// One more.
    pub(crate) fn push(&mut self, wait: Wait) {
        self.waits.push(wait);
    }

    /// Forgets calls that gave up.
    pub(crate) fn retain(&mut self, is_alive: impl Fn(WaitId) -> bool) {
        self.waits.retain(|wait| is_alive(wait.id));
    }

    /// Whether a call waits on this thread.
    pub(crate) fn is_busy(&self, session: SessionKey, thread_id: i64) -> bool {
        self.waits.iter().any(|wait| wait.session == session && wait.thread_id == Some(thread_id))
    }

    /// Whether a call waits for a compound, or for what is none.
    pub(crate) fn is_waited_for(&self, compound: SessionKey) -> bool {
        self.waits.iter().any(|wait| wait.compound == compound)
    }

    /// Who waits for a session, waits for another one instead.
    pub(crate) fn hand_over(&mut self, from: SessionKey, to: SessionKey) {
        for wait in self.waits.iter_mut().filter(|wait| wait.session == from) {
            wait.session = to;
        }
    }

    /// Who waits for a session that is another one from now on, first or not in its compound, waits for that one.
    pub(crate) fn replace(&mut self, (old, next): (SessionKey, SessionKey), compound: SessionKey) {
        for wait in &mut self.waits {
            if wait.root == old || wait.session == old {
                (wait.session, wait.root, wait.thread_id) = (next, next, None);
                wait.compound = compound;
            } else if wait.compound == old {
                wait.compound = compound;
            }
        }
    }

    /// Takes the wait of this id.
    pub(crate) fn take(&mut self, id: WaitId) -> Option<Wait> {
        let at = self.waits.iter().position(|wait| wait.id == id)?;
        Some(self.waits.remove(at))
    }

    /// Takes all.
    pub(crate) fn take_all(&mut self) -> Vec<Wait> {
        std::mem::take(&mut self.waits)
    }

    /// Takes the waits that an end of `session` answers: those on it and, when it is a root, on its tree.
    pub(crate) fn take_ended(&mut self, session: SessionKey) -> Vec<Wait> {
        self.take_if(|wait| wait.session == session || wait.root == session)
    }

    /// Takes the waits on a thread.
    pub(crate) fn take_thread(&mut self, session: SessionKey, thread_id: i64) -> Vec<Wait> {
        self.take_if(|wait| wait.session == session && wait.thread_id == Some(thread_id))
    }

    /// Takes the waits that asked for a pause.
    pub(crate) fn take_pauses(&mut self, session: SessionKey) -> Vec<Wait> {
        self.take_if(|wait| wait.session == session && wait.pauses)
    }

    /// Takes the waits that a stop answers: those on the session (on the thread, when only that one stopped), else
    /// those on the compound: a child process that stops is news for whoever waits for its parent, and so is another
    /// part.
    pub(crate) fn take_stopped(
        &mut self,
        compound: SessionKey,
        session: SessionKey,
        thread_id: i64,
        all: bool,
    ) -> Vec<Wait> {
        let on_thread = |wait: &Wait| {
            wait.session == session && (all || wait.thread_id.is_none_or(|waits_on| waits_on == thread_id))
        };
        let on_session = |wait: &Wait| wait.session == session;
        let on_compound = |wait: &Wait| wait.compound == compound;
        if self.waits.iter().any(on_thread) {
            self.take_if(on_thread)
        } else if self.waits.iter().any(on_session) {
            self.take_if(on_session)
        } else {
            self.take_if(on_compound)
        }
    }

    fn take_if(&mut self, is_meant: impl Fn(&Wait) -> bool) -> Vec<Wait> {
        let (meant, others) = std::mem::take(&mut self.waits).into_iter().partition(is_meant);
        self.waits = others;
        meant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits `(id, session, root, thread)`.
    fn waits(of: &[(WaitId, SessionKey, SessionKey, Option<i64>)]) -> Waits {
        let wait = |&(id, session, root, thread_id)| Wait {
            id,
            session,
            root,
            compound: root,
            thread_id,
            pauses: false,
        };
        Waits { waits: of.iter().map(wait).collect() }
    }

    fn ids(waits: Vec<Wait>) -> Vec<WaitId> {
        waits.into_iter().map(|wait| wait.id).collect()
    }

    #[test]
    fn a_stop_of_one_thread_answers_its_wait_and_one_of_all_answers_all() {
        let mut all = waits(&[(1, 7, 7, Some(1)), (2, 7, 7, Some(2))]);
        assert_eq!(ids(all.take_stopped(7, 7, 2, false)), [2]);
        assert_eq!(ids(all.take_stopped(7, 7, 2, true)), [1]);
    }

    #[test]
    fn a_child_that_stops_answers_whoever_waits_for_its_parent() {
        let mut all = waits(&[(1, 7, 7, Some(1)), (2, 9, 9, Some(1))]);
        assert_eq!(ids(all.take_stopped(7, 8, 1, true)), [1]);
        assert_eq!(ids(all.take_stopped(7, 8, 1, true)), [] as [u64; 0]);
    }

    #[test]
    fn an_end_of_a_child_does_not_answer_for_its_parent() {
        let mut all = waits(&[(1, 7, 7, None), (2, 8, 7, Some(1))]);
        assert_eq!(ids(all.take_ended(8)), [2]);
        assert_eq!(ids(all.take_ended(7)), [1]);
    }

    #[test]
    fn a_call_that_gave_up_is_not_busy() {
        let mut all = waits(&[(1, 7, 7, Some(0))]);
        assert!(all.is_busy(7, 0) && !all.is_busy(7, 1));
        all.retain(|id| id != 1);
        assert!(!all.is_busy(7, 0));
    }

    #[test]
    fn who_waits_for_a_program_that_begins_again_waits_for_the_next_one() {
        let mut all = waits(&[(1, 8, 7, Some(1)), (2, 9, 9, None), (3, 6, 6, None)]);
        all.waits[1].compound = 7;
        all.replace((7, 10), 10);
        assert_eq!(ids(all.take_ended(7)), [] as [u64; 0]);
        assert_eq!(ids(all.take_stopped(10, 10, 5, true)), [1]);
        assert_eq!(ids(all.take_stopped(10, 11, 5, true)), [2], "of the same compound");
        assert_eq!(ids(all.take_stopped(6, 6, 5, true)), [3]);
    }
}
