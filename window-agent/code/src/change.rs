//! Changes of files: all of them or none, and only when nothing changed since they were looked at.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};

use super::aim::Target;
use super::edits::{self, EditProblem, OnExisting, Replacement, Step};
use super::files::{FileError, MAX_MOVED, files_below};
use super::journal::{START_LIMIT, TURN_LIMIT};
use super::lsp::Position;
use super::plan::{self, FileEdit, Found, Plan};
use super::references::Wanted;
use super::rename::Renamed;
use super::server::Ask;
use super::text::Text;
use super::told::Since;
use super::types::{Subject, Unsaved};
use super::write::{Trace, write_all};
use super::{CodeIndex, closing, file_error, files, kept, of_another_tree, protected, search, text, told};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::workspace::Workspace;

/// Places of a text that is not unique, which are told.
const MAX_FOUND: usize = 10;

/// What a rename or an action would do.
#[derive(Clone, Debug)]
pub struct Change {
    /// The symbol's full name, or the action's title.
    pub subject: String,
    /// What becomes of the files.
    pub plan: Plan,
    /// Stands for exactly this.
    pub token: String,
    /// What is not saved in VS Code.
    pub unsaved: Unsaved,
}

/// All that a client asks for in a file.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// Of one text, which they are all made of at once.
    pub edits: Vec<Wish>,
    /// The mark of that text, when the client says it.
    pub hash: Option<i64>,
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
    ) -> Result<(Change, Renamed), Fault> {
        let since = Since::now();
        let (server, outline, target) = self.aim(workspace, wanted, deadline).await?;
        let aimed = (&server, &outline, &target);
        let (renamed, definition) = self.renamed(workspace, aimed, (wanted, new_name), deadline).await?;
        let is_elsewhere = definition.is_some();
        let (subject, place) = definition.unwrap_or_else(|| (outline.subject.clone(), target.position));
        let ask = Ask::about("textDocument/rename", &subject, place, json!({"newName": new_name}));
        let (answered, _, shown) = self.ask_shown(workspace, &server, ask, since, deadline).await?;
        let encoding = answered.agreed.encoding;
        let plan = planned(workspace, &subject, &answered.result, Vec::new(), encoding).await?;
        // Only now: the plan is made of what the files held meanwhile.
        let told = told::files_of(&answered.result);
        let unsure = self.unsure(workspace, &server, told, &shown, since, deadline).await?;
        if let Some(snapshot) = unsure.first() {
            return Err(changes(&snapshot.path));
        }
        if plan.is_empty() {
            return Err(Fault::new(Kind::NothingToRename, format!("{} cannot be renamed.", target.name))
                .hint("It may be a name of the language or of a library."));
        }
        let moves_nothing = plan.folders.is_empty() && plan.edits.iter().all(FileEdit::stays);
        let is_left = |place: &&Position| {
            let own = &outline.subject.snapshot.path;
            let mut edits = plan.edits.iter().filter(|edit| edit.from.as_ref() == Some(own));
            !edits.any(|edit| edit.lines.contains(&(place.line + 1)))
        };
        if wanted.line.is_none() && target.overloads.iter().any(|place| is_left(&place)) {
            return Err(several_overloads(&target));
        }
        let is_whole =
            [&renamed.file, &outline.subject.snapshot.path].into_iter().all(|file| has(&plan, file));
        if is_elsewhere && !is_whole {
            let message = format!(
                "{} would not rename {} both where it is defined and where it is used.",
                server.name, renamed.name
            );
            return Err(Fault::new(Kind::NotRenamable, message));
        }
        let old = search::word_at(&subject.snapshot.text, place);
        if let Some((path, line)) = misfit(&plan, old).filter(|_| !renamed.is_file) {
            let message = format!(
                "{} would change {}, line {line}, where {old:?} isn't; nothing was changed.",
                server.name,
                path.display()
            );
            return Err(Fault::new(Kind::ChangedMeanwhile, message)
                .hint("It may not have read the file as it is: try again in a moment."));
        }
        if renamed.is_file && moves_nothing {
            let message =
                format!("{} would change the name, but not rename the file that it stands for.", server.name);
            return Err(Fault::new(Kind::NotRenamable, message));
        }
        Ok((Change::new(renamed.name.clone(), plan, outline.subject.view.unsaved), renamed))
    }

    /// What a client's own edits make of a file.
    pub async fn edit(
        &self,
        workspace: &Workspace,
        given: &str,
        wishes: Wishes,
        deadline: Instant,
    ) -> Result<Change, Fault> {
        let subject = self.open(workspace, given, deadline).await?;
        let (path, unsaved) = (subject.snapshot.path, subject.view.unsaved);
        let known = unsaved.clone();
        let made = tokio::task::spawn_blocking(move || {
            let Wishes { edits: wishes, hash } = wishes;
            let n_wishes = wishes.len();
            let numbered = |number: usize, mut error: Fault| {
                if n_wishes > 1 {
                    error.message =
                        format!("Edit {number} of {n_wishes}: {} Nothing was changed.", error.message);
                }
                error
            };
            file_edit(&path, &known, |text| {
                if hash.is_some_and(|hash| hash != edits::mark(text.as_str())) {
                    let message =
                        format!("{} has changed since it was read; nothing was changed.", path.display());
                    return Err(Fault::new(Kind::ChangedMeanwhile, message)
                        .hint("Read the place again, and edit with the hash of that answer."));
                }
                let made = wishes
                    .iter()
                    .zip(1..)
                    .map(|(wish, number)| replacement(text, wish).map_err(|error| numbered(number, error)));
                made.collect()
            })
        });
        let edits = vec![made.await.map_err(|_| closing())??];
        if edits.iter().all(FileEdit::is_nothing) {
            let message = "This changes nothing: the new text is what is there.";
            return Err(Fault::new(Kind::NothingToChange, message).hint("Is another place meant?"));
        }
        Ok(Change::new(String::new(), Plan { edits, folders: Vec::new() }, unsaved))
    }

    /// A change of what a tool keeps for itself is refused when it is looked at, and again when it is made.
    pub fn ensure_unprotected(&self, workspace: &Workspace, plan: &Plan) -> Result<(), Fault> {
        match protected::first(plan, &folders_of(workspace)) {
            Some((path, whose)) if !self.inner.allows_protected.load(Ordering::Relaxed) => {
                let message =
                    format!("This would change {}, which {whose} keeps for itself.", path.display());
                Err(Fault::new(Kind::ProtectedPath, message).hint(
                    "Nothing was changed. Ask the user to make this change, or to allow such changes with \
                     `baton settings allow_protected true`.",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Changes all files, or none: in VS Code where that is, so that its user can undo it, otherwise on disk, where the
    /// client can.
    pub async fn write(&self, workspace: &Workspace, change: Change, client: &str) -> Result<(), Fault> {
        let Change { plan, unsaved, .. } = change;
        self.ensure_unprotected(workspace, &plan)?;
        let is_made = match &self.inner.editor {
            Some(editor) => editor.apply(&plan, &unsaved).await?,
            None => false,
        };
        if !is_made {
            let (ledger, folders) = (self.inner.ledger.clone(), folders_of(workspace));
            let client = kept::client(client);
            let made = tokio::task::spawn_blocking(move || {
                let turn = ledger.turn(&folders, TURN_LIMIT)?;
                let news = turn.undo_left();
                Ok((news, write_all(&plan, &turn, Trace::Of(&client))))
            });
            let (news, made) = made.await.map_err(|_| closing())??;
            self.add_news(news);
            made?;
        }
        Ok(())
    }

    /// Takes back what an agent that was killed in the middle of a change left in the window's folders.
    pub async fn undo_left(&self, workspace: &Workspace) {
        let (ledger, folders) = (self.inner.ledger.clone(), folders_of(workspace));
        let undone = tokio::task::spawn_blocking(move || {
            ledger.clean();
            match ledger.has_any() {
                true => ledger.turn(&folders, START_LIMIT).map(|turn| turn.undo_left()),
                false => Ok(Vec::new()),
            }
        });
        match undone.await {
            Ok(Ok(news)) => self.add_news(news),
            // The next change looks again.
            Ok(Err(error)) => {
                tracing::warn!(error = error.message, "not looked for changes that were cut off")
            }
            Err(_) => {}
        }
    }

    /// What became of changes that were cut off, once.
    pub fn take_news(&self) -> Option<String> {
        let news = std::mem::take(&mut *self.inner.shared.news.lock());
        (!news.is_empty()).then(|| news.join(" "))
    }

    pub(super) fn add_news(&self, news: Vec<String>) {
        self.inner.shared.news.lock().extend(news);
    }
}

pub(super) fn folders_of(workspace: &Workspace) -> Vec<PathBuf> {
    workspace.folders().iter().map(|folder| folder.path.clone()).collect()
}

impl Change {
    pub(super) fn new(subject: String, plan: Plan, unsaved: Unsaved) -> Self {
        let token = plan.token();
        Self { subject, plan, token, unsaved }
    }

    /// Files that it changes.
    pub fn n_files(&self) -> usize {
        let is_named = |path: &&PathBuf| self.plan.edits.iter().any(|edit| edit.from.as_ref() == Some(path));
        let in_folders = self.plan.folders.iter().flat_map(|folder| &folder.files);
        self.plan.edits.len() + in_folders.filter(|path| !is_named(path)).count()
    }
}

/// What an edit of a server makes of the files, which must all be the window's. `made`: files that are there only
/// for the edit.
pub(super) async fn planned(
    workspace: &Workspace,
    subject: &Subject,
    workspace_edit: &Value,
    made: Vec<PathBuf>,
    encoding: text::Encoding,
) -> Result<Plan, Fault> {
    let created = made.into_iter().map(|path| Step::Create { path, on_existing: OnExisting::Refuse });
    let mut steps: Vec<Step> = created.collect();
    steps.extend(edits::steps(workspace_edit).map_err(edit_error)?);
    if subject.view.is_served {
        leave_out_gone(&mut steps, &subject.view.unsaved);
    }
    let folders = folders_of(workspace);
    let mut trees = workspace.trees().about(&subject.folder);
    let unsaved = subject.view.unsaved.clone();
    // VS Code writes through links itself.
    let follows = !subject.view.is_served;
    let made = tokio::task::spawn_blocking(move || {
        if follows {
            follow_links(&mut steps);
        }
        // A server may take the files of another tree for the project's, and they are none of it.
        steps.retain(|step| !matches!(step, Step::Edit { path, .. } if trees.other(path).is_some()));
        let mut paths = steps.iter().flat_map(Step::paths);
        if let Some((path, top)) = paths.find_map(|path| Some((path, trees.other(path)?))) {
            return Err(of_another_tree(path, &top));
        }
        let leads_out = |step: &Step, path: &Path| match step {
            Step::Edit { .. } => path.canonicalize().is_ok_and(|real| !is_inside(&real, &folders)),
            _ => false,
        };
        let mut named = steps.iter().flat_map(|step| step.paths().map(move |path| (step, path)));
        let is_out = |(step, path): &(&Step, &Path)| !is_inside(path, &folders) || leads_out(step, path);
        if let Some((_, path)) = named.find(is_out) {
            let message = format!("This would change {}, outside this window's folders.", path.display());
            return Err(Fault::new(Kind::OutsideWindow, message).hint("Change what belongs to the project."));
        }
        let mut plan = plan::plan(&steps, encoding, |path| look(path, &unsaved).map_err(Stopped::Look))
            .map_err(Stopped::into_error)?;
        for folder in &mut plan.folders {
            folder.files = files_below(&folder.from, MAX_MOVED)?;
        }
        // Some servers send again what is there.
        plan.edits.retain(|edit| !edit.is_nothing());
        Ok(plan)
    });
    made.await.map_err(|_| closing())?
}

/// Whether something is done to a file, which a server may know by a link to it.
fn has(plan: &Plan, file: &Path) -> bool {
    plan.has(file) || file.canonicalize().is_ok_and(|real| plan.has(&real))
}

/// A place in a plan to rename where the old name does not stand: its file, and its line from 1.
fn misfit<'a>(plan: &'a Plan, old: &str) -> Option<(&'a Path, u32)> {
    plan.edits.iter().filter(|edit| edit.stays()).find_map(|edit| {
        let mut spans = edit.replacements.iter().map(|(span, _)| span);
        // What is put in beside a name is not looked at.
        let odd = spans.find(|span| !span.is_empty() && !search::holds(edit.old.as_str(), span, old))?;
        Some((edit.path.as_path(), edit.old.position(odd.start, text::Encoding::Utf32).line + 1))
    })
}

/// A file that changes while a server is asked about it.
pub(super) fn changes(path: &Path) -> Fault {
    let message = format!("{} was changed by someone else; nothing was written.", path.display());
    Fault::new(Kind::ChangedMeanwhile, message).hint("Try again in a moment.")
}

/// Each overload is a symbol of its own in some languages.
fn several_overloads(target: &Target) -> Fault {
    let places = std::iter::once(&target.position).chain(&target.overloads);
    let candidates: Vec<String> =
        places.map(|place| format!("line {}: {}", place.line + 1, target.name)).collect();
    let message = format!("{:?} is defined {} times, each for itself.", target.name, candidates.len());
    Fault::new(Kind::AmbiguousSymbol, message)
        .hint("Rename one after the other: choose it by the argument line, one of the candidates.")
        .detail("candidates", candidates)
}

/// Why there is no plan.
enum Stopped {
    Edit(EditProblem),
    Look(Fault),
}

impl From<EditProblem> for Stopped {
    fn from(problem: EditProblem) -> Self {
        Stopped::Edit(problem)
    }
}

impl Stopped {
    fn into_error(self) -> Fault {
        match self {
            Stopped::Edit(problem) => edit_error(problem),
            Stopped::Look(error) => error,
        }
    }
}

/// VS Code keeps a file for some minutes that it had open when it was deleted, and edits it.
fn leave_out_gone(steps: &mut Vec<Step>, unsaved: &Unsaved) {
    let comes: Vec<PathBuf> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Create { path, .. } | Step::Rename { to: path, .. } => Some(path.clone()),
            _ => None,
        })
        .collect();
    let is_there = |path: &Path| {
        path.exists() || unsaved.find(path).is_some() || comes.iter().any(|come| path.starts_with(come))
    };
    steps.retain(|step| !matches!(step, Step::Edit { path, .. } if !is_there(path)));
}

/// Gives files the names that they have without links: what is written through a link is written to the file that it
/// leads to, and the link stays one.
fn follow_links(steps: &mut Vec<Step>) {
    let mut followed: Vec<PathBuf> = Vec::new();
    let mut follow = |path: &mut PathBuf, real: Option<PathBuf>| {
        if let Some(real) = real.filter(|real| real != path) {
            followed.push(real.clone());
            *path = real;
        }
    };
    let at_folder = |path: &Path| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    for step in steps.iter_mut() {
        match step {
            Step::Edit { path, .. } => {
                let real = path.canonicalize().ok();
                follow(path, real);
            }
            Step::Create { path, .. } | Step::Delete { path, .. } => {
                let real = at_folder(path);
                follow(path, real);
            }
            Step::Rename { from, to, .. } => {
                for path in [from, to] {
                    let real = at_folder(path);
                    follow(path, real);
                }
            }
        }
    }
    // A server that knows a file by two names changes it twice.
    let mut known: Vec<Step> = Vec::new();
    steps.retain(|step| {
        let is_followed = matches!(step, Step::Edit { path, .. } if followed.contains(path));
        let is_again = is_followed && known.contains(step);
        if is_followed && !is_again {
            known.push(step.clone());
        }
        !is_again
    });
}

/// Whether a path is in one of the folders, whatever links lead there.
pub(super) fn is_inside(path: &Path, folders: &[PathBuf]) -> bool {
    let is_in = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    // What is not there yet will be in the first folder above it that is.
    let real = path.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok());
    is_in(path) && real.is_some_and(|real| is_in(&real))
}

