//! What a change has done so far, so that it can be taken back: at once when a later step fails, or by the next agent when
//! this one was killed.
//!
//! Each step is written down before it is taken, in a file in the state folder, which goes when the change is over: one
//! that is there while nobody holds the lock is of a change that was cut off. Whether its last step was taken still, the
//! disk tells. New and old texts lie beside the files that they are of, because only there they are on the same file
//! system, and get the group, the access list and the label that the folder gives; in a folder that git and others are
//! told to ignore.
//!
//! A change that is made leaves what it takes to undo it later; see [`kept`](super::kept).
//!
//! **Invariant:** taking a change back never overwrites and never removes what another program wrote since.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use baton_link::scratch;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::files::{is_nothing, private};
use super::kept::{self, Record};
use super::text::hash;
use baton_agent_base::fault::{Fault, Kind};

/// What the names of our folders in a tree begin with.
const OWN_PREFIX: &str = ".baton-";
/// How long a change waits for those of other agents, which take milliseconds.
pub(crate) const TURN_LIMIT: Duration = Duration::from_secs(10);
/// How long a window's start waits for them: the next change looks again.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(2);
/// A journal has some hundred bytes a file; a larger one is none of ours.
const MAX_JOURNAL_LEN: u64 = 16 * 1024 * 1024;

/// Without a state folder, writers of one process wait for each other here.
static WRITER: Mutex<()> = Mutex::new(());

/// Where changes that are being made are written down; nowhere in some tests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// In the state folder.
    pub folder: Option<PathBuf>,
}

/// The right to change files: one change at a time over all agents of the user, because folders of windows may overlap,
/// and two that both look before either of them writes would lose what the first one wrote.
pub(crate) struct Turn {
    folder: Option<PathBuf>,
    /// The window's folders.
    folders: Vec<PathBuf>,
    _lock: Option<File>,
    _alone: MutexGuard<'static, ()>,
}

impl Ledger {
    /// Waits for the other changes.
    pub(crate) fn turn(&self, folders: &[PathBuf], limit: Duration) -> Result<Turn, Fault> {
        let alone = WRITER.lock();
        let lock = self.folder.as_deref().map(|folder| lock(folder, limit)).transpose()?;
        Ok(Turn { folder: self.folder.clone(), folders: folders.to_vec(), _lock: lock, _alone: alone })
    }

    /// Removes what cannot be undone any longer.
    pub(crate) fn clean(&self) {
        if let Some(folder) = &self.folder {
            kept::clean(&undo_folder(folder));
        }
    }

    /// Whether a change is being made, or was cut off.
    pub(crate) fn has_any(&self) -> bool {
        self.folder.as_deref().is_some_and(|folder| !journals(folder).is_empty())
    }
}

fn lock(folder: &Path, limit: Duration) -> Result<File, Fault> {
    let path = folder.join("lock");
    let failed = |error: io::Error| {
        let message = format!("cannot lock {}: {error}; nothing was changed.", path.display());
        Fault::new(Kind::CannotWrite, message).hint("Check the permissions of Baton's state folder.")
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let file = private().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {}
        Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
    }
    // The system knows no limit for this wait; when nobody waits for the lock any longer it goes with the file.
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(file.lock().map(|()| file)));
    match told.recv_timeout(limit) {
        Ok(locked) => locked.map_err(failed),
        Err(_) => Err(Fault::new(Kind::Busy, "Another window is changing files; nothing was changed.")
            .hint("Try again in a moment.")),
    }
}

fn undo_folder(changes: &Path) -> PathBuf {
    changes.join("undo")
}

fn journals(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "journal")).collect()
}

impl Turn {
    /// Takes back the changes in the window's folders that were cut off; a sentence about each.
    pub(crate) fn undo_left(&self) -> Vec<String> {
        let Some(folder) = &self.folder else { return Vec::new() };
        journals(folder).into_iter().filter_map(|path| self.undo(&path, folder)).collect()
    }

