//! A connection to a debug adapter: one task that reads, one that writes, channels to both.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::codec::{FramedRead, FramedWrite};

use crate::debug::dap::Incoming;
use crate::framing::Framing;

/// Messages on their way to an adapter. We send a handful at a time; an adapter that lets so many lie is hung.
const MAX_OUTGOING: usize = 1024;

/// Messages on their way from an adapter. When the engine is busy, the adapter waits.
const MAX_INCOMING: usize = 256;

/// Both directions of a connection. Dropping `outgoing` closes it.
pub(crate) struct Connection {
    /// Bodies to send.
    pub(crate) outgoing: mpsc::Sender<Bytes>,
    /// Messages that came; ends with the connection.
    pub(crate) incoming: mpsc::Receiver<Incoming>,
    /// Ends once everything was written, or nothing more can be.
    pub(crate) writer: JoinHandle<()>,
}

/// How long nothing comes once a program has ended and everything was said.
const QUIET: Duration = Duration::from_millis(100);

impl Connection {
    /// Holds the end of the session back until what was printed before it has come: some adapters read the program's
    /// output on a thread of its own.
    pub(crate) fn with_late_output(self) -> Self {
        let Self { outgoing, incoming: mut raw, writer } = self;
        let (sender, incoming) = mpsc::channel(MAX_INCOMING);
        tokio::spawn(async move {
            while let Some(message) = raw.recv().await {
                let is_end = matches!(&message, Incoming::Event { event, .. } if event == "terminated");
                while is_end && let Ok(Some(rest)) = tokio::time::timeout(QUIET, raw.recv()).await {
                    let _ = sender.send(rest).await;
                }
                if sender.send(message).await.is_err() {
                    return;
                }
            }
        });
        Self { outgoing, incoming, writer }
    }

    /// Over any pair of byte streams: the pipes of a child, the halves of a socket, memory.
    pub(crate) fn new<R, W>(read: R, write: W) -> Self
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
                tokio::select! {
                    () = read_tx.closed() => return,
                    frame = frames.next() => {
                        let Some(Ok(body)) = frame else { return };
                        let Some(message) = Incoming::parse(&body) else {
                            tracing::debug!(len = body.len(), "the adapter sent what is not a message");
                            continue;
                        };
                        if read_tx.send(message).await.is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Self { outgoing, incoming, writer }
    }
}
