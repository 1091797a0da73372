//! Windows and clients that go away: held calls, unknown outcomes, cancellation, drain.

use std::sync::Arc;
use std::time::Instant;

use baton_election::roster::Address;
use baton_proto::edge::{BOUND_HEADER, FOLDER_HEADER, HEARD_HEADER};
use baton_proto::ids::Term;
use serde_json::{Value, json};

use crate::world::{FakeWindow, World, call, content, read, stateless};

/// A tool of the catalogue, so that it is held while no window is live.
const TOOL: &str = "get_breakpoints";

/// Sends a message in the background.
fn send(request: reqwest::RequestBuilder) -> tokio::task::JoinHandle<(u16, Value)> {
    tokio::spawn(async move { read(request.send().await.unwrap()).await })
}

fn post(world: &World, session: &str, message: &Value) -> tokio::task::JoinHandle<(u16, Value)> {
    send(world.request("/mcp").header("mcp-session-id", session).body(message.to_string()))
}

#[tokio::test]
async fn a_call_waits_for_a_window_and_gets_advice_in_the_end() {
    let world = World::start().await;
    let a = FakeWindow::start("a").await;
    world.register(&a);
    let held = send(world.request("/mcp").body(call(1, TOOL, json!({})).to_string()));
    // One round trip later the call is held.
    world.post(None, json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    assert!(!held.is_finished());
    world.take(&a, 1);
    assert_eq!(content(&held.await.unwrap())["window"], "a");

    world.change(|roster| {
        roster.live = None;
        Arc::make_mut(&mut roster.settings).hold_calls_ms = 50;
    });
    let answer = world.post(None, call(3, TOOL, json!({}))).await;
    assert_eq!(answer.1["result"]["isError"], true);
    assert_eq!(content(&answer)["code"], "no_live_window");
    assert!(content(&answer)["hint"].as_str().unwrap().contains("baton take"));
}

#[tokio::test]
async fn a_call_that_a_window_with_another_secret_refuses_waits_until_it_has_ours() {
    let world = World::start().await;
    let mut a = FakeWindow::start("a").await;
    let known = a.window.address.clone();
    // The token of an incarnation, which this window does not take.
    a.window.address = Address::Port(a.port);
    world.register(&a);
    world.take(&a, 1);
    let call_refused = send(world.request("/mcp").body(call(1, TOOL, json!({})).to_string()));
    world.post(None, json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    assert!(!call_refused.is_finished());
    a.window.address = known;
    world.register(&a);
    world.take(&a, 2);
    assert_eq!(content(&call_refused.await.unwrap())["window"], "a");
    assert_eq!(a.event().await, format!("started {TOOL}"), "and no more than once");

    world.change(|roster| {
        Arc::make_mut(&mut roster.settings).hold_calls_ms = 50;
        let window = roster.windows.values_mut().next().unwrap();
        Arc::make_mut(window).address = Address::Port(a.port);
    });
    let answer = world.post(None, call(3, TOOL, json!({}))).await;
    assert_eq!(content(&answer)["code"], "window_unreachable");
}

#[tokio::test]
async fn a_call_that_did_not_run_is_sent_again() {
    let world = World::start().await;
    let mut a = world.live_window("a").await;
    // Term 1.0 is one that the window refuses as stale.
    world.change(|roster| roster.live = Some(("a".parse().unwrap(), Term { generation: 1, seq: 0 })));
    let call_stale = send(world.request("/mcp").body(call(1, TOOL, json!({})).to_string()));
    world.post(None, json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    world.take(&a, 2);
    assert_eq!(content(&call_stale.await.unwrap())["window"], "a");
    assert_eq!(a.event().await, format!("started {TOOL}"));

    // Nothing listens any more: the call waits until the window is back on another port.
    a.kill.cancel();
    while tokio::net::TcpStream::connect(("127.0.0.1", a.port)).await.is_ok() {}
    let refused = send(world.request("/mcp").body(call(3, TOOL, json!({})).to_string()));
    world.post(None, json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" })).await;
    let mut again = FakeWindow::start("a").await;
    again.window.incarnation = 2;
    world.register(&again);
    assert_eq!(content(&refused.await.unwrap())["window"], "a");
    assert!(a.events.try_recv().is_err(), "the dead window ran nothing more");
    assert_eq!(again.event().await, format!("started {TOOL}"));
    assert!(again.events.try_recv().is_err(), "once");
}

#[tokio::test]
async fn a_window_that_dies_in_mid_call_leaves_an_unknown_outcome() {
    for is_stateless in [false, true] {
        for tool in ["wait", "stream"] {
            let world = World::start().await;
            let mut a = world.live_window("a").await;
            let mut message = call("x", tool, json!({}));
            message["params"]["_meta"] = json!({ "progressToken": 1 });
            let request = if is_stateless {
                let request = stateless(&world, &message).build().unwrap();
                let mut body: Value =
                    serde_json::from_slice(request.body().unwrap().as_bytes().unwrap()).unwrap();
                body["params"]["_meta"]["progressToken"] = json!(1);
                reqwest::RequestBuilder::from_parts(reqwest::Client::new(), request).body(body.to_string())
            } else {
                world.request("/mcp").body(message.to_string())
            };
            let running = send(request);
            assert_eq!(a.event().await, format!("started {tool}"));
            let killed = Instant::now();
            a.kill.cancel();
            let answer = running.await.unwrap();
            assert_eq!(content(&answer)["code"], "outcome_unknown", "{tool}");
            assert_eq!((&answer.1["id"], &answer.1["result"]["isError"]), (&json!("x"), &json!(true)));
            assert!(killed.elapsed().as_millis() < 1000);
        }
    }
}

#[tokio::test]
async fn a_window_that_hangs_and_is_evicted_leaves_an_unknown_outcome() {
    let world = World::start().await;
    let mut a = world.live_window("a").await;
    let running = send(world.request("/mcp").body(call(1, "wait", json!({})).to_string()));
    a.event().await;
    world.remove(&a.window.id);
    assert_eq!(content(&running.await.unwrap())["code"], "outcome_unknown");
}

#[tokio::test]
async fn a_port_that_is_left_answers_the_calls_it_has() {
    let world = World::start().await;
    let mut a = world.live_window("a").await;
    let session = world.initialize("2025-11-25").await;
    let running = post(&world, &session, &call(1, "wait", json!({})));
    assert_eq!(a.event().await, "started wait");
    world.leaving.cancel();
    while tokio::net::TcpStream::connect(("127.0.0.1", world.port)).await.is_ok() {}
    // Longer than calls in flight have at the end of the coordinator.
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(3)).await;
    tokio::time::resume();
    a.release.send_replace(true);
    assert_eq!(content(&running.await.unwrap())["ended"], "ended");
}

#[tokio::test]
async fn a_handover_lets_running_calls_end_and_sends_new_ones_to_the_new_window() {
    let world = World::start().await;
    let mut a = world.live_window("a").await;
    let b = FakeWindow::start("b").await;
    world.register(&b);
    let session = world.initialize("2025-11-25").await;
    let running = post(&world, &session, &call(1, "wait", json!({})));
    assert_eq!(a.event().await, "started wait");
    world.take(&b, 2);
    assert_eq!(content(&world.post(Some(&session), call(2, "echo", json!({}))).await)["window"], "b");
    assert!(!running.is_finished());
    a.release.send_replace(true);
    let answer = running.await.unwrap();
    assert_eq!((&content(&answer)["window"], &content(&answer)["ended"]), (&json!("a"), &json!("ended")));
}

/// A client that heard of another window is refused before anything is done in this one, unless an answer named it.
#[tokio::test]
async fn only_an_answer_that_names_the_window_counts_as_heard() {
    let world = World::start().await;
    let a = world.live_window("a").await;
    let mut b = FakeWindow::start("b").await;
    world.register(&b);
    let session = world.initialize("2025-06-18").await;
    let act = |id: u64| world.post(Some(&session), call(id, "echo", json!({})));
    assert_eq!(content(&act(1).await)["window"], "a");
    world.take(&b, 2);

    let look = |id: u64| call(id, TOOL, json!({ "wait": true }));
    let cancelled = post(&world, &session, &look(2));
    assert_eq!(b.event().await, format!("started {TOOL}"));
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    world.post(Some(&session), cancel).await;
    assert_eq!(content(&cancelled.await.unwrap())["status"], "interrupted");
    assert_eq!(content(&act(3).await)["code"], "window_changed");

    world.take(&a, 3);
    assert_eq!(content(&act(4).await)["code"], "window_changed");
    world.take(&b, 4);
    let lost = post(&world, &session, &look(5));
    assert_eq!(b.event().await, format!("cancelled {TOOL}"));
    assert_eq!(b.event().await, format!("started {TOOL}"));
    b.kill.cancel();
    let lost = lost.await.unwrap();
    let message = content(&lost)["message"].as_str().unwrap();
    assert!(message.starts_with("Window \"project b\" (/src/b) exited during this call"), "{message}");
    let mut again = FakeWindow::start("b").await;
    again.window.incarnation = 2;
    world.register(&again);
    world.take(&again, 5);
    assert_eq!(content(&act(6).await)["window"], "b");
    assert_eq!(again.event().await, "started echo");
}

/// Windows of a busy machine come late after the coordinator has started again.
#[tokio::test]
async fn a_client_waits_for_the_window_that_answered_it_before() {
    let world = World::start().await;
    let from = |folder: &str| {
        let request = world.request("/mcp").header(FOLDER_HEADER, folder).header(HEARD_HEADER, "");
        request.header(BOUND_HEADER, folder).body(call(1, TOOL, json!({})).to_string())
    };
    let waiting = send(from("/src/a"));
    world.post(None, json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(3)).await;
    tokio::time::resume();
    world.post(None, json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await;
    assert!(!waiting.is_finished());
    let a = FakeWindow::start("a").await;
    world.register(&a);
    assert_eq!(content(&waiting.await.unwrap())["window"], "a");
    // Not for ever.
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(3)).await;
    tokio::time::resume();
    assert_eq!(content(&send(from("/src/b")).await.unwrap())["code"], "no_window");
}

#[tokio::test]
async fn a_notification_cancels_the_call_of_its_own_session_only() {
    for tool in ["wait", "stream"] {
        let world = World::start().await;
        let mut a = world.live_window("a").await;
        let (mine, other) = (world.initialize("2025-06-18").await, world.initialize("2025-06-18").await);
        let mut message = call(7, tool, json!({}));
        message["params"]["_meta"] = json!({ "progressToken": 1 });
        let running = post(&world, &mine, &message);
        assert_eq!(a.event().await, format!("started {tool}"));
        let twice = world.post(Some(&mine), message.clone()).await;
        assert_eq!(twice.1["error"]["code"], -32600, "the same id twice at once");
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
        assert_eq!(world.post(Some(&other), cancel.clone()).await.0, 202);
        assert!(!running.is_finished());
        assert_eq!(world.post(Some(&mine), cancel).await.0, 202);
        let answer = running.await.unwrap();
        assert_eq!(content(&answer)["status"], "interrupted");
        assert_eq!(answer.1["id"], 7);
        assert_eq!(a.event().await, format!("cancelled {tool}"));
    }
}

#[tokio::test]
async fn a_held_call_can_be_cancelled() {
    let world = World::start().await;
    let session = world.initialize("2025-06-18").await;
    let held = post(&world, &session, &call(7, TOOL, json!({})));
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    while !held.is_finished() {
        world.post(Some(&session), cancel.clone()).await;
    }
    assert_eq!(content(&held.await.unwrap())["status"], "interrupted");
}

#[tokio::test]
async fn a_cancellation_may_overtake_its_call() {
    let world = World::start().await;
    let mut a = world.live_window("a").await;
    let session = world.initialize("2025-06-18").await;
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    assert_eq!(world.post(Some(&session), cancel).await.0, 202);
    let answer = world.post(Some(&session), call(7, "wait", json!({}))).await;
    assert_eq!(content(&answer)["status"], "interrupted");
    // The window never heard of it: the next call is the first.
    let _running = post(&world, &session, &call(8, "stream", json!({})));
    assert_eq!(a.event().await, "started stream");
}

#[tokio::test]
async fn a_lost_client_cancels_in_the_stateless_era_only() {
    for tool in ["wait", "stream"] {
        let world = World::start().await;
        let mut a = world.live_window("a").await;
        let mut message = call(1, tool, json!({}));
        message["params"]["_meta"] = json!({ "progressToken": 1 });
        let session = world.initialize("2025-06-18").await;
        let lost = post(&world, &session, &message);
        assert_eq!(a.event().await, format!("started {tool}"));
        lost.abort();
        assert!(lost.await.unwrap_err().is_cancelled());
        // The window still runs it, to its own end.
        world.post(None, call(2, "echo", json!({}))).await;
        assert_eq!(a.event().await, "started echo");
        a.release.send_replace(true);
        assert_eq!(a.event().await, format!("ended {tool}"));

        a.release.send_replace(false);
        let mut request = stateless(&world, &message).build().unwrap();
        let mut body: Value = serde_json::from_slice(request.body().unwrap().as_bytes().unwrap()).unwrap();
        body["params"]["_meta"]["progressToken"] = json!(1);
        *request.body_mut() = Some(body.to_string().into());
        let lost = tokio::spawn(async move {
            let response = reqwest::Client::new().execute(request).await.unwrap();
            response.text().await
        });
        assert_eq!(a.event().await, format!("started {tool}"));
        lost.abort();
        assert_eq!(a.event().await, format!("cancelled {tool}"));
    }
}

#[tokio::test]
async fn progress_notices_come_through_before_the_answer() {
    let world = World::start().await;
    let mut a = world.live_window("a").await;
    a.release.send_replace(true);
    let mut message = call(1, "stream", json!({}));
    message["params"]["_meta"] = json!({ "progressToken": "p" });
    let response = world.request("/mcp").body(message.to_string()).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let messages: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!(messages[0]["method"], "notifications/progress");
    assert_eq!(messages[1]["result"]["structuredContent"]["window"], "a");
    assert_eq!(a.event().await, "started stream");
}
