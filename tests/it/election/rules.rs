//! Auto-start, the focus, a debug session and the lease on real processes (R8, R9, R11, R12).

use std::time::{Duration, Instant};

use baton_proto::control::{Status, WindowState};
use baton_proto::discovery::{KEY_LEN, Role, Secret};
use baton_tests::client::ClientKind;
use baton_tests::elder::Elder;
use baton_tests::process::{await_some, kill9, signal};
use baton_tests::raw::Request;
use baton_tests::story::configurations;
use baton_tests::world::{PATIENCE, World, find, live_name, state_of};
use rustix::process::Signal;
use serde_json::json;

/// Longer than a focus must last (1 s) and than the next heartbeat takes (1.5 s).
const LONGER_THAN_A_FOCUS: Duration = Duration::from_secs(4);

/// What the panel of an editor and the status bar do (R8).
fn switch_auto_start(world: &World, name: &str, on: bool) {
    let bytes = std::fs::read(world.home().join("secret")).expect("the secret is there");
    let secret = Secret::new(<[u8; KEY_LEN]>::try_from(bytes).expect("its length"));
    let status = world.status().expect("it runs");
    let id = &find(&status, name).expect("it is there").id;
    let body = json!({ "auto_start": on }).to_string();
    let mut request = Request::post(world.port(), "/", secret.token(Role::Member).expose(), body);
    request.line = format!("PATCH /v1/windows/{id}");
    let length = request.body.len().to_string();
    let answer = request.with("Content-Length", &length).send(world.port());
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn await_state(world: &World, name: &str, state: WindowState) -> Status {
    world.await_status(&format!("{name} is {state:?}"), |status| state_of(status, name) == Some(state))
}

#[test]
fn r8_auto_start_is_switched_while_windows_run() {
    let mut world = World::new();
    world.window_with("shop", super::off());
    await_state(&world, "shop", WindowState::Off);
    switch_auto_start(&world, "shop", true);
    world.await_live("shop");
    world.window_with("weather", super::off());
    switch_auto_start(&world, "weather", true);
    let status = await_state(&world, "weather", WindowState::Standby);
    assert_eq!(live_name(&status), Some("shop"), "it yields (R2)");
    switch_auto_start(&world, "weather", false);
    let status = await_state(&world, "weather", WindowState::Off);
    assert_eq!(live_name(&status), Some("shop"));
    switch_auto_start(&world, "shop", false);
    let status = world.status().expect("it runs");
    assert_eq!(live_name(&status), Some("shop"), "the live one stays");
    // What was switched outlasts the coordinator, because the agents know it.
    kill9(status.pid);
    let status = world.await_status("a successor", |after| {
        after.pid != status.pid && after.windows.len() == 2 && live_name(after) == Some("shop")
    });
    assert_eq!(state_of(&status, "weather"), Some(WindowState::Off));
    world.take("weather");
    await_state(&world, "shop", WindowState::Off);
}

#[test]
fn r9_another_window_waits_for_a_whole_lease_while_the_last_one_may_live() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    world.window("weather");
    let mut client = world.client(ClientKind::Sdk1);
    let agent = world.agent_pid("shop");
    signal(agent, Signal::STOP);
    kill9(before.pid);
    let successor = world.await_status("a successor", |status| status.generation > before.generation);
    let since = Instant::now();
    assert_eq!(successor.live, None, "the place is held: {successor:?}");
    let after = world.await_live("weather");
    // Asked for a moment after it began to count.
    assert!(since.elapsed() > Duration::from_secs(4), "after {:?} only", since.elapsed());
    assert!(after.term > before.term);
    signal(agent, Signal::CONT);
    let status = await_state(&world, "shop", WindowState::Standby);
    assert_eq!((live_name(&status), status.term), (Some("weather"), after.term));
    assert_eq!(configurations(&mut client), ["warmest"]);
    client.close();
}

#[test]
fn r9_a_window_proven_dead_is_not_waited_for() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    world.window("weather");
    // First its supervisor, so that nobody starts the agent again.
    let (supervisor, agent) = (world.supervisor_pid("shop"), world.agent_pid("shop"));
    for pid in [before.pid, supervisor, agent] {
        kill9(pid);
    }
    let since = Instant::now();
    let after = world.await_live("weather");
    assert!(since.elapsed() < Duration::from_secs(5), "no lease passes: {:?}", since.elapsed());
    assert!(after.term > before.term && after.generation > before.generation);
}

#[test]
fn r11_r12_the_place_follows_the_focus_but_not_away_from_debugging() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let elder = Elder::join(&world, "elder");
    world.await_status("it registers", |status| find(status, "elder").is_some());
    let mut client = world.client(ClientKind::Sdk1);
    let has_moved = || world.status().filter(|status| status.term != before.term);
    elder.set_focused(true);
    assert_eq!(await_some(LONGER_THAN_A_FOCUS, has_moved), None, "not without the setting");
    elder.set_focused(false);

    client.expect("success", "set_breakpoint", json!({ "file_path": "main.py", "line_number": 8 }));
    client.expect("stopped", "start_debugging", json!({ "configuration_name": "bill" }));
    world.await_status("the session is told", |status| {
        find(status, "shop").is_some_and(|window| !window.debug_sessions.is_empty())
    });
    world.baton_ok(&["settings", "follow_focus", "true"]);
    elder.set_focused(true);
    assert_eq!(await_some(LONGER_THAN_A_FOCUS, has_moved), None, "a client debugs there (R11)");
    client.expect("success", "stop_debugging", json!({}));
    // Focused all the time: now nothing keeps the place.
    world.await_live("elder");
    assert!(await_some(PATIENCE, || (elder.state() == "live").then_some(())).is_some());
    client.close();
}
