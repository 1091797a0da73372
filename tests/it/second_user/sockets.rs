//! Every socket of a running Baton, tried by another user.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use baton_tests::process::{listening_ports, of_home};
use baton_tests::raw::Request;
use baton_tests::user::{OWNER, STRANGER};
use baton_tests::world::World;
use serde_json::json;

fn ping() -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string()
}

/// Ports on which any process of the world listens.
fn ports_of(world: &World) -> BTreeSet<u16> {
    of_home(&world.home()).iter().flat_map(|(pid, _)| listening_ports(*pid)).collect()
}

#[test]
fn t5_another_user_without_a_token_is_told_nothing() {
    let mut world = World::of(OWNER);
    world.window("shop");
    world.await_live("shop");
    let ports = ports_of(&world);
    assert!(ports.contains(&world.port()), "{ports:?}");
    let requests = |port: u16, token: &str| {
        [
            Request::post(port, "/mcp", token, ping()),
            Request::bare(port, "GET /v1/status", token),
            Request::post(port, "/v1/windows/x/register", token, "{}"),
            Request::post(port, "/v1/replace", token, r#"{"program":"/bin/sh"}"#),
        ]
    };
    for port in ports {
        for token in ["", "0", &"0".repeat(64)] {
            for request in requests(port, token) {
                let answer = STRANGER.act(|| request.send(port));
                // Refused at the door, or not even listened to.
                assert!(matches!(answer.status, 0 | 401 | 403 | 404), "{port} {}: {answer:?}", request.line);
                assert!(!answer.body.contains("shop"), "{answer:?}");
            }
        }
    }
    world.await_live("shop");
}

#[test]
fn t9_another_user_on_the_port_is_named_and_learns_nothing() {
    let world = World::of(OWNER);
    let squatted =
        STRANGER.act(|| TcpListener::bind((Ipv4Addr::LOCALHOST, world.port())).expect("it is free"));
    squatted.set_nonblocking(true).expect("a socket");
    let up = world.baton(&["up"]);
    assert_eq!(up.code, 69, "{up:?}");
    let named = format!("port {} is in use by a program run by user {}", world.port(), STRANGER.id());
    // Whoever asks is told the same.
    for arguments in [&["status"][..], &["up"], &["token"]] {
        let printed = world.baton(arguments);
        if arguments[0] != "token" {
            assert!(printed.err.contains(&named), "{printed:?}");
        }
    }
    let heard = heard_by(&squatted);
    for secret in super::secrets_of(&world) {
        assert!(!heard.contains(&secret), "{heard}");
    }
    drop(squatted);
    world.await_status("it has its port", |_| true);
}

/// Everything that was said to a listener, as far as it has come.
fn heard_by(listener: &TcpListener) -> String {
    let mut heard = Vec::new();
    while let Ok((mut stream, _)) = listener.accept() {
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
        // A caller that waits for an answer says no more: the time limit ends the reading.
        let _ = std::io::Read::read_to_end(&mut stream, &mut heard);
    }
    String::from_utf8_lossy(&heard).into_owned()
}
