//! The coordinator's port and socket: connections that lose no call, one guard in front of everything, and answers.
//!
//! Whoever answers gets whole requests of those who may ask, and nothing else: a body that is bounded in size and in
//! time, and whose share of the memory is free again when it is dropped. Every refusal of a kind is the same bytes,
//! and tells nobody whether a path exists. A connection that we end hears why in the place of an answer, so that its
//! client knows that nothing was run.
//!
//! The accept loop is Baton's own because `axum::serve` has neither a time limit for a request's head nor
//! TCP_NODELAY, and bounds nothing.
//!
//! | module | what it does |
//! |---|---|
//! | `accept` | the accept loop: how a connection is served, and how both end |
//! | [`connection`] | the open connections: how many, what each is doing, which give way, fair shares, what one runs over |
//! | `linger` | reading out the last of a connection |
//! | [`guard`] | who may ask |
//! | [`passes`] | who may see the page |
//! | [`body`] | a bounded request in, one of a few kinds of answer out |
//! | [`respond`] | answers, and the only place where an error becomes a status |
//! | [`successor`] | what still comes to a coordinator that was replaced is passed on |
//! | [`sender`] | the other direction: one connection to a window |

mod accept;
pub mod body;
pub mod connection;
pub mod guard;
mod linger;
pub mod passes;
pub mod respond;
pub mod sender;
pub mod successor;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_election::roster::Roster;
use baton_link::net::{TcpListener, UnixListener};
use baton_proto::discovery::Secret;
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use accept::Listener;
use body::{Body, Budget};
use connection::{Connection, Connections};
use guard::Way;
use guard::{Guard, Holder, Refusal, Route, TokenNews};
use passes::Passes;

/// How long calls in flight may go on after the end began.
pub const END_GRACE: Duration = Duration::from_secs(2);

/// Largest request body of `/mcp`.
pub const MCP_BODY_MAX: usize = 16 * 1024 * 1024;
/// Largest request body of `/v1`: registrations and settings are small.
const CONTROL_BODY_MAX: usize = 1024 * 1024;

/// A whole request of somebody who may ask.
#[derive(Debug)]
pub struct Admitted {
    /// Which part is to answer.
    pub route: Route,
    /// How its connection came in.
    pub way: Way,
    /// Whose share of the connections it takes, when it is an MCP client's.
    pub holder: Holder,
    /// Its head.
    pub parts: Parts,
    /// Its body.
    pub body: Bytes,
}

/// What all listeners of a coordinator share.
pub struct Gate {
    guard: Guard,
    connections: Arc<Connections>,
    /// Of the bodies of all requests.
    budget: Budget,
    /// This coordinator is about to end: the next answer on each connection says so.
    is_leaving: AtomicBool,
    /// Another process goes on with the listeners.
    is_handed_on: AtomicBool,
}

impl Gate {
    /// One that nobody has come through; `news` is what its guard learns of the client token, `passes` who may
    /// see the page.
    pub fn new(
        secret: Secret,
        roster: watch::Receiver<Arc<Roster>>,
        news: mpsc::Sender<TokenNews>,
        passes: Passes,
    ) -> Arc<Self> {
        Arc::new(Self {
            guard: Guard::new(secret, roster, news, passes),
            connections: Connections::new(),
            budget: Budget::default(),
            is_leaving: AtomicBool::new(false),
            is_handed_on: AtomicBool::new(false),
        })
    }

    /// Says `Connection: close` with every answer from now on: who calls all the time is gone before the connections
    /// are, and loses no call.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// Another process goes on with the listeners: who connects is not ours any more.
    pub fn hand_on(&self) {
        self.is_handed_on.store(true, Ordering::Relaxed);
    }

    fn is_handed_on(&self) -> bool {
        self.is_handed_on.load(Ordering::Relaxed)
    }

    /// Lets one request in when it may.
    async fn admit(
        &self,
        connection: &Arc<Connection>,
        request: Request<Incoming>,
    ) -> Result<Admitted, Response<Body>> {
        let (way, stranger) = (connection.way, connection.stranger());
        let mut verdict = self.guard.check(&request, way, stranger);
        if verdict == Err(Refusal::Unauthorized) && self.guard.learn_epoch(&request).await {
            verdict = self.guard.check(&request, way, stranger);
        }
        let route = verdict.map_err(respond::refused)?;
        let holder = self.guard.holder(way);
        if route == Route::Mcp && !connection.is_counted(holder) {
            return Err(respond::crowded());
        }
        let (parts, incoming) = request.into_parts();
        let limit = if route == Route::Mcp { MCP_BODY_MAX } else { CONTROL_BODY_MAX };
        let body = body::collect(incoming, limit, &self.budget).await;
        let body = body.map_err(|error| respond::body_error(&error))?;
        Ok(Admitted { route, way, holder, parts, body })
    }
}

/// What a coordinator listens on.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Its port, on each loopback address.
    pub ports: Vec<TcpListener>,
    /// Its socket in the state folder.
    pub socket: Option<UnixListener>,
}

/// How serving ends.
#[derive(Clone, Debug)]
pub struct End {
    /// No more connections, and one more request at most on those there are.
    pub shutdown: CancellationToken,
    /// Whatever is still being answered has [`END_GRACE`] left.
    pub closing: CancellationToken,
}

/// Has `answer` answer on `listeners` until the end.
///
/// A request must name the port of the listener it came in on, so that several ports can be served at once by
/// calling this once for each (a change of the port), with one gate.
pub async fn serve<F>(
    listeners: Listeners,
    gate: Arc<Gate>,
    end: End,
    answer: impl Fn(Admitted) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let sweep = connection::sweep(&gate.connections);
    let ports = listeners.ports.into_iter().map(Listener::Port);
    let all = ports.chain(listeners.socket.map(Listener::Socket));
    let loops = all.map(|listener| accept::run(listener, &gate, &end, &answer));
    tokio::select! {
        _ = futures_util::future::join_all(loops) => {}
        () = sweep => {}
    }
}
