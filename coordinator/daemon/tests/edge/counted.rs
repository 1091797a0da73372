//! What is counted of calls, beside what their clients were told.

use serde_json::{Value, json};

use crate::world::{FakeWindow, World, call, content, read, stateless};

/// A tool of the catalogue, so that it is held while no window is live.
const TOOL: &str = "get_breakpoints";

/// The value of the one series of that name that has all these labels; `None` when there is none.
fn value(text: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
    let is_it = |line: &&str| {
        let rest = line.strip_prefix(name).unwrap_or_default();
        rest.starts_with(['{', ' ']) && labels.iter().all(|label| rest.contains(label))
    };
    let mut found = text.lines().filter(is_it);
    let line = found.next()?;
    assert_eq!(found.next(), None, "one series in {text}");
    line.rsplit_once(' ')?.1.parse().ok()
}

/// How many calls of a tool have ended so; an empty error is a good answer.
fn n_ended(text: &str, tool: &str, error: &str) -> f64 {
    let labels = [("gen_ai_tool_name", tool), ("error_type", error), ("mcp_method_name", "tools/call")];
    value(text, "mcp_server_operation_duration_seconds_count", &labels).unwrap_or(0.0)
}

#[tokio::test]
async fn a_call_is_counted_while_it_is_held_while_it_runs_and_when_it_ends() {
    let world = World::start().await;
    let mut a = FakeWindow::start("a").await;
    world.register(&a);
    let request = world.request("/mcp").body(call(1, TOOL, json!({ "wait": true })).to_string());
    let sent = tokio::spawn(async move { read(request.send().await.unwrap()).await });
    // One round trip later the call is held.
    world.post(None, json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    let text = world.metrics().await;
    let now = |text: &str| {
        let figure = |name| value(text, name, &[]).unwrap_or_else(|| panic!("no {name} in {text}"));
        (figure("baton_calls_running"), figure("baton_calls_held"), n_ended(text, TOOL, ""))
    };
    assert_eq!(now(&text), (1.0, 1.0, 0.0), "{text}");
    world.take(&a, 1);
    assert_eq!(a.event().await, format!("started {TOOL}"));
    assert_eq!(now(&world.metrics().await), (1.0, 0.0, 0.0));
    a.release.send(true).unwrap();
    assert_eq!(content(&sent.await.unwrap())["window"], "a");
    let text = world.metrics().await;
    assert_eq!(now(&text), (0.0, 0.0, 1.0), "{text}");
    let states = [("live", 1.0), ("standby", 0.0), ("off", 0.0)];
    for (state, n_windows) in states {
        let labels = [("kind", "headless"), ("state", state)];
        assert_eq!(value(&text, "baton_windows", &labels), Some(n_windows), "{text}");
    }
    assert_eq!(value(&text, "baton_debug_sessions", &[]), Some(1.0), "{text}");
}

#[tokio::test]
async fn each_end_of_a_call_is_counted_as_what_the_client_was_told() {
    let world = World::start().await;
    let mut a = world.live_window("a").await;
    // A stream that goes on, and one whose client hangs up.
    let mut message = call(1, "stream", json!({}));
    message["params"]["_meta"] = json!({ "progressToken": 7 });
    let session = world.initialize("2025-11-25").await;
    let in_session =
        |message: &Value| world.request("/mcp").header("mcp-session-id", &session).body(message.to_string());
    let stream = in_session(&message).send().await.unwrap();
    assert_eq!(a.event().await, "started stream");
    let hung_up = stateless(&world, &call(2, TOOL, json!({ "wait": true })));
    let hung_up = tokio::spawn(async move { hung_up.send().await });
    assert_eq!(a.event().await, format!("started {TOOL}"));
    hung_up.abort();
    assert_eq!(a.event().await, format!("cancelled {TOOL}"));
    let text = world.metrics().await;
    assert_eq!((n_ended(&text, TOOL, "cancelled"), n_ended(&text, "other", "")), (1.0, 0.0), "{text}");
    // The window goes in the middle of a call: nobody knows what became of it.
    let lost = in_session(&call(3, TOOL, json!({ "wait": true })));
    let lost = tokio::spawn(async move { read(lost.send().await.unwrap()).await });
    assert_eq!(a.event().await, format!("started {TOOL}"));
    a.kill.cancel();
    assert_eq!(content(&lost.await.unwrap())["code"], "outcome_unknown");
    assert_eq!(read(stream).await.1["result"]["structuredContent"]["code"], "outcome_unknown");
    let text = world.metrics().await;
    let unknown = |tool| n_ended(&text, tool, "outcome_unknown");
    assert_eq!((unknown(TOOL), unknown("other")), (1.0, 1.0), "{text}");
    // What Baton says itself: a tool of its own, and a refusal. Names of clients' making are no labels.
    world.post(None, call(4, "list_windows", json!({}))).await;
    world.post(None, call(5, "activate_window", json!({ "window": "nosuch" }))).await;
    world.remove(&a.window.id);
    let answer = world.post(None, call(6, "no such tool", json!({}))).await;
    assert!(answer.1["error"]["message"].as_str().unwrap().starts_with("unknown tool"), "{answer:?}");
    let text = world.metrics().await;
    assert_eq!(n_ended(&text, "list_windows", ""), 1.0, "{text}");
    assert_eq!(n_ended(&text, "activate_window", "unknown_window"), 1.0, "{text}");
    assert_eq!(n_ended(&text, "other", "rpc_error"), 1.0, "{text}");
    assert!(!text.contains("no such") && !text.contains("nosuch"), "{text}");
    assert_eq!(value(&text, "baton_calls_running", &[]), Some(0.0), "{text}");
}
