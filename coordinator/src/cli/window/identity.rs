//! The id of a headless window: the same for the same folder and name, and never used twice at once.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use baton_link::home::Home;
use baton_proto::ids::WindowId;

/// Windows on one folder under one name; nobody needs more.
const MAX_TWINS: u32 = 100;

/// Longest part of an id that is made from the folder's name.
const MAX_SLUG_LEN: usize = 40;

/// A claimed id; free again when this process ends, however it does.
///
/// **Invariant:** the file is removed under its lock alone, and a lock counts only on the file that is there.
#[derive(Debug)]
pub(super) struct Identity {
    id: WindowId,
    path: PathBuf,
    _lock: File,
}

impl Drop for Identity {
    fn drop(&mut self) {
        // One that stays is removed by the next window.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Identity {
    /// The first id of this folder and name that no other process holds.
    pub(super) fn claim(home: &Home, folder: &Path, name: &str) -> io::Result<Self> {
        let locks = home.path().join("windows");
        DirBuilder::new().recursive(true).mode(0o700).create(&locks)?;
        remove_abandoned(&locks);
        let base = base_id(folder, name);
        for twin in 1..=MAX_TWINS {
            let text = if twin == 1 { base.clone() } else { format!("{base}-{twin}") };
            let id = WindowId::try_from(text).map_err(io::Error::other)?;
            let path = locks.join(format!("{id}.lock"));
            if let Some(lock) = try_lock(&path, OpenOptions::new().create(true))? {
                return Ok(Self { id, path, _lock: lock });
            }
        }
        Err(io::Error::other("too many windows on this folder"))
    }

    /// The id.
    pub(super) fn id(&self) -> &WindowId {
        &self.id
    }
}

/// Locks the file; `None` when another window has it.
fn try_lock(path: &Path, options: &mut OpenOptions) -> io::Result<Option<File>> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    loop {
        let file = options.read(true).write(true).mode(0o600).custom_flags(flags).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
        let (ours, there) = (file.metadata()?, std::fs::symlink_metadata(path));
        if there.is_ok_and(|there| (ours.dev(), ours.ino()) == (there.dev(), there.ino())) {
            return Ok(Some(file));
        }
        // Its window ended between our opening and our locking, and removed it.
    }
}

/// Removes the files of windows that were killed.
fn remove_abandoned(locks: &Path) {
    for entry in std::fs::read_dir(locks).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        if is_lock && let Ok(Some(_lock)) = try_lock(&path, &mut OpenOptions::new()) {
            // It does no harm when it stays.
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// The folder's name, readable, and a digest of path and name, so that it is the window's own.
fn base_id(folder: &Path, name: &str) -> String {
    let slug: String = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_'))
        .take(MAX_SLUG_LEN)
        .collect();
    let slug = if slug.is_empty() { "window".to_owned() } else { slug };
    format!("{slug}-{:08x}", digest(&[folder.as_os_str().as_bytes(), name.as_bytes()]))
}

/// FNV-1a, folded to 32 bits: the same in every version of Baton.
fn digest(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_folder_has_the_same_id_and_twins_have_others() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let claim = |name| Identity::claim(&home, Path::new("/work/my api!"), name).unwrap();
        let first = claim("api");
        let id = first.id().clone();
        assert!(id.as_str().starts_with("myapi-"), "{id}");
        let twin = claim("api");
        assert_eq!(twin.id().as_str(), format!("{id}-2"));
        assert_ne!(claim("other").id(), &id);
        drop(first);
        assert_eq!(claim("api").id(), &id);
    }
    #[test]
    fn nothing_stays_of_windows_that_ended_or_were_killed() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let locks = dir.path().join("windows");
        std::fs::create_dir(&locks).unwrap();
        std::fs::write(locks.join("killed-1.lock"), "").unwrap();
        std::fs::write(locks.join("notes"), "").unwrap();
        let left = || {
            let names = std::fs::read_dir(&locks).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name != "notes").count()
        };
        let first = Identity::claim(&home, Path::new("/work/api"), "api").unwrap();
        let second = Identity::claim(&home, Path::new("/work/api"), "api").unwrap();
        assert_eq!(left(), 2, "those of the two that run");
        drop((first, second));
        assert_eq!(left(), 0);
    }
}
