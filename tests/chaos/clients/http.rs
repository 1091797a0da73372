//! A client over HTTP: one connection that is kept, and in the older era a session and a stream of notices.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{Client, Heard, Kind, PATIENCE, classify, shortened};
use crate::history::Told;

/// Nobody who listens takes longer to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A fickle client hangs up after at most so long.
const FICKLE_MS: std::ops::Range<u64> = 0..12;

/// Calls until the world ends.
pub(super) async fn run(client: Client) {
    let (token, port) = (client.world.token(), client.world.port());
    let mut caller = Caller { client, token, port, sender: None, session: None, notices: None };
    while !caller.client.is_over() {
        let told = caller.turn().await;
        caller.client.pause(told).await;
    }
    if let Some(notices) = caller.notices {
        notices.abort();
    }
}

struct Caller {
    client: Client,
    token: String,
    port: u16,
    sender: Option<SendRequest<Full<Bytes>>>,
    session: Option<String>,
    notices: Option<tokio::task::JoinHandle<()>>,
}

/// How far an exchange came.
enum Exchange {
    Answer(StatusCode, Option<String>, Bytes),
    Refused(String),
    Torn(String),
    Nothing,
    Dropped,
}

impl Caller {
    /// One call, and what has to come before it.
    async fn turn(&mut self) -> Told {
        if matches!(self.client.kind, Kind::Session | Kind::Pinned) && self.session.is_none() {
            let told = self.initialize().await;
            if told != Told::Done {
                return told;
            }
        }
        let (id, message) = self.client.next_call();
        let gives_up = self.client.kind == Kind::Fickle && self.client.rng.u8(..) < 40;
        let give_up = gives_up.then(|| Duration::from_millis(self.client.rng.u64(FICKLE_MS)));
        let sent = self.client.history.now();
        let exchange = self.exchange(&message, give_up).await;
        let heard = heard(exchange);
        let told = heard.told;
        self.client.record(id, "call", sent, heard);
        self.after(told).await;
        told
    }

    async fn initialize(&mut self) -> Told {
        let id = self.client.history.next_id();
        let message = self.client.initialize(id);
        let sent = self.client.history.now();
        let exchange = self.exchange(&message, None).await;
        let mut session = None;
        let heard = match exchange {
            Exchange::Answer(StatusCode::OK, Some(found), _) => {
                session = Some(found);
                Heard::new(Told::Done, "")
            }
            other => heard(other),
        };
        let told = heard.told;
        self.client.record(id, "initialize", sent, heard);
        self.after(told).await;
        if session.is_some() {
            self.session = session;
            let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let _ = self.exchange(&initialized, None).await;
            self.listen();
        }
        told
    }

    /// What a user does when a client is no longer let in.
    async fn after(&mut self, told: Told) {
        match told {
            Told::Unauthorized => {
                let world = self.client.world.clone();
                let token = tokio::task::spawn_blocking(move || world.read_token()).await;
                if let Ok(Some(token)) = token {
                    self.token = token;
                    self.session = None;
                }
            }
            Told::SessionLost => self.session = None,
            // The user moved the port, and wrote the new one into the client's configuration.
            Told::Refused => self.port = self.client.world.port(),
            _ => {}
        }
    }

