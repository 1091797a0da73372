//! The body of an answer that keeps its call running until it is written.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use baton_agent_tools::calls::Running;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Bytes, Frame, SizeHint};

/// The body of an answer; its call runs until it is written.
pub(super) struct Counted {
    body: BoxBody<Bytes, Infallible>,
    _running: Option<Running>,
}

impl Counted {
    pub(super) fn new(body: BoxBody<Bytes, Infallible>, running: Option<Running>) -> Self {
        Self { body, _running: running }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
