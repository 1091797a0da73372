//! Auto-start and the end of the live window on real processes (R8, R9). What takes a whole lease (R9) is tested in
//! real windows (`tests/vscode/rules.test.mjs`) and in the simulation; so is the focus (R11, R12), in real windows.

use std::time::{Duration, Instant};

use baton_proto::control::{Status, WindowState};
use baton_proto::discovery::{KEY_LEN, Role, Secret};
use baton_tests::process::kill9;
use baton_tests::raw::Request;
use baton_tests::world::{World, find, live_name, state_of};
use serde_json::json;

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
