//! Open GET and listen streams: what tells clients that the list of tools may have changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::{oneshot, watch};
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

/// How often an open stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// All open streams.
pub(crate) struct Streams {
    /// Counts changes; clients that are slow hear of several at once.
    changes: watch::Sender<u64>,
    /// The GET stream of each session: a message goes out on one stream only, so a new one ends the old one.
    gets: Mutex<HashMap<[u8; 16], oneshot::Sender<()>>>,
    closing: CancellationToken,
}

/// Texts of one stream.
pub(crate) struct Script {
    /// Sent first.
    pub(crate) opening: Bytes,
    /// Sent after every change; empty when nobody wants to know.
    pub(crate) change: Bytes,
    /// Sent last, when the coordinator ends.
    pub(crate) closing: Bytes,
}

impl Streams {
    pub(crate) fn new(closing: CancellationToken) -> Arc<Self> {
        Arc::new(Self { changes: watch::Sender::new(0), gets: Mutex::default(), closing })
    }

    /// Tells everybody.
    pub(crate) fn announce(&self) {
        self.changes.send_modify(|n_changes| *n_changes += 1);
    }

    /// The GET stream of a session.
    pub(crate) fn get(self: &Arc<Self>, session: [u8; 16]) -> impl Stream<Item = Bytes> + Send + use<> {
        let (end, ended) = oneshot::channel();
        self.gets.lock().unwrap_or_else(PoisonError::into_inner).insert(session, end);
        let change = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let script = Script {
            opening: Bytes::from_static(b": open\n\n"),
            change: event(change.as_bytes()),
            closing: Bytes::new(),
        };
        let place = Place { streams: self.clone(), session };
        self.stream(script, Some((ended, place)))
    }

    /// A stream that belongs to one request.
    pub(crate) fn listen(self: &Arc<Self>, script: Script) -> impl Stream<Item = Bytes> + Send + use<> {
        self.stream(script, None)
    }

    /// Ends the GET stream of a session.
    pub(crate) fn end(&self, session: [u8; 16]) {
        self.gets.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    fn stream(
        &self,
        script: Script,
        place: Option<(oneshot::Receiver<()>, Place)>,
    ) -> impl Stream<Item = Bytes> + Send + use<> {
        let mut keep_alive = tokio::time::interval(KEEP_ALIVE);
        keep_alive.reset();
        let open = Open {
            script,
            place,
            keep_alive,
            changes: self.changes.subscribe(),
            closing: self.closing.clone(),
            is_opened: false,
            is_closed: false,
        };
        futures_util::stream::unfold(open, |mut open| async move {
            let bytes = open.next().await?;
            Some((bytes, open))
        })
    }
}

/// One event with a message in it.
pub(crate) fn event(message: &[u8]) -> Bytes {
    [b"data: ", message, b"\n\n"].concat().into()
}

/// An entry of [`Streams::gets`].
struct Place {
    streams: Arc<Streams>,
    session: [u8; 16],
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut gets = self.streams.gets.lock().unwrap_or_else(PoisonError::into_inner);
        // A newer stream of the session keeps its own.
        if gets.get(&self.session).is_some_and(oneshot::Sender::is_closed) {
            gets.remove(&self.session);
        }
    }
}

struct Open {
    script: Script,
    place: Option<(oneshot::Receiver<()>, Place)>,
    keep_alive: Interval,
    changes: watch::Receiver<u64>,
    closing: CancellationToken,
    is_opened: bool,
    is_closed: bool,
}

impl Open {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_closed {
            return None;
        }
        if !std::mem::replace(&mut self.is_opened, true) {
            return Some(self.script.opening.clone());
        }
        loop {
            let replaced = async {
                match &mut self.place {
                    Some((ended, _)) => _ = ended.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = replaced => return None,
                () = self.closing.cancelled() => {
                    self.is_closed = true;
                    return Some(self.script.closing.clone()).filter(|bytes| !bytes.is_empty());
                }
                changed = self.changes.changed() => {
                    changed.ok()?;
                    // An empty piece would end a chunked body.
                    if !self.script.change.is_empty() {
                        return Some(self.script.change.clone());
                    }
                }
                _ = self.keep_alive.tick() => return Some(Bytes::from_static(b": tick\n\n")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_session_hears_of_a_change_on_its_newest_stream_only() {
        let streams = Streams::new(CancellationToken::new());
        let mut old = std::pin::pin!(streams.get([1; 16]));
        assert_eq!(old.next().await.unwrap(), ": open\n\n");
        let mut new = std::pin::pin!(streams.get([1; 16]));
        assert_eq!(new.next().await.unwrap(), ": open\n\n");
        streams.announce();
        assert_eq!(old.next().await, None);
        let notice = new.next().await.unwrap();
        assert!(notice.starts_with(b"data: {") && notice.ends_with(b"}\n\n"), "{notice:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_stream_ticks_and_a_closed_one_leaves_nothing_behind() {
        let closing = CancellationToken::new();
        let streams = Streams::new(closing.clone());
        {
            let mut stream = std::pin::pin!(streams.get([1; 16]));
            stream.next().await;
            assert_eq!(stream.next().await.unwrap(), ": tick\n\n");
        }
        let script = Script { opening: event(b"1"), change: event(b"2"), closing: event(b"3") };
        let mut listen = std::pin::pin!(streams.listen(script));
        assert_eq!(listen.next().await.unwrap(), event(b"1"));
        streams.announce();
        streams.announce();
        assert_eq!(listen.next().await.unwrap(), event(b"2"));
        closing.cancel();
        assert_eq!(listen.next().await.unwrap(), event(b"3"));
        assert_eq!(listen.next().await, None);
    }
}
