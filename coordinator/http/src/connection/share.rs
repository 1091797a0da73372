//! The parts of all connections that MCP clients may have: one for each of those who may call, so that none of them
//! can shut out another. The rest is for windows and commands.
//!
//! | who | at most |
//! |---|---|
//! | one client token | [`TOKEN_SHARE`] |
//! | all client tokens: the present one, and those of connections that are older than the last rotation | [`TOKENS_SHARE`] |
//! | `baton stdio`, on the socket | [`SOCKET_SHARE`] |

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{RangeBounds, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::connection::{Connection, Farewell};
use crate::guard::Holder;

/// Connections of one client token at once.
const TOKEN_SHARE: usize = 2048;
/// Connections of all client tokens at once: a rotation leaves 512 to the new one, whatever the old one holds.
const TOKENS_SHARE: usize = 2560;
/// Connections on the socket at once: some hundred clients of `baton stdio`. What these leave of all connections takes a
/// thousand windows and commands, and those who have not said yet what they are.
const SOCKET_SHARE: usize = 512;
/// A connection that has been idle for so long gives way when there are too many.
const IDLE_MIN: Duration = Duration::from_secs(1);

/// Whose a connection is, and its own key.
type Key = (Holder, u64);

/// The connections of MCP clients.
#[derive(Default)]
pub(crate) struct Share(Mutex<BTreeMap<Key, Arc<Connection>>>);

impl Share {
    /// Counts a connection of `holder`; false when there are too many, and none of those that may have to give way
    /// idles.
    pub(crate) fn enter(&self, holder: Holder, connection: &Arc<Connection>) -> bool {
        let mut open = self.0.lock();
        if let Some(crowd) = crowd(&open, holder) {
            // Who has an earlier token has no more use for a connection.
            let by_age_of_token = |(key, idle_for): &(Key, Duration)| (Reverse(key.0), *idle_for);
            let Some((key, _)) = idle(&open, crowd).max_by_key(by_age_of_token) else {
                tracing::warn!(?holder, "too many MCP connections; refused a request");
                return false;
            };
            close(&mut open, key);
        }
        open.insert((holder, connection.key), connection.clone());
        true
    }

    /// Closes the one of all that has idled longest; false when none idles.
    pub(crate) fn give_way(&self) -> bool {
        let mut open = self.0.lock();
        let longest = idle(&open, ..).max_by_key(|(_, idle_for)| *idle_for);
        if let Some((key, _)) = longest {
            close(&mut open, key);
        }
        longest.is_some()
    }

    /// A connection of `holder` has ended.
    pub(crate) fn leave(&self, holder: Holder, connection: &Connection) {
        self.0.lock().remove(&(holder, connection.key));
    }
}

/// Those that may have to give way, and how long each has been idle.
fn idle(
    open: &BTreeMap<Key, Arc<Connection>>,
    crowd: impl RangeBounds<Key>,
) -> impl Iterator<Item = (Key, Duration)> {
    let idle = open.range(crowd).filter_map(|(key, other)| Some((*key, other.idle_for()?)));
    idle.filter(|(_, idle_for)| *idle_for >= IDLE_MIN)
}

fn close(open: &mut BTreeMap<Key, Arc<Connection>>, key: Key) {
    if let Some(connection) = open.remove(&key) {
        connection.close(Farewell::Crowded);
    }
}

/// Those among whom one must give way before `holder` may have one more; `None` when nobody must.
fn crowd(open: &BTreeMap<Key, Arc<Connection>>, holder: Holder) -> Option<RangeInclusive<Key>> {
    let own = (holder, 0)..=(holder, u64::MAX);
    let tokens = (Holder::Token { epoch: 0 }, 0)..=(Holder::Token { epoch: u32::MAX }, u64::MAX);
    let bounds = match holder {
        Holder::Token { .. } => vec![(own, TOKEN_SHARE), (tokens, TOKENS_SHARE)],
        Holder::Socket => vec![(own, SOCKET_SHARE)],
    };
    let full = bounds.into_iter().find(|(crowd, most)| open.range(crowd.clone()).count() >= *most);
    full.map(|(crowd, _)| crowd)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::connection::{Busy, Connections};
    use crate::guard::Way;

    const OLD: Holder = Holder::Token { epoch: 3 };
    const NEW: Holder = Holder::Token { epoch: 4 };

    struct Crowd {
        all: Arc<Connections>,
        share: Share,
        busy: Vec<Busy>,
    }

    impl Crowd {
        fn new() -> Self {
            Self { all: Connections::new(), share: Share::default(), busy: Vec::new() }
        }

        /// One more connection, which is being answered, if it is let in.
        fn busy(&mut self, holder: Holder) -> bool {
            let connection = Connection::open(Way::Socket, &self.all);
            self.busy.push(connection.busy());
            self.share.enter(holder, &connection)
        }

        /// One more connection, which has been answered.
        fn idle(&self, holder: Holder) -> Arc<Connection> {
            let connection = Connection::open(Way::Socket, &self.all);
            let busy = connection.busy();
            assert!(self.share.enter(holder, &connection));
            drop(busy);
            connection
        }
    }

    fn is_closed(connection: &Connection) -> bool {
        connection.closed().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn one_token_shuts_out_neither_the_next_nor_the_socket() {
        let mut crowd = Crowd::new();
        let n_let_in = (0..3000).filter(|_| crowd.busy(OLD)).count();
        assert_eq!(n_let_in, TOKEN_SHARE, "all of them are busy");
        let n_let_in = (0..3000).filter(|_| crowd.busy(NEW)).count();
        assert_eq!(n_let_in, TOKENS_SHARE - TOKEN_SHARE);
        let n_let_in = (0..3000).filter(|_| crowd.busy(Holder::Socket)).count();
        assert_eq!(n_let_in, SOCKET_SHARE);
    }

    #[tokio::test(start_paused = true)]
    async fn the_socket_shuts_out_no_token() {
        let mut crowd = Crowd::new();
        assert_eq!((0..3000).filter(|_| crowd.busy(Holder::Socket)).count(), SOCKET_SHARE);
        assert_eq!((0..3000).filter(|_| crowd.busy(NEW)).count(), TOKEN_SHARE);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_of_ones_own_gives_way() {
        let mut crowd = Crowd::new();
        let others = crowd.idle(Holder::Socket);
        let first = crowd.idle(NEW);
        tokio::time::advance(Duration::from_millis(500)).await;
        let second = crowd.idle(NEW);
        assert_eq!((0..TOKEN_SHARE - 2).filter(|_| crowd.busy(NEW)).count(), TOKEN_SHARE - 2);
        assert!(!crowd.busy(NEW), "none has idled for long");
        tokio::time::advance(Duration::from_millis(500)).await;
        assert!(crowd.busy(NEW));
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&others));
        assert!(!crowd.busy(NEW), "there is one place for one");
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_token_gives_way_first() {
        let mut crowd = Crowd::new();
        let present = crowd.idle(NEW);
        let earlier = crowd.idle(OLD);
        assert_eq!((0..TOKEN_SHARE - 1).filter(|_| crowd.busy(OLD)).count(), TOKEN_SHARE - 1);
        let left = TOKENS_SHARE - TOKEN_SHARE - 1;
        assert_eq!((0..left).filter(|_| crowd.busy(NEW)).count(), left);
        tokio::time::advance(IDLE_MIN).await;
        assert!(crowd.busy(NEW));
        assert!(is_closed(&earlier) && !is_closed(&present));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_idled_longest_gives_way_when_there_is_room_for_nobody() {
        let crowd = Crowd::new();
        let first = crowd.idle(Holder::Socket);
        tokio::time::advance(Duration::from_millis(1)).await;
        let second = crowd.idle(OLD);
        assert!(!crowd.share.give_way(), "none has idled for long");
        tokio::time::advance(IDLE_MIN).await;
        assert!(crowd.share.give_way());
        assert!(is_closed(&first) && !is_closed(&second));
        assert!(crowd.share.give_way() && is_closed(&second));
        assert!(!crowd.share.give_way());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_left_has_no_place() {
        let mut crowd = Crowd::new();
        let one = crowd.idle(NEW);
        assert_eq!((0..3000).filter(|_| crowd.busy(NEW)).count(), TOKEN_SHARE - 1);
        crowd.share.leave(NEW, &one);
        assert!(crowd.busy(NEW) && !crowd.busy(NEW));
    }
}
