//! What a client sees of windows that come and go.

use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::story::configurations;
use baton_tests::world::{WindowOptions, World};
use serde_json::{Value, json};

fn error_code(content: &Value) -> &str {
    assert_eq!(content["status"], "error", "{content:#}");
    for field in ["message", "hint"] {
        assert!(content[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {content:#}");
    }
    content["code"].as_str().unwrap_or_default()
}

#[test]
fn a_call_waits_for_a_window_and_is_answered_by_it() {
    let mut world = World::new();
    world.baton_ok(&["up"]);
    let mut client = world.client(ClientKind::Python1);
    assert!(client.list().len() >= 13, "tools are listed with no window open");
    let call = client.send_call("get_debugger_configurations", json!({}));
    world.window("shop");
    let answer = client.wait(call).expect("the held call is answered");
    assert_eq!(answer["structuredContent"]["configurations"][0]["name"], "bill", "{answer:#}");
    assert_eq!(answer["_meta"]["baton/window"]["name"], "shop", "{answer:#}");
    client.close();
}

#[test]
fn with_nobody_live_a_call_gets_advice() {
    let mut world = World::new();
    world.window_with("shop", WindowOptions { no_auto_start: true, ..WindowOptions::default() });
    world.baton_ok(&["settings", "hold_calls_ms", "300"]);
    let mut client = world.client(ClientKind::Python2);
    let content = client.call("get_breakpoints", json!({}));
    error_code(&content);
    assert!(content.to_string().contains("baton take"), "the advice names the command: {content:#}");
    client.close();
}

#[test]
fn a_pinned_url_reaches_its_window_only() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let mut pinned = Client::connect(&world, ClientKind::Sdk1, &format!("{}/windows/weather", world.url()));
    let mut free = world.client(ClientKind::Sdk1);
    assert_eq!(configurations(&mut pinned), ["warmest"]);
    assert_eq!(configurations(&mut free)[0], "bill");
    world.take("weather");
    world.take("shop");
    assert_eq!(configurations(&mut pinned), ["warmest"]);
    pinned.close();
    free.close();
}

#[test]
fn a_named_window_needs_the_setting() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let mut client = world.client(ClientKind::Python1);
    let content = client.call("get_debugger_configurations", json!({ "window": "weather" }));
    assert_eq!(error_code(&content), "not_live");
    assert!(content.to_string().contains("weather"), "{content:#}");
    let content = client.call("get_debugger_configurations", json!({ "window": "shop" }));
    assert_eq!(content["status"], "success", "naming the live one is fine: {content:#}");
    world.baton_ok(&["settings", "routing", "any"]);
    let content = client.call("get_debugger_configurations", json!({ "window": "weather" }));
    assert_eq!(content["configurations"][0]["name"], "warmest", "{content:#}");
    client.close();
}

#[test]
fn unknown_and_ambiguous_windows_are_told() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["settings", "routing", "any"]);
    let mut client = world.client(ClientKind::Python1);
    let content = client.call("get_breakpoints", json!({ "window": "nowhere" }));
    assert_eq!(error_code(&content), "unknown_window");
    assert!(content.to_string().contains("shop"), "the windows there are: {content:#}");
    // Two more windows with one and the same name.
    let other = world.scratch().join("twin");
    place::copy_folder(&place::project("robots"), &other);
    world.window("robots");
    let mut twin = world.baton_command(&["window"]);
    let mut twin = twin.arg(&other).args(["--name", "robots"]).spawn().expect("baton starts");
    world.await_status("both twins", |status| {
        status.windows.iter().filter(|window| window.name == "robots").count() == 2
    });
    let content = client.call("get_breakpoints", json!({ "window": "robots" }));
    assert_eq!(error_code(&content), "ambiguous_window");
    assert_eq!(world.baton(&["take", "robots"]).out, "", "an ambiguous take does nothing");
    assert_ne!(world.baton(&["take", "robots"]).code, 0);
    world.await_live("shop");
    baton_tests::process::signal(twin.id(), rustix::process::Signal::TERM);
    twin.wait().expect("the twin ends");
    client.close();
}

#[test]
fn an_ai_sees_windows_and_moves_the_place_only_when_allowed() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let mut client = world.client(ClientKind::Python2);
    let listed = client.expect("success", "list_windows", json!({})).to_string();
    assert!(listed.contains("shop") && listed.contains("weather"), "{listed}");
    let content = client.call("activate_window", json!({ "window": "weather" }));
    error_code(&content);
    world.await_live("shop");
    world.baton_ok(&["settings", "ai_handover", "never"]);
    let content = client.call("activate_window", json!({ "window": "weather" }));
    error_code(&content);
    world.await_live("shop");
    world.baton_ok(&["settings", "ai_handover", "always"]);
    client.expect("success", "activate_window", json!({ "window": "weather" }));
    world.await_live("weather");
    client.close();
}

#[test]
fn a_cancelled_wait_ends_and_the_program_runs_on() {
    for kind in [ClientKind::Python1, ClientKind::Python2, ClientKind::Client2] {
        let mut world = World::new();
        world.window("shop");
        world.await_live("shop");
        let mut client = world.client(kind);
        let call = client.send_call("start_debugging", json!({ "configuration_name": "wait" }));
        world.await_status("the session runs", |status| {
            status.windows.iter().any(|window| !window.debug_sessions.is_empty())
        });
        client.cancel(call);
        // Either the client gave up by itself, or it got the answer that the specification asks for.
        if let Ok(answer) = client.wait(call) {
            assert_eq!(answer["structuredContent"]["status"], "interrupted", "{answer:#}");
        }
        let status = world.status().expect("it runs");
        assert!(
            status.windows.iter().any(|window| !window.debug_sessions.is_empty()),
            "{kind:?}: it runs on"
        );
        client.expect("success", "stop_debugging", json!({}));
        client.close();
    }
}

#[test]
fn a_stop_by_the_user_interrupts_waits() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut client = world.client(ClientKind::Sdk1);
    let call = client.send_call("start_debugging", json!({ "configuration_name": "wait" }));
    world.await_status("the session runs", |status| {
        status.windows.iter().any(|window| !window.debug_sessions.is_empty())
    });
    world.baton_ok(&["stop", "shop"]);
    let answer = client.wait(call).expect("the wait is answered");
    assert_eq!(answer["structuredContent"]["status"], "interrupted", "{answer:#}");
    client.close();
}
