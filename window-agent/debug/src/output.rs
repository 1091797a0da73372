//! CORE: what a program printed, bounded whatever it prints: where, in which order, and who was told how much of it.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::types::OutputTail;
use crate::types::control::{Category, OutputEntry, OutputPage};

/// What the output of a session may cost in memory.
const MAX_COST: usize = 1024 * 1024;
/// Of it, for messages on their way here and for what the allocator cannot use.
const ON_THE_WAY: usize = 64 * 1024;
/// Bytes kept of what a session printed, with what keeping them costs.
const MAX_KEPT: usize = MAX_COST - ON_THE_WAY;
/// Longest piece; pieces fall out whole.
const MAX_PIECE: usize = 8 * 1024;
/// What a piece costs besides its text.
const PIECE_COST: usize = 64;
/// Bytes told with an answer, of what was printed since the one before.
const MAX_TAIL: usize = 4 * 1024;

/// Text of one category, and where it begins.
#[derive(Debug)]
struct Piece {
    category: Category,
    text: String,
    start: u64,
}

/// A ring of what was printed. Places in it are counted in bytes from the very beginning.
#[derive(Debug)]
pub(crate) struct OutputLog {
    max_kept: usize,
    pieces: VecDeque<Piece>,
    /// What the text of a piece was kept in that fell out: in a flood nothing is allocated.
    spare: Option<String>,
    cost: usize,
    end: u64,
    /// What lies before it was told with an answer.
    told: u64,
    /// What lies before it was told in any way, so that it keeps its place.
    seen: u64,
}

impl Default for OutputLog {
    fn default() -> Self {
        Self::new(MAX_KEPT)
    }
}

impl OutputLog {
    /// A ring of so many bytes.
    pub(crate) fn new(max_kept: usize) -> Self {
        Self { max_kept, pieces: VecDeque::new(), spare: None, cost: 0, end: 0, told: 0, seen: 0 }
    }

    /// Adds text. A line that comes while one of another category is only begun is put before it: both stay whole.
    pub(crate) fn push(&mut self, category: Category, text: &str) {
        let begun = if text.ends_with('\n') { self.take_begun_line(category) } else { None };
        self.append(category, text);
        if let Some((category, begun)) = begun {
            self.append(category, &begun);
        }
    }

    fn take_begun_line(&mut self, category: Category) -> Option<(Category, String)> {
        let mut before = self.pieces.iter().rev().skip(1);
        let is_apart = before.next().is_none_or(|piece| piece.text.ends_with('\n'));
        let last = self.pieces.back_mut().filter(|last| last.category != category)?;
        let at = last.text.rfind('\n').map_or(0, |at| at + 1);
        let is_begun = at < last.text.len() && (at > 0 || is_apart);
        if !is_begun || last.start + (at as u64) < self.seen {
            return None;
        }
        let begun = (last.category, last.text.split_off(at));
        self.cost -= begun.1.len();
        self.end -= begun.1.len() as u64;
        if at == 0 {
            self.pieces.pop_back();
            self.cost -= PIECE_COST;
        }
        Some(begun)
    }

