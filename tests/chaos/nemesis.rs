//! The faults, and the order in which a seed has them: each alone, then in pairs.

use std::sync::Arc;
use std::time::Duration;

use baton_proto::control::Status;
use rustix::process::Signal;

use crate::history::History;
use crate::world::{World, send};

mod builds;
mod files;
mod limits;
mod moves;
pub(crate) mod network;
mod signals;

/// Where a fault strikes.
pub(crate) struct Scene {
    pub(crate) world: Arc<World>,
    pub(crate) history: Arc<History>,
    pub(crate) rng: fastrand::Rng,
}

/// What a fault cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    /// Root: a disk of its own, other users' processes.
    Root,
    /// libfaketime.
    Clock,
}

/// One way to break the world; it returns when what can be mended from outside is mended.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) need: Need,
    strike: fn(&mut Scene),
}

const fn fault(name: &'static str, need: Need, strike: fn(&mut Scene)) -> Fault {
    Fault { name, need, strike }
}

/// All faults.
pub(crate) const FAULTS: [Fault; 58] = [
    fault("kill-coordinator", Need::Nothing, signals::kill_coordinator),
    fault("kill-coordinator-twice", Need::Nothing, signals::kill_coordinator_twice),
    fault("kill-live-agent", Need::Nothing, signals::kill_live_agent),
    fault("kill-standby-agent", Need::Nothing, signals::kill_standby_agent),
    fault("kill-all-agents", Need::Nothing, signals::kill_all_agents),
    fault("kill-live-window", Need::Nothing, signals::kill_live_window),
    fault("kill-standby-window", Need::Nothing, signals::kill_standby_window),
    fault("kill-holder", Need::Nothing, signals::kill_holder),
    fault("kill-holder-and-coordinator", Need::Nothing, signals::kill_holder_and_coordinator),
    fault("stop-coordinator-short", Need::Nothing, signals::stop_coordinator_short),
    fault("stop-coordinator-long", Need::Nothing, signals::stop_coordinator_long),
    fault("stop-live-agent-short", Need::Nothing, signals::stop_live_agent_short),
    fault("stop-live-agent-long", Need::Nothing, signals::stop_live_agent_long),
    fault("stop-standby-agent-long", Need::Nothing, signals::stop_standby_agent_long),
    fault("stop-window", Need::Nothing, signals::stop_window),
    fault("stop-holder", Need::Nothing, signals::stop_holder),
    fault("stop-everything", Need::Nothing, signals::stop_everything),
    fault("take", Need::Nothing, moves::take),
    fault("two-takes", Need::Nothing, moves::two_takes),
    fault("take-storm", Need::Nothing, moves::take_storm),
    fault("stop-and-start", Need::Nothing, moves::stop_and_start),
    fault("restart-live", Need::Nothing, moves::restart_live),
    fault("restart-standby", Need::Nothing, moves::restart_standby),
    fault("close-live-window", Need::Nothing, moves::close_live_window),
    fault("down-and-up", Need::Nothing, moves::down_and_up),
    fault("rotate-token", Need::Nothing, moves::rotate_token),
    fault("change-port", Need::Nothing, moves::change_port),
    fault("replace", Need::Nothing, builds::replace),
    fault("upgrade", Need::Nothing, builds::upgrade),
    fault("downgrade", Need::Nothing, builds::downgrade),
    fault("newer-window", Need::Nothing, builds::newer_window),
    fault("discovery-lost", Need::Nothing, files::discovery_lost),
    fault("discovery-truncated", Need::Nothing, files::discovery_truncated),
    fault("discovery-empty", Need::Nothing, files::discovery_empty),
    fault("discovery-corrupt", Need::Nothing, files::discovery_corrupt),
    fault("discovery-unwritable", Need::Nothing, files::discovery_unwritable),
    fault("state-lost", Need::Nothing, files::state_lost),
    fault("state-truncated", Need::Nothing, files::state_truncated),
    fault("state-empty", Need::Nothing, files::state_empty),
    fault("state-corrupt", Need::Nothing, files::state_corrupt),
    fault("state-unwritable", Need::Nothing, files::state_unwritable),
    fault("lock-lost", Need::Nothing, files::lock_lost),
    fault("lock-replaced", Need::Nothing, files::lock_replaced),
    fault("secret-lost", Need::Nothing, files::secret_lost),
    fault("secret-empty", Need::Nothing, files::secret_empty),
    fault("folder-deleted", Need::Nothing, files::folder_deleted),
    fault("disk-full", Need::Root, files::disk_full),
    fault("disk-full-and-kills", Need::Root, files::disk_full_and_kills),
    fault("port-squatted", Need::Root, network::port_squatted),
    fault("half-requests", Need::Nothing, network::half_requests),
    fault("stream-flood", Need::Nothing, network::stream_flood),
    fault("aborted-calls", Need::Nothing, network::aborted_calls),
    fault("wrong-tokens", Need::Nothing, network::wrong_tokens),
    fault("heavy-calls", Need::Nothing, network::heavy_calls),
    fault("few-descriptors-coordinator", Need::Nothing, limits::coordinator),
    fault("few-descriptors-agent", Need::Nothing, limits::agent),
    fault("clock-forward", Need::Clock, limits::clock_forward),
    fault("clock-back", Need::Clock, limits::clock_back),
];

