//! Writes a plan to disk: everything, or nothing at all.
//!
//! New texts are written into a folder of ours beside their places first. When all files are still as they were, the old
//! ones step aside and the new ones take their places; each step is noted in a [`Journal`], and taken back when one after
//! it fails, or when the agent is killed. Old and new text are exchanged, where the system can do that, so that a save of
//! another program in the last moment is found and not lost.

use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Access, access};

use super::files::files_below;
use super::journal::{Fresh, Journal, Turn};
use super::kept::Record;
use super::plan::{FileEdit, Plan};
use super::text::hash;
use super::{files, text};
use baton_agent_base::fault::{Fault, Kind};

/// What a change is to those who undo.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trace<'a> {
    /// A client's, which may undo it; see [`kept::client`](super::kept::client).
    Of(&'a str),
    /// It undoes the one that is kept there.
    Undo(&'a Path),
}

/// Makes all changes, or none.
pub(crate) fn write_all(plan: &Plan, turn: &Turn, trace: Trace<'_>) -> Result<(), Fault> {
    let mut journal = match turn.begin() {
        Ok(journal) => journal,
        Err((path, error)) => return Err(Failure::Io(path, error).into_error(&[])),
    };
    let noted = match trace {
        Trace::Of(client) => journal.keep(client, &Record::of(plan)),
        Trace::Undo(path) => journal.undoes(path),
    };
    let made = noted.map_err(of_io).and_then(|()| write(plan, &mut journal));
    let made = made.and_then(|()| journal.close().map_err(of_io));
    match made {
        Ok(()) => {
            journal.sweep();
            Ok(())
        }
        Err(failure) => Err(failure.into_error(&journal.take_back())),
    }
}

/// Why a plan was not written.
enum Failure {
    Io(PathBuf, io::Error),
    Changed(PathBuf),
    Exists(PathBuf),
    ReadOnly(PathBuf),
    /// A link, which a file would take the place of.
    Link(PathBuf),
    /// A file with so many names, of which a new one would take one away.
    Names(PathBuf, u64),
}

fn of_io((path, error): (PathBuf, io::Error)) -> Failure {
    Failure::Io(path, error)
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
            Failure::ReadOnly(path) => (
                Kind::CannotWrite,
                format!("{} is read-only", path.display()),
                "Ask the user to make it writable.",
            ),
            Failure::Link(path) => (
                Kind::UnsupportedEdit,
                format!("{} is a symbolic link and would become a file", path.display()),
                "Change the file that it points to.",
            ),
            Failure::Names(path, n_names) => (
                Kind::UnsupportedEdit,
                format!("{} is one of {n_names} hard links to a file and would be separated", path.display()),
                "Ask the user to change it: the others may be outside this window's folders.",
            ),
        };
        match stuck {
            [] => Fault::new(kind, format!("{sentence}; nothing was changed.")).hint(hint),
            stuck => Fault::new(kind, format!("{sentence}, and could not be undone: {}.", stuck.join("; ")))
                .hint("Look at these files before anything else."),
        }
    }
}

