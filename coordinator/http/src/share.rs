//! The part of all connections that MCP clients may have: the rest is for windows and commands.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::connection::{Connection, Farewell};

/// Connections of MCP clients at once. What is left of all of them takes a thousand windows and commands, and those
/// who have not said yet what they are.
const SHARE: usize = 3072;
/// A connection that has been idle for so long gives way when there are too many.
const IDLE_MIN: Duration = Duration::from_secs(1);

/// The connections of MCP clients.
#[derive(Default)]
pub(crate) struct Share(Mutex<BTreeMap<u64, Arc<Connection>>>);

impl Share {
    /// Counts a connection; false when there are too many, and none of them idles.
    pub(crate) fn enter(&self, connection: &Arc<Connection>) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= SHARE {
            let idle = open.iter().filter_map(|(key, other)| Some((other.idle_for()?, *key)));
            let Some((_, key)) = idle.max().filter(|(idle_for, _)| *idle_for >= IDLE_MIN) else {
                tracing::warn!("too many MCP connections; refused a request");
                return false;
            };
            if let Some(other) = open.remove(&key) {
                other.close(Farewell::Crowded);
            }
        }
        open.insert(connection.key, connection.clone());
        true
    }

    /// The connection has ended.
    pub(crate) fn leave(&self, connection: &Connection) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&connection.key);
    }
}
