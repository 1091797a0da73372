//! Passes one call to a window and its bytes back.
//!
//! **Invariant:** a call is sent a second time only when it provably did not run. Once its bytes were accepted
//! there is an answer: the window's own, or one that says that its outcome is unknown.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_election::roster::{Address, Roster, Window};
use baton_http::body::Body;
use baton_http::respond;
use baton_http::sender::{Sender, Stream};
use baton_link::home::Home;
use baton_link::{peer, socket};
use baton_mcp::fault::{RpcError, ToolFailure, code, outcome_unknown};
use baton_mcp::message;
use baton_mcp::revision::Era;
use baton_proto::control::DRAIN_MS;
use baton_proto::discovery::Secret;
use baton_proto::edge::{PIN_HEADER, REFUSED_HEADER, TERM_HEADER};
use baton_proto::ids::WindowId;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::Events;
use super::cancel::Running;
use super::heard;
use super::route::{Right, Target};

/// How long an idle connection to a window is used again; shorter than any server's own patience, so that a call
/// is not written to a connection that is being closed.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// Idle connections kept for one window.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// How long connecting to a window on this host may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for an answer that is on its way when its window is taken off the roster.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// Largest answer that is not a stream.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A tool call on its way.
pub(crate) struct Call {
    pub(crate) body: Bytes,
    /// `mcp-*` headers of the client that the window shall see.
    pub(crate) headers: HeaderMap,
    pub(crate) id: Box<RawValue>,
    pub(crate) era: Era,
    /// Set when the client can cancel by a notification.
    pub(crate) running: Option<Running>,
}

/// What became of sending a call.
pub(crate) enum Attempt {
    /// There is an answer for the client, in which it hears of the window.
    Answered(Response<Body>),
    /// There is an answer, and no word of the window in it: the client cancelled, or the answer could not be passed on.
    Unheard(Response<Body>),
    /// It provably did not run, for this reason.
    NotRun(&'static str),
}

/// Why the window's answer is no longer waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client cancelled.
    Cancelled,
    /// The window is gone.
    Gone,
    /// The window handed over long ago.
    Drained,
    /// The coordinator ends.
    Ended,
}

/// All windows that calls were sent to.
pub(crate) struct Windows {
    secret: Secret,
    /// The state folder, in which the windows' sockets lie.
    home: Option<Home>,
    upstreams: Mutex<HashMap<WindowId, Arc<Upstream>>>,
    /// The coordinator ends now.
    cut: CancellationToken,
}

/// One run of one window's agent.
pub(crate) struct Upstream {
    incarnation: u64,
    address: Address,
    home: Option<Home>,
    authority: HeaderValue,
    bearer: HeaderValue,
    idle: Mutex<Vec<(Instant, Sender)>>,
    gone: CancellationToken,
    /// Ends the calls that were routed to the live window, a while after a handover.
    drained: Mutex<CancellationToken>,
    standing: Mutex<Standing>,
}

/// Where a window stands, as far as draining is concerned.
#[derive(Default)]
struct Standing {
    is_live: bool,
    /// Counts, so that the limit of an earlier handover does not end calls of a later one.
    n_handovers: u64,
}

impl Windows {
    pub(crate) fn new(secret: Secret, home: Option<Home>, cut: CancellationToken) -> Self {
        Self { secret, home, upstreams: Mutex::default(), cut }
    }

    /// Follows the roster: ends calls of windows that are gone, and starts the drain limit of one that handed
    /// over.
    pub(crate) fn on_roster(&self, roster: &Roster) {
        let mut upstreams = self.upstreams.lock().unwrap_or_else(PoisonError::into_inner);
        let live = roster.live_window().map(|(window, _)| window.id.clone());
        upstreams.retain(|id, upstream| {
            let is_there = roster.windows.get(id).is_some_and(|window| upstream.is_of(window));
            if !is_there {
                upstream.gone.cancel();
                return false;
            }
            upstream.on_live(live.as_ref() == Some(id));
            true
        });
    }

    fn upstream(&self, window: &Window) -> Arc<Upstream> {
        let mut upstreams = self.upstreams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(upstream) = upstreams.get(&window.id) {
            if upstream.is_of(window) {
                return upstream.clone();
            }
            upstream.gone.cancel();
        }
        let upstream = Arc::new(Upstream::new(window, &self.secret, self.home.clone()));
        upstreams.insert(window.id.clone(), upstream.clone());
        upstream
    }