    fn undo(&self, path: &Path, folder: &Path) -> Option<String> {
        let mut bytes = Vec::new();
        let file = private().read(true).open(path).ok()?;
        file.take(MAX_JOURNAL_LEN).read_to_end(&mut bytes).ok()?;
        let (acts, is_made) = Act::parse(&bytes);
        let is_ours = |act: &Act| self.folders.iter().any(|folder| act.place().starts_with(folder));
        let mut in_trees = acts.iter().filter(|act| act.is_in_tree()).peekable();
        if in_trees.peek().is_some() && !in_trees.any(is_ours) {
            return None;
        }
        let told = cut_off(&acts);
        let kept = Some(folder.join("kept"));
        let stuck = match is_made {
            true => tidy(acts, kept),
            false => take_back(acts, kept),
        };
        let _ = std::fs::remove_file(path);
        let what = told?;
        let how = match &stuck[..] {
            [] if is_made => "it is complete.".to_owned(),
            [] => "it has been undone, nothing was changed.".to_owned(),
            stuck => format!("it has been undone, except for this: {}.", stuck.join("; ")),
        };
        let sentence = format!("Baton's agent exited in the middle of a change of {what}: {how}");
        tracing::warn!("{sentence}");
        Some(sentence)
    }

    /// The last change of a client that is about these places.
    pub(crate) fn last_of(
        &self,
        client: &str,
        mut is_here: impl FnMut(&Path) -> bool,
    ) -> Option<(PathBuf, Record)> {
        let folder = undo_folder(self.folder.as_deref()?);
        let mut own =
            kept::of_client(&folder, client).filter(|(_, record)| record.places().all(&mut is_here));
        let (entry, record) = own.next()?;
        Some((entry.path, record))
    }

    /// Begins a change.
    pub(crate) fn begin(&self) -> Result<Journal, (PathBuf, io::Error)> {
        let id = scratch::unique();
        let file = match &self.folder {
            Some(folder) => {
                let path = folder.join(format!("{id}.journal"));
                let file = private().append(true).create_new(true).open(&path);
                Some((file.map_err(|error| (path.clone(), error))?, path))
            }
            None => None,
        };
        let kept = self.folder.as_ref().map(|folder| folder.join("kept"));
        Ok(Journal { id, acts: Vec::new(), file, kept, n_own: 0, cannot_exchange: false })
    }
}

/// The files of a change, for a person; none when no file was touched.
fn cut_off(acts: &[Act]) -> Option<String> {
    let stages = stages(acts);
    let mut files: Vec<&Path> =
        acts.iter().flat_map(Act::files).filter(|path| !is_own(&stages, path)).collect();
    let first = *files.first()?;
    files.sort();
    files.dedup();
    Some(match files.len() {
        1 => first.display().to_string(),
        n_files => format!("{n_files} files ({} and others)", first.display()),
    })
}

/// A new text in one of our folders.
pub(crate) struct Fresh {
    /// Where.
    pub place: PathBuf,
    /// See [`hash`].
    pub hash: String,
}

/// See the module.
pub(crate) struct Journal {
    id: String,
    acts: Vec<Act>,
    file: Option<(File, PathBuf)>,
    kept: Option<PathBuf>,
    n_own: usize,
    /// The file system has no way to do that, as was found.
    pub cannot_exchange: bool,
}

/// One step of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Act {
    /// A folder of ours, which goes with all that is in it.
    Stage(PathBuf),
    /// A folder of the user's that was missing.
    Folder(PathBuf),
    /// A file steps aside into a folder of ours, or comes from there; or a folder gets another name.
    Moved { from: PathBuf, to: PathBuf },
    /// A new text gets a name.
    Put { own: PathBuf, to: PathBuf, hash: String },
    /// A new text in the place of an old one, which lies where the new one was.
    Exchanged { path: PathBuf, own: PathBuf, inode: u64, hash: String },
    /// The same where the system cannot exchange; the old text lies at `old` before.
    Replaced { path: PathBuf, own: PathBuf, old: PathBuf, hash: String },
    /// What it takes to undo the change gets its name when the change is made.
    Kept { own: PathBuf, to: PathBuf },
    /// What goes when the change is made, which is an undo itself.
    Undone(PathBuf),
}

/// Says in a journal that a change is made, and that only our own folders have to go.
const MADE: &[u8] = b"made\0";

