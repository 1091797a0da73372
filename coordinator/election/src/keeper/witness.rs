//! Who is told of every grant: nobody. In a simulation (`--cfg sim`), what checks it.

use baton_proto::ids::{Term, WindowId};

/// A window became live.
pub(super) fn granted(_window: &WindowId, _term: Term) {}
