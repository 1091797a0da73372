//! The MCP edge: what is answered here, and what is passed on to a window.
//!
//! It is given whole requests of clients that may ask, and the roster of the windows; it needs no more of the
//! coordinator, and owns nothing whose loss a client would notice but by one more sentence. A tool call is held while the place of the live window
//! is, routed, and passed on unchanged; its answer is the window's own bytes. A call is sent a second time only when it
//! provably did not run, and one whose end nobody knows is answered with just that.
//!
//! **Invariant:** no window is needed to answer anything but a tool call, and no window ever sends a request to a
//! client.
//!
//! | module | what it does |
//! |---|---|
//! | `endpoint`, `route` | CORE: what a URL asks for, and which window a call belongs to |
//! | `heard` | CORE: which window each client heard of last |
//! | `post`, `caller` | one message of a client, and who sent it |
//! | `long` | long messages, looked through on a thread of their own |
//! | `call` | one tool call: held, routed, forwarded |
//! | `upstream` | connections to the windows' agents |
//! | `forward`, `exchange`, `answer`, `detach`, `cancel` | a call at a window |
//! | `streams` | notices to clients |
//! | `seen` | what whoever watches calls hears of each |
//! | `catalogue`, `windows_tools` | tools that need no window |
//! | `profile` | where a window's agent spends its time |
//! | `raw` | the last events that went to clients, for who asks |
//! | `record` | the record of calls that a user asks for |

mod answer;
mod call;
mod caller;
mod cancel;
mod catalogue;
mod detach;
mod endpoint;
mod exchange;
mod forward;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod heard;
mod long;
mod post;
mod profile;
mod raw;
mod record;
mod route;
mod seen;
mod streams;
mod upstream;
mod windows_tools;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use baton_election::roster::Roster;
use baton_http::body::Body;
use baton_http::guard::Holder;
use baton_http::respond;
use baton_http::successor::Successor;
use baton_link::explain::Explanation;
use baton_link::home::{Home, random_hex};
use baton_link::plant::{self, Plant};
use baton_mcp::fault::{RpcError, code};
use baton_mcp::header::{PROTOCOL_VERSION, SESSION_ID};
use baton_mcp::revision::{Era, Revision, STATELESS};
use baton_mcp::session::{Sealer, Session};
use baton_proto::control::{Profile, RawLook, RawWish, RecordWish, Recorded, Recording};
use baton_proto::discovery::{KEY_LEN, Role, Secret};
use baton_proto::ids::WindowId;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode, header};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use cancel::Cancellations;
use catalogue::Catalogue;
use endpoint::Endpoint;
pub use profile::ProfileError;
use raw::Raw;
use record::{Recorder, Tape};
pub use seen::{End, Named, Observer};
use streams::Streams;
use upstream::Windows;
pub use windows_tools::{HandoverRequest, Handovers};

/// Ended sessions that are remembered; an older one's id opens again, which harms nobody but its own client.
const ENDED_MAX: usize = 4096;
/// Of the id of a coordinator, what tells it from those before it in the logs.
const INSTANCE_DIGITS: usize = 8;

/// The edge; cheap to clone.
#[derive(Clone)]
pub struct Edge(Arc<Shared>);

/// Extension of an answer: the call did not run, and belongs to the successor.
#[derive(Clone, Copy, Debug)]
struct Unrun;

/// How calls end when the coordinator does, and there is no successor.
#[derive(Debug, Default)]
struct Ending {
    /// None is held any longer.
    begun: CancellationToken,
    /// Those that still run at a window are answered without it.
    cut: CancellationToken,
}

/// What all requests share.
struct Shared {
    roster: watch::Receiver<Arc<Roster>>,
    handovers: Handovers,
    sealer: Sealer,
    windows: Windows,
    streams: Arc<Streams>,
    cancellations: Arc<Cancellations>,
    catalogue: Catalogue,
    /// Who answers once this coordinator was replaced.
    successor: Successor,
    /// When this coordinator began to serve.
    started: Instant,
    ending: Ending,
    /// Sessions that their clients ended, oldest first.
    ended: Mutex<VecDeque<[u8; 16]>>,
    /// Which window each client heard of last.
    heard: Mutex<heard::Memory>,
    observer: Arc<dyn Observer>,
    recorder: Arc<Recorder>,
    raw: Arc<Raw>,
    /// Calls that have come.
    n_calls: AtomicU64,
}

