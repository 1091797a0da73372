//! The streamed answer of a window: whole events only, and a last one whatever happens to the window.

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::detach;
use super::forward::{Exchange, Stop, stopped_bytes};
use super::revision::Era;
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
                        tracing::warn!("a window sent an event without end");
                        return self.end(Stop::Gone);
                    }
                    if let Some(events) = self.whole_events(n_seen) {
                        return Some(events);
                    }
                }
                Some(Err(error)) => {
                    tracing::info!(%error, "a window died in mid-answer");
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
        self.is_answered = self.is_answered || has_answer(&events, &exchange.call.id);
        Some(events)
    }

    /// The last event, when the window has not sent it.
    fn end(&mut self, stop: Stop) -> Option<Bytes> {
        let (exchange, ..) = self.upstream.take()?;
        (!self.is_answered).then(|| event(&stopped_bytes(&exchange.call, stop)))
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

/// Where the last whole event in `buffer` ends; there is none in its first `n_seen` bytes, which are not searched
/// again.
pub(crate) fn end_of_events(buffer: &[u8], n_seen: usize) -> Option<usize> {
    let start = n_seen.saturating_sub(1);
    Some(start + buffer[start..].windows(2).rposition(|pair| pair == b"\n\n")? + 2)
}

/// True when one of the events answers the request `id`.
pub(crate) fn has_answer(events: &[u8], id: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
        #[serde(borrow, default)]
        method: Option<&'a RawValue>,
    }
    let lines = events.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.strip_prefix(b"data:")).any(|data| {
        serde_json::from_slice::<Head<'_>>(data)
            .is_ok_and(|head| head.method.is_none() && head.id.is_some_and(|it| it.get() == id.get()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_events_are_cut_off() {
        assert_eq!(end_of_events(b"data: 1\n\ndata", 0), Some(9));
        assert_eq!(end_of_events(b"data: 1\n\n", 8), Some(9), "the end came in two pieces");
        assert_eq!(end_of_events(b"data: 1\n", 0), None);
        assert_eq!(end_of_events(b"", 0), None);
    }

    #[test]
    fn the_answer_is_told_from_notices() {
        let id: Box<RawValue> = serde_json::from_str("7").unwrap();
        let notice = br#"data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"id":7}}"#;
        let other = br#"data: {"jsonrpc":"2.0","id":"7","result":{}}"#;
        assert!(!has_answer(notice, &id) && !has_answer(other, &id) && !has_answer(b": tick\n\n", &id));
        assert!(has_answer(b": x\n\nevent: message\ndata:{\"id\":7,\"result\":{}}\n\n", &id));
    }
}
