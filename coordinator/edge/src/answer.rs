//! The streamed answer of a window: whole events only, and a last one whatever happens to the window.

use baton_mcp::events::{end_of_events, has_answer};
use baton_mcp::revision::Era;
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::detach;
use super::exchange::{Exchange, Stop};
use super::streams::event;

/// Largest single event.
const EVENT_MAX: usize = 64 * 1024 * 1024;

/// What to do with the connection when the answer is complete.
type Keep = Box<dyn FnOnce(&Exchange) + Send>;

/// The events of an answer.
pub(crate) struct Events {
    /// Taken when the answer is complete, or goes on without a listener.
    upstream: Option<(Exchange, Incoming, Keep)>,
    /// The beginning of an event whose end is awaited.
    buffer: BytesMut,
    /// True once the answer itself, not only notices, has gone out.
    is_answered: bool,
}

impl Events {
    pub(crate) fn new(exchange: Exchange, incoming: Incoming, keep: Keep) -> Self {
        Self { upstream: Some((exchange, incoming, keep)), buffer: BytesMut::new(), is_answered: false }
    }

    /// The bytes for the client.
    pub(crate) fn stream(self) -> impl Stream<Item = Bytes> + Send {
        futures_util::stream::unfold(self, |mut events| async move {
            let bytes = events.next().await?;
            Some((bytes, events))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let (exchange, incoming, _) = self.upstream.as_mut()?;
            let frame = tokio::select! {
                biased;
                frame = incoming.frame() => frame,
                stop = exchange.stopped() => return self.end(stop),
            };
            match frame {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let n_seen = self.buffer.len();
                    self.buffer.extend_from_slice(&data);
                    if self.buffer.len() > EVENT_MAX {
                        let (call, window) = exchange.names();
                        tracing::warn!(%call, %window, "a window sent an event that is too large");
                        return self.end(Stop::Gone);
                    }
                    if let Some(events) = self.whole_events(n_seen) {
                        return Some(events);
                    }
                }
                Some(Err(error)) => {
                    let (call, window) = exchange.names();
                    tracing::info!(%call, %window, %error, "a window died while answering");
                    return self.end(Stop::Gone);
                }
                None if self.is_answered => {
                    let (exchange, _, keep) = self.upstream.take()?;
                    keep(&exchange);
                    return None;
                }
                None => return self.end(Stop::Gone),
            }
        }
    }

    /// Cuts the whole events off the buffer.
    fn whole_events(&mut self, n_seen: usize) -> Option<Bytes> {
        let end = end_of_events(&self.buffer, n_seen)?;
        let events = self.buffer.split_to(end).freeze();
        let (exchange, ..) = self.upstream.as_ref()?;
        if !self.is_answered && has_answer(&events, &exchange.call.id) {
            self.is_answered = true;
            exchange.call.seen.end_with(&events);
        }
        Some(events)
    }

    /// The last event, when the window has not sent it.
    fn end(&mut self, stop: Stop) -> Option<Bytes> {
        let (exchange, ..) = self.upstream.take()?;
        (!self.is_answered).then(|| event(&exchange.stopped_bytes(stop)))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let Some((exchange, mut incoming, _)) = self.upstream.take() else { return };
        if exchange.call.era == Era::Stateless {
            // Dropping the connection is what cancels the call.
            return;
        }
        detach::spawn(async move {
            let rest = async { while let Some(Ok(_)) = incoming.frame().await {} };
            tokio::select! {
                () = rest => {}
                _ = exchange.stopped() => {}
            }
        });
    }
}
