//! The last events of the streams to clients, byte by byte, while the user wants to see them: for whoever asks why a client
//! did not hear of something.
//!
//! They are kept in memory alone, and hold what clients see.
//!
//! | module | what it does |
//! |---|---|
//! | `ring` | CORE: the last events, bounded |

mod ring;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use baton_http::body::Body;
use baton_proto::control::{RawLook, RawWish};
use http::Response;
use parking_lot::Mutex;

use crate::record::now_ms;
use ring::Ring;

/// See the module.
#[derive(Default)]
pub(crate) struct Raw {
    is_on: AtomicBool,
    n_streams: AtomicU64,
    ring: Mutex<Ring>,
}

impl Raw {
    /// Whether events are being kept.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Switches, and tells what is wanted.
    pub(crate) fn look(&self, wish: &RawWish) -> RawLook {
        let mut ring = self.ring.lock();
        if let Some(on) = wish.on {
            self.is_on.store(on, Ordering::Relaxed);
            if !on {
                *ring = Ring::default();
            }
        }
        RawLook { on: self.is_on(), n_all: ring.n_all(), events: ring.after(wish.after) }
    }

    /// An answer whose events, if it has any, are kept as they go out.
    pub(crate) fn keep(self: &Arc<Self>, client: String, response: Response<Body>) -> Response<Body> {
        let stream = self.n_streams.fetch_add(1, Ordering::Relaxed) + 1;
        let raw = self.clone();
        response.map(|body| {
            body.shown_to(move |bytes| {
                if raw.is_on() {
                    let mut ring = raw.ring.lock();
                    ring.put(now_ms(), stream, &client, &String::from_utf8_lossy(bytes));
                }
            })
        })
    }
}
