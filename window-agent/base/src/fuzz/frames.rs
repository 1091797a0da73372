//! Frames of DAP, LSP and the extension: whatever the pieces, the same messages as with all bytes at once.

use bytes::{Bytes, BytesMut};
use tokio_util::codec::{Decoder as _, Encoder as _};

use crate::framing::Framing;

/// How much more than what it was given a decoder may hold.
const SLACK: usize = 1024 * 1024;

/// The first byte is the length of the pieces, 0 for one piece.
pub(super) fn run(bytes: &[u8]) {
    let Some((size, stream)) = bytes.split_first() else { return };
    let expected = bodies(stream);
    assert_eq!(decoded(stream, *size), expected);
    let mut again = BytesMut::new();
    for body in &expected {
        Framing::default().encode(Bytes::copy_from_slice(body), &mut again).expect("a buffer takes it");
    }
    assert_eq!(decoded(&again, *size), expected, "what is written is read again");
}

fn decoded(stream: &[u8], size: u8) -> Vec<Vec<u8>> {
    let size = if size == 0 { stream.len().max(1) } else { usize::from(size) };
    let (mut framing, mut buffer, mut found) = (Framing::default(), BytesMut::new(), Vec::new());
    for piece in stream.chunks(size) {
        buffer.extend_from_slice(piece);
        while let Some(body) = framing.decode(&mut buffer).expect("nothing ends a stream but its end") {
            found.push(body.to_vec());
        }
        assert!(buffer.capacity() <= 2 * stream.len() + SLACK, "{} bytes are held", buffer.capacity());
    }
    found
}

/// The bodies in a stream, found with all of it at hand.
pub(super) fn bodies(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut found) = (stream, Vec::new());
    while let Some(head_len) = rest.windows(4).position(|window| window == b"\r\n\r\n") {
        let length = length_in(&rest[..head_len]);
        rest = &rest[head_len + 4..];
        let Some(length) = length else { continue };
        if rest.len() < length {
            break;
        }
        found.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    found
}

/// The number behind the last header of that name, when it is nothing but digits, and not of a body beyond all bounds.
fn length_in(head: &[u8]) -> Option<usize> {
    let text: String = head.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    let (_, value) = text.rsplit_once("content-length:")?;
    let value = value.split(['\r', '\n']).next()?.trim_ascii();
    let is_number = !value.is_empty() && value.chars().all(|char| char.is_ascii_digit());
    let length: usize = is_number.then(|| value.parse().ok())??;
    (length <= 64 * 1024 * 1024).then_some(length)
}
