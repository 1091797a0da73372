//! Changes in the window's folders, in order: what was written before a call is known before the call goes on.
//!
//! Folders are watched one by one, so that what tools have made costs nothing. A call makes sure that it has seen
//! everything by a file of its own in a watched folder: when the change of that file arrives, so has all before it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ignore::DirEntry;
use notify::event::{ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, oneshot};
use tracing::{debug, warn};

use super::server::{ChangeKind, FileChange};
use crate::walk::{walk, walk_ignored_too};

/// Folders that are watched; inotify's usual limit is several times as high, and others need some too.
const MAX_WATCHED: usize = 20_000;
/// Folders that `.gitignore` names and that are watched nevertheless; what a build leaves behind has more.
const MAX_IGNORED: usize = 2_000;
/// How long the kernel may take to tell of a change.
const BARRIER_LIMIT: Duration = Duration::from_secs(1);
/// Files change while the folders are walked; so much is looked back.
const LOOK_BACK: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    changes: BTreeMap<PathBuf, ChangeKind>,
    /// The files that there are, as far as is known: a file that is moved onto one of them changes it.
    files: BTreeSet<PathBuf>,
    new_folders: Vec<PathBuf>,
    barriers: HashMap<PathBuf, oneshot::Sender<()>>,
    /// The kernel dropped changes.
    is_torn: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Arc<Notify>,
}

