//! When two states of the model are the same.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Instant;

use baton_proto::control::{Notice, Registered};

use super::agent::Link;
use super::coordinator::Stream;
use super::{TICK, World};

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let now = self.now();
        (self.clock, &self.disk, self.focused, &self.calls, &self.ran, &self.granted).hash(state);
        (self.answered, self.n_faults, self.n_wishes, self.violation).hash(state);
        let ago = |at: Instant| now.saturating_duration_since(at).min(TICK * 10);
        let hash_answer = |answer: &Registered, state: &mut H| {
            (answer.generation, answer.state as u8, answer.term).hash(state);
        };
        for one in &self.coordinators {
            (one.number, one.has_lock, one.is_stalled, one.is_behind, one.is_replaced, one.streams.len())
                .hash(state);
            one.election.hash_at(now.into(), state);
            for (window, stream) in &one.streams {
                (window, stream.incarnation()).hash(state);
                match stream {
                    Stream::Expected { ticks, .. } => ticks.hash(state),
                    Stream::Open { notices, .. } => hash_notices(notices, state),
                }
            }
        }
        for window in &self.windows {
            (window.is_open, window.is_stalled, window.auto_start, window.incarnation).hash(state);
            (window.is_stopped, window.live_since, window.wishes, window.claimed, window.fence.view(now))
                .hash(state);
            window.late.as_ref().map(|(number, late)| (number, late.held_term, late.incarnation)).hash(state);
            window.link.number().hash(state);
            match &window.link {
                Link::None => {}
                Link::Asked { sent_at, answer, .. } => {
                    ago(*sent_at).hash(state);
                    hash_answer(answer, state);
                }
                Link::Up { answer, .. } => {
                    answer.as_ref().map(|(sent, _)| (ago(sent.at), sent.known)).hash(state);
                    answer.iter().for_each(|(_, answer)| hash_answer(answer, state));
                }
            }
        }
    }
}

/// The same as far as anything that comes depends on it.
impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint() == other.fingerprint()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("ticks", &self.ticks).finish_non_exhaustive()
    }
}

fn hash_notices<H: Hasher>(notices: &VecDeque<Notice>, state: &mut H) {
    notices.len().hash(state);
    for notice in notices {
        match notice {
            Notice::State { state: stands, term, awaited, .. } => (*stands as u8, term, awaited).hash(state),
            Notice::AutoStart { auto_start } => (10_u8, auto_start).hash(state),
            Notice::Restart => 11_u8.hash(state),
            Notice::Stop => 12_u8.hash(state),
            Notice::Superseded => 13_u8.hash(state),
            _ => 14_u8.hash(state),
        }
    }
}
