//! CORE: server-sent events: where whole ones end, and which one answers a request.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::envelope::is_same_id;

/// Where the last whole event in `buffer` ends; there is none in its first `n_seen` bytes, which are not searched
/// again.
pub fn end_of_events(buffer: &[u8], n_seen: usize) -> Option<usize> {
    let start = n_seen.saturating_sub(1);
    Some(start + buffer[start..].windows(2).rposition(|pair| pair == b"\n\n")? + 2)
}

/// True when one of the events answers the request `id`.
pub fn has_answer(events: &[u8], id: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
        #[serde(borrow, default)]
        method: Option<&'a RawValue>,
    }
    let lines = events.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.strip_prefix(b"data:")).any(|data| {
        serde_json::from_slice::<Head<'_>>(data).is_ok_and(|head| {
            head.method.is_none() && head.id.is_some_and(|it| is_same_id(it.get(), id.get()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_events_are_cut_off() {
        assert_eq!(end_of_events(b"data: 1\n\ndata", 0), Some(9));
        assert_eq!(end_of_events(b"data: 1\n\n", 8), Some(9), "the end came in two pieces");
        assert_eq!(end_of_events(b"data: 1\n", 0), None);
        assert_eq!(end_of_events(b"", 0), None);
    }

    #[test]
    fn the_answer_is_told_from_notices() {
        let id: Box<RawValue> = serde_json::from_str("7").unwrap();
        let notice = br#"data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"id":7}}"#;
        let other = br#"data: {"jsonrpc":"2.0","id":"7","result":{}}"#;
        assert!(!has_answer(notice, &id) && !has_answer(other, &id) && !has_answer(b": tick\n\n", &id));
        let escaped: Box<RawValue> = serde_json::from_str(r#""\u0041""#).unwrap();
        assert!(has_answer(br#"data: {"id":"A","result":{}}"#, &escaped), "it is the same text");
        assert!(has_answer(b": x\n\nevent: message\ndata:{\"id\":7,\"result\":{}}\n\n", &id));
    }
}
