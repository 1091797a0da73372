//! The MCP server of the agent: stateless, in every revision, for the coordinator alone.
//!
//! Each call is complete in itself. [`gate`] decides whether it runs, [`handler`] runs it.

mod audit;
mod counted;
pub mod gate;
mod handler;
mod heavy;
pub mod lane;
pub mod listening;
mod profile;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_proto::discovery::Token;
use baton_proto::edge::PROFILE_PATH;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use self::counted::Counted;
use self::gate::{Gate, Verdict};
use self::handler::Handler;
use self::heavy::Heavy;
use self::listening::{Listener, Stream};
use baton_agent_tools::window::Window;

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

/// What runs calls.
#[derive(Clone)]
struct Inner {
    service: StreamableHttpService<Handler, NeverSessionManager>,
    heavy: Arc<Heavy>,
}

/// The MCP server of one window; cheap to clone.
#[derive(Clone)]
pub struct Server {
    window: Arc<Window>,
    token: watch::Receiver<Token>,
    access: Access,
    inner: Inner,
    connections: Arc<Semaphore>,
    shutdown: CancellationToken,
    /// Counts those who serve: the end of the last one is the end of the server.
    serving: TaskTracker,
    /// Where calls run.
    runtime: Handle,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("window", &self.window.id).finish_non_exhaustive()
    }
}

impl Server {
    /// A server whose calls run on the runtime that this is called in, until `shutdown`; they are cancelled then.
    pub fn new(
        window: Arc<Window>,
        token: watch::Receiver<Token>,
        access: Access,
        shutdown: CancellationToken,
    ) -> Self {
        let inner = service(window.clone(), &shutdown);
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let (serving, runtime) = (TaskTracker::new(), Handle::current());
        Self { window, token, access, inner, connections, shutdown, serving, runtime }
    }

    /// Waits until every answer has left.
    pub async fn ended(&self) {
        self.serving.close();
        self.serving.wait().await;
    }

    /// Serves on `listener` until the end.
    async fn serve(self, mut listener: Listener) {
        let _serving = self.serving.token();
        let gate = Gate::new(self.window.clone(), self.token.clone(), listener.authorities(), self.access);
        let gate = Arc::new(gate);
        loop {
            let permit = tokio::select! {
                permit = self.connections.clone().acquire_owned() => permit,
                () = self.shutdown.cancelled() => return,
            };
            let Ok(permit) = permit else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.shutdown.cancelled() => return,
            };
            match accepted {
                Ok(stream) => {
                    let (gate, inner, shutdown) = (gate.clone(), self.inner.clone(), self.shutdown.clone());
                    self.serving.spawn(async move {
                        serve_connection(stream, gate, inner, shutdown).await;
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
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Inner { service, heavy: Arc::new(Heavy::new()) }
}

async fn serve_connection(stream: Stream, gate: Arc<Gate>, inner: Inner, shutdown: CancellationToken) {
    let is_trusted = Arc::new(AtomicBool::new(false));
    let trusted = is_trusted.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (gate, inner, trusted) = (gate.clone(), inner.clone(), trusted.clone());
        async move { Ok::<_, Infallible>(answer(&gate, inner, &trusted, request).await) }
    });
    let connection =
        http1::Builder::new().max_buf_size(MAX_HEAD_LEN).serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let first_call = async {
        tokio::time::sleep(FIRST_CALL_TIMEOUT).await;
        if is_trusted.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    };
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = first_call => return,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended early");
    }
}

type Answer = Response<Counted>;

async fn answer(gate: &Gate, inner: Inner, trusted: &AtomicBool, request: Request<Incoming>) -> Answer {
    let uncounted = |refused: gate::Refusal| refused.map(|body| Counted::new(body, None));
    let (parts, body) = request.into_parts();
    if parts.method == Method::GET && parts.uri.path() == PROFILE_PATH {
        return uncounted(match gate.check_caller(&parts) {
            Err(refused) => refused,
            Ok(()) => {
                trusted.store(true, Ordering::Relaxed);
                profile::answer(parts.uri.query()).await
            }
        });
    }
    if let Err(refused) = gate.check_head(&parts) {
        return uncounted(refused);
    }
    trusted.store(true, Ordering::Relaxed);
    // The whole body first: between the check of the term and the call there is nothing left to wait for.
    let (body, share) = match inner.heavy.read(body).await {
        Ok(weighed) => weighed.into_parts(),
        Err(refused) => return uncounted(refused),
    };
    let running = match gate.check_term(&parts.headers) {
        Verdict::Admitted(running) => running,
        Verdict::Refused(refused) => return uncounted(refused),
    };
    let Inner { mut service, heavy } = inner;
    let request = Request::from_parts(parts, Full::new(body));
    let call = async move {
        use tower::Service as _;
        service.call(request).await
    };
    match heavy.run(share, call).await {
        Ok(response) => response.map(|body| Counted::new(body, Some(running))),
        Err(never) => match never {},
    }
}
