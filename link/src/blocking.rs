//! Work that blocks, on a thread for that. A simulation (`--cfg sim`) has one thread and does it at once.

use tokio::task::{JoinError, spawn_blocking};

/// Does the work where it keeps nobody waiting, and gives what it came to.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    spawn_blocking(work).await
}

/// The same; a panic in the work goes on here. `None` when the runtime ends.
pub async fn finish<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => error.try_into_panic().map_or(None, |panic| std::panic::resume_unwind(panic)),
    }
}
