//! Connections: who is let in, how many there are, for how long, and how they end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_bridge::pool::Pool;
use baton_http::body::Budget;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::identity::Identities;
use crate::networks::Networks;
use crate::{Options, pass};

/// Connections at once: half of what the coordinator has for those who come on its socket.
const CONNECTIONS_MAX: usize = 256;
/// Of one address.
const ADDRESS_MAX: usize = 64;
/// How long the greeting of TLS may take.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the head of a request may take, from the end of the answer before it: a client that wants to say nothing for
/// longer connects again.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest head of a request.
const HEAD_MAX: usize = 16 * 1024;
/// How long answers may go on after the end began.
const END_GRACE: Duration = Duration::from_secs(2);
/// Pause after a failed accept.
const BACK_OFF: Duration = Duration::from_millis(200);

/// What all connections share.
struct Shared {
    pool: Arc<Pool>,
    budget: Budget,
    identities: Arc<Identities>,
    networks: Networks,
    open: Mutex<HashMap<IpAddr, usize>>,
    ending: CancellationToken,
}

/// Accepts until `ending`, and waits a little for what is being answered.
pub(crate) async fn run(
    listener: TcpListener,
    identities: Arc<Identities>,
    options: Options,
    ending: impl Future<Output = ()>,
) {
    let shared = Arc::new(Shared {
        pool: Arc::new(Pool::new(options.find)),
        budget: Budget::default(),
        identities: identities.clone(),
        networks: options.networks,
        open: Mutex::default(),
        ending: CancellationToken::new(),
    });
    let connections = TaskTracker::new();
    tokio::select! {
        () = accept(&listener, &shared, &connections) => {}
        () = identities.keep_up() => {}
        () = ending => {}
    }
    drop(listener);
    shared.ending.cancel();
    connections.close();
    if timeout(END_GRACE, connections.wait()).await.is_err() {
        tracing::info!("connections were closed while they were answered");
    }
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>, connections: &TaskTracker) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Some(seat) = Seat::take(shared, peer.ip().to_canonical()) {
                    connections.spawn(drive(stream, seat));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(BACK_OFF).await;
            }
        }
    }
}

/// The place of one connection, given back when it ends.
struct Seat {
    shared: Arc<Shared>,
    address: IpAddr,
}

impl Seat {
    /// A place for who comes from there; none when they may not come, or too many are there. Who hears nothing at all
    /// learns nothing.
    fn take(shared: &Arc<Shared>, address: IpAddr) -> Option<Self> {
        if !shared.networks.contains(address) {
            tracing::info!(%address, "refused: this address is in no network of --allow");
            return None;
        }
        let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = open.get(&address).copied().unwrap_or_default();
        if of_address >= ADDRESS_MAX || open.values().sum::<usize>() >= CONNECTIONS_MAX {
            tracing::warn!(%address, "refused: too many connections");
            return None;
        }
        open.insert(address, of_address + 1);
        Some(Self { shared: shared.clone(), address })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        let left = open.get(&self.address).map_or(0, |n| n - 1);
        if left == 0 {
            open.remove(&self.address);
        } else {
            open.insert(self.address, left);
        }
    }
}

/// Serves one connection to its end.
async fn drive(stream: TcpStream, seat: Seat) {
    let (shared, address) = (&seat.shared, seat.address);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let identity = shared.identities.current();
    let greeted = TlsAcceptor::from(identity.config.clone()).accept(stream);
    let stream = tokio::select! {
        greeted = timeout(GREETING_TIMEOUT, greeted) => match greeted {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%address, %error, "no TLS"),
            Err(_) => return tracing::debug!(%address, "no TLS in time"),
        },
        () = shared.ending.cancelled() => return,
    };
    let service = service_fn(|request| {
        let identity = &identity;
        async move { Ok::<_, Infallible>(pass::answer((&shared.pool, &shared.budget), identity, request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = shared.ending.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%address, %error, "connection");
    }
}