    fn append(&mut self, category: Category, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let room = match self.pieces.back() {
                Some(last) if last.category == category => MAX_PIECE.saturating_sub(last.text.len()),
                _ => 0,
            };
            let n_fit = rest.floor_char_boundary(room);
            if n_fit == 0 {
                self.drop_oldest();
                self.open_piece(category);
                continue;
            }
            let (now, later) = rest.split_at(n_fit);
            if let Some(last) = self.pieces.back_mut() {
                last.text.push_str(now);
            }
            self.cost += n_fit;
            self.end += n_fit as u64;
            rest = later;
        }
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        while self.cost > self.max_kept
            && let Some(oldest) = self.pieces.pop_front()
        {
            self.cost -= oldest.text.len() + PIECE_COST;
            self.spare = Some(oldest.text).filter(|text| text.capacity() >= MAX_PIECE);
        }
    }

    fn open_piece(&mut self, category: Category) {
        let mut is_flood = false;
        if let Some(last) = self.pieces.back_mut() {
            is_flood = last.text.len() + char::MAX_LEN_UTF8 > MAX_PIECE;
            last.text.shrink_to_fit();
        }
        // Growing step by step would leave holes of every size behind, and those count as memory used.
        let text = match self.spare.take().filter(|_| is_flood) {
            Some(mut spare) => {
                spare.clear();
                spare
            }
            None if is_flood => String::with_capacity(MAX_PIECE),
            None => String::new(),
        };
        self.pieces.push_back(Piece { category, text, start: self.end });
        self.cost += PIECE_COST;
    }

    /// What was printed since the last answer: the end of it. It counts as told then.
    pub(crate) fn take_tail(&mut self) -> OutputTail {
        let told = std::mem::replace(&mut self.told, self.end);
        self.seen = self.end;
        let start = told.max(self.end.saturating_sub(MAX_TAIL as u64));
        let mut text = self.text_from(start);
        if start > told {
            let n_cut = start_of_line(&text);
            text.drain(..n_cut);
        }
        let omitted_bytes = self.end - told - text.len() as u64;
        OutputTail { text: plain_line_ends(&text), omitted_bytes }
    }

    /// Part of it, see [`crate::types::control::OutputWish`].
    pub(crate) fn page(
        &mut self,
        since: Option<u64>,
        categories: &[Category],
        max_bytes: usize,
    ) -> OutputPage {
        let is_wanted = |piece: &Piece| categories.is_empty() || categories.contains(&piece.category);
        let first = self.pieces.front().map_or(self.end, |piece| piece.start);
        let asked = since.unwrap_or(0).min(self.end);
        let mut start = asked.max(first);
        if since.is_none() {
            start = self.start_of_end(&is_wanted, max_bytes).max(start);
        }
        let mut page = OutputPage { next: self.end, dropped_bytes: start - asked, ..OutputPage::default() };
        let mut n_left = max_bytes;
        for piece in self.pieces.iter().filter(|piece| is_wanted(piece)) {
            let skipped = usize::try_from(start.saturating_sub(piece.start)).unwrap_or(usize::MAX);
            let text = &piece.text[piece.text.ceil_char_boundary(skipped.min(piece.text.len()))..];
            let fit = &text[..text.floor_char_boundary(n_left)];
            n_left -= fit.len();
            push_entry(&mut page.entries, piece.category, fit);
            if fit.len() < text.len() {
                page.next = piece.start + (piece.text.len() - text.len() + fit.len()) as u64;
                page.has_more = true;
                break;
            }
        }
        self.seen = self.seen.max(page.next);
        for entry in &mut page.entries {
            entry.text = plain_line_ends(&entry.text);
        }
        page
    }

    /// Where the last `max_bytes` that are wanted begin, at a line where there is one.
    fn start_of_end(&self, is_wanted: &impl Fn(&Piece) -> bool, max_bytes: usize) -> u64 {
        let mut n_left = max_bytes;
        for piece in self.pieces.iter().rev().filter(|piece| is_wanted(piece)) {
            if piece.text.len() > n_left {
                let cut = piece.text.ceil_char_boundary(piece.text.len() - n_left);
                let at = cut + start_of_line(&piece.text[cut..]);
                return piece.start + at as u64;
            }
            n_left -= piece.text.len();
        }
        0
    }

    /// Whether some of it is kept no longer.
    pub(crate) fn is_truncated(&self) -> bool {
        self.pieces.front().map_or(self.end, |piece| piece.start) > 0
    }

    /// The last `max_len` bytes that say something.
    pub(crate) fn last_words(&self, max_len: usize) -> String {
        last_words(&self.text_from(0), max_len)
    }

    fn text_from(&self, start: u64) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            let skipped = usize::try_from(start.saturating_sub(piece.start)).unwrap_or(usize::MAX);
            text.push_str(&piece.text[piece.text.ceil_char_boundary(skipped.min(piece.text.len()))..]);
        }
        text
    }
}

/// The last `max_len` bytes of a text without the stacks of JavaScript, Java and Python, from a whole line on; of an
/// endless line both ends.
pub(crate) fn last_words(text: &str, max_len: usize) -> String {
    const TRACEBACK: &str = "Traceback (most recent call last):";
    let mut is_in_traceback = false;
    let mut is_frame = |line: &&str| {
        let is_indented = line.starts_with(char::is_whitespace);
        is_in_traceback = *line == TRACEBACK || (is_in_traceback && is_indented);
        is_in_traceback || (is_indented && line.trim_start().starts_with("at "))
    };
    // js-debug tells a failure once more with it.
    let text = text.split_once("\n  _cause: {").map_or(text, |(before, _)| before);
    let words: Vec<_> = text.lines().filter(|line| !is_frame(line)).map(both_ends).collect();
    let words = words.join("\n");
    let words = words.trim();
    let cut = words.len().saturating_sub(max_len);
    let words = &words[words.ceil_char_boundary(cut)..];
    if cut == 0 { words.to_owned() } else { words[start_of_line(words)..].to_owned() }
}

/// A line as it is, or its beginning and its end.
fn both_ends(line: &str) -> Cow<'_, str> {
    const BEGINNING: usize = 200;
    const END: usize = 80;
    if line.len() <= BEGINNING + END {
        return Cow::Borrowed(line);
    }
    let (beginning, end) = (line.floor_char_boundary(BEGINNING), line.ceil_char_boundary(line.len() - END));
    Cow::Owned(format!("{} ... {}", &line[..beginning], &line[end..]))
}

fn push_entry(entries: &mut Vec<OutputEntry>, category: Category, text: &str) {
    match entries.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.category == category => last.text.push_str(text),
        _ => entries.push(OutputEntry { category, text: text.to_owned() }),
    }
}

/// Where the first whole line of a cut text begins; one endless line is left as it is.
fn start_of_line(text: &str) -> usize {
    text.find('\n').map(|at| at + 1).filter(|at| *at < text.len()).unwrap_or(0)
}

