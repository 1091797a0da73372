//! Open GET and listen streams: what tells clients that the list of tools may have changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use baton_http::guard::Holder;
use bytes::Bytes;
use futures_util::Stream;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

/// How often an open stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Streams of all client tokens at once, half of the connections that one may have; of more, the oldest one ends, those
/// of earlier tokens first, so that no client can keep others from theirs.
const TOKENS_MAX: usize = 1024;
/// Streams on the socket at once, half of the connections there: what the holders of tokens open ends none of these.
const SOCKET_MAX: usize = 256;

/// All open streams.
pub(crate) struct Streams {
    /// Counts changes; clients that are slow hear of several at once.
    changes: watch::Sender<u64>,
    table: Mutex<Table>,
    closing: CancellationToken,
}

#[derive(Default)]
struct Table {
    /// All of them, those of each holder oldest first.
    open: BTreeMap<Key, oneshot::Sender<End>>,
    /// The GET stream of each session: a message goes out on one stream only, so a new one ends the old one.
    gets: HashMap<[u8; 16], Key>,
    last_key: u64,
}

/// Whose a stream is, and its own number.
type Key = (Holder, u64);

/// Why a stream ends before its time.
#[derive(Clone, Copy)]
enum End {
    /// A newer one needs the place.
    Crowded,
    /// Its token is worth nothing any more.
    Rotated,
}

