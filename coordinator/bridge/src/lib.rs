//! The bridge: MCP over standard input and output for clients that run a command.
//!
//! It finds or starts the coordinator, proves it, and passes messages to `/mcp` and back. What the client knows
//! survives every restart of the coordinator: sessions are sealed, streams are opened again, and a call whose
//! connection died is answered. It knows messages and no tool: what the coordinator offers passes through unread.
//!
//! | module | what it does |
//! |---|---|
//! | `lines` | one message a line, bounded |
//! | `relay` | passes one message and its answers, whatever happens to the coordinator |
//! | `stand` | where the client stands, by which its window is found |
//! | [`pool`] | proven connections to the coordinator |
//! | `upstream` | requests of one client on them |
//! | `events` | messages out of a stream of events |
//! | [`client`] | calls of Baton's own, one after another |

pub mod client;
mod events;
mod lines;
pub mod pool;
mod relay;
mod stand;
mod upstream;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use baton_link::find::FindOptions;
use baton_mcp::envelope::{self, CancelledParams, CommonParams, Message, Request};
use baton_mcp::fault::{RpcError, code};
use baton_mcp::message::rpc_error_bytes;
use baton_mcp::revision::STATELESS;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use lines::Line;
use relay::{Relay, Task};
pub use stand::Stand;
use upstream::Upstream;

/// Messages that wait for standard output.
const OUTPUT_QUEUE: usize = 64;
/// Requests at once; more of them are refused.
const REQUESTS_MAX: usize = 1024;
/// How long requests may go on after the client closed our standard input.
const LAST_ANSWERS: Duration = Duration::from_secs(12);

/// How to run the bridge.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to find or start the coordinator.
    pub find: FindOptions,
    /// The window to talk to: id, name or folder.
    pub window: Option<String>,
    /// Else: the window of this folder's tree; without one the live window, whichever it is. Beside `window`: the folder
    /// that is meant when no window is called so.
    pub stand: Option<Stand>,
}

/// Runs until `input` ends or `output` breaks.
pub async fn run(options: Options, input: impl AsyncRead + Unpin, output: impl AsyncWrite + Unpin) {
    let (sender, receiver) = mpsc::channel(OUTPUT_QUEUE);
    let writing = lines::write(output, receiver);
    let bridge = Bridge {
        relay: Arc::new(Relay::new(Upstream::new(options), sender)),
        running: Arc::default(),
        listening: None,
    };
    tokio::select! {
        () = writing => {}
        () = bridge.run(input) => {}
    }
}

/// Reads what the client says.
struct Bridge {
    relay: Arc<Relay>,
    /// Requests in flight by their ids.
    running: Arc<Mutex<HashMap<Box<str>, AbortHandle>>>,
    /// The GET stream of the older revisions.
    listening: Option<AbortHandle>,
}

impl Bridge {
    async fn run(mut self, input: impl AsyncRead + Unpin) {
        let mut lines = lines::Lines::new(input);
        let mut requests = JoinSet::new();
        let mut streams = JoinSet::new();
        loop {
            // Finished tasks are let go of.
            while requests.try_join_next().is_some() || streams.try_join_next().is_some() {}
            match lines.next().await {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => self.on_message(line, &mut requests, &mut streams).await,
                Line::TooLong => {
                    let error = RpcError::new(code::INVALID_REQUEST, "a message exceeds 16 MiB");
                    self.relay.say(rpc_error_bytes(None, &error)).await;
                }
                Line::End => break,
            }
        }
        let rest = async { while requests.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_ANSWERS, rest).await;
        self.relay.flush().await;
    }

    async fn on_message(&mut self, line: Bytes, requests: &mut JoinSet<()>, streams: &mut JoinSet<()>) {
        match envelope::parse(&line) {
            Ok(Message::Request(request)) => self.on_request(&line, &request, requests, streams).await,
            Ok(Message::Notification { method, params }) => match &*method {
                "notifications/cancelled" => {
                    if let Ok(cancelled) = envelope::params::<CancelledParams<'_>>(params) {
                        self.on_cancelled(cancelled.request_id.get(), &line).await;
                    }
                }
                "notifications/initialized" => {
                    self.relay.notify(&line).await;
                    self.listen(streams);
                }
                _ => self.relay.notify(&line).await,
            },
            Ok(Message::Answer) => {}
            Err(error) => self.relay.say(rpc_error_bytes(None, &error)).await,
        }
    }

    async fn on_request(
        &self,
        line: &Bytes,
        request: &Request<'_>,
        requests: &mut JoinSet<()>,
        streams: &mut JoinSet<()>,
    ) {
        let task = Task::new(line.clone(), request, revision_of(request));
        if request.method == "initialize" {
            // Nothing may overtake it: the session is not there before.
            self.relay.initialize(task).await;
            return;
        }
        if requests.len() >= REQUESTS_MAX {
            let error = RpcError::new(
                code::INVALID_REQUEST,
                format!(
                    "too many requests at once (limit \
                                                              {REQUESTS_MAX})"
                ),
            );
            self.relay.say(rpc_error_bytes(Some(request.id), &error)).await;
            return;
        }
        let (relay, running) = (self.relay.clone(), self.running.clone());
        let id: Box<str> = request.id.get().into();
        let key = id.clone();
        let is_stream = request.method == "subscriptions/listen";
        // The entry is made before the task can end, because tasks start when this one waits.
        let mut table = self.running.lock();
        let tasks = if is_stream { streams } else { requests };
        let handle = tasks.spawn(async move {
            if is_stream {
                relay.subscribe(&task).await;
            } else {
                relay.answer(&task).await;
            }
            running.lock().remove(&id);
        });
        table.insert(key, handle);
    }

    async fn on_cancelled(&self, id: &str, line: &Bytes) {
        if self.relay.has_session() {
            // The edge answers the request itself.
            self.relay.notify(line).await;
            return;
        }
        // Closing the stream is what cancels.
        let running = self.running.lock().remove(id);
        if let Some(running) = running {
            running.abort();
        }
    }

    /// Opens the stream of notices of a session.
    fn listen(&mut self, streams: &mut JoinSet<()>) {
        if let Some(old) = self.listening.take() {
            old.abort();
        }
        let relay = self.relay.clone();
        self.listening = Some(streams.spawn(async move { relay.listen().await }));
    }
}

/// The revision that a request names in `_meta`, which those with sessions do not.
fn revision_of(request: &Request<'_>) -> Option<String> {
    let params: CommonParams<'_> = envelope::params(request.params).unwrap_or_default();
    let named = params.meta.and_then(|meta| meta.revision).map(std::borrow::Cow::into_owned);
    named.or_else(|| (request.method == "server/discover").then(|| STATELESS.to_owned()))
}