impl Act {
    fn fields(&self) -> Vec<Vec<u8>> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let text = |text: &str| text.as_bytes().to_vec();
        match self {
            Act::Stage(path) => vec![text("stage"), bytes(path)],
            Act::Folder(path) => vec![text("folder"), bytes(path)],
            Act::Moved { from, to } => vec![text("moved"), bytes(from), bytes(to)],
            Act::Put { own, to, hash } => vec![text("put"), bytes(own), bytes(to), text(hash)],
            Act::Exchanged { path, own, inode, hash } => {
                vec![text("exchanged"), bytes(path), bytes(own), text(&inode.to_string()), text(hash)]
            }
            Act::Replaced { path, own, old, hash } => {
                vec![text("replaced"), bytes(path), bytes(own), bytes(old), text(hash)]
            }
            Act::Kept { own, to } => vec![text("kept"), bytes(own), bytes(to)],
            Act::Undone(path) => vec![text("undone"), bytes(path)],
        }
    }

    /// No path has a zero in it, and a step whose line is not whole was not taken. Also tells whether the change was made.
    fn parse(bytes: &[u8]) -> (Vec<Self>, bool) {
        let mut acts = Vec::new();
        let mut fields =
            bytes.split_inclusive(|byte| *byte == 0).filter_map(|field| field.strip_suffix(b"\0"));
        while let Some(name) = fields.next() {
            if name == b"made" {
                return (acts, true);
            }
            match Self::read(name, &mut fields) {
                Some(act) => acts.push(act),
                None => break,
            }
        }
        (acts, false)
    }

    fn read<'a>(name: &[u8], fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut bytes = || fields.next().map(<[u8]>::to_vec);
        let path = |bytes: Vec<u8>| PathBuf::from(std::ffi::OsString::from_vec(bytes));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
        Some(match name {
            b"stage" => Act::Stage(path(bytes()?)),
            b"folder" => Act::Folder(path(bytes()?)),
            b"moved" => Act::Moved { from: path(bytes()?), to: path(bytes()?) },
            b"put" => Act::Put { own: path(bytes()?), to: path(bytes()?), hash: text(bytes()?)? },
            b"exchanged" => Act::Exchanged {
                path: path(bytes()?),
                own: path(bytes()?),
                inode: text(bytes()?)?.parse().ok()?,
                hash: text(bytes()?)?,
            },
            b"replaced" => Act::Replaced {
                path: path(bytes()?),
                own: path(bytes()?),
                old: path(bytes()?),
                hash: text(bytes()?)?,
            },
            b"kept" => Act::Kept { own: path(bytes()?), to: path(bytes()?) },
            b"undone" => Act::Undone(path(bytes()?)),
            _ => return None,
        })
    }

    /// Whether it is about the user's files, and not about what we know of them.
    fn is_in_tree(&self) -> bool {
        !matches!(self, Act::Kept { .. } | Act::Undone(_))
    }

    /// A place that it is about.
    fn place(&self) -> &Path {
        match self {
            Act::Stage(path) | Act::Folder(path) | Act::Undone(path) => path,
            Act::Moved { from, .. } => from,
            Act::Put { to, .. } | Act::Kept { to, .. } => to,
            Act::Exchanged { path, .. } | Act::Replaced { path, .. } => path,
        }
    }

    /// What it does something to, ours among it.
    fn files(&self) -> Vec<&Path> {
        match self {
            Act::Stage(_) | Act::Folder(_) | Act::Kept { .. } | Act::Undone(_) => Vec::new(),
            Act::Moved { from, to } => vec![from, to],
            Act::Put { to, .. } => vec![to],
            Act::Exchanged { path, .. } | Act::Replaced { path, .. } => vec![path],
        }
    }
}

impl Journal {
    fn note(&mut self, act: Act) -> io::Result<()> {
        #[cfg(test)]
        failpoint::pass();
        if let Some((file, _)) = &mut self.file {
            let mut line = act.fields().join(&0);
            line.push(0);
            file.write_all(&line)?;
        }
        #[cfg(test)]
        failpoint::pass();
        self.acts.push(act);
        Ok(())
    }

    /// Takes a step that is written down already.
    fn step<T>(&mut self, act: Act, take: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.note(act)?;
        let taken = take();
        if taken.is_err() {
            self.acts.pop();
        }
        taken
    }

