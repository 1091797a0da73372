//! What may happen in a state.

use baton_election::election::Input;
use stateright::{Model, Property};

use crate::rules;
use crate::setup::Setup;
use crate::world::agent::{Link, Window};
use crate::world::{World, id};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Tick,
    Start { by_agent: bool },
    Save(usize),
    Open(usize),
    Register { window: usize, coordinator: usize, twice: bool },
    DeliverLate(usize),
    ReadAnswer(usize),
    Hear(usize),
    ReadBeat(usize),
    SendCall,
    RunCall(usize),
    Take(usize),
    Stop(usize),
    Restart(usize),
    SwitchAutoStart(usize, bool),
    Focus(usize),
    Replace,
    Retire,
    KillCoordinator(usize),
    StallCoordinator(usize, bool),
    KillWindow(usize),
    StallWindow(usize, bool),
    BreakConnection(usize),
    DeleteFolder,
    EmptyState,
    FillDisk(bool),
    SetClockBack,
}

/// How often an agent may start in one story.
const MAX_INCARNATION: u64 = 2;
/// Calls in flight.
const MAX_CALLS: usize = 1;

impl Model for Setup {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let empty = World::new(self);
        let mut settled = empty.clone();
        settled.start(self, false);
        for window in 0..settled.windows.len() {
            settled.open(window);
            rules::quiet_tick(self, &mut settled);
        }
        for _ in 0..7 {
            rules::quiet_tick(self, &mut settled);
        }
        let mut taken = settled.clone();
        taken.wish(self, 0, Input::Take(id(1)));
        vec![empty, settled, taken]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.violation.is_some() {
            return;
        }
        // A file is written within a second, or the disk is at fault.
        if !(0..world.coordinators.len()).any(|at| world.can_save(at)) {
            steps.push(Step::Tick);
        }
        self.add_progress(world, steps);
        if world.n_wishes < self.max_wishes {
            self.add_wishes(world, steps);
        }
        self.add_repairs(world, steps);
        if world.n_faults < self.max_faults {
            self.add_faults(world, steps);
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut world = world.clone();
        self.apply(&mut world, step);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no rule is broken", |_, world: &World| world.violation.is_none()),
            Property::always("it comes right", rules::converges),
        ]
    }
}

impl Setup {
    fn add_progress(&self, world: &World, steps: &mut Vec<Step>) {
        if world.coordinators.len() < 2 && !world.coordinators.iter().any(|one| one.has_lock) {
            let has_lost = |window: &Window| {
                window.is_open && !window.is_stalled && window.fence.claim(world.now()).highest.is_some()
            };
            if world.windows.iter().any(has_lost) {
                steps.push(Step::Start { by_agent: true });
            } else {
                steps.push(Step::Start { by_agent: false });
            }
        }
        for at in 0..world.coordinators.len() {
            if world.can_save(at) {
                steps.push(Step::Save(at));
            }
        }
        for (at, window) in world.windows.iter().enumerate() {
            if !window.is_open {
                if window.incarnation < MAX_INCARNATION {
                    steps.push(Step::Open(at));
                }
                continue;
            }
            if window.is_stalled {
                continue;
            }
            match &window.link {
                Link::None => {
                    for (coordinator, one) in world.coordinators.iter().enumerate() {
                        if !one.is_stalled {
                            steps.push(Step::Register { window: at, coordinator, twice: false });
                        }
                    }
                }
                Link::Asked { .. } => steps.push(Step::ReadAnswer(at)),
                Link::Up { answer, .. } => {
                    if answer.is_some() {
                        steps.push(Step::ReadBeat(at));
                    }
                    if world.next_notice(at).is_some() {
                        steps.push(Step::Hear(at));
                    }
                }
            }
        }
        let is_served = world.serving().is_some_and(|one| !one.is_stalled);
        if is_served && world.calls.len() < MAX_CALLS && world.live_of(world.coordinators.len() - 1).is_some()
        {
            steps.push(Step::SendCall);
        }
        for (at, call) in world.calls.iter().enumerate() {
            if !world.windows[call.window].is_stalled {
                steps.push(Step::RunCall(at));
            }
        }
    }

    fn add_wishes(&self, world: &World, steps: &mut Vec<Step>) {
        if world.serving().is_none_or(|one| one.is_stalled) {
            return;
        }
        for (at, window) in world.windows.iter().enumerate() {
            steps.extend([Step::Take(at), Step::Stop(at), Step::Restart(at)]);
            steps.push(Step::SwitchAutoStart(at, !window.auto_start));
            if self.follows && window.is_open && world.focused != Some(at) {
                steps.push(Step::Focus(at));
            }
        }
        if world.coordinators.len() == 1 && world.coordinators[0].has_lock {
            steps.push(Step::Replace);
        }
    }

