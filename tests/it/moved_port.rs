//! A port that the user chose stays the port, whatever is lost.

use baton_tests::bridge::Bridge;
use baton_tests::process::{await_some, free_port, is_alive, kill9};
use baton_tests::world::{PATIENCE, World, live_name};
use serde_json::json;

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
fn a_bridge_that_outlives_the_folder_starts_the_next_coordinator_on_the_moved_port() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let before = world.coordinator_pid();
    let mut bridge = Bridge::start(&world, world.scratch(), &[]);
    assert_eq!(bridge.code("list_windows", json!({})), "");
    let moved = free_port(PORTS).expect("one of a thousand ports is free");
    world.baton_ok(&["port", &moved.to_string()]);
    // On the connection that it has: nothing makes it look for the coordinator again.
    assert_eq!(bridge.code("list_windows", json!({})), "");
    // The coordinator may be writing in it.
    let is_gone = || (std::fs::remove_dir_all(world.home()).is_ok() || !world.home().exists()).then_some(());
    await_some(PATIENCE, is_gone).expect("a folder of ours can be removed");
    await_some(PATIENCE, || (!is_alive(before)).then_some(())).expect("it notices, and ends");
    bridge.call("list_windows", json!({}));
    let after = world.await_status("a successor", |status| status.pid != before);
    assert_eq!(after.port, moved, "other clients have stored it");
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
