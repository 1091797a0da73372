//! One proven connection to the coordinator, and the typed requests on it.
//!
//! **Invariant:** no token is sent before the other side has proven the secret on the same connection.

use std::collections::VecDeque;
use std::time::Duration;

use baton_proto::control::{Failure, Notice, Pong};
use baton_proto::discovery::{HelloAnswer, HelloCredential, Role, Secret, Token};
use baton_proto::ids::WindowId;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Serialize, de::DeserializeOwned};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::home::random_hex;

/// A coordinator that does not answer a hello or a ping for this long has missed it.
pub const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest wait for the answer to a request of `/v1`; all of them are quick.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer of `/v1`: 500 windows take a few hundred KiB.
const MAX_ANSWER_LEN: usize = 16 * 1024 * 1024;

/// Longest line of an event stream.
const MAX_NOTICE_LEN: usize = 1024 * 1024;

/// A connection whose other side has proven that it is the coordinator.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    hello: HelloAnswer,
    authority: String,
    secret: Secret,
    bearer: Token,
    /// Ends the connection when it is dropped.
    _driver: Driver,
}

/// Why there is no proven connection.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody listens on the port, or it closed at once.
    #[error("nothing answers on port {port}")]
    Refused {
        /// The port.
        port: u16,
    },
    /// Somebody accepted the connection and said nothing for [`PING_TIMEOUT`].
    #[error("whatever holds port {port} does not answer")]
    Silent {
        /// The port.
        port: u16,
    },
    /// Somebody answered who does not know the secret.
    #[error("port {port} is held by another program")]
    Stranger {
        /// The port.
        port: u16,
    },
    /// This process is out of descriptors or memory.
    #[error("cannot open a connection: {0}")]
    Local(#[source] std::io::Error),
}

/// Why a request has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The coordinator refused it.
    #[error("{}", failure.message)]
    Refused {
        /// Status of the answer.
        status: u16,
        /// What it said.
        failure: Failure,
    },
    /// The connection ended before the answer; a request that changes something may have been carried out.
    #[error("the connection to the coordinator ended; try again")]
    Lost,
    /// No answer in time.
    #[error("the coordinator does not answer; try again")]
    Silent,
    /// An answer that makes no sense.
    #[error("the coordinator answered something this version does not understand ({0}); update Baton")]
    Malformed(String),
}

/// The event stream of a window. Its end means that the coordinator is gone.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    buffer: Vec<u8>,
    ready: VecDeque<Notice>,
    /// Keeps the connection open.
    _connection: Connection,
}

impl Connection {
    /// Connects to `127.0.0.1:port` and has the other side prove that it knows `secret`. Requests then carry the
    /// member token.
    pub async fn open(secret: &Secret, port: u16) -> Result<Self, OpenError> {
        match timeout(PING_TIMEOUT, Self::open_unbounded(secret, port)).await {
            Ok(result) => result,
            Err(_) => Err(OpenError::Silent { port }),
        }
    }

    async fn open_unbounded(secret: &Secret, port: u16) -> Result<Self, OpenError> {
        let stream = connect(port).await?;
        let stranger = |_| OpenError::Stranger { port };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|_| OpenError::Refused { port })?;
        let driver = Driver::spawn(connection);
        let authority = format!("127.0.0.1:{port}");
        let nonce = random_hex().map_err(OpenError::Local)?;
        let credential = HelloCredential { nonce: nonce.clone() }.to_bearer(secret, port);
        let mut request = Request::new(Full::new(Bytes::from_static(b"{}")));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = hyper::Uri::from_static("/v1/hello");
        set_headers(request.headers_mut(), &authority, &credential);
        let response = sender.send_request(request).await.map_err(|error| open_error(&error, port))?;
        if response.status() != StatusCode::OK {
            return Err(OpenError::Stranger { port });
        }
        let body =
            Limited::new(response.into_body(), 64 * 1024).collect().await.map_err(stranger)?.to_bytes();
        let hello: HelloAnswer = serde_json::from_slice(&body).map_err(|_| OpenError::Stranger { port })?;
        if hello.port != port || !hello.is_proven(secret, &nonce) {
            return Err(OpenError::Stranger { port });
        }
        let bearer = secret.token(Role::Member);
        Ok(Self { sender, hello, authority, secret: secret.clone(), bearer, _driver: driver })
    }

    /// What the coordinator said of itself.
    pub fn hello(&self) -> &HelloAnswer {
        &self.hello
    }

    /// The secret that was proven.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Requests carry the token of `role` from now on: the bridge is an MCP client.
    pub fn set_role(&mut self, role: Role) {
        self.bearer = self.secret.token(role);
    }

    /// True once the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// `GET path`.
    pub async fn get<A: DeserializeOwned>(&mut self, path: &str) -> Result<A, CallError> {
        self.call(Method::GET, path, Bytes::new()).await
    }

    /// `POST path` with a JSON body.
    pub async fn post<A: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, CallError> {
        self.call(Method::POST, path, to_json(body)?).await
    }

    /// `PATCH path` with a JSON body.
    pub async fn patch<A: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, CallError> {
        self.call(Method::PATCH, path, to_json(body)?).await
    }

    /// Asks for a sign of life; [`CallError::Silent`] after [`PING_TIMEOUT`].
    pub async fn ping(&mut self) -> Result<Pong, CallError> {
        match timeout(PING_TIMEOUT, self.get("/v1/ping")).await {
            Ok(result) => result,
            Err(_) => Err(CallError::Silent),
        }
    }

    /// Turns this connection into the event stream of a window.
    pub async fn events(mut self, window: &WindowId, incarnation: u64) -> Result<Events, CallError> {
        let path = format!("/v1/windows/{window}/events?incarnation={incarnation}");
        let request = self.build(Method::GET, &path, Bytes::new())?;
        let response = bounded(self.send(request)).await?;
        if response.status() != StatusCode::OK {
            return Err(failure_of(response.status(), &bounded(collect(response)).await?));
        }
        let body = response.into_body();
        Ok(Events { body, buffer: Vec::new(), ready: VecDeque::new(), _connection: self })
    }

    /// Sends any request, with Host and token set here, and returns the answer once its head is there; the body
    /// streams as long as this connection is kept. Not bounded in time.
    pub async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<Response<Incoming>, CallError> {
        let bearer = format!("Bearer {}", self.bearer.expose());
        let mut bearer = HeaderValue::try_from(bearer).map_err(malformed)?;
        bearer.set_sensitive(true);
        let host = HeaderValue::try_from(&self.authority).map_err(malformed)?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
        request.headers_mut().insert(HOST, host);
        self.sender.ready().await.map_err(|_| CallError::Lost)?;
        self.sender.send_request(request).await.map_err(|_| CallError::Lost)
    }

    async fn call<A: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<A, CallError> {
        let request = self.build(method, path, body)?;
        let response = bounded(self.send(request)).await?;
        let status = response.status();
        let body = bounded(collect(response)).await?;
        if !status.is_success() {
            return Err(failure_of(status, &body));
        }
        serde_json::from_slice(&body).map_err(malformed)
    }

    fn build(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, CallError> {
        Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(malformed)
    }
}

