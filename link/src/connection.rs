//! One connection to the coordinator, and the typed requests on it.
//!
//! On the socket in the state folder both sides know each other by where they are: nobody else can make or reach it.
//! On a port, which anybody can take, the other side proves itself first.
//!
//! **Invariant:** no token is sent before the other side has proven the secret on the same connection.

use crate::explain::Explanation;
use std::collections::VecDeque;
use std::pin::pin;
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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::home::{Home, random_hex};
use crate::net::{TcpStream, UnixStream};
use crate::routes;
use crate::socket;

/// A coordinator that does not answer a hello or a ping for this long has missed it.
pub const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// Missed pings after which a coordinator counts as hung.
pub const MAX_MISSED_PINGS: u32 = 3;

/// Longest wait for the answer to a request of `/v1`, in pings; all of them are quick.
const CALL_PINGS: u32 = 10;

/// Largest answer to a hello.
const MAX_HELLO_LEN: usize = 64 * 1024;

/// Largest answer of `/v1`: 500 windows take a few hundred KiB.
const MAX_ANSWER_LEN: usize = 16 * 1024 * 1024;

/// Longest line of an event stream.
const MAX_NOTICE_LEN: usize = 1024 * 1024;

/// Host of a request on the socket, where nobody has to be told apart.
const SOCKET_AUTHORITY: &str = "localhost";

/// A connection whose other side is the coordinator, by its place or by its proof.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    hello: HelloAnswer,
    authority: String,
    way: Way,
    /// What requests carry on a port.
    bearer: Option<Token>,
    /// Ends the connection when it is dropped.
    _driver: Driver,
}

/// How the coordinator is reached.
#[derive(Clone, Debug)]
enum Way {
    Socket(Home),
    Port { secret: Secret, port: u16 },
}

/// Why there is no connection to a coordinator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody listens there, or it closed at once.
    #[error("nothing is listening there")]
    Refused,
    /// Somebody accepted the connection and said nothing for [`PING_TIMEOUT`].
    #[error("the program listening there is not responding")]
    Silent {
        /// Its process, on the socket.
        pid: Option<u32>,
    },
    /// Somebody answered who does not know the secret.
    #[error("port {port} is in use by another program")]
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
    #[error("lost the connection to the coordinator")]
    Lost,
    /// No answer in time.
    #[error("the coordinator is not responding")]
    Silent,
    /// An answer that makes no sense.
    #[error("unexpected response from the coordinator ({0})")]
    Malformed(String),
}