    /// Sends `call` to `target`, with what is to be told in the answer.
    pub(crate) async fn send(&self, target: &Target, call: &Arc<Call>, told: HeaderMap) -> Attempt {
        let upstream = self.upstream(&target.window);
        let drained = match target.right {
            Right::Term(_) => {
                upstream.standing.lock().unwrap_or_else(PoisonError::into_inner).is_live = true;
                upstream.drained.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            Right::Pin => upstream.gone.clone(),
        };
        let cut = self.cut.clone();
        let (window, call) = (target.window.clone(), call.clone());
        let exchange = Exchange { upstream, window, call, right: target.right, told, drained, cut };
        match exchange.call.era {
            Era::Stateless => exchange.run().await,
            // In the older eras a lost connection cancels nothing.
            Era::Sessions(_) => super::detach::finish(exchange.run()).await,
        }
    }
}

impl Upstream {
    fn new(window: &Window, secret: &Secret, home: Option<Home>) -> Self {
        let (authority, incarnation) = match window.address {
            Address::Socket(_) => ("localhost".to_owned(), Some(window.incarnation)),
            Address::Port(port) => (format!("127.0.0.1:{port}"), Some(window.incarnation)),
            Address::OldPort(port) => (format!("127.0.0.1:{port}"), None),
        };
        let bearer = format!("Bearer {}", secret.window_token(&window.id, incarnation).expose());
        let value = |text: &str| HeaderValue::from_str(text).expect("invariant: digits, letters and dots");
        let gone = CancellationToken::new();
        let mut bearer = value(&bearer);
        bearer.set_sensitive(true);
        Self {
            incarnation: window.incarnation,
            address: window.address.clone(),
            home,
            authority: value(&authority),
            bearer,
            idle: Mutex::default(),
            drained: Mutex::new(gone.child_token()),
            gone,
            standing: Mutex::default(),
        }
    }

    fn is_of(&self, window: &Window) -> bool {
        self.incarnation == window.incarnation && self.address == window.address
    }

    fn on_live(self: &Arc<Self>, is_live: bool) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let was_live = std::mem::replace(&mut standing.is_live, is_live);
        if !was_live || is_live {
            return;
        }
        standing.n_handovers += 1;
        let (upstream, n_handovers) = (self.clone(), standing.n_handovers);
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(DRAIN_MS)) => upstream.on_drained(n_handovers),
                () = upstream.gone.cancelled() => {}
            }
        });
    }

    fn on_drained(&self, n_handovers: u64) {
        let standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        // A window that came back in the meantime keeps its calls.
        if !standing.is_live && standing.n_handovers == n_handovers {
            let fresh = self.gone.child_token();
            std::mem::replace(&mut *self.drained.lock().unwrap_or_else(PoisonError::into_inner), fresh)
                .cancel();
        }
    }

    /// A connection, and whether it was used before.
    async fn connection(&self) -> Result<(Sender, bool), &'static str> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((since, mut sender)) = idle else { break };
            if since.elapsed() < IDLE_MAX && sender.is_usable().await {
                return Ok((sender, true));
            }
        }
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, self.connect()).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, address = ?self.address, "window refused a connection");
                return Err("connection refused");
            }
            Err(_) => return Err("timed out connecting"),
        };
        let sender = Sender::open(stream).await.map_err(|_| "connection refused")?;
        Ok((sender, false))
    }

    async fn connect(&self) -> io::Result<Stream> {
        match (&self.address, &self.home) {
            (Address::Socket(name), Some(home)) => Ok(Stream::Right(socket::connect(home, name).await?)),
            (Address::Socket(_), None) => Err(io::ErrorKind::NotFound.into()),
            (Address::Port(port) | Address::OldPort(port), _) => {
                let stream = TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, *port)).await?;
                // Another user may have taken the port of an agent that ended.
                peer::check_server(&stream).await?;
                // Nagle would hold back the second segment of a call.
                stream.set_nodelay(true)?;
                Ok(Stream::Left(stream))
            }
        }
    }

    pub(crate) fn keep(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !sender.is_closed() && !self.gone.is_cancelled() && idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push((Instant::now(), sender));
        }
    }
}

