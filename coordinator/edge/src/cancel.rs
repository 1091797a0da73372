//! Calls that a client of an older revision can cancel, by session and request id.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Session and request id.
type Key = ([u8; 16], Box<str>);

/// How long a cancellation waits for a call that it has overtaken on another connection.
const OVERTAKEN: Duration = Duration::from_secs(2);
/// Most cancellations that wait; of those that come too late for their calls nobody takes notice either.
const WAITING_MAX: usize = 256;

/// All running calls of all sessions.
#[derive(Default)]
pub(crate) struct Cancellations {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    running: HashMap<Key, CancellationToken>,
    /// Cancellations of calls that are not there, oldest first.
    waiting: VecDeque<(Instant, Key)>,
}

/// One running call; leaves the table when it is dropped.
pub(crate) struct Running {
    table: Arc<Cancellations>,
    key: Key,
    token: CancellationToken,
}

impl Cancellations {
    /// Enters a call; `None` when the session has one with this id already.
    pub(crate) fn enter(self: &Arc<Self>, session: [u8; 16], id: &str) -> Option<Running> {
        let key = (session, Box::from(id));
        let mut tables = self.tables.lock();
        let Entry::Vacant(vacant) = tables.running.entry(key.clone()) else { return None };
        let token = vacant.insert(CancellationToken::new()).clone();
        if let Some(idx) = tables.waiting.iter().position(|(_, waiting)| *waiting == key)
            && let Some((since, _)) = tables.waiting.remove(idx)
            && since.elapsed() < OVERTAKEN
        {
            token.cancel();
        }
        Some(Running { table: self.clone(), key, token })
    }

    /// Cancels a call that runs, or one that comes a moment later: the two travel on connections of their own.
    pub(crate) fn cancel(&self, session: [u8; 16], id: &str) {
        let key = (session, Box::from(id));
        let mut tables = self.tables.lock();
        if let Some(token) = tables.running.get(&key) {
            token.cancel();
            return;
        }
        if tables.waiting.len() == WAITING_MAX {
            tables.waiting.pop_front();
        }
        tables.waiting.push_back((Instant::now(), key));
    }
}

impl Running {
    /// True once the client has cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Ends when the client cancels.
    pub(crate) async fn cancelled(&self) {
        self.token.cancelled().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.table.tables.lock().running.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cancellation_that_overtook_its_call_still_counts_for_a_moment() {
        let table = Arc::new(Cancellations::default());
        let is_cancelled = |id: &str| table.enter([1; 16], id).unwrap().is_cancelled();
        table.cancel([1; 16], "1");
        assert!(!is_cancelled("2") && is_cancelled("1"));
        assert!(!is_cancelled("1"), "it counts once");
        table.cancel([1; 16], "3");
        tokio::time::advance(OVERTAKEN).await;
        assert!(!is_cancelled("3"));
    }

    #[tokio::test]
    async fn a_flood_of_late_cancellations_is_bounded() {
        let table = Arc::new(Cancellations::default());
        for n in 0..10_000 {
            table.cancel([1; 16], &n.to_string());
        }
        assert_eq!(table.tables.lock().waiting.len(), WAITING_MAX);
    }
}
