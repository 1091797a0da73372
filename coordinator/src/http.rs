//! The coordinator's port: an accept loop, one guard in front of everything, and who answers which path.
//!
//! `/mcp*` goes to the edge, `/v1/*` to the control router, everything else is a plain 404.
//! The loop is Baton's own because `axum::serve` has neither a time limit for a request's head nor
//! TCP_NODELAY, and bounds nothing.

pub(crate) mod accept;
pub(crate) mod body;
pub(crate) mod guard;
pub(crate) mod respond;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use baton_proto::discovery::Secret;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::mcp::Edge;
use crate::roster::Roster;
use accept::{Connection, Connections};
use body::Body;
use guard::{Guard, Route};

/// Largest request body of `/mcp`.
const MCP_BODY_MAX: usize = 16 * 1024 * 1024;
/// Largest request body of `/v1`: registrations and settings are small.
const CONTROL_BODY_MAX: usize = 1024 * 1024;
/// How long calls in flight may go on after the shutdown began.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// What answers on the coordinator's port.
pub struct App {
    edge: Edge,
    control: axum::Router,
    guard: Guard,
    connections: Arc<Connections>,
}

/// The port on which a request came in; an extension of every request that reaches the control router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalPort(pub u16);

impl App {
    /// Puts the parts behind one guard.
    pub fn new(
        secret: Secret,
        roster: watch::Receiver<Arc<Roster>>,
        edge: Edge,
        control: axum::Router,
    ) -> Arc<Self> {
        let guard = Guard::new(secret, roster);
        Arc::new(Self { edge, control, guard, connections: Connections::new() })
    }
}

/// Answers on `listeners` until `shutdown`; calls in flight go on until `closing`, and then for a moment.
///
/// A request must name the port of the listener it came in on, so that several ports can be served at once by
/// calling this once for each (a change of the port), with one `App`.
pub async fn serve(
    listeners: Vec<TcpListener>,
    app: Arc<App>,
    shutdown: CancellationToken,
    closing: CancellationToken,
) {
    let sweep = accept::sweep(&app.connections);
    let end = accept::End { shutdown, closing, grace: SHUTDOWN_GRACE };
    let loops = listeners.into_iter().map(|listener| accept::run(listener, &app, &end));
    tokio::select! {
        _ = futures_util::future::join_all(loops) => {}
        () = sweep => {}
    }
}

/// Answers one request.
async fn answer(
    app: &App,
    connection: &Connection,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let route = match app.guard.check(&request, connection.local_port) {
        Ok(route) => route,
        Err(refusal) => return Ok(respond::refused(refusal)),
    };
    let (mut parts, incoming) = request.into_parts();
    let limit = if route == Route::Mcp { MCP_BODY_MAX } else { CONTROL_BODY_MAX };
    let bytes = match body::collect(incoming, limit).await {
        Ok(bytes) => bytes,
        Err(error) => return Ok(respond::body_error(&error)),
    };
    Ok(match route {
        Route::Mcp => app.edge.handle(parts, bytes).await,
        Route::Control => {
            parts.extensions.insert(LocalPort(connection.local_port));
            let request = Request::from_parts(parts, axum::body::Body::new(Full::new(bytes)));
            let Ok(response) = app.control.clone().oneshot(request).await;
            response.map(Body::control)
        }
        Route::Unknown if parts.method == Method::OPTIONS => {
            respond::plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n")
        }
        Route::Unknown => respond::plain(StatusCode::NOT_FOUND, "not found\n"),
    })
}
