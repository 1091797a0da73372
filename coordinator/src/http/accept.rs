//! The accept loop: bounded connections, a time limit for a request's head, TCP_NODELAY.
//!
//! hyper's own head timeout also ends connections that idle between two requests, and a client that reuses one
//! at that very moment loses its call. So the clock here starts with the first byte of a head, not with the end
//! of the previous answer.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::App;

/// Largest head of a request.
const HEAD_MAX: usize = 16 * 1024;
/// How long a head may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection that has not sent a head may live on after the shutdown began.
const GREETING_GRACE: Duration = Duration::from_millis(500);
/// Connections that may be open without having sent a head: the oldest gives way to a new one, so that a crowd
/// of silent clients cannot keep a heartbeat out.
const GREETING_MAX: usize = 256;
/// Connections in all; each has been authenticated, or is one of the above.
const CONNECTIONS_MAX: usize = 4096;
/// First and longest pause after a failed accept (out of descriptors).
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// All open connections.
pub(crate) struct Connections {
    /// Those whose head is awaited, oldest first.
    greeting: Mutex<BTreeMap<u64, (Instant, Arc<Connection>)>>,
    n_open: AtomicUsize,
    /// Next key of `greeting`.
    next: AtomicU64,
}

/// One open connection.
pub(crate) struct Connection {
    /// Port of ours that the client dialled.
    pub(crate) local_port: u16,
    phase: AtomicU8,
    /// Key in [`Connections::greeting`], while it is there.
    greeting: AtomicU64,
    close: Notify,
    connections: Arc<Connections>,
}

/// Nothing of the next head has arrived.
const IDLE: u8 = 0;
/// Bytes of a head have arrived.
const STARTED: u8 = 1;
/// The head is awaited under the time limit.
const GREETING: u8 = 2;
/// A request is being answered.
const BUSY: u8 = 3;

/// Ends the busy phase of a connection when the answer is complete.
pub(crate) struct Busy(Arc<Connection>);

impl Connections {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { greeting: Mutex::default(), n_open: AtomicUsize::new(0), next: AtomicU64::new(1) })
    }

    /// Closes what has been sending its head for too long; returns when the next one can be due.
    fn close_late(&self, now: Instant) {
        let mut greeting = self.greeting.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(entry) = greeting.first_entry()
            && now.duration_since(entry.get().0) >= HEAD_TIMEOUT
        {
            entry.remove().1.close.notify_one();
        }
    }
}

impl Connection {
    fn open(local_port: u16, connections: &Arc<Connections>) -> Arc<Self> {
        connections.n_open.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Self {
            local_port,
            phase: AtomicU8::new(IDLE),
            greeting: AtomicU64::new(0),
            close: Notify::new(),
            connections: connections.clone(),
        });
        connection.greet();
        connection
    }

    /// Starts the time limit for a head.
    fn greet(self: &Arc<Self>) {
        let key = self.connections.next.fetch_add(1, Ordering::Relaxed);
        self.phase.store(GREETING, Ordering::Relaxed);
        self.greeting.store(key, Ordering::Relaxed);
        let mut greeting = self.connections.greeting.lock().unwrap_or_else(PoisonError::into_inner);
        greeting.insert(key, (Instant::now(), self.clone()));
        if greeting.len() > GREETING_MAX
            && let Some((_, (_, oldest))) = greeting.pop_first()
        {
            oldest.close.notify_one();
        }
    }

    fn greeted(&self) {
        let key = self.greeting.swap(0, Ordering::Relaxed);
        if key != 0 {
            self.connections.greeting.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }
    }

    /// The head is complete: the answer begins.
    fn busy(self: &Arc<Self>) -> Busy {
        if self.phase.swap(BUSY, Ordering::Relaxed) == GREETING {
            self.greeted();
        }
        Busy(self.clone())
    }

    fn on_read(self: &Arc<Self>, n_bytes: Option<usize>) {
        match (self.phase.load(Ordering::Relaxed), n_bytes) {
            (IDLE, Some(1..)) => self.phase.store(STARTED, Ordering::Relaxed),
            (STARTED, None) => self.greet(),
            _ => {}
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.phase.store(IDLE, Ordering::Relaxed);
    }
}

/// Closes late connections once a second, for ever.
pub(crate) async fn sweep(connections: &Connections) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        connections.close_late(tick.tick().await);
    }
}

/// How accepting ends.
pub(crate) struct End {
    /// No more connections, and no more requests on those there are.
    pub(crate) shutdown: CancellationToken,
    /// Whatever is still being answered has [`End::grace`] left.
    pub(crate) closing: CancellationToken,
    pub(crate) grace: Duration,
}

/// Accepts on one listener until the end, and waits for its connections.
pub(crate) async fn run(listener: TcpListener, app: &Arc<App>, end: &End) {
    let End { shutdown, closing, grace } = end;
    let Ok(local_port) = listener.local_addr().map(|address| address.port()) else {
        tracing::error!("a listener without an address");
        return;
    };
    let tasks = TaskTracker::new();
    let abandoned = CancellationToken::new();
    let mut pause = BACK_OFF.0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                pause = BACK_OFF.0;
                if app.connections.n_open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                    tracing::warn!("too many connections; one was closed");
                    continue;
                }
                let connection = Connection::open(local_port, &app.connections);
                tasks.spawn(drive(stream, connection, app.clone(), shutdown.clone(), abandoned.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, ?pause, "accept failed");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(BACK_OFF.1);
            }
        }
    }
    drop(listener);
    tasks.close();
    tokio::select! {
        () = tasks.wait() => return,
        () = closing.cancelled() => {}
    }
    if tokio::time::timeout(*grace, tasks.wait()).await.is_err() {
        abandoned.cancel();
        tasks.wait().await;
    }
}

/// Serves one connection to its end.
async fn drive(
    stream: TcpStream,
    connection: Arc<Connection>,
    app: Arc<App>,
    shutdown: CancellationToken,
    abandoned: CancellationToken,
) {
    let _open = Open(connection.clone());
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let service = {
        let connection = connection.clone();
        service_fn(move |request| {
            let busy = connection.busy();
            let (app, connection) = (app.clone(), connection.clone());
            async move {
                let response = super::answer(&app, &connection, request).await;
                response.map(|response| response.map(|body| body.with_busy(busy)))
            }
        })
    };
    let io = TokioIo::new(Watched { stream, connection: connection.clone() });
    let served = hyper::server::conn::http1::Builder::new()
        .header_read_timeout(None)
        // Answers are small: one copy costs less than a gathered write.
        .writev(false)
        .max_header_size(HEAD_MAX)
        .serve_connection(io, service);
    let mut served = std::pin::pin!(served);
    let ending = async {
        shutdown.cancelled().await;
        // Accepted a moment ago: its first request is on its way, and nobody else can answer it.
        if connection.phase.load(Ordering::Relaxed) == GREETING {
            tokio::time::sleep(GREETING_GRACE).await;
        }
    };
    let mut ending = std::pin::pin!(ending);
    let mut is_ending = false;
    loop {
        tokio::select! {
            result = served.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection");
                }
                return;
            }
            () = connection.close.notified() => return,
            () = abandoned.cancelled() => return,
            () = ending.as_mut(), if !is_ending => {
                is_ending = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Takes a connection off the books when its task ends, however it does.
struct Open(Arc<Connection>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.greeted();
        self.0.connections.n_open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream that tells its connection when bytes arrive.
struct Watched {
    stream: TcpStream,
    connection: Arc<Connection>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.connection.on_read(poll.is_ready().then(|| buffer.filled().len() - n_before));
        poll
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