    /// What ends a fault, and costs nothing.
    fn add_repairs(&self, world: &World, steps: &mut Vec<Step>) {
        for (at, one) in world.coordinators.iter().enumerate() {
            if one.is_stalled {
                // The agents kill it when it does not answer.
                steps.extend([Step::StallCoordinator(at, false), Step::KillCoordinator(at)]);
            } else if one.is_replaced {
                steps.push(Step::Retire);
            }
        }
        for (at, window) in world.windows.iter().enumerate() {
            if window.is_stalled {
                steps.push(Step::StallWindow(at, false));
            }
            if world.has_late(at) {
                steps.push(Step::DeliverLate(at));
            }
        }
        if world.disk.is_full {
            steps.push(Step::FillDisk(false));
        }
    }

    fn add_faults(&self, world: &World, steps: &mut Vec<Step>) {
        for (at, one) in world.coordinators.iter().enumerate() {
            if !one.is_stalled {
                steps.extend([Step::KillCoordinator(at), Step::StallCoordinator(at, true)]);
            }
        }
        for (at, window) in world.windows.iter().enumerate() {
            if window.is_open && !window.is_stalled {
                steps.extend([Step::KillWindow(at), Step::StallWindow(at, true)]);
                if window.link.number().is_some() {
                    steps.push(Step::BreakConnection(at));
                } else if !world.coordinators.is_empty() && !world.coordinators[0].is_stalled {
                    steps.push(Step::Register { window: at, coordinator: 0, twice: true });
                }
            }
        }
        steps.extend([Step::DeleteFolder, Step::EmptyState, Step::SetClockBack]);
        if !world.disk.is_full {
            steps.push(Step::FillDisk(true));
        }
    }

    fn apply(&self, world: &mut World, step: Step) {
        let serving = world.coordinators.len().saturating_sub(1);
        match step {
            Step::Take(_)
            | Step::Stop(_)
            | Step::Restart(_)
            | Step::SwitchAutoStart(..)
            | Step::Focus(_)
            | Step::Replace => world.n_wishes += 1,
            Step::KillCoordinator(at) if world.coordinators[at].is_stalled => {}
            Step::KillCoordinator(_)
            | Step::StallCoordinator(_, true)
            | Step::KillWindow(_)
            | Step::StallWindow(_, true)
            | Step::BreakConnection(_)
            | Step::DeleteFolder
            | Step::EmptyState
            | Step::FillDisk(true)
            | Step::SetClockBack
            | Step::Register { twice: true, .. } => world.n_faults += 1,
            _ => {}
        }
        match step {
            Step::Tick => world.tick(self),
            Step::Start { by_agent } => world.start(self, by_agent),
            Step::Save(at) => world.save(at),
            Step::Open(window) => world.open(window),
            Step::Register { window, coordinator, twice } => world.register(self, window, coordinator, twice),
            Step::DeliverLate(window) => world.deliver_late(self, window),
            Step::ReadAnswer(window) => world.read_answer(self, window),
            Step::Hear(window) => world.hear(self, window),
            Step::ReadBeat(window) => world.read_beat(self, window),
            Step::SendCall => world.send_call(),
            Step::RunCall(at) => world.run_call(self, at),
            Step::Take(window) => world.wish(self, serving, Input::Take(id(window))),
            Step::Stop(window) => world.wish(self, serving, Input::Stop(id(window))),
            Step::Restart(window) => world.wish(self, serving, Input::Restart(id(window))),
            Step::SwitchAutoStart(window, on) => {
                world.wish(self, serving, Input::SetAutoStart(id(window), on))
            }
            Step::Focus(window) => world.focused = Some(window),
            Step::Replace => world.replace(self),
            // The older one is the first.
            Step::Retire => world.end(0),
            Step::KillCoordinator(at) => world.end(at),
            Step::StallCoordinator(at, is_stalled) => world.coordinators[at].is_stalled = is_stalled,
            Step::KillWindow(window) => world.close(self, window),
            Step::StallWindow(window, is_stalled) => world.windows[window].is_stalled = is_stalled,
            Step::BreakConnection(window) => world.break_link(self, window),
            Step::DeleteFolder => world.lose(true),
            Step::EmptyState => world.lose(false),
            Step::FillDisk(is_full) => world.disk.is_full = is_full,
            Step::SetClockBack => world.set_clock_back(),
        }
    }
}
