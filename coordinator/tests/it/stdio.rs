//! The bridge in front of a real coordinator, which it starts and starts again; the official Rust client over it.

use std::path::PathBuf;
use std::time::Duration;

use baton_bridge::{self as stdio, Options};
use baton_link::find::{FindOptions, find};
use baton_link::home::Home;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, NotificationContext, RoleClient, RunningService};
use rmcp::{ClientHandler, serve_client_with_lifecycle};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(20);

/// A state folder of its own; its coordinator ends with it.
struct Place {
    home: Home,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Place {
    /// With a coordinator when `is_up`; not all tests leave the first start to their bridge, because a process
    /// starts one five times in half a minute at most.
    async fn new(is_up: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let home = Home::open(folder.path().join("home")).unwrap();
        if is_up {
            let mut up = tokio::process::Command::new(env!("CARGO_BIN_EXE_baton"));
            up.arg("up").env("BATON_HOME", home.path()).env("BATON_PORT", port.to_string());
            assert!(up.output().await.unwrap().status.success());
        }
        Self { home, port, _folder: folder }
    }

    /// A bridge, and the client's end of it.
    fn bridge(&self) -> DuplexStream {
        let (client, bridge) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(bridge);
        let program = Some(PathBuf::from(env!("CARGO_BIN_EXE_baton")));
        let find = FindOptions { port: Some(self.port), program, ..FindOptions::new(self.home.clone()) };
        let options = Options { find, window: None, stand: None };
        tokio::spawn(stdio::run(options, input, output));
        client
    }

    /// Kills the coordinator as hard as can be, and waits until it is gone.
    async fn kill(&self) {
        let discovery = self.home.discovery().unwrap();
        let pid = rustix::process::Pid::from_raw(discovery.pid.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        while baton_link::process::is_running(discovery.pid, discovery.pid_start) {
            tokio::task::yield_now().await;
        }
    }

    async fn end(self) {
        let mut connection = find(&self.home).await.unwrap();
        connection.shutdown().await.unwrap();
        let discovery = self.home.discovery();
        while discovery.as_ref().is_some_and(|it| baton_link::process::is_running(it.pid, it.pid_start)) {
            tokio::task::yield_now().await;
        }
    }
}

#[derive(Clone)]
struct Listener(mpsc::UnboundedSender<()>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        let _ = self.0.send(());
    }
}

async fn connect(
    place: &Place,
    lifecycle: ClientLifecycleMode,
) -> (RunningService<RoleClient, Listener>, mpsc::UnboundedReceiver<()>) {
    let (sender, changes) = mpsc::unbounded_channel();
    let transport = tokio::io::split(place.bridge());
    (serve_client_with_lifecycle(Listener(sender), transport, lifecycle).await.unwrap(), changes)
}

async fn list_windows(client: &RunningService<RoleClient, Listener>) -> Value {
    let answer = client.call_tool(CallToolRequestParams::new("list_windows"));
    let answer = tokio::time::timeout(PATIENCE, answer).await.expect("an answer").unwrap();
    answer.structured_content.unwrap()
}

#[tokio::test]
async fn an_older_client_keeps_its_session_over_a_killed_coordinator() {
    let place = Place::new(false).await;
    let (client, mut changes) = connect(&place, ClientLifecycleMode::Initialize).await;
    assert!(client.list_all_tools().await.unwrap().len() >= 8);
    assert_eq!(list_windows(&client).await, json!({ "status": "success", "live": null, "windows": [] }));
    let before = place.home.discovery().unwrap().generation;
    place.kill().await;
    let answer = list_windows(&client).await;
    assert_eq!(answer["status"], "success", "{answer}");
    assert!(place.home.discovery().unwrap().generation > before);
    // Its stream of notices is open again, and says that there may be news.
    tokio::time::timeout(PATIENCE, changes.recv()).await.expect("a notice").unwrap();
    client.cancel().await.unwrap();
    place.end().await;
}

#[tokio::test]
async fn a_stateless_client_keeps_its_subscription_over_a_killed_coordinator() {
    let place = Place::new(true).await;
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let (client, _) = connect(&place, lifecycle).await;
    let filter = rmcp::model::SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = client.listen(filter).await.unwrap();
    assert_eq!(list_windows(&client).await["status"], "success");
    place.kill().await;
    assert_eq!(list_windows(&client).await["status"], "success");
    let notice = tokio::time::timeout(PATIENCE, subscription.next()).await.expect("a notice").unwrap();
    assert!(format!("{notice:?}").contains("ToolListChanged"), "{notice:?}");
    client.cancel().await.unwrap();
    place.end().await;
}

/// Lines of the protocol, by hand: what no official client would send.
struct Raw {
    input: WriteHalf<DuplexStream>,
    output: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Raw {
    fn new(stream: DuplexStream) -> Self {
        let (output, input) = tokio::io::split(stream);
        Self { input, output: BufReader::new(output).lines() }
    }

    async fn say(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("a line").unwrap();
        serde_json::from_str(&line.expect("the bridge runs")).unwrap()
    }
}

#[tokio::test]
async fn a_call_in_flight_is_answered_when_the_coordinator_dies() {
    let place = Place::new(true).await;
    let mut raw = Raw::new(place.bridge());
    raw.say("nonsense").await;
    assert_eq!(raw.hear().await["error"]["code"], -32700);
    let initialize = json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" },
    }});
    raw.say(&initialize.to_string()).await;
    assert_eq!(raw.hear().await["result"]["protocolVersion"], "2025-06-18");
    // No window is live, so the call is held; the answer of the second says that the first has arrived.
    let call = |id: u32, tool: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool } }).to_string()
    };
    raw.say(&call(1, "get_breakpoints")).await;
    raw.say(&call(2, "list_windows")).await;
    assert_eq!(raw.hear().await["id"], 2);
    raw.say(&json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }).to_string()).await;
    assert_eq!(raw.hear().await, json!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
    place.kill().await;
    let answer = raw.hear().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["code"]),
        (&json!(1), &json!("outcome_unknown"))
    );
    raw.say(&call(4, "list_windows")).await;
    let answer = raw.hear().await;
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(4), &json!(false)));
    // What was asked before the client closed its end is still answered.
    raw.say(&call(5, "list_windows")).await;
    raw.input.shutdown().await.unwrap();
    assert_eq!(raw.hear().await["id"], 5);
    assert!(raw.output.next_line().await.unwrap().is_none(), "the bridge has ended");
    place.end().await;
}
