//! AI clients: each calls a tool again and again and remembers what it was told. No call is ever repeated.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_bridge::{Options, Stand};
use baton_link::find::FindOptions;
use baton_link::home::Home;
use baton_link::net::TcpStream;
use baton_link::sim;
use baton_proto::discovery::Role;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::time::{sleep, timeout};

use crate::parts::Verb;
use crate::world::{CLIENTS, INNER, WINDOWS};

/// Of the older era.
const SESSIONS: &str = "2025-11-25";
/// Of the newer era.
const STATELESS: &str = "2026-07-28";
/// Longest pause between two calls.
const PAUSE_MS: u64 = 900;
/// Longest that a tool takes.
const SLOW_MS: u64 = 2_500;
/// Bytes that wait between a client and its `baton stdio`.
const PIPE: usize = 64 * 1024;
/// Before a client connects again.
const AGAIN: Duration = Duration::from_millis(150);

/// What a client was told of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// That window ran it.
    Done {
        /// Which.
        window: String,
        /// Whether the answer says that it is this one now.
        is_told: bool,
        /// What became of a program.
        program: Program,
    },
    /// It may have run.
    Unknown,
    /// It did not run, for this reason.
    Unrun(String),
    /// The connection ended before an answer.
    Lost,
    /// Its session is none.
    SessionEnded,
    /// Nothing: it did not wait for the answer.
    GivenUp,
}

/// What a client was told of a program that it debugs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Nothing: the call was not about one.
    None,
    /// It stands, or runs, in this session.
    There(String),
    /// It has ended.
    Over,
    /// The window does not do what was asked.
    Failed(String),
}

/// Something that a client or the user did, or was told.
#[derive(Clone, Debug)]
pub(crate) enum Answered {
    /// It sends a call; `bound`: to that window; `acts`: of a tool that changes something; `session`: about that program.
    Sent { call: String, bound: Option<usize>, acts: bool, session: Option<String> },
    /// It has an answer.
    Told { call: String, told: Told },
    /// The coordinator has carried out an order of the user.
    Ordered { window: usize, verb: Verb },
    /// A coordinator answers from now on.
    Serves,
    /// One coordinator followed another.
    Replaced,
    /// The coordinator is at this port now.
    Moved(u16),
    /// A setting was changed.
    Set,
}

thread_local! {
    static ANSWERED: RefCell<Vec<Answered>> = const { RefCell::new(Vec::new()) };
}

/// What clients did and were told since this was asked last.
pub(crate) fn take_answered() -> Vec<Answered> {
    ANSWERED.with_borrow_mut(std::mem::take)
}

/// Something was done or told.
pub(crate) fn note(answered: Answered) {
    sim::digest(format!("{answered:?}").as_bytes());
    ANSWERED.with_borrow_mut(|all| all.push(answered));
}

/// How a client reaches the coordinator, and which window it is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the URL that follows the live window.
    Url,
    /// By the URLs of the windows, by turns.
    UrlOfWindow,
    /// By `baton stdio`, in the folder of a window.
    StdioIn(usize),
    /// By `baton stdio`, started nowhere in particular.
    Stdio,
}

/// Of each client: its way, and whether it is of the older era.
const WAYS: [(Way, bool); CLIENTS] = [
    (Way::Url, true),
    (Way::Url, false),
    (Way::UrlOfWindow, false),
    (Way::StdioIn(1), true),
    (Way::Stdio, false),
    (Way::StdioIn(INNER), false),
    (Way::Url, false),
];

/// The client that stands in the tree that lies in another one.
pub(crate) const INNER_CLIENT: usize = 5;
/// The client that debugs programs.
const DEBUGGING_CLIENT: usize = 6;

/// Whether `baton stdio` remembers what a client heard; of others the coordinator does.
pub(crate) fn remembers(client: usize) -> bool {
    matches!(WAYS[client].0, Way::Stdio | Way::StdioIn(_))
}

/// Whether a client is bound to windows, whichever is live.
pub(crate) fn is_bound(client: usize) -> bool {
    matches!(WAYS[client].0, Way::UrlOfWindow | Way::StdioIn(_))
}

