//! The two directions of the connection to a server, as channels of message bodies.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio_util::codec::{FramedRead, FramedWrite};

use crate::framing::Framing;

/// Messages on their way to a server; documents opened again after a crash come in one go.
const MAX_OUTGOING: usize = 2_048;
/// Messages on their way from a server. When the task is busy, the server waits.
const MAX_INCOMING: usize = 256;
/// Longest line of a server's standard error that is logged.
const MAX_LOGGED: usize = 400;

/// Both directions. Dropping `outgoing` closes the server's standard input.
pub(super) struct Pipe {
    /// Bodies to send.
    pub(super) outgoing: mpsc::Sender<Bytes>,
    /// Bodies that came; ends with the connection.
    pub(super) incoming: mpsc::Receiver<Bytes>,
}

impl Pipe {
    /// Over any pair of byte streams.
    pub(super) fn new<R, W>(read: R, write: W) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (outgoing, mut to_write) = mpsc::channel::<Bytes>(MAX_OUTGOING);
        let (read_tx, incoming) = mpsc::channel(MAX_INCOMING);
        tokio::spawn(async move {
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
                if read_tx.send(body).await.is_err() {
                    return;
                }
            }
        });
        Self { outgoing, incoming }
    }
}

/// Logs what a server says beside the protocol, and keeps its first words: a server that cannot start says why.
pub(super) fn log_lines(
    server: String,
    read: impl AsyncRead + Send + Unpin + 'static,
) -> Arc<OnceLock<String>> {
    let first = Arc::new(OnceLock::new());
    let said = first.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line: String = line.chars().take(MAX_LOGGED).collect();
            tracing::debug!(%server, %line, "said");
            if !line.trim().is_empty() {
                let _ = said.set(line);
            }
        }
    });
    first
}
