//! The start of a simulated coordinator: a wish to whoever drives the simulation.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
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

/// Asks for a coordinator and waits for its handshake. Nothing is inherited here.
pub(super) async fn launch(spawn: Spawn<'_>) -> Result<Handshake, SpawnError> {
    let no_handshake = |why: &str| SpawnError::NoHandshake { why: why.to_owned() };
    if spawn.inheritance.is_some() {
        return Err(no_handshake("succession is not simulated"));
    }
    let (said, heard) = oneshot::channel();
    sim::wish(Wish::Start { port: spawn.port, fallback_port: spawn.home.last_port(), said });
    match timeout(HANDSHAKE_TIMEOUT, heard).await {
        Ok(Ok(handshake)) => Ok(handshake),
        Ok(Err(_)) => Err(no_handshake("it exited immediately")),
        Err(_) => Err(no_handshake("it did not respond within 10 s")),
    }
}

/// No descriptor gets from one simulated process to another.
pub fn keep_descriptors() {}
