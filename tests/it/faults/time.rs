//! Clocks that jump (F19), and processes that stand still (F20).

use std::path::PathBuf;
use std::time::Duration;

use baton_proto::control::Status;
use baton_tests::client::ClientKind;
use baton_tests::place;
use baton_tests::process::{await_some, kill9, of_home, signal};
use baton_tests::story::configurations;
use baton_tests::world::{PATIENCE, World, find, live_name};
use rustix::process::Signal;

/// Longer than a lease: a window that was to be evicted would have been.
const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(8);

/// A world whose wall clock a file sets.
fn world_with_clock() -> (World, PathBuf) {
    let world = World::new();
    let clock = world.scratch().join("clock");
    std::fs::write(&clock, "+0").expect("a file");
    let world = world
        .with_env("LD_PRELOAD", place::faketime().to_str().expect("a path of text"))
        .with_env("FAKETIME_TIMESTAMP_FILE", clock.to_str().expect("a path of text"))
        .with_env("FAKETIME_NO_CACHE", "1")
        .with_env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    (world, clock)
}

/// What the coordinator's own log says of the time, to know that the clock is another one.
fn logged_hours(world: &World) -> Vec<String> {
    let logs = world.logs();
    let stamps = logs.lines().filter(|line| line.starts_with("20") && line.contains('T'));
    let mut hours: Vec<_> = stamps.filter_map(|line| line.get(..13).map(str::to_owned)).collect();
    hours.sort();
    hours.dedup();
    hours
}

#[test]
fn f19_a_wall_clock_that_jumps_changes_nothing() {
    let (mut world, clock) = world_with_clock();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let mut client = world.client(ClientKind::Sdk1);
    assert_eq!(configurations(&mut client)[0], "bill");
    let before = world.await_live("shop");
    for jump in ["+1h", "-1h"] {
        std::fs::write(&clock, jump).expect("a file");
        assert_eq!(configurations(&mut client)[0], "bill", "{jump}");
        let has_changed = || {
            let status = world.status()?;
            let is_same = status.term == before.term && status.pid == before.pid && status.windows.len() == 2;
            (!is_same).then_some(status)
        };
        assert_eq!(await_some(LONGER_THAN_A_LEASE, has_changed), None, "{jump}");
        assert_eq!(configurations(&mut client)[0], "bill", "{jump}");
    }
    client.close();
}

/// What is started while the clock is an hour late takes the place of what was there before.
#[test]
fn f19_a_clock_set_back_between_a_crash_and_the_restart_costs_nothing() {
    let (mut world, clock) = world_with_clock();
    world.window("shop");
    let before = world.await_live("shop");
    let mut client = world.client(ClientKind::Sdk1);
    std::fs::write(&clock, "-1h").expect("a file");
    let agent = world.agent_pid("shop");
    kill9(agent);
    // A call that reaches the dying agent first has an unknown outcome, and is told so.
    world.await_status("its death is noticed", |status| {
        live_name(status).is_none() || find(status, "shop").is_some_and(|window| window.pid != agent)
    });
    assert_eq!(configurations(&mut client)[0], "bill", "the call waits for the next agent");
    let after = world.await_status("another agent of it is live", |status| {
        live_name(status) == Some("shop") && find(status, "shop").is_some_and(|window| window.pid != agent)
    });
    assert_eq!((after.live, after.pid), (before.live, before.pid));
    kill9(after.pid);
    let last = world.await_status("a successor", |status| {
        status.generation > after.generation && live_name(status) == Some("shop")
    });
    assert!(last.term > after.term, "{last:?}");
    assert_eq!(configurations(&mut client)[0], "bill");
    client.close();
    let hours = logged_hours(&world);
    assert!(hours.len() >= 2, "the clock was never set back: {hours:?}");
}

/// xorshift: orders that can be had again.
fn shuffle<T>(items: &mut [T], seed: &mut u64) {
    for last in (1..items.len()).rev() {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        let other = usize::try_from(*seed % (last as u64 + 1)).expect("an index");
        items.swap(last, other);
    }
}

/// A machine that sleeps: everything stands still, and comes back in any order, with pauses between.
#[test]
fn f20_everything_suspended_and_resumed_in_any_order_changes_no_term() {
    const ROUNDS: usize = 2;
    let mut seed = 0x5eed_ba70;
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    for name in ["weather", "robots"] {
        world.window(name);
    }
    let mut client = world.client(ClientKind::Sdk1);
    let before = world.await_live("shop");
    for round in 0..ROUNDS {
        let mut pids: Vec<u32> = of_home(&world.home()).iter().map(|(pid, _)| *pid).collect();
        pids.retain(|pid| *pid != client.pid());
        shuffle(&mut pids, &mut seed);
        pids.iter().for_each(|pid| signal(*pid, Signal::STOP));
        // Longer than it takes to evict a window that does not answer.
        assert!(await_some(LONGER_THAN_A_LEASE, || None::<()>).is_none());
        shuffle(&mut pids, &mut seed);
        for pid in &pids {
            signal(*pid, Signal::CONT);
            // In some rounds at once, in others one after the other.
            let pause = Duration::from_millis(100 * round as u64);
            assert!(await_some(pause, || None::<()>).is_none());
        }
        let all_back = |status: &Status| {
            status.windows.len() == 3 && status.windows.iter().all(|window| window.responsive)
        };
        let after = world.await_status("all windows answer again", all_back);
        assert_eq!((after.term, &after.live), (before.term, &before.live), "round {round}, {pids:?}");
        assert_eq!((after.pid, after.generation), (before.pid, before.generation), "round {round}");
        assert_eq!(configurations(&mut client)[0], "bill", "round {round}");
    }
    let has_changed = || world.status().filter(|status| status.term != before.term);
    assert_eq!(await_some(PATIENCE / 4, has_changed), None, "and none changes later");
    client.close();
}

/// Whoever stood still for longer than a coordinator may be silent has not heard its answer, and it has answered.
#[test]
fn f20_a_window_that_stood_still_ends_no_coordinator() {
    const LONGER_THAN_A_BEAT: Duration = Duration::from_millis(2_200);
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let before = world.await_live("shop");
    let agent = world.agent_pid("weather");
    for round in 0..2 {
        // Its next heartbeat is under way when it stands still, and is answered while it does.
        signal(before.pid, Signal::STOP);
        assert!(await_some(LONGER_THAN_A_BEAT, || None::<()>).is_none());
        signal(agent, Signal::STOP);
        signal(before.pid, Signal::CONT);
        assert!(await_some(LONGER_THAN_A_LEASE, || None::<()>).is_none());
        signal(agent, Signal::CONT);
        let after = world.await_status("it answers again", |status| {
            find(status, "weather").is_some_and(|window| window.responsive)
        });
        assert_eq!((after.pid, after.generation), (before.pid, before.generation), "round {round}");
        assert_eq!(live_name(&after), Some("shop"), "round {round}");
    }
    assert!(!world.logs().contains("the coordinator hung"), "{}", world.logs());
}