fn write(plan: &Plan, journal: &mut Journal) -> Result<(), Failure> {
    let mut fresh = Vec::new();
    for edit in &plan.edits {
        fresh.push(write_aside(plan, edit, journal)?);
    }
    check(plan)?;
    // All that goes away first: one file may take the place of another.
    let (mut aside, mut replaced) = (Vec::new(), Vec::new());
    for (edit, fresh) in plan.edits.iter().zip(&fresh).filter(|(edit, _)| !edit.stays()) {
        let Some(from) = &edit.from else {
            aside.push(None);
            continue;
        };
        let failed = |error| Failure::Io(from.clone(), error);
        let place = journal.place(near(plan, from)).map_err(failed)?;
        journal.rename(from, &place).map_err(failed)?;
        // A link that goes takes no text with it.
        if (edit.to.is_none() || fresh.is_some()) && !place.is_symlink() {
            replaced.push(as_it_was(edit, from, place.clone())?);
        }
        aside.push(Some(place));
    }
    let mut aside = aside.into_iter();
    for (edit, fresh) in plan.edits.iter().zip(fresh) {
        if edit.stays() {
            replaced.extend(replace(edit, fresh, journal)?);
            continue;
        }
        let old = aside.next().flatten();
        let Some(to) = &edit.to else { continue };
        journal.make_folders(to).map_err(of_io)?;
        match (fresh, old) {
            (Some(fresh), _) => journal.put(fresh, to).map_err(|error| at_name(to, to, error))?,
            (None, Some(old)) => journal.rename(&old, to).map_err(|error| at_name(to, to, error))?,
            (None, None) => {}
        }
    }
    for folder in &plan.folders {
        journal.make_folders(&folder.to).map_err(of_io)?;
        let failed = |error| at_name(&folder.to, &folder.from, error);
        journal.rename(&folder.from, &folder.to).map_err(failed)?;
    }
    // Who had opened a file before may have saved it since.
    match replaced.into_iter().find(|replaced| seen(&replaced.old) != replaced.seen) {
        Some(Replaced { path, .. }) => Err(Failure::Changed(path)),
        None => Ok(()),
    }
}

/// What it means that a name cannot be taken. `shown`: the file that another error is about.
fn at_name(to: &Path, shown: &Path, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Exists(to.to_owned()),
        _ => Failure::Io(shown.to_owned(), error),
    }
}

/// The folder for what steps aside and for what comes: the nearest one that is there, and none that is moved itself.
fn near<'a>(plan: &'a Plan, path: &'a Path) -> &'a Path {
    let moved = plan.folders.iter().map(|folder| folder.from.as_path()).find(|from| path.starts_with(from));
    let above = moved.unwrap_or(path).ancestors().skip(1);
    above.into_iter().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"))
}

/// The new text of a file, near to where it will be; none where only the name changes.
fn write_aside(plan: &Plan, edit: &FileEdit, journal: &mut Journal) -> Result<Option<Fresh>, Failure> {
    let Some(to) = &edit.to else { return Ok(None) };
    if edit.from.is_some() && edit.old.as_str() == edit.new {
        return Ok(None);
    }
    let failed = |error| Failure::Io(to.clone(), error);
    let place = journal.place(near(plan, to)).map_err(failed)?;
    let bytes = text::encode(&edit.new, edit.storage);
    std::fs::write(&place, &bytes).map_err(failed)?;
    if let Some(from) = &edit.from {
        let metadata = std::fs::metadata(from).map_err(failed)?;
        let fresh = std::fs::symlink_metadata(&place).map_err(failed)?;
        // As far as we may: only root gives a file to another user.
        if metadata.gid() != fresh.gid() {
            let _ = chown(&place, None, Some(metadata.gid()));
        }
        if metadata.uid() != fresh.uid() {
            let _ = chown(&place, Some(metadata.uid()), None);
        }
        std::fs::set_permissions(&place, metadata.permissions()).map_err(failed)?;
    }
    Ok(Some(Fresh { place, hash: hash(&bytes) }))
}

/// Whether everything is as it was when the plan was made.
fn check(plan: &Plan) -> Result<(), Failure> {
    for edit in &plan.edits {
        if let Some(from) = &edit.from
            && !files::read(from).is_ok_and(|now| now.text == edit.old)
        {
            return Err(Failure::Changed(from.clone()));
        }
        if let Some(from) = &edit.from {
            check_kind(edit, from)?;
        }
        let goes_away = |path: &PathBuf| {
            plan.edits.iter().any(|other| other.from.as_ref() == Some(path) && !other.stays())
        };
        if let Some(to) = edit.to.as_ref().filter(|to| !edit.stays() && !goes_away(to)) {
            match std::fs::symlink_metadata(to) {
                Ok(_) => return Err(Failure::Exists(to.clone())),
                Err(error) if files::is_nothing(&error) => {}
                Err(error) => return Err(Failure::Io(to.clone(), error)),
            }
        }
    }
    for folder in &plan.folders {
        let n_expected = folder.files.len();
        let now = files_below(&folder.from, n_expected).map_err(|_| Failure::Changed(folder.from.clone()))?;
        if now.len() != n_expected || !folder.files.iter().all(|file| now.contains(file)) {
            return Err(Failure::Changed(folder.from.clone()));
        }
    }
    Ok(())
}

