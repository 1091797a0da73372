//! Compounds that an editor starts: each part is a program of its own, of the same client.

use std::time::Instant;

use super::{Engine, SessionKey};
use crate::error::DebugError;
use crate::host::reach::Plan;
use crate::session::Ending;
use crate::types::Phase;

impl Engine {
    /// The parts of a compound that have not gone, or the one program.
    pub(super) fn roots_of(&self, compound: SessionKey) -> Vec<SessionKey> {
        let all = self.sessions.iter();
        let roots = all.filter(|(key, live)| live.compound == compound && live.root == **key);
        roots.map(|(&key, _)| key).collect()
    }

    /// The next part of a compound, beside one that is known: a program of its own, for the same client.
    pub(super) fn begin_part(&mut self, beside: SessionKey, plan: Plan, name: String) {
        let first = self.sessions.get(&beside).and_then(|live| self.sessions.get(&live.root));
        let Some(first) = first else { return };
        let (compound, usage) = (first.compound, first.usage.again(Instant::now()));
        let key = self.begin(plan, name, first.owner.clone(), None, None);
        if let Some(live) = self.sessions.get_mut(&key) {
            (live.compound, live.usage) = (compound, usage);
        }
    }

    /// A part did not start: so end the others, as the compound starts as a whole or not at all.
    pub(super) fn stop_others(&mut self, key: SessionKey, how: &Ending) {
        let Ending::NotStarted(why) = how else { return };
        // A child process that cannot be debugged is none of its parts.
        let Some(live) = self.sessions.get(&key).filter(|live| live.root == key) else { return };
        let name = live.name.clone();
        for other in self.roots_of(live.compound).into_iter().filter(|other| *other != key) {
            if let Some(live) =
                self.sessions.get_mut(&other).filter(|live| live.core.phase() != Phase::Terminated)
            {
                let message = format!("{name:?} did not start, the others were ended. {why}");
                live.failure = Some(DebugError::StartFailed { message });
            }
            self.stop_tree(other);
        }
    }
}