/// What continuous integration breaks, in about three minutes: at most four deaths of the coordinator in half a minute, the
/// slow ones between them.
pub(crate) const FIXED: [&str; 34] = [
    "kill-coordinator",
    "take",
    "kill-live-agent",
    "state-truncated+two-takes",
    "discovery-lost",
    "stop-live-agent-long",
    "replace+take-storm",
    "kill-live-window",
    "few-descriptors-coordinator",
    "half-requests",
    "kill-coordinator+kill-live-agent",
    "state-empty",
    "stop-and-start",
    "restart-live",
    "stop-everything",
    "change-port",
    "disk-full-and-kills",
    "close-live-window+kill-standby-agent",
    "stop-coordinator-long",
    "upgrade",
    "lock-lost",
    "secret-lost",
    "stream-flood",
    "wrong-tokens+aborted-calls",
    "port-squatted",
    "discovery-unwritable",
    "clock-back",
    "kill-all-agents",
    "stop-window+stop-coordinator-short",
    "rotate-token",
    "folder-deleted",
    "heavy-calls",
    "down-and-up",
    "downgrade",
];

/// One step of a run: a fault, or two at once.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) faults: [Option<&'static Fault>; 2],
    pub(crate) seed: u64,
}

impl Step {
    /// For people, and for `--faults`.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.faults.iter().flatten().map(|fault| fault.name).collect();
        names.join("+")
    }

    /// Breaks, and mends what can be mended from outside.
    pub(crate) fn strike(&self, world: &Arc<World>, history: &Arc<History>) {
        std::thread::scope(|scope| {
            for (fault, seed) in self.faults.iter().flatten().zip(self.seed..) {
                let rng = fastrand::Rng::with_seed(seed);
                let mut scene = Scene { world: world.clone(), history: history.clone(), rng };
                scope.spawn(move || {
                    scene.history.note(format!("fault {} begins", fault.name));
                    (fault.strike)(&mut scene);
                    scene.history.note(format!("fault {} is over", fault.name));
                });
            }
        });
    }
}

/// The fault of that name.
pub(crate) fn find(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}

/// Steps without end, or the steps of a list.
pub(crate) enum Plan {
    /// What a seed has in store, for ever: all faults alone in some order, each followed by a pair; then in another order.
    Dice { faults: Vec<&'static Fault>, rng: fastrand::Rng, alone: Vec<&'static Fault>, is_pair_next: bool },
    /// These, from the last to the first.
    List(Vec<Step>),
}

impl Plan {
    pub(crate) fn dice(faults: Vec<&'static Fault>, seed: u64) -> Self {
        Self::Dice { faults, rng: fastrand::Rng::with_seed(seed), alone: Vec::new(), is_pair_next: false }
    }

    /// The steps of that list, such as `kill-coordinator` and `take+kill-live-agent`.
    pub(crate) fn list(names: &[&str], seed: u64) -> Option<Self> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut steps = Vec::new();
        for name in names {
            let (first, second) =
                name.split_once('+').map_or((*name, None), |(one, other)| (one, Some(other)));
            let second = second.map(|name| find(name).ok_or(())).transpose().ok()?;
            steps.push(Step { faults: [Some(find(first)?), second], seed: rng.u64(..u64::MAX - 1) });
        }
        steps.reverse();
        Some(Self::List(steps))
    }
}

