//! The JSON-RPC channel to the VS Code extension, over the agent's standard input and output.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_proto::shim::{Notification, Problem, Request};
use bytes::Bytes;
use futures_util::StreamExt as _;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{Encoder as _, FramedRead};

use crate::framing::Framing;

/// Messages on their way to the extension; it reads as fast as its event loop turns.
const MAX_OUTGOING: usize = 1_024;
/// Messages of the extension that wait for the agent.
const MAX_INCOMING: usize = 256;

/// JSON-RPC: the method is not known.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// JSON-RPC: the parameters do not fit.
pub const INVALID_PARAMS: i64 = -32_602;
/// What could not be done; the message is a sentence for the user.
const REFUSED: i64 = -32_000;

/// A handle on the channel; clones share it.
#[derive(Clone, Debug)]
pub struct Shim {
    outgoing: mpsc::Sender<Bytes>,
    pending: Arc<Mutex<Pending>>,
    last_id: Arc<AtomicU64>,
}

/// Requests without an answer yet; dropped when the channel ends, which fails every waiter.
#[derive(Debug, Default)]
struct Pending {
    waiters: HashMap<u64, oneshot::Sender<Result<Value, String>>>,
    is_closed: bool,
}

/// Why the extension did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShimError {
    /// The extension host is gone, and this agent soon too.
    #[error("the window is closing")]
    Closed,
    /// What the extension says.
    #[error("{0}")]
    Refused(String),
    /// An answer that makes no sense.
    #[error("the extension answered something this version does not understand ({0}); update Baton")]
    Malformed(String),
}

/// What the extension sends.
#[derive(Debug)]
pub enum FromExtension {
    /// To be answered with [`Shim::answer`].
    Request {
        /// Of the request.
        id: Value,
        /// See [`baton_proto::shim`].
        method: String,
        /// As sent.
        params: Value,
    },
    /// Not to be answered.
    Notification {
        /// See [`baton_proto::shim`].
        method: String,
        /// As sent.
        params: Value,
    },
}

/// An error that is the answer to a request of the extension.
#[derive(Debug)]
pub struct Refusal {
    code: i64,
    /// What the user reads.
    pub message: String,
    /// What the extension translates.
    problem: Option<Problem>,
}

impl Refusal {
    /// A sentence for the user.
    pub fn new(message: impl ToString) -> Self {
        Self::protocol(REFUSED, message.to_string())
    }

    /// An error of the protocol.
    pub fn protocol(code: i64, message: String) -> Self {
        Self { code, message, problem: None }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { code: REFUSED, message: problem.message.clone(), problem: Some(problem) }
    }
}

#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<ErrorObject>,
    #[serde(default, rename = "jsonrpc")]
    _version: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ErrorObject {
    message: String,
}

impl Shim {
    /// Opens the channel. The receiver ends when the extension's side does.
    pub fn open(
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> (Self, mpsc::Receiver<FromExtension>) {
        let (outgoing, to_write) = mpsc::channel(MAX_OUTGOING);
        let (incoming, from_extension) = mpsc::channel(MAX_INCOMING);
        let shim = Self { outgoing, pending: Arc::default(), last_id: Arc::default() };
        tokio::spawn(write(writer, to_write));
        tokio::spawn(read(reader, incoming, shim.pending.clone()));
        (shim, from_extension)
    }

    /// Asks the extension to do something.
    pub async fn ask<R: Request>(&self, params: R::Params) -> Result<R::Answer, ShimError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        {
            let mut pending = self.pending();
            if pending.is_closed {
                return Err(ShimError::Closed);
            }
            pending.waiters.insert(id, sender);
        }
        let params = serde_json::to_value(params).map_err(|error| ShimError::Malformed(error.to_string()))?;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": R::METHOD, "params": params})).await?;
        let result = answer.await.map_err(|_| ShimError::Closed)?.map_err(ShimError::Refused)?;
        serde_json::from_value(result).map_err(|error| ShimError::Malformed(error.to_string()))
    }

    /// Tells the extension something.
    pub async fn tell<N: Notification>(&self, params: &N::Params) {
        let message = json!({"jsonrpc": "2.0", "method": N::METHOD, "params": params});
        // An extension that is gone needs to know nothing.
        let _ = self.send(&message).await;
    }

