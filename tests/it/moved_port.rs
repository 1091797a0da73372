//! A port that the user chose stays the port, whatever is lost.

use baton_tests::process::{free_port, kill9};
use baton_tests::world::{World, live_name};

/// Where a coordinator is moved to: below the ports of all test worlds.
const PORTS: std::ops::Range<u16> = 17_000..18_000;

#[test]
fn a_moved_port_outlives_the_file_and_the_coordinator_that_knew_it() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let moved = free_port(PORTS).expect("one of a thousand ports is free");
    world.baton_ok(&["port", &moved.to_string()]);
    let before = world.await_status("it is on the new port", |status| status.port == moved);
    std::fs::remove_file(world.home().join("state.json")).expect("the file is there");
    kill9(before.pid);
    let after = world.await_status("a successor", |status| {
        status.generation > before.generation && live_name(status) == Some("shop")
    });
    assert_eq!(after.port, moved, "clients have stored it");
}

#[test]
fn a_port_that_cannot_be_remembered_is_not_moved_to() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let moved = free_port(PORTS).expect("one of a thousand ports is free");
    std::fs::remove_file(world.home().join("coordinator.lock")).expect("the file is there");
    let printed = world.baton(&["port", &moved.to_string()]);
    let after = world.await_status("a successor", |status| {
        status.generation > before.generation && live_name(status) == Some("shop")
    });
    // It is the successor that was asked, when that came first.
    let expected = if printed.code == 0 { moved } else { before.port };
    assert_eq!(after.port, expected, "{printed:?}");
    assert!(printed.code == 0 || printed.err.contains("the port did not change"), "{printed:?}");
}
