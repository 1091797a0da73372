//! The id of an editor's window, and what the user wants of this window alone: a file in the workspace's storage,
//! claimed by one extension host at a time.
//!
//! A reload finds the id of the host that has gone; an agent that is started again finds the one of its own host. A
//! second window on the same folder finds the id held by a host that lives, and gets one of its own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use baton_proto::ids::WindowId;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Windows of one workspace whose ids are kept; older ones are forgotten.
const MAX_KEPT: usize = 16;

/// The claim of one window.
#[derive(Debug)]
pub struct Identity {
    /// The window's id.
    pub id: WindowId,
    /// None without storage: then the window is a new one after a reload.
    file: Option<PathBuf>,
    kept: Mutex<Kept>,
}

/// What stands in the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// The extension host that has the id; absent when it has gone.
    #[serde(default)]
    pid: Option<u32>,
    /// The user's wish; without one the setting counts.
    #[serde(default, rename = "autoStart", skip_serializing_if = "Option::is_none")]
    auto_start: Option<bool>,
}

impl Identity {
    /// A window whose id is known already.
    pub fn given(id: WindowId) -> Self {
        Self { id, file: None, kept: Mutex::default() }
    }

    /// The id that this host has, or that nobody has any more, or a new one.
    pub fn claim(folder: &Path, host: u32) -> Self {
        let _ = fs::create_dir_all(folder);
        // One claim at a time: two windows on one folder may open at the same moment. It ends with the file's handle.
        let lock = fs::File::open(folder).ok();
        let _ = lock.as_ref().map(|lock| flock(lock, FlockOperation::LockExclusive));
        let mut free: Vec<(bool, SystemTime, WindowId)> = files(folder)
            .filter_map(|(id, used)| {
                let holder = read(&folder.join(id.as_str())).pid;
                let is_own = holder == Some(host);
                (is_own || !holder.is_some_and(is_alive)).then_some((is_own, used, id))
            })
            .collect();
        // This host's own comes first, then the one that was used last.
        free.sort_by_key(|(is_own, used, _)| std::cmp::Reverse((*is_own, *used)));
        for (_, _, stale) in free.iter().skip(MAX_KEPT) {
            let _ = fs::remove_file(folder.join(stale.as_str()));
        }
        let id = free.into_iter().next().map(|(_, _, id)| id);
        let id = id.unwrap_or_else(fresh);
        let file = folder.join(id.as_str());
        let kept = Kept { pid: Some(host), ..read(&file) };
        let identity = Self { id, file: Some(file), kept: Mutex::new(kept) };
        identity.change(|_| {});
        identity
    }

    /// The user's wish for this window alone.
    pub fn auto_start(&self) -> Option<bool> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).auto_start
    }

    /// See [`Identity::auto_start`].
    pub fn set_auto_start(&self, wish: Option<bool>) {
        self.change(|kept| kept.auto_start = wish);
    }

    /// Lets the next extension host of this window have the id.
    pub fn release(&self) {
        self.change(|kept| kept.pid = None);
    }

    fn change(&self, change: impl FnOnce(&mut Kept)) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut kept);
        let Some(file) = &self.file else { return };
        let written = serde_json::to_vec(&*kept).map_err(Into::into).and_then(|text| write(file, &text));
        if let Err(error) = written {
            // Until the window ends nothing is lost.
            tracing::warn!(%error, "the window's id cannot be kept");
        }
    }
}

fn fresh() -> WindowId {
    WindowId::try_from(Uuid::new_v4().to_string()).expect("invariant: a UUID is made of characters of an id")
}

fn write(file: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(file)?.write_all(text)
}

/// Ids that are kept, and when each was used last.
fn files(folder: &Path) -> impl Iterator<Item = (WindowId, SystemTime)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Uuid::parse_str(&name).ok()?;
        let used = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
        Some((WindowId::try_from(name).ok()?, used))
    })
}

/// What cannot be read is nobody's.
fn read(file: &Path) -> Kept {
    fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// One that we may not signal is alive, too.
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts that live: this process and the one that started it. And one that cannot.
    fn hosts() -> (u32, u32, u32) {
        (std::process::id(), std::os::unix::process::parent_id(), i32::MAX as u32)
    }

    #[test]
    fn a_host_keeps_its_id_and_another_one_gets_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second, _) = hosts();
        let one = Identity::claim(folder.path(), first);
        assert_eq!(Identity::claim(folder.path(), first).id, one.id, "the agent was started again");
        let two = Identity::claim(folder.path(), second);
        assert_ne!(two.id, one.id);
        one.release();
        two.release();
        // Files know when they were written to some milliseconds only.
        let earlier = SystemTime::now() - std::time::Duration::from_secs(10);
        let file = fs::File::options().write(true).open(folder.path().join(one.id.as_str())).unwrap();
        file.set_modified(earlier).unwrap();
        assert_eq!(Identity::claim(folder.path(), first).id, two.id, "the one that was used last");
        assert_eq!(Identity::claim(folder.path(), second).id, one.id);
    }

    #[test]
    fn two_hosts_at_once_never_get_one_id() {
        let (first, second, _) = hosts();
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(Uuid::new_v4().to_string()), "free").unwrap();
            let claim = |host| Identity::claim(folder.path(), host).id;
            let (one, two) = std::thread::scope(|scope| {
                let one = scope.spawn(|| claim(first));
                (claim(second), one.join().unwrap())
            });
            assert_ne!(one, two);
        }
    }

    #[test]
    fn a_host_that_was_killed_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (host, _, dead) = hosts();
        let killed = Identity::claim(folder.path(), dead);
        killed.set_auto_start(Some(false));
        let next = Identity::claim(folder.path(), host);
        assert_eq!((&next.id, next.auto_start()), (&killed.id, Some(false)));
        next.set_auto_start(None);
        assert_eq!(Identity::claim(folder.path(), host).auto_start(), None);
    }

    #[test]
    fn old_ids_are_forgotten_and_strange_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for n in 0..MAX_KEPT + 4 {
            fs::write(at(&Uuid::from_u128(n as u128).to_string()), "nonsense").unwrap();
        }
        fs::write(at("notes.txt"), "mine").unwrap();
        Identity::claim(folder.path(), hosts().0);
        assert_eq!(files(folder.path()).count(), MAX_KEPT);
        assert!(at("notes.txt").exists());
    }

    #[test]
    fn without_storage_there_is_an_id_all_the_same() {
        let folder = tempfile::NamedTempFile::new().unwrap();
        let one = Identity::claim(folder.path(), hosts().0);
        assert_ne!(one.id, Identity::claim(folder.path(), hosts().0).id);
    }
}
