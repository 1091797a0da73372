//! Changes in the window's folders, in order: what was written before a call is known before the call goes on.
//!
//! Folders are watched one by one, so that what tools have made costs nothing. A call makes sure that it has seen
//! everything by a file of its own in a watched folder: when the change of that file arrives, so has all before it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use baton_link::scratch;
use ignore::DirEntry;
use notify::event::{ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tracing::{debug, warn};

use super::journal::is_stage;
use super::types::{ChangeKind, FileChange};
use baton_agent_base::trees::{Trees, Whose};
use baton_agent_base::walk::{is_made, walk, walk_hidden_too, walk_ignored_too};

/// Folders that are watched; inotify's usual limit is several times as high, and others need some too.
const MAX_WATCHED: usize = 20_000;
/// Folders that are hidden, or that `.gitignore` names, and that are watched nevertheless; what a build leaves behind
/// has more.
const MAX_MORE: usize = 2_000;
/// How long the kernel may take to tell of a change.
const BARRIER_LIMIT: Duration = Duration::from_secs(1);
/// Files change while the folders are walked; so much is looked back.
const LOOK_BACK: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    changes: BTreeMap<PathBuf, ChangeKind>,
    /// The files that there are, as far as is known, as they were last seen: a file that is moved onto one of them
    /// changes it.
    files: BTreeMap<PathBuf, Seen>,
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

/// Last change and length.
type Seen = Option<(SystemTime, u64)>;

fn seen(metadata: std::io::Result<std::fs::Metadata>) -> Seen {
    let metadata = metadata.ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl State {
    fn note(&mut self, path: PathBuf, kind: ChangeKind) {
        let is_known = self.files.contains_key(&path);
        // When two files change places, that each of them went may be told last.
        let is_back = kind == ChangeKind::Deleted && path.is_file();
        match if is_back { ChangeKind::Changed } else { kind } {
            ChangeKind::Deleted => {
                // Of a folder that is moved away nothing more is told than that.
                let inside = self.files.range(path.clone()..).map(|(file, _)| file);
                let inside = inside.take_while(|file| file.starts_with(&path)).filter(|file| **file != path);
                let inside: Vec<PathBuf> = inside.cloned().collect();
                for file in inside {
                    self.files.remove(&file);
                    merge(&mut self.changes, file, kind);
                }
                self.files.remove(&path);
                merge(&mut self.changes, path, kind);
            }
            ChangeKind::Created | ChangeKind::Changed => {
                let now = std::fs::metadata(&path);
                // A folder is none of the files, but the start of their names.
                if !now.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
                    self.files.insert(path.clone(), seen(now));
                }
                let kind = if is_known || is_back { ChangeKind::Changed } else { kind };
                merge(&mut self.changes, path, kind);
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
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
    is_partial: AtomicBool,
}

impl Watch {
    /// Watches folders. Takes as long as walking them; files changed since `since` are told first.
    pub fn open(folders: &[PathBuf], since: SystemTime) -> notify::Result<Self> {
        let shared = Arc::new(Shared::default());
        let barriers = scratch::folder()?.join(format!("watch-{}", scratch::unique()));
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
        let watch = Self {
            shared,
            watcher: Mutex::new(watcher),
            barriers,
            last_barrier: AtomicU64::new(0),
            folders: folders.to_vec(),
            is_partial: AtomicBool::new(false),
        };
        watch.walk(folders, Some(since - LOOK_BACK));
        Ok(watch)
    }

    /// Watches all folders below, and notes files that are new or changed; the first time those that changed since.
    fn walk(&self, folders: &[PathBuf], since: Option<SystemTime>) {
        let mut watched = HashSet::new();
        for entry in walk(folders, &self.folders) {
            if is_folder(&entry) {
                let is_watched = watched.len() < MAX_WATCHED && self.watch(entry.path());
                if !is_watched && entry.path().exists() && !self.is_partial.swap(true, Ordering::Relaxed) {
                    warn!("not all folders can be watched; they are looked through before each call");
                }
                watched.insert(entry.into_path());
            } else {
                self.note_if_changed(entry, since);
            }
        }
        // Some servers take what is hidden for sources; and sources can be made, too, and others use them.
        self.watch_some(walk_hidden_too(folders, &self.folders), &watched, since);
        self.watch_some(walk_ignored_too(folders, &self.folders), &watched, since);
    }

    /// Watches further folders, but not too many of them.
    fn watch_some(
        &self,
        entries: impl Iterator<Item = DirEntry>,
        watched: &HashSet<PathBuf>,
        since: Option<SystemTime>,
    ) {
        let mut n_more = 0;
        for entry in entries {
            if !is_folder(&entry) {
                self.note_if_changed(entry, since);
            } else if !watched.contains(entry.path()) {
                n_more += 1;
                if n_more > MAX_MORE || !self.watch(entry.path()) {
                    break;
                }
            }
        }
    }

    fn watch(&self, folder: &Path) -> bool {
        let mut watcher = self.watcher.lock();
        watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()
    }

    fn note_if_changed(&self, file: DirEntry, since: Option<SystemTime>) {
        let now = seen(file.metadata().map_err(std::io::Error::other));
        let mut state = self.shared.state();
        let before = state.files.insert(file.path().to_owned(), now);
        let kind = match (before, since) {
            (Some(before), _) if before == now => return,
            (Some(_), _) => ChangeKind::Changed,
            (None, None) => ChangeKind::Created,
            // It may be new or not; a server that reads the folders now knows it either way.
            (None, Some(since)) if now.is_some_and(|(modified, _)| modified >= since) => ChangeKind::Changed,
            (None, Some(_)) => return,
        };
        merge(&mut state.changes, file.into_path(), kind);
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
        let looks_everywhere = is_torn || self.is_partial.load(Ordering::Relaxed);
        if looks_everywhere || !new_folders.is_empty() {
            let watch = self.clone();
            let _ = tokio::task::spawn_blocking(move || watch.look(&new_folders, looks_everywhere)).await;
        }
        let changes = std::mem::take(&mut self.shared.state().changes);
        // A folder may have become the top of another tree since it is watched.
        let mut trees = Trees::new(self.folders.iter().cloned());
        let mut is_ours = |path: &Path| !matches!(trees.whose(path), Whose::Other(_));
        let changes = changes.into_iter().filter(move |(path, _)| is_ours(path));
        // A folder that went and came back is no loss: servers told so forget what is in it.
        changes.filter(|(path, kind)| *kind != ChangeKind::Deleted || !path.is_dir()).collect()
    }

    /// Whether all changes of a file are told.
    pub fn has(&self, file: &Path) -> bool {
        self.shared.state().files.contains_key(file)
    }

    /// Whether a file is as it was told last.
    pub fn has_told(&self, file: &Path) -> bool {
        let now = seen(std::fs::metadata(file));
        let state = self.shared.state();
        state.files.get(file) == Some(&now) && !state.changes.contains_key(file)
    }

    fn look(&self, new_folders: &[PathBuf], everywhere: bool) {
        // What is in a new folder came before the folder was watched. One that a tool has made is none of ours.
        let mut trees = Trees::new(self.folders.iter().cloned());
        let is_ours = |folder: &&PathBuf| !is_made(folder) && !matches!(trees.whose(folder), Whose::Other(_));
        let new: Vec<PathBuf> = new_folders.iter().filter(is_ours).cloned().collect();
        self.walk(&new, None);
        if !everywhere {
            return;
        }
        self.walk(&self.folders, None);
        let known: Vec<PathBuf> = self.shared.state().files.keys().cloned().collect();
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
        // A change under way keeps its texts there.
        if is_stage(&path) {
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
        std::fs::create_dir(root.join(".git")).unwrap();
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
        // Two files change places, and the second one goes.
        for (one, other) in [("c.py", "c.py.new"), ("c.py.new", "c.py")] {
            std::fs::write(root.join("c.py.new"), "4").unwrap();
            let (one, other) = (root.join(one), root.join(other));
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, flags).unwrap();
            std::fs::remove_file(root.join("c.py.new")).unwrap();
            assert_eq!(names(&root, watch.changes().await), ["Changed c.py", "Deleted c.py.new"]);
            assert!(watch.has(&root.join("c.py")));
        }
        std::fs::rename(root.join("new"), folder.path().join("node_modules/away")).unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Deleted new", "Deleted new/inner/b.py"]);
        std::fs::remove_file(root.join("c.py")).unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Deleted c.py"]);
        std::fs::rename(root.join("node_modules/away"), root.join("new")).unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Created new", "Created new/inner/b.py"]);
        watch.shared.state().files.insert(root.join("gone.py"), None);
        watch.shared.state().is_torn = true;
        let changes = names(&root, watch.changes().await);
        assert_eq!(changes, ["Deleted gone.py"], "what is as it was is not told");
        std::fs::create_dir_all(root.join("more/node_modules/y")).unwrap();
        std::fs::create_dir(root.join(".hidden")).unwrap();
        std::fs::write(root.join("more/node_modules/y/z.js"), "").unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Created .hidden", "Created more"]);
        // Servers read what is hidden, too, and what is in it.
        std::fs::write(root.join(".hidden/x.py"), "").unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Created .hidden/x.py"]);
        assert!(watch.has(&root.join(".hidden/x.py")) && !watch.has(&root.join("more/node_modules/y/z.js")));
        assert!(watch.has_told(&root.join(".hidden/x.py")));
        std::fs::write(root.join(".hidden/x.py"), "1").unwrap();
        assert!(!watch.has_told(&root.join(".hidden/x.py")));
        assert_eq!(names(&root, watch.changes().await), ["Changed .hidden/x.py"]);
        // Another tree is left out, also when it came to be one while it was watched.
        std::fs::create_dir_all(root.join("tree/.git")).unwrap();
        std::fs::write(root.join("tree/x.py"), "").unwrap();
        std::fs::write(root.join("more/.git"), "").unwrap();
        std::fs::write(root.join("more/x.py"), "").unwrap();
        assert_eq!(names(&root, watch.changes().await), [""; 0]);
        watch.is_partial.store(true, Ordering::Relaxed);
        std::fs::write(root.join("out/z.py"), "22").unwrap();
        assert_eq!(names(&root, watch.changes().await), ["Changed out/z.py"], "looked at, too");
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