/// Whether a file can get a new text, or go, and everything about it stays as it is.
fn check_kind(edit: &FileEdit, from: &Path) -> Result<(), Failure> {
    let metadata = std::fs::symlink_metadata(from).map_err(|error| Failure::Io(from.to_owned(), error))?;
    let is_rewritten = edit.to.is_some() && edit.old.as_str() != edit.new;
    if metadata.is_symlink() {
        return if is_rewritten { Err(Failure::Link(from.to_owned())) } else { Ok(()) };
    }
    // Root may write to all files.
    let is_writable = metadata.mode() & 0o222 != 0 && access(from, Access::WRITE_OK).is_ok();
    match (is_rewritten || edit.to.is_none(), metadata.nlink()) {
        (true, _) if !is_writable => Err(Failure::ReadOnly(from.to_owned())),
        // In its place it could be written only for all of them, and they may lie anywhere.
        (_, 2..) if is_rewritten => Err(Failure::Names(from.to_owned(), metadata.nlink())),
        _ => Ok(()),
    }
}

/// A file whose old text lies in a folder of ours.
struct Replaced {
    path: PathBuf,
    old: PathBuf,
    /// When it was found to be what the change was made against.
    seen: Seen,
}

/// Last change and length.
type Seen = Option<(SystemTime, u64)>;