/// A call at a window.
pub(crate) struct Exchange {
    upstream: Arc<Upstream>,
    window: Arc<Window>,
    pub(crate) call: Arc<Call>,
    right: Right,
    /// Headers on what the window shall tell.
    told: HeaderMap,
    drained: CancellationToken,
    cut: CancellationToken,
}

impl Exchange {
    async fn run(self) -> Attempt {
        loop {
            let (mut sender, is_used) = match self.upstream.connection().await {
                Ok(connection) => connection,
                Err(why) => return Attempt::NotRun(why),
            };
            let result = tokio::select! {
                biased;
                result = sender.send(self.request()) => result,
                stop = self.stopped() => return self.stopped_answer(stop),
            };
            match result {
                Ok(response) => return self.on_response(response, sender).await,
                Err(mut error) => {
                    if error.take_message().is_none() {
                        tracing::info!(error = %error.error(), "a window died during a call");
                        return self.stopped_answer(Stop::Gone);
                    }
                    // The message came back: not a byte of it was written.
                    if !is_used {
                        return Attempt::NotRun("connection closed");
                    }
                }
            }
        }
    }

    /// The call, rebuilt: nothing of the client's head but a few `mcp-*` headers gets through.
    fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.call.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static("/mcp");
        *request.version_mut() = Version::HTTP_11;
        let headers = request.headers_mut();
        headers.clone_from(&self.call.headers);
        headers.extend(self.told.clone());
        headers.insert(header::HOST, self.upstream.authority.clone());
        headers.insert(header::AUTHORIZATION, self.upstream.bearer.clone());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(self.call.era.as_str()));
        match self.right {
            Right::Term(term) => {
                if let Ok(term) = HeaderValue::from_str(&term.to_string()) {
                    headers.insert(HeaderName::from_static(TERM_HEADER), term);
                }
            }
            Right::Pin => {
                headers.insert(HeaderName::from_static(PIN_HEADER), HeaderValue::from_static("1"));
            }
        }
        request
    }

    async fn on_response(self, response: Response<Incoming>, sender: Sender) -> Attempt {
        let (parts, incoming) = response.into_parts();
        if parts.status == StatusCode::CONFLICT && parts.headers.contains_key(REFUSED_HEADER) {
            tracing::debug!(why = ?parts.headers.get(REFUSED_HEADER), "a window refused a call");
            return Attempt::NotRun("refused by the window");
        }
        let kind = parts.headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if kind.starts_with(b"text/event-stream") {
            let keep = Box::new(|exchange: &Exchange| exchange.upstream.keep(sender));
            return Attempt::Answered(respond::events(Body::stream(
                Events::new(self, incoming, keep).stream(),
            )));
        }
        let is_json = kind.starts_with(b"application/json");
        let bytes = tokio::select! {
            biased;
            bytes = collect(incoming) => bytes,
            stop = self.stopped() => return self.stopped_answer(stop),
        };
        match bytes {
            Ok(Some(bytes)) => {
                self.upstream.keep(sender);
                if is_json {
                    Attempt::Answered(respond::json(parts.status, bytes))
                } else {
                    self.on_odd_answer(parts.status, &bytes)
                }
            }
            Ok(None) => Attempt::Unheard(respond::tool_failure(self.call.era, &self.call.id, &too_large())),
            Err(error) => {
                tracing::info!(%error, "a window died while answering");
                self.stopped_answer(Stop::Gone)
            }
        }
    }

    /// An agent answers text when it could not read the message, which our own reading was too coarse to see.
    fn on_odd_answer(&self, status: StatusCode, bytes: &Bytes) -> Attempt {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(500)]).into_owned();
        if status.is_client_error() {
            let why = format!("cannot read the message: {text}");
            let error = RpcError::new(code::PARSE_ERROR, why);
            return Attempt::Unheard(respond::rpc_error(self.call.era, Some(&self.call.id), &error));
        }
        // It had the call, and nothing says how far it came: an agent that ends answers so.
        tracing::warn!(%status, "a window's answer is not valid MCP");
        self.stopped_answer(Stop::Gone)
    }

    /// Ends when the window's answer need no longer be waited for.
    pub(crate) async fn stopped(&self) -> Stop {
        let cancelled = async {
            match &self.call.running {
                Some(running) => running.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = cancelled => Stop::Cancelled,
            () = self.cut.cancelled() => Stop::Ended,
            () = self.drained.cancelled() => {
                if !self.upstream.gone.is_cancelled() {
                    return Stop::Drained;
                }
                tokio::time::sleep(LAST_WORDS).await;
                Stop::Gone
            }
        }
    }

    fn stopped_answer(&self, stop: Stop) -> Attempt {
        let response = respond::json(StatusCode::OK, self.stopped_bytes(stop));
        if stop == Stop::Cancelled { Attempt::Unheard(response) } else { Attempt::Answered(response) }
    }

    /// The message that a client gets instead of the window's own. It names the window, as the window would have.
    pub(crate) fn stopped_bytes(&self, stop: Stop) -> Vec<u8> {
        let window = heard::described(&self.window);
        let what = match stop {
            Stop::Cancelled => return message::interrupted_bytes(self.call.era, &self.call.id),
            Stop::Gone => format!("Window {window} exited during this call"),
            Stop::Ended => format!("The coordinator was stopped while window {window} ran this call"),
            Stop::Drained => {
                format!("Window {window} handed over, and the call was canceled after {} s", DRAIN_MS / 1000)
            }
        };
        message::tool_failure_bytes(self.call.era, &self.call.id, &outcome_unknown(&what))
    }
}

