//! A coordinator follows another on the same lock and listeners: no connection is refused and no call lost.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use baton_proto::control::WindowState;
use baton_proto::discovery::{Role, Secret};
use baton_tests::client::{Client, ClientKind};
use baton_tests::process::{await_some, is_alive};
use baton_tests::raw::{Answer, KeepAlive, Request};
use baton_tests::story::configurations;
use baton_tests::world::{PATIENCE, World, find, live_name, state_of};
use serde_json::json;

#[test]
fn a_coordinator_is_replaced_and_nobody_notices() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    world.window("weather");
    let mut client = world.client(ClientKind::Python1);
    let call = client.send_call("start_debugging", json!({"configuration_name": "wait", "timeout": 10}));
    world.await_status("the call runs", |status| {
        find(status, "shop").is_some_and(|window| !window.debug_sessions.is_empty())
    });
    let is_over = AtomicBool::new(false);
    let (port, token) = (world.port(), world.token());
    let n_asked = std::thread::scope(|scope| {
        // A stateless client that connects anew for every request.
        let stranger = scope.spawn(|| {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"},
            }})
            .to_string();
            let mut n_asked = 0;
            while !is_over.load(Ordering::Relaxed) {
                let answer = Request::post(port, "/mcp", &token, body.clone()).send(port);
                assert_eq!(answer.status, 200, "request {n_asked}: {answer:?}");
                n_asked += 1;
            }
            n_asked
        });
        let printed = world.baton_ok(&["up", "--replace"]);
        assert!(printed.contains(&port.to_string()), "{printed}");
        let after = world.await_status("a successor with both windows", |status| {
            status.pid != before.pid && status.windows.len() == 2 && live_name(status) == Some("shop")
        });
        is_over.store(true, Ordering::Relaxed);
        assert!(after.generation > before.generation && after.term > before.term, "{after:?}");
        assert_eq!((after.port, state_of(&after, "weather")), (before.port, Some(WindowState::Standby)));
        stranger.join().expect("nobody is refused")
    });
    assert!(n_asked > 10, "{n_asked} requests while it happened");
    // The call that ran is answered by the old one, which ends then.
    let answer = client.wait(call).expect("the call is not lost");
    assert_eq!(answer["structuredContent"]["status"], "timeout", "{answer:#}");
    let is_gone = || (!is_alive(before.pid)).then_some(());
    assert!(await_some(PATIENCE, is_gone).is_some(), "the old one is still there");
    assert_eq!(configurations(&mut client)[0], "bill", "the same session goes on");
    client.expect("success", "stop_debugging", json!({}));
    client.close();
    // It has the lock: a third one does not start beside it.
    let third = world.baton(&["serve"]);
    assert_eq!(third.code, 75, "{third:?}");
}

#[test]
fn a_program_that_does_not_take_over_changes_nothing() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let mut client = world.client(ClientKind::Python1);
    for program in ["/usr/bin/true", "/usr/bin/cat"] {
        let answer = replace(&world, Path::new(program));
        assert_eq!(answer.status, 409, "{program}: {answer:?}");
    }
    let after = world.await_live("shop");
    assert_eq!((after.pid, after.term), (before.pid, before.term));
    assert_eq!(configurations(&mut client)[0], "bill");
    client.close();
}

#[test]
fn a_program_that_another_could_have_put_there_is_not_run() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let program = baton_tests::place::program("baton");
    let folder = world.scratch().join("programs");
    std::fs::create_dir(&folder).expect("a folder");
    let (link, writable) = (folder.join("link"), folder.join("writable"));
    std::os::unix::fs::symlink(&program, &link).expect("a link");
    std::fs::copy(&program, &writable).expect("a copy");
    std::fs::set_permissions(&writable, Permissions::from_mode(0o777)).expect("its mode");
    for refused in [Path::new("baton"), Path::new("/nowhere/baton"), &folder, &link, &writable] {
        let answer = replace(&world, refused);
        assert_eq!(answer.status, 422, "{}: {answer:?}", refused.display());
    }
    std::fs::set_permissions(&writable, Permissions::from_mode(0o700)).expect("its mode");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("its mode");
    assert_eq!(replace(&world, &writable).status, 422, "its folder is anybody's");
    assert_eq!(world.await_live("shop").pid, before.pid);
}

