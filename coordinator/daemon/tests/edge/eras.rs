//! Both eras: sessions that survive, stateless requests, streams that hear of a handover, the Rust client.

use std::sync::Arc;

use baton_proto::control::{AiHandover, Routing, Settings, WindowKind};
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, NotificationContext, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, serve_client_with_lifecycle};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::{FakeWindow, PATIENCE, World, call, content, read, stateless};

/// A client that reports every notice of a changed list.
#[derive(Clone)]
struct Listener(mpsc::UnboundedSender<()>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        let _ = self.0.send(());
    }
}

struct Client {
    service: RunningService<RoleClient, Listener>,
    changes: mpsc::UnboundedReceiver<()>,
}

impl Client {
    async fn connect(world: &World, lifecycle: ClientLifecycleMode) -> Self {
        let config =
            StreamableHttpClientTransportConfig::with_uri(world.url("/mcp")).auth_header(world.token());
        let transport = StreamableHttpClientTransport::from_config(config);
        let (sender, changes) = mpsc::unbounded_channel();
        let service = serve_client_with_lifecycle(Listener(sender), transport, lifecycle).await.unwrap();
        Self { service, changes }
    }

    /// The window that answers, or the code of the error. The edge does not know this tool, so it may do anything.
    async fn echo(&self) -> String {
        let answer = self.service.call_tool(CallToolRequestParams::new("echo")).await.unwrap();
        let content = answer.structured_content.unwrap();
        content["window"].as_str().or(content["code"].as_str()).unwrap().to_owned()
    }
}

#[tokio::test]
async fn the_official_client_of_the_older_era_goes_on_over_a_handover_and_a_restart() {
    let world = World::start().await;
    let a = world.live_window("a").await;
    let b = FakeWindow::start("b").await;
    world.register(&b);
    let mut client = Client::connect(&world, ClientLifecycleMode::Initialize).await;
    let names: Vec<_> = client
        .service
        .list_all_tools()
        .await
        .unwrap()
        .into_iter()
        .map(|tool| tool.name.to_string())
        .collect();
    assert!(names.contains(&"list_windows".to_owned()), "{names:?}");
    assert_eq!(client.echo().await, "a");
    // The GET stream is open once a change is heard on it; before that, a notice may have nobody to hear it.
    let mut seq = 1;
    loop {
        seq += 1;
        world.take(if seq % 2 == 0 { &b } else { &a }, seq);
        if tokio::time::timeout(std::time::Duration::from_millis(200), client.changes.recv()).await.is_ok() {
            break;
        }
        assert!(seq < 40, "the client never heard of a handover");
    }
    world.take(&b, 100);
    assert_eq!(client.echo().await, "window_changed");
    assert_eq!(client.echo().await, "b");

    let (port, roster) = (world.port, world.roster.borrow().clone());
    world.shutdown.cancel();
    wait_until_closed(port).await;
    drop(world);
    let world = World::start_on(port, Settings::default()).await;
    world.change(|fresh| *fresh = (*roster).clone());
    assert_eq!(client.echo().await, "b");
    client.service.cancel().await.unwrap();
}

#[tokio::test]
async fn the_official_client_of_the_stateless_era_goes_on_over_a_handover() {
    let world = World::start().await;
    let _a = world.live_window("a").await;
    let b = FakeWindow::start("b").await;
    world.register(&b);
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = Client::connect(&world, lifecycle).await;
    assert!(client.service.list_all_tools().await.unwrap().len() > 2);
    assert_eq!(client.echo().await, "a");
    let filter = rmcp::model::SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = client.service.listen(filter).await.unwrap();
    assert_eq!(subscription.acknowledged().tools_list_changed, Some(true));
    world.take(&b, 2);
    let notice = tokio::time::timeout(PATIENCE, subscription.next()).await.expect("a notice").unwrap();
    assert!(format!("{notice:?}").contains("ToolListChanged"), "{notice:?}");
    assert_eq!(client.echo().await, "window_changed");
    assert_eq!(client.echo().await, "b");
}

#[tokio::test]
async fn sessions_are_sealed_end_with_delete_and_are_bound_to_their_token() {
    let world = World::start().await;
    let ping = || json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let session = world.initialize("2025-06-18").await;
    assert_eq!(
        world.post(Some(&session), ping()).await,
        (200, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }))
    );
    let mut forged = session.clone().into_bytes();
    forged[40] ^= 1;
    for wrong in [&*String::from_utf8(forged).unwrap(), "x", &world.token()] {
        let (status, answer) = world.post(Some(wrong), ping()).await;
        assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32001)));
    }
    let delete = reqwest::Client::new().delete(world.url("/mcp")).bearer_auth(world.token());
    let deleted = delete.header("mcp-session-id", &session).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    assert_eq!(world.post(Some(&session), ping()).await.0, 404);
    let session = world.initialize("2025-11-25").await;
    world.change(|roster| roster.client_epoch = 1);
    assert_eq!(world.post(Some(&session), ping()).await.0, 404, "another token's session");
}

