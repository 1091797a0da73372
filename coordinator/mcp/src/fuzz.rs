//! What the fuzzer tries here. Bytes in; a panic says that a property is broken.
//!
//! | target | what | compared with |
//! |---|---|---|
//! | `envelope` | messages of clients | a plain reader of JSON |
//! | `session` | sealed session ids | what was sealed |

mod envelope;
#[path = "../../../tests/fuzz/oracle/json.rs"]
mod json;
#[cfg(test)]
#[path = "../../../tests/fuzz/oracle/replay.rs"]
mod replay;
mod session;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: &[Target] = &[("envelope", envelope::run), ("session", session::run)];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_holds() {
        super::replay::replay(super::TARGETS);
    }
}
