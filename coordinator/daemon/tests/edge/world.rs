//! An edge on a port of its own, with windows that are real, stateless rmcp servers in this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use baton_daemon::app::{self, App};
use baton_daemon::watchers::Watchers;
use baton_edge::{Edge, HandoverRequest};
use baton_election::election::Start;
use baton_election::keeper::Keeper;
use baton_election::roster::{Address, Roster, Window};
use baton_http::passes::Passes;
use baton_http::{End, Listeners};
use baton_page::Page;
use baton_proto::control::{DebugSession, Settings, WindowKind, WindowState};
use baton_proto::discovery::{KEY_LEN, Role, Secret};
use baton_proto::edge::{CALLER_HEADER, REFUSED_HEADER, REFUSED_STALE_TERM, TERM_HEADER};
use baton_proto::ids::{InstanceId, Term, WindowId};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ProgressNotificationParam,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A coordinator's port with its edge, and the roster in the test's hands.
pub(crate) struct World {
    pub(crate) port: u16,
    pub(crate) secret: Secret,
    pub(crate) roster: watch::Sender<Arc<Roster>>,
    pub(crate) handovers: mpsc::Receiver<HandoverRequest>,
    /// Leaves the port, as after a change of it.
    pub(crate) leaving: CancellationToken,
    pub(crate) shutdown: CancellationToken,
}

/// A window: a server, and what its tools report.
pub(crate) struct FakeWindow {
    pub(crate) window: Window,
    pub(crate) port: u16,
    /// `"started NAME"`, `"cancelled NAME"`, `"ended NAME"` for every call of a tool.
    pub(crate) events: mpsc::UnboundedReceiver<String>,
    /// Lets every `wait` end.
    pub(crate) release: watch::Sender<bool>,
    /// Cuts every connection and closes the port, as kill -9 does.
    pub(crate) kill: CancellationToken,
}

#[derive(Clone)]
struct Tools {
    name: String,
    events: mpsc::UnboundedSender<String>,
    release: watch::Receiver<bool>,
}

pub(crate) fn secret() -> Secret {
    Secret::new([5; KEY_LEN])
}

