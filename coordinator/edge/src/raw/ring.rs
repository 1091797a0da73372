//! CORE: the last events of all streams, bounded in number and in characters.

use std::collections::VecDeque;

use baton_proto::control::RawEvent;

/// Events that are kept.
const MAX_EVENTS: usize = 1_000;
/// Characters of all of them.
const MAX_CHARS: usize = 512_000;
/// Characters of one.
const MAX_EVENT_CHARS: usize = 64_000;

/// The last events, oldest first.
#[derive(Debug, Default)]
pub(super) struct Ring {
    events: VecDeque<(RawEvent, usize)>,
    n_chars: usize,
    n_all: u64,
}

impl Ring {
    /// How many events there have been.
    pub(super) fn n_all(&self) -> u64 {
        self.n_all
    }

    /// Those that are kept and have a higher number.
    pub(super) fn after(&self, number: u64) -> Vec<RawEvent> {
        let events = self.events.iter().map(|(event, _)| event);
        events.filter(|event| event.number > number).cloned().collect()
    }

    /// Keeps the events in a piece of a stream, which has whole ones.
    pub(super) fn put(&mut self, at_ms: u64, stream: u64, client: &str, piece: &str) {
        for text in piece.split("\n\n").filter(|text| !text.is_empty()) {
            self.n_all += 1;
            let (text, n_chars) = bounded(text);
            let event = RawEvent { number: self.n_all, at_ms, stream, client: client.to_owned(), text };
            self.events.push_back((event, n_chars));
            self.n_chars += n_chars;
            while self.events.len() > MAX_EVENTS || self.n_chars > MAX_CHARS {
                let Some((_, n_chars)) = self.events.pop_front() else { break };
                self.n_chars -= n_chars;
            }
        }
    }
}

/// An event that is not too long, and how many characters it has; where it was cut a comment says so.
fn bounded(text: &str) -> (String, usize) {
    let n_chars = text.chars().count();
    if n_chars <= MAX_EVENT_CHARS {
        return (text.to_owned(), n_chars);
    }
    let mark = format!("\n: truncated, {} more characters", n_chars - MAX_EVENT_CHARS);
    let shown: String = text.chars().take(MAX_EVENT_CHARS).collect::<String>() + &mark;
    (shown, MAX_EVENT_CHARS + mark.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_of_a_piece_is_one() {
        let mut ring = Ring::default();
        ring.put(1, 7, "c", ": open\n\n");
        ring.put(2, 7, "c", "data: a\n\nid: 1\ndata: b\n\n");
        let texts: Vec<(u64, String)> =
            ring.after(1).into_iter().map(|event| (event.number, event.text)).collect();
        assert_eq!(texts, [(2, "data: a".to_owned()), (3, "id: 1\ndata: b".to_owned())]);
        assert_eq!((ring.n_all(), ring.after(0).len(), ring.after(3).len()), (3, 3, 0));
    }

    #[test]
    fn the_oldest_go_and_are_counted() {
        let mut ring = Ring::default();
        for _ in 0..MAX_EVENTS + 5 {
            ring.put(1, 1, "c", "data: x\n\n");
        }
        assert_eq!((ring.after(0).len(), ring.after(0)[0].number), (MAX_EVENTS, 6));
        for _ in 0..20 {
            ring.put(1, 1, "c", &format!("data: {}\n\n", "\u{e9}".repeat(50_000)));
        }
        let kept = ring.after(0);
        let n_chars: usize = kept.iter().map(|event| event.text.chars().count()).sum();
        assert!((450_000..=MAX_CHARS).contains(&n_chars), "{n_chars}");
        assert_eq!(ring.n_all(), 1_025);
    }

    #[test]
    fn one_that_is_too_long_says_where_it_was_cut() {
        let mut ring = Ring::default();
        ring.put(1, 1, "c", &"x".repeat(MAX_EVENT_CHARS + 1));
        let kept = ring.after(0).remove(0).text;
        assert!(kept.ends_with("xx\n: truncated, 1 more characters"), "{}", kept.len());
    }
}
