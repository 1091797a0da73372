//! What the fuzzer tries here. Bytes in; a panic says that a property is broken.
//!
//! | target | what | compared with |
//! |---|---|---|
//! | `frames` | frames of DAP, LSP and the extension | a reader that has all bytes at once |
//! | `channel` | the extension's channel | the same, and a plain reader of JSON |
//! | `launch` | launch.json, variables, env files | a plain reader of JSON, a table of variables |

mod channel;
mod frames;
#[path = "../../../tests/fuzz/oracle/json.rs"]
mod json;
mod launch;
#[cfg(test)]
#[path = "../../../tests/fuzz/oracle/replay.rs"]
mod replay;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: &[Target] = &[("frames", frames::run), ("channel", channel::run), ("launch", launch::run)];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_holds() {
        super::replay::replay(super::TARGETS);
    }
}
