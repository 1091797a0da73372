//! The state folder: where it is, whether it can be trusted, and reading what lies in it.
//!
//! **Invariant:** nothing is read or written through a symbolic link, a hard link, or in a folder that another
//! user can write to.

use crate::explain::Explanation;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_proto::discovery::{Discovery, KEY_LEN, Role, Secret, hex};
use baton_proto::start::Waiting;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::OFlags;
use serde::{Deserialize, Deserializer};

use crate::files::write_new;
use crate::folders;
pub use crate::folders::HOME_VARIABLE;
use crate::process::is_running;

/// The port of a coordinator that was never told another one; outside every ephemeral range.
pub const DEFAULT_PORT: u16 = 7717;

/// Larger than any discovery or state file that Baton wrote; a larger one is corrupt.
const MAX_FILE_LEN: u64 = 64 * 1024;

/// Longest instance id and version in a discovery file.
const MAX_WORD_LEN: usize = 64;

/// The state folder of the user, checked.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
    memory: Arc<Mutex<Memory>>,
}

/// What this process knew before somebody deleted the folder: clients have stored the port and a token made
/// from the secret.
#[derive(Default)]
struct Memory {
    secret: Option<[u8; KEY_LEN]>,
    port: Option<u16>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory(..)")
    }
}

/// Why the state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Neither `BATON_HOME` nor a home folder is known.
    #[error("cannot determine your home folder")]
    Unknown,
    /// It could not be made or looked at.
    #[error("cannot use the state folder {}{}", path.display(), reason(source))]
    Io {
        /// What was attempted on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a symbolic link or no folder, belongs to somebody else, or others can write to it.
    #[error("refusing to use {}: it {why}", path.display())]
    Untrusted {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
        /// What to do about it.
        advice: &'static str,
    },
}

impl HomeError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unknown => "set BATON_HOME to a folder you own",
            Self::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "free up space and try again, or set BATON_HOME to a folder on another disk"
                }
                ErrorKind::ReadOnlyFilesystem => "set BATON_HOME to a folder on a disk that is writable",
                _ => "check its permissions, or set BATON_HOME to another folder",
            },
            Self::Untrusted { advice, .. } => advice,
        };
        Some(hint.to_owned())
    }

    /// For a place that has one line.
    pub fn explain(&self) -> Explanation {
        Explanation { message: self.to_string(), hint: self.hint() }
    }
}

/// Why, where a person may not recognize the system's own words.
fn reason(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull => ": the disk is full",
        ErrorKind::QuotaExceeded => ": your disk quota is used up",
        ErrorKind::ReadOnlyFilesystem => ": the disk is read-only",
        ErrorKind::PermissionDenied => ": access is denied",
        _ => "",
    }
}

/// Writes a file of this user's alone as a whole: a reader sees the old one or the new one, also after a crash.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidFilename.into());
    };
    let temporary = folder.join(format!("{}.{}.tmp", name.to_string_lossy(), random_hex()?));
    let written = write_new(&temporary, bytes)
        .and_then(|()| std::fs::rename(&temporary, path))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        // The temporary file may not even be there; the first error is the one that counts.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// The part of `state.json` that other processes read; written by the coordinator alone.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StoredState {
    /// The port that was chosen for good.
    #[serde(deserialize_with = "port")]
    pub port: Option<u16>,
    /// Rotations of the client token, see [`baton_proto::discovery::Role::Client`].
    pub client_epoch: u32,
    /// The user stopped the coordinator with `baton down`.
    pub stopped: bool,
}

impl Home {
    /// The folder `BATON_HOME` names, else the user's own; made when it is missing.
    pub fn from_env() -> Result<Self, HomeError> {
        match std::env::var_os(HOME_VARIABLE).filter(|value| !value.is_empty()) {
            Some(path) => Self::open(path),
            None => Self::open(folders::state().ok_or(HomeError::Unknown)?),
        }
    }

