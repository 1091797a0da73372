//! A coordinator follows another on the same lock and listeners: no connection is refused and no call lost.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_proto::control::WindowState;
use baton_proto::discovery::{Role, Secret};
use baton_tests::client::ClientKind;
use baton_tests::process::{await_some, is_alive};
use baton_tests::raw::{Answer, Request};
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

fn replace(world: &World, program: &Path) -> Answer {
    let secret = std::fs::read(world.home().join("secret")).expect("the secret is there");
    let token = Secret::new(secret.try_into().expect("its length")).token(Role::Member);
    let body = json!({ "program": program }).to_string();
    Request::post(world.port(), "/v1/replace", token.expose(), body).send(world.port())
}
