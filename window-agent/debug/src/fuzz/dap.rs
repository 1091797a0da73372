//! Messages of adapters: one that is taken is JSON, and an error has a text for people.

use super::json::read;
use crate::dap::Incoming;

pub(super) fn run(bytes: &[u8]) {
    let Some(message) = Incoming::parse(bytes) else { return };
    // What is skipped need not be a text.
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(read(text, false).is_some(), "{message:?} was taken from what is no JSON");
    }
    if let Incoming::Response(response) = message {
        let text = response.error_text();
        assert_eq!(text, text.trim_end(), "the text of an error ends with its last word");
    }
}
