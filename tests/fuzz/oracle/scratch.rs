//! A state folder for a target that reads files.

use super::Home;

/// A state folder for one thread of the fuzzer, in memory where the system has such a place.
pub(crate) struct Scratch {
    /// The folder.
    pub(crate) home: Home,
    _folder: tempfile::TempDir,
}

impl Scratch {
    /// A new one; it goes when it is dropped.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        Self { home: Home::open(folder.path()).expect("our own folder"), _folder: folder }
    }

    /// Puts a file there as another process would.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.home.path().join(name);
        std::fs::write(&path, bytes).expect("the folder is writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("our own file");
    }
}
