//! What the fuzzer tries here. Bytes in; a panic says that a property is broken.
//!
//! `state`: `state.json`, compared with what is written for it.

#[cfg(test)]
#[path = "../../../tests/fuzz/oracle/replay.rs"]
mod replay;
#[path = "../../../tests/fuzz/oracle/scratch.rs"]
mod scratch;
mod state;

use baton_link::home::Home;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: &[Target] = &[("state", state::run)];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_holds() {
        super::replay::replay(super::TARGETS);
    }
}
