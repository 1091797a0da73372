//! What the windows' agents tell of what they hold: where breakpoints stand, and which programs run. What became of
//! the programs is added up over all windows there were.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_election::roster::Roster;
use baton_proto::control::{Heartbeat, ProgramKind, Tally};
use baton_proto::ids::WindowId;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// Most names that are told apart; the rest are `other`.
const MAX_NAMES: usize = 128;

/// See the module; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    inner: Arc<Mutex<Inner>>,
    /// Tells when anything changed.
    changes: Arc<watch::Sender<()>>,
}

#[derive(Debug, Default)]
struct Inner {
    windows: BTreeMap<WindowId, Holds>,
    sums: BTreeMap<(ProgramKind, String), Sum>,
}

/// What a window told last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    incarnation: u64,
    seq: u64,
    tallies: Vec<Tally>,
    breakpoints: (Vec<String>, u32),
}

impl Holds {
    /// Out of a heartbeat, which needs it no longer.
    pub fn take(heartbeat: &mut Heartbeat) -> Self {
        Self {
            incarnation: heartbeat.incarnation,
            seq: heartbeat.seq,
            tallies: std::mem::take(&mut heartbeat.tallies),
            breakpoints: (std::mem::take(&mut heartbeat.breakpoints), heartbeat.more_breakpoints),
        }
    }
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

impl Holdings {
    /// A window tells this with a heartbeat. What it had counted before this coordinator heard of it counts only if that
    /// was the first of its agent: otherwise it told another coordinator.
    pub fn hear(&self, roster: &Roster, window: WindowId, holds: Holds) {
        let mut inner = self.lock();
        let Inner { windows, sums } = &mut *inner;
        windows.retain(|known, _| roster.windows.contains_key(known));
        let told = windows.entry(window).or_default();
        let is_new = told.incarnation != holds.incarnation;
        if !is_new && holds.seq <= told.seq {
            return;
        }
        let is_changed = (&told.tallies, &told.breakpoints) != (&holds.tallies, &holds.breakpoints);
        let before = if is_new { Vec::new() } else { std::mem::take(&mut told.tallies) };
        if !is_new || holds.seq == 1 {
            for tally in &holds.tallies {
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
        *told = holds;
        if is_changed {
            self.changes.send_replace(());
        }
    }

    /// Of one window, as far as its agent of `incarnation` has told: its programs, its first breakpoints, and how many
    /// more there are.
    pub(crate) fn of(&self, window: &WindowId, incarnation: u64) -> (Vec<Tally>, Vec<String>, u32) {
        let inner = self.lock();
        let known = inner.windows.get(window).filter(|told| told.incarnation == incarnation);
        let Some(Holds { tallies, breakpoints: (first, more), .. }) = known.cloned() else {
            return Default::default();
        };
        (tallies, first, more)
    }

    /// Tells when anything changed.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
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
        self.inner.lock()
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

    fn holds(incarnation: u64, seq: u64, tallies: Vec<Tally>) -> Holds {
        Holds { incarnation, seq, tallies, breakpoints: Default::default() }
    }

    #[test]
    fn what_grew_is_added_whoever_told_it_and_whatever_came_late() {
        let tallies = Holdings::default();
        let both = roster(&[("a", 1), ("b", 7)]);
        let sum = |roster: &Roster| tallies.sums(roster).into_values().next().unwrap_or_default();
        tallies.hear(&both, id("a"), holds(1, 1, gopls(1, 0, 1)));
        tallies.hear(&both, id("a"), holds(1, 3, gopls(3, 1, 2)));
        tallies.hear(&both, id("a"), holds(1, 2, gopls(2, 1, 1)));
        assert_eq!(sum(&both), Sum { started: 3, died: 1, running: 2 });
        // This agent told another coordinator of its first five.
        tallies.hear(&both, id("b"), holds(7, 40, gopls(5, 5, 0)));
        tallies.hear(&both, id("b"), holds(7, 41, gopls(6, 5, 1)));
        assert_eq!(sum(&both), Sum { started: 4, died: 1, running: 3 });
        // The next agent of a window counts from its own beginning.
        let again = roster(&[("a", 2)]);
        tallies.hear(&again, id("a"), holds(2, 1, gopls(1, 0, 1)));
        assert_eq!(sum(&again), Sum { started: 5, died: 1, running: 1 });
        assert_eq!(sum(&roster(&[])), Sum { started: 5, died: 1, running: 0 });
    }

    #[test]
    fn names_are_bounded() {
        let tallies = Holdings::default();
        let there = roster(&[("a", 1)]);
        for number in 0..3 * MAX_NAMES as u64 {
            let name = format!("server-{number}");
            let tally = Tally { name, ..gopls(1, 0, 1).remove(0) };
            tallies.hear(&there, id("a"), holds(1, number + 1, vec![tally]));
        }
        let sums = tallies.sums(&there);
        assert_eq!(sums.len(), MAX_NAMES + 1);
        assert_eq!(sums.values().map(|sum| sum.started).sum::<u64>(), 3 * MAX_NAMES as u64);
    }
}
