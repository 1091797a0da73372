//! Windows are restarted and killed in the middle of calls: every answer is compared with what was done.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use baton_tests::client::ClientKind;
use baton_tests::place;
use baton_tests::process::{await_some, kill9_if_there, signal};
use baton_tests::raw::{Answer, KeepAlive, Request};
use baton_tests::world::{PATIENCE, World, find, live_name};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Clients at once.
const N_CLIENTS: usize = 4;

/// What a client was told of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    /// That it was done.
    Done,
    /// That nobody knows.
    Unknown,
    /// Anything else: it may be repeated.
    NotRun,
}

/// Adds the line `text` to the file of a client.
fn edit(client: usize, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": text, "method": "tools/call", "params": {
        "name": "lcp_apply_edit",
        "arguments": {
            "file_path": format!("notes-{client}.txt"),
            "edits": [{ "start_line": 1, "end_line": 0, "new_text": format!("{text}\n") }],
        },
    }})
}

fn told(answer: Option<&Answer>) -> Told {
    let Some(answer) = answer else { return Told::Unknown };
    let message: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let result = &message["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    match result["isError"] {
        _ if text.contains("outcome_unknown") => {
            assert!(!text.to_lowercase().contains("try again"), "{text}");
            Told::Unknown
        }
        Value::Bool(false) => Told::Done,
        _ => Told::NotRun,
    }
}

/// Edits of one client until it is over: what it was told of each.
fn edits(
    world: &World,
    (path, client): (&str, usize),
    token: &str,
    is_over: &AtomicBool,
) -> Vec<(String, Told, String)> {
    let mut connection = KeepAlive::new(world.port());
    let mut heard = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let text = format!("call-{client}-{}", heard.len());
        let request = Request::post(world.port(), path, token, edit(client, &text).to_string())
            .with("MCP-Protocol-Version", "2025-11-25");
        let answer = connection.send(&request);
        let body = answer.as_ref().map(|answer| answer.body.clone()).unwrap_or_default();
        heard.push((text, told(answer.as_ref()), body));
    }
    heard
}

/// How often each line is in the file.
fn effects(folder: &Path, client: usize) -> BTreeMap<String, usize> {
    let text =
        std::fs::read_to_string(folder.join(format!("notes-{client}.txt"))).expect("the file is there");
    let mut counts = BTreeMap::new();
    text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}

/// Breaks `world` in the middle of edits, and compares what was told with what was done; counts what was told.
fn compare(world: &World, path: &str, breaking: impl FnOnce(&World)) -> BTreeMap<Told, usize> {
    let folder = world.folder("shop");
    for client in 0..N_CLIENTS {
        std::fs::write(folder.join(format!("notes-{client}.txt")), "end\n").expect("the folder is there");
    }
    let (token, is_over) = (world.token(), AtomicBool::new(false));
    let heard: Vec<_> = std::thread::scope(|scope| {
        let (token, is_over) = (&token, &is_over);
        let clients: Vec<_> = (0..N_CLIENTS)
            .map(|client| scope.spawn(move || edits(world, (path, client), token, is_over)))
            .collect();
        let broken = catch_unwind(AssertUnwindSafe(|| breaking(world)));
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = broken {
            resume_unwind(panic);
        }
        clients.into_iter().map(|client| client.join().expect("a client goes on to its end")).collect()
    });
    let mut counts = BTreeMap::new();
    for (client, heard) in heard.into_iter().enumerate() {
        let effects = effects(&folder, client);
        for (text, told, body) in heard {
            *counts.entry(told).or_default() += 1;
            let n_effects = effects.get(&text).copied().unwrap_or(0);
            let is_true = match told {
                Told::Done => n_effects == 1,
                Told::Unknown => n_effects <= 1,
                Told::NotRun => n_effects == 0,
            };
            assert!(is_true, "{text} was done {n_effects} times, and the client was told {told:?}: {body}");
        }
    }
    counts
}

/// Waits for another agent of the window, which is live.
fn await_next(world: &World, before: u32) {
    world.await_status("another agent is live", |status| {
        live_name(status) == Some("shop") && find(status, "shop").is_some_and(|window| window.pid != before)
    });
}

