//! CORE: our ids of frames and variables. They are never used twice, so that one of an earlier stop is known as such
//! and never reaches an adapter, whose own ids begin anew at every stop.

use std::collections::BTreeMap;

use crate::debug::breakpoints::SessionKey;

/// Ids of one kind.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    last: i64,
    alive: BTreeMap<i64, (SessionKey, i64)>,
}

/// What became of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// It means this id of this session's adapter.
    Alive(SessionKey, i64),
    /// It was given out at an earlier stop.
    Stale,
    /// It was never given out.
    Unknown,
}

impl Handles {
    /// A new id for one of an adapter's.
    pub(crate) fn add(&mut self, session: SessionKey, theirs: i64) -> i64 {
        self.last += 1;
        self.alive.insert(self.last, (session, theirs));
        self.last
    }

    /// What an id means.
    pub(crate) fn look_up(&self, id: i64) -> Lookup {
        match self.alive.get(&id) {
            Some(&(session, theirs)) => Lookup::Alive(session, theirs),
            None if (1..=self.last).contains(&id) => Lookup::Stale,
            None => Lookup::Unknown,
        }
    }

    /// The program of a session goes on: its ids are void.
    pub(crate) fn forget(&mut self, session: SessionKey) {
        self.alive.retain(|_, (owner, _)| *owner != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_dies_with_its_stop_and_never_comes_back() {
        let mut handles = Handles::default();
        assert_eq!((handles.add(1, 0), handles.add(2, 0)), (1, 2));
        assert_eq!(handles.look_up(1), Lookup::Alive(1, 0));
        handles.forget(1);
        assert_eq!(handles.look_up(1), Lookup::Stale);
        assert_eq!(handles.look_up(2), Lookup::Alive(2, 0));
        assert_eq!((handles.look_up(3), handles.look_up(0)), (Lookup::Unknown, Lookup::Unknown));
        assert_eq!(handles.add(1, 0), 3);
    }
}