/// As when an update reaches four windows at once: each of them asks.
#[test]
fn replacements_that_are_asked_for_at_once_are_all_answered_at_once() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let program = baton_tests::place::program("baton");
    let began = Instant::now();
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let (world, program) = (&world, &program);
        let asked: Vec<_> = (0..6).map(|_| scope.spawn(move || replace(world, program))).collect();
        asked.into_iter().map(|asked| asked.join().expect("it has an answer")).collect()
    });
    // An order that nobody carries out any more was only given up after 10 s.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}: {answers:?}", began.elapsed());
    assert!(answers.iter().any(|answer| answer.status == 200), "{answers:?}");
    assert_ne!(world.await_live("shop").pid, before.pid);
}

fn replace(world: &World, program: &Path) -> Answer {
    let secret = std::fs::read(world.home().join("secret")).expect("the secret is there");
    let token = Secret::new(secret.try_into().expect("its length")).token(Role::Member);
    let body = json!({ "program": program }).to_string();
    Request::post(world.port(), "/v1/replace", token.expose(), body).send(world.port())
}

/// Calls of clients that keep their connections, and of the bridge, while one coordinator follows another.
#[test]
fn f22_no_call_is_lost_while_coordinators_are_replaced_under_load() {
    const N_CALLS: usize = 6_000;
    const N_CLIENTS: usize = 6;
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let token = world.token();
    let n_done = AtomicUsize::new(0);
    let world = &world;
    std::thread::scope(|scope| {
        for client in 0..N_CLIENTS {
            let (token, n_done) = (&token, &n_done);
            scope.spawn(move || {
                let mut connection = KeepAlive::new(world.port());
                while n_done.fetch_add(1, Ordering::Relaxed) < N_CALLS {
                    let told = call_on(&mut connection, token, n_done);
                    if told != "success" {
                        // Nobody goes on.
                        n_done.store(N_CALLS, Ordering::Relaxed);
                        panic!("client {client}: {told}");
                    }
                    // Some let their connections idle for a moment, so that they write to them at any time.
                    std::thread::sleep(Duration::from_micros(300 * client as u64));
                }
            });
        }
        let bridged = scope.spawn(|| {
            let mut client = Client::connect_stdio(world, ClientKind::Sdk1, &["stdio"], world.scratch());
            let mut n_bridged = 0;
            while n_done.load(Ordering::Relaxed) < N_CALLS {
                let content = client.call("get_breakpoints", json!({}));
                assert_eq!(content["status"], "success", "call {n_bridged} of the bridge: {content}");
                n_bridged += 1;
            }
            client.close();
            n_bridged
        });
        let mut n_replaced = 0;
        while n_done.load(Ordering::Relaxed) < N_CALLS && !bridged.is_finished() {
            world.baton_ok(&["up", "--replace"]);
            n_replaced += 1;
            let before = n_done.load(Ordering::Relaxed);
            let has_gone_on = || {
                let n_done = n_done.load(Ordering::Relaxed);
                (n_done > before + N_CALLS / 30 || n_done >= N_CALLS || bridged.is_finished()).then_some(())
            };
            await_some(PATIENCE, has_gone_on).expect("calls go on");
        }
        let n_bridged = bridged.join().expect("the bridge loses none");
        assert!(
            n_replaced > 5 && n_bridged > 50,
            "{n_replaced} replacements, {n_bridged} calls of the bridge"
        );
    });
}

/// The status of one call; "torn" when its connection was closed before the answer.
fn call_on(connection: &mut KeepAlive, token: &str, n_done: &AtomicUsize) -> String {
    let id = n_done.load(Ordering::Relaxed);
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "get_breakpoints", "arguments": {} } });
    let request = Request::post(connection.port(), "/mcp", token, body.to_string())
        .with("MCP-Protocol-Version", "2025-11-25");
    let Some(answer) = connection.send(&request) else { return "torn".to_owned() };
    let message: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let content = &message["result"]["structuredContent"];
    content["status"].as_str().filter(|_| answer.status == 200).map_or(answer.body, str::to_owned)
}