#[test]
fn r7_a_restart_during_calls_loses_none_and_repeats_none() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["settings", "hold_calls_ms", "30000"]);
    let counts = compare(&world, "/mcp", |world| {
        for _ in 0..4 {
            let agent = world.agent_pid("shop");
            world.baton_ok(&["restart", "shop"]);
            await_next(world, agent);
        }
    });
    assert!(counts[&Told::Done] > 4, "{counts:?}");
    assert_eq!(counts.len(), 1, "a restart is no reason to tell a client anything else: {counts:?}");
}

#[test]
fn r7_a_restart_of_a_window_that_is_not_live_loses_no_call_either() {
    let mut world = World::new();
    world.window("weather");
    world.await_live("weather");
    world.window("shop");
    world.baton_ok(&["settings", "hold_calls_ms", "30000"]);
    let counts = compare(&world, "/mcp/windows/shop", |world| {
        for _ in 0..6 {
            let agent = world.agent_pid("shop");
            world.baton_ok(&["restart", "shop"]);
            world.await_status("another agent is there", |status| {
                find(status, "shop").is_some_and(|window| window.pid != agent)
            });
        }
    });
    assert!(counts[&Told::Done] > 6, "{counts:?}");
    assert_eq!(counts.len(), 1, "{counts:?}");
}

#[test]
fn f7_nobody_is_invited_to_repeat_what_a_killed_window_did() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let counts = compare(&world, "/mcp", |world| {
        for round in 0..4 {
            let agent = world.agent_pid("shop");
            if round % 2 == 1 {
                world.baton_ok(&["restart", "shop"]);
            }
            // The one that was told to restart may be quicker.
            kill9_if_there(agent);
            await_next(world, agent);
        }
    });
    assert!(counts[&Told::Done] > 4, "{counts:?}");
}

#[test]
fn r7_a_call_that_takes_a_while_is_finished_before_the_restart() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut client = world.client(ClientKind::Python1);
    let stop = client.stop_in_wait();
    let frame = &stop["call_stack"][0]["frame_id"];
    let (begun, done) = (world.scratch().join("begun"), world.scratch().join("done"));
    let expression = format!(
        "(open({begun:?}, 'a').write('x'), __import__('time').sleep(2), open({done:?}, 'a').write('x'))"
    );
    let call =
        client.send_call("evaluate_expression", json!({ "expression": expression, "frame_id": frame }));
    let is_begun = || begun.exists().then_some(());
    baton_tests::process::await_some(baton_tests::world::PATIENCE, is_begun).expect("the call runs");
    let agent = world.agent_pid("shop");
    world.baton_ok(&["restart", "shop"]);
    let answer = client.wait(call).expect("the call is answered");
    assert_eq!(answer["structuredContent"]["status"], "success", "{answer:#}");
    assert_eq!(std::fs::read_to_string(&done).expect("it was done"), "x", "once");
    await_next(&world, agent);
    client.expect("success", "get_breakpoints", json!({}));
    client.close();
}

/// The extension host that loads a window anew asks for its id while the agent of the one before still ends.
#[test]
fn r6_the_id_of_a_reloaded_window_is_free_long_before_its_agent_has_ended() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let storage = world.scratch().join("storage");
    let mut agent = world.command(place::program("baton-agent"));
    agent.arg("--storage").arg(&storage).args(["--kind", "vscode", "--name", "shop"]);
    let mut agent = agent.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("an agent starts");
    let claims = || {
        fs::read_dir(&storage)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_none())
    };
    let claim = await_some(PATIENCE, claims).expect("it claims an id");
    let is_held = || fs::read_to_string(&claim).expect("it is kept").contains(r#""pidStart""#);
    assert!(is_held());
    // It takes its leave of a coordinator that does not hear it, for half a second.
    let coordinator = world.coordinator_pid();
    signal(coordinator, Signal::STOP);
    drop(agent.stdin.take());
    let ended = agent.wait().map(|_| SystemTime::now());
    signal(coordinator, Signal::CONT);
    assert!(!is_held());
    let freed =
        fs::metadata(&claim).and_then(|file| file.modified()).expect("a file knows when it was written");
    let before = ended.expect("it ends").duration_since(freed).unwrap_or_default();
    assert!(before > Duration::from_millis(300), "{before:?} before its end");
}
