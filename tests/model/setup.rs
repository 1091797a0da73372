//! What is explored, and what is broken on purpose.

use crate::rules::Settling;

/// What is there to be explored.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Auto-start of each window.
    pub(crate) auto_start: Vec<bool>,
    /// Things that break, in one story.
    pub(crate) max_faults: u8,
    /// Commands of the user, in one story.
    pub(crate) max_wishes: u8,
    /// Clients debug in the first window all the time (R11).
    pub(crate) debugs: bool,
    /// The place follows the focus (R12).
    pub(crate) follows: bool,
    /// What is broken on purpose.
    pub(crate) plant: Plant,
    /// What is known already of worlds in which nothing breaks any more.
    pub(crate) settling: Settling,
}

/// A fault planted to see whether the model finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    None,
    /// The generation needs the file.
    NoClock,
    /// Agents do not tell what they held.
    NoClaims,
    /// A lost file is taken for a first start, and agents do not tell that it is none.
    NoDoubt,
    /// Agents go on without being acknowledged.
    NoFence,
    /// Agents do not hear that they are not live any more.
    NoRevocation,
}

impl Setup {
    /// Two windows, everything may break `n_faults` times.
    pub(crate) fn small(n_faults: u8) -> Self {
        let auto_start = vec![true, true];
        Self {
            auto_start,
            max_faults: n_faults,
            max_wishes: 1,
            debugs: false,
            follows: false,
            plant: Plant::None,
            settling: Settling::default(),
        }
    }
}

/// The worlds that are explored one after the other.
pub(crate) fn setups() -> Vec<(&'static str, Setup)> {
    vec![
        ("two windows, two faults, one wish", Setup::small(2)),
        ("one of two starts by itself", Setup { auto_start: vec![false, true], ..Setup::small(2) }),
        ("a client debugs in the first", Setup { debugs: true, ..Setup::small(2) }),
        ("the place follows the focus", Setup { follows: true, max_wishes: 2, ..Setup::small(1) }),
        ("three windows, two faults", Setup { auto_start: vec![true; 3], max_wishes: 0, ..Setup::small(2) }),
    ]
}