    /// Keeps the stream of notices open.
    fn listen(&mut self) {
        if let Some(notices) = self.notices.take() {
            notices.abort();
        }
        let mut request = self.request("GET", &Value::Null);
        let port = self.port;
        let host = HeaderValue::from_str(&format!("127.0.0.1:{port}"));
        request.headers_mut().insert(HOST, host.expect("invariant: digits and dots"));
        self.notices = Some(tokio::spawn(async move {
            loop {
                if let Ok(Ok(stream)) = connect(port).await
                    && let Ok((mut sender, connection)) = handshake(TokioIo::new(stream)).await
                {
                    tokio::spawn(connection);
                    if let Ok(response) = sender.send_request(request.clone()).await {
                        let mut body = response.into_body();
                        while let Some(Ok(_)) = body.frame().await {}
                    }
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }));
    }

    async fn exchange(&mut self, message: &Value, give_up: Option<Duration>) -> Exchange {
        let request = self.request("POST", message);
        if let Some(after) = give_up {
            let result = tokio::time::timeout(after, self.send(request)).await;
            return result.unwrap_or_else(|_| {
                // The connection goes with the call.
                self.sender = None;
                Exchange::Dropped
            });
        }
        match tokio::time::timeout(PATIENCE, self.send(request)).await {
            Ok(exchange) => exchange,
            Err(_) => {
                self.sender = None;
                Exchange::Nothing
            }
        }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Exchange {
        let mut request = request;
        let response = loop {
            let mut sender = match self.sender.take() {
                Some(sender) => sender,
                None => match self.open().await {
                    Ok(sender) => sender,
                    Err(why) => return Exchange::Refused(why),
                },
            };
            if sender.ready().await.is_err() {
                continue;
            }
            // A connection that was opened just now may lead to another port.
            let host = HeaderValue::from_str(&format!("127.0.0.1:{}", self.port));
            request.headers_mut().insert(HOST, host.expect("invariant: digits and dots"));
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.sender = Some(sender);
                    break response;
                }
                Err(mut error) => match error.take_message() {
                    // It was closed while it was idle; nothing was written.
                    Some(again) => request = again,
                    None => return Exchange::Torn(format!("{:?}", error.error())),
                },
            }
        };
        let status = response.status();
        let session = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok());
        let session = session.map(str::to_owned);
        match response.into_body().collect().await {
            Ok(body) => Exchange::Answer(status, session, body.to_bytes()),
            Err(error) => {
                self.sender = None;
                Exchange::Torn(format!("{error:?}"))
            }
        }
    }

    async fn open(&mut self) -> Result<SendRequest<Full<Bytes>>, String> {
        // A port that was moved no longer answers; the client's configuration says the new one.
        self.port = self.client.world.port();
        let stream = match connect(self.port).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("timed out connecting".to_owned()),
        };
        // Only a small delay would come of its failure.
        let _ = stream.set_nodelay(true);
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn request(&self, method: &str, message: &Value) -> Request<Full<Bytes>> {
        let path = if self.client.kind == Kind::Pinned { "/mcp/windows/w0" } else { "/mcp" };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.token))
            .header("accept", "application/json, text/event-stream");
        if method == "POST" {
            request = request.header("content-type", "application/json");
        }
        if self.client.kind.is_stateless() {
            request = request
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", message["method"].as_str().unwrap_or_default());
            if let Some(name) = message["params"]["name"].as_str() {
                request = request.header("mcp-name", name);
            }
        } else if let Some(session) = &self.session {
            request = request.header("mcp-protocol-version", "2025-11-25").header("mcp-session-id", session);
        }
        let body = if method == "POST" { Bytes::from(message.to_string()) } else { Bytes::new() };
        request.body(Full::new(body)).expect("invariant: our own words are a request")
    }
}

async fn connect(port: u16) -> Result<std::io::Result<TcpStream>, tokio::time::error::Elapsed> {
    tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(("127.0.0.1", port))).await
}

fn heard(exchange: Exchange) -> Heard {
    let (status, body) = match exchange {
        Exchange::Answer(status, _, body) => (status, body),
        Exchange::Refused(why) => return Heard::new(Told::Refused, why),
        Exchange::Torn(why) => return Heard::new(Told::Torn, why),
        Exchange::Nothing => return Heard::new(Told::Nothing, ""),
        Exchange::Dropped => return Heard::new(Told::Dropped, ""),
    };
    let text = String::from_utf8_lossy(&body);
    let odd = |told| Heard::new(told, format!("{status}: {}", shortened(&text)));
    match status {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED => return odd(Told::Unauthorized),
        StatusCode::NOT_FOUND => return odd(Told::SessionLost),
        // A connection that has idled for long gives way to a new one, a coordinator that ends says so.
        StatusCode::SERVICE_UNAVAILABLE if text.contains("was not run; try again") => {
            return odd(Told::Again);
        }
        _ => return odd(Told::Odd),
    }
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let answer = events.rev().find(|data| data.contains("\"id\"")).unwrap_or(&text);
    match serde_json::from_str::<Value>(answer) {
        Ok(message) => classify(&message),
        Err(_) => odd(Told::Odd),
    }
}
