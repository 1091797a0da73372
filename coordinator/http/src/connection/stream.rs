//! What is accepted: a stream that tells its connection what is read and written, and that is had back at its end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use baton_link::net::{TcpStream, UnixStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio_util::either::Either;

use crate::connection::Connection;

/// A connection of either kind.
pub(crate) type Stream = Either<TcpStream, UnixStream>;

/// What is left of a stream that the client has not ended.
pub(crate) struct Left {
    pub(crate) stream: Stream,
    /// We have said all that we say, but not that we have.
    pub(crate) is_done: bool,
}

/// A stream that tells its connection when bytes arrive.
pub(crate) struct Watched {
    /// Taken when it is dropped.
    stream: Option<Stream>,
    connection: Arc<Connection>,
    /// Where the stream goes when the client has not ended it.
    leftover: Option<oneshot::Sender<Left>>,
    /// We have said all that we say.
    is_shut: bool,
    /// So has the client.
    is_over: bool,
}

impl Watched {
    pub(crate) fn new(stream: Stream, connection: &Arc<Connection>, leftover: oneshot::Sender<Left>) -> Self {
        let (stream, leftover, connection) = (Some(stream), Some(leftover), connection.clone());
        Self { stream, connection, leftover, is_shut: false, is_over: false }
    }

    fn stream(&mut self) -> Pin<&mut Stream> {
        Pin::new(self.stream.as_mut().expect("invariant: taken by drop alone"))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let (Some(stream), Some(leftover)) = (self.stream.take(), self.leftover.take())
            && !self.is_over
        {
            // Whoever waited is gone: the connection was cut.
            let _ = leftover.send(Left { stream, is_done: self.is_shut });
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_before = buffer.filled().len();
        let poll = self.stream().poll_read(cx, buffer);
        let n_read = poll.is_ready().then(|| buffer.filled().len() - n_before);
        self.is_over |= n_read == Some(0);
        self.connection.on_read(n_read);
        poll
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = self.stream().poll_write(cx, bytes);
        self.connection.on_write(poll.is_pending());
        poll
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The other side is told when the stream is had back: there may be something left to say.
        ready!(self.stream().poll_flush(cx))?;
        self.is_shut = true;
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = self.stream().poll_write_vectored(cx, slices);
        self.connection.on_write(poll.is_pending());
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}
