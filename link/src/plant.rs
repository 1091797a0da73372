//! Faults that a simulation plants and has to find (docs/simulation.md). A program has none of them.

#[cfg_attr(sim, path = "sim/planted.rs")]
mod planted;

pub use planted::*;

/// What can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A coordinator forgets who was live before it.
    NoLease,
    /// Every coordinator has the same generation.
    SameGeneration,
    /// `state.json` is written at the start alone.
    Unsaved,
    /// A coordinator forgets that the user stopped the live window.
    StopForgotten,
    /// A call whose window died while it ran is sent again.
    SentAgain,
    /// A call whose window died while it ran is told as one that was not run.
    ToldUnrun,
    /// The term of a call is not told to its window.
    NoTerm,
    /// A call that waits for a window waits for ever.
    HeldForEver,
    /// Sessions of clients end with their coordinator.
    SessionsEnd,
    /// Nobody starts a successor.
    NoSuccessor,
    /// A window that lost its coordinator does not come back.
    NoReturn,
    /// A client hears nothing of a change of its window before something is done in the new one.
    Unrefused,
    /// An answer does not say that it is another window's than the one before.
    Untold,
    /// A client whose own window cannot be called is answered by the live one.
    Stray,
    /// A call about a program goes to the live window, whosever the program is.
    Disowned,
    /// A client whose folder is gone belongs to the tree around it.
    OuterTree,
    /// A coordinator whose state is lost makes a window live before the others have reported.
    Trusting,
}