#[tokio::test]
async fn everything_but_tool_calls_is_answered_without_a_window() {
    let world = World::start().await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = world.initialize(revision).await;
        let list = json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/list" });
        let (status, answer) = world.post(Some(&session), list).await;
        assert_eq!((status, &answer["id"]), (200, &json!("x")));
        assert!(answer["result"]["tools"].as_array().unwrap().len() >= 8);
        let unknown = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/list" });
        let (status, answer) = world.post(Some(&session), unknown).await;
        assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32601)));
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(world.post(Some(&session), notice).await.0, 202);
    }
    let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} });
    let (status, answer) = read(stateless(&world, &discover).send().await.unwrap()).await;
    assert_eq!(status, 200);
    assert_eq!(answer["result"]["supportedVersions"][0], "2026-07-28");
    let unknown = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": {} });
    let (status, answer) = read(stateless(&world, &unknown).send().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!(-32601)));
}

#[tokio::test]
async fn a_window_hears_which_calls_are_of_one_client() {
    let world = World::start().await;
    let _window = world.live_window("a").await;
    let mut callers = Vec::new();
    for _ in 0..2 {
        let session = world.initialize("2025-06-18").await;
        for id in 1..3 {
            let answer = world.post(Some(&session), call(id, "caller", json!({}))).await;
            callers.push(content(&answer)["caller"].as_str().unwrap().to_owned());
        }
    }
    assert!(callers[0] == callers[1] && callers[2] == callers[3] && callers[0] != callers[2], "{callers:?}");
    // Without sessions there is the name alone.
    let answer = read(stateless(&world, &call(1, "caller", json!({}))).send().await.unwrap()).await;
    assert_eq!(content(&answer)["caller"], "test");
}

