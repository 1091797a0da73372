//! Official MCP clients play the main job, each in one session of its own: nothing they do knows of windows.

mod configured;
mod shown;

use baton_tests::client::{Client, ClientKind};
use baton_tests::process::{self, kill9};
use baton_tests::story::{DEBUGGER_TOOLS, configurations, debug_to_stop, finish, step};
use baton_tests::world::{World, live_name};
use serde_json::json;

/// The whole story for one client.
fn main_job(kind: ClientKind) {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let mut client = world.client(kind);
    assert_eq!(client.ready["protocol"], kind.protocol(), "{}", client.ready);
    assert!(
        client.ready["instructions"].as_str().is_some_and(|text| text.contains("window")),
        "{}",
        client.ready
    );
    let tools = client.list();
    for tool in DEBUGGER_TOOLS.iter().chain(&["list_windows", "activate_window"]) {
        assert!(tools.iter().any(|found| found == tool), "{tool} is not listed: {tools:?}");
    }

    let folder = world.folder("shop");
    let stopped = debug_to_stop(&mut client, "shop", &folder, |_| ());
    let stepped = step(&mut client, &stopped);
    finish(&mut client, &stepped);

    // The user takes another window in the middle: the same session goes on there.
    client.forget_events();
    world.take("weather");
    client.await_list_changed();
    // Nothing is done in a window that the client has not heard of.
    client.expect("error", "set_breakpoint", json!({ "file_path": "main.py", "line_number": 9 }));
    let folder = world.folder("weather");
    let stopped = debug_to_stop(&mut client, "weather", &folder, |_| ());
    step(&mut client, &stopped);

    // The live window goes for good: the call waits until the next one is live.
    world.kill_window("weather");
    assert_eq!(configurations(&mut client), ["bill", "wait", "crash", "gone"]);
    world.await_live("shop");

    // The coordinator goes: its successor answers under the same URL in the same session.
    let before = world.status().expect("it runs");
    kill9(before.pid);
    let after = world.await_status("a successor with the same live window", |status| {
        status.generation > before.generation && live_name(status) == Some("shop")
    });
    assert_ne!(after.pid, before.pid);
    assert_eq!(configurations(&mut client), ["bill", "wait", "crash", "gone"]);
    client.close();
}

#[test]
fn python_of_the_session_era() {
    main_job(ClientKind::Python1);
}

#[test]
fn python_stateless() {
    main_job(ClientKind::Python2);
}

#[test]
fn python_of_both_eras_in_legacy_mode() {
    main_job(ClientKind::Python2Legacy);
}

#[test]
fn typescript_of_the_session_era() {
    main_job(ClientKind::Sdk1);
}

#[test]
fn typescript_stateless() {
    main_job(ClientKind::Client2);
}

#[test]
fn typescript_of_both_eras_in_legacy_mode() {
    main_job(ClientKind::Client2Legacy);
}

/// A client that runs a command: pinned to the window of its folder, and its session outlives the coordinator.
fn over_the_bridge(kind: ClientKind) {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let folder = world.folder("weather");
    let mut client = Client::connect_stdio(&world, kind, &["stdio"], &folder);
    assert_eq!(configurations(&mut client), ["warmest"], "the window of the working directory answers");
    let stopped = debug_to_stop(&mut client, "weather", &folder, |_| ());
    step(&mut client, &stopped);
    client.expect("success", "stop_debugging", json!({}));
    let before = world.status().expect("it runs");
    kill9(before.pid);
    // As soon as there is a successor, whoever has registered with it by then: the folder's window answers.
    world.await_status("a successor", |status| status.generation > before.generation);
    assert_eq!(configurations(&mut client), ["warmest"], "after the coordinator was killed");
    client.close();
}

#[test]
fn the_bridge_with_python_of_the_session_era() {
    over_the_bridge(ClientKind::Python1);
}

#[test]
fn the_bridge_with_python_stateless() {
    over_the_bridge(ClientKind::Python2);
}

#[test]
fn the_bridge_with_typescript_of_the_session_era() {
    over_the_bridge(ClientKind::Sdk1);
}

#[test]
fn the_bridge_with_typescript_stateless() {
    over_the_bridge(ClientKind::Client2);
}

#[test]
fn the_bridge_starts_the_coordinator() {
    let world = World::new();
    let mut client = Client::connect_stdio(&world, ClientKind::Python1, &["stdio"], world.scratch());
    assert!(world.status().is_some());
    let answer = client.expect("error", "get_breakpoints", json!({}));
    assert!(answer["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{answer:#}");
    client.close();
}

#[test]
fn a_client_that_is_killed_leaves_nothing() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut client = world.client(ClientKind::Python2);
    let folder = world.folder("shop");
    let stopped = debug_to_stop(&mut client, "shop", &folder, |_| ());
    process::kill9(client.pid());
    drop(client);
    // Another client finds the window as it was and goes on, once it says that it means a session of another's.
    let mut other = world.client(ClientKind::Sdk1);
    let refused = other.expect("error", "stop_debugging", json!({}));
    assert_eq!(refused["code"], "which_session", "{refused:#}");
    other.expect("success", "stop_debugging", json!({ "session_id": stopped["session_id"] }));
    other.close();
}
