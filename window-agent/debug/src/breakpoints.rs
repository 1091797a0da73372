//! CORE: the breakpoints of a window, by our ids, and what each session's adapter made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::breakpoints::place::{Place, place_of};
use crate::dap::body::NewBreakpoint;
use crate::ids::Base;
use crate::types::triggers::TriggerKind;
use crate::types::{Breakpoint, RemoveBreakpoint, SetBreakpoint};

use self::hits::{Wishes, normal_hits};
use self::triggers::{TriggerEntry, WantedTrigger};
use crate::adapter::HitStyle;

pub(crate) mod hits;
pub(crate) mod kept;
pub(crate) mod place;
pub(crate) mod triggers;

/// Names a session within the engine; never told outside.
pub(crate) type SessionKey = u64;

/// All breakpoints of a window.
#[derive(Debug, Default)]
pub(crate) struct Breakpoints {
    by_id: BTreeMap<i64, Entry>,
    triggers: BTreeMap<i64, TriggerEntry>,
    /// Whose programs no exception is to stop, not even where an adapter would choose so.
    without_exceptions: BTreeSet<Option<String>>,
    last_id: i64,
    /// An editor has one breakpoint at a place, for everybody; without one each client has its own.
    is_shared: bool,
}

#[derive(Debug)]
struct Entry {
    wish: SetBreakpoint,
    /// Whose it is; another's wish for the same place does not make it theirs.
    owner: Option<String>,
    bound: BTreeMap<SessionKey, Binding>,
    /// Why the last program that it did not stop was not stopped, as its end told.
    missed: Option<String>,
}

/// What an adapter made of a breakpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) verified: bool,
    /// Of a trigger: the file it is in.
    pub(crate) path: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) message: Option<String>,
    /// See [`Breakpoint::is_refused`].
    pub(crate) is_refused: bool,
}

impl Binding {
    /// Of one that cannot be had as it is.
    pub(crate) fn refused(why: String) -> Self {
        Self { message: Some(why), is_refused: true, ..Self::default() }
    }
}

/// Everything that a session is to begin with.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedAll {
    /// Breakpoints on lines, by file.
    pub(crate) lines: BTreeMap<PathBuf, Vec<Wanted>>,
    /// Without an entry for exceptions, the adapter's own choice counts.
    pub(crate) triggers: BTreeMap<TriggerKind, Vec<WantedTrigger>>,
}

impl Breakpoints {
    /// None yet; their ids count from there.
    pub(crate) fn from_base(base: Base, is_shared: bool) -> Self {
        Self { last_id: base.before_first(), is_shared, ..Self::default() }
    }

    /// Whether a breakpoint of this owner is to stop the programs of this client.
    pub(crate) fn concerns(&self, owner: &Option<String>, client: &str) -> bool {
        self.is_shared || owner.as_deref().is_none_or(|owner| owner == client)
    }

    /// Sets a breakpoint, or changes the owner's one at the same place; gives its id.
    pub(crate) fn set(&mut self, wish: SetBreakpoint) -> i64 {
        let is_shared = self.is_shared;
        let is_meant =
            |entry: &Entry| is_same_place(&entry.wish, &wish) && (is_shared || entry.owner == wish.owner);
        if let Some((&id, entry)) = self.by_id.iter_mut().find(|(_, entry)| is_meant(entry)) {
            if entry.wish != wish {
                // That it is not hit says something new.
                entry.missed = None;
            }
            entry.wish = wish;
            return id;
        }
        self.last_id += 1;
        let owner = wish.owner.clone();
        self.by_id.insert(self.last_id, Entry { wish, owner, bound: BTreeMap::new(), missed: None });
        self.last_id
    }

