//! Work that blocks, on a thread for that. A simulation (`--cfg sim`) has one thread and does it at once.

use tokio::task::{JoinError, spawn_blocking};

/// Does the work where it keeps nobody waiting, and gives what it came to.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    spawn_blocking(work).await
}
