//! The messages of a stream of server-sent events.

use baton_mcp::events::end_of_events;
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

/// See the top of the file.
pub(super) struct Events {
    body: Incoming,
    /// What has arrived and is not yet used; its first `n_whole` bytes are whole events.
    buffer: BytesMut,
    n_whole: usize,
}

impl Events {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, buffer: BytesMut::new(), n_whole: 0 }
    }

    /// The next message; `None` when the stream has ended.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            while self.n_whole > 0 {
                let is_end = |pair: &[u8]| pair == b"\n\n";
                let end = self.buffer.windows(2).position(is_end).map_or(self.n_whole, |idx| idx + 2);
                let event = self.buffer.split_to(end);
                self.n_whole -= end;
                if let Some(message) = message_in(&event) {
                    return Some(message);
                }
            }
            let n_seen = self.buffer.len();
            let data = self.body.frame().await?.ok()?.into_data().unwrap_or_default();
            self.buffer.extend_from_slice(&data);
            self.n_whole = end_of_events(&self.buffer, n_seen).unwrap_or(0);
        }
    }
}

/// The data of one event; `None` when it is only a comment.
fn message_in(event: &[u8]) -> Option<Vec<u8>> {
    let lines = event.split(|byte| *byte == b'\n');
    let data: Vec<&[u8]> = lines
        .filter_map(|line| line.strip_prefix(b"data:"))
        .map(|data| data.strip_prefix(b" ").unwrap_or(data))
        .collect();
    data.iter().any(|data| !data.is_empty()).then(|| data.join(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_messages() {
        assert_eq!(message_in(b": tick\n\n"), None);
        assert_eq!(message_in(b"data:\n\n"), None);
        assert_eq!(message_in(b"event: message\nid: 7\ndata: {}\n\n").unwrap(), b"{}");
        assert_eq!(message_in(b"data:{\ndata: }\n\n").unwrap(), b"{\n}");
    }
}