struct Client {
    number: usize,
    way: Way,
    is_of_sessions: bool,
    port: u16,
    token: String,
    /// Of the older era, once it is opened.
    session: Option<String>,
    sender: Option<SendRequest<Full<Bytes>>>,
    bridge: Option<Bridge>,
    /// The program that it debugs, and in which window.
    program: Option<(String, usize)>,
    /// It can do no more with its program than end it.
    has_enough: bool,
}

/// What is called.
struct Wanted {
    tool: &'static str,
    arguments: Value,
    /// In that window alone.
    bound: Option<usize>,
    /// For how long it takes its time, where that is known.
    slow: u64,
}

/// `baton stdio`, as its client sees it.
struct Bridge {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
}

impl Bridge {
    fn start(home: Home, folder: Option<&Path>) -> Self {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (input, output) = tokio::io::split(theirs);
        let stand = folder.and_then(Stand::of);
        let options = Options { find: FindOptions::new(home), window: None, stand };
        tokio::spawn(baton_bridge::run(options, input, output));
        let (lines, input) = tokio::io::split(ours);
        Self { lines: BufReader::new(lines).lines(), input }
    }

    async fn say(&mut self, message: &Value) -> Option<()> {
        self.input.write_all(format!("{message}\n").as_bytes()).await.ok()
    }

    /// Says it, and waits for its answer; `None` when it has ended.
    async fn ask(&mut self, message: &Value) -> Option<Value> {
        self.say(message).await?;
        loop {
            let line = self.lines.next_line().await.ok()??;
            let said: Value = serde_json::from_str(&line).ok()?;
            if said["id"] == message["id"] {
                return Some(said);
            }
        }
    }
}

/// Calls for ever; its calls are numbered from `first_call` on.
pub(crate) async fn run(home: PathBuf, trees: [PathBuf; WINDOWS], number: usize, first_call: usize) {
    let Ok(home) = Home::open(home) else { return };
    let (way, is_of_sessions) = WAYS[number];
    let mut client = Client {
        number,
        way,
        is_of_sessions,
        port: 0,
        token: String::new(),
        session: None,
        sender: None,
        bridge: None,
        program: None,
        has_enough: false,
    };
    let mut n_calls = first_call;
    loop {
        sleep(Duration::from_millis(20 + sim::dice() % PAUSE_MS)).await;
        if client.get_ready(&home, &trees).await.is_none() {
            sleep(AGAIN).await;
            continue;
        }
        let call = format!("c{number}-{n_calls}");
        let wanted = client.wanted(&call, n_calls);
        n_calls += 1;
        let (slow, session) = (wanted.slow, client.program.clone().map(|(session, _)| session));
        note(Answered::Sent { call: call.clone(), bound: wanted.bound, acts: slow == 0, session });
        // A person may think better of it.
        let is_given_up = slow > 0 && sim::dice() % 4 == 0;
        let patience = if is_given_up { Duration::from_millis(slow / 2) } else { Duration::MAX };
        let told = match timeout(patience, client.call(&call, wanted)).await {
            Ok(told) => told,
            Err(_) => client.cancel(&call).await,
        };
        client.hear(&told);
        if told == Told::Lost {
            client.sender = None;
            client.bridge = None;
            sleep(AGAIN).await;
        }
        note(Answered::Told { call, told });
    }
}

impl Client {
    /// What it calls next.
    fn wanted(&self, call: &str, n_calls: usize) -> Wanted {
        if self.number == DEBUGGING_CLIENT {
            return self.wanted_of_program(call);
        }
        let bound = match self.way {
            Way::UrlOfWindow => Some(n_calls % WINDOWS),
            Way::StdioIn(window) => Some(window),
            Way::Url | Way::Stdio => None,
        };
        let slow = if sim::dice() % 3 == 0 { sim::dice() % SLOW_MS } else { 0 };
        // One that only reads, or one that changes something.
        let tool = if slow > 0 { "lcp_get_outline" } else { "set_breakpoint" };
        Wanted { tool, arguments: json!({ "call": call, "ms": slow }), bound, slow }
    }

