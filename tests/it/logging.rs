//! What is logged, and in which form, changes while everything runs; one ID leads from a client's call to what was done
//! for it.

use std::time::Duration;

use baton_tests::client::ClientKind;
use baton_tests::process::await_some;
use baton_tests::world::World;
use serde_json::{Value, json};

/// Longer than a notice to a window takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lines of both logs that `baton logs` finds.
fn lines(world: &World, arguments: &[&str]) -> Vec<String> {
    let printed = world.baton_ok(&[&["logs", "-n", "1000000"], arguments].concat());
    printed.lines().map(str::to_owned).collect()
}

/// All lines of the coordinator and of the window.
fn all_lines(world: &World) -> Vec<String> {
    [lines(world, &[]), lines(world, &["--agents"])].concat()
}

/// What is logged has changed, and both processes say so.
fn set_level(world: &World, filter: &str) {
    let n_changed =
        || all_lines(world).iter().filter(|line| line.contains("what is logged has changed")).count();
    let before = n_changed();
    assert_eq!(world.baton_ok(&["log-level", filter]), filter);
    let changed = await_some(PATIENCE, || (n_changed() >= before + 2).then_some(()));
    assert!(changed.is_some(), "{}", world.logs());
}

/// The ID of the last call of a tool, as the audit has it.
fn call_of(world: &World, tool: &str) -> String {
    let audit = lines(world, &["--audit"]);
    let line = audit.iter().rfind(|line| line.contains(&format!("tool={tool}"))).expect("it is audited");
    let (_, call) = line.split_once(" call=").unwrap_or_else(|| panic!("no call in {line}"));
    call.split(' ').next().expect("a word").to_owned()
}

#[test]
fn what_is_logged_changes_at_once_in_all_processes() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut client = world.client(ClientKind::Python1);
    let mut call = || client.expect("success", "get_breakpoints", json!({}));
    let n_debug = |what: &str| {
        all_lines(&world).iter().filter(|line| line.contains(" DEBUG ") && line.contains(what)).count()
    };
    assert_eq!(world.baton_ok(&["log-level"]), "default");
    call();
    assert_eq!(n_debug(""), 0, "{}", world.logs());
    set_level(&world, "baton_edge=debug");
    call();
    let logged = await_some(PATIENCE, || (n_debug("answered a call") == 1).then_some(()));
    assert!(logged.is_some() && n_debug("") == n_debug("baton_edge"), "{}", world.logs());
    set_level(&world, "default");
    let before = n_debug("");
    call();
    assert_eq!(n_debug(""), before, "{}", world.logs());

    let wrong = world.baton(&["log-level", "debgu"]);
    assert_eq!((wrong.code, wrong.err.contains("\"debgu\" is neither a level")), (64, true), "{wrong:?}");
    let bodies = world.baton(&["settings", "log", "trace,baton_bodies=trace"]);
    assert!(bodies.code != 0 && bodies.err.contains("BATON_LOG=baton_bodies=trace"), "{bodies:?}");
    assert_eq!(world.baton_ok(&["log-level"]), "default", "nothing wrong is taken");
    client.close();
}

#[test]
fn one_id_leads_from_a_call_to_what_was_done_for_it_in_either_form() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let agent = world.status().expect("it runs").windows[0].pid;
    set_level(&world, "debug");
    let mut client = world.client(ClientKind::Python1);
    client.expect("success", "set_breakpoint", json!({ "file_path": "main.py", "line_number": 8 }));
    let started = client.expect("stopped", "start_debugging", json!({ "configuration_name": "bill" }));
    let frame = started["stop_event_data"]["call_stack"][0]["frame_id"].clone();
    let evaluate = json!({ "frame_id": frame, "expression": "1 + 1" });
    client.expect("success", "evaluate_expression", evaluate.clone());
    let has = |found: &[String], all: &[&str]| {
        let missing = all.iter().find(|part| !found.iter().any(|line| line.contains(**part)));
        assert!(missing.is_none(), "{missing:?} is not in {found:#?}");
    };
    let answered = |call: &str| {
        let found = || Some(lines(&world, &["--call", call])).filter(|found| found.len() >= 4);
        await_some(PATIENCE, found).unwrap_or_else(|| panic!("{call}: {}", world.logs()))
    };
    let first = call_of(&world, "evaluate_expression");
    has(
        &answered(&first),
        &[
            "passes a call on",
            "command=\"evaluate\"",
            "baton_audit: tool=evaluate_expression",
            "answered a call",
        ],
    );

    world.baton_ok(&["settings", "log_format", "json"]);
    let is_json = || lines(&world, &["--agents"]).pop().filter(|line| line.starts_with('{'));
    let in_json = await_some(PATIENCE, || {
        client.expect("success", "evaluate_expression", evaluate.clone());
        is_json()
    });
    assert!(in_json.is_some(), "{}", world.logs());
    // The form may have changed in the middle of the last one.
    client.expect("success", "evaluate_expression", evaluate.clone());
    let audit: Value =
        serde_json::from_str(lines(&world, &["--audit"]).last().expect("a line")).expect("JSON");
    assert_eq!((&audit["pid"], &audit["target"]), (&json!(agent), &json!("baton_audit")));
    let second = audit["fields"]["call"].as_str().expect("the call");
    let found = answered(second);
    has(&found, &["passes a call on", "\"command\":\"evaluate\"", "baton_audit", "answered a call"]);
    assert!(found.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{found:#?}");
    let of_agent = lines(&world, &["--pid", &agent.to_string()]);
    let spans = of_agent.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let spans: Vec<Value> = spans.map(|line| line["spans"][0]["tool"].clone()).collect();
    assert!(spans.contains(&json!("evaluate_expression")), "{of_agent:#?}");
    let text = format!("Z {agent} ");
    let is_of_agent =
        |line: &String| line.contains(&text) || line.starts_with(&format!("{{\"pid\":{agent},"));
    assert!(
        of_agent.iter().all(is_of_agent) && of_agent.iter().any(|line| line.contains(&text)),
        "both forms"
    );
    client.expect("success", "stop_debugging", json!({}));
    client.close();
}
