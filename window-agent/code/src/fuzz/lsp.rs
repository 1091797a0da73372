//! Messages of language servers: one that is taken is JSON.

use super::json::read;
use crate::lsp::Message;

pub(super) fn run(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(bytes) else { return };
    // What is skipped need not be a text.
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(read(text, false).is_some(), "{message:?} was taken from what is no JSON");
    }
}
