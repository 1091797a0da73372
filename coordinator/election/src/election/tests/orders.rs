//! Every ordering of a few events, and random sequences of many.
//!
//! What must hold after every step stands in [`World::after`]: terms grow, at most one window is live, no rule
//! makes a window live that is off, and the timer never spins.

use proptest::prelude::*;

use super::*;

/// Something that happens to one of three windows, or to all.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Open(usize),
    OpenOff(usize),
    Kill(usize),
    /// The connection breaks and the same agent registers again, with all it knows.
    Reconnect(usize),
    Take(usize),
    Stop(usize),
    Restart(usize),
    AutoStart(usize, bool),
    Focus(usize),
    Debug(usize, bool),
    Hang(usize, bool),
    /// Old messages of the window arrive again.
    Replay(usize),
    FollowFocus(bool),
    Pass(u64),
    Stall(u64),
    /// The coordinator is killed; its file is as it should be, or lost.
    Coordinator {
        file: bool,
    },
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn is_there(world: &World, window: usize) -> bool {
    world.agents.get(&id(NAMES[window])).is_some_and(|agent| agent.registered)
}

/// Applies an event when it makes sense: a window that is not there cannot be taken.
fn apply(world: &mut World, event: Event) {
    match event {
        Event::Open(window) => open(world, window, true),
        Event::OpenOff(window) => open(world, window, false),
        Event::FollowFocus(follow_focus) => {
            let settings = Settings { follow_focus, ..Settings::default() };
            world.input(Input::SetSettings(settings)).unwrap();
        }
        Event::Pass(ms) => {
            world.pass(ms);
        }
        Event::Stall(ms) => {
            let before = world.show();
            world.now += Duration::from_millis(2_000 + ms);
            world.tick();
            assert_eq!(world.show(), before, "a stall moved something");
        }
        Event::Coordinator { file } => {
            if !file {
                // Only the agents know of earlier terms now; what they report must be exceeded all the same.
                world.highest = Term::default();
            }
            world.restart_coordinator(|next| {
                if !file {
                    (next.previous, next.vacated, next.generation) = (None, None, 1);
                }
            });
        }
        Event::Reconnect(window) if world.agents.contains_key(&id(NAMES[window])) => {
            if is_there(world, window) {
                world.kill(NAMES[window]);
            }
            world.register(NAMES[window]);
        }
        Event::Replay(window) if world.agents.contains_key(&id(NAMES[window])) => {
            replay(world, NAMES[window])
        }
        Event::Kill(window)
        | Event::Take(window)
        | Event::Stop(window)
        | Event::Restart(window)
        | Event::AutoStart(window, _)
        | Event::Focus(window)
        | Event::Debug(window, _)
        | Event::Hang(window, _)
            if is_there(world, window) =>
        {
            apply_to(world, NAMES[window], event);
        }
        _ => {}
    }
}

fn apply_to(world: &mut World, window: &str, event: Event) {
    match event {
        Event::Kill(_) => world.kill(window),
        Event::Take(_) => world.take(window),
        Event::Stop(_) => stop(world, window),
        Event::Restart(_) => world.restart(window),
        Event::AutoStart(_, on) => world.auto_start(window, on),
        Event::Focus(_) => {
            let others = NAMES.iter().position(|name| *name != window && is_focused(world, name));
            if let Some(other) = others.filter(|other| is_there(world, *other)) {
                world.focus(NAMES[other], false);
            }
            world.focus(window, true)
        }
        Event::Debug(_, on) => world.debug(window, if on { &["s"] } else { &[] }),
        Event::Hang(_, hangs) => world.hang(window, hangs),
        _ => world,
    };
}

fn is_focused(world: &World, window: &str) -> bool {
    world.agents.get(&id(window)).is_some_and(|agent| agent.focused)
}

fn open(world: &mut World, window: usize, auto_start: bool) {
    let known = world.agents.get(&id(NAMES[window])).cloned().unwrap_or_default();
    let agent = Agent { auto_start, beats: true, incarnation: known.incarnation, ..Agent::default() };
    world.agents.insert(id(NAMES[window]), agent);
    world.reopen(NAMES[window]);
}

/// A stop promotes nobody, whatever the state.
fn stop<'a>(world: &'a mut World, window: &str) -> &'a mut World {
    let live_before = world.granted().map(|(live, _)| live);
    world.stop(window);
    let live = world.granted().map(|(live, _)| live);
    let expected = live_before.filter(|live| live.as_str() != window);
    assert_eq!(live, expected, "a stop changed who is live otherwise");
    world
}

/// An old registration, heartbeat and leave of the window come once more; none of them changes anything.
fn replay(world: &mut World, window: &str) {
    let before = world.show();
    let mut old = world.registration(window);
    let Some(incarnation) = old.incarnation.checked_sub(1) else { return };
    old.incarnation = incarnation;
    let beat = Heartbeat {
        incarnation,
        seq: 1,
        focused: true,
        debug_sessions: Vec::new(),
        folders: None,
        name: None,
        tallies: Vec::new(),
        breakpoints: Vec::new(),
        more_breakpoints: 0,
    };
    let known = world.election.registered(&id(window)).is_ok();
    let mut inputs = vec![Input::Heartbeat(id(window), beat), Input::Leave(id(window), incarnation)];
    // Of a window long forgotten, the coordinator cannot know that it is old.
    inputs.extend(known.then(|| Input::Register(id(window), Box::new(old))));
    for input in inputs {
        let _ = world.input(input);
    }
    assert_eq!(world.show(), before);
}

