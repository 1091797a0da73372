//! Bytes of a file: what is taken for a text is written back the same.

use crate::text::{decode, encode};

pub(super) fn run(bytes: &[u8]) {
    if let Ok((text, storage)) = decode(bytes.to_vec()) {
        assert_eq!(encode(&text, storage), bytes, "a text is written as it was read");
    }
}
