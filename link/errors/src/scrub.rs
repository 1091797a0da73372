//! CORE: an error without what is the user's. Our own sentences have no secret in them; what they quote may: a path, a piece
//! of source text, what an adapter said.

use std::borrow::Cow;

use baton_proto::redact;

/// Characters that are told at most.
const MAX_LEN: usize = 2_000;
/// What opens and closes a quotation.
const QUOTES: [(char, char); 5] =
    [('`', '`'), ('"', '"'), ('\'', '\''), ('\u{201c}', '\u{201d}'), ('\u{ab}', '\u{bb}')];
/// What stands in the place of a quotation.
const QUOTED: &str = "...";
/// What stands in the place of a path.
const PATH: &str = "PATH";
/// What is between the names of a path.
const SLASHES: [char; 2] = ['/', '\\'];
/// Where the sources of other people's crates lie: what follows, after one folder, is theirs and known to everybody.
const SOURCES: &str = "/registry/src/";

/// A text without quotations, paths, and what looks like a secret by its name.
pub fn scrubbed(text: &str) -> String {
    let short: String = text.chars().take(MAX_LEN).collect();
    redact::text(&without_paths(&without_quotations(&short)))
}

fn without_quotations(text: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        told.push(char);
        // "don't" quotes nothing.
        let closing = QUOTES
            .iter()
            .find(|(open, _)| *open == char && !before.is_alphanumeric())
            .map(|(_, close)| *close);
        before = char;
        let Some(closing) = closing else { continue };
        told.push_str(QUOTED);
        // One that was cut off hides the rest.
        let end = rest.find(closing).map_or(rest.len(), |end| end + closing.len_utf8());
        if rest[..end].ends_with(closing) {
            told.push(closing);
        }
        before = closing;
        rest = &rest[end..];
    }
    told
}

fn without_paths(text: &str) -> String {
    let mut told: Vec<Cow<'_, str>> = Vec::new();
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        let Some(start) = path_of(word) else {
            told.push(word.into());
            continue;
        };
        let (before, path) = word.split_at(start);
        if let Some(known) = known_source(path) {
            told.push(format!("{before}{known}").into());
            continue;
        }
        // Of a place the line stays.
        told.push(format!("{before}{PATH}{}", path.find(":\n").map_or("", |end| &path[end..])).into());
        let n_behind = n_behind(word, words.clone());
        words.by_ref().take(n_behind).for_each(drop);
    }
    told.join(" ")
}

/// Where a path from a root begins in this word.
fn path_of(word: &str) -> Option<usize> {
    let before = &word[..word.find(SLASHES).filter(|slash| is_root(&word[..*slash]))?];
    let other = before.char_indices().rfind(|(_, char)| !is_of_root(*char));
    Some(other.map_or(0, |(idx, char)| idx + char.len_utf8()))
}

/// How many of the words behind the first word of a path may be of its name, which has blanks in it then: all up to a colon,
/// else up to the last with a slash or a dot inside. Rather too many than one.
fn n_behind<'a>(first: &str, words: impl Iterator<Item = &'a str>) -> usize {
    let is_last = |word: &str| word.ends_with(':') || word.contains('\n');
    let mut n_behind = 0;
    if is_last(first) {
        return n_behind;
    }
    for (idx, word) in words.enumerate().take_while(|(_, word)| path_of(word).is_none()) {
        let line = word.lines().next().unwrap_or_default();
        let name = line.trim_end_matches(|char: char| !char.is_alphanumeric());
        if word.ends_with(':') || name.contains(SLASHES) || name.contains('.') {
            n_behind = idx + 1;
        }
        if is_last(word) {
            break;
        }
    }
    n_behind
}

/// Whether what stands before the first slash of a word makes it a path from the root, the home folder, or a URL; our own
/// sources are named from the root of the repository.
fn is_root(before: &str) -> bool {
    let last = before.trim_start_matches(|char: char| !is_of_root(char));
    last.is_empty() || last.ends_with(':') || last.ends_with('~')
}

fn is_of_root(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, ':' | '~' | '.' | '_' | '-')
}

fn known_source(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once(SOURCES)?;
    rest.split_once('/').map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_and_where_it_lies_is_not_told() {
        for (text, expected) in [
            ("cannot write /home/ann/shop/a.py: denied", "cannot write PATH denied"),
            ("cannot write /home/ann/shop: no space left", "cannot write PATH no space left"),
            ("window \"shop of ann\" is gone", "window \"...\" is gone"),
            ("inside 'é' (bytes 0..2) of `let pin = 4711;`", "inside '...' (bytes 0..2) of `...`"),
            ("it doesn't work and 'that is", "it doesn't work and '..."),
            ("token=abc was shown", "token=[redacted] was shown"),
            ("(file:///src/a.py)", "(PATH"),
            ("~/shop and C:\\Users\\ann", "PATH and PATH"),
            ("see https://ann.example/x?token=1 there", "see PATH there"),
            ("3 of 4 and/or 5", "3 of 4 and/or 5"),
            ("cannot write /home/ann/our shop: it is full: end", "cannot write PATH it is full: end"),
            ("cannot read C:\\our old shop\\b.py, which is gone", "cannot read PATH which is gone"),
            ("cannot move /a shop/of ann.txt to /b/d e.txt", "cannot move PATH to PATH"),
            ("/usr/bin/gdb has ended. Nothing more", "PATH has ended. Nothing more"),
        ] {
            assert_eq!(scrubbed(text), expected, "{text}");
        }
        assert!(scrubbed(&"x".repeat(9_000)).len() == MAX_LEN);
    }

    #[test]
    fn a_place_in_sources_that_everybody_knows_is_told() {
        let ours = "panicked at coordinator/edge/src/lib.rs:12:5:\nno such state";
        assert_eq!(scrubbed(ours), ours);
        let theirs =
            "panicked at /home/ann/.cargo/registry/src/index.crates.io-1/tokio-1.54.1/src/task.rs:7:1:\nno";
        assert_eq!(scrubbed(theirs), "panicked at tokio-1.54.1/src/task.rs:7:1:\nno");
    }
}
