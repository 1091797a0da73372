//! The MCP edge: what is answered here, what is passed on to a window.
//!
//! | module | what belongs there |
//! |---|---|
//! | `envelope`, `endpoint`, `revision`, `route`, `session` | cores: bytes and headers in, decisions out |
//! | `post` | one message of a client |
//! | `call` | one tool call: held, routed, forwarded |
//! | `forward`, `sender`, `answer`, `detach`, `cancel` | a call at a window |
//! | `streams` | notices to clients |
//! | `catalogue`, `windows_tools` | tools that need no window |
//! | `stdio` | the bridge for clients that run a command |
//!
//! **Invariant:** no window is needed to answer anything but a tool call, and no window ever sends a request to a
//! client.

mod answer;
mod call;
mod cancel;
mod catalogue;
mod detach;
mod endpoint;
mod envelope;
mod forward;
mod post;
pub(crate) mod revision;
mod route;
mod sender;
mod session;
pub mod stdio;
mod streams;
mod windows_tools;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_proto::discovery::Secret;
use baton_proto::ids::WindowId;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode, header};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::http::body::Body;
use crate::http::respond::{self, RpcError, code};
use crate::roster::Roster;
use cancel::Cancellations;
use catalogue::Catalogue;
use endpoint::Endpoint;
use forward::Windows;
use revision::{Era, Revision, STATELESS};
use session::{Sealer, Session};
use streams::Streams;

pub use windows_tools::{HandoverRequest, Handovers};

/// Header with the id of a session.
const SESSION_ID: &str = "mcp-session-id";
/// Header with the revision of a message.
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Ended sessions that are remembered; an older one's id opens again, which harms nobody but its own client.
const ENDED_MAX: usize = 4096;

/// The edge; cheap to clone.
#[derive(Clone)]
pub struct Edge(Arc<Shared>);

/// What all requests share.
struct Shared {
    roster: watch::Receiver<Arc<Roster>>,
    handovers: Handovers,
    sealer: Sealer,
    windows: Windows,
    streams: Arc<Streams>,
    cancellations: Arc<Cancellations>,
    catalogue: Catalogue,
    /// When this coordinator began to serve.
    started: Instant,
    /// Sessions that their clients ended, oldest first.
    ended: Mutex<VecDeque<[u8; 16]>>,
}

impl Edge {
    /// An edge in front of the windows of `roster`, on the runtime it is called in. Its streams end with
    /// `closing`.
    pub fn new(
        secret: &Secret,
        roster: watch::Receiver<Arc<Roster>>,
        handovers: Handovers,
        closing: CancellationToken,
    ) -> Self {
        let shared = Arc::new(Shared {
            roster: roster.clone(),
            handovers,
            sealer: Sealer::new(secret.seal_key()),
            windows: Windows::new(secret.clone()),
            streams: Streams::new(closing),
            cancellations: Arc::default(),
            catalogue: Catalogue::built_in(),
            started: Instant::now(),
            ended: Mutex::default(),
        });
        tokio::spawn(follow(Arc::downgrade(&shared), roster));
        Self(shared)
    }

    /// Answers one request of an authenticated client.
    pub(crate) async fn handle(&self, parts: Parts, body: Bytes) -> Response<Body> {
        let Some(endpoint) = Endpoint::from_request(&parts.uri, &parts.headers) else {
            return respond::plain(
                StatusCode::NOT_FOUND,
                "not found: MCP is at /mcp and /mcp/windows/WINDOW\n",
            );
        };
        match parts.method {
            Method::POST => post::answer(self, &endpoint, &parts.headers, body).await,
            Method::GET => self.get(&parts.headers),
            Method::DELETE => self.delete(&parts.headers),
            _ => not_allowed(),
        }
    }

    /// Opens the stream of a session.
    fn get(&self, headers: &HeaderMap) -> Response<Body> {
        match self.session_of(headers) {
            Some(Ok(session)) if !is_stateless(headers) => {
                respond::events(Body::stream(self.0.streams.get(session.number)))
            }
            Some(Err(error)) if !is_stateless(headers) => {
                respond::rpc_error(Era::Sessions(Revision::ASSUMED), None, &error)
            }
            _ => not_allowed(),
        }
    }

    /// Ends a session.
    fn delete(&self, headers: &HeaderMap) -> Response<Body> {
        match self.session_of(headers) {
            Some(Ok(session)) if !is_stateless(headers) => {
                self.0.streams.end(session.number);
                let mut ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner);
                if ended.len() == ENDED_MAX {
                    ended.pop_front();
                }
                ended.push_back(session.number);
                respond::empty(StatusCode::NO_CONTENT)
            }
            Some(Err(error)) if !is_stateless(headers) => {
                respond::rpc_error(Era::Sessions(Revision::ASSUMED), None, &error)
            }
            _ => not_allowed(),
        }
    }

    /// The session that a request names.
    fn session_of(&self, headers: &HeaderMap) -> Option<Result<Session, RpcError>> {
        let mut ids = headers.get_all(SESSION_ID).iter();
        let id = ids.next()?;
        let session = self.0.sealer.open(id.as_bytes()).filter(|session| {
            ids.next().is_none()
                && session.epoch == self.0.roster.borrow().client_epoch
                && !self.is_ended(session.number)
        });
        Some(session.ok_or_else(|| {
            RpcError::new(code::UNKNOWN_SESSION, "unknown session: send initialize to open a new one")
        }))
    }

    fn is_ended(&self, number: [u8; 16]) -> bool {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
    }

    pub(crate) fn roster(&self) -> Arc<Roster> {
        self.0.roster.borrow().clone()
    }

    /// Asks the keeper to make `window` live.
    async fn hand_over(&self, window: &WindowId, ask_for: Option<String>) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        let request = HandoverRequest { window: window.clone(), ask_for, reply };
        let ending = || "the coordinator is ending".to_owned();
        self.0.handovers.send(request).await.map_err(|_| ending())?;
        answer.await.map_err(|_| ending())?
    }

    /// Waits for `window` to be live.
    async fn is_live_within(&self, window: &WindowId, limit: Duration) -> bool {
        let mut roster = self.0.roster.clone();
        let is_live = |roster: &Arc<Roster>| roster.live_window().is_some_and(|(live, _)| live.id == *window);
        tokio::time::timeout(limit, roster.wait_for(is_live)).await.is_ok_and(|found| found.is_ok())
    }
}

/// Follows the roster for as long as there is one: ends what belongs to windows that are gone, and tells clients
/// of handovers.
async fn follow(shared: std::sync::Weak<Shared>, mut roster: watch::Receiver<Arc<Roster>>) {
    let mut live: Option<WindowId> = None;
    let mut toolsets: Option<Vec<String>> = None;
    loop {
        let current = roster.borrow_and_update().clone();
        let Some(shared) = shared.upgrade() else { return };
        shared.windows.on_roster(&current);
        let now_live = current.live_window().map(|(window, _)| window.id.clone());
        let is_handover = now_live.is_some() && now_live != live;
        let is_new_offer = toolsets.as_ref().is_some_and(|before| *before != current.settings.toolsets);
        if is_handover || is_new_offer {
            shared.streams.announce();
        }
        live = now_live.or(live);
        toolsets = Some(current.settings.toolsets.clone());
        drop(shared);
        if roster.changed().await.is_err() {
            return;
        }
    }
}

fn is_stateless(headers: &HeaderMap) -> bool {
    headers.get(PROTOCOL_VERSION).is_some_and(|version| version == STATELESS)
}

fn not_allowed() -> Response<Body> {
    let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
    response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST, GET, DELETE"));
    response
}
