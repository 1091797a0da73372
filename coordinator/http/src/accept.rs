//! The accept loop: what is listened on, how a connection is served, and how both end.

#[cfg_attr(sim, path = "sim/waiting.rs")]
mod waiting;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_link::net::{TcpListener, UnixListener};
use http::Response;
use http::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::body::Body;
use crate::connection::stream::{Left, Stream, Watched};
use crate::connection::{Connection, Farewell};
use crate::guard::Way;
use crate::respond;
use crate::{Admitted, END_GRACE, End, Gate};

/// Largest head of a request.
const HEAD_MAX: usize = 16 * 1024;
/// How long a connection may stay silent after the shutdown began: closed at once, it would tear a request that is
/// on its way. The next answer on it says that it is the last.
const SILENT_GRACE: Duration = Duration::from_secs(5);
/// How long a connection that has not sent a head may live on when the process ends.
const GREETING_GRACE: Duration = Duration::from_millis(500);
/// First and longest pause after a failed accept (out of descriptors, and nobody who idles).
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What is listened on.
#[derive(Debug)]
pub(crate) enum Listener {
    Port(TcpListener),
    Socket(UnixListener),
}

impl Listener {
    fn way(&self) -> io::Result<Way> {
        Ok(match self {
            Self::Port(listener) => Way::Port(listener.local_addr()?.port()),
            Self::Socket(_) => Way::Socket,
        })
    }

    async fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Port(listener) => Either::Left(listener.accept().await?.0),
            Self::Socket(listener) => Either::Right(listener.accept().await?.0),
        })
    }

    /// Ends it, and gives the connections that were made before: those would be reset with whatever their clients
    /// have written.
    fn close(self) -> Vec<Stream> {
        let Self::Port(listener) = self else { return Vec::new() };
        waiting::close(listener).into_iter().map(Either::Left).collect()
    }
}

impl End {
    /// Ends when a connection that is idle is to be closed.
    async fn of(&self, connection: &Connection) {
        self.shutdown.cancelled().await;
        tokio::select! {
            () = tokio::time::sleep(SILENT_GRACE) => {}
            () = self.closing.cancelled() => {
                // Accepted a moment ago: its first request is on its way.
                if connection.is_greeting() {
                    tokio::time::sleep(GREETING_GRACE).await;
                }
            }
        }
    }
}

/// Accepts on one listener until the end, and waits for its connections.
pub(crate) async fn run<F>(
    listener: Listener,
    gate: &Arc<Gate>,
    end: &End,
    answer: &(impl Fn(Admitted) -> F + Clone + Send + Sync + 'static),
) where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let End { shutdown, closing } = end;
    let Ok(way) = listener.way() else {
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
            Ok(stream) => {
                pause = BACK_OFF.0;
                if gate.connections.is_full() {
                    tracing::warn!("too many connections; closed one");
                    continue;
                }
                let connection = Connection::open(way, &gate.connections);
                tasks.spawn(drive(
                    stream,
                    connection,
                    gate.clone(),
                    end.clone(),
                    abandoned.clone(),
                    answer.clone(),
                ));
            }
            Err(error) => {
                tracing::warn!(%error, ?pause, "cannot accept a connection");
                if is_out_of_descriptors(&error) && gate.connections.give_way() {
                    pause = BACK_OFF.0;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(BACK_OFF.1);
            }
        }
    }
    if !gate.is_handed_on() {
        for stream in listener.close() {
            let connection = Connection::open(way, &gate.connections);
            tasks.spawn(drive(
                stream,
                connection,
                gate.clone(),
                end.clone(),
                abandoned.clone(),
                answer.clone(),
            ));
        }
    }
    tasks.close();
    tokio::select! {
        () = tasks.wait() => return,
        () = closing.cancelled() => {}
    }
    if tokio::time::timeout(END_GRACE, tasks.wait()).await.is_err() {
        abandoned.cancel();
        tasks.wait().await;
    }
}

/// This process, or the whole machine, has no descriptor left.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, Errno::MFILE | Errno::NFILE))
}

/// Serves one connection to its end.
async fn drive<F>(
    stream: Stream,
    connection: Arc<Connection>,
    gate: Arc<Gate>,
    end: End,
    abandoned: CancellationToken,
    answer: impl Fn(Admitted) -> F,
) where
    F: Future<Output = Response<Body>>,
{
    let _open = connection.keep_open();
    if !connection.identify(&stream) {
        return;
    }
    if let Either::Left(stream) = &stream
        && let Err(error) = stream.set_nodelay(true)
    {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let (leftover, left) = oneshot::channel();
    let watched = Watched::new(stream, &connection, leftover);
    let serving = serve(watched, &connection, &gate, &end, answer);
    let farewell = tokio::select! {
        farewell = serving => farewell,
        () = abandoned.cancelled() => return,
    };
    let Ok(Left { mut stream, is_done }) = left.await else { return };
    if let Some(why) = farewell.filter(|why| connection.can_hear(*why)) {
        let said = respond::farewell(why);
        // It fits; and to who does not take it there is nothing more to say.
        let _ = match &stream {
            Either::Left(stream) => stream.try_write(said.as_bytes()),
            Either::Right(stream) => stream.try_write(said.as_bytes()),
        };
    } else if !is_done {
        return;
    }
    // The client may have ended it meanwhile.
    if stream.shutdown().await.is_ok() {
        connection.read_out(stream).await;
    }
}

/// Answers the requests of one connection; why it ends, when that is our doing.
async fn serve<F>(
    watched: Watched,
    connection: &Arc<Connection>,
    gate: &Gate,
    end: &End,
    answer: impl Fn(Admitted) -> F,
) -> Option<Farewell>
where
    F: Future<Output = Response<Body>>,
{
    let service = service_fn(|request| {
        let busy = connection.busy();
        let answer = &answer;
        async move {
            let mut response = match gate.admit(connection, request).await {
                Ok(admitted) => answer(admitted).await,
                Err(refusal) => refusal,
            };
            if end.shutdown.is_cancelled() || gate.is_leaving() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            if response.headers().contains_key(header::CONNECTION) {
                connection.on_last();
            }
            Ok::<_, Infallible>(response.map(|body| body.with_busy(busy)))
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .header_read_timeout(None)
        // Answers are small: one copy costs less than a gathered write.
        .writev(false)
        .max_header_size(HEAD_MAX)
        .serve_connection(TokioIo::new(watched), service);
    let mut served = std::pin::pin!(served);
    let log = |error| tracing::debug!(%error, "connection");
    let why = tokio::select! {
        served = served.as_mut() => {
            served.unwrap_or_else(log);
            return None;
        }
        () = end.of(connection) => Farewell::Ended,
        why = connection.closed() => why,
    };
    // A client that does not read does not keep others out.
    if connection.is_busy() || (connection.is_stuck() && why == Farewell::Ended) {
        served.as_mut().graceful_shutdown();
        served.await.unwrap_or_else(log);
    }
    Some(why)
}
