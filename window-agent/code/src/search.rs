//! CORE: what a text alone tells: definitions by their keywords, words by their ends. Used where no server can.

use std::collections::BTreeSet;
use std::ops::Range as Span;

use super::lsp::{Position, Range};
use super::symbols::Symbol;
use super::text::{Encoding, Text, is_word};

/// Words that stand before the one that counts.
const MODIFIERS: [&str; 20] = [
    "pub",
    "pub(crate)",
    "pub(super)",
    "export",
    "default",
    "async",
    "static",
    "public",
    "private",
    "protected",
    "abstract",
    "final",
    "override",
    "inline",
    "extern",
    "unsafe",
    "const",
    "virtual",
    "local",
    "declare",
];

/// Words that define, and what.
const KEYWORDS: [(&str, &str); 20] = [
    ("def", "function"),
    ("class", "class"),
    ("function", "function"),
    ("fn", "function"),
    ("func", "function"),
    ("struct", "struct"),
    ("enum", "enum"),
    ("trait", "interface"),
    ("interface", "interface"),
    ("impl", "object"),
    ("type", "class"),
    ("module", "module"),
    ("mod", "module"),
    ("namespace", "namespace"),
    ("sub", "function"),
    ("proc", "function"),
    ("fun", "function"),
    ("object", "object"),
    ("record", "struct"),
    ("union", "struct"),
];

/// The word that begins at a place; empty when none does.
pub fn word_at(text: &Text, place: Position) -> &str {
    let rest = &text.as_str()[text.offset(place, Encoding::Utf32)..];
    &rest[..rest.find(|char| !is_word(char)).unwrap_or(rest.len())]
}

/// Whether a name, in any case, stands in a stretch of a text or in words that it cuts.
pub fn holds(text: &str, span: &Span<usize>, name: &str) -> bool {
    let before = text[..span.start].trim_end_matches(is_word).len();
    let after = text.len() - text[span.end..].trim_start_matches(is_word).len();
    text[before..after].to_lowercase().contains(&name.to_lowercase())
}

/// The definitions in a text, as their keywords and the indentation tell.
pub fn outline(text: &Text) -> Vec<Symbol> {
    let mut roots: Vec<Symbol> = Vec::new();
    for idx in 0..text.n_lines() {
        let line = text.line(idx);
        let Some((kind, name_at, name)) = definition(line) else { continue };
        let place =
            |line: usize, character: usize| Position { line: line as u32, character: character as u32 };
        let chars = |at: usize| line[..at].chars().count();
        let last = last_line(text, idx);
        let symbol = Symbol {
            name: name.to_owned(),
            kind,
            detail: None,
            range: Range {
                start: place(idx, chars(indentation(line))),
                end: place(last, text.line(last).chars().count()),
            },
            name_range: Range {
                start: place(idx, chars(name_at)),
                end: place(idx, chars(name_at + name.len())),
            },
            children: Vec::new(),
        };
        insert(&mut roots, symbol);
    }
    roots
}

fn insert(symbols: &mut Vec<Symbol>, symbol: Symbol) {
    match symbols.last_mut() {
        Some(last) if last.range.holds(&symbol.range) => insert(&mut last.children, symbol),
        _ => symbols.push(symbol),
    }
}

/// What a line defines: kind, where its name is, name.
fn definition(line: &str) -> Option<(&'static str, usize, &str)> {
    let mut at = indentation(line);
    loop {
        let rest = &line[at..];
        let word = rest.split_whitespace().next()?;
        let after = at + word.len();
        let next = after + indentation(&line[after..]);
        if let Some((_, kind)) = KEYWORDS.iter().find(|(keyword, _)| *keyword == word) {
            let name: &str = &line[next..];
            let end = name.find(|char: char| !is_word(char)).unwrap_or(name.len());
            return (end > 0).then(|| (*kind, next, &name[..end]));
        }
        if !MODIFIERS.contains(&word) {
            return None;
        }
        at = next;
    }
}

