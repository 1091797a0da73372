//! Bodies: a bounded request in, one of a few kinds of answer out.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::accept::Busy;

/// How long the next piece of a request's body may take.
const BODY_IDLE: Duration = Duration::from_secs(30);

/// Why a request's body could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// Larger than the limit, which is given in bytes.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// Nothing came for [`BODY_IDLE`].
    #[error("the body did not arrive in time")]
    Late,
    /// The connection ended, or the framing is broken.
    #[error("the body is incomplete")]
    Broken(#[source] hyper::Error),
}

/// The whole body, if it is not larger than `limit`.
pub(crate) async fn collect(mut incoming: Incoming, limit: usize) -> Result<Bytes, BodyError> {
    if incoming.is_end_stream() {
        return Ok(Bytes::new());
    }
    if incoming.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge(limit));
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let frame = tokio::time::timeout(BODY_IDLE, incoming.frame()).await.map_err(|_| BodyError::Late)?;
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            return Err(BodyError::TooLarge(limit));
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
        if incoming.is_end_stream() {
            break;
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

/// Body of an answer.
pub(crate) struct Body {
    kind: Kind,
    busy: Option<Busy>,
}

enum Kind {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    Control(axum::body::Body),
}

impl Body {
    /// Nothing.
    pub(crate) fn empty() -> Self {
        Self::from_kind(Kind::Whole(None))
    }

    /// All of it at once.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::from_kind(Kind::Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty())))
    }

    /// Piece by piece.
    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::from_kind(Kind::Stream(Box::pin(stream)))
    }

    /// The control router's.
    pub(crate) fn control(body: axum::body::Body) -> Self {
        Self::from_kind(Kind::Control(body))
    }

    fn from_kind(kind: Kind) -> Self {
        Self { kind, busy: None }
    }

    /// The connection is busy until this body ends.
    pub(crate) fn with_busy(mut self, busy: Busy) -> Self {
        self.busy = Some(busy);
        self
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|item| item.map(|bytes| Ok(Frame::data(bytes))))
            }
            Kind::Control(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Stream(_) => false,
            Kind::Control(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Stream(_) => SizeHint::default(),
            Kind::Control(body) => body.size_hint(),
        }
    }
}
