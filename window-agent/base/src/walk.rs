//! Walks through folders of sources, without what `.gitignore` names, what a tool has made, and other trees.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ignore::{DirEntry, WalkBuilder};

use crate::trees;

/// Never looked into, whatever `.gitignore` says.
const NEVER: [&str; 6] = ["node_modules", "__pycache__", ".git", ".hg", ".jj", ".svn"];
/// Longest look for other trees: a server waits for it.
const MAX_LOOK: Duration = Duration::from_millis(300);
/// A folder with this file can be made again, says who made it: cargo in `target`, and others.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// Marks a folder with an installed Python.
const PYTHON_MARK: &str = "pyvenv.cfg";

/// What belongs to a walk beyond the sources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Sources,
    Ignored,
    Hidden,
}

/// Everything in `folders`, folder by folder in the order of names. What the user has opened counts whatever it is.
pub fn walk(folders: &[PathBuf], opened: &[PathBuf]) -> impl Iterator<Item = DirEntry> + use<> {
    build(folders, opened, Scope::Sources, None)
}

/// The same, with what `.gitignore` names.
pub fn walk_ignored_too(folders: &[PathBuf], opened: &[PathBuf]) -> impl Iterator<Item = DirEntry> + use<> {
    build(folders, opened, Scope::Ignored, None)
}

/// The same with what is hidden: some servers take it for sources.
pub fn walk_hidden_too(folders: &[PathBuf], opened: &[PathBuf]) -> impl Iterator<Item = DirEntry> + use<> {
    build(folders, opened, Scope::Hidden, None)
}

/// The tops of other trees inside of a folder, as far as a short walk finds them.
pub fn other_trees(folder: &Path) -> Vec<PathBuf> {
    let (tell, told) = mpsc::channel();
    let started = Instant::now();
    let entries = build(&[folder.to_owned()], &[], Scope::Hidden, Some(tell));
    entries.take_while(|_| started.elapsed() <= MAX_LOOK).for_each(drop);
    let mut tops: Vec<PathBuf> = told.try_iter().collect();
    tops.sort();
    tops
}

fn build(
    folders: &[PathBuf],
    opened: &[PathBuf],
    scope: Scope,
    other_trees: Option<mpsc::Sender<PathBuf>>,
) -> impl Iterator<Item = DirEntry> + use<> {
    let (opened, roots) = (opened.to_vec(), folders.to_vec());
    let mut all = folders.iter();
    let walk = all.next().map(|first| {
        let mut walk = WalkBuilder::new(first);
        all.for_each(|folder| {
            walk.add(folder);
        });
        let heeds_git = scope != Scope::Ignored;
        walk.git_ignore(heeds_git).git_global(heeds_git).git_exclude(heeds_git).ignore(heeds_git);
        walk.require_git(false).hidden(scope != Scope::Hidden);
        walk.sort_by_file_name(Ord::cmp).filter_entry(move |entry| {
            let folder = entry.path();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if !is_folder || opened.iter().any(|opened| opened == folder) {
                return true;
            }
            let is_other = trees::is_other_top(folder, &roots);
            if let Some(told) = other_trees.as_ref().filter(|_| is_other) {
                // Nobody hears of it once the walk is over.
                let _ = told.send(folder.to_owned());
            }
            !is_other && !is_made(folder)
        });
        walk.build()
    });
    walk.into_iter().flatten().flatten()
}

/// Whether a tool has made a folder, and keeps it for itself.
pub fn is_made(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| NEVER.iter().any(|never| name == *never))
        || [CACHE_MARK, PYTHON_MARK].iter().any(|mark| folder.join(mark).exists())
}

/// The files among them.
pub fn files(folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> + use<> {
    let files = walk(folders, folders).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(DirEntry::into_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_left_out_but_not_what_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for file in [".gitignore", "b", "a/x", "target/CACHEDIR.TAG", "target/x", "node_modules/x", "out/x"] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "out\n").unwrap();
        }
        let names = |folders: &[PathBuf]| -> Vec<String> {
            files(folders)
                .map(|path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(names(&[root.to_owned()]), ["a/x", "b"]);
        assert_eq!(names(&[root.join("target"), root.join("a")]), ["target/CACHEDIR.TAG", "target/x", "a/x"]);
        assert!(names(&[]).is_empty());
        // Another tree is left out, wherever it is.
        std::fs::create_dir(root.join(".git")).unwrap();
        std::fs::create_dir_all(root.join(".tools/tree/.git")).unwrap();
        std::fs::write(root.join(".tools/x"), "").unwrap();
        std::fs::write(root.join("a/.git"), "").unwrap();
        let folder = [root.to_owned()];
        assert_eq!(names(&folder), ["b"]);
        assert_eq!(names(&[root.join("a")]), ["a/x"], "it was opened");
        assert_eq!(other_trees(root), [root.join(".tools/tree"), root.join("a")]);
        let hidden: Vec<PathBuf> = walk_hidden_too(&folder, &folder).map(DirEntry::into_path).collect();
        assert!(hidden.contains(&root.join(".tools/x")) && !hidden.contains(&root.join("a/x")), "{hidden:?}");
    }
}
