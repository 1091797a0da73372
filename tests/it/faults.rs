//! What may break, broken on real processes; the numbers are those of `docs/reliability.md`.
//!
//! Bounds here are generous, for busy machines; the measured ones are in `docs/performance.md`.

mod limits;
mod soak;
mod start;
mod time;
mod versions;

use std::time::{Duration, Instant};

use baton_proto::control::WindowState;
use baton_proto::discovery::{KEY_LEN, Role, Secret};
use baton_proto::edge::{REFUSED_HEADER, TERM_HEADER};
use baton_tests::client::{Client, ClientKind};
use baton_tests::process::{await_some, is_alive, kill9, signal};
use baton_tests::raw::{KeepAlive, Request, Sent};
use baton_tests::story::configurations;
use baton_tests::world::{PATIENCE, WindowOptions, World, find, live_name, state_of};
use rustix::process::Signal;
use serde_json::{Value, json};

fn secret(world: &World) -> Secret {
    let bytes = std::fs::read(world.home().join("secret")).expect("the secret is there");
    Secret::new(<[u8; KEY_LEN]>::try_from(bytes).expect("the secret has its length"))
}

/// Until a killed coordinator has a successor that answers.
const F1_BOUND: Duration = Duration::from_secs(1);
/// Until a stopped coordinator is noticed, killed and replaced.
const F5_BOUND: Duration = Duration::from_secs(5);

/// How long it takes from now until a call is answered by the live window, which is the one of that name.
fn until_answered(world: &World, token: &str, name: &str) -> Duration {
    let start = Instant::now();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_breakpoints", "arguments": {} } });
    let request = Request::post(world.port(), "/mcp", token, call.to_string())
        .with("MCP-Protocol-Version", "2025-11-25");
    let answered = await_some(PATIENCE, || match KeepAlive::new(world.port()).try_send(&request) {
        Sent::Answered(answer) => Some((start.elapsed(), answer)),
        Sent::Refused | Sent::Torn => None,
    });
    let (taken, answer) = answered.expect("somebody answers");
    let message: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(message["result"]["_meta"]["baton/window"]["name"], name, "{answer:?}");
    taken
}

#[test]
fn f1_an_idle_coordinator_is_killed() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    world.take("weather");
    let mut client = world.client(ClientKind::Python1);
    assert_eq!(configurations(&mut client), ["warmest"]);
    let token = world.token();
    let mut taken = vec![];
    for _ in 0..3 {
        let before = world.await_live("weather");
        kill9(before.pid);
        taken.push(until_answered(&world, &token, "weather"));
        let after = world.await_status("a successor", |status| {
            let is_new = status.generation > before.generation && status.windows.len() == 2;
            is_new && live_name(status) == Some("weather")
        });
        assert_eq!(after.port, before.port);
        assert!(after.term > before.term, "{after:?}");
        assert_eq!(configurations(&mut client), ["warmest"], "the client's session goes on");
    }
    // The machine may be busy; not all the time.
    assert!(taken.iter().any(|taken| *taken < F1_BOUND), "{taken:?}");
    client.close();
}

#[test]
fn f2_the_coordinator_is_killed_in_mid_call() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    // A stateless client survives its own lost call by definition; what is looked at is the window.
    let mut client = world.client(ClientKind::Client2);
    let call = client.send_call("start_debugging", json!({ "configuration_name": "wait" }));
    let before = world.await_status("the call runs", |status| {
        find(status, "shop").is_some_and(|window| !window.debug_sessions.is_empty())
    });
    kill9(before.pid);
    let start = Instant::now();
    let answer = client.wait(call);
    assert!(start.elapsed() < PATIENCE, "the client was told nothing: {answer:?}");
    let after = world.await_status("a successor", |status| {
        status.generation > before.generation && live_name(status) == Some("shop")
    });
    let n_sessions = find(&after, "shop").expect("it is there").debug_sessions.len();
    assert!(n_sessions <= 1, "the call ran at most once: {after:?}");
    client.call("get_breakpoints", json!({}));
    if n_sessions == 1 {
        client.expect("success", "stop_debugging", json!({}));
    }
    client.close();
}

