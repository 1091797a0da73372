//! What whoever watches tool calls hears of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use baton_mcp::fault::{RpcError, ToolFailure};
use baton_proto::ids::WindowId;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::record::{Answer, Tape};

/// Watches tool calls. It is told in the way of each, and must not wait.
pub trait Observer: Send + Sync {
    /// A call has come, with `arguments` when the user lets them be shown.
    fn came(&self, call: &Named<'_>, arguments: Option<&str>);
    /// A call waits for a window, or does so no longer.
    fn held(&self, id: &str, is_held: bool);
    /// A call is passed to that window.
    fn sent(&self, id: &str, window: &WindowId);
    /// A call is over; one without an end goes on with another coordinator.
    fn over(&self, call: &Named<'_>, end: Option<End>);
}

/// A call, as it is told to an [`Observer`].
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// What it is called in the logs, of the coordinator and of the window.
    pub id: &'a str,
    /// Its tool; one that no window of this build has is `other`.
    pub tool: &'a str,
    /// What the client calls itself; whatever it likes.
    pub client: &'a str,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// What went wrong, in a word of ours.
    pub error: Option<&'static str>,
    /// From the call to the end of its answer.
    pub took: Duration,
    /// Length of the answer of a window, in bytes; 0 for an answer of the coordinator's own.
    pub n_bytes: usize,
}

/// The client has hung up, or has said that it no longer wants an answer.
pub(crate) const CANCELLED: &str = "cancelled";
/// The client has read an error of JSON-RPC.
pub(crate) const RPC_ERROR: &str = "rpc_error";
/// The tool's own answer is an error.
const TOOL_ERROR: &str = "tool_error";

/// One tool call, from its name to the end of its answer, which is when this is dropped.
pub(crate) struct Seen {
    observer: Arc<dyn Observer>,
    id: String,
    tool: Box<str>,
    client: Box<str>,
    since: Instant,
    /// What came of it first; unset while there is no answer.
    end: Mutex<Option<Option<&'static str>>>,
    n_bytes: AtomicUsize,
    /// Another coordinator answers it, and counts it.
    is_passed_on: AtomicBool,
    /// When it is recorded.
    tape: Option<Box<Tape>>,
}

/// A call that waits for a window.
pub(crate) struct Held {
    observer: Arc<dyn Observer>,
    id: String,
}

impl Seen {
    pub(crate) fn begin(
        (observer, tape): (&Arc<dyn Observer>, Option<Box<Tape>>),
        id: String,
        (tool, client): (&str, &str),
        arguments: Option<&str>,
    ) -> Self {
        observer.came(&Named { id: &id, tool, client }, arguments);
        Self {
            observer: observer.clone(),
            id,
            tool: tool.into(),
            client: client.into(),
            since: Instant::now(),
            end: Mutex::default(),
            n_bytes: AtomicUsize::new(0),
            is_passed_on: AtomicBool::new(false),
            tape,
        }
    }

    /// What it is called in the logs.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// There is an answer: good, or an error of that kind.
    pub(crate) fn end(&self, error: Option<&'static str>) {
        self.end.lock().get_or_insert(error);
    }

    /// It is answered with an error of ours.
    pub(crate) fn fail(&self, failure: &ToolFailure) {
        self.keep(|| Answer::of_failure(failure));
        self.end(Some(failure.code));
    }

    /// It is answered with an error of JSON-RPC.
    pub(crate) fn refuse(&self, error: &RpcError) {
        self.keep(|| Answer::of_error(error));
        self.end(Some(RPC_ERROR));
    }

    /// It is answered without a window.
    pub(crate) fn end_with_own(&self, content: &Value) {
        self.keep(|| Answer::Own(content.clone()));
        self.end(None);
    }

    /// Keeps an answer for the record.
    fn keep(&self, answer: impl FnOnce() -> Answer) {
        if let Some(tape) = &self.tape {
            tape.note(|taped| taped.answer = answer());
        }
    }

    /// There is an answer of a window.
    pub(crate) fn end_with(&self, answer: &[u8]) {
        self.keep(|| Answer::of_window(answer));
        use baton_mcp::message::{Answered, answered};
        self.n_bytes.store(answer.len(), Ordering::Relaxed);
        self.end(match answered(answer) {
            Answered::Well => None,
            Answered::ToolError => Some(TOOL_ERROR),
            Answered::RpcError => Some(RPC_ERROR),
        });
    }

    /// It is somebody else's now.
    pub(crate) fn pass_on(&self) {
        self.is_passed_on.store(true, Ordering::Relaxed);
    }

    /// It goes to that window.
    pub(crate) fn send(&self, window: &WindowId) {
        self.observer.sent(&self.id, window);
        if let Some(tape) = &self.tape {
            tape.note(|taped| taped.window = Some(window.clone()));
        }
    }

    /// It waits until this is dropped.
    pub(crate) fn hold(&self) -> Held {
        self.observer.held(&self.id, true);
        Held { observer: self.observer.clone(), id: self.id.clone() }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let call = Named { id: &self.id, tool: &self.tool, client: &self.client };
        if self.is_passed_on.load(Ordering::Relaxed) {
            self.observer.over(&call, None);
            return;
        }
        let end = *self.end.lock();
        let (error, took) = (end.unwrap_or(Some(CANCELLED)), self.since.elapsed());
        tracing::debug!(call = %self.id, tool = %self.tool, error = error.unwrap_or_default(), ?took, "answered a call");
        let n_bytes = self.n_bytes.load(Ordering::Relaxed);
        self.observer.over(&call, Some(End { error, took, n_bytes }));
        if let Some(tape) = self.tape.take() {
            tape.end(|taped| {
                (taped.error, taped.took) = (error, took);
                (taped.id, taped.client) = (std::mem::take(&mut self.id), self.client.to_string());
            });
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.observer.held(&self.id, false);
    }
}
