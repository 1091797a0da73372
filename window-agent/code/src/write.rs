//! Writes a plan to disk: everything, or nothing at all.
//!
//! New texts are written beside their places first. When all files are still as they were, the old ones step aside and
//! the new ones take their places; each step is noted, and taken back when one after it fails. Old and new text are
//! exchanged, where the system can do that, so that a save of another program in the last moment is found and not lost.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::change::{files_below, is_nothing};
use super::plan::{FileEdit, Plan};
use super::{files, text};
use baton_agent_base::fault::{Fault, Kind};

/// Two writers that both look before either of them writes would lose what the first one wrote.
static WRITER: Mutex<()> = Mutex::new(());

/// Makes all changes, or none.
pub(crate) fn write_all(plan: &Plan) -> Result<(), Fault> {
    let _alone = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let mut done = Journal::default();
    match write(plan, &mut done) {
        Ok(aside) => {
            for path in aside {
                if let Err(error) = std::fs::remove_file(&path) {
                    tracing::warn!(%error, path = %path.display(), "an old file stays");
                }
            }
            Ok(())
        }
        Err(failure) => Err(failure.into_error(&done.take_back())),
    }
}

/// Why a plan was not written.
enum Failure {
    Io(PathBuf, io::Error),
    Changed(PathBuf),
    Exists(PathBuf),
}

impl Failure {
    /// `stuck`: what could not be put back.
    fn into_error(self, stuck: &[String]) -> Fault {
        let (kind, sentence, hint) = match self {
            Failure::Io(path, error) => (
                Kind::CannotWrite,
                format!("cannot write {}: {error}", path.display()),
                "Check its permissions and the free space.",
            ),
            Failure::Changed(path) => (
                Kind::ChangedMeanwhile,
                format!("{} was changed by someone else", path.display()),
                "Look again, then try again.",
            ),
            Failure::Exists(path) => (
                Kind::FileExists,
                format!("{} already exists", path.display()),
                "Choose another name, or move what is there first.",
            ),
        };
        match stuck {
            [] => Fault::new(kind, format!("{sentence}; nothing was changed.")).hint(hint),
            stuck => Fault::new(kind, format!("{sentence}, and could not be undone: {}.", stuck.join("; ")))
                .hint("Look at these files before anything else."),
        }
    }
}

/// What was done, so that it can be taken back.
#[derive(Default)]
struct Journal(Vec<Done>);

enum Done {
    Folder(PathBuf),
    File(PathBuf),
    Moved {
        from: PathBuf,
        to: PathBuf,
    },
    Replaced {
        path: PathBuf,
        old: Vec<u8>,
    },
    /// What was there lies at `old` now.
    Exchanged {
        path: PathBuf,
        old: PathBuf,
        new: Vec<u8>,
    },
}

impl Journal {
    /// Backwards; tells what could not be taken back.
    fn take_back(self) -> Vec<String> {
        let undo = |done: Done| match done {
            Done::Folder(path) => (std::fs::remove_dir(&path), format!("{} stays", path.display())),
            Done::File(path) => {
                let removed = match std::fs::remove_file(&path) {
                    // It never came to be.
                    Err(error) if is_nothing(&error) => Ok(()),
                    removed => removed,
                };
                (removed, format!("{} stays", path.display()))
            }
            Done::Moved { from, to } => {
                (std::fs::rename(&to, &from), format!("{} is at {}", from.display(), to.display()))
            }
            Done::Replaced { path, old } => {
                (std::fs::write(&path, old), format!("{} has its new text", path.display()))
            }
            Done::Exchanged { path, old, new } => {
                let what = format!("{} has its new text, its old one is {}", path.display(), old.display());
                (exchange_back(&path, &old, &new), what)
            }
        };
        let failed = self.0.into_iter().rev().map(undo);
        failed.filter_map(|(undone, what)| undone.err().map(|error| format!("{what} ({error})"))).collect()
    }

