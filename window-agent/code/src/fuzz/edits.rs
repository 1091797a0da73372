//! Edits of a text: the same as on a list of characters, one by one from the last place to the first.

use arbitrary::{Result, Unstructured};

use crate::edits::{Replacement, apply, replacements};
use crate::lsp::{Position, Range, TextEdit};
use crate::text::{Encoding, Text};

const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

/// What texts are made of: all line ends, one to four bytes, one and two units.
const PIECES: [&str; 12] =
    ["a", "b", " ", "\n", "\r\n", "\r", "é", "\u{feff}", "世", "😀", "x\u{301}", "line"];

pub(super) fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    // Too short an input is no input.
    let Ok((text, encoding, edits)) = read(&mut input) else { return };
    check_text(&text, encoding);
    let old = Text::new(text.clone());
    let made = apply(&old, replacements(&old, &edits, encoding));
    let expected = apply_plainly(&text, &edits, encoding);
    assert_eq!(made.as_ref().ok(), expected.as_ref(), "{edits:?} in {encoding:?} of {text:?}: {made:?}");
    let Ok(new) = made else { return };
    // There and back again.
    for (from, to) in [(&text, &new), (&new, &text)] {
        let known = Text::new(from.clone());
        let change = known.change_to(to, encoding);
        let change: Vec<TextEdit> =
            change.map(|(range, new_text)| TextEdit { range, new_text }).into_iter().collect();
        assert_eq!(apply(&known, replacements(&known, &change, encoding)).as_ref(), Ok(to));
    }
    let undo = undo(&replacements(&old, &edits, encoding), &text);
    assert_eq!(apply(&Text::new(new), undo), Ok(text), "what was done can be undone");
}

fn read(input: &mut Unstructured<'_>) -> Result<(String, Encoding, Vec<TextEdit>)> {
    let encoding = *input.choose(&ENCODINGS)?;
    let text = text(input, 24)?;
    let n_edits = input.int_in_range(0..=5)?;
    let edits = (0..n_edits).map(|_| edit(input)).collect::<Result<_>>()?;
    Ok((text, encoding, edits))
}

/// Some pieces.
pub(super) fn text(input: &mut Unstructured<'_>, max: usize) -> Result<String> {
    let n_pieces = input.int_in_range(0..=max)?;
    (0..n_pieces).map(|_| input.choose(&PIECES).copied()).collect()
}

/// An edit somewhere; mostly not backwards.
pub(super) fn edit(input: &mut Unstructured<'_>) -> Result<TextEdit> {
    let mut place = || -> Result<Position> {
        Ok(Position { line: input.int_in_range(0..=6)?, character: input.int_in_range(0..=9)? })
    };
    let (one, other) = (place()?, place()?);
    let is_backwards = input.ratio(1, 16)?;
    let (start, end) = if (one <= other) != is_backwards { (one, other) } else { (other, one) };
    Ok(TextEdit { range: Range { start, end }, new_text: text(input, 3)? })
}

/// The replacements that lead back.
fn undo(replacements: &[Replacement], old: &str) -> Vec<Replacement> {
    let mut sorted = replacements.to_vec();
    sorted.sort_by_key(|(span, _)| (span.start, span.end));
    let mut moved = 0_isize;
    let back = sorted.into_iter().map(|(span, new)| {
        let start = span.start.strict_add_signed(moved);
        moved += new.len() as isize - span.len() as isize;
        (start..start + new.len(), old[span].to_owned())
    });
    // Of several at one place the last one stands behind the others.
    back.collect()
}

/// None when two edits touch the same characters, or one runs backwards.
pub(super) fn apply_plainly(text: &str, edits: &[TextEdit], encoding: Encoding) -> Option<String> {
    let mut chars: Vec<char> = text.chars().collect();
    let place = |position: Position| place(&chars, position, encoding);
    let mut all: Vec<(usize, usize, &str)> = edits
        .iter()
        .map(|edit| (place(edit.range.start), place(edit.range.end), edit.new_text.as_str()))
        .collect();
    let touch = |one: &(usize, usize, &str), other: &(usize, usize, &str)| {
        // Each strictly inside the other, or the ends of both apart.
        one.0.max(other.0) < one.1.min(other.1)
            || (other.0 < one.0 && one.1 < other.1)
            || (one.0 < other.0 && other.1 < one.1)
    };
    for (idx, one) in all.iter().enumerate() {
        if one.1 < one.0 || all[..idx].iter().any(|other| touch(one, other)) {
            return None;
        }
    }
    all.sort_by_key(|(start, end, _)| (*start, *end));
    for (start, end, new) in all.into_iter().rev() {
        chars.splice(start..end, new.chars());
    }
    Some(chars.into_iter().collect())
}

/// Which character stands at a position; behind the end of its line it is that end.
fn place(chars: &[char], position: Position, encoding: Encoding) -> usize {
    let (mut at, mut line) = (0, 0);
    while line < position.line {
        match (chars.get(at), chars.get(at + 1)) {
            (None, _) => return chars.len(),
            (Some('\r'), Some('\n')) => (at, line) = (at + 2, line + 1),
            (Some('\r' | '\n'), _) => (at, line) = (at + 1, line + 1),
            _ => at += 1,
        }
    }
    let mut units = position.character as usize;
    while let Some(char) = chars.get(at).filter(|char| !matches!(char, '\r' | '\n')) {
        let len = match encoding {
            Encoding::Utf8 => char.len_utf8(),
            Encoding::Utf16 => char.len_utf16(),
            Encoding::Utf32 => 1,
        };
        if units < len {
            break;
        }
        (at, units) = (at + 1, units - len);
    }
    at
}

/// Every place has a position that leads back to it, and lines are what lies between line ends.
fn check_text(text: &str, encoding: Encoding) {
    let known = Text::new(text.to_owned());
    let chars: Vec<char> = text.chars().collect();
    for (idx, (at, char)) in text.char_indices().enumerate() {
        let is_in_line_end = char == '\n' && idx > 0 && chars[idx - 1] == '\r';
        let position = known.position(at, encoding);
        if !is_in_line_end {
            assert_eq!(known.offset(position, encoding), at, "{position:?} in {text:?}");
            assert_eq!(place(&chars, position, encoding), idx, "{position:?} in {text:?}");
            let in_chars = known.to_chars(position, encoding);
            assert_eq!(place(&chars, in_chars, Encoding::Utf32), idx, "{in_chars:?} in {text:?}");
        }
    }
    let lines: Vec<String> =
        text.replace("\r\n", "\n").replace('\r', "\n").split('\n').map(str::to_owned).collect();
    for (idx, line) in lines.iter().enumerate() {
        assert_eq!(known.line(idx), line);
    }
    let n_lines = lines.len() - usize::from(lines.last().is_some_and(String::is_empty));
    assert_eq!(known.n_lines(), n_lines, "{text:?}");
}