/// A definition lasts as long as its lines are indented deeper, with the line that closes it.
fn last_line(text: &Text, first: usize) -> usize {
    let depth = indentation(text.line(first));
    let mut last = first;
    for idx in first + 1..text.n_lines() {
        let line = text.line(idx);
        if line.trim().is_empty() {
            continue;
        }
        let closes = line.trim_start().starts_with(['}', ')', ']']) || line.trim() == "end";
        match indentation(line).cmp(&depth) {
            std::cmp::Ordering::Greater => last = idx,
            std::cmp::Ordering::Equal if closes || line.trim() == "{" => last = idx,
            _ => break,
        }
        if closes && indentation(line) == depth {
            break;
        }
    }
    last
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Bytes at which `word` stands as a whole word.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    memchr::memmem::find_iter(text.as_bytes(), word.as_bytes()).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !word.is_empty() && !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Lines, from 1, on which `word` stands.
pub fn lines_with(text: &Text, word: &str) -> BTreeSet<u32> {
    words(text.as_str(), word).map(|at| text.position(at, Encoding::Utf32).line + 1).collect()
}

/// The line that opens what a line is in: the nearest one above that is indented less and defines something.
pub fn header(text: &Text, line_idx: usize) -> Option<&str> {
    let mut depth = indentation(text.line(line_idx));
    for idx in (0..line_idx).rev() {
        let line = text.line(idx);
        if line.trim().is_empty() || indentation(line) >= depth {
            continue;
        }
        depth = indentation(line);
        if definition(line).is_some() || is_c_function(line) {
            return Some(line.trim());
        }
        if depth == 0 {
            return None;
        }
    }
    None
}

/// `int main(void) {` and `render(x: number): void {`.
fn is_c_function(line: &str) -> bool {
    const STATEMENTS: [&str; 9] = ["if", "for", "while", "switch", "catch", "else", "return", "do", "try"];
    let line = line.trim();
    let first = line.split(|char: char| !is_word(char)).next().unwrap_or_default();
    line.ends_with('{') && line.contains('(') && !first.is_empty() && !STATEMENTS.contains(&first)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::symbols::flatten;

    #[test]
    fn the_word_at_a_place_ends_where_it_ends() {
        let text = Text::new("a.größe()".to_owned());
        let word = |character| word_at(&text, Position { line: 0, character });
        assert_eq!([word(2), word(9)], ["größe", ""]);
    }

    #[test]
    fn a_stretch_holds_the_name_that_it_cuts() {
        let text = "x.größe = Size(1)";
        let span = |part: &str| text.find(part).map(|at| at..at + part.len()).unwrap();
        assert!(holds(text, &span("größe"), "größe") && holds(text, &span("öß"), "größe"));
        assert!(holds(text, &span("Size"), "size") && holds(text, &(2..2), "größe"));
        assert!(!holds(text, &span("Size"), "größe") && !holds(text, &span(" = "), "one"));
    }

    #[test]
    fn definitions_are_found_by_their_keywords() {
        let text = Text::new(
            "import x\n\nexport async function go(a) {\n  return a\n}\n\npub struct Ä {\n    a: u8,\n}\n\
             class A:\n    def f(self):\n\n        pass\n\nx = 1\ndefine = 3\n"
                .to_owned(),
        );
        let shown: Vec<String> = flatten(&outline(&text))
            .into_iter()
            .map(|found| {
                let range = found.symbol.range;
                format!(
                    "{} {} {}-{}",
                    found.symbol.kind,
                    found.path,
                    range.start.line + 1,
                    range.end.line + 1
                )
            })
            .collect();
        expect![[r#"
            function go 3-5
            struct Ä 7-9
            class A 10-13
            function A.f 11-13"#]]
        .assert_eq(&shown.join("\n"));
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("run rerun run_ run.run ärun", "run").collect::<Vec<_>>(), [0, 15, 19]);
        assert_eq!(words("x", "").count(), 0);
    }

    #[test]
    fn a_line_is_in_what_opened_it() {
        let text =
            Text::new("class A:\n    def f(self):\n        if x:\n            go()\n\ntop()\n".to_owned());
        assert_eq!(header(&text, 3), Some("def f(self):"));
        assert_eq!(header(&text, 5), None);
        let text = Text::new("int main(void) {\n  if (x) {\n    go();\n  }\n}\n".to_owned());
        assert_eq!(header(&text, 2), Some("int main(void) {"));
    }
}
