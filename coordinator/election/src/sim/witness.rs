//! Who is told of every grant in a simulation.

use std::cell::Cell;

use baton_proto::ids::{Term, WindowId};

/// Is told of a grant.
pub type Witness = fn(&WindowId, Term);

thread_local! {
    static WITNESS: Cell<Option<Witness>> = const { Cell::new(None) };
}

/// Tells `witness` of all grants from now on.
pub fn tell(witness: Witness) {
    WITNESS.set(Some(witness));
}

/// A window became live.
pub(super) fn granted(window: &WindowId, term: Term) {
    if let Some(witness) = WITNESS.get() {
        witness(window, term);
    }
}
