//! Passes one message to the edge and its answers to the client, whatever happens to the coordinator.

use std::time::Duration;

use baton_mcp::envelope::{self, CommonParams, ListenParams, Request};
use baton_mcp::events::has_answer;
use baton_mcp::fault::{RpcError, ToolFailure, outcome_unknown};
use baton_mcp::header::{PROTOCOL_VERSION, SESSION_ID, wrapped};
use baton_mcp::message::{rpc_error_bytes, tool_failure_bytes};
use baton_mcp::revision::{Era, Revision};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::events::Events;
use crate::upstream::{Incomplete, SendError, Upstream};

/// How often a message that changes nothing, or was not carried out, is sent again.
const ATTEMPTS: u32 = 5;
/// Pauses between two attempts to open a stream again.
const REOPEN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// JSON-RPC's own code for a fault that is not the caller's.
const INTERNAL_ERROR: i32 = -32603;

/// What goes to standard output.
pub(super) enum Said {
    /// One message.
    Message(Vec<u8>),
    /// Everything before this has been written.
    Flushed(oneshot::Sender<()>),
}

/// A request of the client.
pub(super) struct Task {
    body: Bytes,
    id: Box<RawValue>,
    method: String,
    /// What `Mcp-Name` says.
    name: Option<String>,
    /// Set in the stateless era.
    revision: Option<String>,
}

/// How far the answer to a request came.
enum Progress {
    Complete,
    /// The connection ended before the answer.
    Lost,
    /// The session or the token is no longer known; nothing was carried out.
    Refused(StatusCode),
}

/// The client's session with the edge.
#[derive(Default)]
struct Session {
    /// The client's own `initialize`, to be sent again when the session is no longer known.
    initialize: Option<Bytes>,
    id: Option<HeaderValue>,
    revision: Option<String>,
}

/// Passes messages.
pub(super) struct Relay {
    upstream: Upstream,
    output: mpsc::Sender<Said>,
    session: Mutex<Session>,
}

impl Task {
    pub(super) fn new(body: Bytes, request: &Request<'_>, revision: Option<String>) -> Self {
        let params: CommonParams<'_> = envelope::params(request.params).unwrap_or_default();
        let name = match &*request.method {
            "tools/call" | "prompts/get" => params.name,
            "resources/read" => params.uri,
            _ => None,
        };
        Self {
            body,
            id: request.id.to_owned(),
            method: request.method.clone().into_owned(),
            name: name.map(std::borrow::Cow::into_owned),
            revision,
        }
    }

    /// True when it must not be carried out twice.
    fn may_act(&self) -> bool {
        self.method == "tools/call" && self.name.as_deref() != Some("list_windows")
    }

    fn era(&self) -> Era {
        if self.revision.is_some() { Era::Stateless } else { Era::Sessions(Revision::ASSUMED) }
    }
}

impl Relay {
    pub(super) fn new(upstream: Upstream, output: mpsc::Sender<Said>) -> Self {
        Self { upstream, output, session: Mutex::default() }
    }

    /// Says something to the client. That it no longer listens is noticed where its output is written.
    pub(super) async fn say(&self, message: Vec<u8>) {
        let _ = self.output.send(Said::Message(message)).await;
    }

