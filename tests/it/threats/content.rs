//! What is inside a request: smuggling, sizes, ambiguous JSON.

use baton_tests::raw::{self, Answer, Request};
use baton_tests::world::World;
use serde_json::Value;

use super::{Target, ping_body};

/// Refused, or the connection closed without an answer.
fn is_refused(answer: &Answer) -> bool {
    answer.status == 0 || (400..500).contains(&answer.status)
}

#[test]
fn t14_smuggled_requests_are_refused() {
    let target = Target::new();
    let body = ping_body(1).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
        target.port(),
        target.client
    );
    let n_bytes = body.len();
    let chunked = format!("{n_bytes:x}\r\n{body}\r\n0\r\n\r\n");
    let smuggled = "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n";
    let cases = [
        ("two lengths", format!("{head}Content-Length: {n_bytes}\r\nContent-Length: 0\r\n\r\n{body}")),
        ("a list of lengths", format!("{head}Content-Length: {n_bytes}, 0\r\n\r\n{body}")),
        ("a signed length", format!("{head}Content-Length: +{n_bytes}\r\n\r\n{body}")),
        ("an unknown coding", format!("{head}Transfer-Encoding: xchunked\r\n\r\n{chunked}")),
        ("a folded header", format!("{head}X-Fold: a\r\n b\r\nContent-Length: {n_bytes}\r\n\r\n{body}")),
        ("a space before the colon", format!("{head}Content-Length : {n_bytes}\r\n\r\n{body}")),
        ("a bad chunk size", format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{body}\r\n0\r\n\r\n")),
        ("a newline in the target", head.replacen("/mcp", "/mcp\n/x", 1) + "\r\n"),
    ];
    for (what, bytes) in cases {
        let answer = raw::send(target.port(), bytes.as_bytes());
        assert!(is_refused(&answer), "{what}: {answer:?}");
    }
    // Length and chunks together: one reading only, and what follows is never a second request.
    let both =
        format!("{head}Content-Length: {n_bytes}\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}{smuggled}");
    let answer = raw::send(target.port(), both.as_bytes());
    assert!(is_refused(&answer) || answer.body.matches("jsonrpc").count() == 1, "{answer:?}");
    assert!(!answer.body.contains("generation"), "the smuggled request was answered: {answer:?}");
    target.assert_healthy();
}

#[test]
fn t16_one_byte_more_is_too_much() {
    const BODY_MAX: usize = 16 << 20;
    const HEAD_MAX: usize = 16 << 10;
    let target = Target::new();
    let pad = |n_bytes: usize| {
        let empty = ping_body(1).to_string();
        let mut body = empty.into_bytes();
        body.resize(n_bytes, b' ');
        Request::post(target.port(), "/mcp", &target.client, body)
    };
    assert_eq!(target.send(&pad(BODY_MAX)).status, 200, "16 MiB are accepted");
    assert_eq!(target.send(&pad(BODY_MAX + 1)).status, 413, "16 MiB and one byte are not");
    let filler = target.ping().with("X-Filler", &"a".repeat(HEAD_MAX));
    assert_eq!(target.send(&filler).status, 431);
    let nested = |depth: usize| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        target.send(&Request::post(target.port(), "/mcp", &target.client, body))
    };
    assert_eq!(nested(40).status, 200);
    for depth in [80, 10_000, 1_000_000] {
        let answer = nested(depth);
        assert!(is_refused(&answer), "{depth} levels: {}", answer.status);
    }
    target.assert_healthy();
}

#[test]
fn t25_ambiguous_json_is_refused() {
    let target = Target::new();
    let cases = [
        r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} trailing"#,
        "not JSON",
        "",
    ];
    for body in cases {
        let answer = target.send(&Request::post(target.port(), "/mcp", &target.client, body));
        let parsed: Value = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
        let is_error = parsed["error"]["message"].as_str().is_some_and(|message| !message.is_empty());
        assert_eq!((answer.status, is_error), (400, true), "{body}: {answer:?}");
    }
    target.assert_healthy();
}

#[test]
fn ids_and_arguments_that_no_window_could_answer_are_told() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let token = world.token();
    let send = |id: &str, arguments: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"get_breakpoints","arguments":{arguments}}}}}"#
        );
        let answer = Request::post(world.port(), "/mcp", &token, body).send(world.port());
        let parsed: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert!(answer.body.contains(&format!("\"id\":{id},")), "it comes back as it was sent: {answer:?}");
        (answer.status, parsed["error"]["code"].as_i64())
    };
    for id in ["0", "-7", "9223372036854775807", "-9223372036854775808", "\"x\""] {
        assert_eq!(send(id, "{}"), (200, None), "{id}");
    }
    for id in ["9223372036854775808", "18446744073709551616", "-9223372036854775809", &"9".repeat(30)] {
        assert_eq!(send(id, "{}"), (400, Some(-32600)), "{id}");
    }
    for arguments in ["[]", "[1]", "7", "true", "\"x\""] {
        assert_eq!(send("1", arguments), (200, Some(-32602)), "{arguments}");
    }
    assert_eq!(send("1", "null"), (200, None));
}
