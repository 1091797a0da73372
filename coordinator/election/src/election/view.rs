//! CORE: the state of an election as it matters for what comes, so that a model knows a state again.

use std::hash::{Hash, Hasher};

use baton_proto::control::Notice;
use tokio::time::Instant;

use super::place::Place;
use super::{Election, LEASE, STALL};

impl Election {
    /// Hashes what decides about the future: moments count by their distance from `now`, and of the times of a focus
    /// their order. Numbers of heartbeats are left out: the model sends none that is late. So is until when a window
    /// returns to its place: no story of the model is as long as that.
    pub fn hash_at(&self, now: Instant, hasher: &mut impl Hasher) {
        let ahead = |at: Instant| at.saturating_duration_since(now);
        let ago = |at: Instant| now.saturating_duration_since(at);
        (self.generation, self.last_seq, self.vacated, self.past, &self.fallen).hash(hasher);
        (self.recovery_until.map(ahead), self.settle_until.map(ahead)).hash(hasher);
        ago(self.last_run).min(STALL).hash(hasher);
        self.displaced.as_ref().map(|displaced| (&displaced.window, displaced.claim)).hash(hasher);
        match &self.place {
            Place::Empty => 0.hash(hasher),
            Place::Live { window, term, claim, .. } => (1, window, term, claim).hash(hasher),
            Place::Held { window, until, term, claim, cause } => {
                (2, window, ahead(*until), term, claim, cause).hash(hasher);
            }
            Place::Unclear { until } => (3, ahead(*until)).hash(hasher),
        }
        let preferred = self.preferred.as_ref();
        preferred.map(|preferred| (&preferred.window, preferred.pid, preferred.term)).hash(hasher);
        for (id, seat) in &self.seats {
            let window = &seat.window;
            (id, window.state as u8, window.responsive, window.auto_start).hash(hasher);
            (window.incarnation, window.debug_sessions.len(), seat.stopped, seat.said_auto_start)
                .hash(hasher);
            ago(seat.last_heard).min(LEASE).hash(hasher);
            let n_later =
                self.seats.values().filter(|other| other.window.last_focus > window.last_focus).count();
            (seat.is_focused, seat.follow_at.map(ahead), n_later).hash(hasher);
            if let Some(Notice::State { state, term, live, awaited, .. }) = &seat.told {
                (*state as u8, term, live.as_ref().map(|live| &live.id), awaited).hash(hasher);
            }
        }
        for (id, gone) in &self.departed {
            (id, gone.incarnation, gone.left, gone.auto_start, ahead(gone.until)).hash(hasher);
        }
        for (id, (stopped, until)) in &self.away {
            (id, stopped, ahead(*until)).hash(hasher);
        }
    }
}
