//! Files as the engine reads and writes them: text only, of a bounded size, with a stamp.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use baton_proto::shim::CodeFile;
use ignore::WalkBuilder;
use rustix::fs::OFlags;

use super::documents::{Snapshot, Stamp};
use super::text::{self, NotText, Storage, Text};
use baton_agent_base::fault::{Fault, Kind};
use baton_link::trees::is_top;

/// Largest file that is opened at a server. Generated tables stay below; beyond it servers take seconds.
pub const MAX_FILE_LEN: u64 = 8 * 1024 * 1024;

/// Files that a folder takes along: all of them are named in a preview.
pub(crate) const MAX_MOVED: usize = 1_000;

/// A file system tells times in steps of a few milliseconds, so a file that was changed just now can change again
/// without a trace.
const STEP: Duration = Duration::from_millis(50);

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is none, or it cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// A folder, a pipe, a device.
    #[error("is not a file")]
    NotAFile,
    /// Larger than [`MAX_FILE_LEN`].
    #[error("is larger than 8 MiB")]
    TooLarge,
    /// See [`NotText`].
    #[error("{0}")]
    NotText(NotText),
}

/// What the disk holds now; never the same twice for a file that was changed a moment ago.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(stamp_of(&metadata))
}

fn stamp_of(metadata: &std::fs::Metadata) -> Stamp {
    let modified = metadata.modified().ok();
    let is_settled = |modified: &SystemTime| modified.elapsed().is_ok_and(|age| age > STEP);
    let since_1970 = |modified: SystemTime| modified.duration_since(SystemTime::UNIX_EPOCH).ok();
    let modified = modified.filter(is_settled).and_then(since_1970);
    Stamp { modified, len: metadata.len(), inode: metadata.ino() }
}

/// A file as it is now, with how it is stored.
pub fn read_stored(path: &Path) -> Result<(Snapshot, Storage), FileError> {
    let metadata = std::fs::metadata(path).map_err(FileError::Unreadable)?;
    if !metadata.is_file() {
        return Err(FileError::NotAFile);
    }
    if metadata.len() > MAX_FILE_LEN {
        return Err(FileError::TooLarge);
    }
    let stamp = stamp_of(&metadata);
    let bytes = std::fs::read(path).map_err(FileError::Unreadable)?;
    let (text, storage) = text::decode(bytes).map_err(FileError::NotText)?;
    Ok((Snapshot { path: path.to_owned(), text: Arc::new(Text::new(text)), stamp }, storage))
}

/// A file as it is now.
pub fn read(path: &Path) -> Result<Snapshot, FileError> {
    read_stored(path).map(|(snapshot, _)| snapshot)
}

/// Whether there is nothing at a path.
pub(crate) fn is_nothing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Some files as they are now, read beside the other calls.
pub async fn read_all(paths: Vec<PathBuf>) -> Vec<(PathBuf, Result<Snapshot, FileError>)> {
    let read = move || {
        let with_text = |path: PathBuf| {
            let snapshot = read(&path);
            (path, snapshot)
        };
        paths.into_iter().map(with_text).collect()
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}

/// All files in a folder, whatever is ignored otherwise: they go where it goes.
pub(crate) fn files_below(folder: &Path, n_max: usize) -> Result<Vec<PathBuf>, Fault> {
    let mut files = Vec::new();
    for entry in WalkBuilder::new(folder).standard_filters(false).build().flatten() {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if is_folder && is_top(entry.path()) {
            let (folder, top) = (folder.display(), entry.path().display());
            let message = format!("{folder} holds another tree, {top}; nothing was changed.");
            return Err(Fault::new(Kind::UnsupportedEdit, message).hint("Move the folder by hand."));
        }
        files.extend((!is_folder).then(|| entry.into_path()));
        if files.len() > n_max {
            let message = format!("{} holds more than {n_max} files; nothing was changed.", folder.display());
            return Err(Fault::new(Kind::UnsupportedEdit, message).hint("Move the folder by hand."));
        }
    }
    files.sort();
    Ok(files)
}

/// A file as the disk has it, for VS Code to open; whatever its line ends are.
pub(crate) fn on_disk(snapshot: &Snapshot) -> CodeFile {
    for_editor(&snapshot.path, snapshot.text.as_str())
}

/// A file with this text, as VS Code counts it.
pub(crate) fn for_editor(path: &Path, text: &str) -> CodeFile {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    CodeFile { path: path.display().to_string(), hash: text::hash(text.as_bytes()) }
}

/// Files that nobody else reads, and that are not somewhere else.
pub(crate) fn private() -> std::fs::OpenOptions {
    let mut options = File::options();
    options.mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert!(matches!(read(&path), Err(FileError::Unreadable(_))));
        assert!(matches!(read(folder.path()), Err(FileError::NotAFile)));
        std::fs::write(&path, b"a\0b").unwrap();
        assert!(matches!(read(&path), Err(FileError::NotText(NotText::Binary))));
        std::fs::File::create(&path).unwrap().set_len(MAX_FILE_LEN + 1).unwrap();
        assert!(matches!(read(&path), Err(FileError::TooLarge)));
    }

    #[test]
    fn a_file_changed_just_now_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.py");
        std::fs::write(&path, "a").unwrap();
        let old = SystemTime::now() - Duration::from_secs(10);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        assert_eq!(stamp(&path).unwrap(), read(&path).unwrap().stamp);
        assert!(stamp(&path).unwrap().modified.is_some());
        std::fs::write(&path, "b").unwrap();
        assert_eq!(read(&path).unwrap().stamp.modified, None);
    }

    #[test]
    fn a_folder_with_another_tree_in_it_is_not_moved() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/x"), "").unwrap();
        assert_eq!(files_below(folder.path(), 9).unwrap(), [folder.path().join("a/x")]);
        std::fs::write(folder.path().join("a/b/.git"), "").unwrap();
        assert_eq!(files_below(folder.path(), 9).unwrap_err().kind, Kind::UnsupportedEdit);
    }
}
