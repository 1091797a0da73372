//! The open event streams of the windows: bounded, and their end is noticed.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_proto::control::Notice;
use baton_proto::ids::WindowId;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

/// Notices that wait for a window to read them; a window further behind is as good as gone.
const NOTICES: usize = 64;

/// How long after its registration a window may take to open its stream, whose end is what shows a death at once.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// The window's end of its event stream.
#[derive(Debug)]
pub struct Events {
    pub(super) notices: mpsc::Receiver<Notice>,
    /// Dropped with the stream, which is how the keeper learns of its end.
    _alive: oneshot::Sender<()>,
}

impl Events {
    /// The next notice; `None` when the coordinator ends the stream.
    pub async fn next(&mut self) -> Option<Notice> {
        self.notices.recv().await
    }
}

/// All streams; at most one for each window counts.
#[derive(Default)]
pub(super) struct Streams {
    open: BTreeMap<WindowId, Stream>,
    ends: FuturesUnordered<BoxFuture<'static, (WindowId, u64)>>,
    last_serial: u64,
}

struct Stream {
    incarnation: u64,
    /// Tells this stream from an earlier one of the same incarnation, whose end means nothing.
    serial: u64,
    notices: mpsc::Sender<Notice>,
}

impl Streams {
    /// Opens a stream in place of the one the window had.
    pub(super) fn open(&mut self, window: WindowId, incarnation: u64) -> Events {
        let (notices, reader) = mpsc::channel(NOTICES);
        let (alive, end) = oneshot::channel();
        self.insert(window, incarnation, notices, async { _ = end.await });
        Events { notices: reader, _alive: alive }
    }

    /// A window registered: unless it has a stream, one that ends by itself stands in until it opens its own.
    pub(super) fn expect(&mut self, window: &WindowId, incarnation: u64) {
        if self.open.get(window).is_none_or(|stream| stream.incarnation != incarnation) {
            let (nobody, _) = mpsc::channel(1);
            self.insert(window.clone(), incarnation, nobody, tokio::time::sleep(OPEN_TIMEOUT));
        }
    }

    fn insert(
        &mut self,
        window: WindowId,
        incarnation: u64,
        notices: mpsc::Sender<Notice>,
        end: impl Future<Output = ()> + Send + 'static,
    ) {
        self.last_serial += 1;
        let serial = self.last_serial;
        self.open.insert(window.clone(), Stream { incarnation, serial, notices });
        self.ends.push(Box::pin(async move {
            end.await;
            (window, serial)
        }));
    }

    /// Waits for the end of a stream that counts: its window and incarnation. Cancel safe.
    pub(super) async fn next_closed(&mut self) -> (WindowId, u64) {
        loop {
            let Some((window, serial)) = self.ends.next().await else {
                // With no stream at all there is nothing to wait for; a new one ends this wait.
                return std::future::pending().await;
            };
            if let Some(stream) = self.open.get(&window).filter(|stream| stream.serial == serial) {
                let incarnation = stream.incarnation;
                self.open.remove(&window);
                return (window, incarnation);
            }
        }
    }

    /// True when the window has a stream that took the notice.
    pub(super) fn send(&mut self, window: &WindowId, notice: Notice) -> bool {
        let Some(stream) = self.open.get(window) else { return false };
        match stream.notices.try_send(notice) {
            Ok(()) => true,
            Err(error) => {
                if matches!(error, mpsc::error::TrySendError::Full(_)) {
                    warn!(%window, "the window does not read its events; closed its stream");
                    self.cut(window);
                }
                false
            }
        }
    }

    pub(super) fn send_to_all(&mut self, notice: &Notice) {
        let windows: Vec<_> = self.open.keys().cloned().collect();
        for window in windows {
            self.send(&window, notice.clone());
        }
    }

    /// Ends a stream on our side; its end means nothing any more. `incarnation` limits it to that one.
    pub(super) fn close(&mut self, window: &WindowId, incarnation: Option<u64>) {
        let is_meant = |stream: &Stream| incarnation.is_none_or(|only| only == stream.incarnation);
        if self.open.get(window).is_some_and(is_meant) {
            self.open.remove(window);
        }
    }

    /// Ends all streams on our side.
    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }

    /// Ends a stream on our side as if the window had: it counts as vanished once the reader is gone.
    fn cut(&mut self, window: &WindowId) {
        if let Some(stream) = self.open.get_mut(window) {
            // The reader drains what it has and then finds this end closed.
            stream.notices = mpsc::channel(1).0;
        }
    }
}
