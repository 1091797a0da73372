//! What the fuzzer tries here. Bytes in; a panic says that a property is broken.
//!
//! `clients`: files of AI clients, written and restored, compared with their bytes before, and with a plain reader.

mod clients;
#[expect(dead_code, reason = "other targets compare more with it")]
#[path = "../../../tests/fuzz/oracle/json.rs"]
mod json;
#[cfg(test)]
#[path = "../../../tests/fuzz/oracle/replay.rs"]
mod replay;
#[path = "../../../tests/fuzz/oracle/scratch.rs"]
mod scratch;

use baton_link::home::Home;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: &[Target] = &[("clients", clients::run)];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_holds() {
        super::replay::replay(super::TARGETS);
    }
}