impl Edge {
    /// An edge in front of the windows of `roster`, whose sockets lie in `home`, on the runtime it is called in. Its
    /// streams end with `closing`; `observer` hears of its calls.
    pub fn new(
        (secret, home): (&Secret, Option<Home>),
        roster: watch::Receiver<Arc<Roster>>,
        handovers: Handovers,
        closing: CancellationToken,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let ending = Ending::default();
        let shared = Arc::new(Shared {
            roster: roster.clone(),
            handovers,
            sealer: Sealer::new(seal_key(secret)),
            recorder: Recorder::new(home.clone()),
            raw: Arc::default(),
            windows: Windows::new(secret.clone(), home, ending.cut.clone()),
            streams: Streams::new(closing),
            cancellations: Arc::default(),
            catalogue: Catalogue::built_in(),
            successor: Successor::none(secret.clone()),
            started: Instant::now(),
            ending,
            ended: Mutex::default(),
            heard: Mutex::default(),
            observer,
            n_calls: AtomicU64::new(0),
        });
        tokio::spawn(follow(Arc::downgrade(&shared), roster));
        Self(shared)
    }

    /// The coordinator ends: what is held is answered now, and what runs at a window within `grace`.
    pub fn end(&self, grace: Duration) {
        self.0.ending.begun.cancel();
        let cut = self.0.ending.cut.clone();
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            cut.cancel();
        });
    }

    /// Answers one request of an authenticated client, whose streams count among those of `holder`.
    pub async fn handle(&self, holder: Holder, parts: Parts, body: Bytes) -> Response<Body> {
        // What lasts may still be there when they are wanted.
        if !self.0.raw.is_on() && !is_stream(&parts) {
            return self.answer(holder, parts, body).await;
        }
        let client = self.name_in(&parts.headers);
        self.0.raw.keep(client, self.answer(holder, parts, body).await)
    }

    /// What a client calls itself, as far as the head of its request says it.
    fn name_in(&self, headers: &HeaderMap) -> String {
        let session = self.session_of(headers).and_then(Result::ok).map(|session| session.client);
        let agent = || Some(headers.get(header::USER_AGENT)?.to_str().ok()?.chars().take(64).collect());
        session.filter(|client| !client.is_empty()).or_else(agent).unwrap_or_default()
    }

    async fn answer(&self, holder: Holder, parts: Parts, body: Bytes) -> Response<Body> {
        let Some(endpoint) = Endpoint::from_request(&parts.uri, &parts.headers) else {
            return respond::plain(
                StatusCode::NOT_FOUND,
                "not found: MCP is at /mcp and /mcp/windows/WINDOW\n",
            );
        };
        match parts.method {
            // Streams end here; the client opens them again with the successor.
            _ if self.successor().is_appointed() && !is_stream(&parts) => self.pass(parts, body).await,
            Method::POST => {
                let response = post::answer(self, &endpoint, holder, &parts.headers, body.clone()).await;
                match response.extensions().get() {
                    Some(Unrun) => self.pass(parts, body).await,
                    None => response,
                }
            }
            Method::GET => self.get(holder, &parts.headers),
            Method::DELETE => self.delete(&parts.headers),
            _ => not_allowed(),
        }
    }

    /// Who hears of a call: the observer, and the record if there is one.
    fn watches(&self, request: &Bytes) -> (&Arc<dyn Observer>, Option<Box<Tape>>) {
        (&self.0.observer, self.0.recorder.tape(request))
    }

    /// What the next call is called in the logs, of this coordinator and of the window.
    fn next_call_id(&self) -> String {
        let number = self.0.n_calls.fetch_add(1, Ordering::Relaxed) + 1;
        let instance =
            self.0.roster.borrow().instance.0.get(..INSTANCE_DIGITS).unwrap_or_default().to_owned();
        format!("{instance}-{number}")
    }

    /// Where the agent of a window spends its time, from now on for so many seconds.
    pub async fn profile(&self, window: &WindowId, seconds: u64) -> Result<Profile, ProfileError> {
        let window = self.0.roster.borrow().windows.get(window).cloned();
        let window = window.ok_or_else(|| ProfileError::Unreachable("it is gone".to_owned()))?;
        profile::ask(&self.0.windows, &window, seconds).await
    }

    /// Starts a record of calls, or ends the one that runs.
    pub async fn record(&self, wish: RecordWish) -> Result<Recorded, Explanation> {
        match wish.start {
            Some(name) => self.0.recorder.start(name, self.roster()).await,
            None => self.0.recorder.stop().await,
        }
    }

    /// The record of calls that runs, or ended by itself.
    pub fn recording(&self) -> Recording {
        Recording { record: self.0.recorder.recorded() }
    }

    /// The last events that went to clients, if they are kept; switches that.
    pub fn raw(&self, wish: &RawWish) -> RawLook {
        self.0.raw.look(wish)
    }

    /// Who answers once this coordinator was replaced.
    pub fn successor(&self) -> &Successor {
        &self.0.successor
    }

    /// Has the successor answer.
    async fn pass(&self, parts: Parts, body: Bytes) -> Response<Body> {
        let role = Role::Client { epoch: self.0.roster.borrow().client_epoch };
        let is_stateless = is_stateless(&parts.headers);
        match self.successor().pass(role, parts, body.clone()).await {
            Ok(response) => response,
            Err(why) => {
                let era = if is_stateless { Era::Stateless } else { Era::Sessions(Revision::ASSUMED) };
                post::not_passed(era, &body, why)
            }
        }
    }

    /// Opens the stream of a session.
    fn get(&self, holder: Holder, headers: &HeaderMap) -> Response<Body> {
        match self.session_of(headers) {
            Some(Ok(session)) if !is_stateless(headers) => {
                respond::events(Body::stream(self.0.streams.get(holder, session.number)))
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
                let mut ended = self.0.ended.lock();
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
            RpcError::new(code::UNKNOWN_SESSION, "unknown session; send initialize to open a new one")
        }))
    }

    fn is_ended(&self, number: [u8; 16]) -> bool {
        self.0.ended.lock().contains(&number)
    }

    pub(crate) fn roster(&self) -> Arc<Roster> {
        self.0.roster.borrow().clone()
    }

    /// Waits until what is known is enough, but no longer than windows take to register again after a restart.
    async fn settle(&self, within: Duration, is_enough: impl FnMut(&Arc<Roster>) -> bool) {
        let mut roster = self.0.roster.clone();
        // However the wait ends, what is known by then counts.
        let _ = timeout_at(self.0.started + within, roster.wait_for(is_enough)).await;
    }

    /// Asks the keeper to make `window` live.
    async fn hand_over(&self, window: &WindowId, ask_for: Option<String>) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        let request = HandoverRequest { window: window.clone(), ask_for, reply };
        let ending = || "the coordinator is shutting down".to_owned();
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