    /// What stands at the place of a client's wish, when it is another breakpoint, and somebody else's.
    pub(crate) fn others(&self, wish: &SetBreakpoint) -> Option<String> {
        let is_meant = |entry: &&Entry| self.is_shared && is_same_place(&entry.wish, wish);
        let entry = self.by_id.values().find(is_meant)?;
        let conditions = |wish: &SetBreakpoint| {
            [&wish.condition, &wish.hit_condition, &wish.log_message].map(Option::clone)
        };
        let is_other = conditions(&entry.wish) != conditions(wish);
        let owner = [&entry.owner, &entry.wish.owner].into_iter().find(|owner| **owner != wish.owner)?;
        (wish.owner.is_some() && is_other)
            .then(|| described(owner, conditions(&entry.wish).each_ref().map(Option::as_deref)))
    }

    /// Removes what is meant, and gives it.
    pub(crate) fn remove(&mut self, which: &RemoveBreakpoint) -> Vec<Breakpoint> {
        let ids: Vec<i64> = self
            .list()
            .into_iter()
            .filter(|breakpoint| match which {
                RemoveBreakpoint::Id(id) => breakpoint.id == *id,
                RemoveBreakpoint::Of(owner) => breakpoint.owner == *owner,
                RemoveBreakpoint::All => true,
                RemoveBreakpoint::Location { path, line, owner } => {
                    let is_there = breakpoint.path == *path
                        && (breakpoint.line == *line || breakpoint.actual_line == Some(*line));
                    let may = |client: &String| self.concerns(&breakpoint.owner, client);
                    is_there && owner.as_ref().is_none_or(may)
                }
            })
            .map(|breakpoint| breakpoint.id)
            .collect();
        ids.iter().filter_map(|id| Some(self.by_id.remove(id)?.to_breakpoint(*id))).collect()
    }

    /// Takes over that the editor has these elsewhere now; they keep their ids. Gives the files in which something
    /// changed.
    pub(crate) fn move_along(&mut self, moved: &BTreeMap<Place, Place>) -> BTreeSet<PathBuf> {
        let to = |entry: &Entry| moved.get(&place_of(&entry.wish));
        let ids: BTreeMap<i64, Place> =
            self.by_id.iter().filter_map(|(&id, entry)| Some((id, to(entry)?.clone()))).collect();
        let taken: BTreeSet<&Place> = ids.values().collect();
        self.by_id.retain(|id, entry| ids.contains_key(id) || !taken.contains(&place_of(&entry.wish)));
        let mut changed = BTreeSet::new();
        for (id, place) in &ids {
            let (Some(entry), Place::Line(path, line, column)) = (self.by_id.get_mut(id), place) else {
                continue;
            };
            changed.extend([entry.wish.path.clone(), path.clone()]);
            (entry.wish.path, entry.wish.line, entry.wish.column) = (path.clone(), *line, *column);
            // What adapters said was about the other line.
            entry.bound.clear();
        }
        changed
    }

    /// Takes over the breakpoints of an editor: those at the same place keep their ids, those that are gone go,
    /// unless the editor has not heard of them yet. Gives the files in which something changed.
    pub(crate) fn replace(
        &mut self,
        wishes: Vec<SetBreakpoint>,
        unheard: &BTreeSet<Place>,
    ) -> BTreeSet<PathBuf> {
        let before: BTreeMap<Place, SetBreakpoint> =
            self.by_id.values().map(|entry| (place_of(&entry.wish), entry.wish.clone())).collect();
        let mut changed = BTreeSet::new();
        let places: BTreeSet<Place> = wishes.iter().map(place_of).collect();
        self.by_id.retain(|_, entry| {
            let place = place_of(&entry.wish);
            let stays = places.contains(&place) || unheard.contains(&place);
            if !stays {
                changed.insert(entry.wish.path.clone());
            }
            stays
        });
        for mut wish in wishes {
            if let Some(old) = before.get(&place_of(&wish)) {
                // The editor has our hit condition in the adapters' form, and no first column.
                if old.hit_condition.as_deref().map(normal_hits)
                    == wish.hit_condition.as_deref().map(normal_hits)
                {
                    wish.hit_condition.clone_from(&old.hit_condition);
                }
                wish.column = old.column;
                wish.owner.clone_from(&old.owner);
                if *old == wish || unheard.contains(&place_of(&wish)) {
                    continue;
                }
                wish.owner = None;
            }
            changed.insert(wish.path.clone());
            self.set(wish);
        }
        changed
    }