    /// Answers a request of the extension.
    pub async fn answer(&self, id: Value, result: Result<Value, Refusal>) {
        let message = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(Refusal { code, message, problem }) => {
                let error = json!({"code": code, "message": message, "data": problem});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        let _ = self.send(&message).await;
    }

    async fn send(&self, message: &Value) -> Result<(), ShimError> {
        self.outgoing.send(message.to_string().into()).await.map_err(|_| ShimError::Closed)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock()
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Bytes>) {
    let mut buffer = bytes::BytesMut::new();
    while let Some(message) = messages.recv().await {
        let mut encoded = Framing::default().encode(message, &mut buffer);
        // What else is waiting goes with the same write.
        while let Ok(message) = messages.try_recv() {
            encoded = encoded.and_then(|()| Framing::default().encode(message, &mut buffer));
        }
        let written = async {
            encoded?;
            writer.write_all(&buffer.split()).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "the extension is no longer listening");
            return;
        }
    }
}

async fn read(
    reader: impl AsyncRead + Unpin,
    incoming: mpsc::Sender<FromExtension>,
    pending: Arc<Mutex<Pending>>,
) {
    let mut bodies = FramedRead::new(reader, Framing::default());
    while let Some(Ok(body)) = bodies.next().await {
        // A text, all of it: what is skipped as unknown is not looked at otherwise.
        let text = std::str::from_utf8(&body).ok();
        let Some(message) = text.and_then(|text| serde_json::from_str::<Message>(text).ok()) else {
            tracing::warn!(length = body.len(), "the extension sent what is no message");
            continue;
        };
        let event = match (message.method, message.id) {
            (Some(method), Some(id)) => FromExtension::Request { id, method, params: message.params },
            (Some(method), None) => FromExtension::Notification { method, params: message.params },
            (None, id) => {
                let waiter = id.and_then(|id| lock(&pending).waiters.remove(&id.as_u64()?));
                if let Some(waiter) = waiter {
                    let result = message.error.map_or(Ok(message.result), |error| Err(error.message));
                    let _ = waiter.send(result);
                }
                continue;
            }
        };
        if incoming.send(event).await.is_err() {
            break;
        }
    }
    let mut pending = lock(&pending);
    pending.is_closed = true;
    pending.waiters.clear();
}

#[cfg(any(test, feature = "testing"))]
type End = (Shim, mpsc::Receiver<FromExtension>);

#[cfg(any(test, feature = "testing"))]
impl Shim {
    /// Both ends of a channel: the agent's, and one that plays the extension.
    pub fn pair() -> (End, End) {
        let open = |end| {
            let (reader, writer) = tokio::io::split(end);
            Self::open(reader, writer)
        };
        let (agent, extension) = tokio::io::duplex(64 * 1024);
        (open(agent), open(extension))
    }

    /// The agent's end of a channel that nobody hears.
    pub fn alone() -> Self {
        Self::open(tokio::io::empty(), tokio::io::sink()).0
    }
}

#[cfg(test)]
mod tests {
    use baton_proto::shim::{
        AskHandover, GetStatus, HandoverAnswer, HandoverQuestion, Standing, StandingChanged,
    };

    use super::*;

    #[tokio::test]
    async fn a_request_is_answered_and_a_notification_arrives() {
        let ((agent, _keep), (extension, mut heard)) = Shim::pair();
        let standing = Standing { why: "because".to_owned(), ..Standing::default() };
        agent.tell::<StandingChanged>(&standing).await;
        let question = HandoverQuestion { client: "Claude".to_owned() };
        let asked = tokio::spawn(async move { agent.ask::<AskHandover>(question).await });
        let Some(FromExtension::Notification { method, params }) = heard.recv().await else { panic!() };
        assert_eq!((method.as_str(), &params["why"]), ("window/standing", &json!("because")));
        let Some(FromExtension::Request { id, method, params }) = heard.recv().await else { panic!() };
        assert_eq!((method.as_str(), &params["client"]), ("window/askHandover", &json!("Claude")));
        extension.answer(id, Ok(json!({"agreed": true}))).await;
        assert_eq!(asked.await.unwrap(), Ok(HandoverAnswer { agreed: true }));
    }

    #[tokio::test]
    async fn a_refusal_is_a_sentence_and_a_lost_extension_fails_every_waiter() {
        let ((agent, mut requests), (extension, keep)) = Shim::pair();
        let asked = tokio::spawn({
            let extension = extension.clone();
            async move { extension.ask::<GetStatus>(Default::default()).await }
        });
        let Some(FromExtension::Request { id, .. }) = requests.recv().await else { panic!() };
        agent.answer(id, Err(Refusal::new("Try later."))).await;
        assert_eq!(asked.await.unwrap(), Err(ShimError::Refused("Try later.".to_owned())));

        let waiting = tokio::spawn(async move { extension.ask::<GetStatus>(Default::default()).await });
        assert!(matches!(requests.recv().await, Some(FromExtension::Request { .. })));
        drop((agent, requests, keep));
        // The duplex closes with the tasks of the other side.
        waiting.abort();
    }
}
