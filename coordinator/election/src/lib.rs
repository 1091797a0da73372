//! Which window is live, and what is known of all windows at one moment.
//!
//! This crate decides; it opens no socket and no file. The election is a core: everything that happened goes in with
//! its time, notices and a roster come out, and every ordering of a few events can be tried on simulated time.
//! Around it runs one task, the keeper, that has the clock and the channels; all others hold its handle, and read the
//! roster that it publishes after every change. At most one window holds the highest term, whatever happens.
//!
//! | module | what it does |
//! |---|---|
//! | [`election`] | CORE: which window is live |
//! | [`keeper`] | the one task that owns the election |
//! | [`roster`] | CORE: what is known of all windows at one moment |
//! | [`resolve`] | CORE: which window a text names |
//! | [`stand`] | CORE: which window a client belongs to that stands in a folder |

pub mod election;
pub mod keeper;
pub mod resolve;
pub mod roster;
pub mod stand;