impl CallError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Refused { failure, .. } => failure.hint.clone(),
            Self::Lost | Self::Silent => Some("try again".to_owned()),
            Self::Malformed(_) => Some("update Baton".to_owned()),
        }
    }

    /// For a place that has one line.
    pub fn explain(&self) -> Explanation {
        Explanation { message: self.to_string(), hint: self.hint() }
    }
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
    /// Connects to the coordinator's socket in the state folder.
    pub async fn open_socket(home: &Home) -> Result<Self, OpenError> {
        let stream = match timeout(PING_TIMEOUT, socket::connect(home, socket::COORDINATOR)).await {
            Ok(Ok(stream)) => stream,
            // So many wait already that one more is not let in: nobody accepts them.
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(OpenError::Silent { pid: None });
            }
            Ok(Err(error)) => return Err(local_or(error, OpenError::Refused)),
            Err(_) => return Err(OpenError::Silent { pid: None }),
        };
        let pid = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
        let said = timeout(PING_TIMEOUT, Self::greet_on_socket(stream, home)).await;
        said.unwrap_or(Err(OpenError::Silent { pid }))
    }

    async fn greet_on_socket(stream: UnixStream, home: &Home) -> Result<Self, OpenError> {
        let (mut sender, driver) = handshake(stream).await?;
        let said = say_hello(&mut sender, SOCKET_AUTHORITY, None).await;
        let (status, body) = said.map_err(|_| OpenError::Refused)?;
        let hello = serde_json::from_slice(&body).ok().filter(|_| status == StatusCode::OK);
        let hello = hello.ok_or(OpenError::Refused)?;
        let authority = SOCKET_AUTHORITY.to_owned();
        let way = Way::Socket(home.clone());
        Ok(Self { sender, hello, authority, way, bearer: None, _driver: driver })
    }

    /// Connects to `127.0.0.1:port` and has the other side prove that it knows `secret`. Requests then carry the
    /// member token.
    pub async fn open(secret: &Secret, port: u16) -> Result<Self, OpenError> {
        let said = timeout(PING_TIMEOUT, Self::greet_on_port(secret, port)).await;
        said.unwrap_or(Err(OpenError::Silent { pid: None }))
    }

    async fn greet_on_port(secret: &Secret, port: u16) -> Result<Self, OpenError> {
        let (mut sender, driver) = handshake(connect(port).await?).await?;
        let authority = format!("127.0.0.1:{port}");
        let nonce = random_hex().map_err(OpenError::Local)?;
        let credential = HelloCredential { nonce: nonce.clone() }.to_bearer(secret, port);
        let stranger = || OpenError::Stranger { port };
        let said = say_hello(&mut sender, &authority, Some(&credential)).await;
        let (status, body) = said.map_err(|silence| match silence {
            NoHello::Closed => OpenError::Refused,
            NoHello::NotHttp => stranger(),
        })?;
        if status != StatusCode::OK {
            return Err(stranger());
        }
        let hello: HelloAnswer = serde_json::from_slice(&body).map_err(|_| stranger())?;
        if hello.port != port || !hello.is_proven(secret, &nonce) {
            return Err(stranger());
        }
        let bearer = Some(secret.token(Role::Member));
        let way = Way::Port { secret: secret.clone(), port };
        Ok(Self { sender, hello, authority, way, bearer, _driver: driver })
    }

    /// One more connection to where this one leads.
    pub async fn open_again(&self) -> Result<Self, OpenError> {
        match &self.way {
            Way::Socket(home) => Self::open_socket(home).await,
            Way::Port { secret, port } => Self::open(secret, *port).await,
        }
    }

    /// What the coordinator said of itself.
    pub fn hello(&self) -> &HelloAnswer {
        &self.hello
    }

    /// Requests carry the token of `role` from now on: the bridge is an MCP client. On the socket nobody asks.
    pub fn set_role(&mut self, role: Role) {
        if let Way::Port { secret, .. } = &self.way {
            self.bearer = Some(secret.token(role));
        }
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
        match timeout(PING_TIMEOUT, self.get(routes::PING.path)).await {
            Ok(result) => result,
            Err(_) => Err(CallError::Silent),
        }
    }

    /// Turns this connection into the event stream of a window.
    pub async fn events(mut self, window: &WindowId, incarnation: u64) -> Result<Events, CallError> {
        let path = format!("{}?incarnation={incarnation}", routes::EVENTS.path_for(window.as_str()));
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
        if let Some(bearer) = &self.bearer {
            request.headers_mut().insert(AUTHORIZATION, to_bearer(bearer.expose()).map_err(malformed)?);
        }
        let host = HeaderValue::try_from(&self.authority).map_err(malformed)?;
        request.headers_mut().insert(HOST, host);
        self.sender.ready().await.map_err(|_| CallError::Lost)?;
        self.sender.send_request(request).await.map_err(|_| CallError::Lost)
    }

    /// `GET path`, of which the answer is text.
    pub async fn text(&mut self, path: &str) -> Result<String, CallError> {
        let body = self.exchange(Method::GET, path, Bytes::new()).await?;
        String::from_utf8(body.into()).map_err(malformed)
    }

    async fn call<A: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<A, CallError> {
        let body = self.exchange(method, path, body).await?;
        serde_json::from_slice(&body).map_err(malformed)
    }

    async fn exchange(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes, CallError> {
        let request = self.build(method, path, body)?;
        let response = bounded(self.send(request)).await?;
        let status = response.status();
        let body = bounded(collect(response)).await?;
        if !status.is_success() {
            return Err(failure_of(status, &body));
        }
        Ok(body)
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
    fn spawn<S>(connection: http1::Connection<TokioIo<S>, Full<Bytes>>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
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
    let stream =
        TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| local_or(error, OpenError::Refused))?;
    // A dead port inside the ephemeral range can connect to itself; that would block the daemon's bind.
    if let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr())
        && local == peer
    {
        return Err(OpenError::Refused);
    }
    stream.set_nodelay(true).map_err(OpenError::Local)?;
    Ok(stream)
}