impl Events {
    /// The next notice; `None` when the stream has ended. May be cancelled and called again.
    pub async fn next(&mut self) -> Result<Option<Notice>, CallError> {
        loop {
            if let Some(notice) = self.ready.pop_front() {
                return Ok(Some(notice));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|_| CallError::Lost)?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
                self.drain_lines();
            }
            if self.buffer.len() > MAX_NOTICE_LEN {
                return Err(CallError::Malformed("a notice is too long".to_owned()));
            }
        }
    }

    /// A line that is no notice comes from a newer coordinator and is not for us.
    fn drain_lines(&mut self) {
        let Some(end) = self.buffer.iter().rposition(|byte| *byte == b'\n') else { return };
        let rest = self.buffer.split_off(end + 1);
        let lines = std::mem::replace(&mut self.buffer, rest);
        let notices = lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        self.ready.extend(notices);
    }
}

/// The task that moves the bytes of a connection; ends with it.
#[derive(Debug)]
struct Driver(AbortHandle);

impl Driver {
    fn spawn(connection: http1::Connection<TokioIo<TcpStream>, Full<Bytes>>) -> Self {
        let task = tokio::spawn(async move {
            // Whoever waits for an answer learns of the end of the connection.
            let _ = connection.await;
        });
        Self(task.abort_handle())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn connect(port: u16) -> Result<TcpStream, OpenError> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| {
        if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
            || error.raw_os_error() == Some(rustix::io::Errno::NFILE.raw_os_error())
        {
            return OpenError::Local(error);
        }
        OpenError::Refused { port }
    })?;
    // A dead port inside the ephemeral range can connect to itself; that would block the daemon's bind.
    if let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr())
        && local == peer
    {
        return Err(OpenError::Refused { port });
    }
    stream.set_nodelay(true).map_err(OpenError::Local)?;
    Ok(stream)
}

fn set_headers(headers: &mut hyper::HeaderMap, authority: &str, bearer: &str) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(value) = HeaderValue::try_from(authority) {
        headers.insert(HOST, value);
    }
    if let Ok(mut value) = HeaderValue::try_from(format!("Bearer {bearer}")) {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
}

/// A peer that closes is one that ends; one that talks another protocol is a stranger.
fn open_error(error: &hyper::Error, port: u16) -> OpenError {
    if error.is_parse() { OpenError::Stranger { port } } else { OpenError::Refused { port } }
}

async fn bounded<T>(work: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
    timeout(CALL_TIMEOUT, work).await.unwrap_or(Err(CallError::Silent))
}

async fn collect(response: Response<Incoming>) -> Result<Bytes, CallError> {
    let body = Limited::new(response.into_body(), MAX_ANSWER_LEN).collect().await;
    Ok(body.map_err(|_| CallError::Lost)?.to_bytes())
}

fn failure_of(status: StatusCode, body: &[u8]) -> CallError {
    let failure = serde_json::from_slice(body).unwrap_or_else(|_| Failure {
        code: "http".to_owned(),
        message: format!("the coordinator answered {status}; update Baton"),
        candidates: Vec::new(),
    });
    CallError::Refused { status: status.as_u16(), failure }
}

fn to_json(body: &impl Serialize) -> Result<Bytes, CallError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(malformed)
}

fn malformed(error: impl std::fmt::Display) -> CallError {
    CallError::Malformed(error.to_string())
}
