//! A runtime with one thread of its own, for what must not wait for the rest, or the rest for it.

use anyhow::Context as _;
use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

/// See the module. Thread and tasks end when it is dropped.
///
/// The lane `heart` beats, whatever calls do: membership, the channel to the extension and the desk run there.
/// **Invariant:** no tool runs in the heart, and nothing in it waits for one.
#[derive(Debug)]
pub struct Lane {
    handle: Handle,
    _end: oneshot::Sender<()>,
}

impl Lane {
    /// Starts the thread.
    pub fn start(name: &str) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let run = move || {
            // It only ever ends by being dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(run).context("cannot start a thread")?;
        Ok(Self { handle, _end: end })
    }

    /// What is spawned while the guard lives runs in the lane. (Not to be held across an await.)
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Runs a task in the lane, and gives what it came to. Dropping the future ends the task.
    pub async fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        match AbortOnDropHandle::new(self.handle.spawn(task)).await {
            Ok(result) => result,
            // As if it had run here.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_runs_on_the_thread_of_the_lane_and_ends_with_its_waiter() {
        let lane = Lane::start("heart").unwrap();
        let thread = || std::thread::current().name().map(str::to_owned);
        assert_eq!(lane.run(async move { thread() }).await.as_deref(), Some("heart"));
        let spawned = {
            let _inside = lane.enter();
            tokio::spawn(async move { thread() })
        };
        assert_eq!(spawned.await.unwrap().as_deref(), Some("heart"));

        let (kept, dropped) = oneshot::channel::<()>();
        let mut waiter = Box::pin(lane.run(async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        }));
        assert!(futures_util::poll!(waiter.as_mut()).is_pending());
        drop(waiter);
        assert!(dropped.await.is_err(), "the task has ended");
    }
}