    /// Keeps what it takes to undo the change for a client.
    pub(crate) fn keep(&mut self, client: &str, record: &Record) -> Result<(), (PathBuf, io::Error)> {
        let Some(changes) = self.file.as_ref().and_then(|(_, path)| path.parent()) else { return Ok(()) };
        let folder = undo_folder(changes);
        let failed = |error| (folder.clone(), error);
        let (bytes, to) = kept::prepare(&folder, client, &self.id, record).map_err(failed)?;
        let own = to.with_extension("new");
        self.step(Act::Kept { own: own.clone(), to }, || kept::write(&own, &bytes)).map_err(|error| {
            // Half of it, where the disk is full.
            let _ = std::fs::remove_file(&own);
            failed(error)
        })
    }

    /// The change takes back one that is kept there.
    pub(crate) fn undoes(&mut self, path: &Path) -> Result<(), (PathBuf, io::Error)> {
        self.note(Act::Undone(path.to_owned())).map_err(|error| (path.to_owned(), error))
    }

    /// A place for a text of ours in a folder.
    pub(crate) fn place(&mut self, folder: &Path) -> io::Result<PathBuf> {
        let stage = folder.join(format!("{OWN_PREFIX}{}", self.id));
        if !self.acts.iter().rev().any(|act| matches!(act, Act::Stage(known) if *known == stage)) {
            self.step(Act::Stage(stage.clone()), || DirBuilder::new().mode(0o700).create(&stage))?;
            std::fs::write(stage.join(".gitignore"), "*\n")?;
        }
        self.n_own += 1;
        Ok(stage.join(self.n_own.to_string()))
    }

    /// Makes the folders above a file that are missing. Gives the one that cannot be made.
    pub(crate) fn make_folders(&mut self, path: &Path) -> Result<(), (PathBuf, io::Error)> {
        let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            self.step(Act::Folder(folder.to_owned()), || std::fs::create_dir(folder))
                .map_err(|error| (folder.to_owned(), error))?;
        }
        Ok(())
    }

    /// Never over something else.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let act = Act::Moved { from: from.to_owned(), to: to.to_owned() };
        self.step(act, || rename_to_free(from, to))
    }

    /// Gives a new text its name, which is free.
    pub(crate) fn put(&mut self, fresh: Fresh, to: &Path) -> io::Result<()> {
        let Fresh { place: own, hash } = fresh;
        self.step(Act::Put { own: own.clone(), to: to.to_owned(), hash }, || rename_to_free(&own, to))
    }

    /// Puts a new text in the place of an old one, which is never missing in between. Gives where the old one lies now.
    pub(crate) fn exchange(&mut self, path: &Path, fresh: Fresh) -> io::Result<PathBuf> {
        let Fresh { place: own, hash } = fresh;
        if !self.cannot_exchange {
            let inode = std::fs::symlink_metadata(&own)?.ino();
            let act = Act::Exchanged { path: path.to_owned(), own: own.clone(), inode, hash: hash.clone() };
            match self.step(act, || exchange(path, &own)) {
                Ok(()) => return Ok(own),
                Err(error) if is_beyond(&error) => self.cannot_exchange = true,
                Err(error) => return Err(error),
            }
        }
        let old = own.with_extension("old");
        // The file itself, so that what somebody saves into it until the last moment is found.
        std::fs::hard_link(path, &old).or_else(|_| std::fs::copy(path, &old).map(drop))?;
        let act = Act::Replaced { path: path.to_owned(), own: own.clone(), old: old.clone(), hash };
        self.step(act, || std::fs::rename(&own, path))?;
        Ok(old)
    }

    /// The change is made: from here on it is not taken back.
    pub(crate) fn close(&mut self) -> Result<(), (PathBuf, io::Error)> {
        match &mut self.file {
            Some((file, path)) => file.write_all(MADE).map_err(|error| (path.clone(), error)),
            None => Ok(()),
        }
    }

    /// Removes what is ours.
    pub(crate) fn sweep(self) {
        #[cfg(test)]
        failpoint::pass();
        for stuck in tidy(self.acts, self.kept) {
            tracing::warn!("{stuck}");
        }
        if let Some((_, path)) = self.file {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Tells what could not be taken back.
    pub(crate) fn take_back(self) -> Vec<String> {
        let stuck = take_back(self.acts, self.kept);
        if let Some((_, path)) = self.file {
            let _ = std::fs::remove_file(path);
        }
        stuck
    }
}

fn stages(acts: &[Act]) -> Vec<PathBuf> {
    let stage = |act: &Act| match act {
        Act::Stage(path) => Some(path.clone()),
        _ => None,
    };
    acts.iter().filter_map(stage).collect()
}

/// Whether a path lies in a folder of ours.
fn is_own(stages: &[PathBuf], path: &Path) -> bool {
    path.parent().is_some_and(|folder| stages.iter().any(|stage| stage == folder))
}

/// After a change that is made: what is ours goes from the tree. A second time it does nothing.
fn tidy(acts: Vec<Act>, kept: Option<PathBuf>) -> Vec<String> {
    for act in &acts {
        let done = match act {
            Act::Kept { own, to } => {
                let named = gone(std::fs::rename(own, to));
                if let Some(folder) = to.parent() {
                    kept::clean(folder);
                }
                named
            }
            Act::Undone(path) => gone(std::fs::remove_file(path)),
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "what can be undone is not known for certain");
        }
    }
    take_back(acts.into_iter().filter(|act| matches!(act, Act::Stage(_))).collect(), kept)
}

