//! A connection that speaks in `Content-Length` frames, as DAP and LSP do: a task for each direction, and a channel to
//! each.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::codec::{FramedRead, FramedWrite};

use crate::framing::Framing;

/// Messages on their way out. Documents opened again after a crash come in one go; a peer that lets more lie is hung.
const MAX_OUTGOING: usize = 2_048;

/// Messages on their way in. When their reader is busy, the peer waits.
pub const MAX_INCOMING: usize = 256;

/// Both directions; `M` is what a body is read as. Dropping `outgoing` closes it.
pub struct Pipe<M> {
    /// Bodies to send.
    pub outgoing: mpsc::Sender<Bytes>,
    /// Messages that came; ends with the connection.
    pub incoming: mpsc::Receiver<M>,
    /// Ends once everything was written, or nothing more can be.
    pub writer: JoinHandle<()>,
}

impl<M: Send + 'static> Pipe<M> {
    /// Over any pair of byte streams: the pipes of a child, the halves of a socket, memory. A body that `parse` makes
    /// nothing of is passed over.
    pub fn new<R, W>(read: R, write: W, parse: fn(Bytes) -> Option<M>) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (outgoing, mut to_write) = mpsc::channel::<Bytes>(MAX_OUTGOING);
        let (read_tx, incoming) = mpsc::channel(MAX_INCOMING);
        let writer = tokio::spawn(async move {
            let mut frames = FramedWrite::new(write, Framing::default());
            while let Some(body) = to_write.recv().await {
                if frames.send(body).await.is_err() {
                    return;
                }
            }
            let _ = frames.close().await;
        });
        tokio::spawn(async move {
            let mut frames = FramedRead::new(read, Framing::default());
            loop {
                let frame = tokio::select! {
                    () = read_tx.closed() => return,
                    frame = frames.next() => frame,
                };
                let Some(Ok(body)) = frame else { return };
                let len = body.len();
                let Some(message) = parse(body) else {
                    tracing::debug!(len, "the peer sent what is not a message");
                    continue;
                };
                if read_tx.send(message).await.is_err() {
                    return;
                }
            }
        });
        Self { outgoing, incoming, writer }
    }
}
