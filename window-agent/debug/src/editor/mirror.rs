//! CORE: which breakpoints the editor has and what it calls them, while changes of both sides are under way.
//!
//! The editor answers each change, and tells all its breakpoints after every change of its own or of ours. The two ways
//! overtake each other here: a list may be taken in long after it was made. So a breakpoint of ours is heard of once a
//! list has its id, not once it is answered; and one that is to go is gone once a list that could have it has not.
//! The editor moves breakpoints with the text around them; their ids go with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::breakpoints::place::Place;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// What the editor calls those of its last list.
    ids: BTreeMap<Place, String>,
    adding: BTreeMap<Place, Adding>,
    /// Ids that are to go, and whether a list has had them.
    removing: BTreeMap<String, bool>,
}

/// A breakpoint of ours that no list has had.
#[derive(Debug, Default)]
struct Adding {
    n_unanswered: u32,
    /// False once it was removed again.
    is_wanted: bool,
    /// Once it is answered.
    id: Option<String>,
    /// What lists had at its place before the answer.
    seen: BTreeSet<String>,
}

impl Mirror {
    /// A breakpoint of ours is told to the editor next; what is given back goes before it.
    #[must_use]
    pub(super) fn add(&mut self, place: Place) -> Vec<String> {
        let replaced = self.take(&place);
        let adding = self.adding.entry(place).or_default();
        adding.n_unanswered += 1;
        adding.is_wanted = true;
        replaced
    }

    /// The editor has added one of ours, or refused to (`None`); what is given back was replaced or removed meanwhile.
    #[must_use]
    pub(super) fn answered(&mut self, place: &Place, id: Option<String>) -> Vec<String> {
        let Some(adding) = self.adding.get_mut(place) else { return Vec::new() };
        adding.n_unanswered = adding.n_unanswered.saturating_sub(1);
        let is_last = adding.n_unanswered == 0;
        let is_current = is_last && adding.is_wanted;
        // When a list had it and the last has not, the user was quick; the engine follows with the next list.
        let is_heard = id.as_ref().is_some_and(|id| adding.seen.contains(id));
        // Or moved it already; then it is known with the next list which one it is.
        let is_elsewhere = |id: &String| self.ids.iter().any(|(at, known)| known == id && at != place);
        match id {
            Some(id) if is_current && (!is_heard || is_elsewhere(&id)) => {
                adding.id = Some(id);
                Vec::new()
            }
            id => {
                if is_last {
                    self.adding.remove(place);
                }
                id.filter(|_| !is_current).map(|id| self.removes(id, is_heard)).into_iter().collect()
            }
        }
    }

    /// Ours at these places were removed; what the editor is to remove.
    #[must_use]
    pub(super) fn remove(&mut self, places: impl Iterator<Item = Place>) -> Vec<String> {
        places.flat_map(|place| self.take(&place)).collect()
    }

