//! Changes of files: all of them or none, and only when nothing changed since they were looked at.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::editor::Unsaved;
use super::edits::{self, EditProblem, Replacement};
use super::references::{Wanted, about};
use super::rename::Renamed;
use super::text::{Storage, Text};
use super::{CodeIndex, Subject, closing, file_error, files, text};
use crate::tools::ToolError;
use crate::workspace::Workspace;

/// The new text of one file.
#[derive(Clone, Debug)]
pub struct FileEdit {
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub old: Arc<Text>,
    /// What it will hold.
    pub new: String,
    /// How it is stored.
    pub storage: Storage,
    /// First lines of the edits, from 1.
    pub lines: Vec<u32>,
    /// What makes the new text out of the old one.
    pub replacements: Vec<Replacement>,
}

/// What a rename or an action would do.
#[derive(Clone, Debug)]
pub struct Change {
    /// The symbol's full name, or the action's title.
    pub subject: String,
    /// By file.
    pub edits: Vec<FileEdit>,
    /// Stands for exactly this.
    pub token: String,
    /// What is not saved in VS Code.
    pub unsaved: Unsaved,
}

/// One edit that a client asks for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// First line that is replaced, from 1.
    pub start_line: Option<usize>,
    /// Last line that is replaced; one less than the first inserts before it.
    pub end_line: Option<usize>,
    /// What is there now.
    pub old_text: Option<String>,
    /// What shall be there.
    pub new_text: String,
}

impl CodeIndex {
    /// What it takes to rename a symbol.
    pub async fn renaming(
        &self,
        workspace: &Workspace,
        wanted: &Wanted,
        new_name: &str,
        deadline: Instant,
    ) -> Result<(Change, Renamed), ToolError> {
        let (server, outline, target) = self.aim(workspace, wanted, deadline).await?;
        let aimed = (&server, &outline, &target);
        let renamed = self.renamed(workspace, aimed, (wanted, new_name), deadline).await?;
        let ask =
            about("textDocument/rename", &outline.subject, target.position, json!({"newName": new_name}));
        let (answered, _) = self.ask_settled(&server, ask, deadline).await?;
        let encoding = answered.agreed.encoding;
        let edits = file_edits(workspace, &outline.subject, &answered.result, encoding).await?;
        if edits.is_empty() {
            return Err(ToolError::new("nothing_to_rename", format!("{} cannot be renamed.", target.name))
                .hint("It may be a name of the language or of a library."));
        }
        Ok((Change::new(renamed.name.clone(), edits, outline.subject.view.unsaved), renamed))
    }

    /// What a client's own edits make of a file.
    pub async fn edit(
        &self,
        workspace: &Workspace,
        given: &str,
        wishes: Vec<Wish>,
        deadline: Instant,
    ) -> Result<Change, ToolError> {
        let subject = self.open(workspace, given, deadline).await?;
        let (path, unsaved) = (subject.snapshot.path, subject.view.unsaved);
        let known = unsaved.clone();
        let made = tokio::task::spawn_blocking(move || {
            file_edit(&path, &known, |text| wishes.iter().map(|wish| replacement(text, wish)).collect())
        });
        Ok(Change::new(String::new(), vec![made.await.map_err(|_| closing())??], unsaved))
    }

    /// Changes all files, or none: in VS Code where that is, so that its user can undo it, otherwise on disk.
    pub async fn write(&self, change: Change) -> Result<(), ToolError> {
        if let Some(editor) = &self.inner.editor
            && editor.apply(&change.edits, &change.unsaved).await?
        {
            return Ok(());
        }
        tokio::task::spawn_blocking(move || write_all(&change.edits)).await.map_err(|_| closing())?
    }
}

impl Change {
    pub(super) fn new(subject: String, edits: Vec<FileEdit>, unsaved: Unsaved) -> Self {
        let changes = edits.iter().map(|edit| (&edit.path, edit.old.as_str(), edit.new.as_str()));
        let token = edits::token(changes);
        Self { subject, edits, token, unsaved }
    }
}

/// What an edit of a server makes of the files, which must all be the window's.
pub(super) async fn file_edits(
    workspace: &Workspace,
    subject: &Subject,
    workspace_edit: &Value,
    encoding: text::Encoding,
) -> Result<Vec<FileEdit>, ToolError> {
    let mut by_file = edits::from_workspace_edit(workspace_edit).map_err(edit_error)?;
    if subject.view.is_served {
        // VS Code keeps a file for some minutes that it had open when it was deleted.
        by_file.retain(|path, _| path.exists() || subject.view.unsaved.find(path).is_some());
    }
    let is_ours = |path: &Path| workspace.folders().iter().any(|folder| path.starts_with(&folder.path));
    if let Some(path) = by_file.keys().find(|path| !is_ours(path)) {
        let message = format!("This would change {}, outside this window's folders.", path.display());
        return Err(ToolError::new("outside_window", message).hint("Change what belongs to the project."));
    }
    let unsaved = subject.view.unsaved.clone();
    let made = tokio::task::spawn_blocking(move || {
        let by_file = by_file.into_iter().filter(|(_, edits)| !edits.is_empty());
        by_file
            .map(|(path, edits)| {
                file_edit(&path, &unsaved, |text| Ok(edits::replacements(text, &edits, encoding)))
            })
            .collect::<Result<Vec<_>, _>>()
    });
    made.await.map_err(|_| closing())?
}

