//! One connection to a window.

#[cfg_attr(sim, path = "sim/look.rs")]
mod look;

use std::io;

use baton_link::net::{TcpStream, UnixStream};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio_util::either::Either;

use look::Look;

/// What a connection to a window runs over.
pub type Stream = Either<TcpStream, UnixStream>;

/// A connection to a window.
pub struct Sender {
    requests: SendRequest<Full<Bytes>>,
    /// The same socket once more, to look at it.
    socket: Look,
}

impl Sender {
    /// Speaks HTTP on `stream` from now on.
    pub async fn open(stream: Stream) -> io::Result<Self> {
        let socket = Look::at(&stream)?;
        let (requests, connection) = http1::Builder::new()
            // Calls are small: one copy costs less than a gathered write.
            .writev(false)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection to a window");
            }
        });
        Ok(Self { requests, socket })
    }

    /// True when a call may be written. The kernel knows of the death of a window before the runtime has told this
    /// connection, and a call that is written in between could no longer be said not to have run.
    pub async fn is_usable(&mut self) -> bool {
        !self.requests.is_closed() && self.requests.ready().await.is_ok() && self.socket.is_silent()
    }

    /// True once the connection has ended, as far as it has been told.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Sends a call; the error holds it again when not a byte of it was written.
    pub async fn send(
        &mut self,
        call: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        self.requests.try_send_request(call).await
    }
}
