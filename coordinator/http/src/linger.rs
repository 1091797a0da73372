//! The end of a connection whose client is still sending: what it sends is read for a moment.
//!
//! Closing a socket over bytes that nobody read is a reset, which takes the answer away that the client has not
//! read yet: a refusal of a large body would never be seen.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout};

/// How long the client may send nothing.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// How long it may go on sending; as long as the head of a request may take.
const TIME_MAX: Duration = Duration::from_secs(5);
/// How much it may send: four times the largest body that we take.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Connections that are read out at once; beyond that, a stranger's refusal is not worth a descriptor.
const LINGERING_MAX: usize = 128;
/// Bytes that are thrown away at once.
const PIECE: usize = 64 * 1024;

/// Counts the connections that are being read out.
#[derive(Default)]
pub(crate) struct Lingering(AtomicUsize);

impl Lingering {
    /// Reads what still comes on a stream that we have ended, until the client ends it too or a bound is reached.
    pub(crate) async fn read_out(&self, mut stream: impl AsyncRead + Unpin) {
        let _place = Place(&self.0);
        if self.0.fetch_add(1, Ordering::Relaxed) >= LINGERING_MAX {
            return;
        }
        let end = Instant::now() + TIME_MAX;
        let mut piece = vec![0; PIECE];
        let mut n_left = BYTES_MAX;
        while n_left > 0 && Instant::now() < end {
            match timeout(SILENCE_MAX, stream.read(&mut piece)).await {
                Ok(Ok(n_read @ 1..)) => n_left = n_left.saturating_sub(n_read),
                _ => return,
            }
        }
    }
}

/// One of those that are counted.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reading_out_ends_with_the_client_with_silence_and_with_the_bounds() {
        let lingering = Lingering::default();
        let (mut client, server) = tokio::io::duplex(16);
        let sending = async {
            client.write_all(&[0; 100_000]).await.unwrap();
            drop(client);
        };
        let start = Instant::now();
        tokio::join!(sending, lingering.read_out(server));
        assert_eq!(start.elapsed(), Duration::ZERO, "the client has ended it");

        let (_client, server) = tokio::io::duplex(16);
        lingering.read_out(server).await;
        assert_eq!(start.elapsed(), SILENCE_MAX, "it says nothing and does not end");

        let (mut client, server) = tokio::io::duplex(16);
        let trickling = async {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(SILENCE_MAX / 2).await;
            }
        };
        let start = Instant::now();
        tokio::join!(trickling, lingering.read_out(server));
        assert!(start.elapsed() <= TIME_MAX + SILENCE_MAX, "{:?}", start.elapsed());
        assert_eq!(lingering.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_is_not_read_out() {
        let lingering = Lingering::default();
        lingering.0.store(LINGERING_MAX, Ordering::Relaxed);
        let (_client, server) = tokio::io::duplex(16);
        let start = Instant::now();
        lingering.read_out(server).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(lingering.0.load(Ordering::Relaxed), LINGERING_MAX);
    }
}