fn file_edit(
    path: &Path,
    unsaved: &Unsaved,
    replacements: impl FnOnce(&Text) -> Result<Vec<Replacement>, ToolError>,
) -> Result<FileEdit, ToolError> {
    let (mut snapshot, storage) = files::read_stored(path).map_err(|error| file_error(path, &error))?;
    if let Some(unsaved) = unsaved.find(path) {
        snapshot = unsaved.clone();
    }
    let replacements = replacements(&snapshot.text)?;
    let mut lines: Vec<u32> = replacements
        .iter()
        .map(|(span, _)| snapshot.text.position(span.start, text::Encoding::Utf32).line + 1)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    let new = edits::apply(&snapshot.text, replacements.clone()).map_err(edit_error)?;
    Ok(FileEdit { path: path.to_owned(), old: snapshot.text, new, storage, lines, replacements })
}

/// The bytes that a client means.
fn replacement(text: &Text, wish: &Wish) -> Result<Replacement, ToolError> {
    let new = with_line_ends(&wish.new_text, edits::line_end(text.as_str()));
    let old = wish.old_text.as_deref().map(|old| with_line_ends(old, edits::line_end(text.as_str())));
    let Some(start) = wish.start_line else {
        let Some(old) = old.filter(|old| !old.is_empty()) else {
            return Err(ToolError::new("invalid_arguments", "An edit needs old_text or start_line.")
                .hint("old_text must occur once in the file; or name the lines to replace."));
        };
        let mut found = memchr::memmem::find_iter(text.as_str().as_bytes(), old.as_bytes());
        return match (found.next(), found.next()) {
            (Some(at), None) => Ok((at..at + old.len(), new)),
            (None, _) => Err(ToolError::new("text_not_found", "old_text is not in the file as it is now.")
                .hint("Read the place again: the file may have changed.")),
            (Some(_), Some(_)) => {
                Err(ToolError::new("ambiguous_text", "old_text is in the file more than once.").hint(
                    "Give more of the lines around it, or name the lines with start_line and end_line.",
                ))
            }
        };
    };
    let end = wish.end_line.unwrap_or(start);
    let n_lines = text.n_lines();
    if start == 0 || start > n_lines + 1 || end + 1 < start || end > n_lines {
        let message = format!("Lines {start} to {end} are not in the file, which has {n_lines} lines.");
        return Err(
            ToolError::new("invalid_range", message).hint("Lines count from 1; both ends are replaced.")
        );
    }
    let place = |line: usize| {
        text.offset(super::lsp::Position { line: line as u32, character: 0 }, text::Encoding::Utf32)
    };
    let span = place(start - 1)..place(end);
    if let Some(old) = old
        && text.as_str()[span.clone()].trim_end_matches(['\n', '\r']) != old.trim_end_matches(['\n', '\r'])
    {
        let message = format!("Lines {start} to {end} do not hold old_text.");
        return Err(
            ToolError::new("changed_meanwhile", message).hint("Read the lines again: the file has changed.")
        );
    }
    let is_last = span.end == text.as_str().len() && !text.as_str().ends_with(['\n', '\r']);
    let needs_end = !new.is_empty() && !new.ends_with(['\n', '\r']) && !is_last;
    let new = if needs_end { new + edits::line_end(text.as_str()) } else { new };
    Ok((span, new))
}

fn with_line_ends(text: &str, line_end: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', line_end)
}

/// New files beside the old ones first; then, when all old ones are still as they were, they are put in their place.
fn write_all(edits: &[FileEdit]) -> Result<(), ToolError> {
    let failed = |path: &Path, error: &std::io::Error| {
        ToolError::new(
            "cannot_write",
            format!("{} cannot be written: {error}; nothing was changed.", path.display()),
        )
        .hint("Check its permissions and the free space.")
    };
    let mut fresh: Vec<PathBuf> = Vec::new();
    let clear = |fresh: &[PathBuf]| fresh.iter().for_each(|path| drop(std::fs::remove_file(path)));
    for edit in edits {
        let beside = beside(&edit.path);
        let written = std::fs::write(&beside, text::encode(&edit.new, edit.storage)).and_then(|()| {
            let permissions = std::fs::metadata(&edit.path)?.permissions();
            std::fs::set_permissions(&beside, permissions)
        });
        fresh.push(beside);
        if let Err(error) = written {
            clear(&fresh);
            return Err(failed(&edit.path, &error));
        }
    }
    for edit in edits {
        let is_same = files::read(&edit.path).is_ok_and(|now| now.text == edit.old);
        if !is_same {
            clear(&fresh);
            let message = format!("{} changed meanwhile; nothing was changed.", edit.path.display());
            return Err(ToolError::new("changed_meanwhile", message).hint("Look again, then try again."));
        }
    }
    for (idx, (edit, beside)) in edits.iter().zip(&fresh).enumerate() {
        if let Err(error) = std::fs::rename(beside, &edit.path) {
            for done in &edits[..idx] {
                let _ = std::fs::write(&done.path, text::encode(done.old.as_str(), done.storage));
            }
            clear(&fresh[idx..]);
            return Err(failed(&edit.path, &error));
        }
    }
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.baton", uuid::Uuid::new_v4().simple()))
}

fn edit_error(problem: EditProblem) -> ToolError {
    let code = match problem {
        EditProblem::Overlap(_) => "overlapping_edits",
        EditProblem::FileOperation(_) => "unsupported_edit",
        EditProblem::Malformed => "server_refused",
    };
    let text = problem.to_string();
    let mut chars = text.chars();
    let sentence: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    ToolError::new(code, format!("{sentence}; nothing was changed."))
        .hint("Make the edits one after the other.")
}
