//! Walks through folders of sources, without what `.gitignore` names and what a tool has made.

use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

/// Never looked into, whatever `.gitignore` says.
const NEVER: [&str; 2] = ["node_modules", "__pycache__"];
/// A folder with this file can be made again, says who made it: cargo in `target`, and others.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// Marks a folder with an installed Python.
const PYTHON_MARK: &str = "pyvenv.cfg";

/// Everything in `folders`, folder by folder in the order of names. What the user has opened counts whatever it is.
pub fn walk(folders: &[PathBuf], opened: &[PathBuf]) -> impl Iterator<Item = DirEntry> + use<> {
    build(folders, opened, true)
}

/// The same, with what `.gitignore` names.
pub fn walk_ignored_too(folders: &[PathBuf], opened: &[PathBuf]) -> impl Iterator<Item = DirEntry> + use<> {
    build(folders, opened, false)
}

fn build(folders: &[PathBuf], opened: &[PathBuf], heeds_git: bool) -> impl Iterator<Item = DirEntry> + use<> {
    let opened = opened.to_vec();
    let mut all = folders.iter();
    let walk = all.next().map(|first| {
        let mut walk = WalkBuilder::new(first);
        all.for_each(|folder| {
            walk.add(folder);
        });
        walk.git_ignore(heeds_git).git_global(heeds_git).git_exclude(heeds_git).ignore(heeds_git);
        walk.require_git(false).sort_by_file_name(Ord::cmp).filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            !is_folder || !is_made(entry.path()) || opened.iter().any(|folder| folder == entry.path())
        });
        walk.build()
    });
    walk.into_iter().flatten().flatten()
}

/// Whether a tool has made a folder, or it is hidden.
pub fn is_made(folder: &Path) -> bool {
    let is_hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
    folder.file_name().is_some_and(|name| is_hidden(name) || NEVER.iter().any(|never| name == *never))
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
    }
}
