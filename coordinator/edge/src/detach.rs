//! Lets work go on when nobody waits for it any more.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Runs `work` where it is awaited; when that place is dropped, the rest of it runs as a task of its own.
pub(crate) fn finish<F>(work: F) -> Finish<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    Finish { work: Some(Box::pin(work)) }
}

/// See [`finish`].
pub(crate) struct Finish<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    work: Option<Pin<Box<F>>>,
}

impl<F> Future for Finish<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let work = self.work.as_mut().expect("invariant: not polled after its end");
        let output = ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(output)
    }
}

impl<F> Drop for Finish<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            spawn(async move {
                work.await;
            });
        }
    }
}

/// Spawns a task, unless the runtime is ending.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(work);
    }
}
