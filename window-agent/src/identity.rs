//! The id of an editor's window, and what the user wants of this window alone: a file in the workspace's storage,
//! claimed by one extension host at a time.
//!
//! A reload finds the id of the host that has gone; an agent that is started again finds the one of its own host. A
//! second window on the same folder finds the id held by a host that lives, and gets one of its own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use baton_link::process;
use baton_proto::ids::WindowId;
use parking_lot::Mutex;
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
    /// Who claimed it.
    host: Holder,
    auto_start: Mutex<Option<bool>>,
}

/// What stands in the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    host: Holder,
    /// The user's wish; without one the setting counts.
    #[serde(default, rename = "autoStart", skip_serializing_if = "Option::is_none")]
    auto_start: Option<bool>,
}

/// The extension host that has the id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// Absent when it has gone.
    #[serde(default)]
    pid: Option<u32>,
    /// When it started: after a reboot another process can have its pid. Earlier versions did not write it.
    #[serde(default, rename = "pidStart", skip_serializing_if = "Option::is_none")]
    pid_start: Option<u64>,
}

impl Holder {
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid: Some(pid), pid_start: process::start_time(pid) }
    }

    /// One that we may not signal is alive, too.
    pub(crate) fn is_alive(self) -> bool {
        match self {
            Self { pid: None, .. } => false,
            Self { pid: Some(pid), pid_start: Some(start) } => process::is_running(pid, start),
            Self { pid: Some(pid), pid_start: None } => {
                let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
                pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
            }
        }
    }

    fn is(self, other: Self) -> bool {
        let is_start = self.pid_start.zip(other.pid_start).is_none_or(|(one, other)| one == other);
        self.pid == other.pid && is_start
    }
}

impl Identity {
    /// A window whose id is known already.
    pub fn given(id: WindowId) -> Self {
        Self { id, file: None, host: Holder::default(), auto_start: Mutex::default() }
    }

    /// The id that this host has, or that nobody has any more, or a new one.
    pub fn claim(folder: &Path, host: u32) -> Self {
        let host = Holder::of(host);
        let _ = fs::create_dir_all(folder);
        let _lock = lock(folder);
        let mut free: Vec<(bool, SystemTime, WindowId)> = files(folder)
            .filter_map(|(id, used)| {
                let holder = read(&folder.join(id.as_str())).unwrap_or_default().host;
                let is_own = holder.is(host);
                (is_own || !holder.is_alive()).then_some((is_own, used, id))
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
        let kept = Kept { host, ..read(&file).unwrap_or_default() };
        write(&file, &kept);
        Self { id, file: Some(file), host, auto_start: Mutex::new(kept.auto_start) }
    }

    /// The user's wish for this window alone.
    pub fn auto_start(&self) -> Option<bool> {
        *self.auto_start.lock()
    }

    /// See [`Identity::auto_start`].
    pub fn set_auto_start(&self, wish: Option<bool>) {
        *self.auto_start.lock() = wish;
        self.change(|kept| kept.auto_start = wish);
    }

    /// Lets the next extension host of this window have the id.
    pub fn release(&self) {
        self.change(|kept| kept.host = Holder::default());
    }

    /// Leaves alone what another host has claimed meanwhile.
    fn change(&self, change: impl FnOnce(&mut Kept)) {
        let Some(file) = &self.file else { return };
        let _lock = file.parent().and_then(lock);
        let mut kept = read(file).unwrap_or_else(|| Kept { host: self.host, auto_start: self.auto_start() });
        if kept.host.is(self.host) {
            change(&mut kept);
            write(file, &kept);
        }
    }
}

/// One at a time: two windows on one folder may open at the same moment. It ends with the file's handle.
fn lock(folder: &Path) -> Option<fs::File> {
    let folder = fs::File::open(folder).ok()?;
    flock(&folder, FlockOperation::LockExclusive).ok()?;
    Some(folder)
}

fn fresh() -> WindowId {
    WindowId::try_from(Uuid::new_v4().to_string()).expect("invariant: a UUID is made of characters of an id")
}

/// Whole or not at all.
fn write(file: &Path, kept: &Kept) {
    let temporary = file.with_extension("new");
    let written = serde_json::to_vec(kept).map_err(std::io::Error::from).and_then(|text| {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?.write_all(&text)?;
        fs::rename(&temporary, file)
    });
    if let Err(error) = written {
        // Until the window ends nothing is lost.
        tracing::warn!(%error, "the window's id cannot be kept");
    }
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
fn read(file: &Path) -> Option<Kept> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
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
    fn what_another_host_has_claimed_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (host, other, dead) = hosts();
        let killed = Identity::claim(folder.path(), dead);
        let next = Identity::claim(folder.path(), host);
        assert_eq!(next.id, killed.id);
        // Its agent lives a moment longer than the host that was killed.
        killed.set_auto_start(Some(false));
        killed.release();
        assert_ne!(Identity::claim(folder.path(), other).id, next.id);
        assert_eq!(Identity::claim(folder.path(), host).auto_start(), None);
        assert_eq!(Identity::claim(folder.path(), host).id, next.id);
    }

    #[test]
    fn a_process_that_got_the_pid_of_a_host_is_not_that_host() {
        let (host, other, _) = hosts();
        let claim = |start: Option<u64>| {
            let folder = tempfile::tempdir().unwrap();
            let id = Uuid::new_v4().to_string();
            let kept = serde_json::json!({"pid": other, "pidStart": start, "autoStart": false});
            fs::write(folder.path().join(&id), kept.to_string()).unwrap();
            let claimed = Identity::claim(folder.path(), host);
            (claimed.id.as_str() == id, claimed.auto_start())
        };
        let start = process::start_time(other).unwrap();
        assert_eq!(claim(Some(start)), (false, None));
        assert_eq!(claim(Some(start + 1)), (true, Some(false)), "it was before the reboot");
        assert_eq!(claim(None), (false, None), "an earlier version wrote it");
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
