//! Which clients have called here, and when: for the editor's user.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// Clients that are remembered: more than a user has.
const MAX_CLIENTS: usize = 64;
/// Longer names say nothing more.
const MAX_NAME_LEN: usize = 64;

/// The clients, the latest one last.
#[derive(Debug, Default)]
pub struct Guests(Mutex<VecDeque<Guest>>);

#[derive(Debug)]
struct Guest {
    /// [`Caller::id`](crate::caller::Caller::id).
    id: String,
    name: String,
    called: Instant,
}

impl Guests {
    /// A client calls.
    pub fn note(&self, id: &str, name: &str, now: Instant) {
        let mut guests = self.guests();
        guests.retain(|known| known.id != id);
        let name = name.chars().take(MAX_NAME_LEN).collect();
        guests.push_back(Guest { id: id.to_owned(), name, called: now });
        if guests.len() > MAX_CLIENTS {
            guests.pop_front();
        }
    }

    /// What the client with this id calls itself.
    pub fn name(&self, id: &str) -> Option<String> {
        self.guests().iter().find(|known| known.id == id).map(|known| known.name.clone())
    }

    /// Their names and how long ago they called, the latest first; several of one name are one.
    pub fn list(&self, now: Instant) -> Vec<(String, Duration)> {
        let mut listed: Vec<(String, Duration)> = Vec::new();
        for known in self.guests().iter().rev() {
            if listed.iter().all(|(name, _)| *name != known.name) {
                listed.push((known.name.clone(), now.saturating_duration_since(known.called)));
            }
        }
        listed
    }

    fn guests(&self) -> MutexGuard<'_, VecDeque<Guest>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_listed_once_and_the_latest_first() {
        let (guests, began) = (Guests::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        guests.note("a", "claude-code", at(0));
        guests.note("b", "cursor", at(1));
        guests.note("c", "claude-code", at(2));
        guests.note("b", "cursor", at(3));
        let seconds = |(name, ago): (String, Duration)| (name, ago.as_secs());
        let listed: Vec<(String, u64)> = guests.list(at(5)).into_iter().map(seconds).collect();
        assert_eq!(listed, [("cursor".to_owned(), 2), ("claude-code".to_owned(), 3)]);
        assert_eq!(guests.name("a").as_deref(), Some("claude-code"));
        for id in 0..=MAX_CLIENTS {
            guests.note(&id.to_string(), &"n".repeat(1_000), at(6));
        }
        assert_eq!((guests.name("a"), guests.name("0")), (None, None));
        assert_eq!(guests.list(at(6)), [("n".repeat(MAX_NAME_LEN), Duration::ZERO)]);
    }
}