/// A page that nobody looks at.
fn page(closing: &CancellationToken) -> (Page, Passes) {
    let start = Start {
        instance: InstanceId("test".to_owned()),
        generation: 1,
        known: 0,
        is_trusted: true,
        settings: Settings::default(),
        previous: None,
        previous_is_dead: false,
        vacated: None,
    };
    let passes = Passes::new(&secret(), &start.instance);
    let keeper = Keeper::spawn(start, 0).0;
    let ports = watch::channel(Vec::new()).1;
    (Page::new(keeper, passes.clone(), ports, Default::default(), closing.clone()), passes)
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_on(0, Settings { hold_calls_ms: 10_000, ..Settings::default() }).await
    }

    /// A coordinator on `port` that knows no window.
    pub(crate) async fn start_on(port: u16, settings: Settings) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let roster = watch::Sender::new(Arc::new(Roster {
            instance: InstanceId("test".to_owned()),
            generation: 1,
            live: None,
            awaiting: None,
            departed: Vec::new(),
            windows: BTreeMap::new(),
            settings: Arc::new(settings),
            client_epoch: 0,
            granted: BTreeMap::new(),
            grants: Arc::default(),
        }));
        let (handover_sender, handovers) = mpsc::channel(8);
        let shutdown = CancellationToken::new();
        let leaving = shutdown.child_token();
        let watchers = Watchers::new();
        let metrics = watchers.metrics.clone();
        let edge = Edge::new(
            (&secret(), None),
            roster.subscribe(),
            handover_sender,
            shutdown.clone(),
            Arc::new(watchers),
        );
        let control = axum::Router::new().route("/v1/ping", axum::routing::get(async || "pong"));
        let (_, ports) = watch::channel(Vec::new());
        let app = App::new(
            secret(),
            roster.subscribe(),
            (edge, metrics),
            control.into(),
            page(&shutdown),
            mpsc::channel(1).0,
            ports,
        );
        let end = End { shutdown: leaving.clone(), closing: shutdown.clone() };
        tokio::spawn(app::serve(Listeners { ports: vec![listener], socket: None }, app, end));
        Self { port, secret: secret(), roster, handovers, leaving, shutdown }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn token(&self) -> String {
        let epoch = self.roster.borrow().client_epoch;
        self.secret.token(Role::Client { epoch }).expose().to_owned()
    }

    /// What is counted.
    pub(crate) async fn metrics(&self) -> String {
        let token = self.secret.token(Role::Metrics);
        let request = reqwest::Client::new().get(self.url("/metrics")).bearer_auth(token.expose());
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.text().await.unwrap()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Roster)) {
        self.roster.send_modify(|roster| change(Arc::make_mut(roster)));
    }

    /// Registers a window, or again after a change.
    pub(crate) fn register(&self, fake: &FakeWindow) {
        let window = Arc::new(fake.window.clone());
        self.change(|roster| _ = roster.windows.insert(window.id.clone(), window));
    }

    /// Makes a registered window live under a new term.
    pub(crate) fn take(&self, fake: &FakeWindow, seq: u64) {
        let id = fake.window.id.clone();
        self.change(|roster| {
            for window in roster.windows.values_mut() {
                let is_live = window.id == id;
                Arc::make_mut(window).state = if is_live { WindowState::Live } else { WindowState::Standby };
            }
            roster.live = Some((id, Term { generation: 1, seq }));
        });
    }

    /// Takes a window off the roster.
    pub(crate) fn remove(&self, id: &WindowId) {
        self.change(|roster| {
            roster.windows.remove(id);
            if roster.live.as_ref().is_some_and(|(live, _)| live == id) {
                roster.live = None;
            }
        });
    }

    /// A window that is live at once.
    pub(crate) async fn live_window(&self, id: &str) -> FakeWindow {
        let fake = FakeWindow::start(id).await;
        self.register(&fake);
        self.take(&fake, 1);
        fake
    }

    /// POSTs one message; the answer as status and JSON, an SSE answer as its last message.
    pub(crate) async fn post(&self, session: Option<&str>, message: Value) -> (u16, Value) {
        let mut request = self.request("/mcp").body(message.to_string());
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        read(request.send().await.unwrap()).await
    }

    /// A POST with everything but a body.
    pub(crate) fn request(&self, path: &str) -> reqwest::RequestBuilder {
        reqwest::Client::new()
            .post(self.url(path))
            .bearer_auth(self.token())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .timeout(PATIENCE * 3)
    }

    /// Opens a session of an older revision.
    pub(crate) async fn initialize(&self, revision: &str) -> String {
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        }});
        let response = self.request("/mcp").body(message.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// A tool call of an older revision.
pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": {
        "name": tool, "arguments": arguments,
    }})
}

/// A request of 2026-07-28.
pub(crate) fn stateless(world: &World, message: &Value) -> reqwest::RequestBuilder {
    let mut message = message.clone();
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let mut request = world
        .request("/mcp")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", message["method"].as_str().unwrap());
    if let Some(name) = message["params"]["name"].as_str() {
        request = request.header("mcp-name", name);
    }
    request.body(message.to_string())
}

/// Status and JSON of an answer, the last message of a stream.
pub(crate) async fn read(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let last = text.lines().rfind(|line| line.starts_with("data: ")).map_or(&*text, |line| &line[6..]);
    (status, serde_json::from_str(last).unwrap_or(Value::String(text)))
}

/// The structured content of a tool result.
pub(crate) fn content(answer: &(u16, Value)) -> &Value {
    assert_eq!(answer.0, 200, "{answer:?}");
    let result = &answer.1["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:?}"));
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
    &result["structuredContent"]
}