    /// The given folder; made with mode 0700 when it is missing, refused when it cannot be trusted.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, HomeError> {
        let path = path.as_ref();
        let io_error = |source| HomeError::Io { path: path.to_owned(), source };
        let root = std::path::absolute(path).map_err(io_error)?;
        // The mode is explicit, so that a umask of 0 opens nothing to others, parents included.
        DirBuilder::new().recursive(true).mode(0o700).create(&root).map_err(io_error)?;
        let home = Self { root, memory: Arc::default() };
        home.check()?;
        Ok(home)
    }

    /// Looks again whether the folder is there and can be trusted.
    pub fn check(&self) -> Result<(), HomeError> {
        let metadata = std::fs::symlink_metadata(&self.root).map_err(|source| self.io_error("", source))?;
        if !metadata.is_dir() {
            return Err(self.untrusted(
                "",
                "is not a folder",
                "remove it, or set BATON_HOME to another folder",
            ));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            let advice = "set BATON_HOME to a folder you own";
            return Err(self.untrusted("", "is owned by another user", advice));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(self.untrusted("", "is writable by other users", "run `chmod 700` on it"));
        }
        Ok(())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The file whose OS lock the coordinator holds for life.
    pub fn lock_path(&self) -> PathBuf {
        self.root.join("coordinator.lock")
    }

    /// What the coordinator remembers.
    pub fn state_path(&self) -> PathBuf {
        self.root.join("state.json")
    }

    /// Where the coordinator is.
    pub fn discovery_path(&self) -> PathBuf {
        self.root.join("discovery.json")
    }

    /// The folder of the log files.
    pub fn logs_path(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The folder of the user's configuration: the user's own for the state folder that is, else that itself.
    pub fn config_folder(&self) -> PathBuf {
        let is_own = folders::state().is_some_and(|own| own == self.root);
        folders::user_config().filter(|_| is_own).unwrap_or_else(|| self.root.clone())
    }

    /// The folder of the Unix sockets, see [`crate::socket`].
    pub fn sockets_path(&self) -> PathBuf {
        self.root.join("sockets")
    }

    /// The secret; made by whoever needs it first. When the whole folder was deleted, the one this process knew
    /// is written again, so that clients keep their tokens.
    pub fn secret(&self) -> Result<Secret, HomeError> {
        match self.read_secret()? {
            Some(secret) => Ok(secret),
            None => self.create_secret(),
        }
    }

    /// Whether the file with the secret is there and holds this one. One that cannot be read is taken for it.
    pub fn holds(&self, secret: &Secret) -> bool {
        let ours = secret.token(Role::Member);
        match self.read_secret() {
            Ok(Some(there)) => there.token(Role::Member).matches(ours.expose().as_bytes()),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Where the coordinator said it is; `None` when there is no such file, or none that can be believed.
    pub fn discovery(&self) -> Option<Discovery> {
        self.read_json("discovery.json").filter(is_plausible)
    }

    /// A coordinator that runs and waits for its port, when there is one.
    pub fn waiting(&self) -> Option<Waiting> {
        let waiting: Waiting = self.read_json("waiting.json")?;
        (waiting.port != 0 && is_running(waiting.pid, waiting.pid_start)).then_some(waiting)
    }

    /// See [`Home::waiting`].
    pub fn waiting_path(&self) -> PathBuf {
        self.root.join("waiting.json")
    }

    /// What the coordinator stored; the defaults when there is nothing that can be believed.
    pub fn stored_state(&self) -> StoredState {
        self.read_json("state.json").unwrap_or_default()
    }

    /// The whole of `state.json`, for the coordinator that owns it; `None` when there is none.
    pub fn read_state<T: for<'a> Deserialize<'a>>(&self) -> io::Result<Option<T>> {
        let bytes = self.read_own("state.json", MAX_FILE_LEN).map_err(io::Error::other)?;
        Ok(bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
    }

    /// The port on which the coordinator is expected: the stored one, else the one asked for, else the default.
    pub fn expected_port(&self, wanted: Option<u16>) -> u16 {
        self.known_port().or(wanted).unwrap_or(DEFAULT_PORT)
    }

    /// The port that clients have stored: as long as one of these is left, it does not change.
    pub fn known_port(&self) -> Option<u16> {
        self.stored_state().port.or_else(|| Some(self.discovery()?.port)).or_else(|| self.last_port())
    }

    /// Writes a file of the folder as a whole: a reader sees the old one or the new one, also after a crash.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        replace_file(&self.root.join(name), bytes)
    }

    /// Reads a file of the folder of at most so many bytes; `None` when it is not there.
    pub fn read(&self, name: &str, max_len: u64) -> io::Result<Option<Vec<u8>>> {
        self.read_own(name, max_len).map_err(io::Error::other)
    }

    /// Removes what writers of these files left behind when they were killed; for the one process that writes them.
    pub fn remove_leftovers(&self, names: &[&str]) {
        let is_leftover = |file: &str| {
            let is_of = |name: &&str| file.strip_prefix(*name).is_some_and(|rest| rest.starts_with('.'));
            file.ends_with(".tmp") && names.iter().any(is_of)
        };
        let Ok(entries) = std::fs::read_dir(&self.root) else { return };
        for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_leftover)) {
            // One that cannot be removed does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }

    /// Port of the last coordinator this process was connected to.
    pub(crate) fn last_port(&self) -> Option<u16> {
        self.memory().port
    }

    /// The coordinator says that it is there now.
    pub fn remember_port(&self, port: u16) {
        self.memory().port = Some(port);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }

    fn read_json<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Option<T> {
        let bytes = self.read_own(name, MAX_FILE_LEN).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    /// Reads a file that must be a plain one of ours; `None` when it is not there.
    fn read_own(&self, name: &str, max_len: u64) -> Result<Option<Vec<u8>>, HomeError> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(self.root.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Err(self.untrusted(name, "is a symbolic link", "remove it and try again"));
            }
            Err(source) => return Err(self.io_error(name, source)),
        };
        let metadata = file.metadata().map_err(|source| self.io_error(name, source))?;
        // None at all: it was replaced between our opening and our looking.
        if !metadata.is_file() || metadata.nlink() > 1 {
            return Err(self.untrusted(name, "is a link or not a regular file", "remove it and try again"));
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(self.untrusted(name, "is owned by another user", "remove it and try again"));
        }
        if metadata.mode() & 0o022 != 0 {
            let advice = "remove it, run `chmod 700` on the folder, and try again";
            return Err(self.untrusted(name, "is writable by other users", advice));
        }
        let mut bytes = Vec::new();
        file.take(max_len + 1).read_to_end(&mut bytes).map_err(|source| self.io_error(name, source))?;
        if bytes.len() as u64 > max_len {
            return Err(self.untrusted(name, "is too large", "remove it and try again"));
        }
        Ok(Some(bytes))
    }

    fn read_secret(&self) -> Result<Option<Secret>, HomeError> {
        let Some(bytes) = self.read_own("secret", KEY_LEN as u64)? else { return Ok(None) };
        let path = self.root.join("secret");
        let mode = std::fs::symlink_metadata(&path).map_err(|source| self.io_error("secret", source))?.mode();
        if mode & 0o077 != 0 {
            let advice = "others may have read it: remove it, and give your clients the new token";
            return Err(self.untrusted("secret", "is readable by other users", advice));
        }
        let bytes = <[u8; KEY_LEN]>::try_from(bytes).map_err(|_| {
            self.untrusted("secret", "is not 32 bytes long", "remove it, and give your clients the new token")
        })?;
        self.memory().secret = Some(bytes);
        Ok(Some(Secret::new(bytes)))
    }

    /// Two creators: the folder is locked, so that the second one finds the file of the first, and the file
    /// appears whole, so that nobody ever reads a part of it.
    fn create_secret(&self) -> Result<Secret, HomeError> {
        let io_error = |source| self.io_error("secret", source);
        let folder = File::open(&self.root).map_err(io_error)?;
        folder.lock().map_err(io_error)?;
        if let Some(secret) = self.read_secret()? {
            return Ok(secret);
        }
        // With the lock file still there, the secret alone was removed, and whoever did that wants another one.
        let remembered = self.memory().secret.filter(|_| !self.lock_path().exists());
        let bytes = match remembered {
            Some(bytes) => bytes,
            None => {
                let mut bytes = [0; KEY_LEN];
                getrandom::fill(&mut bytes).map_err(|error| io_error(error.into()))?;
                bytes
            }
        };
        self.replace("secret", &bytes).map_err(io_error)?;
        self.memory().secret = Some(bytes);
        Ok(Secret::new(bytes))
    }

    fn io_error(&self, name: &str, source: io::Error) -> HomeError {
        HomeError::Io { path: self.root.join(name), source }
    }

    fn untrusted(&self, name: &str, why: &'static str, advice: &'static str) -> HomeError {
        let path = if name.is_empty() { self.root.clone() } else { self.root.join(name) };
        HomeError::Untrusted { path, why, advice }
    }
}

/// Whether a coordinator can have written it: its texts go into lines for people and logs.
fn is_plausible(discovery: &Discovery) -> bool {
    let is_process = discovery.pid != 0 && i32::try_from(discovery.pid).is_ok();
    let is_word = |text: &str| {
        (1..=MAX_WORD_LEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let (oldest, newest) = discovery.protocol;
    is_process
        && discovery.port != 0
        && oldest <= newest
        && is_word(&discovery.instance.0)
        && is_word(&discovery.version)
}

/// A port that was stored; 0 is none, and must not become another one with every start.
pub fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let port = Option::<u16>::deserialize(deserializer)?;
    Ok(port.filter(|port| *port != 0))
}

/// 32 random hexadecimal digits: nonces, instance ids, names of temporary files.
pub fn random_hex() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use baton_proto::discovery::Role;

    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path().join("state/baton")).unwrap();
        (dir, home)
    }

    fn refusal(result: Result<Secret, HomeError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn folder_and_secret_are_made_for_us_alone() {
        let (_dir, home) = home();
        let first = home.secret().unwrap();
        let again = home.secret().unwrap();
        assert!(first.token(Role::Member).matches(again.token(Role::Member).expose().as_bytes()));
        for (path, mode) in [(home.path().parent().unwrap(), 0o700), (home.path(), 0o700)] {
            assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, mode);
        }
        assert_eq!(std::fs::metadata(home.path().join("secret")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_explained() {
        let told = |kind: ErrorKind| {
            let path = PathBuf::from("/state/secret");
            HomeError::Io { path, source: kind.into() }.explain().to_string()
        };
        let full = told(ErrorKind::StorageFull);
        assert!(full.starts_with("cannot use the state folder /state/secret: the disk is full"), "{full}");
        assert!(full.contains("free up space and try again"), "{full}");
        let read_only = told(ErrorKind::ReadOnlyFilesystem);
        assert!(
            read_only.contains(": the disk is read-only") && read_only.contains("set BATON_HOME"),
            "{read_only}"
        );
        let denied = told(ErrorKind::PermissionDenied);
        assert!(
            denied.contains(": access is denied") && denied.contains("check its permissions"),
            "{denied}"
        );
        let other = told(ErrorKind::NotADirectory);
        assert!(other.starts_with("cannot use the state folder /state/secret"), "{other}");
    }

    #[test]
    fn a_file_that_is_replaced_meanwhile_is_read() {
        let (_dir, home) = home();
        let state = home.path().join("state.json");
        let replace = || {
            std::fs::write(home.path().join("new"), r#"{"client_epoch":7}"#).unwrap();
            std::fs::rename(home.path().join("new"), &state).unwrap();
        };
        replace();
        std::thread::scope(|scope| {
            let replacing = scope.spawn(|| (0..2_000).for_each(|_| replace()));
            while !replacing.is_finished() {
                assert_eq!(home.stored_state().client_epoch, 7);
            }
        });
    }

    #[test]
    fn many_creators_agree_on_one_secret() {
        let (_dir, home) = home();
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let home = home.clone();
                std::thread::spawn(move || home.secret().unwrap().token(Role::Member).expose().to_owned())
            })
            .collect();
        let tokens: std::collections::BTreeSet<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert_eq!(tokens.len(), 1);
    }

    #[test]
    fn a_deleted_folder_gets_its_secret_back_a_deleted_secret_does_not() {
        let (_dir, home) = home();
        let token = |home: &Home| home.secret().unwrap().token(Role::Member).expose().to_owned();
        let first = token(&home);
        std::fs::remove_dir_all(home.path()).unwrap();
        Home::open(home.path()).unwrap();
        assert_eq!(token(&home), first);
        std::fs::write(home.lock_path(), "").unwrap();
        std::fs::remove_file(home.path().join("secret")).unwrap();
        assert_ne!(token(&home), first);
    }

    #[test]
    fn a_folder_that_others_write_to_or_that_is_a_link_is_refused() {
        let (dir, home) = home();
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Home::open(home.path()).unwrap_err().to_string().contains("is writable by other users"));
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o700)).unwrap();

        let link = dir.path().join("link");
        std::os::unix::fs::symlink(home.path(), &link).unwrap();
        assert!(Home::open(&link).unwrap_err().to_string().contains("is not a folder"));
    }

    #[test]
    fn a_planted_secret_is_refused() {
        let (dir, home) = home();
        let secret = home.path().join("secret");
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, [7; 32]).unwrap();
        std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o600)).unwrap();

        std::os::unix::fs::symlink(&elsewhere, &secret).unwrap();
        assert!(refusal(home.secret()).contains("is a symbolic link"));
        std::fs::remove_file(&secret).unwrap();

        std::fs::hard_link(&elsewhere, &secret).unwrap();
        assert!(refusal(home.secret()).contains("is a link"));
        std::fs::remove_file(&secret).unwrap();

        std::fs::copy(&elsewhere, &secret).unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(refusal(home.secret()).contains("is readable by other users"));
        std::fs::remove_file(&secret).unwrap();

        for len in [0, 31, 33] {
            write_new(&secret, &vec![1; len]).unwrap();
            assert!(home.secret().is_err(), "{len} bytes");
            std::fs::remove_file(&secret).unwrap();
        }
        std::fs::create_dir(&secret).unwrap();
        assert!(home.secret().is_err());
    }

    #[test]
    fn leftovers_of_killed_writers_are_removed() {
        let (_dir, home) = home();
        let names = ["state.json.1f.tmp", "secret.1f.tmp", "state.json.broken", "state.json"];
        for name in names {
            write_new(&home.path().join(name), b"").unwrap();
        }
        home.remove_leftovers(&["state.json", "discovery.json"]);
        let left = names.map(|name| home.path().join(name).exists());
        assert_eq!(left, [false, true, true, true], "another process may be writing the secret");
    }

    #[test]
    fn a_discovery_file_that_cannot_be_believed_is_ignored() {
        let (_dir, home) = home();
        assert_eq!(home.discovery(), None);
        let huge = format!("{}{{}}", " ".repeat(MAX_FILE_LEN as usize));
        for text in ["", "{", "null", "[]", "{\"pid\":1}", "\0\0\0", huge.as_str()] {
            home.replace("discovery.json", text.as_bytes()).unwrap();
            assert_eq!(home.discovery(), None, "{}", text.len());
        }
        let good = r#"{"instance":"i","pid":1,"pid_start":2,"generation":3,"port":7717,"version":"0","protocol":[1,1]}"#;
        home.replace("discovery.json", good.as_bytes()).unwrap();
        assert_eq!(home.discovery().unwrap().generation, 3);
        for (part, other) in [
            (":7717", ":0"),
            ("[1,1]", "[2,1]"),
            ("\"pid\":1", "\"pid\":0"),
            ("\"pid\":1", "\"pid\":4294967295"),
            ("\"0\"", "\"0\\nWARN all is lost\""),
            ("\"i\"", "\"\""),
        ] {
            home.replace("discovery.json", good.replace(part, other).as_bytes()).unwrap();
            assert_eq!(home.discovery(), None, "{other}");
        }
    }

    #[test]
    fn port_0_is_no_port_that_was_chosen() {
        let (_dir, home) = home();
        home.replace("state.json", br#"{"port":0,"stopped":true}"#).unwrap();
        assert_eq!((home.stored_state().stopped, home.expected_port(None)), (true, DEFAULT_PORT));
    }
}
