//! What the windows' agents tell of the programs that they run, added up over all windows there were.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_election::roster::Roster;
use baton_proto::control::{ProgramKind, Tally};
use baton_proto::ids::WindowId;

/// Most names that are told apart; the rest are `other`.
const MAX_NAMES: usize = 128;

/// See the module; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    windows: BTreeMap<WindowId, Told>,
    sums: BTreeMap<(ProgramKind, String), Sum>,
}

/// What a window told last.
#[derive(Debug, Default)]
struct Told {
    incarnation: u64,
    seq: u64,
    tallies: Vec<Tally>,
}

/// The programs of one name in all windows, since this coordinator began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many were started.
    pub started: u64,
    /// How many of them ended though nobody asked for it.
    pub died: u64,
    /// How many run.
    pub running: u64,
}

impl Tallies {
    /// A window tells this with its heartbeat `seq`. What it had counted before this coordinator heard of it counts only
    /// if that was the first of its agent: otherwise it told another coordinator.
    pub fn hear(
        &self,
        roster: &Roster,
        window: WindowId,
        (incarnation, seq): (u64, u64),
        tallies: Vec<Tally>,
    ) {
        let mut inner = self.lock();
        let Inner { windows, sums } = &mut *inner;
        windows.retain(|known, _| roster.windows.contains_key(known));
        let told = windows.entry(window).or_default();
        let is_new = told.incarnation != incarnation;
        if !is_new && seq <= told.seq {
            return;
        }
        let before = if is_new { Vec::new() } else { std::mem::take(&mut told.tallies) };
        if !is_new || seq == 1 {
            for tally in &tallies {
                let mut key = (tally.kind, tally.name.clone());
                if !sums.contains_key(&key) && sums.len() >= MAX_NAMES {
                    "other".clone_into(&mut key.1);
                }
                let known =
                    before.iter().find(|known| (known.kind, &known.name) == (tally.kind, &tally.name));
                let (started, died) = known.map_or((0, 0), |known| (known.started, known.died));
                let sum = sums.entry(key).or_default();
                sum.started += tally.started.saturating_sub(started);
                sum.died += tally.died.saturating_sub(died);
            }
        }
        *told = Told { incarnation, seq, tallies };
    }

    /// All that is known; what runs, runs in the windows that are there.
    pub fn sums(&self, roster: &Roster) -> BTreeMap<(ProgramKind, String), Sum> {
        let inner = self.lock();
        let mut sums = inner.sums.clone();
        let there = inner.windows.iter().filter(|(window, told)| {
            roster.windows.get(*window).is_some_and(|known| known.incarnation == told.incarnation)
        });
        for tally in there.flat_map(|(_, told)| &told.tallies) {
            let own = (tally.kind, tally.name.clone());
            let key = if inner.sums.contains_key(&own) || inner.sums.len() < MAX_NAMES {
                own
            } else {
                (tally.kind, "other".to_owned())
            };
            sums.entry(key).or_default().running += tally.running;
        }
        sums
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use baton_election::election::{Election, Input, Start};
    use baton_proto::control::{Register, Settings};
    use baton_proto::ids::InstanceId;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;

    fn roster(windows: &[(&str, u64)]) -> Roster {
        let now = Instant::now();
        let start = Start {
            instance: InstanceId("i".to_owned()),
            generation: 1,
            known: 1,
            is_trusted: true,
            settings: Settings::default(),
            previous: None,
            previous_is_dead: false,
            vacated: None,
        };
        let mut election = Election::new(now, start);
        for (window, incarnation) in windows {
            let register: Register = serde_json::from_value(json!({
                "protocol": 1, "version": "0.1.0", "name": window, "kind": "headless", "folders": ["/src"],
                "auto_start": true, "pid": 10, "port": 4000, "incarnation": incarnation,
            }))
            .unwrap();
            election.handle(now, Input::Register(id(window), Box::new(register))).unwrap();
        }
        election.roster(now, 0)
    }

    fn id(text: &str) -> WindowId {
        WindowId::try_from(text.to_owned()).unwrap()
    }

    fn gopls(started: u64, died: u64, running: u64) -> Vec<Tally> {
        vec![Tally { kind: ProgramKind::Server, name: "gopls".to_owned(), started, died, running }]
    }

    #[test]
    fn what_grew_is_added_whoever_told_it_and_whatever_came_late() {
        let tallies = Tallies::default();
        let both = roster(&[("a", 1), ("b", 7)]);
        let sum = |roster: &Roster| tallies.sums(roster).into_values().next().unwrap_or_default();
        tallies.hear(&both, id("a"), (1, 1), gopls(1, 0, 1));
        tallies.hear(&both, id("a"), (1, 3), gopls(3, 1, 2));
        tallies.hear(&both, id("a"), (1, 2), gopls(2, 1, 1));
        assert_eq!(sum(&both), Sum { started: 3, died: 1, running: 2 });
        // This agent told another coordinator of its first five.
        tallies.hear(&both, id("b"), (7, 40), gopls(5, 5, 0));
        tallies.hear(&both, id("b"), (7, 41), gopls(6, 5, 1));
        assert_eq!(sum(&both), Sum { started: 4, died: 1, running: 3 });
        // The next agent of a window counts from its own beginning.
        let again = roster(&[("a", 2)]);
        tallies.hear(&again, id("a"), (2, 1), gopls(1, 0, 1));
        assert_eq!(sum(&again), Sum { started: 5, died: 1, running: 1 });
        assert_eq!(sum(&roster(&[])), Sum { started: 5, died: 1, running: 0 });
    }

    #[test]
    fn names_are_bounded() {
        let tallies = Tallies::default();
        let there = roster(&[("a", 1)]);
        for number in 0..3 * MAX_NAMES as u64 {
            let name = format!("server-{number}");
            let tally = Tally { name, ..gopls(1, 0, 1).remove(0) };
            tallies.hear(&there, id("a"), (1, number + 1), vec![tally]);
        }
        let sums = tallies.sums(&there);
        assert_eq!(sums.len(), MAX_NAMES + 1);
        assert_eq!(sums.values().map(|sum| sum.started).sum::<u64>(), 3 * MAX_NAMES as u64);
    }
}