    /// Makes the folders above a file that are not there.
    fn make_folders(&mut self, path: &Path) -> Result<(), Failure> {
        let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            std::fs::create_dir(folder).map_err(|error| Failure::Io(folder.to_owned(), error))?;
            self.0.push(Done::Folder(folder.to_owned()));
        }
        Ok(())
    }

    /// Never over something else. `shown`: the file that an error is about.
    fn rename(&mut self, from: &Path, to: &Path, shown: &Path) -> Result<(), Failure> {
        rename_to_free(from, to).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::Exists(to.to_owned()),
            _ => Failure::Io(shown.to_owned(), error),
        })?;
        self.0.push(Done::Moved { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }
}

/// Gives the files that have to go in the end.
fn write(plan: &Plan, done: &mut Journal) -> Result<Vec<PathBuf>, Failure> {
    let mut fresh = Vec::new();
    for edit in &plan.edits {
        fresh.push(write_beside(edit, done)?);
    }
    check(plan)?;
    // All that goes away first: one file may take the place of another.
    let mut aside = Vec::new();
    for edit in plan.edits.iter().filter(|edit| !edit.stays()) {
        let Some(from) = &edit.from else {
            aside.push(None);
            continue;
        };
        let place = beside(from);
        done.rename(from, &place, from)?;
        aside.push(Some(place));
    }
    let mut left = Vec::new();
    let mut aside = aside.into_iter();
    for (edit, fresh) in plan.edits.iter().zip(fresh) {
        if edit.stays() {
            left.extend(replace(edit, fresh, done)?);
            continue;
        }
        let old = aside.next().flatten();
        match (&edit.to, fresh, old) {
            (Some(to), Some(fresh), old) => {
                done.rename(&fresh, to, to)?;
                left.extend(old);
            }
            (Some(to), None, Some(old)) => done.rename(&old, to, to)?,
            (_, _, old) => left.extend(old),
        }
    }
    for folder in &plan.folders {
        done.make_folders(&folder.to)?;
        done.rename(&folder.from, &folder.to, &folder.from)?;
    }
    // What stepped aside in a folder has gone where the folder went.
    Ok(left.into_iter().map(|path| plan.after_moves(&path)).collect())
}

/// The new text of a file, next to where it will be; none where only the name changes.
fn write_beside(edit: &FileEdit, done: &mut Journal) -> Result<Option<PathBuf>, Failure> {
    let Some(to) = &edit.to else { return Ok(None) };
    done.make_folders(to)?;
    if edit.from.is_some() && edit.old.as_str() == edit.new {
        return Ok(None);
    }
    let failed = |error| Failure::Io(to.clone(), error);
    let path = beside(to);
    done.0.push(Done::File(path.clone()));
    std::fs::write(&path, text::encode(&edit.new, edit.storage)).map_err(failed)?;
    if let Some(from) = &edit.from {
        let permissions = std::fs::metadata(from).map_err(failed)?.permissions();
        std::fs::set_permissions(&path, permissions).map_err(failed)?;
    }
    Ok(Some(path))
}

/// Whether everything is as it was when the plan was made.
fn check(plan: &Plan) -> Result<(), Failure> {
    for edit in &plan.edits {
        if let Some(from) = &edit.from
            && !files::read(from).is_ok_and(|now| now.text == edit.old)
        {
            return Err(Failure::Changed(from.clone()));
        }
        let goes_away = |path: &PathBuf| {
            plan.edits.iter().any(|other| other.from.as_ref() == Some(path) && !other.stays())
        };
        if let Some(to) = edit.to.as_ref().filter(|to| !edit.stays() && !goes_away(to)) {
            match std::fs::symlink_metadata(to) {
                Ok(_) => return Err(Failure::Exists(to.clone())),
                Err(error) if is_nothing(&error) => {}
                Err(error) => return Err(Failure::Io(to.clone(), error)),
            }
        }
    }
    let n_fresh = |folder: &Path| plan.edits.iter().filter(|edit| is_written_in(edit, folder)).count();
    for folder in &plan.folders {
        let n_expected = folder.files.len() + n_fresh(&folder.from);
        let now = files_below(&folder.from, n_expected).map_err(|_| Failure::Changed(folder.from.clone()))?;
        let is_same = folder.files.iter().all(|file| now.contains(file));
        if !is_same || now.len() != n_expected {
            return Err(Failure::Changed(folder.from.clone()));
        }
    }
    Ok(())
}

