//! CORE: an error without what is the user's. Our own sentences have no secret in them; what they quote may: a path, a piece
//! of source text, what an adapter said.

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
    let mut told = String::with_capacity(text.len());
    for (idx, word) in text.split(' ').enumerate() {
        if idx > 0 {
            told.push(' ');
        }
        let start = word.find(['/', '\\']).filter(|start| is_root(&word[..*start]));
        match start {
            None => told.push_str(word),
            Some(start) => {
                let path_at = word[..start]
                    .rfind(|char: char| !is_of_root(char))
                    .map_or(0, |idx| idx + word[idx..].chars().next().map_or(1, char::len_utf8));
                let (before, path) = word.split_at(path_at);
                told.push_str(before);
                match known_source(path) {
                    Some(known) => told.push_str(known),
                    None => {
                        told.push_str(PATH);
                        // Of a place the line stays.
                        told.push_str(path.find(":\n").map_or("", |end| &path[end..]));
                    }
                }
            }
        }
    }
    told
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
