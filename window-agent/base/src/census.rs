//! How many programs of each name were started, died and run: debug adapters, language servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// The programs of one kind; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Census {
    all: Arc<Mutex<BTreeMap<String, Counts>>>,
}

/// The programs of one name, since the census began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many were started.
    pub started: u64,
    /// How many of them ended though nobody asked for it.
    pub died: u64,
    /// How many run.
    pub running: u64,
}

/// A program that runs; it does no longer when this is dropped.
#[derive(Debug)]
pub struct Counted {
    census: Census,
    name: String,
}

impl Census {
    /// A program starts.
    pub fn begin(&self, name: &str) -> Counted {
        let mut all = self.lock();
        let counts = all.entry(name.to_owned()).or_default();
        counts.started += 1;
        counts.running += 1;
        Counted { census: self.clone(), name: name.to_owned() }
    }

    /// All there were.
    pub fn counts(&self) -> BTreeMap<String, Counts> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Counts>> {
        self.all.lock()
    }
}

impl Counted {
    /// It ended though nobody asked for it.
    pub fn died(self) {
        if let Some(counts) = self.census.lock().get_mut(&self.name) {
            counts.died += 1;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(counts) = self.census.lock().get_mut(&self.name) {
            counts.running -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_what_was_started_and_has_not_ended() {
        let census = Census::default();
        let (one, two) = (census.begin("gopls"), census.begin("gopls"));
        let other = census.begin("ty");
        one.died();
        drop(other);
        let gopls = Counts { started: 2, died: 1, running: 1 };
        let ty = Counts { started: 1, died: 0, running: 0 };
        assert_eq!(census.counts(), [("gopls".to_owned(), gopls), ("ty".to_owned(), ty)].into());
        drop(two);
        assert_eq!(census.counts()["gopls"].running, 0);
    }
}