impl Iterator for Plan {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let (faults, rng, alone, is_pair_next) = match self {
            Self::List(steps) => return steps.pop(),
            Self::Dice { faults, rng, alone, is_pair_next } => (faults, rng, alone, is_pair_next),
        };
        let seed = rng.u64(..u64::MAX - 1);
        if std::mem::replace(is_pair_next, false) {
            let first = rng.usize(..faults.len());
            let second = (first + rng.usize(1..faults.len())) % faults.len();
            return Some(Step { faults: [Some(faults[first]), Some(faults[second])], seed });
        }
        if alone.is_empty() {
            alone.clone_from(faults);
            rng.shuffle(alone);
        }
        *is_pair_next = faults.len() > 1;
        Some(Step { faults: [alone.pop(), None], seed })
    }
}

impl Scene {
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.history.note(text);
    }

    /// A short while, different each time.
    pub(crate) fn pause(&mut self, ms: std::ops::Range<u64>) {
        std::thread::sleep(Duration::from_millis(self.rng.u64(ms)));
    }

    /// The status, when there is one.
    pub(crate) fn status(&self) -> Option<Status> {
        self.world.status()
    }

    /// Name of the live window, or of any when nobody is live.
    pub(crate) fn live(&mut self) -> &'static str {
        let status = self.status();
        let live = status.as_ref().and_then(|status| baton_tests::world::live_name(status));
        let known = crate::world::WINDOWS.into_iter().find(|name| Some(*name) == live);
        known.unwrap_or_else(|| self.any(&[]))
    }

    /// Any window but these.
    pub(crate) fn any(&mut self, but: &[&str]) -> &'static str {
        let all: Vec<_> = crate::world::WINDOWS.into_iter().filter(|name| !but.contains(name)).collect();
        all[self.rng.usize(..all.len())]
    }

    /// Runs `baton`, and notes what came of it.
    pub(crate) fn baton(&self, arguments: &[&str]) -> bool {
        self.baton_of(0, arguments)
    }

    /// [`Scene::baton`] of a build.
    pub(crate) fn baton_of(&self, build: usize, arguments: &[&str]) -> bool {
        let printed = self.world.baton_of(build, arguments);
        let said = crate::clients::shortened(&format!("{}{}", printed.out, printed.err));
        let build = if build == 0 { "" } else { " of the newer build" };
        self.note(format!("baton{build} {} ended {}: {said}", arguments.join(" "), printed.code));
        printed.code == 0
    }

    /// Kills with -9, and notes it.
    pub(crate) fn kill(&self, pids: &[u32], what: &str) {
        for pid in pids {
            self.note(format!("kill -9 {what} {pid}"));
            send(*pid, Signal::KILL);
        }
    }

    /// Kills all coordinators with -9.
    pub(crate) fn kill_coordinators(&self) {
        let pids = self.world.coordinators();
        self.history.death();
        self.kill(&pids, "coordinator");
        self.history.death();
    }

    /// Stops processes for so long, and lets them go on.
    pub(crate) fn stop_for(&self, pids: &[u32], what: &str, ms: u64) {
        for pid in pids {
            self.note(format!("SIGSTOP {what} {pid} for {ms} ms"));
            send(*pid, Signal::STOP);
        }
        std::thread::sleep(Duration::from_millis(ms));
        for pid in pids {
            self.note(format!("SIGCONT {what} {pid}"));
            send(*pid, Signal::CONT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_every_fault_alone_and_pairs_of_two() {
        let all: Vec<&Fault> = FAULTS.iter().collect();
        let names = |seed| Plan::dice(all.clone(), seed).take(200).map(|step| step.names());
        let first: Vec<String> = names(7).collect();
        assert_eq!(first, names(7).collect::<Vec<_>>(), "a seed can be repeated");
        assert_ne!(first, names(8).collect::<Vec<_>>());
        assert!(FAULTS.iter().all(|fault| first.iter().any(|name| name == fault.name)));
        let pairs = first.iter().filter_map(|name| name.split_once('+'));
        assert!(pairs.clone().count() == 100 && pairs.clone().all(|(one, other)| one != other));
        assert_eq!(Plan::dice(vec![all[0]], 1).take(3).count(), 3, "one fault alone");
        let list = Plan::list(&["take", "take+replace"], 1).expect("there are such faults");
        assert_eq!(list.map(|step| step.names()).collect::<Vec<_>>(), ["take", "take+replace"]);
        assert!(Plan::list(&["take+nothing"], 1).is_none());
    }

    #[test]
    fn the_fixed_choice_is_wide() {
        let plan = Plan::list(&FIXED, 1).expect("all are faults");
        let names: std::collections::BTreeSet<_> =
            plan.flat_map(|step| step.faults).flatten().map(|fault| fault.name).collect();
        assert!(names.len() >= 25, "{names:?}");
    }
}
