//! The MCP server of the agent: stateless, in every revision, for the coordinator alone.
//!
//! Each call is complete in itself. [`gate`] decides whether it runs, [`handler`] runs it.

pub mod gate;
mod handler;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_proto::discovery::Token;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::gate::{Gate, Verdict};
use self::handler::Handler;
use crate::window::Window;

/// Largest body of a call; the same as at the edge.
pub const MAX_BODY_LEN: usize = 16 * 1024 * 1024;
/// Connections at once. The coordinator keeps one per call it runs here.
const MAX_CONNECTIONS: usize = 1_024;
/// Largest head of a request; the coordinator's are under 2 KiB.
const MAX_HEAD_LEN: usize = 64 * 1024;
/// A connection that has not brought a call with the right token by then is closed. (Not hyper's timeout for
/// heads: that one also closes connections which idle between two calls, and the coordinator keeps those.)
const FIRST_CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed accept: descriptors may have run out.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(50);

type Inner = StreamableHttpService<Handler, NeverSessionManager>;

/// Serves `window` on `listener` until `shutdown`; running calls are cancelled then.
pub async fn serve(
    listener: TcpListener,
    window: Arc<Window>,
    token: watch::Receiver<Token>,
    access: Access,
    shutdown: CancellationToken,
) {
    let Ok(address) = listener.local_addr() else { return };
    let gate = Arc::new(Gate::new(window.clone(), token, address.port(), access));
    let inner = service(window, &shutdown);
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = connections.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let (gate, inner, shutdown) = (gate.clone(), inner.clone(), shutdown.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = serve_connection(stream, gate, inner) => {}
                        () = shutdown.cancelled() => {}
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                warn!(%error, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_BACK_OFF).await;
            }
        }
    }
}

/// Who may call without saying for which term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The coordinator: every call names its term, or says that it is pinned to this window.
    Coordinator,
    /// Whoever has the token: for measurements without a coordinator.
    Standalone,
}

fn service(window: Arc<Window>, shutdown: &CancellationToken) -> Inner {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY_LEN)
        .with_cancellation_token(shutdown.clone())
        // The gate has checked Host and Origin.
        .disable_allowed_hosts();
    let handler = Handler::new(window);
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(NeverSessionManager::default()), config)
}

async fn serve_connection(stream: TcpStream, gate: Arc<Gate>, inner: Inner) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let is_trusted = Arc::new(AtomicBool::new(false));
    let trusted = is_trusted.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (gate, inner, trusted) = (gate.clone(), inner.clone(), trusted.clone());
        async move { Ok::<_, Infallible>(answer(&gate, inner, &trusted, request).await) }
    });
    let connection =
        http1::Builder::new().max_buf_size(MAX_HEAD_LEN).serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        () = tokio::time::sleep(FIRST_CALL_TIMEOUT) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None if is_trusted.load(Ordering::Relaxed) => connection.await,
        None => return,
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended early");
    }
}

type Answer = Response<http_body_util::combinators::BoxBody<Bytes, Infallible>>;

async fn answer(gate: &Gate, mut inner: Inner, trusted: &AtomicBool, request: Request<Incoming>) -> Answer {
    let (parts, body) = request.into_parts();
    if let Err(refused) = gate.check_head(&parts) {
        return refused;
    }
    trusted.store(true, Ordering::Relaxed);
    // The whole body first: between the check of the term and the call there is nothing left to wait for.
    let body = match gate::read_body(body, MAX_BODY_LEN).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    match gate.check_term(&parts.headers) {
        Verdict::Admitted => {}
        Verdict::Refused(refused) => return refused,
    }
    use tower::Service as _;
    match inner.call(Request::from_parts(parts, Full::new(body))).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