fn seen(path: &Path) -> Seen {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// A new text in the place of an old one.
fn replace(
    edit: &FileEdit,
    fresh: Option<Fresh>,
    journal: &mut Journal,
) -> Result<Option<Replaced>, Failure> {
    let (Some(fresh), Some(to)) = (fresh, &edit.to) else { return Ok(None) };
    let old = journal.exchange(to, fresh).map_err(|error| Failure::Io(to.clone(), error))?;
    as_it_was(edit, to, old).map(Some)
}

/// Looks at an old text that lies in a folder of ours now.
fn as_it_was(edit: &FileEdit, path: &Path, old: PathBuf) -> Result<Replaced, Failure> {
    let seen = seen(&old);
    match files::read(&old).is_ok_and(|was| was.text == edit.old) {
        true => Ok(Replaced { path: path.to_owned(), old, seen }),
        // Somebody saved it after we looked: theirs goes back.
        false => Err(Failure::Changed(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use super::*;
    use crate::edits::{EditProblem, OnExisting, Step};
    use crate::files::MAX_MOVED;
    use crate::journal::{Ledger, TURN_LIMIT, failpoint};
    use crate::lsp::{Position, Range, TextEdit};
    use crate::plan::{self, FolderMove, Found};
    use crate::text::{Encoding, Storage, Text};
    use crate::undo::undo_last;

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

    fn turn(ledger: &Ledger, root: &Path) -> Turn {
        ledger.turn(&[root.to_owned()], TURN_LIMIT).unwrap()
    }

    /// Without a state folder.
    fn write_all(plan: &Plan) -> Result<(), Fault> {
        super::write_all(plan, &turn(&Ledger::default(), Path::new("/")), Trace::Of("client"))
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
        let state = tempfile::tempdir().unwrap();
        let ledger = Ledger { folder: Some(state.path().join("changes")) };
        let path = root.join("a");
        let save = |text: &str| std::fs::write(&path, text).unwrap();
        for can_exchange in [true, false] {
            save("a\n");
            let turn = turn(&ledger, &root);
            let begin = |plan: &Plan| {
                let mut journal = turn.begin().unwrap();
                journal.cannot_exchange = !can_exchange;
                let fresh = write_aside(plan, &plan.edits[0], &mut journal).ok().flatten();
                (journal, fresh)
            };
            // After all files were looked at, before the new text takes its place.
            let plan = planned(&[put(&path, "+")]);
            let (mut journal, fresh) = begin(&plan);
            save("saved\n");
            let replaced = replace(&plan.edits[0], fresh, &mut journal);
            assert!(matches!(replaced, Err(Failure::Changed(_))));
            assert_eq!(journal.take_back(), Vec::<String>::new());
            assert_eq!((disk(&root).len(), disk(&root)["a"].as_str()), (4, "saved\n"));
            // By a program that had opened it before.
            let plan = planned(&[put(&path, "+")]);
            let (mut journal, fresh) = begin(&plan);
            let mut opened = std::fs::File::options().append(true).open(&path).unwrap();
            let replaced = replace(&plan.edits[0], fresh, &mut journal).ok().flatten().unwrap();
            opened.write_all(b"more\n").unwrap();
            assert_ne!(seen(&replaced.old), replaced.seen);
            assert_eq!(journal.take_back(), Vec::<String>::new());
            assert_eq!((disk(&root).len(), disk(&root)["a"].as_str()), (4, "saved\nmore\n"));
            // After it took its place, when a later file fails.
            let plan = planned(&[put(&path, "+")]);
            let (mut journal, fresh) = begin(&plan);
            replace(&plan.edits[0], fresh, &mut journal).ok().flatten().unwrap();
            save("saved again\n");
            let stuck = journal.take_back();
            assert!(stuck.len() == 1 && stuck[0].ends_with("(it was changed again)"), "{stuck:?}");
            assert_eq!((disk(&root).len(), disk(&root)["a"].as_str()), (4, "saved again\n"));
            let kept = std::fs::read_dir(state.path().join("changes/kept")).unwrap().flatten();
            let kept: Vec<PathBuf> = kept.map(|entry| entry.path()).collect();
            assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), "saved\nmore\n");
            kept.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
    }

    /// Ends a change at each moment of it, as a kill does, and lets the next one find it. The same of an undo.
    #[test]
    fn a_change_that_was_cut_off_anywhere_is_undone_or_complete() {
        check_cut_off(false);
        check_cut_off(true);
    }

    fn undo(turn: &Turn) -> Result<Plan, Fault> {
        undo_last(turn, "client", |_| true, |_| Ok(()))
    }

    fn check_cut_off(is_undo: bool) {
        let (mut n_undone, mut n_complete) = (0, 0);
        for n_passes in 0.. {
            let (_folder, root) = folder();
            let state = tempfile::tempdir().unwrap();
            let ledger = Ledger { folder: Some(state.path().join("changes")) };
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
            ];
            let plan = planned(&steps);
            if is_undo {
                super::write_all(&plan, &turn(&ledger, &root), Trace::Of("client")).unwrap();
            }
            let before = disk(&root);
            let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let turn = turn(&ledger, &root);
                failpoint::set(Some(n_passes));
                match is_undo {
                    false => super::write_all(&plan, &turn, Trace::Of("client")).unwrap(),
                    true => drop(undo(&turn).unwrap()),
                }
            }));
            failpoint::set(None);
            if made.is_ok() {
                break;
            }
            // One that has other folders lets it be.
            assert_eq!(turn(&ledger, Path::new("/elsewhere")).undo_left(), Vec::<String>::new());
            let left = std::fs::read_dir(state.path().join("changes")).unwrap().flatten();
            let left: Vec<PathBuf> = left.map(|entry| entry.path()).collect();
            let journal = left.iter().find(|path| path.extension().is_some_and(|name| name == "journal"));
            let written = journal.map(|path| (path, std::fs::read(path).unwrap()));
            let turn = turn(&ledger, &root);
            let told = turn.undo_left();
            let is_whole = told
                .iter()
                .all(|told| told.ends_with("it is complete.") || told.ends_with("nothing was changed."));
            assert!(is_whole && told.len() <= 1, "{told:?}");
            let after = disk(&root);
            let is_changed = after.contains_key("deep/e/x") && after.len() == 5;
            match told.first().is_some_and(|told| told.ends_with("it is complete.")) {
                true => n_complete += usize::from(is_changed != is_undo),
                false => {
                    let is_clean = is_undo || !at("new").exists() && !at("deep").exists();
                    n_undone += usize::from(after == before && is_clean);
                }
            }
            assert_eq!(n_undone + n_complete, n_passes + 1, "{n_passes}: {after:?}");
            // The one that undoes it is killed, too, and another one does it again.
            if let Some((path, bytes)) = written {
                std::fs::write(path, bytes).unwrap();
                turn.undo_left();
                assert_eq!(disk(&root), after);
            }
            // What is there can be undone once, when it is the change.
            assert_eq!(undo(&turn).is_ok(), is_changed, "{n_passes}");
            let kept = std::fs::read_dir(state.path().join("changes/undo")).into_iter().flatten().count();
            assert_eq!((disk(&root).len(), kept), (4, 0), "{n_passes}");
        }
        assert!(n_undone > 20 && n_complete == 1, "{n_undone}, {n_complete}");
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
    fn what_is_no_plain_file_of_the_users_stays_what_it_is() {
        let (_folder, root) = folder();
        let at = |name: &str| root.join(name);
        std::os::unix::fs::symlink("a", at("link")).unwrap();
        std::fs::hard_link(at("b"), at("d/b")).unwrap();
        let set_mode = |name: &str, mode: u32| {
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set_mode("c", 0o444);
        let kinds = || {
            let kind = |name: &&str| {
                let metadata = std::fs::symlink_metadata(at(name)).unwrap();
                (metadata.mode(), metadata.nlink(), metadata.uid(), metadata.gid())
            };
            ["a", "b", "c", "link", "d/b"].iter().map(kind).collect::<Vec<_>>()
        };
        let (before, kinds_before) = (disk(&root), kinds());
        for (step, kind, words) in [
            (put(at("c"), "+"), Kind::CannotWrite, "c is read-only; nothing was changed."),
            (delete(at("c")), Kind::CannotWrite, "c is read-only; nothing was changed."),
            (
                put(at("link"), "+"),
                Kind::UnsupportedEdit,
                "link is a symbolic link and would become a file; nothing was changed.",
            ),
            (
                put(at("d/b"), "+"),
                Kind::UnsupportedEdit,
                "d/b is one of 2 hard links to a file and would be separated; nothing was changed.",
            ),
        ] {
            let refused = write_all(&planned(&[put(at("a"), "+"), step])).unwrap_err();
            assert!(refused.kind == kind && refused.message.ends_with(words), "{refused:?}");
            assert_eq!((disk(&root), kinds()), (before.clone(), kinds_before.clone()));
        }
        // Another name is all the same to them, and a link that goes leaves its file.
        write_all(&planned(&[rename(at("c"), at("d/c")), rename(at("b"), at("d/n")), delete(at("link"))]))
            .unwrap();
        assert_eq!(std::fs::metadata(at("d/c")).unwrap().mode() & 0o777, 0o444);
        assert_eq!(std::fs::metadata(at("d/n")).unwrap().nlink(), 2);
        assert!(!at("link").is_symlink() && at("a").exists());
        // Mode and owner of what gets another text.
        set_mode("a", 0o751);
        let _ = chown(at("a"), Some(4_711), Some(4_712));
        let before = std::fs::metadata(at("a")).unwrap();
        write_all(&planned(&[put(at("a"), "+")])).unwrap();
        let after = std::fs::metadata(at("a")).unwrap();
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
        assert_eq!(disk(&root)["a"], "+a\n");
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
        let elsewhere = format!("/dev/shm/baton-{}", baton_link::scratch::unique());
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
