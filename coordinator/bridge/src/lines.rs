//! One message a line, in and out.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use crate::relay::Said;

/// Longest message, as at the edge.
const LINE_MAX: usize = 16 * 1024 * 1024;

/// What standard input holds next.
pub(super) enum Line {
    Whole(Bytes),
    /// It was skipped.
    TooLong,
    End,
}

/// Reads lines.
pub(super) struct Lines<R>(BufReader<R>);

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self(BufReader::new(input))
    }

    /// The next line; a last one need not end with a line feed.
    pub(super) async fn next(&mut self) -> Line {
        let mut line = BytesMut::new();
        let mut is_too_long = false;
        loop {
            let available = match self.0.fill_buf().await {
                Ok(available) => available,
                Err(error) => {
                    tracing::warn!(%error, "standard input");
                    return Line::End;
                }
            };
            if available.is_empty() {
                return match (is_too_long, line.is_empty()) {
                    (true, _) => Line::TooLong,
                    (false, true) => Line::End,
                    (false, false) => Line::Whole(line.freeze()),
                };
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let piece = &available[..end.unwrap_or(available.len())];
            if line.len() + piece.len() > LINE_MAX {
                is_too_long = true;
                line.clear();
            } else if !is_too_long {
                line.extend_from_slice(piece);
            }
            let n_used = piece.len() + usize::from(end.is_some());
            self.0.consume(n_used);
            if end.is_some() {
                return if is_too_long { Line::TooLong } else { Line::Whole(line.freeze()) };
            }
        }
    }
}

/// Writes messages until there are no more, or nobody reads them.
pub(super) async fn write(mut output: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Said>) {
    while let Some(said) = messages.recv().await {
        let mut line = match said {
            Said::Message(line) => line,
            Said::Flushed(done) => {
                // Whoever asked may be gone.
                let _ = done.send(());
                continue;
            }
        };
        if line.contains(&b'\n') {
            // Between the tokens of JSON a line feed is as good as a space; inside a text it cannot stand.
            line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        }
        line.push(b'\n');
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "standard output");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_told_apart_and_bounded() {
        let long = "x".repeat(LINE_MAX + 1);
        let text = format!("one\n\n{long}\ntwo");
        let mut lines = Lines::new(text.as_bytes());
        let mut seen = Vec::new();
        loop {
            match lines.next().await {
                Line::Whole(line) => seen.push(String::from_utf8(line.to_vec()).unwrap()),
                Line::TooLong => seen.push("too long".to_owned()),
                Line::End => break,
            }
        }
        assert_eq!(seen, ["one", "", "too long", "two"]);
    }
}