#[test]
fn f5_a_stopped_coordinator_is_replaced_and_harms_nothing_later() {
    let mut world = World::new();
    world.window("shop");
    let token = world.token();
    let mut taken = vec![];
    for _ in 0..2 {
        let before = world.await_live("shop");
        signal(before.pid, Signal::STOP);
        taken.push(until_answered(&world, &token, "shop"));
        let after = world.await_live("shop");
        assert!(after.generation > before.generation);
        assert!(!is_alive(before.pid), "the stopped one was killed");
    }
    // As above.
    assert!(taken.iter().any(|taken| *taken < F5_BOUND), "{taken:?}");
    let mut client = world.client(ClientKind::Python1);
    assert_eq!(configurations(&mut client)[0], "bill");
    client.close();
}

/// Without a window nobody else would notice.
#[test]
fn f5_the_bridge_replaces_a_stopped_coordinator() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let stopped = world.coordinator_pid();
    let mut client = Client::connect_stdio(&world, ClientKind::Sdk1, &["stdio"], world.scratch());
    client.call("list_windows", json!({}));
    signal(stopped, Signal::STOP);
    let answer = client.call("list_windows", json!({}));
    assert_eq!(answer["windows"], json!([]), "{answer}");
    assert!(!is_alive(stopped), "the stopped one was killed");
    client.close();
}

#[test]
fn f5_a_stopped_coordinator_can_be_ended() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let pid = world.coordinator_pid();
    signal(pid, Signal::STOP);
    let printed = world.baton(&["down"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    assert!(printed.err.contains("Killed") && !is_alive(pid), "{printed:?}");
    assert_eq!(world.baton(&["status"]).code, 3);
}

#[test]
fn f7_the_live_agent_is_killed_and_comes_back_live() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    world.window("weather");
    let mut client = world.client(ClientKind::Python1);
    let agent = world.agent_pid("shop");
    kill9(agent);
    // A call that reaches the dying agent first has an unknown outcome, and is told so.
    world.await_status("its death is noticed", |status| {
        live_name(status).is_none() || find(status, "shop").is_some_and(|window| window.pid != agent)
    });
    // The call in the gap waits and is answered by the same window.
    assert_eq!(configurations(&mut client)[0], "bill");
    let after = world.await_status("it is live again", |status| {
        find(status, "shop").is_some_and(|window| window.pid != agent && window.state == WindowState::Live)
    });
    assert_eq!(find(&after, "shop").map(|window| &window.id), before.live.as_ref(), "under the same id");
    assert_eq!(state_of(&after, "weather"), Some(WindowState::Standby));
    client.close();
}

#[test]
fn f7_a_call_that_ran_when_its_window_died_is_told_as_unknown() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut client = world.client(ClientKind::Python2);
    let call = client.send_call("start_debugging", json!({ "configuration_name": "wait" }));
    world.await_status("the call runs", |status| {
        find(status, "shop").is_some_and(|window| !window.debug_sessions.is_empty())
    });
    let agent = world.agent_pid("shop");
    kill9(agent);
    let killed = Instant::now();
    let answer = client.wait(call).expect("a result, not a broken stream");
    assert!(killed.elapsed() < Duration::from_secs(3), "told after {:?}", killed.elapsed());
    assert_eq!(answer["structuredContent"]["code"], "outcome_unknown", "{answer:#}");
    assert_eq!(answer["isError"], true, "{answer:#}");
    // Nothing of the dead agent's debugging is left.
    let folder = world.folder("shop");
    let is_gone = || {
        let left = baton_tests::process::of_home(&world.home());
        left.iter()
            .all(|(_, line)| !line.contains(folder.join("wait.py").to_str().unwrap_or("?")))
            .then_some(())
    };
    assert!(await_some(PATIENCE, is_gone).is_some(), "the debuggee outlived its agent");
    // One that reaches the dying agent first is told the same.
    world.await_status("its death is noticed", |status| {
        live_name(status).is_none() || find(status, "shop").is_some_and(|window| window.pid != agent)
    });
    assert_eq!(configurations(&mut client)[0], "bill");
    client.close();
}

