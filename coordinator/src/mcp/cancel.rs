//! Calls that a client of an older revision can cancel, by session and request id.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// Session and request id.
type Key = ([u8; 16], Box<str>);

/// All running calls of all sessions.
#[derive(Default)]
pub(crate) struct Cancellations {
    calls: Mutex<HashMap<Key, CancellationToken>>,
}

/// One running call; leaves the table when it is dropped.
pub(crate) struct Running {
    table: Arc<Cancellations>,
    key: Key,
    token: CancellationToken,
}

impl Cancellations {
    /// Enters a call; `None` when the session has one with this id already.
    pub(crate) fn enter(self: &Arc<Self>, session: [u8; 16], id: &str) -> Option<Running> {
        let key = (session, Box::from(id));
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let Entry::Vacant(vacant) = calls.entry(key.clone()) else { return None };
        let token = vacant.insert(CancellationToken::new()).clone();
        Some(Running { table: self.clone(), key, token })
    }

    /// Cancels a call, if it runs.
    pub(crate) fn cancel(&self, session: [u8; 16], id: &str) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = calls.get(&(session, Box::from(id))) {
            token.cancel();
        }
    }
}

impl Running {
    /// Ends when the client cancels.
    pub(crate) async fn cancelled(&self) {
        self.token.cancelled().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.table.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