    /// The breakpoint with this id.
    pub(crate) fn find(&self, id: i64) -> Option<Breakpoint> {
        Some(self.by_id.get(&id)?.to_breakpoint(id))
    }

    /// All, by id.
    pub(crate) fn list(&self) -> Vec<Breakpoint> {
        self.by_id.iter().map(|(&id, entry)| entry.to_breakpoint(id)).collect()
    }

    /// The files with breakpoints.
    pub(crate) fn paths(&self) -> BTreeSet<&Path> {
        self.by_id.values().map(|entry| entry.wish.path.as_path()).collect()
    }

    /// The breakpoints of a file as the adapter of this client's program wants them, with our ids.
    pub(crate) fn of_file(&self, path: &Path, client: &str) -> Vec<Wanted> {
        let is_meant = |entry: &Entry| entry.wish.path == path && self.concerns(&entry.owner, client);
        let in_file = self.by_id.iter().filter(|(_, entry)| is_meant(entry));
        in_file.map(|(&id, entry)| Wanted { id, wish: entry.wish.clone() }).collect()
    }

    /// Notes what an adapter made of a breakpoint; one that was removed meanwhile is nobody's.
    pub(crate) fn bind(&mut self, session: SessionKey, id: i64, binding: Binding) {
        if let Some(entry) = self.by_id.get_mut(&id) {
            entry.bound.insert(session, binding);
        } else if let Some(entry) = self.triggers.get_mut(&id) {
            entry.bound.insert(session, binding);
        }
    }

    /// Whether it is one on a line.
    pub(crate) fn is_on_line(&self, id: i64) -> bool {
        self.by_id.contains_key(&id)
    }

    /// A hit says more than the adapter's word: it is bound.
    pub(crate) fn note_hit(&mut self, session: SessionKey, id: i64) {
        let binding = match (self.by_id.get_mut(&id), self.triggers.get_mut(&id)) {
            (Some(entry), _) => entry.bound.entry(session).or_default(),
            (None, Some(entry)) => entry.bound.entry(session).or_default(),
            (None, None) => return,
        };
        if !binding.verified {
            binding.verified = true;
            binding.message = None;
        }
    }

    /// Notes what the end of a program tells about one that did not stop it; whether that was told before.
    pub(crate) fn note_missed(&mut self, id: i64, why: &str) -> bool {
        let Some(entry) = self.by_id.get_mut(&id) else { return false };
        entry.missed.replace(why.to_owned()).as_deref() == Some(why)
    }

    /// Forgets what an ended session knew.
    pub(crate) fn unbind(&mut self, session: SessionKey) {
        for entry in self.by_id.values_mut() {
            entry.bound.remove(&session);
        }
        self.triggers.retain(|_, entry| {
            entry.bound.remove(&session);
            entry.of_tree != Some(session)
        });
    }

    /// Everything a session of this tree is to begin with, for this client, but for the files that its adapter does
    /// not serve.
    pub(crate) fn wanted_by(
        &self,
        tree: SessionKey,
        client: &str,
        is_served: impl Fn(&Path) -> bool,
    ) -> WantedAll {
        let served = self.paths().into_iter().filter(|path| is_served(path));
        let lines = served.map(|path| (path.to_owned(), self.of_file(path, client)));
        let lines = lines.filter(|(_, wanted)| !wanted.is_empty()).collect();
        let triggers = TriggerKind::ALL.into_iter().filter_map(|kind| {
            let wanted = self.of_kind(kind, tree, client).wanted?;
            (!wanted.is_empty() || kind == TriggerKind::Exception).then_some((kind, wanted))
        });
        WantedAll { lines, triggers: triggers.collect() }
    }

    /// Those among `hit` that a stop of this client's program at this place means, when the adapter did not name them.
    pub(crate) fn at(&self, path: &str, line: i64, client: &str) -> Vec<i64> {
        let is_here = |breakpoint: &Breakpoint| {
            let bound_line = breakpoint.actual_line.unwrap_or(breakpoint.line);
            let is_there = breakpoint.path == Path::new(path) && i64::from(bound_line) == line;
            is_there && self.concerns(&breakpoint.owner, client)
        };
        self.list().into_iter().filter(is_here).map(|breakpoint| breakpoint.id).collect()
    }
}