fn plain_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_no_stack_and_begin_with_a_line() {
        let text = "boot\nError: Can't find \"nodez\"\n    at a.js:1:2\n    at async b {\n  _cause: {\n    id: 9229\n  }\n}\n";
        assert_eq!(last_words(text, 400), "boot\nError: Can't find \"nodez\"");
        assert_eq!(last_words(text, 28), "Error: Can't find \"nodez\"");
        assert_eq!(last_words("one endless line", 4), "line");
        let traceback = "gdb: no\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\n    ^^^\nOSError: no\n";
        assert_eq!(last_words(traceback, 400), "gdb: no\nOSError: no");
        let endless = format!("Error: {} ended with 1.", "é".repeat(1_000));
        let told = last_words(&endless, 400);
        assert!(
            told.starts_with("Error: é") && told.contains(" ... ") && told.ends_with("ended with 1."),
            "{told}"
        );
        assert!(told.len() < 300, "{told}");
    }

    fn flood() -> OutputLog {
        let mut log = OutputLog::default();
        for n in 0..100_000 {
            log.push(Category::Stdout, &format!("line {n:05}\n"));
        }
        log
    }

    fn texts(page: &OutputPage) -> Vec<(&'static str, &str)> {
        page.entries.iter().map(|entry| (entry.category.as_str(), entry.text.as_str())).collect()
    }

    #[test]
    fn keeps_the_end_of_a_flood_and_counts_the_rest() {
        let mut log = flood();
        let capacity: usize = log.pieces.iter().map(|piece| piece.text.capacity() + PIECE_COST).sum();
        assert!(capacity <= MAX_KEPT + MAX_PIECE, "{capacity}");
        let tail = log.take_tail();
        assert!(tail.text.starts_with("line ") && tail.text.ends_with("line 99999\n"));
        assert_eq!(tail.text.len() as u64 + tail.omitted_bytes, 100_000 * 11);
        assert!(tail.text.len() <= MAX_TAIL);
        assert!(log.take_tail().is_empty());
    }

    #[test]
    fn one_endless_line_is_cut_at_a_character() {
        let mut log = OutputLog::default();
        log.push(Category::Stdout, &"é".repeat(MAX_TAIL));
        log.push(Category::Stdout, "!");
        let tail = log.take_tail();
        assert!(tail.text.starts_with('é') && tail.text.ends_with("é!"));
        assert_eq!(tail.text.len() as u64 + tail.omitted_bytes, 2 * MAX_TAIL as u64 + 1);
    }

    #[test]
    fn many_small_pieces_are_bounded_too() {
        let mut log = OutputLog::default();
        for _ in 0..100_000 {
            log.push(Category::Stdout, "a");
            log.push(Category::Stderr, "b");
        }
        assert!(log.pieces.len() <= MAX_KEPT / PIECE_COST);
    }

    #[test]
    fn a_cursor_walks_over_everything_once() {
        let mut log = flood();
        let (mut cursor, mut n_bytes, mut dropped) = (0, 0, 0);
        loop {
            let page = log.page(Some(cursor), &[], 10_000);
            n_bytes += page.entries.iter().map(|entry| entry.text.len() as u64).sum::<u64>();
            dropped += page.dropped_bytes;
            cursor = page.next;
            if !page.has_more {
                break;
            }
        }
        assert_eq!(n_bytes + dropped, 100_000 * 11);
        assert!(dropped > 0);
        assert_eq!(log.page(Some(cursor), &[], 10_000).entries, []);
        assert_eq!(log.page(Some(u64::MAX), &[], 10_000).next, cursor);
    }

    #[test]
    fn a_line_in_the_middle_of_another_comes_before_it() {
        let mut log = OutputLog::default();
        log.push(Category::Stdout, "first\nsec");
        log.push(Category::Console, "logged\n");
        log.push(Category::Stdout, "ond\nNa");
        assert_eq!(log.take_tail().text, "first\nlogged\nsecond\nNa");
        log.push(Category::Stderr, "what was told stays\n");
        log.push(Category::Stdout, "begun");
        log.page(None, &[], 100);
        log.push(Category::Console, "also in a page\n");
        assert_eq!(log.take_tail().text, "what was told stays\nbegunalso in a page\n");
        assert_eq!(
            (log.cost, log.end),
            (log.pieces.iter().map(|piece| piece.text.len() + PIECE_COST).sum(), 62)
        );
    }

    #[test]
    fn categories_are_kept_apart_and_in_order() {
        let mut log = OutputLog::default();
        log.push(Category::Stdout, "one\r\n");
        log.push(Category::Stderr, "two\n");
        log.push(Category::Stdout, "three\nfour\n");
        let all = log.page(None, &[], 100);
        assert_eq!(texts(&all), [("stdout", "one\n"), ("stderr", "two\n"), ("stdout", "three\nfour\n")]);
        let out = log.page(Some(0), &[Category::Stdout], 100);
        assert_eq!(texts(&out), [("stdout", "one\nthree\nfour\n")]);
        assert_eq!(texts(&log.page(None, &[], 8)), [("stdout", "four\n")]);
        assert_eq!(log.page(None, &[], 8).dropped_bytes, 15);
        let first = log.page(Some(0), &[], 5);
        assert_eq!((texts(&first), first.next, first.has_more), (vec![("stdout", "one\n")], 5, true));
    }
}