#[tokio::test]
async fn toolsets_are_chosen_by_url_and_setting() {
    let world = World::start().await;
    let tools = async |path: &str| {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        read(world.request(path).body(list.to_string()).send().await.unwrap()).await.1
    };
    assert_eq!(tools("/mcp?toolsets=windows").await["result"]["tools"].as_array().unwrap().len(), 2);
    let message = tools("/mcp?toolsets=windows,nope").await["error"]["message"].to_string();
    assert!(message.contains("unknown toolset") && message.contains("debugger"), "{message}");
    world.change(|roster| {
        Arc::make_mut(&mut roster.settings).toolsets = vec!["windows".to_owned()];
    });
    assert_eq!(tools("/mcp").await["result"]["tools"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn headers_of_the_stateless_era_must_agree_with_the_body() {
    let world = World::start().await;
    let _a = world.live_window("a").await;
    let message = call(1, "echo", json!({}));
    assert_eq!(read(stateless(&world, &message).send().await.unwrap()).await.0, 200);
    let wrong: [(&str, Option<&str>, i32); 5] = [
        ("mcp-method", Some("tools/list"), -32020),
        ("mcp-method", None, -32020),
        ("mcp-name", Some("other"), -32020),
        ("mcp-name", None, -32020),
        ("mcp-protocol-version", Some("2031-01-01"), -32022),
    ];
    for (name, value, code) in wrong {
        let mut request = stateless(&world, &message).build().unwrap();
        request.headers_mut().remove(name);
        if let Some(value) = value {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let (status, answer) = read(reqwest::Client::new().execute(request).await.unwrap()).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{name} {value:?}: {answer}");
    }
    let mut request = stateless(&world, &message).build().unwrap();
    request.headers_mut().insert("mcp-name", "=?base64?ZWNobw==?=".parse().unwrap());
    assert_eq!(reqwest::Client::new().execute(request).await.unwrap().status(), 200);
    let no_meta =
        world.request("/mcp").header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
    let no_meta = no_meta.header("mcp-name", "echo").body(message.to_string());
    let (status, answer) = read(no_meta.send().await.unwrap()).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32602)));
}

#[tokio::test]
async fn windows_are_listed_named_and_handed_over() {
    let mut world = World::start().await;
    let a = world.live_window("a").await;
    let mut b = FakeWindow::start("b").await;
    world.register(&b);
    let listed = world.post(None, call(1, "list_windows", json!({}))).await;
    assert_eq!(content(&listed)["live"], "a");
    assert_eq!(content(&listed)["windows"][1]["name"], "project b");
    let refused = world.post(None, call(1, "echo", json!({ "window": "b" }))).await;
    assert_eq!(content(&refused)["code"], "not_live");
    assert_eq!(
        content(&world.post(None, call(1, "echo", json!({ "window": "project a" }))).await)["window"],
        "a"
    );
    world.change(|roster| Arc::make_mut(&mut roster.settings).routing = Routing::Any);
    assert_eq!(content(&world.post(None, call(1, "echo", json!({ "window": "b" }))).await)["window"], "b");
    let by_session = world.post(None, call(1, "echo", json!({ "session_id": "session-b" }))).await;
    assert_eq!(content(&by_session)["window"], "b");
    let pinned = world.request("/mcp/windows/project%20b").body(call(1, "echo", json!({})).to_string());
    assert_eq!(content(&read(pinned.send().await.unwrap()).await)["window"], "b");
    let by_folder =
        world.request("/mcp").header("baton-folder", "/src/b/x").body(call(1, "echo", json!({})).to_string());
    assert_eq!(content(&read(by_folder.send().await.unwrap()).await)["window"], "b");

    let activate = || call(1, "activate_window", json!({ "window": "b" }));
    assert_eq!(content(&world.post(None, activate()).await)["code"], "handover_refused");
    world.change(|roster| Arc::make_mut(&mut roster.settings).ai_handover = AiHandover::Always);
    let roster = world.roster.clone();
    let client = {
        let (url, token) = (world.url("/mcp"), world.token());
        tokio::spawn(async move {
            let request = reqwest::Client::new()
                .post(url)
                .bearer_auth(token)
                .header("content-type", "application/json");
            read(request.body(activate().to_string()).send().await.unwrap()).await
        })
    };
    let taken = world.handovers.recv().await.unwrap();
    assert_eq!((taken.window.as_str(), taken.ask_for), ("b", None));
    taken.reply.send(Ok(())).unwrap();
    roster.send_modify(|roster| {
        Arc::make_mut(roster).live =
            Some(("b".parse().unwrap(), baton_proto::ids::Term { generation: 1, seq: 9 }));
    });
    assert_eq!(content(&client.await.unwrap())["window"]["id"], "b");

    // In a VS Code window the user is asked.
    world.take(&a, 10);
    b.window.kind = WindowKind::Vscode;
    world.register(&b);
    world.change(|roster| Arc::make_mut(&mut roster.settings).ai_handover = AiHandover::Ask);
    let session = world.initialize("2025-11-25").await;
    let request = world.request("/mcp").header("mcp-session-id", session).body(activate().to_string());
    let client = tokio::spawn(async move { read(request.send().await.unwrap()).await });
    let asked = world.handovers.recv().await.unwrap();
    assert_eq!(asked.ask_for.as_deref(), Some("test"));
    asked.reply.send(Err("the user said no".to_owned())).unwrap();
    let answer = client.await.unwrap();
    assert_eq!(content(&answer)["code"], "handover_failed");
}

#[tokio::test]
async fn answers_never_cross_between_clients_with_the_same_ids() {
    let world = World::start().await;
    let _a = world.live_window("a").await;
    let mut clients = Vec::new();
    for n in 0..64 {
        let session = world.initialize("2025-06-18").await;
        let request = world.request("/mcp").header("mcp-session-id", session);
        clients.push(tokio::spawn(async move {
            for id in 0..8 {
                let payload = format!("{n}/{id}");
                let message = call(id, "echo", json!({ "payload": payload }));
                let answer =
                    read(request.try_clone().unwrap().body(message.to_string()).send().await.unwrap()).await;
                assert_eq!(
                    (&answer.1["id"], &content(&answer)["arguments"]["payload"]),
                    (&json!(id), &json!(payload))
                );
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn what_is_not_a_message_gets_a_clear_error() {
    let world = World::start().await;
    let _a = world.live_window("a").await;
    let post = async |body: String| read(world.request("/mcp").body(body).send().await.unwrap()).await;
    let check = |(status, answer): (u16, Value), expected: (u16, i32)| {
        assert_eq!(
            (status, answer["error"]["code"].as_i64()),
            (expected.0, Some(i64::from(expected.1))),
            "{answer}"
        );
        assert!(answer["error"]["message"].as_str().unwrap().len() > 10);
    };
    check(post("nonsense".to_owned()).await, (400, -32700));
    check(post(String::new()).await, (400, -32700));
    check(post("[]".to_owned()).await, (400, -32600));
    check(post("[".repeat(100_000)).await, (400, -32700));
    check(
        post(r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#.to_owned()).await,
        (400, -32600),
    );
    check(
        post(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call" }).to_string()).await,
        (200, -32602),
    );
    check(
        post(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [] }).to_string()).await,
        (200, -32602),
    );
    check(
        post(
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "cursor": "x" } })
                .to_string(),
        )
        .await,
        (200, -32602),
    );
    // Numbers and surrogates that only the window's parser minds.
    let odd =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":1e400}}}"#;
    check(post(odd.to_owned()).await, (400, -32700));
    world.remove(&"a".parse().unwrap());
    check(post(call(1, "no_such_tool", json!({})).to_string()).await, (200, -32602));
}

async fn wait_until_closed(port: u16) {
    let closed = async { while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, closed).await.expect("the port closes");
}
