//! What the fuzzer tries here. Bytes in; a panic says that a property is broken.
//!
//! | target | what | compared with |
//! |---|---|---|
//! | `lsp` | messages of language servers | a plain reader of JSON |
//! | `text` | bytes of a file to a text and back | itself |
//! | `paths` | paths and addresses of files | decoding by hand |
//! | `edits` | edits of a text | the same on a list of characters, last edit first |
//! | `plan` | what becomes of files | the steps one by one on a map of names |
//! | `write` | a plan on a disk that changes meanwhile, and its undo | the same, or the disk as it was |

mod edits;
#[path = "../../../tests/fuzz/oracle/json.rs"]
#[expect(dead_code, reason = "other crates look into what was read")]
mod json;
mod lsp;
mod paths;
mod plan;
#[cfg(test)]
#[path = "../../../tests/fuzz/oracle/replay.rs"]
mod replay;
#[path = "../../../tests/fuzz/oracle/scratch.rs"]
mod scratch;
mod text;

use baton_link::home::Home;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: &[Target] = &[
    ("lsp", lsp::run),
    ("text", text::run),
    ("paths", paths::run),
    ("edits", edits::run),
    ("plan", plan::run),
    ("write", plan::run_on_disk),
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_holds() {
        super::replay::replay(super::TARGETS);
    }
}