/// What is at a path on disk, or in VS Code.
fn look(path: &Path, unsaved: &Unsaved) -> Result<Found, Fault> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(Found::Folder),
        Ok(_) => {}
        Err(error) if files::is_nothing(&error) => return Ok(Found::Nothing),
        Err(error) => return Err(file_error(path, &FileError::Unreadable(error))),
    }
    let (snapshot, storage) = files::read_stored(path).map_err(|error| file_error(path, &error))?;
    Ok(Found::File(unsaved.find(path).map_or(snapshot.text, |unsaved| unsaved.text.clone()), storage))
}

fn file_edit(
    path: &Path,
    unsaved: &Unsaved,
    replacements: impl FnOnce(&Text) -> Result<Vec<Replacement>, Fault>,
) -> Result<FileEdit, Fault> {
    let (mut snapshot, storage) = files::read_stored(path).map_err(|error| file_error(path, &error))?;
    if let Some(unsaved) = unsaved.find(path) {
        snapshot = unsaved.clone();
    }
    let replacements = replacements(&snapshot.text)?;
    FileEdit::in_place(path.to_owned(), snapshot.text, storage, replacements).map_err(edit_error)
}

/// The bytes that a client means.
fn replacement(text: &Text, wish: &Wish) -> Result<Replacement, Fault> {
    let new = with_line_ends(&wish.new_text, edits::line_end(text.as_str()));
    let old = wish.old_text.as_deref().map(|old| with_line_ends(old, edits::line_end(text.as_str())));
    let Some(start) = wish.start_line else {
        let Some(old) = old.filter(|old| !old.is_empty()) else {
            return Err(Fault::new(Kind::InvalidArguments, "An edit needs old_text or start_line.")
                .hint("old_text must occur once in the file; or name the lines to replace."));
        };
        let found: Vec<usize> =
            memchr::memmem::find_iter(text.as_str().as_bytes(), old.as_bytes()).take(MAX_FOUND).collect();
        return match found[..] {
            [at] => Ok((at..at + old.len(), new)),
            [] => Err(Fault::new(Kind::TextNotFound, "old_text is not in the file as it is now.")
                .hint("Read the place again: the file may have changed.")),
            _ => {
                let line = |at: &usize| text.position(*at, text::Encoding::Utf32).line + 1;
                let mut lines: Vec<String> = found.iter().map(|at| line(at).to_string()).collect();
                lines.dedup();
                let more = if found.len() == MAX_FOUND { " and others" } else { "" };
                let lines = lines.join(", ");
                let message = format!("old_text is in the file more than once: at lines {lines}{more}.");
                Err(Fault::new(Kind::AmbiguousText, message).hint(
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
            Fault::new(Kind::InvalidRange, message).hint("Lines count from 1; both ends are replaced.")
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
            Fault::new(Kind::ChangedMeanwhile, message).hint("Read the lines again: the file has changed.")
        );
    }
    let is_last = span.end == text.as_str().len() && !text.as_str().ends_with(['\n', '\r']);
    let needs_end = !new.is_empty() && !new.ends_with(['\n', '\r']) && !is_last;
    let new = if needs_end { new + edits::line_end(text.as_str()) } else { new };
    // After a last line that has no end.
    let is_glued = start > n_lines && n_lines > 0 && is_last && !new.is_empty();
    let new = if is_glued { edits::line_end(text.as_str()).to_owned() + &new } else { new };
    Ok((span, new))
}

fn with_line_ends(text: &str, line_end: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', line_end)
}

fn edit_error(problem: EditProblem) -> Fault {
    let (kind, hint) = match problem {
        EditProblem::Overlap(_) => (Kind::OverlappingEdits, "Make the edits one after the other."),
        EditProblem::Folder(..) | EditProblem::Unknown(_) => {
            (Kind::UnsupportedEdit, "Make it by hand, or choose another action.")
        }
        EditProblem::Exists(_) => (Kind::FileExists, "Choose another name, or move what is there first."),
        EditProblem::Missing(_) => (Kind::FileMissing, "Look at what is there, then try again."),
        EditProblem::Malformed => (Kind::ServerRefused, "Choose another action."),
    };
    let text = problem.to_string();
    let mut chars = text.chars();
    let sentence: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    Fault::new(kind, format!("{sentence}; nothing was changed.")).hint(hint)
}