#[test]
fn f24_a_takeover_during_a_call_lets_it_finish() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let mut client = world.client(ClientKind::Sdk1);
    let call = client.send_call("start_debugging", json!({ "configuration_name": "wait" }));
    world.await_status("the call runs", |status| {
        find(status, "shop").is_some_and(|window| !window.debug_sessions.is_empty())
    });
    world.take("weather");
    assert_eq!(configurations(&mut client), ["warmest"], "new calls go to the new window");
    std::fs::write(world.folder("shop").join("go"), "").expect("the folder is there");
    let answer = client.wait(call).expect("the old call is answered");
    assert_eq!(answer["structuredContent"]["status"], "completed", "{answer:#}");
    assert_eq!(answer["_meta"]["baton/window"]["name"], "shop", "{answer:#}");
    client.close();
}

#[test]
fn f24_of_two_takeovers_at_once_the_last_accepted_wins() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    world.window("robots");
    let mut last_term = None;
    for _ in 0..10 {
        std::thread::scope(|scope| {
            for name in ["weather", "robots"] {
                let world = &world;
                scope.spawn(move || world.take(name));
            }
        });
        let status = world.status().expect("it runs");
        let live = status.windows.iter().filter(|window| window.state == WindowState::Live).count();
        assert_eq!(live, 1, "{status:?}");
        assert!(status.term > last_term, "terms are ordered");
        last_term = status.term;
    }
}

#[test]
fn f25_late_and_repeated_messages_change_nothing() {
    let mut world = World::new();
    world.window("shop");
    let status = world.await_live("shop");
    let window = find(&status, "shop").expect("it is there").clone();
    let member = secret(&world).token(Role::Member).expose().to_owned();
    let path = |verb: &str| format!("/v1/windows/{}/{verb}", window.id);
    let old = json!({
        "protocol": 1, "version": "0", "name": "impostor", "kind": "headless", "folders": ["/tmp"],
        "auto_start": true, "pid": 1, "port": 19_999, "incarnation": 1, "held_term": [0, 1]
    });
    for (verb, body) in [
        ("register", old),
        ("heartbeat", json!({ "incarnation": 1, "seq": 99, "debug_sessions": [{ "id": "x", "name": "x" }] })),
        ("leave", json!({ "incarnation": 1 })),
    ] {
        for _ in 0..2 {
            let request = Request::post(world.port(), &path(verb), &member, body.to_string());
            let answer = request.send(world.port());
            assert!(answer.status == 200 || (400..500).contains(&answer.status), "{verb}: {answer:?}");
        }
    }
    let after = world.status().expect("it runs");
    let now = find(&after, "shop").expect("it is still there under its name");
    assert_eq!((now.pid, now.state, &now.folders), (window.pid, WindowState::Live, &window.folders));
    assert_eq!(after.term, status.term);
    assert!(now.debug_sessions.is_empty());
}

#[test]
fn f27_nobody_is_promoted_where_nobody_starts_by_itself() {
    let mut world = World::new();
    let off = || WindowOptions { no_auto_start: true, ..WindowOptions::default() };
    world.window_with("shop", off());
    world.window_with("weather", off());
    world.take("shop");
    world.await_live("shop");
    let mut client = world.client(ClientKind::Python2);
    assert_eq!(configurations(&mut client)[0], "bill");
    world.close_window("shop");
    let status = world.await_nobody_live();
    assert_eq!(state_of(&status, "weather"), Some(WindowState::Off));
    world.baton_ok(&["settings", "hold_calls_ms", "300"]);
    let content = client.call("get_breakpoints", json!({}));
    assert_eq!(content["status"], "error", "{content:#}");
    assert!(content.to_string().contains("weather"), "the advice names what could be taken: {content:#}");
    assert!(world.status().expect("it runs").live.is_none());
    client.close();
}

