//! The calls that run: how many there are, and that none begins once this agent is to end.

use std::time::Duration;

use tokio::sync::watch;

/// Counts calls from their admission to the last byte of their answers.
#[derive(Debug, Default)]
pub struct Calls(watch::Sender<Standing>);

#[derive(Debug, Default)]
struct Standing {
    n_running: usize,
    is_closed: bool,
}

impl Calls {
    /// Counts one more call; `None` when there shall be no more.
    pub fn enter(&self) -> Option<Running> {
        let mut is_entered = false;
        self.0.send_if_modified(|standing| {
            is_entered = !standing.is_closed;
            standing.n_running += usize::from(is_entered);
            false
        });
        is_entered.then(|| Running(self.0.clone()))
    }

    /// No call begins any more.
    pub fn close(&self) {
        self.0.send_modify(|standing| standing.is_closed = true);
    }

    /// Returns when no call runs, or after `limit`: whether none does.
    pub async fn ended(&self, limit: Duration) -> bool {
        let mut standing = self.0.subscribe();
        let none = standing.wait_for(|standing| standing.n_running == 0);
        tokio::time::timeout(limit, none).await.is_ok()
    }
}

/// A call that runs, until it is dropped.
#[derive(Debug)]
pub struct Running(watch::Sender<Standing>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|standing| standing.n_running -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_runs_is_awaited_and_nothing_begins_after_the_end() {
        let calls = Calls::default();
        let first = calls.enter().unwrap();
        let second = calls.enter().unwrap();
        calls.close();
        assert!(calls.enter().is_none());
        drop(first);
        assert!(!calls.ended(Duration::from_secs(30)).await, "the second one runs");
        drop(second);
        assert!(calls.ended(Duration::ZERO).await);
        assert!(calls.enter().is_none());
    }
}
