//! The rules of the election on real windows; every ordering of events is tested in the core itself.

mod rules;

use baton_proto::control::{Status, WindowState};
use baton_tests::client::ClientKind;
use baton_tests::process::{is_alive, kill9, signal};
use baton_tests::story::configurations;
use baton_tests::world::{WindowOptions, World, find, state_of};
use rustix::process::Signal;

fn off() -> WindowOptions {
    WindowOptions { no_auto_start: true, ..WindowOptions::default() }
}

fn term(status: &Status) -> (u64, u64) {
    status.term.expect("a live window has a term").into()
}

#[test]
fn r1_r2_the_first_is_live_and_the_second_yields() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let status = world.await_live("shop");
    assert_eq!(state_of(&status, "weather"), Some(WindowState::Standby));
}

#[test]
fn r3_r4_a_window_that_must_not_start_is_live_when_taken_only() {
    let mut world = World::new();
    world.window_with("shop", off());
    let status = world.await_nobody_live();
    assert_eq!(state_of(&status, "shop"), Some(WindowState::Off));
    world.take("shop");
    let first = term(&world.await_live("shop"));
    world.window("weather");
    world.take("weather");
    let status = world.await_live("weather");
    assert!(term(&status) > first, "terms grow: {status:?}");
    assert_eq!(state_of(&status, "shop"), Some(WindowState::Off), "it does not stand by");
}

#[test]
fn r4_a_taken_place_leaves_the_previous_one_standing_by() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    world.take("weather");
    let status = world.await_live("weather");
    assert_eq!(state_of(&status, "shop"), Some(WindowState::Standby));
}

#[test]
fn r5_a_stop_is_a_wish() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    world.baton_ok(&["stop", "shop"]);
    let status = world.await_nobody_live();
    assert_eq!(state_of(&status, "shop"), Some(WindowState::Off));
    assert_eq!(state_of(&status, "weather"), Some(WindowState::Standby), "nobody is promoted");
    world.baton_ok(&["start", "shop"]);
    world.await_live("shop");
}

#[test]
fn r5_a_stop_outlives_the_agent_and_the_coordinator() {
    let mut world = World::new();
    let before = world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["stop", "shop"]);
    let printed = world.baton_ok(&["restart", "shop"]);
    assert_eq!(printed, "shop is restarting and stays off");
    world.await_status("another agent of it", |status| {
        find(status, "shop")
            .is_some_and(|window| window.pid != before.pid && window.state == WindowState::Off)
    });
    let first = world.coordinator_pid();
    kill9(first);
    let status = world.await_status("a successor that knows it", |status| {
        status.pid != first && find(status, "shop").is_some()
    });
    assert_eq!(state_of(&status, "shop"), Some(WindowState::Off));
    world.baton_ok(&["start", "shop"]);
    world.await_live("shop");
}

#[test]
fn r7_a_restarted_window_is_live_again_with_a_new_term() {
    let mut world = World::new();
    let before = world.window("shop");
    let first = term(&world.await_live("shop"));
    world.baton_ok(&["restart", "shop"]);
    let status = world.await_status("the restarted agent is live", |status| {
        find(status, "shop")
            .is_some_and(|window| window.pid != before.pid && window.state == WindowState::Live)
            && status.term.is_some_and(|term| <(u64, u64)>::from(term) > first)
    });
    assert_eq!(find(&status, "shop").expect("it is there").id, before.id, "the window is the same one");
    assert!(!is_alive(before.pid));
}

#[test]
fn r10_a_hung_window_is_suspected_then_evicted_and_runs_nothing_stale() {
    let mut world = World::new();
    world.window("shop");
    let first = term(&world.await_live("shop"));
    world.window("weather");
    let agent = world.agent_pid("shop");
    signal(agent, Signal::STOP);
    let status = world.await_status("it is suspect", |status| {
        find(status, "shop").is_some_and(|window| !window.responsive)
    });
    assert_eq!(state_of(&status, "shop"), Some(WindowState::Live), "a suspect keeps its place");
    let status = world.await_live("weather");
    assert!(term(&status) > first);
    let mut client = world.client(ClientKind::Python1);
    assert_eq!(configurations(&mut client), ["warmest"]);
    signal(agent, Signal::CONT);
    // The resumed one comes back as a standby window and answers nothing of its old term.
    let status = world.await_status("the resumed window is back", |status| {
        find(status, "shop").is_some_and(|window| window.responsive)
    });
    assert_eq!(state_of(&status, "weather"), Some(WindowState::Live));
    assert_eq!(state_of(&status, "shop"), Some(WindowState::Standby));
    assert_eq!(configurations(&mut client), ["warmest"]);
    client.close();
}
