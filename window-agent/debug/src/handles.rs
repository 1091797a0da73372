//! CORE: our ids of frames and variables. They are never used twice, so that one of an earlier stop, of an earlier run
//! or of another window is known as such and never reaches an adapter, whose own ids begin anew at every stop.

use std::collections::BTreeMap;

use crate::breakpoints::SessionKey;
use crate::ids::Base;

/// Whose an id is: it is void when that thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) session: SessionKey,
    pub(crate) thread_id: i64,
}

/// Ids of one kind.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    base: Base,
    last: i64,
    alive: BTreeMap<i64, (Owner, i64)>,
    ours: BTreeMap<(SessionKey, i64), i64>,
}

/// What became of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// It means this id of this session's adapter.
    Alive(Owner, i64),
    /// It was given out at an earlier stop.
    Stale,
    /// Another window gave it out, or an earlier run of this one.
    OfAnotherRun,
    /// It was never given out.
    Unknown,
}

impl Handles {
    /// No ids yet; they count from there.
    pub(crate) fn from_base(base: Base) -> Self {
        Self { base, last: base.before_first(), ..Self::default() }
    }

    /// Our id for one of an adapter's: the one it has since it stopped, or else a new one.
    pub(crate) fn add(&mut self, owner: Owner, theirs: i64) -> i64 {
        if let Some(&id) = self.ours.get(&(owner.session, theirs)) {
            return id;
        }
        self.last += 1;
        self.alive.insert(self.last, (owner, theirs));
        self.ours.insert((owner.session, theirs), self.last);
        self.last
    }

    /// What an id means.
    pub(crate) fn look_up(&self, id: i64) -> Lookup {
        match self.alive.get(&id) {
            Some(&(owner, theirs)) => Lookup::Alive(owner, theirs),
            None if (self.base.before_first() + 1..=self.last).contains(&id) => Lookup::Stale,
            None if self.base.is_of_another(id) => Lookup::OfAnotherRun,
            None => Lookup::Unknown,
        }
    }

    /// The program of a session goes on, or one thread of it: its ids are void.
    pub(crate) fn forget(&mut self, session: SessionKey, thread_id: Option<i64>) {
        let is_void = |owner: &Owner| {
            owner.session == session && thread_id.is_none_or(|thread_id| owner.thread_id == thread_id)
        };
        let ours = &mut self.ours;
        self.alive.retain(|_, (owner, theirs)| {
            if is_void(owner) {
                ours.remove(&(owner.session, *theirs));
            }
            !is_void(owner)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_dies_with_its_stop_and_never_comes_back() {
        let owner = |session, thread_id| Owner { session, thread_id };
        let mut handles = Handles::default();
        assert_eq!((handles.add(owner(1, 5), 0), handles.add(owner(2, 5), 0)), (1, 2));
        assert_eq!(handles.look_up(1), Lookup::Alive(owner(1, 5), 0));
        assert_eq!(handles.add(owner(1, 5), 0), 1);
        handles.forget(1, None);
        assert_eq!(handles.look_up(1), Lookup::Stale);
        assert_eq!(handles.look_up(2), Lookup::Alive(owner(2, 5), 0));
        assert_eq!((handles.look_up(3), handles.look_up(0)), (Lookup::Unknown, Lookup::Unknown));
        assert_eq!(handles.add(owner(1, 5), 0), 3);
    }

    #[test]
    fn an_id_of_another_run_is_known_as_such() {
        let owner = Owner { session: 1, thread_id: 1 };
        let mut one = Handles::from_base(Base::of("000004d1"));
        let mut other = Handles::from_base(Base::of("a1b2c3d4"));
        let (mine, theirs) = (one.add(owner, 7), other.add(owner, 7));
        assert_eq!((mine, theirs), (1_234_001, 850_029_001));
        assert_eq!(one.look_up(mine), Lookup::Alive(owner, 7));
        assert_eq!((one.look_up(theirs), other.look_up(mine)), (Lookup::OfAnotherRun, Lookup::OfAnotherRun));
        // What nobody gives out is nobody's.
        for id in [-1, 0, 1, 999, mine + 1, 1_000_000_000, i64::MAX] {
            assert_eq!(one.look_up(id), Lookup::Unknown, "{id}");
        }
        // One run may give out more than lie between two bases.
        let all: Vec<i64> = (8..2_000).map(|theirs| one.add(owner, theirs)).collect();
        one.forget(1, None);
        assert!(all.iter().all(|id| one.look_up(*id) == Lookup::Stale));
    }

    #[test]
    fn one_thread_that_goes_on_takes_its_own_ids_alone() {
        let owner = |thread_id| Owner { session: 1, thread_id };
        let mut handles = Handles::default();
        let (one, two) = (handles.add(owner(1), 10), handles.add(owner(2), 20));
        handles.forget(1, Some(1));
        assert_eq!(handles.look_up(one), Lookup::Stale);
        assert_eq!(handles.look_up(two), Lookup::Alive(owner(2), 20));
    }
}