fn is_written_in(edit: &FileEdit, folder: &Path) -> bool {
    let is_new = edit.from.is_none() || edit.old.as_str() != edit.new;
    is_new && edit.to.as_ref().is_some_and(|to| to.starts_with(folder))
}

/// A new text in the place of an old one, which is never missing in between. Gives where the old file lies, when it does.
fn replace(edit: &FileEdit, fresh: Option<PathBuf>, done: &mut Journal) -> Result<Option<PathBuf>, Failure> {
    let (Some(fresh), Some(to)) = (fresh, &edit.to) else { return Ok(None) };
    let failed = |error| Failure::Io(to.clone(), error);
    let is_exchanged = exchange(to, &fresh).map_err(failed)?;
    if !is_exchanged {
        std::fs::rename(&fresh, to).map_err(failed)?;
    }
    done.0.retain(|step| !matches!(step, Done::File(path) if *path == fresh));
    if !is_exchanged {
        done.0.push(Done::Replaced { path: to.clone(), old: text::encode(edit.old.as_str(), edit.storage) });
        return Ok(None);
    }
    let new = text::encode(&edit.new, edit.storage);
    done.0.push(Done::Exchanged { path: to.clone(), old: fresh.clone(), new });
    match files::read(&fresh).is_ok_and(|was| was.text == edit.old) {
        true => Ok(Some(fresh)),
        // Somebody saved it after we looked: theirs goes back.
        false => Err(Failure::Changed(to.clone())),
    }
}