    fn take(&mut self, place: &Place) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        if let Some(id) = self.ids.remove(place) {
            ids.push(self.removes(id, true));
        }
        if let Some(adding) = self.adding.get_mut(place) {
            adding.is_wanted = false;
            let unheard = adding.id.take();
            if adding.n_unanswered == 0 {
                self.adding.remove(place);
            }
            ids.extend(unheard.map(|id| self.removes(id, false)));
        }
        ids
    }

    fn removes(&mut self, id: String, was_listed: bool) -> String {
        self.removing.insert(id.clone(), was_listed);
        id
    }

    /// The editor's list: those of it that the engine is to have, and those among them that it has elsewhere now, by
    /// where they were.
    pub(super) fn list<T>(&mut self, all: Vec<(Place, String, T)>) -> (Vec<T>, BTreeMap<Place, Place>) {
        let mut before: BTreeMap<String, Place> =
            std::mem::take(&mut self.ids).into_iter().map(|(place, id)| (id, place)).collect();
        let mut moved = BTreeMap::new();
        let is_gone = |id: &String| all.iter().all(|(_, known, _)| known != id);
        self.adding.retain(|_, adding| {
            adding.id.as_ref().is_none_or(|id| !adding.seen.contains(id) || !is_gone(id))
        });
        let last: BTreeSet<&String> = all.iter().map(|(_, id, _)| id).collect();
        self.removing.retain(|id, was_listed| {
            let is_listed = last.contains(id);
            let is_gone = *was_listed && !is_listed;
            *was_listed |= is_listed;
            !is_gone
        });
        let mut kept = Vec::new();
        for (place, id, wish) in all {
            if self.removing.contains_key(&id) {
                continue;
            }
            let listed = before.remove(&id);
            let mut is_known = listed.is_some();
            if let Some(from) = self.moved(listed, &id, &place) {
                is_known = true;
                moved.insert(from, place.clone());
            }
            if let Some(adding) = self.adding.get_mut(&place) {
                adding.seen.insert(id.clone());
                if adding.id.as_ref() == Some(&id) {
                    self.adding.remove(&place);
                } else if !adding.is_wanted && !is_known {
                    // Its answer comes, and then it goes.
                    continue;
                }
            }
            self.ids.insert(place, id);
            kept.push(wish);
        }
        (kept, moved)
    }

    /// Where the editor had what is at `place` now, when that was elsewhere: at its place in the last list, or where it
    /// was added.
    fn moved(&mut self, listed: Option<Place>, id: &String, place: &Place) -> Option<Place> {
        let is_added = |adding: &Adding| adding.is_wanted && adding.id.as_ref() == Some(id);
        let added = self.adding.iter().find(|(at, adding)| *at != place && is_added(adding));
        let added = added.map(|(at, _)| at.clone());
        if let Some(from) = &added {
            self.adding.remove(from);
        }
        // Where a client sets one, that one stays.
        let is_set_at = |place: &Place| {
            self.adding.get(place).is_some_and(|adding| adding.is_wanted && !is_added(adding))
        };
        let from = added.or(listed).filter(|from| from != place)?;
        (!is_set_at(&from) && !is_set_at(place)).then_some(from)
    }

    /// Ours that the editor has not told of yet.
    pub(super) fn unheard(&self) -> BTreeSet<Place> {
        self.adding.iter().filter(|(_, adding)| adding.is_wanted).map(|(place, _)| place.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::breakpoints::Breakpoints;
    use crate::breakpoints::place::place_of;
    use crate::types::{RemoveBreakpoint, SetBreakpoint};

    #[derive(Clone, Debug)]
    enum Step {
        /// The client sets or removes one on this line.
        Set(u32),
        Remove(u32),
        /// The user does.
        UserSets(u32),
        UserRemoves(u32),
        /// With the text around it.
        Moves(u32, u32),
        /// The editor takes the next change; the next answer, or list, is taken in here.
        Change,
        Answer,
        List,
    }

    enum Change {
        Add(u32),
        Remove(Vec<String>),
    }

    /// Engine and editor, and everything that is on its way between them.
    #[derive(Default)]
    struct World {
        engine: Breakpoints,
        mirror: Mirror,
        changes: VecDeque<Change>,
        is_asked: bool,
        editor: Vec<(u32, String)>,
        n_added: u32,
        answers: VecDeque<Option<(u32, String)>>,
        lists: VecDeque<Vec<(u32, String)>>,
        /// What the client has set and nobody removed: our id, and the lines on which it may be.
        stable: BTreeMap<i64, BTreeSet<u32>>,
    }

    fn wish(line: u32) -> SetBreakpoint {
        SetBreakpoint { path: "/a".into(), line, ..SetBreakpoint::default() }
    }

    impl World {
        fn add_to_editor(&mut self, line: u32) -> String {
            self.n_added += 1;
            let id = self.n_added.to_string();
            self.editor.push((line, id.clone()));
            id
        }

        fn remove_in_editor(&mut self, ids: &[String]) {
            self.change(Change::Remove(ids.to_vec()));
        }

        fn change(&mut self, change: Change) {
            if !matches!(&change, Change::Remove(ids) if ids.is_empty()) {
                self.changes.push_back(change);
            }
        }

        /// Somebody else has to do with this line.
        fn unsettle(&mut self, line: u32) {
            self.stable.retain(|_, lines| !lines.contains(&line));
        }

        fn moves(&mut self, from: u32, to: u32) {
            let is_on = |line: u32| self.editor.iter().any(|(known, _)| *known == line);
            if !is_on(from) || is_on(to) {
                return;
            }
            self.editor.iter_mut().filter(|(line, _)| *line == from).for_each(|(line, _)| *line = to);
            self.lists.push_back(self.editor.clone());
            // One that meets another's is nobody's.
            let is_set = self.engine.list().iter().any(|known| known.line == to);
            if is_set || self.stable.values().any(|lines| lines.contains(&to)) {
                self.unsettle(from);
            }
            self.unsettle(to);
            for lines in self.stable.values_mut().filter(|lines| lines.contains(&from)) {
                lines.insert(to);
            }
        }

        fn step(&mut self, step: &Step) {
            match *step {
                Step::Set(line) => {
                    let replaced = self.mirror.add(place_of(&wish(line)));
                    self.remove_in_editor(&replaced);
                    self.change(Change::Add(line));
                    let id = self.engine.set(wish(line));
                    self.unsettle(line);
                    self.stable.insert(id, BTreeSet::from([line]));
                }
                Step::Remove(line) => {
                    let which = RemoveBreakpoint::Location { path: "/a".into(), line, owner: None };
                    let removed = self.engine.remove(&which);
                    let places: Vec<Place> = removed.iter().map(|_| place_of(&wish(line))).collect();
                    let ids = self.mirror.remove(places.into_iter());
                    self.remove_in_editor(&ids);
                    self.unsettle(line);
                }
                Step::UserSets(line) if self.editor.iter().all(|(known, _)| *known != line) => {
                    self.add_to_editor(line);
                    self.lists.push_back(self.editor.clone());
                    // Two people at one line: either may win.
                    self.unsettle(line);
                }
                Step::UserRemoves(line) if self.editor.iter().any(|(known, _)| *known == line) => {
                    self.editor.retain(|(known, _)| *known != line);
                    self.lists.push_back(self.editor.clone());
                    self.unsettle(line);
                }
                Step::Moves(from, to) => self.moves(from, to),
                Step::Change if !self.is_asked => match self.changes.pop_front() {
                    Some(Change::Add(line)) => {
                        let id = self.add_to_editor(line);
                        self.lists.push_back(self.editor.clone());
                        self.answers.push_back(Some((line, id)));
                        self.is_asked = true;
                    }
                    Some(Change::Remove(ids)) => {
                        self.editor.retain(|(_, known)| !ids.contains(known));
                        self.lists.push_back(self.editor.clone());
                        self.answers.push_back(None);
                        self.is_asked = true;
                    }
                    None => {}
                },
                Step::Answer => {
                    if let Some(answer) = self.answers.pop_front() {
                        self.is_asked = false;
                        if let Some((line, id)) = answer {
                            let ids = self.mirror.answered(&place_of(&wish(line)), Some(id));
                            self.remove_in_editor(&ids);
                        }
                    }
                }
                Step::List => {
                    if let Some(list) = self.lists.pop_front() {
                        let all = list.into_iter().map(|(line, id)| (place_of(&wish(line)), id, wish(line)));
                        let (kept, moved) = self.mirror.list(all.collect());
                        self.engine.move_along(&moved);
                        self.engine.replace(kept, &self.mirror.unheard());
                    }
                }
                Step::UserSets(_) | Step::UserRemoves(_) | Step::Change => {}
            }
        }

        fn is_quiet(&self) -> bool {
            self.changes.is_empty() && self.answers.is_empty() && self.lists.is_empty()
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        let line = 1_u32..4;
        prop_oneof![
            line.clone().prop_map(Step::Set),
            line.clone().prop_map(Step::Remove),
            line.clone().prop_map(Step::UserSets),
            line.clone().prop_map(Step::UserRemoves),
            (line.clone(), line).prop_map(|(from, to)| Step::Moves(from, to)),
            Just(Step::Change),
            Just(Step::Answer),
            Just(Step::List),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_096, ..ProptestConfig::default() })]
        /// Whatever overtakes what: with the next list both sides have the same, and what nobody removed kept its id.
        #[test]
        fn both_sides_agree_and_ids_stay(steps in prop::collection::vec(step(), 0..40)) {
            let mut world = World::default();
            for step in &steps {
                world.step(step);
                for (id, lines) in &world.stable {
                    let line = world.engine.find(*id).map(|known| known.line);
                    prop_assert!(line.is_some_and(|line| lines.contains(&line)), "{id}: {line:?} of {lines:?}");
                }
            }
            while !world.is_quiet() {
                for step in [Step::Change, Step::Answer, Step::List] {
                    world.step(&step);
                }
            }
            world.lists.push_back(world.editor.clone());
            world.step(&Step::List);
            // User and client may both have set one on a line at the same time.
            let ours: BTreeSet<u32> = world.engine.list().iter().map(|known| known.line).collect();
            let theirs: BTreeSet<u32> = world.editor.iter().map(|(line, _)| *line).collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
