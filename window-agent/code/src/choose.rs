//! CORE: which symbol of a file a name and a line mean, and which lines are its own.

use std::collections::BTreeSet;

use super::search;
use super::symbols::{self, Found, Match, Symbol};
use super::text::Text;
use super::types::{Chosen, Outline};
use baton_agent_base::fault::{Fault, Kind};

/// Candidates that an error lists.
const MAX_CANDIDATES: usize = 20;

impl Outline {
    /// Its text.
    pub fn text(&self) -> &Text {
        &self.subject.snapshot.text
    }

    /// The symbol that `name` means. `line`, from 1, chooses among several, and has to be one that has it.
    pub fn choose(&self, name: &str, line: Option<u32>) -> Result<Chosen, Fault> {
        let (mut found, is_corrected) = match symbols::find(&self.symbols, name) {
            Match::Nearest(names) => {
                let lines = self.lines_with(name);
                return Err(match line.filter(|line| !lines.is_empty() && !lines.contains(line)) {
                    Some(line) => not_on_line(self.text(), name, line, lines, std::iter::empty()),
                    None => not_found(name, &names),
                });
            }
            Match::One(found, is_corrected) | Match::Several(found, is_corrected) => (found, is_corrected),
        };
        let is_one = |found: &[Found<'_>]| found.iter().all(|other| other.path == found[0].path);
        if let Some(line) = line {
            let holding = self.on_line(&found, line.saturating_sub(1));
            // A use of it tells no less, when there is nothing to tell it from.
            let is_used = !is_corrected && is_one(&found) && self.lines_with(name).contains(&line);
            match holding.is_empty() {
                false => found = holding,
                true if is_used => {}
                true => return Err(self.not_on_line(name, &found, line)),
            }
        }
        if is_one(&found) {
            return Ok(chosen(found, is_corrected));
        }
        let candidates: Vec<String> = found.iter().take(MAX_CANDIDATES).map(shown).collect();
        let message = format!("{name:?} could be any of {} symbols.", found.len());
        Err(Fault::new(Kind::AmbiguousSymbol, message)
            .hint("Use the full name of one of the candidates as symbol_name.")
            .detail("candidates", candidates))
    }

    /// Those whose name stands on the line, else the innermost that holds it.
    fn on_line<'a>(&self, found: &[Found<'a>], line: u32) -> Vec<Found<'a>> {
        let named: Vec<Found<'a>> =
            found.iter().filter(|found| found.symbol.name_range.start.line == line).cloned().collect();
        if !named.is_empty() {
            return named;
        }
        let holds = |found: &&Found<'a>| {
            let (first, last) = lines_with_comments(self.text(), found.symbol);
            (first..=last).contains(&(line as usize))
        };
        let holding: Vec<Found<'a>> = found.iter().filter(holds).cloned().collect();
        let innermost = holding.iter().map(|found| found.symbol.range.start).max();
        holding.into_iter().filter(|found| Some(found.symbol.range.start) == innermost).collect()
    }

    /// Lines, from 1, on which the name stands as a word.
    fn lines_with(&self, name: &str) -> BTreeSet<u32> {
        search::lines_with(self.text(), symbols::last_name(name))
    }

    fn not_on_line(&self, name: &str, found: &[Found<'_>], line: u32) -> Fault {
        not_on_line(self.text(), name, line, self.lines_with(name), found.iter().map(shown))
    }
}

/// The lines that have a name, or what is like it, for a call that named another line.
pub(super) fn not_on_line(
    text: &Text,
    name: &str,
    line: u32,
    lines: BTreeSet<u32>,
    alike: impl Iterator<Item = String>,
) -> Fault {
    const MAX_SHOWN: usize = 80;
    let shown = |line: &u32| {
        let code: String = text.line(*line as usize - 1).trim().chars().take(MAX_SHOWN).collect();
        format!("line {line}: {code}")
    };
    let message = format!("{:?} does not stand on line {line}.", shorten(name));
    let (hint, candidates): (_, Vec<String>) = match lines.is_empty() {
        true => ("Did you mean one of the candidates?", alike.take(MAX_CANDIDATES).collect()),
        false => (
            "It stands on the lines of the candidates: name one of them, or leave line out.",
            lines.iter().take(MAX_CANDIDATES).map(shown).collect(),
        ),
    };
    Fault::new(Kind::SymbolNotFound, message).hint(hint).detail("candidates", candidates)
}

fn shown(found: &Found<'_>) -> String {
    format!("{} (line {}, {})", found.path, found.symbol.name_range.start.line + 1, found.symbol.kind)
}

/// What a client wrote, bounded.
fn shorten(text: &str) -> String {
    const MAX_SHOWN: usize = 100;
    text.chars().take(MAX_SHOWN).collect()
}

fn chosen(found: Vec<Found<'_>>, is_corrected: bool) -> Chosen {
    let path = found.first().map(|found| found.path.clone()).unwrap_or_default();
    Chosen { symbols: found.into_iter().map(|found| found.symbol.clone()).collect(), path, is_corrected }
}

pub(super) fn not_found(name: &str, nearest: &[String]) -> Fault {
    let message = format!("There is no symbol {:?} in this file.", shorten(name));
    let error = Fault::new(Kind::SymbolNotFound, message);
    if nearest.is_empty() {
        return error;
    }
    error.hint(format!("Did you mean {}?", nearest.join(" or "))).detail("candidates", nearest.to_vec())
}

/// The lines of a symbol, from 0, with the comments and attributes right above it.
pub fn lines_with_comments(text: &Text, symbol: &Symbol) -> (usize, usize) {
    const MARKS: [&str; 9] = ["#", "//", "/*", "*", "*/", "@", "--", ";;", "\"\"\""];
    let (mut first, mut last) = (symbol.range.start.line as usize, symbol.range.end.line as usize);
    // A range that ends at the start of a line does not hold that line.
    if symbol.range.end.character == 0 && last > first {
        last -= 1;
    }
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let depth = indentation(text.line(first));
    while first > 0 {
        let above = text.line(first - 1);
        let is_comment = MARKS.iter().any(|mark| above.trim_start().starts_with(mark));
        if !is_comment
            || indentation(above).abs_diff(depth) > 1
            || above.starts_with("#!")
            || is_directive(above)
        {
            break;
        }
        first -= 1;
    }
    (first, last)
}

/// The preprocessor's lines are no comments.
fn is_directive(line: &str) -> bool {
    const DIRECTIVES: [&str; 8] =
        ["#include", "#define", "#if", "#endif", "#else", "#elif", "#undef", "#pragma"];
    DIRECTIVES.iter().any(|directive| line.trim_start().starts_with(directive))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsp::{Position, Range};

    #[test]
    fn comments_above_belong_to_a_symbol() {
        let text = Text::new(
            "#include <x>\n// one\n// two\nint f() {\n}\n\n# no\n\ndef g():\n    pass\n".to_owned(),
        );
        let symbol = |first: u32, last: u32, character: u32| Symbol {
            name: String::new(),
            kind: "function",
            detail: None,
            range: Range {
                start: Position { line: first, character: 0 },
                end: Position { line: last, character },
            },
            name_range: Range::default(),
            children: Vec::new(),
        };
        assert_eq!(lines_with_comments(&text, &symbol(3, 4, 1)), (1, 4));
        assert_eq!(lines_with_comments(&text, &symbol(8, 10, 0)), (8, 9));
    }
}
