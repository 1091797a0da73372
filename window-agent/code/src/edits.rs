//! CORE: edits: the steps that a server wants taken, and new texts out of edits, or a reason why not.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range as Span;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::lsp::answers::{DocumentChange, WorkspaceEdit};
use super::lsp::{self, TextEdit};
use super::text::{Encoding, Text};

/// Why edits are not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditProblem {
    /// Two edits of the same place.
    #[error("two edits overlap at line {0}")]
    Overlap(u32),
    /// What is done to a folder other than giving it a name that is free.
    #[error("the server wants to {0} the folder {1}, which is not supported")]
    Folder(&'static str, PathBuf),
    /// A kind of operation that the protocol does not have.
    #[error("the server wants to {0} a file, which is not supported")]
    Unknown(String),
    /// A file is to be created, or to get a name, where there is something.
    #[error("{0} already exists")]
    Exists(PathBuf),
    /// A file that is to be changed is not there.
    #[error("{0} does not exist")]
    Missing(PathBuf),
    /// Not as the protocol says.
    #[error("cannot read the server's edit")]
    Malformed,
}

/// What becomes of something that is where a file shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExisting {
    /// The whole edit is refused.
    Refuse,
    /// It goes.
    Replace,
    /// It stays, and the step is left out.
    Skip,
}

/// One of the steps that a server's edit takes, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// New text in a file.
    Edit {
        /// As it is called by then.
        path: PathBuf,
        /// None touches another.
        edits: Vec<TextEdit>,
    },
    /// An empty file.
    Create {
        /// Where.
        path: PathBuf,
        /// See [`OnExisting`].
        on_existing: OnExisting,
    },
    /// Another name, for a file or a folder.
    Rename {
        /// As it is called by then.
        from: PathBuf,
        /// As it is called afterwards.
        to: PathBuf,
        /// See [`OnExisting`].
        on_existing: OnExisting,
    },
    /// A file goes.
    Delete {
        /// As it is called by then.
        path: PathBuf,
        /// Whether it is all the same when it is not there.
        may_be_missing: bool,
    },
}

impl Step {
    /// The paths that it names.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let (first, second) = match self {
            Step::Edit { path, .. } | Step::Create { path, .. } | Step::Delete { path, .. } => (path, None),
            Step::Rename { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first.as_path()).chain(second.map(PathBuf::as_path))
    }
}

/// The steps of a `WorkspaceEdit`, in their order.
pub fn steps(edit: &Value) -> Result<Vec<Step>, EditProblem> {
    let edit: Option<WorkspaceEdit> = Option::deserialize(edit).map_err(|_| EditProblem::Malformed)?;
    let WorkspaceEdit { document_changes, changes } = edit.unwrap_or_default();
    if let Some(all) = document_changes {
        return all.into_iter().map(step).collect();
    }
    let all = changes.unwrap_or_default().into_iter();
    all.map(|(uri, edits)| Ok(Step::Edit { path: path(&uri)?, edits })).collect()
}

fn step(change: DocumentChange) -> Result<Step, EditProblem> {
    let DocumentChange { kind, uri, options, .. } = change;
    // The protocol: overwriting wins over ignoring.
    let on_existing = match (options.overwrite, options.ignore_if_exists) {
        (true, _) => OnExisting::Replace,
        (false, true) => OnExisting::Skip,
        (false, false) => OnExisting::Refuse,
    };
    match kind.as_deref() {
        None => {
            let edits = change.edits.ok_or(EditProblem::Malformed)?;
            Ok(Step::Edit { path: path(&change.text_document.uri)?, edits })
        }
        Some("create") => Ok(Step::Create { path: path(&uri)?, on_existing }),
        Some("rename") => {
            Ok(Step::Rename { from: path(&change.old_uri)?, to: path(&change.new_uri)?, on_existing })
        }
        Some("delete") => {
            Ok(Step::Delete { path: path(&uri)?, may_be_missing: options.ignore_if_not_exists })
        }
        Some(other) => Err(EditProblem::Unknown(other.to_owned())),
    }
}

fn path(uri: &str) -> Result<PathBuf, EditProblem> {
    lsp::path(uri).ok_or(EditProblem::Malformed)
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

/// Stands for one text: who has read it says so which text it edits. Nine digits are three tokens, and one text in 900
/// million is taken for another.
pub fn mark(text: &str) -> i64 {
    let digest = Sha256::digest(text.as_bytes());
    let number = digest.iter().take(7).fold(0, |number, byte| number << 8 | i64::from(*byte));
    100_000_000 + number % 900_000_000
}

/// Stands for files and texts before and after: equal only when nothing changed in between.
pub fn token(changes: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    changes.hash(&mut hasher);
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
        assert_eq!(steps(&changes), steps(&documents));
        assert_eq!(steps(&json!({"changes": {"x:y": one}})), Err(EditProblem::Malformed));
        assert_eq!(steps(&Value::Null), Ok(Vec::new()));
    }

    #[test]
    fn operations_on_files_are_read_with_their_options() {
        let of =
            |change: Value| steps(&json!({"documentChanges": [change]})).map(|mut steps| steps.remove(0));
        let create = |on_existing| Ok(Step::Create { path: "/a".into(), on_existing });
        let with = |options: Value| of(json!({"kind": "create", "uri": "file:///a", "options": options}));
        assert_eq!(with(Value::Null), create(OnExisting::Refuse));
        assert_eq!(with(json!({"ignoreIfExists": true})), create(OnExisting::Skip));
        assert_eq!(with(json!({"overwrite": true, "ignoreIfExists": true})), create(OnExisting::Replace));
        assert_eq!(
            of(json!({"kind": "rename", "oldUri": "file:///a/", "newUri": "file:///b"})),
            Ok(Step::Rename { from: "/a".into(), to: "/b".into(), on_existing: OnExisting::Refuse })
        );
        assert_eq!(
            of(json!({"kind": "delete", "uri": "file:///a", "options": {"ignoreIfNotExists": true}})),
            Ok(Step::Delete { path: "/a".into(), may_be_missing: true })
        );
        assert_eq!(
            of(json!({"kind": "link", "uri": "file:///a"})),
            Err(EditProblem::Unknown("link".to_owned()))
        );
        assert_eq!(of(json!({"kind": "create", "uri": "untitled:a"})), Err(EditProblem::Malformed));
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        assert_eq!(line_end("a\r\nb\r\nc\n"), "\r\n");
        assert_eq!(line_end("a\nb\r\n"), "\n");
        assert_eq!(line_end(""), "\n");
    }
}