/// Backwards. A second time it does nothing, because the agent that does it may be killed, too.
fn take_back(acts: Vec<Act>, kept: Option<PathBuf>) -> Vec<String> {
    let mut back = Back { stages: stages(&acts), kept, stays: Vec::new() };
    acts.into_iter().rev().filter_map(|act| back.undo(act).err()).collect()
}

struct Back {
    stages: Vec<PathBuf>,
    /// A folder for old texts that have lost their places.
    kept: Option<PathBuf>,
    /// What has to stay in a folder of ours when there is no such folder.
    stays: Vec<PathBuf>,
}

impl Back {
    fn undo(&mut self, act: Act) -> Result<(), String> {
        match act {
            Act::Stage(path) => {
                self.remove_stage(&path).map_err(|error| format!("{} stays ({error})", path.display()))
            }
            Act::Folder(path) => gone(std::fs::remove_dir(&path))
                .map_err(|error| format!("{} stays ({error})", path.display())),
            Act::Moved { from, to } => self.undo_moved(&from, &to),
            Act::Put { own, to, hash } => undo_put(&own, &to, &hash),
            Act::Exchanged { path, own, inode, hash } => {
                // That it is still the new one, which was never seen at its place.
                let is_taken = std::fs::symlink_metadata(&own).map(|metadata| metadata.ino() != inode);
                match is_taken {
                    Ok(true) => self.undo_exchanged(&path, &own, &hash),
                    Ok(false) => Ok(()),
                    Err(_) => lost(&path, &hash),
                }
            }
            Act::Replaced { path, own, old, hash } => match (exists(&own), exists(&old)) {
                (true, _) => Ok(()),
                (false, true) => self.undo_replaced(&path, &old, &hash),
                (false, false) => lost(&path, &hash),
            },
            Act::Kept { own, .. } => {
                gone(std::fs::remove_file(&own)).map_err(|error| format!("{} stays ({error})", own.display()))
            }
            Act::Undone(_) => Ok(()),
        }
    }

    fn remove_stage(&self, stage: &Path) -> io::Result<()> {
        let entries = match std::fs::read_dir(stage) {
            Err(error) if is_nothing(&error) => return Ok(()),
            entries => entries?,
        };
        for entry in entries.flatten().filter(|entry| !self.stays.contains(&entry.path())) {
            gone(std::fs::remove_file(entry.path()))?;
        }
        match self.stays.iter().any(|path| path.starts_with(stage)) {
            true => Ok(()),
            false => gone(std::fs::remove_dir(stage)),
        }
    }

    fn undo_moved(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        // Nobody else has names in our folders, so these tell more.
        let is_taken = match (is_own(&self.stages, from), is_own(&self.stages, to)) {
            (true, _) => !exists(from),
            (_, true) => exists(to),
            (false, false) => exists(to) && !exists(from),
        };
        if !is_taken {
            return Ok(());
        }
        rename_to_free(to, from).map_err(|error| {
            let place = if is_own(&self.stages, to) { self.keep(to, from) } else { to.to_owned() };
            format!("{} is at {} ({error})", from.display(), place.display())
        })
    }

