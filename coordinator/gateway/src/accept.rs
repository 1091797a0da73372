//! Connections: who is let in and whose they are, how many there are, for how long, and how they end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use baton_bridge::pool::Pool;
use baton_http::body::Budget;
use baton_link::peer::{is_trusted_user, peer_uid};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::identity::Identities;
use crate::networks::Networks;
use crate::refusals::{Refusals, Why};
use crate::{Options, pass};

/// Connections at once: half of what the coordinator has for those who come on its socket.
const CONNECTIONS_MAX: usize = 256;
/// Of one address; other users of this machine have a share each, so that none takes the places of ours.
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
    open: Mutex<HashMap<From, usize>>,
    refusals: Mutex<Refusals>,
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
        refusals: Mutex::default(),
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
                if let Some(seat) = Seat::take(shared, &stream, peer) {
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

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct From {
    address: IpAddr,
    /// The other user of this machine whose it is. What comes from elsewhere is nobody's that we know of.
    stranger: Option<u32>,
}

impl From {
    /// Fails when it is closed already, and the kernel does not know any more whose it was.
    fn of(stream: &TcpStream, peer: SocketAddr) -> io::Result<Self> {
        let address = peer.ip().to_canonical();
        let uid = if is_of_this_machine(peer) { peer_uid(stream)? } else { None };
        Ok(Self { address, stranger: uid.filter(|uid| !is_trusted_user(*uid)) })
    }
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stranger {
            Some(uid) => write!(f, "{}, user {uid} of this machine", self.address),
            None => self.address.fmt(f),
        }
    }
}

/// Whether that address is one of our own, by which alone it cannot be told from others: the system lets us use it.
fn is_of_this_machine(peer: SocketAddr) -> bool {
    let mut own = peer;
    own.set_ip(peer.ip().to_canonical());
    own.set_port(0);
    own.ip().is_loopback() || UdpSocket::bind(own).is_ok()
}

/// The place of one connection, given back when it ends.
struct Seat {
    shared: Arc<Shared>,
    from: From,
}

impl Seat {
    /// A place for who comes from there; none when they may not come, or too many are there. Who hears nothing at all
    /// learns nothing.
    fn take(shared: &Arc<Shared>, stream: &TcpStream, peer: SocketAddr) -> Option<Self> {
        let address = peer.ip().to_canonical();
        if !shared.networks.contains(address) {
            shared.refuse(Why::NotAllowed, &address);
            return None;
        }
        let from = From::of(stream, peer).ok()?;
        let mut open = shared.open.lock();
        let of_same = open.get(&from).copied().unwrap_or_default();
        if of_same >= ADDRESS_MAX || open.values().sum::<usize>() >= CONNECTIONS_MAX {
            drop(open);
            shared.refuse(Why::TooMany, &from);
            return None;
        }
        open.insert(from, of_same + 1);
        Some(Self { shared: shared.clone(), from })
    }
}

impl Shared {
    /// Tells the log of one that is not let in, now and then.
    fn refuse(&self, why: Why, from: &impl fmt::Display) {
        let mut refusals = self.refusals.lock();
        if let Some(n_untold) = refusals.note(why, Instant::now()) {
            tracing::warn!(%from, n_untold, "refused a connection: {why}");
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.shared.open.lock();
        let left = open.get(&self.from).map_or(0, |n| n - 1);
        if left == 0 {
            open.remove(&self.from);
        } else {
            open.insert(self.from, left);
        }
    }
}

/// Serves one connection to its end.
async fn drive(stream: TcpStream, seat: Seat) {
    let (shared, from) = (&seat.shared, seat.from);
    if from.stranger.is_some() {
        shared.refuse(Why::Stranger, &from);
    }
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let identity = shared.identities.current();
    let greeted = TlsAcceptor::from(identity.config.clone()).accept(stream);
    let stream = tokio::select! {
        greeted = timeout(GREETING_TIMEOUT, greeted) => match greeted {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%from, %error, "no TLS"),
            Err(_) => return tracing::debug!(%from, "no TLS in time"),
        },
        () = shared.ending.cancelled() => return,
    };
    let service = service_fn(|request| {
        let identity = &identity;
        async move {
            let (pool, budget) = (&shared.pool, &shared.budget);
            Ok::<_, Infallible>(match from.stranger {
                Some(uid) => pass::refuse_stranger(pool, uid, request).await,
                None => pass::answer((pool, budget), identity, request).await,
            })
        }
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
        tracing::debug!(%from, %error, "connection");
    }
}