impl Entry {
    fn to_breakpoint(&self, id: i64) -> Breakpoint {
        // With several sessions, the one that bound it speaks.
        let binding = self.bound.values().find(|binding| binding.verified).or(self.bound.values().next());
        let actual_line = binding.and_then(|binding| binding.line);
        let moved = actual_line.filter(|line| *line != self.wish.line);
        let message = match (binding, moved) {
            (None, _) => Some("not verified yet: no debug session has loaded it".to_owned()),
            (Some(Binding { verified: true, .. }), Some(line)) => {
                Some(format!("line {} has no code; it stops on line {line}", self.wish.line))
            }
            (Some(binding), _) => binding.message.clone(),
        };
        Breakpoint {
            id,
            verified: binding.is_some_and(|binding| binding.verified),
            path: self.wish.path.clone(),
            line: self.wish.line,
            column: self.wish.column,
            condition: self.wish.condition.clone(),
            hit_condition: self.wish.hit_condition.clone(),
            log_message: self.wish.log_message.clone(),
            message,
            actual_line,
            owner: self.owner.clone(),
            is_refused: binding.is_some_and(|binding| binding.is_refused),
        }
    }
}

fn is_same_place(one: &SetBreakpoint, other: &SetBreakpoint) -> bool {
    (&one.path, one.line, one.column) == (&other.path, other.line, other.column)
}

/// Whose breakpoint it is, and its condition, hit condition and log message.
fn described(owner: &Option<String>, wishes: [Option<&str>; 3]) -> String {
    let whose = if owner.is_none() { "the user's" } else { "another client's" };
    let names = ["condition", "hit condition", "log message"].iter().zip(wishes);
    let told: Vec<String> =
        names.filter_map(|(name, text)| text.map(|text| format!("{name} `{text}`"))).collect();
    match told.is_empty() {
        true => format!("{whose} breakpoint without a condition"),
        false => format!("{whose} breakpoint with {}", told.join(" and ")),
    }
}

/// What is to be known of a wish that took the place of somebody else's.
fn replaced(owner: &Option<String>, was: [Option<&str>; 3], is: [Option<&str>; 3]) -> Option<String> {
    (was != is).then(|| format!("replaced {}", described(owner, was)))
}

/// Both, as far as there are.
fn noted(replaced: &Option<String>, message: Option<String>) -> Option<String> {
    let notes: Vec<String> = replaced.iter().cloned().chain(message).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// A breakpoint on its way to an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Ours.
    pub(crate) id: i64,
    pub(crate) wish: SetBreakpoint,
}

impl Wanted {
    /// Text of an adapter about it, with the condition that was wished for instead of the one that it was given.
    pub(crate) fn with_own_condition(&self, text: &str) -> String {
        match &self.wish.condition {
            Some(own) => hits::with_own_condition(text, self.id, own, self.wish.hit_condition.as_deref()),
            None => text.to_owned(),
        }
    }

    /// As `SourceBreakpoint`, or why this adapter cannot have it.
    pub(crate) fn to_source_breakpoint(
        &self,
        capabilities: &Map<String, Value>,
        style: HitStyle,
    ) -> Result<NewBreakpoint, String> {
        let can = |name: &str| capabilities.get(name).and_then(Value::as_bool).unwrap_or(false);
        let SetBreakpoint { line, column, condition, hit_condition, log_message, .. } = &self.wish;
        let wishes = Wishes { condition, hit_condition, log_message };
        let told = wishes.for_adapter(self.id, can, style)?;
        Ok(NewBreakpoint {
            line: Some(*line),
            column: *column,
            condition: told.condition,
            log_message: told.log_message,
            hit_condition: told.hit_condition,
            ..NewBreakpoint::default()
        })
    }
}