/// What is left of a call when its client is killed: true when the window goes on waiting.
fn call_survives(kind: ClientKind) -> bool {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut client = world.client(kind);
    let mut other = world.client(ClientKind::Sdk1);
    let stop = client.stop_in_wait();
    let resume = json!({ "thread_id": stop["thread_id"], "session_id": stop["session_id"] });
    // While the wait of one client lasts, another one on the same thread is refused as busy.
    let is_busy = |other: &mut Client| other.call("continue_debugging", resume.clone())["code"] == "busy";
    let running = client.send_call("continue_debugging", resume.clone());
    let evaluate = json!({ "expression": "1", "frame_id": stop["call_stack"][0]["frame_id"] });
    let is_running =
        || (other.call("evaluate_expression", evaluate.clone())["status"] == "error").then_some(());
    assert!(await_some(PATIENCE, is_running).is_some(), "the program did not go on");
    assert!(is_busy(&mut other), "the wait lasts");
    kill9(client.pid());
    let _ = client.wait(running);
    let survives = match kind.protocol() {
        "2026-07-28" => await_some(Duration::from_secs(5), || (!is_busy(&mut other)).then_some(())).is_none(),
        _ => (0..20).all(|_| is_busy(&mut other)),
    };
    other.expect("success", "stop_debugging", json!({ "session_id": stop["session_id"] }));
    other.close();
    survives
}

#[test]
fn f29_a_lost_client_cancels_where_the_revision_says_so() {
    assert!(!call_survives(ClientKind::Python2), "2026-07-28: a closed stream cancels");
}

#[test]
fn f29_a_lost_client_alone_cancels_nothing_in_older_revisions() {
    assert!(call_survives(ClientKind::Python1), "2025-11-25: a lost connection does not cancel");
}

#[test]
fn t13_a_lower_term_is_refused_unrun() {
    let mut world = World::new();
    world.window("shop");
    let status = world.await_live("shop");
    let window = find(&status, "shop").expect("it is there");
    let socket = world.agent_socket(&window.id);
    let incarnation = world.incarnation(&window.id);
    let token = secret(&world).window_token(&window.id, Some(incarnation)).expose().to_owned();
    let term = status.term.expect("it is live");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "set_breakpoint", "arguments": { "file_path": "main.py", "line_number": 8 } } });
    let with_term = |generation: u64, seq: u64| {
        Request::post(0, "/mcp", &token, call.to_string())
            .replacing("Host", "localhost")
            .with("MCP-Protocol-Version", "2025-11-25")
            .with(TERM_HEADER, &format!("{generation}.{seq}"))
            .send_to_socket(&socket)
    };
    for (generation, seq) in [(term.generation - 1, 99), (term.generation, term.seq - 1), (0, 0)] {
        let answer = with_term(generation, seq);
        assert_eq!(answer.status, 409, "{answer:?}");
        assert!(answer.header(REFUSED_HEADER).is_some(), "{answer:?}");
    }
    let mut client = world.client(ClientKind::Python1);
    let content = client.expect("success", "get_breakpoints", json!({}));
    assert_eq!(content["breakpoints"], Value::Array(vec![]), "nothing was run");
    client.close();
    let earlier = secret(&world).window_token(&window.id, Some(incarnation - 1)).expose().to_owned();
    for token in ["wrong", &earlier] {
        let without = Request::post(0, "/mcp", token, call.to_string()).replacing("Host", "localhost");
        let answer = without.with(TERM_HEADER, "9.9").send_to_socket(&socket);
        assert_eq!(answer.status, 401, "an agent wants the token of its incarnation too");
    }
}
