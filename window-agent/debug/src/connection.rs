//! A connection to a debug adapter.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::dap::Incoming;
use baton_agent_base::pipe::{MAX_INCOMING, Pipe};

/// How long nothing comes once a program has ended and everything was said.
const QUIET: Duration = Duration::from_millis(100);

/// How long an adapter may take to answer after the end of a program.
const ANSWER: Duration = Duration::from_secs(3);

/// Sequence numbers of the questions after the end; no session comes near them.
const QUESTIONS: [i64; 2] = [1_000_000_001, 1_000_000_002];

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

/// Holds the end of the session back until what was printed before it has come: some adapters read the program's
/// output on a thread of its own.
pub(crate) fn with_late_output(connection: Connection) -> Connection {
    let Pipe { outgoing, incoming: mut raw, writer } = connection;
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
    Pipe { outgoing, incoming, writer }
}

/// The same for an adapter that answers after the end, and reads what the program printed in one loop with what it
/// is asked: it gets two questions one after the other. Between the two it has looked at everything once.
pub(crate) fn with_answers_after_end(connection: Connection) -> Connection {
    let Pipe { outgoing, incoming: mut raw, writer } = connection;
    let (sender, incoming) = mpsc::channel(MAX_INCOMING);
    // Whoever speaks to it closes the connection by letting go; this must not keep it open.
    let asking = outgoing.downgrade();
    tokio::spawn(async move {
        while let Some(message) = raw.recv().await {
            let is_end = matches!(&message, Incoming::Event { event, .. } if event == "terminated");
            for seq in QUESTIONS.into_iter().filter(|_| is_end) {
                let question =
                    format!(r#"{{"seq":{seq},"type":"request","command":"threads","arguments":{{}}}}"#);
                let Some(Ok(())) = asking.upgrade().map(|to| to.try_send(Bytes::from(question))) else {
                    break;
                };
                let answered = async {
                    while let Some(rest) = raw.recv().await {
                        if matches!(&rest, Incoming::Response(answer) if answer.request_seq == seq) {
                            return;
                        }
                        let _ = sender.send(rest).await;
                    }
                };
                if tokio::time::timeout(ANSWER, answered).await.is_err() {
                    break;
                }
            }
            if sender.send(message).await.is_err() {
                return;
            }
        }
    });
    Pipe { outgoing, incoming, writer }
}
