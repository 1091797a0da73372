//! Slow and hostile connections, many at once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use baton_tests::client::{Client, ClientKind};
use baton_tests::process::{await_some, rss_kib};
use baton_tests::raw::{self, KeepAlive, Request};
use baton_tests::world::World;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
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

/// Bodies of 16 MiB take 128 MiB at most: what is more waits for 10 s, and is refused in words; short messages do not
/// wait.
#[test]
fn t16_long_bodies_at_once_are_bounded() {
    const LONGEST: usize = 16 * 1024 * 1024;
    const N_FIT: usize = 8;
    let target = Target::new();
    let pid = target.world.coordinator_pid();
    let mut body = ping_body(1).to_string();
    body.extend(std::iter::repeat_n(' ', LONGEST - body.len()));
    let request = Request::post(target.port(), "/mcp", &target.client, body).to_bytes();
    let (most, last) = request.split_at(request.len() - 1);
    let begin = || {
        let mut stream = raw::connect(target.port());
        stream.write_all(most).expect("the coordinator reads");
        stream
    };
    let before = rss_kib(pid);
    let mut open: Vec<TcpStream> = (0..N_FIT).map(|_| begin()).collect();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| raw::send(target.port(), &request));
        target.assert_healthy();
        let mut first = open.remove(0);
        first.write_all(last).expect("the coordinator reads");
        assert_eq!(raw::read_answer(&mut first).status, 200);
        let other = other.join().expect("it is answered");
        assert_eq!(other.status, 200, "it had the place of the first: {other:?}");
    });
    open.push(begin());
    let refused = raw::send(target.port(), &request);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert!(refused.body.contains("too many large messages"), "{refused:?}");
    let grown = rss_kib(pid).saturating_sub(before) / 1024;
    assert!(grown < 192, "{grown} MiB more for 128");
    for mut stream in open {
        stream.write_all(last).expect("the coordinator reads");
        assert_eq!(raw::read_answer(&mut stream).status, 200);
    }
    target.assert_healthy();
}

/// Lets this process have so many connections.
fn need_descriptors(n_connections: usize) {
    let needed = (n_connections + 100) as u64;
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).expect("a limit may be raised");
    let is_enough = limit.maximum.is_none_or(|maximum| maximum >= needed);
    assert!(is_enough, "this test needs {needed} descriptors; raise the hard limit with `ulimit -Hn`");
}

/// A crowd with the client token keeps all the connections busy that it is given: whoever needs no token, has the next
/// one, or is a window or a command is answered beside it.
#[test]
fn t17_who_has_one_token_shuts_out_no_holder_of_another() {
    /// More than clients of all kinds may have.
    const N_BUSY: usize = 3_200;
    /// A piece of a body is awaited for 30 s.
    const PIECE_EVERY: usize = 400;
    need_descriptors(N_BUSY);
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let (port, old) = (world.port(), world.token());
    // Its body is still to come; that it is waited for is told.
    let post =
        Request::post(port, "/mcp", &old, "").with("Content-Length", "99").with("Expect", "100-continue");
    let post = String::from_utf8(post.to_bytes()).expect("text").replace("Connection: close\r\n", "");
    let mut crowd = Vec::new();
    let mut n_refused = 0;
    let go_on = |crowd: &[TcpStream]| {
        for mut stream in crowd {
            stream.write_all(b" ").expect("the coordinator reads");
        }
    };
    for nth in 0..N_BUSY {
        if nth % PIECE_EVERY == 0 {
            go_on(&crowd);
        }
        let mut stream = raw::connect(port);
        stream.write_all(post.as_bytes()).expect("the coordinator reads");
        let mut said = [0; 1024];
        let n_read = stream.read(&mut said).expect("it answers");
        let said = String::from_utf8_lossy(&said[..n_read]).into_owned();
        if said.starts_with("HTTP/1.1 100 ") {
            crowd.push(stream);
        } else {
            assert!(
                said.starts_with("HTTP/1.1 503 ") && said.contains("too many MCP connections"),
                "{said:?}"
            );
            n_refused += 1;
        }
    }
    assert!(n_refused > 0 && crowd.len() > 1_000, "{} are let in, {n_refused} refused", crowd.len());

    go_on(&crowd);
    let mut bridged = Client::connect_stdio(&world, ClientKind::Sdk1, &["stdio"], world.scratch());
    bridged.expect("success", "get_breakpoints", json!({}));
    go_on(&crowd);
    let new = world.baton_ok(&["token", "--rotate"]).trim().to_owned();
    let answer = Request::call(port, &new, "get_breakpoints").send(port);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("success"), "{answer:?}");
    let status = world.status().expect("commands are answered");
    assert_eq!((status.pid, status.term), (before.pid, before.term), "the window is there");
    bridged.close();
    // The crowd was there all the time: each is still waited for.
    for stream in &crowd {
        stream.set_nonblocking(true).expect("a socket takes an option");
        let kept = stream.peek(&mut [0]).expect_err("nothing was said, and nothing ended").kind();
        assert_eq!(kept, std::io::ErrorKind::WouldBlock);
    }
}

