//! The events of streams to clients, as they went out: only while the user has them kept.

use std::fmt;
use std::sync::Arc;

use baton_proto::control::{RawLook, RawWish};

/// Who keeps them; clones ask the same.
#[derive(Clone, Default)]
pub struct Streams(Option<Arc<Look>>);

type Look = dyn Fn(&RawWish) -> RawLook + Send + Sync;

impl Streams {
    /// Those that `look` tells.
    pub fn new(look: impl Fn(&RawWish) -> RawLook + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(look)))
    }

    /// The events that are wanted; switches whether they are kept.
    pub(crate) fn look(&self, wish: &RawWish) -> RawLook {
        self.0.as_ref().map(|look| look(wish)).unwrap_or_default()
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Streams")
    }
}
