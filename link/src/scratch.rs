//! A folder for what lives no longer than this process: nobody else can look into it, and it does not stay.
//!
//! **Invariant:** nothing of ours lies in the common temporary folder itself. Its names can be read there, also in
//! the arguments of the programs that write them, so another user could be first to make such a file.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use baton_proto::discovery::hex;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::OFlags;

use crate::home::random_hex;

/// Names another folder for temporary files.
const COMMON_VARIABLE: &str = "LCP_TMP_DIR";
/// How the names of these folders begin.
const PREFIX: &str = "baton-scratch-";

/// Another process may take a folder for an abandoned one in the moment in which it is made.
const MAX_TRIES: usize = 8;

/// The folder of this process, once it was needed.
static OWN: Mutex<Option<Scratch>> = Mutex::new(None);

/// A folder, locked for as long as this lives: that is how others know that it is used.
#[derive(Debug)]
struct Scratch {
    path: PathBuf,
    _lock: File,
}

/// The folder of this process; made when it is needed first, or was taken away.
pub fn folder() -> io::Result<PathBuf> {
    let mut own = own();
    if let Some(scratch) = own.as_ref().filter(|scratch| scratch.path.is_dir()) {
        return Ok(scratch.path.clone());
    }
    let common = common(std::env::var_os(COMMON_VARIABLE))?;
    remove_abandoned(&common);
    let scratch = Scratch::make(&common)?;
    Ok(own.insert(scratch).path.clone())
}

/// The folder for temporary files: the system's, or what the environment names in another tool's word.
fn common(named: Option<OsString>) -> io::Result<PathBuf> {
    match named.filter(|path| !path.is_empty()).map(PathBuf::from) {
        Some(named) => {
            DirBuilder::new().mode(0o700).recursive(true).create(&named)?;
            Ok(named)
        }
        None => Ok(std::env::temp_dir()),
    }
}

/// Removes the folder with all that is in it, at the end of the process. What is killed leaves its folder to the
/// next process that needs one.
pub fn remove() {
    if let Some(scratch) = own().take() {
        // Should it stay, the next process removes it.
        let _ = std::fs::remove_dir_all(&scratch.path);
    }
}

/// 32 hexadecimal digits that nobody has seen before: a name for what may lie beside others of its kind.
pub fn unique() -> String {
    let mut bytes = [0; 16];
    // A system without randomness has no home either: the token would have failed first.
    let _ = getrandom::fill(&mut bytes);
    hex(&bytes)
}

/// True for a file that lies in a folder of this kind.
pub fn holds(file: &Path) -> bool {
    let folder = file.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    folder.is_some_and(|name| name.starts_with(PREFIX))
}

fn own() -> MutexGuard<'static, Option<Scratch>> {
    OWN.lock()
}

impl Scratch {
    fn make(common: &Path) -> io::Result<Self> {
        for _ in 0..MAX_TRIES {
            // Short: the path of a socket in it may have no more than some hundred characters.
            let path = common.join(format!("{PREFIX}{}", &random_hex()?[..12]));
            DirBuilder::new().mode(0o700).create(&path)?;
            if let Some(lock) = try_lock(&path) {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(io::Error::other("another process removes our temporary folders"))
    }
}

/// Locks a folder of ours; `None` when a process uses it, or when it is gone.
fn try_lock(path: &Path) -> Option<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::DIRECTORY).bits() as i32;
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let (ours, there) = (folder.metadata().ok()?, std::fs::symlink_metadata(path).ok()?);
    let is_own = ours.uid() == rustix::process::geteuid().as_raw();
    folder.try_lock().ok()?;
    let is_there = (ours.dev(), ours.ino()) == (there.dev(), there.ino()) && path.exists();
    (is_own && is_there).then_some(folder)
}

fn remove_abandoned(common: &Path) {
    for entry in std::fs::read_dir(common).into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_one && let Some(_lock) = try_lock(&entry.path()) {
            // It does no harm when it stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn another_folder_is_made_when_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let named = dir.path().join("a/b");
        assert_eq!(common(Some(named.clone().into())).unwrap(), named);
        assert!(named.is_dir());
        assert_eq!(common(None).unwrap(), std::env::temp_dir());
    }

    #[test]
    fn a_folder_is_private_and_goes_when_its_process_has_gone() {
        let common = tempfile::tempdir().unwrap();
        let used = Scratch::make(common.path()).unwrap();
        let mode = std::fs::metadata(&used.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let abandoned = Scratch::make(common.path()).unwrap().path;
        std::fs::write(abandoned.join("left"), "").unwrap();
        let elsewhere = common.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let planted = common.path().join(format!("{PREFIX}planted"));
        std::os::unix::fs::symlink(&elsewhere, &planted).unwrap();
        remove_abandoned(common.path());
        assert!(used.path.exists() && !abandoned.exists());
        assert!(elsewhere.exists() && planted.is_symlink(), "a link is not followed");
        assert!(holds(&used.path.join("x")) && !holds(&common.path().join("x")));
    }
}
