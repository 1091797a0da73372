//! A connection to a debug adapter.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::debug::dap::Incoming;
use crate::pipe::{MAX_INCOMING, Pipe};

/// How long nothing comes once a program has ended and everything was said.
const QUIET: Duration = Duration::from_millis(100);

/// Messages to and from an adapter.
pub(crate) type Connection = Pipe<Incoming>;

/// A connection over any pair of byte streams.
pub(crate) fn connect<R, W>(read: R, write: W) -> Connection
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    Pipe::new(read, write, |body| Incoming::parse(&body))
}

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
}
