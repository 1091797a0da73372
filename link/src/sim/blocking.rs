//! Work that blocks, in a simulation: done at once, as there is one thread.

use std::convert::Infallible;

/// Does the work and gives what it came to.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Infallible> {
    Ok(work())
}

/// Does the work and gives what it came to.
pub async fn finish<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    Some(work())
}