/// What was applied, and the transcript.
fn run(events: &[Event]) -> (World, Vec<String>) {
    let mut world = World::new();
    for event in events {
        apply(&mut world, *event);
    }
    let transcript = world.transcript.clone();
    (world, transcript)
}

/// Calls `check` with every ordering of `events`.
fn each_order(events: &mut [Event], from: usize, check: &mut impl FnMut(&[Event])) {
    if from == events.len() {
        return check(events);
    }
    for next in from..events.len() {
        events.swap(from, next);
        each_order(events, from + 1, check);
        events.swap(from, next);
    }
}

#[test]
fn every_order_of_a_few_events_keeps_the_invariants_and_is_deterministic() {
    use Event::*;
    let sets: [[Event; 6]; 8] = [
        [Open(0), Open(1), Take(1), Kill(0), Pass(6_000), Stop(1)],
        [Open(0), OpenOff(1), Take(1), Kill(1), Pass(5_000), AutoStart(1, true)],
        [Open(0), Open(1), Restart(0), Reconnect(0), Pass(3_000), Take(1)],
        [Open(0), Open(1), Coordinator { file: true }, Reconnect(0), Reconnect(1), Take(1)],
        [Open(0), Open(1), Coordinator { file: false }, Reconnect(0), Reconnect(1), Pass(7_000)],
        [FollowFocus(true), Open(0), Open(1), Focus(1), Debug(0, true), Pass(1_500)],
        [Open(0), Open(1), Hang(0, true), Pass(4_000), Pass(3_000), Stall(500)],
        [Open(0), Open(1), Open(2), Stop(0), Kill(1), Reconnect(1)],
    ];
    for mut events in sets {
        let mut n_orders = 0;
        each_order(&mut events, 0, &mut |order| {
            let (first, first_said) = run(order);
            let (second, second_said) = run(order);
            assert_eq!((first.show(), first_said), (second.show(), second_said), "{order:?}");
            n_orders += 1;
        });
        assert_eq!(n_orders, 720);
    }
}

#[test]
fn two_takeovers_in_any_order_leave_the_last_one_live() {
    let mut events = [Event::Take(0), Event::Take(1), Event::Take(2), Event::Debug(0, true)];
    each_order(&mut events, 0, &mut |order| {
        let mut world = World::new();
        for window in NAMES {
            world.open(window);
        }
        for event in order {
            apply(&mut world, *event);
        }
        let last = order.iter().rev().find_map(|event| match event {
            Event::Take(window) => Some(id(NAMES[*window])),
            _ => None,
        });
        assert_eq!(world.granted().map(|(live, _)| live), last, "{order:?}");
    });
}

fn event() -> impl Strategy<Value = Event> {
    let window = 0..NAMES.len();
    prop_oneof![
        3 => window.clone().prop_map(Event::Open),
        1 => window.clone().prop_map(Event::OpenOff),
        2 => window.clone().prop_map(Event::Kill),
        3 => window.clone().prop_map(Event::Reconnect),
        2 => window.clone().prop_map(Event::Take),
        1 => window.clone().prop_map(Event::Stop),
        1 => window.clone().prop_map(Event::Restart),
        1 => (window.clone(), any::<bool>()).prop_map(|(window, on)| Event::AutoStart(window, on)),
        2 => window.clone().prop_map(Event::Focus),
        1 => (window.clone(), any::<bool>()).prop_map(|(window, on)| Event::Debug(window, on)),
        1 => (window.clone(), any::<bool>()).prop_map(|(window, on)| Event::Hang(window, on)),
        1 => window.prop_map(Event::Replay),
        1 => any::<bool>().prop_map(Event::FollowFocus),
        4 => (0..7_000_u64).prop_map(Event::Pass),
        1 => (0..60_000_u64).prop_map(Event::Stall),
        1 => any::<bool>().prop_map(|file| Event::Coordinator { file }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_events_keep_the_invariants(events in prop::collection::vec(event(), 1..60)) {
        let (mut world, said) = run(&events);
        let (again, said_again) = run(&events);
        prop_assert_eq!(world.show(), again.show());
        prop_assert_eq!(said, said_again);
        // Left alone, it settles: nothing is awaited for ever, and a window that may start is not passed over
        // unless the user emptied the place.
        for window in NAMES {
            if is_there(&world, NAMES.iter().position(|name| *name == window).unwrap_or_default()) {
                world.hang(window, false);
            }
        }
        world.pass(20_000);
        let roster = world.election.roster(world.now, 0);
        prop_assert!(roster.awaiting.is_none());
        let standby = roster.windows.values().any(|window| window.state == WindowState::Standby);
        prop_assert!(!standby || roster.live.is_some() || world.election.vacated().is_some(), "{}", world.show());
    }
}
