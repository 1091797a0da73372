//! CORE: the last of what a program printed, bounded whatever it prints.

use std::collections::VecDeque;

use crate::debug::types::OutputTail;

/// Bytes kept of what was printed since the last answer.
pub(crate) const MAX_KEPT: usize = 4 * 1024;

/// A ring of bytes with a count of those that fell out.
#[derive(Debug, Default)]
pub(crate) struct OutputRing {
    kept: VecDeque<u8>,
    dropped: u64,
}

impl OutputRing {
    /// Adds text.
    pub(crate) fn push(&mut self, text: &str) {
        let text = text.as_bytes();
        let fresh = &text[text.len().saturating_sub(MAX_KEPT)..];
        let n_overflow = (self.kept.len() + fresh.len()).saturating_sub(MAX_KEPT);
        self.dropped += (n_overflow + text.len() - fresh.len()) as u64;
        self.kept.drain(..n_overflow);
        self.kept.extend(fresh);
    }

    /// Takes what is there and starts anew. A cut is made at a line's beginning where there is one.
    pub(crate) fn take(&mut self) -> OutputTail {
        let bytes: Vec<u8> = std::mem::take(&mut self.kept).into();
        let mut omitted_bytes = std::mem::take(&mut self.dropped);
        let mut start = 0;
        if omitted_bytes > 0 {
            start = match memchr::memchr(b'\n', &bytes) {
                Some(at) if at + 1 < bytes.len() => at + 1,
                // One endless line: begin at a character.
                _ => bytes.iter().position(|&byte| byte & 0xC0 != 0x80).unwrap_or(0),
            };
            omitted_bytes += start as u64;
        }
        let text = String::from_utf8_lossy(&bytes[start..]).replace("\r\n", "\n");
        OutputTail { text, omitted_bytes }
    }

    /// The last `max_len` bytes as text, without taking them.
    pub(crate) fn last_words(&self, max_len: usize) -> String {
        let start = self.kept.len().saturating_sub(max_len);
        let bytes: Vec<u8> = self.kept.range(start..).copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end_of_a_flood_and_counts_the_rest() {
        let mut ring = OutputRing::default();
        for n in 0..100_000 {
            ring.push(&format!("line {n:05}\n"));
        }
        let tail = ring.take();
        assert!(tail.text.starts_with("line ") && tail.text.ends_with("line 99999\n"));
        assert_eq!(tail.text.len() as u64 + tail.omitted_bytes, 100_000 * 11);
        assert!(tail.text.len() <= MAX_KEPT);
        assert!(ring.take().is_empty());
    }

    #[test]
    fn one_endless_line_is_cut_at_a_character() {
        let mut ring = OutputRing::default();
        ring.push(&"é".repeat(MAX_KEPT));
        ring.push("!");
        let tail = ring.take();
        assert!(tail.text.starts_with('é') && tail.text.ends_with("é!"));
        assert_eq!(tail.text.len() as u64 + tail.omitted_bytes, 2 * MAX_KEPT as u64 + 1);
    }
}
