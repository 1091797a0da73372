//! What the fuzzer tries here. Bytes in; a panic says that a property is broken.
//!
//! | target | what | compared with |
//! |---|---|---|
//! | `dap` | messages of adapters | a plain reader of JSON |

mod dap;
#[path = "../../../tests/fuzz/oracle/json.rs"]
#[expect(dead_code, reason = "other crates look into what was read")]
mod json;
#[cfg(test)]
#[path = "../../../tests/fuzz/oracle/replay.rs"]
mod replay;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: &[Target] = &[("dap", dap::run)];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_holds() {
        super::replay::replay(super::TARGETS);
    }
}