async fn handshake<S>(stream: S) -> Result<(SendRequest<Full<Bytes>>, Driver), OpenError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|_| OpenError::Refused)?;
    Ok((sender, Driver::spawn(connection)))
}

/// Why nobody said who is there: a peer that closes is one that ends, one that talks another protocol is a stranger.
enum NoHello {
    Closed,
    NotHttp,
}

/// Asks who is there.
async fn say_hello(
    sender: &mut SendRequest<Full<Bytes>>,
    authority: &str,
    credential: Option<&str>,
) -> Result<(StatusCode, Bytes), NoHello> {
    let mut request = Request::new(Full::new(Bytes::from_static(b"{}")));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = hyper::Uri::from_static(routes::HELLO.path);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(value) = HeaderValue::try_from(authority) {
        headers.insert(HOST, value);
    }
    if let Some(Ok(value)) = credential.map(to_bearer) {
        headers.insert(AUTHORIZATION, value);
    }
    let response = sender.send_request(request).await.map_err(|error| match error.is_parse() {
        true => NoHello::NotHttp,
        false => NoHello::Closed,
    })?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_HELLO_LEN).collect().await;
    let body = body.map_err(|_| NoHello::NotHttp)?;
    Ok((status, body.to_bytes()))
}

fn to_bearer(token: &str) -> Result<HeaderValue, hyper::header::InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn local_or(error: std::io::Error, otherwise: OpenError) -> OpenError {
    let is = |errno: rustix::io::Errno| error.raw_os_error() == Some(errno.raw_os_error());
    if is(rustix::io::Errno::MFILE) || is(rustix::io::Errno::NFILE) {
        OpenError::Local(error)
    } else {
        otherwise
    }
}

/// The outcome of `work`; [`CallError::Silent`] when it takes as long as `n_pings` of [`PING_TIMEOUT`].
///
/// It is waited for ping by ping. This process can have stood still, and then finds the time over at which it would
/// have given up, with an answer that lies there unread: that costs it one ping, and not the coordinator its life.
pub async fn unless_silent<T>(
    n_pings: u32,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let mut work = pin!(work);
    for _ in 0..n_pings {
        if let Ok(outcome) = timeout(PING_TIMEOUT, work.as_mut()).await {
            return outcome;
        }
    }
    Err(CallError::Silent)
}

async fn bounded<T>(work: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
    unless_silent(CALL_PINGS, work).await
}

async fn collect(response: Response<Incoming>) -> Result<Bytes, CallError> {
    let body = Limited::new(response.into_body(), MAX_ANSWER_LEN).collect().await;
    Ok(body.map_err(|_| CallError::Lost)?.to_bytes())
}

fn failure_of(status: StatusCode, body: &[u8]) -> CallError {
    let failure = serde_json::from_slice(body).unwrap_or_else(|_| Failure {
        code: "http".to_owned(),
        message: format!("unexpected response from the coordinator ({status})"),
        hint: Some("update Baton".to_owned()),
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

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::task::yield_now;
    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_stood_still_reads_what_came_meanwhile() {
        let (answer, answered) = oneshot::channel();
        let waiting = tokio::spawn(unless_silent(MAX_MISSED_PINGS, async {
            answered.await.map_err(|_| CallError::Lost)
        }));
        yield_now().await;
        // It goes on long after the time that it has, and what it waits for is read a moment later.
        advance(20 * PING_TIMEOUT).await;
        answer.send("here").expect("it still waits");
        assert_eq!(waiting.await.expect("no panic").expect("an answer"), "here");
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_is_given_up_after_three_pings() {
        let since = Instant::now();
        let outcome = unless_silent(MAX_MISSED_PINGS, std::future::pending::<Result<(), CallError>>()).await;
        assert!(matches!(outcome, Err(CallError::Silent)));
        assert_eq!(since.elapsed(), 3 * PING_TIMEOUT);
    }
}