    fn wanted_of_program(&self, call: &str) -> Wanted {
        let Some((session, window)) = &self.program else {
            let arguments = json!({ "call": call, "configuration_name": "program" });
            return Wanted { tool: "start_debugging", arguments, bound: None, slow: 0 };
        };
        let mut arguments = json!({ "call": call, "session_id": session });
        let tool = if self.has_enough || sim::dice() % 6 == 0 {
            "stop_debugging"
        } else {
            arguments["thread_id"] = json!(1);
            "continue_debugging"
        };
        Wanted { tool, arguments, bound: Some(*window), slow: 0 }
    }

    /// What an answer means for what it does next.
    fn hear(&mut self, told: &Told) {
        let number_of = |window: &str| window.strip_prefix('w')?.parse().ok();
        match told {
            Told::Done { window, program: Program::There(session), .. } => {
                self.program = number_of(window).map(|window| (session.clone(), window));
                self.has_enough = false;
            }
            // Where the window is no longer live, a program can still be ended.
            Told::Unrun(why) if why == "not_live" => self.has_enough = true,
            Told::Done { program: Program::Failed(why), .. } if !is_gone(why) => self.has_enough = true,
            Told::Unrun(why) if !is_gone(why) => {}
            // Whatever became of it, it is forgotten.
            _ => (self.program, self.has_enough) = (None, false),
        }
    }

    /// Has what a call takes.
    async fn get_ready(&mut self, home: &Home, trees: &[PathBuf; WINDOWS]) -> Option<()> {
        match self.way {
            Way::Url | Way::UrlOfWindow => {
                self.port = home.expected_port(None);
                self.token = home.secret().ok()?.token(Role::Client { epoch: 0 }).expose().to_owned();
                if self.is_of_sessions && self.session.is_none() {
                    self.initialize().await?;
                }
            }
            Way::Stdio | Way::StdioIn(_) if self.bridge.is_none() => {
                let folder = match self.way {
                    Way::StdioIn(window) => trees.get(window),
                    _ => None,
                };
                let mut bridge = Bridge::start(home.clone(), folder.map(PathBuf::as_path));
                if self.is_of_sessions {
                    bridge.ask(&self.opening()).await?.get("result")?;
                    bridge.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
                }
                self.bridge = Some(bridge);
            }
            Way::Stdio | Way::StdioIn(_) => {}
        }
        Some(())
    }

    fn opening(&self) -> Value {
        let info = json!({ "name": format!("client-{}", self.number), "version": "1" });
        let params = json!({ "protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": info });
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
    }

    /// Opens a session.
    async fn initialize(&mut self) -> Option<()> {
        let request = self.request("/mcp", &self.opening())?;
        let response = self.send(request).await.ok()?;
        let session = response.headers().get("mcp-session-id")?.to_str().ok()?.to_owned();
        response.into_body().collect().await.ok()?;
        self.session = Some(session);
        Some(())
    }