impl FakeWindow {
    pub(crate) async fn start(id: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (event_sender, events) = mpsc::unbounded_channel();
        let release = watch::Sender::new(false);
        let tools = Tools { name: id.to_owned(), events: event_sender, release: release.subscribe() };
        let kill = CancellationToken::new();
        let config =
            StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
        let service = StreamableHttpService::new(
            move || Ok(tools.clone()),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        let bearer = format!("Bearer {}", secret().window_token(&id.parse().unwrap(), None).expose());
        let gate = axum::middleware::from_fn(move |request, next| gate(bearer.clone(), request, next));
        let router = axum::Router::new().nest_service("/mcp", service).layer(gate);
        tokio::spawn(run_server(listener, router, kill.clone()));
        let window = Window {
            id: id.parse().unwrap(),
            name: format!("project {id}"),
            kind: WindowKind::Headless,
            folders: vec![format!("/src/{id}")],
            trees: BTreeMap::new(),
            state: WindowState::Standby,
            responsive: true,
            auto_start: true,
            pid: 1,
            address: Address::OldPort(port),
            incarnation: 1,
            debug_sessions: vec![DebugSession {
                id: format!("session-{id}"),
                name: "main".to_owned(),
                by_user: false,
            }],
            last_focus: None,
            why: String::new(),
            before: Default::default(),
        };
        Self { window, port, events, release, kill }
    }

    pub(crate) async fn event(&mut self) -> String {
        tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an event in time").unwrap()
    }
}

/// Accepts until it is killed; then every connection is reset at once.
async fn run_server(listener: TcpListener, router: axum::Router, kill: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = kill.cancelled() => return,
        };
        let (stream, _) = accepted.unwrap();
        stream.set_nodelay(true).unwrap();
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        let kill = kill.clone();
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(hyper_util::rt::TokioIo::new(stream), service);
            tokio::select! {
                _ = connection => {}
                () = kill.cancelled() => {}
            }
        });
    }
}

/// What an agent checks before it runs a call: its own token, nothing of the client's, and the term.
async fn gate(
    bearer: String,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    let headers = request.headers();
    if headers["authorization"] != bearer {
        let response = axum::response::Response::builder().status(401).header("content-type", "text/plain");
        return response.body("The token is wrong.".into()).unwrap();
    }
    assert!(!headers.contains_key("mcp-session-id") && !headers.contains_key("cookie"));
    let is_stale = headers.get(TERM_HEADER).is_some_and(|term| term == "1.0");
    if is_stale {
        let response = axum::response::Response::builder().status(409);
        return response.header(REFUSED_HEADER, REFUSED_STALE_TERM).body(axum::body::Body::empty()).unwrap();
    }
    next.run(request).await
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let tool = request.name.to_string();
        let mut answer = json!({ "window": self.name, "tool": tool, "arguments": &arguments });
        let _ = self.events.send(format!("started {tool}"));
        if tool == "caller" {
            let headers = context.extensions.get::<http::request::Parts>().map(|parts| &parts.headers);
            let caller = headers.and_then(|headers| headers.get(CALLER_HEADER)?.to_str().ok());
            answer["caller"] = caller.into();
        }
        if tool == "stream" {
            let token = context.meta.get_progress_token().unwrap();
            let _ = context.peer.notify_progress(ProgressNotificationParam::new(token, 1.0)).await;
        }
        if tool == "wait" || tool == "stream" || arguments["wait"] == true {
            let mut release = self.release.clone();
            let ended = tokio::select! {
                _ = release.wait_for(|is_released| *is_released) => "ended",
                () = context.ct.cancelled() => "cancelled",
            };
            let _ = self.events.send(format!("{ended} {tool}"));
            answer["ended"] = json!(ended);
        }
        let mut result = CallToolResult::success(vec![ContentBlock::text(answer.to_string())]);
        result.structured_content = Some(answer);
        Ok(result.into())
    }
}
