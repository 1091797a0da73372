//! The start of a simulated coordinator: a wish to whoever drives the simulation.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use baton_proto::start::Handshake;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::{Spawn, SpawnError};
use crate::sim::{self, Wish};

/// As long as for a real one.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

thread_local! {
    /// Starts of each process.
    static STARTS: RefCell<BTreeMap<u32, VecDeque<Instant>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Lets `look` at the starts of this process.
pub(super) fn with_starts<T>(look: impl FnOnce(&mut VecDeque<Instant>) -> T) -> T {
    STARTS.with_borrow_mut(|starts| look(starts.entry(sim::current()).or_default()))
}

/// Asks for a coordinator and waits for its handshake. An heir that is not ready is ended.
pub(super) async fn launch(spawn: Spawn<'_>) -> Result<Handshake, SpawnError> {
    let no_handshake = |why: &str| SpawnError::NoHandshake { why: why.to_owned() };
    let (said, heard) = oneshot::channel();
    let heir = spawn.inheritance.is_some().then(Arc::<AtomicU32>::default);
    sim::wish(Wish::Start {
        port: spawn.port,
        fallback_port: spawn.home.last_port().filter(|_| heir.is_none()),
        inheritance: spawn.inheritance.zip(heir.clone()),
        said,
    });
    let handshake = match timeout(HANDSHAKE_TIMEOUT, heard).await {
        Ok(Ok(handshake)) => Ok(handshake),
        Ok(Err(_)) => Err(no_handshake("it exited immediately")),
        Err(_) => Err(no_handshake("it did not respond within 10 s")),
    };
    if let Some(heir) = heir.filter(|_| !matches!(handshake, Ok(Handshake::Ready { .. }))) {
        sim::wish(Wish::Kill(heir.load(Ordering::Relaxed)));
    }
    handshake
}

/// No descriptor gets from one simulated process to another.
pub fn keep_descriptors() {}