/// The whole answer; `None` when it is too large.
async fn collect(mut incoming: Incoming) -> Result<Option<Bytes>, hyper::Error> {
    let mut whole = Bytes::new();
    let mut rest = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if whole.is_empty() {
            whole = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&whole);
            }
            rest.extend_from_slice(&data);
        }
        if rest.len() > ANSWER_MAX {
            return Ok(None);
        }
    }
    Ok(Some(if rest.is_empty() { whole } else { rest.into() }))
}

fn too_large() -> ToolFailure {
    ToolFailure {
        code: "answer_too_large",
        message: format!("The call ran, but its answer exceeds {} MiB.", ANSWER_MAX / 1024 / 1024),
        hint: "If it only reads, ask for less. Any changes it made remain.".to_owned(),
        candidates: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baton_proto::control::WindowState;
    use baton_proto::discovery::KEY_LEN;
    use baton_proto::ids::Term;

    use super::*;
    use crate::route::tests::{roster, window};

    #[tokio::test(start_paused = true)]
    async fn calls_of_a_window_that_handed_over_have_the_drain_limit() {
        let windows = Windows::new(Secret::new([1; KEY_LEN]), None, CancellationToken::new());
        let mut roster = roster();
        let upstream = windows.upstream(&window("a", WindowState::Live));
        windows.on_roster(&roster);
        let running = upstream.drained.lock().unwrap().clone();
        let to = |id: &str, seq| Some((id.parse().unwrap(), Term { generation: 1, seq }));

        // It hands over and comes back in time: its calls go on, and the next handover has a limit of its own.
        roster.live = to("b", 2);
        windows.on_roster(&roster);
        tokio::time::sleep(Duration::from_millis(DRAIN_MS - 1000)).await;
        roster.live = to("a", 3);
        windows.on_roster(&roster);
        roster.live = to("b", 4);
        windows.on_roster(&roster);
        tokio::time::sleep(Duration::from_millis(DRAIN_MS - 1)).await;
        assert!(!running.is_cancelled());
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(running.is_cancelled() && !upstream.gone.is_cancelled());
        assert!(!upstream.drained.lock().unwrap().is_cancelled(), "later calls have a limit of their own");
    }

    #[tokio::test]
    async fn another_run_of_an_agent_is_another_upstream() {
        let windows = Windows::new(Secret::new([1; KEY_LEN]), None, CancellationToken::new());
        let mut roster = roster();
        let first = windows.upstream(&window("a", WindowState::Live));
        let mut again = window("a", WindowState::Live);
        again.incarnation = 2;
        roster.windows.insert(again.id.clone(), Arc::new(again.clone()));
        windows.on_roster(&roster);
        assert!(first.gone.is_cancelled());
        let second = windows.upstream(&again);
        assert!(!second.gone.is_cancelled() && !Arc::ptr_eq(&first, &second));
    }
}
