//! Visits all states of a small world around the real election, as far as time allows: `baton-model [SECONDS]`.
//!
//! | module | what it has |
//! |---|---|
//! | `setup` | what is explored, and what is broken on purpose |
//! | `steps` | what may happen in a state |
//! | `world` | a state: coordinators, agents, disk, calls; what changes it |
//! | `rules` | what must hold in every state |
//! | `story` | the way to a violation, in words |

mod rules;
mod setup;
mod steps;
mod story;
mod world;

use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use setup::{Setup, setups};

/// What a search found.
struct Report {
    n_states: usize,
    depth: usize,
    took: Duration,
    /// The shortest way to a violation.
    story: Option<String>,
}

/// How far a search goes.
#[derive(Clone, Copy)]
enum Limit {
    /// As long as this.
    Time(Duration),
    /// All states that are so many steps from a start: the same ones on every machine.
    #[cfg(test)]
    Depth(usize),
    /// Until something is found.
    #[cfg(test)]
    None,
}

/// All states within `limit`, the nearest first.
fn explore(setup: &Setup, limit: Limit) -> Report {
    let since = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    let checker = setup.clone().checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    let checker = match limit {
        Limit::Time(limit) => checker.timeout(limit),
        #[cfg(test)]
        Limit::Depth(depth) => checker.target_max_depth(depth),
        #[cfg(test)]
        Limit::None => checker,
    };
    let checker = checker.spawn_bfs().join();
    let story = checker
        .discoveries()
        .into_iter()
        .next()
        .map(|(rule, path)| story::tell(setup, rule, path.into_vec()));
    Report {
        n_states: checker.unique_state_count(),
        depth: checker.max_depth(),
        took: since.elapsed(),
        story,
    }
}

#[expect(clippy::print_stdout, reason = "this is what the program is for")]
fn main() {
    let seconds = std::env::args().nth(1).map_or(Ok(600), |seconds| seconds.parse());
    let Ok(seconds) = seconds else { return println!("usage: baton-model [SECONDS]") };
    let setups = setups();
    let share = Duration::from_secs(seconds) / u32::try_from(setups.len()).unwrap_or(1);
    let mut is_violated = false;
    for (name, setup) in setups {
        let report = explore(&setup, Limit::Time(share));
        let (states, depth) = (report.n_states, report.depth);
        println!("{name}: {states} states, depth {depth}, {:.0} s", report.took.as_secs_f64());
        is_violated |= report.story.is_some();
        println!("{}", report.story.as_deref().unwrap_or("no rule is broken"));
    }
    if is_violated {
        std::process::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Plant;

    /// What a test run allows: `cargo xtask explore model` goes further.
    const DEPTH: usize = 5;

    #[test]
    fn no_state_that_is_near_breaks_a_rule() {
        for (name, setup) in setups() {
            let report = explore(&setup, Limit::Depth(DEPTH));
            assert!(report.story.is_none(), "{name}: {}", report.story.unwrap_or_default());
            assert!(report.n_states > 1_000, "{name}: {} states are none", report.n_states);
        }
    }

    #[test]
    fn a_planted_fault_is_found() {
        let worlds = [
            (Plant::NoClock, Setup::small(2)),
            (Plant::NoClaims, Setup::small(2)),
            (Plant::NoDoubt, Setup::small(2)),
            (Plant::NoRevocation, Setup::small(2)),
            // A connection that breaks shows it, but only after the whole time of a hold.
            (Plant::NoFence, Setup { max_wishes: 0, ..Setup::small(1) }),
        ];
        for (plant, world) in worlds {
            let report = explore(&Setup { plant, ..world }, Limit::None);
            assert!(report.story.is_some(), "{plant:?} is not found in {} states", report.n_states);
        }
    }
}
