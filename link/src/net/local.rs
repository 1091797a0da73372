//! Unix sockets that wake nobody for nothing.
//!
//! The kernel tells the writer of a Unix socket that it may write each time the other side has read, and the
//! runtime's own stream asks to be told: a call woke both processes once more than it has messages, on the
//! processors that the call needs. This one asks when it has been refused.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as Std;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::unix::{SocketAddr, UCred};

/// Most that one read takes: what a read may fill has to be cleared first.
const READ_MAX: usize = 64 * 1024;

/// What listens on a Unix socket.
#[derive(Debug)]
pub struct UnixListener(tokio::net::UnixListener);

impl UnixListener {
    /// The same, within a runtime; it must not block.
    ///
    /// # Errors
    ///
    /// The runtime cannot watch it.
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        tokio::net::UnixListener::from_std(listener).map(Self)
    }

    /// The next connection.
    ///
    /// # Errors
    ///
    /// Those of the system: no descriptor is left.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, address) = self.0.accept().await?;
        Ok((UnixStream::new(stream)?, address))
    }
}

/// A connection over a Unix socket.
#[derive(Debug)]
pub struct UnixStream {
    reading: AsyncFd<Std>,
    /// Waits until more can be written; there is none while everything can.
    writing: Option<AsyncFd<OwnedFd>>,
    peer: UCred,
}

impl UnixStream {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    ///
    /// Nobody listens there, or this user may not.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::new(tokio::net::UnixStream::connect(path).await?)
    }

    /// The same, within a runtime; it must not block.
    ///
    /// # Errors
    ///
    /// The runtime cannot watch it.
    pub fn from_std(stream: Std) -> io::Result<Self> {
        Self::new(tokio::net::UnixStream::from_std(stream)?)
    }

    fn new(stream: tokio::net::UnixStream) -> io::Result<Self> {
        let peer = stream.peer_cred()?;
        let reading = watch(stream.into_std()?, Interest::READABLE)?;
        Ok(Self { reading, writing: None, peer })
    }

    /// Whose the other end is.
    ///
    /// # Errors
    ///
    /// None: it was asked when the connection was made.
    pub fn peer_cred(&self) -> io::Result<UCred> {
        Ok(self.peer)
    }

    /// Reads in another way, once there is something to read: `read` says `WouldBlock` when there is nothing.
    ///
    /// # Errors
    ///
    /// Those of `read`, and those of the system.
    pub async fn read_by<T>(&self, mut read: impl FnMut(BorrowedFd<'_>) -> io::Result<T>) -> io::Result<T> {
        self.reading.async_io(Interest::READABLE, |stream| read(stream.as_fd())).await
    }

    /// Writes what can be written now.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when that is nothing; else those of the system.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.reading.get_ref().write(bytes)
    }

    /// Has `write` write, now or once something can be written.
    fn poll_with(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&Std) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(writing) = &self.writing {
                let _ready = ready!(writing.poll_write_ready(cx))?;
                self.writing = None;
            }
            match write(self.reading.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let again = self.reading.as_fd().try_clone_to_owned()?;
                    self.writing = Some(watch(again, Interest::WRITABLE)?);
                }
                written => return Poll::Ready(written),
            }
        }
    }
}

/// Has the runtime tell what a descriptor is ready for.
#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for types that do not own their descriptor; these do"
)]
fn watch<T: Into<OwnedFd> + AsRawFd>(descriptor: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(descriptor, interest)
}

impl AsFd for UnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reading.as_fd()
    }
}

impl AsyncRead for UnixStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_wanted = buffer.remaining().min(READ_MAX);
        loop {
            let mut ready = ready!(self.reading.poll_read_ready(cx))?;
            match ready.get_inner().read(buffer.initialize_unfilled_to(n_wanted)) {
                Ok(n_read) => {
                    // That was all: whatever comes next is told.
                    if 0 < n_read && n_read < n_wanted {
                        ready.clear_ready();
                    }
                    buffer.advance(n_read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for UnixStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_with(cx, |mut stream| stream.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.reading.get_ref().shutdown(Shutdown::Write))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_with(cx, |mut stream| stream.write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn pair() -> (UnixStream, UnixStream) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = UnixListener::from_std(listener).unwrap();
        let (ours, theirs) = tokio::join!(UnixStream::connect(&path), listener.accept());
        (ours.unwrap(), theirs.unwrap().0)
    }

    #[tokio::test]
    async fn more_than_the_kernel_holds_arrives_whole_and_in_order() {
        let (mut ours, mut theirs) = pair().await;
        let sent: Vec<u8> = (0..4_000_000_u32).map(|i| (i % 251) as u8).collect();
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            ours.write_all(&sent).await.unwrap();
            assert!(ours.writing.is_none(), "everything was written");
            ours.shutdown().await.unwrap();
            ours.read_u8().await.unwrap()
        });
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).await.unwrap();
        assert!(got == expected, "{} bytes", got.len());
        theirs.write_all(b"7").await.unwrap();
        assert_eq!(writing.await.unwrap(), b'7', "the other direction is open until it is ended too");
    }

    #[tokio::test]
    async fn a_writer_that_waits_hears_that_the_reader_is_gone() {
        let (mut ours, theirs) = pair().await;
        let full = vec![0; 4_000_000];
        let is_full = poll_fn(|cx| {
            Poll::Ready(loop {
                match Pin::new(&mut ours).poll_write(cx, &full) {
                    Poll::Ready(written) => assert!(written.unwrap() > 0),
                    Poll::Pending => break true,
                }
            })
        });
        assert!(is_full.await);
        assert_eq!(ours.try_write(&full).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(theirs);
        assert_eq!(ours.write_all(&full).await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    /// The reader of bytes that come while it looks at the ones before misses none.
    #[tokio::test]
    async fn what_comes_a_byte_at_a_time_is_read() {
        let (mut ours, mut theirs) = pair().await;
        let answering = tokio::spawn(async move {
            while let Ok(byte) = theirs.read_u8().await {
                theirs.write_all(&[byte, byte]).await.unwrap();
            }
        });
        for byte in 0..=255 {
            ours.write_all(&[byte]).await.unwrap();
            assert_eq!([ours.read_u8().await.unwrap(), ours.read_u8().await.unwrap()], [byte; 2]);
        }
        drop(ours);
        answering.await.unwrap();
    }
}
