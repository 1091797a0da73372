//! Slow and hostile connections, many at once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use baton_tests::raw::{self, Request};
use baton_tests::world::World;
use serde_json::{Value, json};

use super::{Target, ping_body};

/// Longest a heartbeat may take beside an attack; a window is suspect after twice this.
const HEARTBEAT_BOUND: Duration = Duration::from_millis(1_500);

#[test]
fn t17_half_open_requests_do_not_shut_others_out() {
    let target = Target::new();
    let half = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuth", target.port());
    let mut open: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = raw::connect(target.port());
            stream.write_all(half.as_bytes()).expect("the coordinator reads");
            stream
        })
        .collect();
    for _ in 0..20 {
        let start = Instant::now();
        let ping = Request::bare(target.port(), "GET /v1/ping", &target.member);
        assert_eq!(target.send(&ping).status, 200);
        assert!(start.elapsed() < HEARTBEAT_BOUND, "a ping took {:?} beside them", start.elapsed());
    }
    // A head that does not come in 5 s ends its connection.
    let start = Instant::now();
    for stream in &mut open {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(start.elapsed() < Duration::from_secs(10), "half-sent heads were kept {:?}", start.elapsed());
    target.assert_healthy();
}

#[test]
fn t24_answers_never_cross_between_clients() {
    const N_CLIENTS: usize = 64;
    const N_CALLS: usize = 8;
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let (port, token) = (world.port(), world.token());
    let folder = world.folder("shop");
    std::thread::scope(|scope| {
        for client in 0..N_CLIENTS {
            let (token, folder) = (&token, &folder);
            scope.spawn(move || {
                for call in 0..N_CALLS {
                    // The same ids for everybody; what is unique is a file that is not there.
                    let unique = format!("only-{client}-{call}.py");
                    let body = json!({
                        "jsonrpc": "2.0", "id": call, "method": "tools/call",
                        "params": { "name": "set_breakpoint", "arguments": {
                            "file_path": folder.join(&unique), "line_number": 1 } }
                    });
                    let request = Request::post(port, "/mcp", token, body.to_string())
                        .with("MCP-Protocol-Version", "2025-11-25");
                    let answer = request.send(port);
                    assert_eq!(answer.status, 200, "{answer:?}");
                    assert!(
                        answer.body.contains(&unique),
                        "client {client} got another's answer: {}",
                        answer.body
                    );
                }
            });
        }
    });
}

#[test]
fn ids_of_every_kind_come_back_as_they_went() {
    let target = Target::new();
    for id in [json!(0), json!(-7), json!(u64::MAX), json!(""), json!("ü\n\"x\"")] {
        let mut body = ping_body(1);
        body["id"] = id.clone();
        let answer = target.send(&Request::post(target.port(), "/mcp", &target.client, body.to_string()));
        let parsed: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!(parsed["id"], id, "{answer:?}");
    }
}
