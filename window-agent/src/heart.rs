//! Whether the thread of the calls still turns, seen from the lane in which the heart beats.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tracing::{error, info};

/// See the module.
#[derive(Debug)]
pub struct Turns {
    calls: Handle,
    has_turned: Arc<AtomicBool>,
    /// Looks since it turned last.
    n_missed: AtomicU32,
}

/// Looks, one with each heartbeat, after which a thread that never turned is stuck: half a minute. Far more than any
/// call may take of it, and counted in looks, so that a machine that slept counts for nothing.
const MISSED_MAX: u32 = 20;
/// How often a thread that is stuck is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1_500);

impl Turns {
    /// Of the runtime that this is called on.
    pub fn of_this_runtime() -> Self {
        let has_turned = Arc::new(AtomicBool::new(true));
        Self { calls: Handle::current(), has_turned, n_missed: AtomicU32::new(0) }
    }

    /// Looks once. One that is stuck answers no call, and its window must not pretend that it does.
    pub fn is_stuck(&self) -> bool {
        if self.has_turned.swap(false, Ordering::Relaxed) {
            let has_turned = self.has_turned.clone();
            self.n_missed.store(0, Ordering::Relaxed);
            drop(self.calls.spawn(async move { has_turned.store(true, Ordering::Relaxed) }));
            return false;
        }
        let n_missed = self.n_missed.fetch_add(1, Ordering::Relaxed) + 1;
        if n_missed == MISSED_MAX {
            error!("a call holds this window's thread for half a minute; the window gives up its place");
        }
        n_missed >= MISSED_MAX
    }

    /// Returns when it turns.
    pub async fn await_turn(&self) {
        if self.n_missed.load(Ordering::Relaxed) < MISSED_MAX {
            return;
        }
        while self.is_stuck() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        info!("this window's thread turns again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_turns_is_not_stuck_and_one_that_never_does_is() {
        let turns = Turns::of_this_runtime();
        for _ in 0..2 * MISSED_MAX {
            assert!(!turns.is_stuck());
            tokio::task::yield_now().await;
        }
        // Without an await the thread does nothing else.
        let n_looks = (0..100).position(|_| turns.is_stuck());
        assert_eq!(n_looks, usize::try_from(MISSED_MAX).ok());
        tokio::task::yield_now().await;
        turns.await_turn().await;
        assert!(!turns.is_stuck());
    }
}
