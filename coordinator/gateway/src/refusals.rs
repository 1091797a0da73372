//! CORE
//! What the log says of those who are not let in: anybody can try, as often as they like, and is not to crowd everything
//! else out of it.

use std::fmt;
use std::time::{Duration, Instant};

/// Of one reason a line is written no more often than this.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Why a connection or what comes on it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its address is in no network that the user named.
    NotAllowed,
    /// There is no room.
    TooMany,
    /// It is another user's of this machine.
    Stranger,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAllowed => "its address is in no network of --allow",
            Self::TooMany => "there are too many",
            Self::Stranger => "it is another user's of this machine",
        })
    }
}

/// When the log heard of each reason last, and how many there were since.
#[derive(Debug, Default)]
pub(crate) struct Refusals([Option<Told>; 3]);

#[derive(Debug)]
struct Told {
    at: Instant,
    n_since: usize,
}

impl Refusals {
    /// One more; how many went untold before it when the log is to hear of it.
    pub(crate) fn note(&mut self, why: Why, now: Instant) -> Option<usize> {
        let place = match why {
            Why::NotAllowed => &mut self.0[0],
            Why::TooMany => &mut self.0[1],
            Why::Stranger => &mut self.0[2],
        };
        match place {
            Some(told) if now.duration_since(told.at) < TELL_EVERY => {
                told.n_since += 1;
                None
            }
            _ => Some(place.replace(Told { at: now, n_since: 0 }).map_or(0, |told| told.n_since)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_a_minute_with_the_number_of_those_between() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(refusals.note(Why::NotAllowed, start), Some(0));
        for second in 0..60 {
            assert_eq!(refusals.note(Why::NotAllowed, at(second)), None);
        }
        assert_eq!(refusals.note(Why::Stranger, at(59)), Some(0), "another reason is told by itself");
        assert_eq!(refusals.note(Why::NotAllowed, at(60)), Some(60));
        assert_eq!(refusals.note(Why::NotAllowed, at(61)), None);
        assert_eq!(refusals.note(Why::NotAllowed, at(1_000)), Some(1));
    }
}