/// More streams and idle connections than there are places: windows, commands and other clients go on.
#[test]
fn t17_streams_and_idle_connections_of_clients_shut_nobody_out() {
    const N_STREAMS: usize = 2_500;
    const N_IDLE: usize = 2_500;
    need_descriptors(N_STREAMS + N_IDLE);
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let (port, token) = (world.port(), world.token());
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "_meta": meta, "notifications": { "toolsListChanged": true } } });
    let listen = Request::post(port, "/mcp", &token, listen.to_string())
        .with("MCP-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", "subscriptions/listen");
    let ping = Request::post(port, "/mcp", &token, ping_body(1).to_string());
    let open = |request: &Request| {
        let mut stream = raw::connect(port);
        let bytes = String::from_utf8(request.to_bytes()).expect("text").replace("Connection: close\r\n", "");
        stream.write_all(bytes.as_bytes()).expect("the coordinator reads");
        let n_read = stream.read(&mut [0; 1024]).expect("it answers");
        assert!(n_read > 0, "a connection was closed without a word");
        stream
    };
    let _streams: Vec<_> = (0..N_STREAMS).map(|_| open(&listen)).collect();
    let _idle: Vec<_> = (0..N_IDLE).map(|_| open(&ping)).collect();
    for _ in 0..5 {
        let status = world.status().expect("commands are answered");
        assert_eq!((status.pid, status.term), (before.pid, before.term), "the window is there");
    }
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_breakpoints", "arguments": {} } });
    // What has been idle for a second gives way; on a quick machine none has yet.
    let is_answered = || {
        let answer = Request::post(port, "/mcp", &token, call.to_string()).send(port);
        (answer.status == 200).then_some(())
    };
    await_some(Duration::from_secs(10), is_answered).expect("an idle connection gives way");
}

/// More clients that keep their connections than there are descriptors: who comes later is let in, because whoever has
/// idled longest gives way.
#[test]
fn clients_that_idle_do_not_shut_others_out_when_descriptors_are_few() {
    const N_CLIENTS: usize = 100;
    const N_DESCRIPTORS: u64 = 64;
    let target = Target::new();
    let pid = i32::try_from(target.world.coordinator_pid()).ok().and_then(Pid::from_raw);
    let few = Rlimit { current: Some(N_DESCRIPTORS), maximum: Some(N_DESCRIPTORS) };
    prlimit(pid, Resource::Nofile, few).expect("a limit may be lowered");
    let ping = target.ping();
    let mut clients = Vec::new();
    for nth in 0..N_CLIENTS {
        let mut client = KeepAlive::new(target.port());
        let answer = client.send(&ping).unwrap_or_else(|| panic!("client {nth} is answered"));
        assert_eq!(answer.status, 200, "client {nth}: {answer:?}");
        clients.push(client);
    }
    assert!(target.world.status().is_some(), "commands are answered");
}
