//! Bodies: a bounded request in, one of a few kinds of answer out.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::connection::Busy;

/// How long the next piece of a request's body may take.
const BODY_IDLE: Duration = Duration::from_secs(30);

/// A body that is not longer has no share of the budget, so that short messages never wait for long ones.
const LONG: usize = 64 * 1024;
/// KiB of long bodies at once, from their first byte until their call is answered: eight of the largest.
const BUDGET_KIB: u32 = 128 * 1024;
/// How long a long body waits for its share; as long as a call waits for a window.
const SHARE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a request's body could not be had.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Larger than the limit, which is given in bytes.
    #[error("the body exceeds {0} bytes")]
    TooLarge(usize),
    /// Nothing came for [`BODY_IDLE`].
    #[error("timed out waiting for the body")]
    Late,
    /// There is no room for it beside other long ones.
    #[error("too many large messages at once; this one was not run; try again")]
    Crowded,
    /// The connection ended, or the framing is broken.
    #[error("the body is incomplete")]
    Broken(#[source] hyper::Error),
}

/// How many bytes of long bodies there are at once; cheap to clone.
#[derive(Clone)]
pub struct Budget(Arc<Semaphore>);

impl Default for Budget {
    /// All of it is free.
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BUDGET_KIB as usize)))
    }
}

impl Budget {
    /// A share for so many bytes, as soon as there is one.
    async fn share(&self, n_bytes: usize) -> Result<OwnedSemaphorePermit, BodyError> {
        let n_kib = u32::try_from(n_bytes.div_ceil(1024)).unwrap_or(BUDGET_KIB);
        let share = timeout(SHARE_TIMEOUT, self.0.clone().acquire_many_owned(n_kib)).await;
        share.ok().and_then(Result::ok).ok_or(BodyError::Crowded)
    }
}

/// A long body: its share is free again when the last who has it is done with it.
struct Weighed {
    bytes: Bytes,
    _share: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Weighed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The whole body, if it is not larger than `limit`, and as soon as there is room for it.
pub async fn collect(mut incoming: Incoming, limit: usize, budget: &Budget) -> Result<Bytes, BodyError> {
    if incoming.is_end_stream() {
        return Ok(Bytes::new());
    }
    let told = incoming.size_hint();
    if told.lower() > limit as u64 {
        return Err(BodyError::TooLarge(limit));
    }
    let told = told.exact().and_then(|len| usize::try_from(len).ok());
    let mut share = match told {
        Some(len) if len > LONG => Some(budget.share(len).await?),
        _ => None,
    };
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let frame = timeout(BODY_IDLE, incoming.frame()).await.map_err(|_| BodyError::Late)?;
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
        let len = first.len() + rest.len() + data.len();
        if len > limit {
            return Err(BodyError::TooLarge(limit));
        }
        if len > LONG && share.is_none() {
            share = Some(budget.share(limit).await?);
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve(told.unwrap_or(len));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
        if incoming.is_end_stream() {
            break;
        }
    }
    let bytes = if rest.is_empty() { first } else { rest.freeze() };
    Ok(match share {
        Some(share) => Bytes::from_owner(Weighed { bytes, _share: share }),
        None => bytes,
    })
}

/// What goes wrong with the body of an answer.
pub type BodyFault = Box<dyn std::error::Error + Send + Sync>;

/// Body of an answer.
pub struct Body {
    kind: Kind,
    busy: Option<Busy>,
}

enum Kind {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    Other(UnsyncBoxBody<Bytes, BodyFault>),
}

impl Body {
    /// Nothing.
    pub fn empty() -> Self {
        Self::from_kind(Kind::Whole(None))
    }

    /// All of it at once.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::from_kind(Kind::Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty())))
    }

    /// Piece by piece.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::from_kind(Kind::Stream(Box::pin(stream)))
    }

    /// Another one's, as it comes; what goes wrong with it tears the connection.
    pub fn other<B>(body: B) -> Self
    where
        B: hyper::body::Body<Data = Bytes, Error: Into<BodyFault>> + Send + 'static,
    {
        Self::from_kind(Kind::Other(body.map_err(Into::into).boxed_unsync()))
    }

    /// The same; each piece of a stream is shown to `see` as it goes out. What is whole is not shown.
    pub fn shown_to(self, see: impl FnMut(&Bytes) + Send + 'static) -> Self {
        match self.kind {
            Kind::Stream(stream) => Self { kind: Kind::Stream(Box::pin(stream.inspect(see))), ..self },
            kind => Self { kind, ..self },
        }
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

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|item| item.map(|bytes| Ok(Frame::data(bytes))))
            }
            Kind::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Stream(_) => false,
            Kind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Stream(_) => SizeHint::default(),
            Kind::Other(body) => body.size_hint(),
        }
    }
}
