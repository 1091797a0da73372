//! CORE: edits of several files: from what a server wants to new texts, or a reason why not.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range as Span;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::lsp::{self, TextEdit};
use super::text::{Encoding, Text};

/// Why edits are not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditProblem {
    /// The server wants files created, renamed or deleted.
    #[error("the server wants to {0} a file, which is not supported")]
    FileOperation(String),
    /// Two edits of the same place.
    #[error("two edits overlap at line {0}")]
    Overlap(u32),
    /// Not as the protocol says.
    #[error("the server's edit cannot be understood")]
    Malformed,
}

/// The edits of a `WorkspaceEdit`, by file.
pub fn from_workspace_edit(edit: &Value) -> Result<BTreeMap<PathBuf, Vec<TextEdit>>, EditProblem> {
    let mut all: BTreeMap<PathBuf, Vec<TextEdit>> = BTreeMap::new();
    let mut add = |uri: &str, edits: &Value| {
        let path = lsp::path(uri).ok_or(EditProblem::Malformed)?;
        let edits: Vec<TextEdit> = Vec::deserialize(edits).map_err(|_| EditProblem::Malformed)?;
        all.entry(path).or_default().extend(edits);
        Ok(())
    };
    if let Some(changes) = edit["documentChanges"].as_array() {
        for change in changes {
            if let Some(kind) = change["kind"].as_str() {
                return Err(EditProblem::FileOperation(kind.to_owned()));
            }
            add(change["textDocument"]["uri"].as_str().unwrap_or_default(), &change["edits"])?;
        }
    } else if let Some(changes) = edit["changes"].as_object() {
        for (uri, edits) in changes {
            add(uri, edits)?;
        }
    }
    Ok(all)
}

/// A stretch of bytes and what replaces it.
pub type Replacement = (Span<usize>, String);

/// A server's edits as bytes of the text.
pub fn replacements(text: &Text, edits: &[TextEdit], encoding: Encoding) -> Vec<Replacement> {
    let span =
        |edit: &TextEdit| text.offset(edit.range.start, encoding)..text.offset(edit.range.end, encoding);
    edits.iter().map(|edit| (span(edit), edit.new_text.clone())).collect()
}

/// The new text, when no two replacements touch the same bytes.
pub fn apply(text: &Text, mut replacements: Vec<Replacement>) -> Result<String, EditProblem> {
    // Stable: several insertions at one place stay in their order.
    replacements.sort_by_key(|(span, _)| (span.start, span.end));
    let old = text.as_str();
    let (mut new, mut at) = (String::with_capacity(old.len()), 0);
    for (span, inserted) in &replacements {
        if span.start < at || span.end < span.start {
            return Err(EditProblem::Overlap(text.position(span.start, Encoding::Utf32).line + 1));
        }
        new.push_str(&old[at..span.start]);
        new.push_str(inserted);
        at = span.end;
    }
    new.push_str(&old[at..]);
    Ok(new)
}

/// Stands for texts before and after: equal only when nothing changed in between.
pub fn token<'a>(changes: impl Iterator<Item = (&'a PathBuf, &'a str, &'a str)>) -> String {
    let mut hasher = DefaultHasher::new();
    for change in changes {
        change.hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// A line break as the text has most of them.
pub fn line_end(text: &str) -> &'static str {
    let n_all = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    let n_crlf = memchr::memmem::find_iter(text.as_bytes(), b"\r\n").count();
    if n_crlf * 2 > n_all { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edit(line: u32, start: u32, end: u32, text: &str) -> TextEdit {
        let place = |character| lsp::Position { line, character };
        TextEdit { range: lsp::Range { start: place(start), end: place(end) }, new_text: text.to_owned() }
    }

    #[test]
    fn edits_are_made_together_or_not_at_all() {
        let text = Text::new("äb c\nd\n".to_owned());
        let made = |edits: &[TextEdit]| apply(&text, replacements(&text, edits, Encoding::Utf16));
        assert_eq!(made(&[edit(1, 0, 1, "D"), edit(0, 1, 2, "BB")]), Ok("äBB c\nD\n".to_owned()));
        assert_eq!(made(&[edit(0, 0, 0, "1"), edit(0, 0, 0, "2")]), Ok("12äb c\nd\n".to_owned()));
        assert_eq!(made(&[edit(0, 0, 2, ""), edit(0, 1, 3, "")]), Err(EditProblem::Overlap(1)));
        assert_eq!(made(&[edit(1, 1, 0, "")]), Err(EditProblem::Overlap(2)));
    }

    #[test]
    fn both_forms_of_workspace_edits_are_read() {
        let one = json!([{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}, "newText": "x"}]);
        let changes = json!({"changes": {"file:///a": one}});
        let documents =
            json!({"documentChanges": [{"textDocument": {"uri": "file:///a", "version": 1}, "edits": one}]});
        assert_eq!(from_workspace_edit(&changes), from_workspace_edit(&documents));
        let created = json!({"documentChanges": [{"kind": "create", "uri": "file:///a"}]});
        assert_eq!(from_workspace_edit(&created), Err(EditProblem::FileOperation("create".to_owned())));
        assert_eq!(from_workspace_edit(&json!({"changes": {"x:y": one}})), Err(EditProblem::Malformed));
        assert_eq!(from_workspace_edit(&Value::Null), Ok(BTreeMap::new()));
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        assert_eq!(line_end("a\r\nb\r\nc\n"), "\r\n");
        assert_eq!(line_end("a\nb\r\n"), "\n");
        assert_eq!(line_end(""), "\n");
    }
}
