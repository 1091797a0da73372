//! The stream of an open page: all that there is to see when it opens, and then whatever changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_election::roster::Roster;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Page;
use crate::story::Story;

/// Pages that are open at once.
const STREAMS_MAX: usize = 16;
/// Calls that a page which opens gets at once; it asks for older ones.
const FIRST_CALLS: usize = 100;
/// Changes within this time are told together: a page draws no faster.
const TOGETHER: Duration = Duration::from_millis(100);
/// A stream that says nothing for longer could be a lost one.
const TICK: Duration = Duration::from_secs(15);
/// How often an open page hears of the clients, which change with each call.
const CLIENTS_EVERY: Duration = Duration::from_secs(2);

/// See the module.
pub(crate) struct Stream {
    page: Page,
    roster: watch::Receiver<Arc<Roster>>,
    story: watch::Receiver<Arc<Story>>,
    holdings: watch::Receiver<()>,
    calls: watch::Receiver<u64>,
    /// The last change of a call that was told.
    seq: u64,
    /// When all but the calls was told last; and whether clients have called since.
    told: Option<Instant>,
    is_stale: bool,
    /// Something of the windows has changed since.
    is_changed: bool,
    _place: Place,
}

/// One of the streams that may be open.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(n_streams: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(n_streams.clone());
        (n_streams.fetch_add(1, Ordering::Relaxed) < STREAMS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Stream {
    /// `None` when too many are open.
    pub(crate) fn open(page: &Page) -> Option<Self> {
        let place = Place::take(&page.0.n_streams)?;
        Some(Self {
            roster: page.0.keeper.watch(),
            story: page.0.story.clone(),
            holdings: page.0.holdings.watch(),
            calls: page.0.journal.watch(),
            page: page.clone(),
            seq: 0,
            told: None,
            is_stale: true,
            is_changed: true,
            _place: place,
        })
    }

    /// Events until the page is closed, or the coordinator ends.
    pub(crate) fn run(self) -> impl futures_util::Stream<Item = Bytes> + Send + 'static {
        futures_util::stream::unfold(self, |mut stream| async move { Some((stream.next().await?, stream)) })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.told.is_none() {
            return Some(self.news());
        }
        let refresh = self
            .told
            .filter(|_| self.is_stale)
            .map_or(TICK, |told| CLIENTS_EVERY.saturating_sub(told.elapsed()));
        tokio::select! {
            () = self.page.0.closing.cancelled() => return None,
            changed = self.roster.changed() => {
                changed.ok()?;
                self.is_changed = true;
            }
            changed = self.story.changed() => {
                changed.ok()?;
                self.is_changed = true;
            }
            changed = self.holdings.changed() => {
                changed.ok()?;
                self.is_changed = true;
            }
            changed = self.calls.changed() => changed.ok()?,
            () = tokio::time::sleep(refresh) => if !self.is_stale {
                return Some(Bytes::from_static(b": tick\n\n"));
            },
        }
        tokio::time::sleep(TOGETHER).await;
        Some(self.news())
    }

    /// What is new since the last time.
    fn news(&mut self) -> Bytes {
        let mut text = String::new();
        // Before it is looked: what changes meanwhile wakes us again.
        self.calls.mark_unchanged();
        let (calls, seq) = self.page.0.journal.changed_after(self.seq, FIRST_CALLS);
        self.is_stale |= !calls.is_empty();
        let is_due = self.told.is_none_or(|told| self.is_stale && told.elapsed() >= CLIENTS_EVERY);
        if self.is_changed || is_due {
            self.roster.mark_unchanged();
            self.story.mark_unchanged();
            self.holdings.mark_unchanged();
            (self.told, self.is_stale, self.is_changed) = (Some(Instant::now()), false, false);
            text += &event("overview", &self.page.overview());
        }
        self.seq = seq;
        if !calls.is_empty() {
            text += &event("calls", &calls);
        }
        text.into()
    }
}

fn event(name: &str, data: &impl Serialize) -> String {
    // JSON has no line break of its own.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
