//! Sealed session ids: ours never expire, nobody else's are known.

use std::io::{Read as _, Write as _};

use baton_tests::raw::{self, Request};
use baton_tests::world::World;
use serde_json::json;

use super::{Target, initialize_body, ping_body};

const SESSION: &str = "Mcp-Session-Id";

fn open_session(target: &Target) -> String {
    let request = Request::post(target.port(), "/mcp", &target.client, initialize_body().to_string());
    let answer = target.send(&request);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header(SESSION).expect("a session id").to_owned()
}

fn ping_in(target: &Target, session: &str) -> u16 {
    let request = target.ping().with(SESSION, session).with("MCP-Protocol-Version", "2025-11-25");
    target.send(&request).status
}

#[test]
fn t23_forged_sessions_are_unknown() {
    let target = Target::new();
    let session = open_session(&target);
    assert_eq!(ping_in(&target, &session), 200);
    for position in 0..session.len() {
        let mut forged = session.clone().into_bytes();
        forged[position] = if forged[position] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).expect("ASCII");
        if forged != session {
            assert_eq!(ping_in(&target, &forged), 404, "position {position}");
        }
    }
    for foreign in ["", "x", "00000000-0000-0000-0000-000000000000", &session[1..], &format!("{session}A")] {
        assert_eq!(ping_in(&target, foreign), 404, "{foreign:?}");
    }
    let other = Target::new();
    assert_eq!(ping_in(&other, &session), 404, "a session of another state folder");
}

#[test]
fn t23_a_session_is_bound_to_its_token() {
    let target = Target::new();
    let session = open_session(&target);
    target.world.baton_ok(&["token", "--rotate"]);
    let renewed = Target { client: target.world.token(), member: target.member.clone(), world: target.world };
    assert_eq!(ping_in(&renewed, &session), 404, "a session of the token before");
}

#[test]
fn sessions_outlive_the_coordinator_and_end_when_deleted() {
    let target = Target::new();
    let session = open_session(&target);
    baton_tests::process::kill9(target.world.coordinator_pid());
    target.world.baton_ok(&["up"]);
    assert_eq!(ping_in(&target, &session), 200, "after a restart of the coordinator");
    let delete = Request::bare(target.port(), "DELETE /mcp", &target.client)
        .with(SESSION, &session)
        .with("MCP-Protocol-Version", "2025-11-25");
    let answer = target.send(&delete);
    assert!((200..300).contains(&answer.status), "{answer:?}");
    assert_eq!(ping_in(&target, &session), 404, "after DELETE");
}

#[test]
fn the_stateless_revision_has_no_sessions() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let token = world.token();
    for method in ["GET", "DELETE"] {
        let request = Request::bare(world.port(), &format!("{method} /mcp"), &token)
            .with("Accept", "text/event-stream")
            .with("MCP-Protocol-Version", "2026-07-28");
        assert_eq!(request.send(world.port()).status, 405, "{method}");
    }
    let mismatch = Request::post(world.port(), "/mcp", &token, json!(ping_body(1)).to_string())
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "tools/list");
    assert_eq!(mismatch.send(world.port()).status, 400, "a header that contradicts the body");
}

#[test]
fn t11_a_rotated_token_ends_its_streams() {
    let target = Target::new();
    let session = open_session(&target);
    let get = Request::bare(target.port(), "GET /mcp", &target.client)
        .with(SESSION, &session)
        .with("Accept", "text/event-stream")
        .with("MCP-Protocol-Version", "2025-11-25");
    let mut stream = raw::connect(target.port());
    stream.write_all(&get.to_bytes()).expect("the coordinator reads");
    let mut opening = Vec::new();
    while !opening.ends_with(b": open\n\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the stream opens");
        opening.extend(byte);
    }
    target.world.baton_ok(&["token", "--rotate"]);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("the stream ends");
    assert!(rest.contains(": closed: the token was rotated"), "{rest:?}");
}