    async fn call(&mut self, call: &str, wanted: Wanted) -> Told {
        let Wanted { tool, arguments, bound, .. } = wanted;
        let mut params = json!({ "name": tool, "arguments": arguments });
        if !self.is_of_sessions {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": { "name": format!("client-{}", self.number), "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let message = json!({ "jsonrpc": "2.0", "id": call, "method": "tools/call", "params": params });
        if let Some(bridge) = &mut self.bridge {
            let Some(said) = bridge.ask(&message).await else { return Told::Lost };
            return self.told("stdio", &said);
        }
        let window = bound.filter(|_| self.way == Way::UrlOfWindow);
        let path = window.map_or("/mcp".to_owned(), |window| format!("/mcp/windows/w{window}"));
        let Some(mut request) = self.request(&path, &message) else { return Told::Lost };
        let headers = request.headers_mut();
        let mut insert =
            |name: &'static str, value: &str| value.parse().map(|value| headers.insert(name, value));
        let inserted = match &self.session {
            Some(session) => {
                insert("mcp-protocol-version", SESSIONS).and_then(|_| insert("mcp-session-id", session))
            }
            None => insert("mcp-protocol-version", STATELESS)
                .and_then(|_| insert("mcp-method", "tools/call"))
                .and_then(|_| insert("mcp-name", tool)),
        };
        if inserted.is_err() {
            return Told::Lost;
        }
        match self.send(request).await {
            Ok(response) => self.read(response).await,
            Err(told) => told,
        }
    }

    /// Gives a call up: `baton stdio` is told so, others see the connection end.
    async fn cancel(&mut self, call: &str) -> Told {
        let params = json!({ "requestId": call });
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        let Some(bridge) = &mut self.bridge else {
            self.sender = None;
            return Told::GivenUp;
        };
        let is_said = bridge.say(&message).await.is_some();
        if is_said { Told::GivenUp } else { Told::Lost }
    }

    fn request(&self, path: &str, message: &Value) -> Option<Request<Full<Bytes>>> {
        let request = Request::post(path)
            .header("host", format!("127.0.0.1:{}", self.port))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        request.body(Full::new(message.to_string().into())).ok()
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<hyper::body::Incoming>, Told> {
        let unrun = |why: &str| Told::Unrun(why.to_owned());
        let mut sender = match self.sender.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => {
                let stream = TcpStream::connect(("127.0.0.1", self.port)).await;
                let stream = stream.map_err(|_| unrun("connection refused"))?;
                let opened = http1::handshake(TokioIo::new(stream)).await;
                let (sender, connection) = opened.map_err(|_| unrun("no connection"))?;
                tokio::spawn(async move {
                    // Whoever waits for an answer learns of its end.
                    let _ = connection.await;
                });
                sender
            }
        };
        sender.ready().await.map_err(|_| unrun("the connection ended before"))?;
        let response = sender.send_request(request).await.map_err(|_| Told::Lost)?;
        self.sender = Some(sender);
        Ok(response)
    }

    async fn read(&mut self, response: Response<hyper::body::Incoming>) -> Told {
        let status = response.status();
        let Ok(body) = response.into_body().collect().await else { return Told::Lost };
        if status == hyper::StatusCode::SERVICE_UNAVAILABLE {
            self.sender = None;
            return Told::Unrun("503".to_owned());
        }
        let message: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        self.told(status.as_str(), &message)
    }

    /// What an answer means.
    fn told(&mut self, status: &str, message: &Value) -> Told {
        let result = &message["result"];
        let content = &result["structuredContent"];
        if let Some(code) = message["error"]["code"].as_i64() {
            if code == -32_001 {
                self.session = None;
                return Told::SessionEnded;
            }
            return Told::Unrun(format!("{} ({status})", message["error"]));
        }
        match (result["isError"].as_bool(), content["code"].as_str(), content["by"].as_str()) {
            (Some(true), Some("outcome_unknown"), _) => Told::Unknown,
            (Some(true), Some(code), _) => Told::Unrun(code.to_owned()),
            (_, None, Some(window)) => {
                let is_told = content["notice"].is_string();
                Told::Done { window: window.to_owned(), is_told, program: program_of(content) }
            }
            _ => Told::Unrun(format!("{status} {message}")),
        }
    }
}

/// Whether there is no such program, by that code.
pub(crate) fn is_gone(why: &str) -> bool {
    why == "no_such_session" || why == "session_ended"
}

/// What an answer tells of a program.
fn program_of(content: &Value) -> Program {
    let session = content["stop_event_data"]["session_id"].as_str().or(content["session_id"].as_str());
    match (content["failed"].as_str(), session, content["status"].as_str()) {
        (Some(why), ..) => Program::Failed(why.to_owned()),
        // It ended by itself, or the client ended it.
        (None, Some(_), Some("completed" | "success")) => Program::Over,
        (None, Some(session), _) => Program::There(session.to_owned()),
        (None, None, _) => Program::None,
    }
}
