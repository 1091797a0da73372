//! CORE: the `Content-Length` framing of DAP and LSP; finds its way back after junk.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

/// Most bytes looked at in search of the end of a head. Heads have some 20; adapters print banners before them.
const MAX_HEAD: usize = 64 * 1024;

/// Longest body taken. A page of variables or a symbol list stays far below; a longer one is not for us.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// Most bytes asked for at once: a head alone must not take the memory of the body that it promises.
const MAX_RESERVE: usize = 256 * 1024;

/// The only header that counts, in lower case.
const LENGTH_HEADER: &[u8] = b"content-length:";

/// Splits a byte stream into message bodies, and puts heads before bodies.
#[derive(Debug, Default)]
pub struct Framing {
    /// Length of the body whose head was read already.
    body_len: Option<usize>,
}

impl Decoder for Framing {
    type Item = Bytes;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(body_len) = self.body_len {
                if buffer.len() < body_len {
                    buffer.reserve((body_len - buffer.len()).min(MAX_RESERVE));
                    return Ok(None);
                }
                self.body_len = None;
                return Ok(Some(buffer.split_to(body_len).freeze()));
            }
            let Some(head_len) = memchr::memmem::find(buffer, b"\r\n\r\n") else {
                if buffer.len() > MAX_HEAD {
                    // Keep what could be the beginning of a head.
                    buffer.advance(buffer.len() - LENGTH_HEADER.len() - 32);
                }
                return Ok(None);
            };
            // Without a usable length the head was junk, and the next one is tried.
            self.body_len = body_len_in(&buffer[..head_len]);
            buffer.advance(head_len + 4);
        }
    }
}

impl Encoder<Bytes> for Framing {
    type Error = io::Error;

    fn encode(&mut self, body: Bytes, buffer: &mut BytesMut) -> io::Result<()> {
        buffer.reserve(body.len() + 32);
        buffer.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        buffer.extend_from_slice(&body);
        Ok(())
    }
}

/// The last length in a head: what stands before it can be junk, even on the same line.
fn body_len_in(head: &[u8]) -> Option<usize> {
    let at = (0..=head.len().checked_sub(LENGTH_HEADER.len())?)
        .rev()
        .find(|&at| head[at..at + LENGTH_HEADER.len()].eq_ignore_ascii_case(LENGTH_HEADER))?;
    let value = head[at + LENGTH_HEADER.len()..].split(|&byte| byte == b'\r' || byte == b'\n').next()?;
    let digits = value.trim_ascii();
    // Not with the sign that Rust's own numbers may have.
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let body_len: usize = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
    (body_len <= MAX_BODY).then_some(body_len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode_all(chunks: &[&[u8]]) -> Vec<String> {
        let (mut framing, mut buffer, mut bodies) = (Framing::default(), BytesMut::new(), Vec::new());
        for chunk in chunks {
            buffer.extend_from_slice(chunk);
            while let Some(body) = framing.decode(&mut buffer).unwrap() {
                bodies.push(String::from_utf8(body.to_vec()).unwrap());
            }
        }
        bodies
    }

    #[test]
    fn finds_messages_among_junk_whatever_the_case_of_the_header() {
        let input = b"GDB banner\nContent-Length: 2\r\n\r\n{}content-length:3\r\nX: y\r\n\r\n[1]";
        assert_eq!(decode_all(&[input]), ["{}", "[1]"]);
        assert_eq!(decode_all(&[b"no length here\r\n\r\nContent-Length: 2\r\n\r\n{}"]), ["{}"]);
        assert_eq!(decode_all(&[b"Content-Length: -1\r\n\r\nContent-Length: 2\r\n\r\n{}"]), ["{}"]);
        assert_eq!(decode_all(&[b"Content-Length: +2\r\n\r\nContent-Length: 2\r\n\r\n{}"]), ["{}"]);
        assert_eq!(decode_all(&[b"Content-Length: 99999999999\r\n\r\nContent-Length: 2\r\n\r\n{}"]), ["{}"]);
    }

    #[test]
    fn a_promise_of_a_body_takes_no_memory() {
        let mut buffer = BytesMut::from(&b"Content-Length: 67108864\r\n\r\n{"[..]);
        assert!(Framing::default().decode(&mut buffer).unwrap().is_none());
        assert!(buffer.capacity() < 1024 * 1024, "{}", buffer.capacity());
    }

    #[test]
    fn forgets_endless_junk() {
        let (mut framing, mut buffer) = (Framing::default(), BytesMut::new());
        buffer.extend_from_slice(&vec![b'x'; MAX_HEAD + 1]);
        assert!(framing.decode(&mut buffer).unwrap().is_none());
        assert!(buffer.len() < 100);
        buffer.extend_from_slice(b"\nContent-Length: 2\r\n\r\n{}");
        assert_eq!(&framing.decode(&mut buffer).unwrap().unwrap()[..], b"{}");
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_messages(bodies in prop::collection::vec(".{0,40}", 1..6), cut in 1usize..9) {
            let (mut framing, mut bytes) = (Framing::default(), BytesMut::new());
            for body in &bodies {
                framing.encode(Bytes::from(body.clone()), &mut bytes).unwrap();
            }
            let chunks: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(decode_all(&chunks), bodies);
        }
    }
}