/// Whether a file has changed places with one that is no one else's; false where the system cannot do that. What
/// inotify tells last is that there is a file at `path`: the other way around it would be that there is none.
fn exchange(path: &Path, own: &Path) -> io::Result<bool> {
    match renameat_with(CWD, path, CWD, own, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Takes an exchange back, unless somebody has saved the new text as another one since.
fn exchange_back(path: &Path, old: &Path, new: &[u8]) -> io::Result<()> {
    exchange(path, old)?;
    if std::fs::read(old)? == new {
        return std::fs::remove_file(old);
    }
    exchange(path, old)?;
    Err(io::Error::other("it was changed again"))
}

fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Not every file system knows how.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            match std::fs::symlink_metadata(to) {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => std::fs::rename(from, to),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.baton", uuid::Uuid::new_v4().simple()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::change::MAX_MOVED;
    use crate::edits::{EditProblem, OnExisting, Step};
    use crate::lsp::{Position, Range, TextEdit};
    use crate::plan::{self, FolderMove, Found};
    use crate::text::{Encoding, Storage, Text};

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("d")).unwrap();
        for (name, text) in [("a", "a\n"), ("b", "b\n"), ("c", "c\r\n"), ("d/x", "x\n")] {
            std::fs::write(root.join(name), text).unwrap();
        }
        (folder, root)
    }

    /// Everything there is, by name, hidden files too.
    fn disk(root: &Path) -> BTreeMap<String, String> {
        let files = files_below(root, MAX_MOVED).unwrap();
        let shown = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        files.iter().map(|path| (shown(path), std::fs::read_to_string(path).unwrap())).collect()
    }

    fn planned(steps: &[Step]) -> Plan {
        let look = |path: &Path| {
            Ok::<_, EditProblem>(match std::fs::read_to_string(path) {
                Ok(text) => Found::File(Arc::new(Text::new(text)), Storage::default()),
                Err(_) if path.is_dir() => Found::Folder,
                Err(_) => Found::Nothing,
            })
        };
        let mut plan = plan::plan(steps, Encoding::Utf8, look).unwrap();
        for FolderMove { from, files, .. } in &mut plan.folders {
            *files = files_below(from, MAX_MOVED).unwrap();
        }
        plan
    }

    fn rename(from: impl Into<PathBuf>, to: impl Into<PathBuf>) -> Step {
        Step::Rename { from: from.into(), to: to.into(), on_existing: OnExisting::Refuse }
    }

    fn create(path: impl Into<PathBuf>) -> Step {
        Step::Create { path: path.into(), on_existing: OnExisting::Refuse }
    }

    fn delete(path: impl Into<PathBuf>) -> Step {
        Step::Delete { path: path.into(), may_be_missing: false }
    }

    fn put(path: impl Into<PathBuf>, text: &str) -> Step {
        let start = Position { line: 0, character: 0 };
        let edit = TextEdit { range: Range { start, end: start }, new_text: text.to_owned() };
        Step::Edit { path: path.into(), edits: vec![edit] }
    }

    #[test]
    fn of_writers_at_once_none_loses_what_another_wrote() {
        let (_folder, root) = folder();
        let path = root.join("a");
        let write = || (0..200).filter(|_| write_all(&planned(&[put(&path, "+")])).is_ok()).count();
        let written: usize = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4).map(|_| scope.spawn(write)).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        let found = std::fs::read_to_string(&path).unwrap().matches('+').count();
        assert_eq!(found, written);
    }

    #[test]
    fn a_save_in_the_last_moment_is_not_lost() {
        let (_folder, root) = folder();
        let path = root.join("a");
        let save = |text: &str| std::fs::write(&path, text).unwrap();
        // After all files were looked at, before the new text takes its place.
        let edit = planned(&[put(&path, "+")]).edits.remove(0);
        let mut done = Journal::default();
        let fresh = write_beside(&edit, &mut done).ok().flatten();
        save("saved\n");
        assert!(matches!(replace(&edit, fresh, &mut done), Err(Failure::Changed(_))));
        assert_eq!(done.take_back(), Vec::<String>::new());
        assert_eq!((disk(&root).len(), disk(&root)["a"].as_str()), (4, "saved\n"));
        // After it took its place, when a later file fails.
        let edit = planned(&[put(&path, "+")]).edits.remove(0);
        let mut done = Journal::default();
        let fresh = write_beside(&edit, &mut done).ok().flatten();
        let old = replace(&edit, fresh, &mut done).ok().flatten().unwrap();
        save("saved again\n");
        let stuck = done.take_back();
        assert!(stuck.len() == 1 && stuck[0].ends_with("(it was changed again)"), "{stuck:?}");
        assert_eq!(disk(&root)["a"], "saved again\n");
        assert_eq!(std::fs::read_to_string(old).unwrap(), "saved\n");
    }

    #[test]
    fn all_of_it_is_done_and_nothing_else_stays() {
        let (_folder, root) = folder();
        let at = |name: &str| root.join(name);
        let steps = [
            put(at("c"), "+"),
            rename(at("a"), at("n")),
            rename(at("b"), at("a")),
            rename(at("n"), at("b")),
            put(at("b"), "+"),
            put(at("d/x"), "+"),
            rename(at("d"), at("deep/e")),
            create(at("new/y")),
            put(at("new/y"), "y"),
            create(at("deep/e/z")),
        ];
        write_all(&planned(&steps)).unwrap();
        let expected = [
            ("a", "b\n"),
            ("b", "+a\n"),
            ("c", "+c\r\n"),
            ("deep/e/x", "+x\n"),
            ("deep/e/z", ""),
            ("new/y", "y"),
        ];
        assert_eq!(disk(&root), expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
        write_all(&planned(&[delete(at("a")), delete(at("c"))])).unwrap();
        assert_eq!(disk(&root).len(), 4);
    }

    #[test]
    fn nothing_that_stepped_aside_stays_in_a_folder_that_is_moved() {
        let (_folder, root) = folder();
        let at = |name: &str| root.join(name);
        std::fs::write(at("d/w"), "w\n").unwrap();
        let steps =
            [rename(at("d/x"), at("d/y")), put(at("d/y"), "+"), delete(at("d/w")), rename(at("d"), at("e"))];
        write_all(&planned(&steps)).unwrap();
        let expected = [("a", "a\n"), ("b", "b\n"), ("c", "c\r\n"), ("e/y", "+x\n")];
        assert_eq!(disk(&root), expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
    }

    #[test]
    fn new_texts_do_not_count_among_what_a_folder_may_hold() {
        let (_folder, root) = folder();
        let at = |name: &str| root.join(name);
        (1..MAX_MOVED).for_each(|number| std::fs::write(at(&format!("d/{number}")), "n\n").unwrap());
        write_all(&planned(&[put(at("d/x"), "+"), rename(at("d"), at("e"))])).unwrap();
        assert_eq!(std::fs::read_dir(at("e")).unwrap().count(), MAX_MOVED);
        assert_eq!(std::fs::read_to_string(at("e/x")).unwrap(), "+x\n");
    }

    /// Half of the plan is done when it fails; all of that is taken back.
    #[track_caller]
    fn check_taken_back(root: &Path, mut steps: Vec<Step>, failing: Step, kind: Kind) {
        let at = |name: &str| root.join(name);
        steps.extend([put(at("a"), "+"), rename(at("b"), at("new/n")), delete(at("c")), create(at("new/y"))]);
        steps.push(failing);
        let plan = planned(&steps);
        let before = disk(root);
        let refused = write_all(&plan).unwrap_err();
        assert_eq!(refused.kind, kind, "{refused:?}");
        assert!(refused.message.ends_with("; nothing was changed."), "{refused:?}");
        assert_eq!(disk(root), before);
        assert!(!at("new").exists(), "no folder stays");
    }

    #[test]
    fn where_a_new_file_cannot_be_written_nothing_is_done() {
        let (_folder, root) = folder();
        // Not even root writes there.
        check_taken_back(&root, Vec::new(), create("/proc/baton.rs"), Kind::CannotWrite);
    }

    #[test]
    fn where_a_file_cannot_step_aside_what_was_done_is_taken_back() {
        let (_folder, root) = folder();
        check_taken_back(&root, Vec::new(), delete("/proc/version"), Kind::CannotWrite);
    }

    #[test]
    fn where_a_folder_cannot_be_moved_what_was_done_is_taken_back() {
        let (_folder, root) = folder();
        let elsewhere = format!("/dev/shm/baton-{}", uuid::Uuid::new_v4().simple());
        // Files are in their places by then; a folder does not go to another device.
        check_taken_back(
            &root,
            vec![put(root.join("d/x"), "+")],
            rename(root.join("d"), elsewhere),
            Kind::CannotWrite,
        );
    }

    #[test]
    fn what_came_or_changed_meanwhile_is_told() {
        let (_folder, root) = folder();
        let at = |name: &str| root.join(name);
        let mut n_checked = 0;
        let mut check = |step: Step, disturb: &dyn Fn(), kind: Kind| {
            let plan = planned(&[put(at("a"), "+"), step]);
            disturb();
            let before = disk(&root);
            assert_eq!(write_all(&plan).unwrap_err().kind, kind);
            assert_eq!(disk(&root), before);
            n_checked += 1;
        };
        let write = |name: &str| std::fs::write(at(name), "other\n").unwrap();
        check(create(at("n")), &|| write("n"), Kind::FileExists);
        check(rename(at("b"), at("m")), &|| write("m"), Kind::FileExists);
        check(rename(at("b"), at("k")), &|| write("b"), Kind::ChangedMeanwhile);
        check(delete(at("c")), &|| write("c"), Kind::ChangedMeanwhile);
        check(delete(at("c")), &|| std::fs::remove_file(at("c")).unwrap(), Kind::ChangedMeanwhile);
        check(rename(at("d"), at("e")), &|| write("d/more"), Kind::ChangedMeanwhile);
        check(rename(at("d"), at("e")), &|| write("e"), Kind::FileExists);
        assert_eq!(n_checked, 7);
    }
}
