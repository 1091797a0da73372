//! What whoever counts tool calls hears of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Counts tool calls. It is told in the way of each, and must not wait.
pub trait Observer: Send + Sync {
    /// A call has come, or is over.
    fn running(&self, is_running: bool);
    /// A call waits for a window, or does so no longer.
    fn held(&self, is_held: bool);
    /// A call of `tool` has had its answer after so long. A tool that no window of this build has is `other`.
    fn answered(&self, tool: &str, error: Option<&'static str>, took: Duration);
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
    since: Instant,
    /// What came of it first; unset while there is no answer.
    end: Mutex<Option<Option<&'static str>>>,
    /// Another coordinator answers it, and counts it.
    is_passed_on: AtomicBool,
}

/// A call that waits for a window.
pub(crate) struct Held(Arc<dyn Observer>);

impl Seen {
    pub(crate) fn begin(observer: &Arc<dyn Observer>, id: String, tool: &str) -> Self {
        observer.running(true);
        Self {
            observer: observer.clone(),
            id,
            tool: tool.into(),
            since: Instant::now(),
            end: Mutex::default(),
            is_passed_on: AtomicBool::new(false),
        }
    }

    /// What it is called in the logs.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// There is an answer: good, or an error of that kind.
    pub(crate) fn end(&self, error: Option<&'static str>) {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// There is an answer of a window.
    pub(crate) fn end_with(&self, answer: &[u8]) {
        use baton_mcp::message::{Answered, answered};
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

    /// It waits until this is dropped.
    pub(crate) fn hold(&self) -> Held {
        self.observer.held(true);
        Held(self.observer.clone())
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.observer.running(false);
        if self.is_passed_on.load(Ordering::Relaxed) {
            return;
        }
        let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let (error, took) = (end.unwrap_or(Some(CANCELLED)), self.since.elapsed());
        tracing::debug!(call = %self.id, tool = %self.tool, error = error.unwrap_or_default(), ?took, "answered a call");
        self.observer.answered(&self.tool, error, took);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held(false);
    }
}
