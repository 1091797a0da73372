//! What is planted in a simulation: one fault at most.

use std::cell::Cell;

use super::Plant;

thread_local! {
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
}

/// All of them, by the names that a person types.
pub const ALL: [(&str, Plant); 17] = [
    ("outer-tree", Plant::OuterTree),
    ("no-lease", Plant::NoLease),
    ("same-generation", Plant::SameGeneration),
    ("unsaved", Plant::Unsaved),
    ("stop-forgotten", Plant::StopForgotten),
    ("sent-again", Plant::SentAgain),
    ("told-unrun", Plant::ToldUnrun),
    ("no-term", Plant::NoTerm),
    ("held-for-ever", Plant::HeldForEver),
    ("sessions-end", Plant::SessionsEnd),
    ("no-successor", Plant::NoSuccessor),
    ("no-return", Plant::NoReturn),
    ("unrefused", Plant::Unrefused),
    ("untold", Plant::Untold),
    ("stray", Plant::Stray),
    ("disowned", Plant::Disowned),
    ("trusting", Plant::Trusting),
];

/// Plants one from now on.
pub fn plant(plant: Plant) {
    PLANTED.set(Some(plant));
}

/// Whether it is planted here.
pub fn has(plant: Plant) -> bool {
    PLANTED.get() == Some(plant)
}