/// The key of all coordinators of a state folder, so that sessions outlive each.
fn seal_key(secret: &Secret) -> [u8; KEY_LEN] {
    match plant::has(Plant::SessionsEnd) {
        true => random_hex().ok().and_then(|hex| hex.into_bytes().try_into().ok()).unwrap_or_default(),
        false => secret.seal_key(),
    }
}

/// Follows the roster for as long as there is one: ends what belongs to windows and tokens that are gone, and tells
/// clients of handovers.
async fn follow(edge: Weak<Shared>, mut roster: watch::Receiver<Arc<Roster>>) {
    let mut live: Option<WindowId> = None;
    let mut offer: Option<(Vec<String>, bool)> = None;
    loop {
        let current = roster.borrow_and_update().clone();
        let Some(shared) = edge.upgrade() else { return };
        if shared.successor.is_appointed() {
            // The windows are the successor's, and what is said of them here is no longer true.
            return;
        }
        shared.windows.on_roster(&current);
        shared.recorder.roster(&current);
        shared.streams.end_earlier(current.client_epoch);
        let now_live = current.live_window().map(|(window, _)| window.id.clone());
        let is_handover = now_live.is_some() && now_live != live;
        let now_offered = (current.settings.toolsets.clone(), current.settings.debug_enabled);
        let is_new_offer = offer.as_ref().is_some_and(|before| *before != now_offered);
        if is_handover || is_new_offer {
            shared.streams.announce();
        }
        live = now_live.or(live);
        offer = Some(now_offered);
        drop(shared);
        if !is_changed(&edge, &mut roster).await {
            return;
        }
    }
}

/// Waits for another roster, and closes what idles meanwhile; false when there will be none.
async fn is_changed(edge: &Weak<Shared>, roster: &mut watch::Receiver<Arc<Roster>>) -> bool {
    loop {
        tokio::select! {
            changed = roster.changed() => return changed.is_ok(),
            () = tokio::time::sleep(upstream::IDLE_MAX) => match edge.upgrade() {
                Some(edge) => edge.windows.close_idle(),
                None => return false,
            },
        }
    }
}

/// Whether the answer lasts as long as the client listens.
fn is_stream(parts: &Parts) -> bool {
    let method = parts.headers.get("mcp-method");
    parts.method == Method::GET || method.is_some_and(|method| method == "subscriptions/listen")
}

fn is_stateless(headers: &HeaderMap) -> bool {
    headers.get(PROTOCOL_VERSION).is_some_and(|version| version == STATELESS)
}

fn not_allowed() -> Response<Body> {
    let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
    response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST, GET, DELETE"));
    response
}