/// A place, for a message that there is none.
pub(crate) fn location(path: &Path, line: u32) -> String {
    format!("on line {line} of {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(path: &str, line: u32) -> SetBreakpoint {
        SetBreakpoint { path: path.into(), line, ..SetBreakpoint::default() }
    }

    #[test]
    fn why_a_breakpoint_is_not_hit_is_new_once_it_is_another_one() {
        let mut breakpoints = Breakpoints::default();
        let id = breakpoints.set(wish("/a", 1));
        assert_eq!([(); 2].map(|()| breakpoints.note_missed(id, "not set")), [false, true]);
        breakpoints.set(wish("/a", 1));
        assert!(breakpoints.note_missed(id, "not set"));
        breakpoints.set(SetBreakpoint { hit_condition: Some("> 3".to_owned()), ..wish("/a", 1) });
        assert!(!breakpoints.note_missed(id, "not set"));
    }

    #[test]
    fn without_an_editor_each_client_has_its_own_breakpoints() {
        let mut breakpoints = Breakpoints::default();
        let of = |owner: &str, line: u32, condition: &str| SetBreakpoint {
            owner: Some(owner.to_owned()),
            condition: Some(condition.to_owned()),
            ..wish("/a", line)
        };
        let anns = breakpoints.set(of("ann", 1, "a"));
        let bobs = breakpoints.set(of("bob", 1, "b"));
        assert_ne!(anns, bobs);
        assert_eq!(breakpoints.find(anns).unwrap().condition.as_deref(), Some("a"), "it is not overwritten");
        assert_eq!(breakpoints.set(of("ann", 1, "c")), anns, "one's own is changed");
        let everybodys = breakpoints.set(wish("/a", 2));
        let ids = |client: &str| -> Vec<i64> {
            breakpoints.of_file(Path::new("/a"), client).iter().map(|wanted| wanted.id).collect()
        };
        assert_eq!((ids("ann"), ids("bob")), (vec![anns, everybodys], vec![bobs, everybodys]));
        assert_eq!(ids("cid"), [everybodys]);
        assert_eq!(breakpoints.at("/a", 1, "ann"), [anns]);
        let begins_with = breakpoints.wanted_by(1, "bob", |_| true).lines;
        assert_eq!(begins_with[Path::new("/a")].len(), 2);

        let there = |owner: &str| RemoveBreakpoint::Location {
            path: "/a".into(),
            line: 1,
            owner: Some(owner.to_owned()),
        };
        assert!(breakpoints.remove(&there("cid")).is_empty());
        assert_eq!(breakpoints.remove(&there("bob"))[0].id, bobs);
        assert_eq!(breakpoints.remove(&RemoveBreakpoint::Id(anns)).len(), 1, "an id names it");
    }

    #[test]
    fn what_somebody_else_set_is_not_overwritten() {
        let mut breakpoints = Breakpoints { is_shared: true, ..Breakpoints::default() };
        let of = |owner: Option<&str>, condition: Option<&str>| SetBreakpoint {
            owner: owner.map(str::to_owned),
            condition: condition.map(str::to_owned),
            ..wish("/a", 1)
        };
        let (ann, bob) = (Some("ann"), Some("bob"));
        breakpoints.replace(vec![of(None, Some("i > 3"))], &BTreeSet::new());
        assert_eq!(breakpoints.others(&of(ann, Some("i > 3"))), None, "it is the same one");
        let id = breakpoints.set(of(ann, Some("i > 3")));
        assert_eq!(
            breakpoints.others(&of(ann, None)).as_deref(),
            Some("the user's breakpoint with condition `i > 3`"),
            "it did not become the client's"
        );
        assert_eq!(breakpoints.others(&of(None, Some("i > 4"))), None, "the user may");
        breakpoints.replace(vec![of(None, None)], &BTreeSet::new());
        assert_eq!(
            breakpoints.others(&of(bob, Some("x"))).as_deref(),
            Some("the user's breakpoint without a condition")
        );
        assert_eq!(breakpoints.find(id).unwrap().owner, None);

        let elsewhere =
            |owner: Option<&str>, condition: Option<&str>| SetBreakpoint { line: 2, ..of(owner, condition) };
        breakpoints.set(elsewhere(ann, None));
        assert_eq!(breakpoints.others(&elsewhere(ann, Some("x"))), None, "one's own is changed");
        assert_eq!(
            breakpoints.others(&elsewhere(bob, Some("x"))).as_deref(),
            Some("another client's breakpoint without a condition")
        );
        let own = RemoveBreakpoint::Of(Some("ann".to_owned()));
        let removed: Vec<u32> = breakpoints.remove(&own).iter().map(|known| known.line).collect();
        assert_eq!(removed, [2]);
        let mut apart = Breakpoints::default();
        apart.set(of(ann, Some("a")));
        assert_eq!(apart.others(&of(bob, Some("b"))), None, "each has its own where there is no editor");
    }

    #[test]
    fn ids_are_stable_and_never_used_twice() {
        let mut breakpoints = Breakpoints::default();
        assert_eq!(breakpoints.set(wish("/a", 1)), 1);
        assert_eq!(breakpoints.set(wish("/a", 2)), 2);
        let again = SetBreakpoint { condition: Some("x".into()), ..wish("/a", 1) };
        assert_eq!(breakpoints.set(again), 1);
        assert_eq!(breakpoints.find(1).unwrap().condition.as_deref(), Some("x"));
        assert_eq!(breakpoints.remove(&RemoveBreakpoint::All).len(), 2);
        assert_eq!(breakpoints.set(wish("/a", 1)), 3);
    }

    #[test]
    fn a_moved_breakpoint_says_so_and_is_found_at_both_lines() {
        let mut breakpoints = Breakpoints::default();
        let id = breakpoints.set(wish("/a", 4));
        assert!(!breakpoints.find(id).unwrap().verified);
        breakpoints.bind(7, id, Binding { verified: true, line: Some(5), ..Binding::default() });
        let moved = breakpoints.find(id).unwrap();
        assert_eq!(moved.message.as_deref(), Some("line 4 has no code; it stops on line 5"));
        assert_eq!(breakpoints.at("/a", 5, ""), [id]);
        let there = RemoveBreakpoint::Location { path: "/a".into(), line: 5, owner: None };
        assert_eq!(breakpoints.remove(&there).len(), 1);
        assert!(breakpoints.remove(&there).is_empty());
    }

    #[test]
    fn an_ended_session_verifies_nothing() {
        let mut breakpoints = Breakpoints::default();
        let id = breakpoints.set(wish("/a", 4));
        breakpoints.bind(7, id, Binding { verified: true, line: Some(4), ..Binding::default() });
        breakpoints.unbind(7);
        assert!(!breakpoints.find(id).unwrap().verified);
    }

    #[test]
    fn an_editors_breakpoints_keep_our_ids_and_spare_what_it_has_not_heard_of() {
        let mut breakpoints = Breakpoints::default();
        let conditional =
            SetBreakpoint { hit_condition: Some("> 5".into()), column: Some(1), ..wish("/a", 1) };
        let kept = breakpoints.set(conditional.clone());
        breakpoints.set(wish("/a", 2));
        let unheard = breakpoints.set(wish("/b", 3));
        // The editor tells the hit condition in the adapters' form and the first column as none.
        let told = SetBreakpoint { hit_condition: Some(">5".into()), ..wish("/a", 1) };
        let changed = breakpoints
            .replace(vec![told.clone(), wish("/c", 4)], &BTreeSet::from([place_of(&wish("/b", 3))]));
        assert_eq!(changed, BTreeSet::from(["/a".into(), "/c".into()]));
        assert_eq!(breakpoints.list().iter().map(|known| known.id).collect::<Vec<_>>(), [kept, unheard, 4]);
        assert_eq!(breakpoints.find(kept).unwrap().hit_condition.as_deref(), Some("> 5"));

        // Once heard of, it goes when the editor does not have it.
        let changed = breakpoints.replace(vec![told, wish("/c", 4)], &BTreeSet::new());
        assert_eq!(changed, BTreeSet::from(["/b".into()]));
    }
}
