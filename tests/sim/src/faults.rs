//! What goes wrong in a world, and when: thrown by its seed before it begins.

use std::time::Duration;

use baton_link::home::DEFAULT_PORT;
use baton_link::sim;

use crate::client::INNER_CLIENT;
use crate::parts::{self, Verb};
use crate::system;
use crate::world::{CLIENTS, Kind, WINDOWS, World};

/// Nothing goes wrong before: every window is there.
const FIRST: Duration = Duration::from_secs(4);
/// Nothing goes wrong in the last seconds: then everything must be well.
pub(crate) const QUIET: Duration = Duration::from_secs(28);
/// Most that goes wrong.
const MAX_FAULTS: u64 = 8;

/// The lock of the coordinator, which ends within so long when it is gone.
const LOCK: &str = "coordinator.lock";
const LOCK_NOTICED: Duration = Duration::from_secs(4);

/// Which window something happens to.
#[derive(Clone, Copy, Debug)]
enum Target {
    Number(usize),
    /// The one that is live then.
    Live,
    /// So many after it.
    AfterLive(usize),
}

/// Something that goes wrong, or that the user does.
#[derive(Clone, Debug)]
enum Fault {
    KillCoordinator {
        lost: Vec<&'static str>,
    },
    /// Of two that follow each other, one.
    KillOneCoordinator {
        is_last: bool,
    },
    /// Another version takes over.
    Replace,
    StopCoordinator(Duration),
    KillWindow {
        window: Target,
        pause: Duration,
    },
    StopWindow {
        window: Target,
        time: Duration,
    },
    HoldWindow {
        window: Target,
        time: Duration,
    },
    HoldClient {
        client: usize,
        time: Duration,
    },
    /// A client vanishes in the middle of a call, and begins anew.
    RestartClient {
        client: usize,
        pause: Duration,
    },
    LoseFiles(Vec<&'static str>),
    TearFiles {
        names: Vec<&'static str>,
        is_emptied: bool,
    },
    FillDisk(Duration),
    SetClock(i64),
    Stranger {
        time: Duration,
        is_port_known: bool,
    },
    Order {
        window: Target,
        verb: Verb,
    },
    /// The user moves the coordinator to another port.
    ChangePort(u16),
    /// The user sets how long calls wait for a window.
    SetHold(u64),
    /// The folder of the window whose tree lies in another one is moved away for so long.
    MoveTree(Duration),
}

/// What is still to come.
pub(crate) struct Faults {
    to_come: Vec<(Duration, Fault)>,
    /// Processes that are stopped, until when.
    stopped: Vec<(Duration, u32)>,
    full_until: Option<Duration>,
    /// Until when the inner tree is away.
    away_until: Option<Duration>,
}

/// The dice of the plan: not those of the processes.
struct Dice(u64);

/// By how much somebody sets the wall clock, in seconds.
const CLOCKS: [i64; 6] = [-31_536_000, -3_600, -5, 5, 3_600, 31_536_000];

/// Where somebody moves the coordinator to.
const PORTS: [u16; 3] = [DEFAULT_PORT, DEFAULT_PORT + 1, DEFAULT_PORT + 2];

/// For how long somebody has calls wait.
const HOLDS_MS: [u64; 3] = [0, 1_000, 15_000];

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        // Any generator will do (Knuth's multiplier).
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }

    fn time(&mut self, from_ms: u64, to_ms: u64) -> Duration {
        Duration::from_millis(from_ms + self.below(to_ms - from_ms))
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap_or(0)].clone()
    }

    /// The live one as often as any other: it is the one that matters.
    fn window(&mut self) -> Target {
        let number = usize::try_from(self.below(2 * WINDOWS as u64)).unwrap_or(0);
        if number < WINDOWS { Target::Number(number) } else { Target::Live }
    }

    fn client(&mut self) -> usize {
        usize::try_from(self.below(CLIENTS as u64)).unwrap_or(0)
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
        match self.below(31) {
            0..=1 => Fault::KillCoordinator { lost: Vec::new() },
            2 => Fault::KillCoordinator { lost: self.files() },
            3 => Fault::StopCoordinator(self.time(200, 12_000)),
            4..=6 => Fault::KillWindow { window, pause: self.time(100, 9_000) },
            7..=8 => Fault::StopWindow { window, time: self.time(500, 15_000) },
            9 => Fault::HoldWindow { window, time: self.time(100, 3_000) },
            10 => Fault::HoldClient { client: self.client(), time: self.time(100, 3_000) },
            29..=30 => Fault::RestartClient { client: self.client(), pause: self.time(100, 2_000) },
            11 => Fault::LoseFiles(self.files()),
            12..=13 => Fault::Order { window, verb: Verb::Take },
            14 => Fault::Order { window, verb: Verb::Stop },
            15 => Fault::Order { window, verb: Verb::Restart },
            16 => Fault::TearFiles { names: self.files(), is_emptied: self.below(2) == 0 },
            17..=18 => Fault::FillDisk(self.time(200, 8_000)),
            19 => Fault::SetClock(self.one_of(&CLOCKS)),
            20 => Fault::LoseFiles(vec![LOCK]),
            21..=22 => Fault::Replace,
            23..=24 => Fault::ChangePort(self.one_of(&PORTS)),
            25 => Fault::SetHold(self.one_of(&HOLDS_MS)),
            26..=27 => Fault::MoveTree(self.time(200, 12_000)),
            _ => Fault::Stranger { time: self.time(500, 8_000), is_port_known: false },
        }
    }

    /// What goes wrong at once, or one after the other: each with its time since the first.
    fn story(&mut self) -> Vec<(Duration, Fault)> {
        let kill = |lost: &[&'static str]| Fault::KillCoordinator { lost: lost.to_vec() };
        let stop = Fault::Order { window: Target::Live, verb: Verb::Stop };
        match self.below(20) {
            // What the port is now has to be known to everybody.
            6 => vec![
                (Duration::ZERO, Fault::ChangePort(self.one_of(&PORTS))),
                (self.time(0, 2_000), kill(&[])),
            ],
            7 => vec![
                (Duration::ZERO, Fault::ChangePort(self.one_of(&PORTS))),
                (self.time(0, 2_000), Fault::Replace),
            ],
            // One that follows, or is followed, is killed, stopped, or cannot write.
            3 => vec![
                (Duration::ZERO, Fault::Replace),
                (self.time(0, 600), Fault::KillOneCoordinator { is_last: self.below(2) == 0 }),
            ],
            4 => vec![
                (Duration::ZERO, Fault::Replace),
                (self.time(0, 600), Fault::StopCoordinator(self.time(200, 12_000))),
            ],
            5 => vec![
                (Duration::ZERO, Fault::FillDisk(self.time(200, 3_000))),
                (self.time(0, 400), Fault::Replace),
            ],
            // What the user wanted has to be known to a successor.
            0 => vec![(Duration::ZERO, stop), (self.time(1_500, 4_000), kill(&[]))],
            // Also when it could not be written at first.
            1 => {
                let full = self.time(500, 3_000);
                let later = full + self.time(1_500, 4_000);
                vec![(Duration::ZERO, Fault::FillDisk(full)), (self.time(100, 400), stop), (later, kill(&[]))]
            }
            // Nobody knows who was live, and by the clock it is before that.
            2 => vec![
                (Duration::ZERO, Fault::SetClock(self.one_of(&CLOCKS[..3]))),
                (self.time(0, 500), kill(&["state.json", "discovery.json"])),
            ],
            9 => self.silent_successor(&[]),
            10 => self.silent_successor(&["state.json", "discovery.json"]),
            // Nobody can say any more in which tree it begins.
            8 => vec![
                (Duration::ZERO, Fault::MoveTree(self.time(3_000, 12_000))),
                (
                    self.time(0, 1_000),
                    Fault::RestartClient { client: INNER_CLIENT, pause: self.time(100, 1_000) },
                ),
            ],
            _ => vec![(Duration::ZERO, self.fault())],
        }
    }

    /// A coordinator ends while nobody can tell the next one who was live, but for a window that has just started.
    fn silent_successor(&mut self, lost: &[&'static str]) -> Vec<(Duration, Fault)> {
        let mut held = |after: usize| {
            let time = self.time(1_500, 3_000);
            (Duration::ZERO, Fault::HoldWindow { window: Target::AfterLive(after), time })
        };
        let (live, other) = (held(0), held(1));
        let (at, pause) = (self.time(0, 300), self.time(100, 700));
        let new = Fault::KillWindow { window: Target::AfterLive(2), pause };
        let killed = Fault::KillCoordinator { lost: lost.to_vec() };
        vec![live, other, (at, new), (at + self.time(0, 100), killed)]
    }
}

/// How many of what goes wrong in that world are thrown.
pub(crate) fn n_of_seed(seed: u64, length: Duration) -> usize {
    Faults::of_seed(seed, length, &[]).to_come.len()
}

impl Faults {
    /// What goes wrong in a world of that length, but for those of these numbers.
    pub(crate) fn of_seed(seed: u64, length: Duration, without: &[usize]) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xfa17);
        let latest = dice.one_of(&[0, 0, 5, 25]);
        sim::set_latest(Duration::from_millis(latest));
        let room = u64::try_from(length.saturating_sub(FIRST + QUIET).as_millis()).unwrap_or(0);
        let end = FIRST + Duration::from_millis(room);
        let n_faults = if room == 0 { 0 } else { 1 + dice.below(MAX_FAULTS) };
        let mut to_come: Vec<(Duration, Fault)> = Vec::new();
        if dice.below(8) == 0 {
            let is_port_known = dice.below(2) == 0;
            to_come.push((Duration::ZERO, Fault::Stranger { time: dice.time(500, 8_000), is_port_known }));
        }
        let mut last = FIRST;
        for _ in 0..n_faults {
            // Often right after another one: that is where orders of events are.
            let at = match dice.below(3) {
                0 => last + dice.time(0, 700),
                _ => FIRST + dice.time(0, room),
            };
            for (later, fault) in dice.story() {
                last = (at + later).min(end);
                to_come.push((last, fault));
            }
        }
        to_come.sort_by_key(|(at, _)| *at);
        let kept = to_come.into_iter().enumerate().filter(|(number, _)| !without.contains(number));
        let mut to_come: Vec<_> = kept.map(|(_, fault)| fault).collect();
        to_come.reverse();
        Self { to_come, stopped: Vec::new(), full_until: None, away_until: None }
    }

    /// Does what is due.
    pub(crate) fn strike(&mut self, world: &mut World) {
        while let Some((_, fault)) = self.to_come.pop_if(|(at, _)| *at <= world.now) {
            self.strike_one(world, fault);
        }
        let now = world.now;
        if self.full_until.is_some_and(|until| until <= now) {
            self.full_until = None;
            sim::set_disk_full(false);
            world.tell("there is space on the disk again");
        }
        if self.away_until.is_some_and(|until| until <= now) {
            self.away_until = None;
            world.move_tree(false);
        }
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
            if let Kind::Window(window) = kind {
                world.oracle.on_window_silent(world.now, world.now + time, window);
            }
            self.stopped.push((world.now + time, pid));
        }
    }

    fn fill_disk(&mut self, world: &mut World, time: Duration) {
        world.tell(&format!("the disk is full for {} ms", time.as_millis()));
        let until = (world.now + time).max(self.full_until.unwrap_or_default());
        self.full_until = Some(until);
        sim::set_disk_full(true);
        world.oracle.on_full_disk(until);
    }

    fn move_tree(&mut self, world: &mut World, time: Duration) {
        if self.away_until.is_none() {
            world.move_tree(true);
        }
        self.away_until = self.away_until.max(Some(world.now + time));
    }

    fn strike_one(&mut self, world: &mut World, fault: Fault) {
        let number = |world: &World, window: Target| match window {
            Target::Number(number) => number,
            Target::Live => world.oracle.live_window().unwrap_or(0),
            Target::AfterLive(n) => world.oracle.live_window().map_or(0, |live| (live + n) % WINDOWS),
        };
        match fault {
            Fault::KillCoordinator { lost } => {
                for pid in world.pids(Kind::Coordinator) {
                    world.tell(&format!("the coordinator (process {pid}) is killed"));
                    world.kill(pid);
                }
                world.oracle.on_coordinator_suffers(world.now, !lost.is_empty());
                lost.into_iter().for_each(|name| world.lose(name));
            }
            Fault::KillOneCoordinator { is_last } => {
                let pids = world.pids(Kind::Coordinator);
                let pid = if is_last { pids.last() } else { pids.first() };
                if let Some(pid) = pid.copied() {
                    world.tell(&format!("the coordinator (process {pid}) is killed"));
                    world.kill(pid);
                    world.oracle.on_coordinator_suffers(world.now, false);
                }
            }
            Fault::Replace => {
                world.tell("the user has another version take over");
                let program = world.other_version();
                world.have_user(|home| parts::replace(home, program));
            }
            Fault::StopCoordinator(time) => {
                self.stop(world, ("the coordinator".to_owned(), Kind::Coordinator), time);
            }
            Fault::KillWindow { window, pause } => {
                let window = number(world, window);
                world.tell(&format!(
                    "window w{window} is killed; it starts again {} ms later",
                    pause.as_millis()
                ));
                world.kill_window(window, pause);
            }
            Fault::StopWindow { window, time } => {
                let window = number(world, window);
                self.stop(world, (format!("window w{window}"), Kind::Window(window)), time);
            }
            Fault::HoldWindow { window, time } => {
                let window = number(world, window);
                world.tell(&format!("what w{window} sends and is sent is held for {} ms", time.as_millis()));
                world.pids(Kind::Window(window)).into_iter().for_each(|pid| sim::hold(pid, world.now + time));
                world.oracle.on_window_silent(world.now, world.now + time, window);
            }
            Fault::HoldClient { client, time } => {
                world.tell(&format!("what c{client} sends and is sent is held for {} ms", time.as_millis()));
                world.pids(Kind::Client(client)).into_iter().for_each(|pid| sim::hold(pid, world.now + time));
            }
            Fault::RestartClient { client, pause } => {
                world.tell(&format!("c{client} vanishes; it begins anew {} ms later", pause.as_millis()));
                world.restart_client(client, pause);
            }
            Fault::LoseFiles(names) => {
                world.oracle.on_coordinator_suffers(world.now, true);
                if names.contains(&LOCK) {
                    // Without it nothing is written any more.
                    world.oracle.on_full_disk(world.now + LOCK_NOTICED);
                }
                names.into_iter().for_each(|name| world.lose(name));
            }
            Fault::TearFiles { names, is_emptied } => {
                world.oracle.on_coordinator_suffers(world.now, true);
                names.into_iter().for_each(|name| world.tear(name, is_emptied));
            }
            Fault::FillDisk(time) => self.fill_disk(world, time),
            Fault::SetClock(by) => {
                world.tell(&format!("the wall clock is set, {by} s from where it was at first"));
                system::set_wall(by);
            }
            Fault::Stranger { time, is_port_known } => world.start_stranger(time, is_port_known),
            Fault::ChangePort(port) => {
                world.tell(&format!("the user orders: port {port}"));
                world.have_user(|home| parts::change_port(home, port));
            }
            Fault::SetHold(ms) => {
                world.tell(&format!("the user orders: calls wait for {ms} ms"));
                world.have_user(|home| parts::set_hold(home, ms));
            }
            Fault::MoveTree(time) => self.move_tree(world, time),
            Fault::Order { window, verb } => {
                let window = number(world, window);
                world.tell(&format!("the user orders: {verb:?} w{window}"));
                world.order(window, verb);
            }
        }
    }
}