impl End {
    /// What it hears last, when it is owed no answer.
    fn farewell(self) -> Bytes {
        Bytes::from_static(match self {
            Self::Crowded => b": closed: too many open streams\n\n",
            Self::Rotated => b": closed: the token was rotated\n\n",
        })
    }
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
        Arc::new(Self { changes: watch::Sender::new(0), table: Mutex::default(), closing })
    }

    /// Tells everybody.
    pub(crate) fn announce(&self) {
        self.changes.send_modify(|n_changes| *n_changes += 1);
    }

    /// The GET stream of a session.
    pub(crate) fn get(
        self: &Arc<Self>,
        holder: Holder,
        session: [u8; 16],
    ) -> impl Stream<Item = Bytes> + Send + use<> {
        let change = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let script = Script {
            opening: Bytes::from_static(b": open\n\n"),
            change: event(change.as_bytes()),
            closing: Bytes::new(),
        };
        self.stream(holder, script, Some(session))
    }

    /// A stream that belongs to one request.
    pub(crate) fn listen(
        self: &Arc<Self>,
        holder: Holder,
        script: Script,
    ) -> impl Stream<Item = Bytes> + Send + use<> {
        self.stream(holder, script, None)
    }

    /// Ends the GET stream of a session.
    pub(crate) fn end(&self, session: [u8; 16]) {
        let mut table = self.table();
        if let Some(key) = table.gets.remove(&session) {
            table.open.remove(&key);
        }
    }

    /// Ends the streams of tokens that are older than that rotation.
    pub(crate) fn end_earlier(&self, epoch: u32) {
        let mut table = self.table();
        let others = table.open.split_off(&(Holder::Token { epoch }, 0));
        for earlier in std::mem::replace(&mut table.open, others).into_values() {
            // It may have ended by itself.
            let _ = earlier.send(End::Rotated);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    fn enter(self: &Arc<Self>, holder: Holder, session: Option<[u8; 16]>) -> (oneshot::Receiver<End>, Place) {
        let (end, ended) = oneshot::channel();
        let mut table = self.table();
        if let Some(oldest) = table.in_the_way_of(holder).and_then(|key| table.open.remove(&key)) {
            tracing::warn!(?holder, "too many client streams; closed the oldest");
            // It may have ended by itself.
            let _ = oldest.send(End::Crowded);
        }
        table.last_key += 1;
        let key = (holder, table.last_key);
        table.open.insert(key, end);
        if let Some(older) = session.and_then(|session| table.gets.insert(session, key)) {
            table.open.remove(&older);
        }
        (ended, Place { streams: self.clone(), key, session })
    }

    fn stream(
        self: &Arc<Self>,
        holder: Holder,
        script: Script,
        session: Option<[u8; 16]>,
    ) -> impl Stream<Item = Bytes> + Send + use<> {
        let (ended, place) = self.enter(holder, session);
        let mut keep_alive = tokio::time::interval(KEEP_ALIVE);
        keep_alive.reset();
        let open = Open {
            script,
            ended,
            _place: place,
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

impl Table {
    /// The stream that must end before `holder` may have one more; `None` when none must.
    fn in_the_way_of(&self, holder: Holder) -> Option<Key> {
        let (from, to, most) = match holder {
            Holder::Token { .. } => {
                (Holder::Token { epoch: 0 }, Holder::Token { epoch: u32::MAX }, TOKENS_MAX)
            }
            Holder::Socket => (holder, holder, SOCKET_MAX),
        };
        let mut there = self.open.range((from, 0)..=(to, u64::MAX)).map(|(key, _)| *key);
        let first = there.next();
        // Without the first.
        first.filter(|_| there.count() + 1 >= most)
    }
}

/// One event with a message in it.
pub(crate) fn event(message: &[u8]) -> Bytes {
    [b"data: ", message, b"\n\n"].concat().into()
}

/// An entry of [`Table`].
struct Place {
    streams: Arc<Streams>,
    key: Key,
    session: Option<[u8; 16]>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.streams.table();
        table.open.remove(&self.key);
        // A newer stream of the session keeps its own.
        if let Some(session) = self.session
            && table.gets.get(&session) == Some(&self.key)
        {
            table.gets.remove(&session);
        }
    }
}

struct Open {
    script: Script,
    ended: oneshot::Receiver<End>,
    _place: Place,
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
            tokio::select! {
                biased;
                ended = &mut self.ended => {
                    self.is_closed = true;
                    let closing = Some(self.script.closing.clone()).filter(|closing| !closing.is_empty());
                    return ended.ok().map(|end| closing.unwrap_or_else(|| end.farewell()));
                }
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

    const CLIENT: Holder = Holder::Token { epoch: 1 };

    fn script() -> Script {
        Script { opening: event(b"1"), change: event(b"2"), closing: event(b"3") }
    }

    #[tokio::test]
    async fn a_session_hears_of_a_change_on_its_newest_stream_only() {
        let streams = Streams::new(CancellationToken::new());
        let mut old = std::pin::pin!(streams.get(CLIENT, [1; 16]));
        assert_eq!(old.next().await.unwrap(), ": open\n\n");
        let mut new = std::pin::pin!(streams.get(CLIENT, [1; 16]));
        assert_eq!(new.next().await.unwrap(), ": open\n\n");
        streams.announce();
        assert_eq!(old.next().await, None);
        let notice = new.next().await.unwrap();
        assert!(notice.starts_with(b"data: {") && notice.ends_with(b"}\n\n"), "{notice:?}");
    }

    #[tokio::test]
    async fn of_too_many_streams_the_oldest_ends_with_a_word() {
        let streams = Streams::new(CancellationToken::new());
        let mut first = std::pin::pin!(streams.get(CLIENT, [1; 16]));
        first.next().await;
        let others: Vec<_> = (0..TOKENS_MAX).map(|_| streams.listen(CLIENT, script())).collect();
        assert_eq!(first.next().await.unwrap(), End::Crowded.farewell());
        assert_eq!(first.next().await, None);
        drop(others);
        assert!(streams.table().open.is_empty() && streams.table().gets.is_empty());
    }

    #[tokio::test]
    async fn who_has_one_token_ends_no_stream_of_others() {
        let streams = Streams::new(CancellationToken::new());
        let mut bridged = std::pin::pin!(streams.listen(Holder::Socket, script()));
        let mut present = std::pin::pin!(streams.listen(CLIENT, script()));
        let mut earlier = std::pin::pin!(streams.listen(Holder::Token { epoch: 0 }, script()));
        for stream in [&mut bridged, &mut present, &mut earlier] {
            assert_eq!(stream.next().await.unwrap(), event(b"1"));
        }
        let mut others: Vec<_> = (0..TOKENS_MAX - 1).map(|_| streams.listen(CLIENT, script())).collect();
        assert_eq!(earlier.next().await.unwrap(), event(b"3"), "its token is worth nothing any more");
        others.push(streams.listen(CLIENT, script()));
        assert_eq!(present.next().await.unwrap(), event(b"3"), "the oldest");
        let bridges: Vec<_> = (0..SOCKET_MAX - 1).map(|_| streams.listen(Holder::Socket, script())).collect();
        streams.announce();
        assert_eq!(bridged.next().await.unwrap(), event(b"2"), "it has another share");
        let _one_more = streams.listen(Holder::Socket, script());
        assert_eq!(bridged.next().await.unwrap(), event(b"3"));
        drop((others, bridges));
    }

    #[tokio::test]
    async fn a_rotation_ends_the_streams_of_earlier_tokens() {
        let streams = Streams::new(CancellationToken::new());
        let mut bridged = std::pin::pin!(streams.listen(Holder::Socket, script()));
        let mut earlier = std::pin::pin!(streams.get(CLIENT, [1; 16]));
        let mut present = std::pin::pin!(streams.get(Holder::Token { epoch: 2 }, [2; 16]));
        bridged.next().await;
        earlier.next().await;
        present.next().await;
        streams.end_earlier(2);
        assert_eq!(earlier.next().await.unwrap(), End::Rotated.farewell());
        assert_eq!(earlier.next().await, None);
        streams.announce();
        assert_eq!(bridged.next().await.unwrap(), event(b"2"));
        assert!(present.next().await.unwrap().starts_with(b"data: {"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_stream_ticks_and_a_closed_one_leaves_nothing_behind() {
        let closing = CancellationToken::new();
        let streams = Streams::new(closing.clone());
        {
            let mut stream = std::pin::pin!(streams.get(CLIENT, [1; 16]));
            stream.next().await;
            assert_eq!(stream.next().await.unwrap(), ": tick\n\n");
        }
        let mut listen = std::pin::pin!(streams.listen(CLIENT, script()));
        assert_eq!(listen.next().await.unwrap(), event(b"1"));
        streams.announce();
        streams.announce();
        assert_eq!(listen.next().await.unwrap(), event(b"2"));
        closing.cancel();
        assert_eq!(listen.next().await.unwrap(), event(b"3"));
        assert_eq!(listen.next().await, None);
    }
}
