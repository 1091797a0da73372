//! What goes wrong in a world, and when: thrown by its seed before it begins.

use std::time::Duration;

use baton_link::sim;

use crate::parts::Verb;
use crate::world::{CLIENTS, Kind, WINDOWS, World};

/// Nothing goes wrong before: every window is there.
const FIRST: Duration = Duration::from_secs(4);
/// Nothing goes wrong in the last seconds: then everything must be well.
pub(crate) const QUIET: Duration = Duration::from_secs(28);
/// Most that goes wrong.
const MAX_FAULTS: u64 = 8;

/// Something that goes wrong, or that the user does.
#[derive(Clone, Debug)]
enum Fault {
    KillCoordinator { lost: Vec<&'static str> },
    StopCoordinator(Duration),
    KillWindow { window: usize, pause: Duration },
    StopWindow { window: usize, time: Duration },
    HoldWindow { window: usize, time: Duration },
    HoldClient { client: usize, time: Duration },
    LoseFiles(Vec<&'static str>),
    Order { window: usize, verb: Verb },
}

/// What is still to come.
pub(crate) struct Faults {
    to_come: Vec<(Duration, Fault)>,
    /// Processes that are stopped, until when.
    stopped: Vec<(Duration, u32)>,
}

/// The dice of the plan: not those of the processes.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        // Any generator will do (Knuth's multiplier).
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }

    fn time(&mut self, from_ms: u64, to_ms: u64) -> Duration {
        Duration::from_millis(from_ms + self.below(to_ms - from_ms))
    }

    fn window(&mut self) -> usize {
        usize::try_from(self.below(WINDOWS as u64)).unwrap_or(0)
    }

    fn files(&mut self) -> Vec<&'static str> {
        match self.below(4) {
            0 => vec!["state.json"],
            1 => vec!["discovery.json"],
            _ => vec!["state.json", "discovery.json"],
        }
    }

    fn fault(&mut self) -> Fault {
        let window = self.window();
        match self.below(16) {
            0..=1 => Fault::KillCoordinator { lost: Vec::new() },
            2 => Fault::KillCoordinator { lost: self.files() },
            3 => Fault::StopCoordinator(self.time(200, 12_000)),
            4..=6 => Fault::KillWindow { window, pause: self.time(100, 9_000) },
            7..=8 => Fault::StopWindow { window, time: self.time(500, 15_000) },
            9 => Fault::HoldWindow { window, time: self.time(100, 3_000) },
            10 => {
                let client = usize::try_from(self.below(CLIENTS as u64)).unwrap_or(0);
                Fault::HoldClient { client, time: self.time(100, 3_000) }
            }
            11 => Fault::LoseFiles(self.files()),
            12..=13 => Fault::Order { window, verb: Verb::Take },
            14 => Fault::Order { window, verb: Verb::Stop },
            _ => Fault::Order { window, verb: Verb::Restart },
        }
    }
}

impl Faults {
    /// What goes wrong in a world of that length.
    pub(crate) fn of_seed(seed: u64, length: Duration) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xfa17);
        let latest = [0, 0, 5, 25][usize::try_from(dice.below(4)).unwrap_or(0)];
        sim::set_latest(Duration::from_millis(latest));
        let room = u64::try_from(length.saturating_sub(FIRST + QUIET).as_millis()).unwrap_or(0);
        let n_faults = if room == 0 { 0 } else { 1 + dice.below(MAX_FAULTS) };
        let mut to_come: Vec<(Duration, Fault)> = Vec::new();
        let mut last = FIRST;
        for _ in 0..n_faults {
            // Often right after another one: that is where orders of events are.
            let at = match dice.below(3) {
                0 => last + dice.time(0, 700),
                _ => FIRST + dice.time(0, room),
            };
            last = at.min(FIRST + Duration::from_millis(room));
            to_come.push((last, dice.fault()));
        }
        to_come.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self { to_come, stopped: Vec::new() }
    }

    /// Does what is due.
    pub(crate) fn strike(&mut self, world: &mut World) {
        while let Some((_, fault)) = self.to_come.pop_if(|(at, _)| *at <= world.now) {
            self.strike_one(world, fault);
        }
        let now = world.now;
        let (due, later) =
            std::mem::take(&mut self.stopped).into_iter().partition(|(until, _)| *until <= now);
        self.stopped = later;
        let due: Vec<(Duration, u32)> = due;
        for (_, pid) in due {
            world.go_on(pid);
        }
    }

    fn stop(&mut self, world: &mut World, (what, kind): (String, Kind), time: Duration) {
        for pid in world.pids(kind) {
            world.tell(&format!("{what} (process {pid}) is stopped for {} ms", time.as_millis()));
            world.stop(pid);
            self.stopped.push((world.now + time, pid));
        }
    }

    fn strike_one(&mut self, world: &mut World, fault: Fault) {
        match fault {
            Fault::KillCoordinator { lost } => {
                for pid in world.pids(Kind::Coordinator) {
                    world.tell(&format!("the coordinator (process {pid}) is killed"));
                    world.kill(pid);
                }
                world.oracle.on_coordinator_suffers(world.now, !lost.is_empty());
                lost.into_iter().for_each(|name| world.lose(name));
            }
            Fault::StopCoordinator(time) => {
                self.stop(world, ("the coordinator".to_owned(), Kind::Coordinator), time);
            }
            Fault::KillWindow { window, pause } => {
                world.tell(&format!(
                    "window w{window} is killed; it starts again {} ms later",
                    pause.as_millis()
                ));
                world.kill_window(window, pause);
            }
            Fault::StopWindow { window, time } => {
                self.stop(world, (format!("window w{window}"), Kind::Window(window)), time);
            }
            Fault::HoldWindow { window, time } => {
                world.tell(&format!("what w{window} sends and is sent is held for {} ms", time.as_millis()));
                world.pids(Kind::Window(window)).into_iter().for_each(|pid| sim::hold(pid, world.now + time));
                world.oracle.on_window_suffers(world.now + time, window);
            }
            Fault::HoldClient { client, time } => {
                world.tell(&format!("what c{client} sends and is sent is held for {} ms", time.as_millis()));
                world.pids(Kind::Client(client)).into_iter().for_each(|pid| sim::hold(pid, world.now + time));
            }
            Fault::LoseFiles(names) => {
                world.oracle.on_coordinator_suffers(world.now, true);
                names.into_iter().for_each(|name| world.lose(name));
            }
            Fault::Order { window, verb } => {
                world.tell(&format!("the user orders: {verb:?} w{window}"));
                world.order(window, verb);
            }
        }
    }
}
