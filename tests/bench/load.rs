//! The load generator: raw HTTP/1.1 connections that are kept, one request at a time on each.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpStream, UnixStream};

use baton_tests::client::content_of;

use crate::report::percentile;

/// Where calls go and what they carry.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Port on 127.0.0.1.
    pub(crate) port: u16,
    /// A Unix socket, instead of the port.
    pub(crate) socket: Option<PathBuf>,
    /// Path.
    pub(crate) path: String,
    /// Headers beside the usual ones.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Whether each client opens a session of its own first.
    pub(crate) has_sessions: bool,
}

/// A connection of one client.
pub(crate) struct Caller {
    sender: SendRequest<Full<Bytes>>,
    target: Target,
}

/// What a run of many calls gave.
pub(crate) struct Figures {
    /// Calls per second over all clients.
    pub(crate) rate: f64,
    /// Middle call.
    pub(crate) p50: Duration,
    /// Slow call.
    pub(crate) p99: Duration,
}

/// The body of a tool call.
pub(crate) fn tool_call(id: u64, tool: &str, arguments: &Value) -> Bytes {
    let call = json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments }
    });
    Bytes::from(call.to_string())
}

impl Target {
    /// The edge with the client token.
    pub(crate) fn edge(port: u16, token: &str) -> Self {
        let headers = vec![("authorization", format!("Bearer {token}"))];
        Self { port, socket: None, path: "/mcp".to_owned(), headers, has_sessions: true }
    }

    fn host(&self) -> String {
        if self.socket.is_some() { "localhost".to_owned() } else { format!("127.0.0.1:{}", self.port) }
    }

    /// The same with one more header.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Opens a session as a client of the session era does; targets without sessions stay as they are.
    pub(crate) async fn in_session(self) -> Result<Self> {
        let mut caller = Caller::connect(&self).await?;
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } });
        let response = caller.send(Bytes::from(initialize.to_string())).await?;
        ensure!(response.status() == 200, "initialize was answered {}", response.status());
        let session = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok());
        let session = session.map(str::to_owned);
        response.into_body().collect().await?;
        let mut target = self.with("mcp-protocol-version", "2025-11-25");
        if let Some(session) = session {
            target = target.with("mcp-session-id", session);
        }
        let mut caller = Caller::connect(&target).await?;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        caller.send(Bytes::from(initialized.to_string())).await?.into_body().collect().await?;
        Ok(target)
    }
}

impl Caller {
    /// Connects, without Nagle's delay.
    pub(crate) async fn connect(target: &Target) -> Result<Self> {
        if let Some(socket) = &target.socket {
            let (sender, connection) = handshake(TokioIo::new(UnixStream::connect(socket).await?)).await?;
            tokio::spawn(connection);
            return Ok(Self { sender, target: target.clone() });
        }
        let stream = TcpStream::connect(("127.0.0.1", target.port)).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, target: target.clone() })
    }

    /// Posts a body; the head of the answer.
    pub(crate) async fn send(&mut self, body: Bytes) -> Result<Response<Incoming>> {
        let mut request = Request::post(self.target.path.as_str())
            .header("host", self.target.host())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(body))?;
        for (name, value) in &self.target.headers {
            request.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    /// Opens the stream on which a client of the session era hears notices.
    pub(crate) async fn open_stream(&mut self) -> Result<Incoming> {
        let mut request = Request::get(self.target.path.as_str())
            .header("host", self.target.host())
            .header("accept", "text/event-stream")
            .body(Full::new(Bytes::new()))?;
        for (name, value) in &self.target.headers {
            request.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
        }
        let response = self.sender.send_request(request).await?;
        ensure!(response.status() == 200, "the stream was answered {}", response.status());
        Ok(response.into_body())
    }

    /// Posts a body; the whole answer.
    pub(crate) async fn exchange(&mut self, body: Bytes) -> Result<Bytes> {
        let response = self.send(body).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        ensure!(status == 200, "answered {status}: {}", String::from_utf8_lossy(&bytes));
        Ok(bytes)
    }

    /// Calls a tool; its result, however it was framed.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let result = self.result_of(tool_call(1, tool, arguments)).await;
        result.with_context(|| format!("{tool} failed"))
    }

    /// The result of any request.
    pub(crate) async fn ask(&mut self, request: &Value) -> Result<Value> {
        self.result_of(Bytes::from(request.to_string())).await
    }

    async fn result_of(&mut self, body: Bytes) -> Result<Value> {
        let bytes = self.exchange(body).await?;
        let text = std::str::from_utf8(&bytes)?;
        let json =
            text.lines().filter_map(|line| line.strip_prefix("data:")).rfind(|data| data.contains("\"id\""));
        let mut message: Value =
            serde_json::from_str(json.unwrap_or(text)).context("the answer is not JSON")?;
        ensure!(message["result"].is_object(), "no result: {message}");
        Ok(message["result"].take())
    }

    /// Calls a tool and expects a status; the structured content.
    pub(crate) async fn expect(&mut self, status: &str, tool: &str, arguments: Value) -> Result<Value> {
        let result = self.call(tool, &arguments).await?;
        let content = content_of(&result).clone();
        ensure!(content["status"] == status, "{tool} {arguments}: {content:#}");
        Ok(content)
    }
}

/// Lets `n_clients` make `n_calls` trivial calls each.
pub(crate) async fn run(target: &Target, n_clients: usize, n_calls: usize) -> Result<Figures> {
    let body = tool_call(7, "get_breakpoints", &json!({}));
    let mut callers = Vec::new();
    for _ in 0..n_clients {
        let target = if target.has_sessions { target.clone().in_session().await? } else { target.clone() };
        let mut caller = Caller::connect(&target).await?;
        let first = caller.exchange(body.clone()).await?;
        ensure!(
            first.windows(11).any(|part| part == b"breakpoints"),
            "not a result: {}",
            String::from_utf8_lossy(&first)
        );
        callers.push(caller);
    }
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for mut caller in callers {
        let body = body.clone();
        tasks.spawn(async move {
            let mut samples = Vec::with_capacity(n_calls);
            for _ in 0..n_calls {
                let sent = Instant::now();
                caller.exchange(body.clone()).await?;
                samples.push(sent.elapsed());
            }
            anyhow::Ok(samples)
        });
    }
    let mut samples = Vec::new();
    while let Some(done) = tasks.join_next().await {
        samples.extend(done??);
    }
    let rate = samples.len() as f64 / start.elapsed().as_secs_f64();
    Ok(Figures { rate, p50: percentile(&samples, 50), p99: percentile(&samples, 99) })
}