    /// Returns when everything that was said has been written.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.output.send(Said::Flushed(done)).await.is_ok() {
            let _ = flushed.await;
        }
    }

    pub(super) fn has_session(&self) -> bool {
        self.session().id.is_some()
    }

    /// Opens the session.
    pub(super) async fn initialize(&self, task: Task) {
        *self.session() = Session { initialize: Some(task.body.clone()), ..Session::default() };
        self.answer(&task).await;
    }

    /// Passes a request, and says its answer.
    pub(super) async fn answer(&self, task: &Task) {
        let mut why = "the connection to the coordinator ended".to_owned();
        for _ in 0..ATTEMPTS {
            let sent =
                self.upstream.send(Method::POST, &self.headers(Some(task)), task.body.clone(), true).await;
            let progress = match sent {
                Ok(incomplete) => self.pass(task, incomplete).await,
                Err(SendError::Lost) => Progress::Lost,
                Err(SendError::NoCoordinator(error)) => {
                    why = error.to_string();
                    break;
                }
            };
            match progress {
                Progress::Complete => return,
                Progress::Lost if task.may_act() => {
                    let failure = outcome_unknown("The coordinator exited during this call");
                    return self.say(tool_failure_bytes(task.era(), &task.id, &failure)).await;
                }
                Progress::Lost => {}
                Progress::Refused(StatusCode::NOT_FOUND) => self.reopen_session().await,
                Progress::Refused(_) => self.upstream.forget(),
            }
        }
        if task.method == "tools/call" {
            return self.say(tool_failure_bytes(task.era(), &task.id, &no_coordinator(why))).await;
        }
        self.say(rpc_error_bytes(Some(&task.id), &RpcError::new(INTERNAL_ERROR, why))).await;
    }

    /// Passes a notification; nobody waits for an answer.
    pub(super) async fn notify(&self, body: &Bytes) {
        for _ in 0..2 {
            match self.upstream.send(Method::POST, &self.headers(None), body.clone(), true).await {
                Ok(Incomplete { response, connection }) => {
                    let body = self.upstream.unless_hung(response.into_body().collect()).await;
                    if matches!(body, Some(Ok(_))) {
                        self.upstream.keep(connection);
                    }
                    return;
                }
                Err(error) => tracing::debug!(?error, "a notification was not passed on"),
            }
        }
    }

    /// Keeps the stream of notices of a session open, for ever.
    pub(super) async fn listen(&self) {
        let change = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        let mut pause = REOPEN.0;
        let mut was_open = false;
        loop {
            let opened = self.upstream.send(Method::GET, &self.headers(None), Bytes::new(), false).await;
            if let Ok(incomplete) = opened {
                match incomplete.response.status() {
                    StatusCode::OK => {
                        if std::mem::replace(&mut was_open, true) {
                            // What happened in between nobody has heard.
                            self.say(change.to_string().into_bytes()).await;
                        }
                        pause = REOPEN.0;
                        let Incomplete { response, connection } = incomplete;
                        let mut events = Events::new(response.into_body());
                        while let Some(message) = events.next().await {
                            self.say(message).await;
                        }
                        drop(connection);
                    }
                    StatusCode::NOT_FOUND => self.reopen_session().await,
                    StatusCode::METHOD_NOT_ALLOWED => return,
                    _ => self.upstream.forget(),
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(REOPEN.1);
        }
    }

    /// Keeps a subscription open, for ever: the client hears of one acknowledgement and no end.
    pub(super) async fn subscribe(&self, task: &Task) {
        let subscription = json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": task.id } });
        let change =
            json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": subscription });
        let mut pause = REOPEN.0;
        let mut was_open = false;
        loop {
            let opened = self
                .upstream
                .send(Method::POST, &self.headers(Some(task)), task.body.clone(), !was_open)
                .await;
            match opened {
                Ok(incomplete) if is_stream(&incomplete) => {
                    let Incomplete { response, connection } = incomplete;
                    let mut events = Events::new(response.into_body());
                    let acknowledgement = events.next().await;
                    if !was_open {
                        if let Some(acknowledgement) = acknowledgement {
                            self.say(acknowledgement).await;
                            was_open = true;
                        }
                    } else if acknowledgement.is_some() && wants_changes(task) {
                        self.say(change.to_string().into_bytes()).await;
                    }
                    pause = REOPEN.0;
                    while let Some(message) = events.next().await {
                        if !is_answer(&message, &task.id) {
                            self.say(message).await;
                        }
                    }
                    drop(connection);
                }
                Ok(incomplete) if !was_open => {
                    if matches!(self.pass(task, incomplete).await, Progress::Complete) {
                        return;
                    }
                    self.upstream.forget();
                }
                Ok(_) => self.upstream.forget(),
                Err(SendError::NoCoordinator(error)) if !was_open => {
                    let error = RpcError::new(INTERNAL_ERROR, error.to_string());
                    return self.say(rpc_error_bytes(Some(&task.id), &error)).await;
                }
                Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(REOPEN.1);
        }
    }

    /// Says what the edge answers.
    async fn pass(&self, task: &Task, incomplete: Incomplete) -> Progress {
        let is_stream = is_stream(&incomplete);
        let Incomplete { response, connection } = incomplete;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            return Progress::Refused(status);
        }
        if task.method == "initialize" {
            let mut session = self.session();
            session.id = response.headers().get(SESSION_ID).cloned();
        }
        if is_stream {
            let mut events = Events::new(response.into_body());
            let mut is_answered = false;
            while let Some(Some(message)) = self.upstream.unless_hung(events.next()).await {
                is_answered = is_answered || is_answer(&message, &task.id);
                self.say(message).await;
            }
            return if is_answered { Progress::Complete } else { Progress::Lost };
        }
        let Some(Ok(body)) = self.upstream.unless_hung(response.into_body().collect()).await else {
            return Progress::Lost;
        };
        let body = body.to_bytes();
        self.upstream.keep(connection);
        if status == StatusCode::NOT_FOUND && task.method != "initialize" && is_unknown_session(&body) {
            return Progress::Refused(status);
        }
        if task.method == "initialize" {
            self.session().revision = agreed_revision(&body);
        }
        if serde_json::from_slice::<&RawValue>(&body).is_ok() {
            self.say(body.to_vec()).await;
        } else {
            let text = String::from_utf8_lossy(&body).trim().to_owned();
            let why = format!("unexpected response from the coordinator ({}): {text}", status.as_u16());
            self.say(rpc_error_bytes(Some(&task.id), &RpcError::new(INTERNAL_ERROR, why))).await;
        }
        Progress::Complete
    }

    /// Opens the session again with the client's own words, because its id is no longer known.
    async fn reopen_session(&self) {
        let Some(body) = self.session().initialize.clone() else { return };
        self.session().id = None;
        let Ok(incomplete) = self.upstream.send(Method::POST, &HeaderMap::new(), body, true).await else {
            return;
        };
        let id = incomplete.response.headers().get(SESSION_ID).cloned();
        if incomplete.response.into_body().collect().await.is_ok() {
            self.session().id = id;
            self.upstream.keep(incomplete.connection);
        }
    }

    fn headers(&self, task: Option<&Task>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        if let Some(task) = task
            && let Some(revision) = &task.revision
        {
            insert(PROTOCOL_VERSION, revision);
            insert("mcp-method", &task.method);
            if let Some(name) = &task.name {
                insert("mcp-name", &wrapped(name));
            }
            return headers;
        }
        let session = self.session();
        if let Some(revision) = &session.revision {
            insert(PROTOCOL_VERSION, revision);
        }
        if let Some(id) = &session.id {
            headers.insert(HeaderName::from_static(SESSION_ID), id.clone());
        }
        headers
    }

    fn session(&self) -> parking_lot::MutexGuard<'_, Session> {
        self.session.lock()
    }
}

fn is_stream(incomplete: &Incomplete) -> bool {
    let kind = incomplete.response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn is_answer(message: &[u8], id: &RawValue) -> bool {
    has_answer(&[b"data:", message].concat(), id)
}

fn wants_changes(task: &Task) -> bool {
    let Ok(envelope::Message::Request(request)) = envelope::parse(&task.body) else { return false };
    let params = envelope::params::<ListenParams>(request.params);
    params.is_ok_and(|params| params.notifications.tools_list_changed == Some(true))
}

fn is_unknown_session(body: &[u8]) -> bool {
    let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    answer["error"]["code"] == baton_mcp::fault::code::UNKNOWN_SESSION
}

fn agreed_revision(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(answer["result"]["protocolVersion"].as_str()?.to_owned())
}

fn no_coordinator(why: String) -> ToolFailure {
    ToolFailure {
        code: "no_coordinator",
        message: format!("The call was not run: {why}."),
        hint: "Ask the user to run `baton up`.".to_owned(),
        candidates: Vec::new(),
    }
}