impl State {
    fn note(&mut self, path: PathBuf, kind: ChangeKind) {
        let is_known = self.files.contains(&path);
        match kind {
            ChangeKind::Deleted => {
                // Of a folder that is moved away nothing more is told than that.
                let inside = self.files.range(path.clone()..).skip_while(|file| **file == path);
                let inside: Vec<PathBuf> =
                    inside.take_while(|file| file.starts_with(&path)).cloned().collect();
                for file in inside {
                    self.files.remove(&file);
                    merge(&mut self.changes, file, kind);
                }
                self.files.remove(&path);
                merge(&mut self.changes, path, kind);
            }
            ChangeKind::Created if is_known => merge(&mut self.changes, path, ChangeKind::Changed),
            _ => {
                self.files.insert(path.clone());
                merge(&mut self.changes, path, kind);
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub struct Watch {
    shared: Arc<Shared>,
    watcher: Mutex<RecommendedWatcher>,
    barriers: PathBuf,
    last_barrier: AtomicU64,
    folders: Vec<PathBuf>,
    /// Not everything is watched, so everything is looked at before each call.
    scan: Option<Mutex<SystemTime>>,
}

impl Watch {
    /// Watches folders. Takes as long as walking them; files changed since `since` are told first.
    pub fn open(folders: &[PathBuf], since: SystemTime) -> notify::Result<Self> {
        let shared = Arc::new(Shared::default());
        let barriers = std::env::temp_dir().join(format!("baton-watch-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&barriers)?;
        let (handler_shared, handler_barriers) = (shared.clone(), barriers.clone());
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| match event {
            Ok(event) => on_event(&handler_shared, &handler_barriers, event),
            Err(error) => {
                debug!(%error, "watching failed");
                handler_shared.state().is_torn = true;
            }
        })?;
        watcher.watch(&barriers, RecursiveMode::NonRecursive)?;
        let mut watch = Self {
            shared,
            watcher: Mutex::new(watcher),
            barriers,
            last_barrier: AtomicU64::new(0),
            folders: folders.to_vec(),
            scan: None,
        };
        let is_whole = watch.walk(folders, since - LOOK_BACK);
        // What is younger than that may be new or not; a server that reads the folders now knows it either way.
        for kind in watch.shared.state().changes.values_mut() {
            if *kind == ChangeKind::Created {
                *kind = ChangeKind::Changed;
            }
        }
        if !is_whole {
            warn!("not all folders can be watched; they are looked through before each call");
            watch.scan = Some(Mutex::new(SystemTime::now() - LOOK_BACK));
        }
        Ok(watch)
    }

    /// Watches all folders below, and notes files that are new or changed since. False when some are not watched.
    fn walk(&self, folders: &[PathBuf], since: SystemTime) -> bool {
        let (mut watched, mut is_whole) = (HashSet::new(), true);
        for entry in walk(folders, &self.folders) {
            if is_folder(&entry) {
                let is_watched = watched.len() < MAX_WATCHED && self.watch(entry.path());
                is_whole &= is_watched || !entry.path().exists();
                watched.insert(entry.into_path());
            } else {
                self.note_if_young(entry, since);
            }
        }
        // Sources can be made, too, and others use them.
        let mut n_ignored = 0;
        for entry in walk_ignored_too(folders, &self.folders) {
            if !is_folder(&entry) {
                self.note_if_young(entry, since);
            } else if !watched.contains(entry.path()) {
                n_ignored += 1;
                if n_ignored > MAX_IGNORED || !self.watch(entry.path()) {
                    break;
                }
            }
        }
        is_whole
    }

    fn watch(&self, folder: &Path) -> bool {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()
    }

    fn note_if_young(&self, file: DirEntry, since: SystemTime) {
        let is_young = |metadata: std::fs::Metadata| metadata.modified().is_ok_and(|at| at >= since);
        let is_young = file.metadata().is_ok_and(is_young);
        let mut state = self.shared.state();
        if is_young {
            state.note(file.into_path(), ChangeKind::Created);
        } else {
            state.files.insert(file.into_path());
        }
    }

    /// Everything that changed, up to now. Blocks as long as the kernel takes, some 0.2 ms.
    pub async fn changes(self: &Arc<Self>) -> Vec<FileChange> {
        if !self.barrier().await {
            warn!("the kernel does not tell of changes in time");
            self.shared.state().is_torn = true;
        }
        let (new_folders, is_torn) = {
            let mut state = self.shared.state();
            (std::mem::take(&mut state.new_folders), std::mem::take(&mut state.is_torn))
        };
        if is_torn || !new_folders.is_empty() || self.scan.is_some() {
            let watch = self.clone();
            let _ = tokio::task::spawn_blocking(move || watch.look(&new_folders, is_torn)).await;
        }
        std::mem::take(&mut self.shared.state().changes).into_iter().collect()
    }

    fn look(&self, new_folders: &[PathBuf], is_torn: bool) {
        // What is in a new folder came before the folder was watched.
        self.walk(new_folders, SystemTime::UNIX_EPOCH);
        let since = match &self.scan {
            _ if is_torn => SystemTime::UNIX_EPOCH,
            None => return,
            Some(last) => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::replace(&mut *last, SystemTime::now() - LOOK_BACK)
            }
        };
        self.walk(&self.folders, since);
        let known = self.shared.state().files.clone();
        for gone in known.into_iter().filter(|file| !file.exists()) {
            self.shared.state().note(gone, ChangeKind::Deleted);
        }
    }

    /// Is notified when something changed, and when this watch ends.
    pub fn changed(&self) -> Arc<Notify> {
        self.shared.changed.clone()
    }

    async fn barrier(&self) -> bool {
        let number = self.last_barrier.fetch_add(1, Ordering::Relaxed);
        let path = self.barriers.join(number.to_string());
        let (passed, wait) = oneshot::channel();
        self.shared.state().barriers.insert(path.clone(), passed);
        let is_made = std::fs::write(&path, b"").is_ok();
        let is_passed = is_made && matches!(tokio::time::timeout(BARRIER_LIMIT, wait).await, Ok(Ok(())));
        let _ = std::fs::remove_file(&path);
        self.shared.state().barriers.remove(&path);
        is_passed
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.barriers);
        self.shared.changed.notify_one();
    }
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn on_event(shared: &Shared, barriers: &Path, event: Event) {
    let mut state = shared.state();
    if event.need_rescan() {
        state.is_torn = true;
    }
    let kind = match event.kind {
        EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => ChangeKind::Created,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => ChangeKind::Deleted,
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Any) => ChangeKind::Changed,
        _ => return,
    };
    for path in event.paths {
        if path.starts_with(barriers) {
            if kind == ChangeKind::Created
                && let Some(passed) = state.barriers.remove(&path)
            {
                let _ = passed.send(());
            }
            continue;
        }
        if kind == ChangeKind::Created && path.is_dir() {
            state.new_folders.push(path.clone());
        }
        state.note(path, kind);
        shared.changed.notify_one();
    }
}

fn merge(changes: &mut BTreeMap<PathBuf, ChangeKind>, path: PathBuf, kind: ChangeKind) {
    changes
        .entry(path)
        .and_modify(|known| {
            *known = match (*known, kind) {
                (ChangeKind::Created, ChangeKind::Changed) => ChangeKind::Created,
                (ChangeKind::Deleted, ChangeKind::Created) => ChangeKind::Changed,
                (_, kind) => kind,
            };
        })
        .or_insert(kind);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path, changes: Vec<FileChange>) -> Vec<String> {
        let shown = changes
            .into_iter()
            .map(|(path, kind)| format!("{kind:?} {}", path.strip_prefix(folder).unwrap().display()));
        shown.collect()
    }

    #[tokio::test]
    async fn what_was_written_before_is_known_after() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("node_modules/x")).unwrap();
        std::fs::create_dir_all(root.join("out")).unwrap();
        std::fs::create_dir_all(root.join("target/debug")).unwrap();
        std::fs::write(root.join("target/CACHEDIR.TAG"), "").unwrap();
        std::fs::write(root.join(".gitignore"), "out\n").unwrap();
        std::fs::write(root.join("a.py"), "").unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        let watch = Arc::new(Watch::open(std::slice::from_ref(&root), later).unwrap());
        assert_eq!(watch.changes().await, []);
        std::fs::write(root.join("a.py"), "1").unwrap();
        std::fs::write(root.join("node_modules/x/y.js"), "").unwrap();
        std::fs::write(root.join("out/z.py"), "").unwrap();
        std::fs::write(root.join("target/debug/made.rs"), "").unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Changed a.py", "Created out/z.py"]);
        std::fs::create_dir_all(root.join("new/inner")).unwrap();
        std::fs::write(root.join("new/inner/b.py"), "").unwrap();
        std::fs::rename(root.join("a.py"), root.join("c.py")).unwrap();
        let changes = names(&root, watch.changes().await);
        assert_eq!(changes, ["Deleted a.py", "Created c.py", "Created new", "Created new/inner/b.py"]);
        std::fs::write(root.join("new/inner/b.py"), "2").unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Changed new/inner/b.py"], "it is watched, too");
        std::fs::write(root.join("c.py.new"), "3").unwrap();
        std::fs::rename(root.join("c.py.new"), root.join("c.py")).unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Changed c.py", "Deleted c.py.new"], "it was there");
        std::fs::rename(root.join("new"), folder.path().join("node_modules/away")).unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Deleted new", "Deleted new/inner/b.py"]);
        std::fs::remove_file(root.join("c.py")).unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Deleted c.py"]);
        std::fs::rename(root.join("node_modules/away"), root.join("new")).unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Created new", "Created new/inner/b.py"]);
        std::fs::remove_file(root.join("new/inner/b.py")).unwrap();
        watch.shared.state().changes.clear();
        watch.shared.state().files.insert(root.join("gone.py"));
        watch.shared.state().is_torn = true;
        let changes = names(&root, watch.changes().await);
        assert!(changes.contains(&"Deleted gone.py".to_owned()), "{changes:?}");
    }

    #[tokio::test]
    async fn what_changed_before_it_was_watched_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("a.py"), "").unwrap();
        let watch = Arc::new(Watch::open(std::slice::from_ref(&root), SystemTime::now()).unwrap());
        assert_eq!(names(&root, watch.changes().await), ["Changed a.py"]);
    }
}