    fn undo_exchanged(&mut self, path: &Path, own: &Path, hash: &str) -> Result<(), String> {
        if is_same(path, own) {
            return Ok(());
        }
        exchange_back(path, own, hash).map_err(|error| {
            let place = self.keep(own, path);
            format!("{} is not what it was, its old text is {} ({error})", path.display(), place.display())
        })
    }

    fn undo_replaced(&mut self, path: &Path, old: &Path, hash: &str) -> Result<(), String> {
        if is_same(path, old) {
            return Ok(());
        }
        let undone = match is_text(path, hash) {
            true => std::fs::rename(old, path),
            false => Err(io::Error::other("it was changed again")),
        };
        undone.map_err(|error| {
            let place = self.keep(old, path);
            format!("{} is not what it was, its old text is {} ({error})", path.display(), place.display())
        })
    }

    /// Brings an old text out of the tree, and tells where it is.
    fn keep(&mut self, own: &Path, of: &Path) -> PathBuf {
        let kept = self.kept.as_ref().and_then(|kept| {
            DirBuilder::new().recursive(true).mode(0o700).create(kept).ok()?;
            let name = of.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let place = kept.join(format!("{}-{name}", scratch::unique()));
            let copied = || std::fs::copy(own, &place).map(drop);
            std::fs::rename(own, &place).or_else(|_| copied()).ok()?;
            Some(place)
        });
        kept.unwrap_or_else(|| {
            self.stays.push(own.to_owned());
            own.to_owned()
        })
    }
}

/// Nothing is exchanged when the new text was changed already, and it is looked at again when it has gone from its place.
fn exchange_back(path: &Path, own: &Path, hash: &str) -> io::Result<()> {
    let changed = || io::Error::other("it was changed again");
    if exists(path) && !is_text(path, hash) {
        return Err(changed());
    }
    exchange(path, own)?;
    match is_text(own, hash) {
        true => Ok(()),
        false => {
            exchange(path, own)?;
            Err(changed())
        }
    }
}

fn undo_put(own: &Path, to: &Path, hash: &str) -> Result<(), String> {
    // It was not put there, or has gone from there.
    if exists(own) || !exists(to) {
        return Ok(());
    }
    let stays = |why: &str| format!("{} stays ({why})", to.display());
    rename_to_free(to, own).map_err(|error| stays(&error.to_string()))?;
    match is_text(own, hash) {
        true => Ok(()),
        false => {
            rename_to_free(own, to).map_err(|error| stays(&error.to_string()))?;
            Err(stays("it was changed again"))
        }
    }
}

/// Somebody removed the old text; unless it is back in its place, that cannot be undone.
fn lost(path: &Path, hash: &str) -> Result<(), String> {
    match is_text(path, hash) {
        true => Err(format!("{} has its new text, its old one is gone", path.display())),
        false => Ok(()),
    }
}

fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if is_nothing(&error) => Ok(()),
        removed => removed,
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((std::fs::read(one), std::fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

fn is_text(path: &Path, expected: &str) -> bool {
    std::fs::read(path).is_ok_and(|bytes| hash(&bytes) == expected)
}

/// Whether a path is of a folder of ours in a tree.
pub(crate) fn is_stage(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(OWN_PREFIX.as_bytes()))
}

/// What inotify tells last is that there is a file at `path`: the other way around it would be that there is none.
fn exchange(path: &Path, own: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, path, CWD, own, RenameFlags::EXCHANGE)?)
}

fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        Err(error) if is_beyond(&error) => match exists(to) {
            true => Err(io::ErrorKind::AlreadyExists.into()),
            false => std::fs::rename(from, to),
        },
        renamed => renamed,
    }
}

/// Whether a file system does not know how.
fn is_beyond(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP))
}

/// Where a test ends a change, as a kill would.
#[cfg(test)]
pub(crate) mod failpoint {
    use std::cell::Cell;

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// After so many passes; never with none.
    pub(crate) fn set(n_passes: Option<usize>) {
        LEFT.set(n_passes);
    }

    pub(super) fn pass() {
        match LEFT.get() {
            Some(0) => std::panic::resume_unwind(Box::new("killed")),
            left => LEFT.set(left.map(|left| left - 1)),
        }
    }
}
