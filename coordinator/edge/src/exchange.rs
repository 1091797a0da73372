//! A call at a window: what is sent, and until when its answer is waited for.

use std::sync::Arc;
use std::time::Duration;

use baton_election::roster::Window;
use baton_http::body::Body;
use baton_http::respond;
use baton_link::plant::{self, Plant};
use baton_mcp::fault::{ToolFailure, outcome_unknown};
use baton_mcp::message;
use baton_mcp::revision::Era;
use baton_proto::control::DRAIN_MS;
use baton_proto::edge::{PIN_HEADER, TERM_HEADER};
use baton_proto::ids::WindowId;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri, Version};
use http_body_util::Full;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::cancel::Running;
use super::heard;
use super::route::Right;
use super::seen::{CANCELLED, Seen};
use super::upstream::Upstream;

/// Time for an answer that is on its way when its window is taken off the roster.
const LAST_WORDS: Duration = Duration::from_millis(300);

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A tool call on its way.
pub(crate) struct Call {
    pub(crate) body: Bytes,
    /// `mcp-*` headers of the client that the window shall see.
    pub(crate) headers: HeaderMap,
    pub(crate) id: Box<RawValue>,
    pub(crate) era: Era,
    /// Set when the client can cancel by a notification.
    pub(crate) running: Option<Running>,
    pub(crate) seen: Seen,
}

impl Call {
    /// Ends when the client cancels it.
    pub(crate) async fn cancelled(&self) {
        match &self.running {
            Some(running) => running.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// It is answered with an error of ours.
    pub(crate) fn fail(&self, failure: &ToolFailure) -> Response<Body> {
        self.seen.fail(failure);
        respond::tool_failure(self.era, &self.id, failure)
    }
}

/// Why the window's answer is no longer waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client cancelled.
    Cancelled,
    /// The window is gone.
    Gone,
    /// The window handed over long ago.
    Drained,
    /// The coordinator ends.
    Ended,
}

/// A call at a window.
pub(crate) struct Exchange {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) window: Arc<Window>,
    pub(crate) call: Arc<Call>,
    pub(crate) right: Right,
    /// Headers on what the window shall tell.
    pub(crate) told: HeaderMap,
    pub(crate) drained: CancellationToken,
    pub(crate) cut: CancellationToken,
}

impl Exchange {
    /// The call, rebuilt: nothing of the client's head but a few `mcp-*` headers gets through.
    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.call.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static("/mcp");
        *request.version_mut() = Version::HTTP_11;
        let headers = request.headers_mut();
        headers.clone_from(&self.call.headers);
        headers.extend(self.told.clone());
        headers.insert(header::HOST, self.upstream.authority.clone());
        headers.insert(header::AUTHORIZATION, self.upstream.bearer.clone());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(self.call.era.as_str()));
        match self.right {
            Right::Term(term) if !plant::has(Plant::NoTerm) => {
                if let Ok(term) = HeaderValue::from_str(&term.to_string()) {
                    headers.insert(HeaderName::from_static(TERM_HEADER), term);
                }
            }
            _ => {
                headers.insert(HeaderName::from_static(PIN_HEADER), HeaderValue::from_static("1"));
            }
        }
        request
    }

    /// What the logs call the call and the window.
    pub(crate) fn names(&self) -> (&str, &WindowId) {
        (self.call.seen.id(), &self.window.id)
    }

    /// Ends when the window's answer need no longer be waited for.
    pub(crate) async fn stopped(&self) -> Stop {
        tokio::select! {
            () = self.call.cancelled() => Stop::Cancelled,
            () = self.cut.cancelled() => Stop::Ended,
            () = self.drained.cancelled() => {
                if !self.upstream.gone.is_cancelled() {
                    return Stop::Drained;
                }
                tokio::time::sleep(LAST_WORDS).await;
                Stop::Gone
            }
        }
    }

    /// The message that a client gets instead of the window's own. It names the window, as the window would have.
    pub(crate) fn stopped_bytes(&self, stop: Stop) -> Vec<u8> {
        let window = heard::described(&self.window);
        let what = match stop {
            Stop::Cancelled => {
                self.call.seen.end(Some(CANCELLED));
                return message::interrupted_bytes(self.call.era, &self.call.id);
            }
            Stop::Gone => format!("Window {window} exited during this call"),
            Stop::Ended => format!("The coordinator was stopped while window {window} ran this call"),
            Stop::Drained => {
                format!("Window {window} handed over, and the call was canceled after {} s", DRAIN_MS / 1000)
            }
        };
        let mut failure = outcome_unknown(&what);
        if plant::has(Plant::ToldUnrun) {
            failure.code = "window_unreachable";
        }
        self.call.seen.fail(&failure);
        message::tool_failure_bytes(self.call.era, &self.call.id, &failure)
    }
}
