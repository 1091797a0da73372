//! What files held before a change, kept for a day, so that the client that made the change can take it back.
//!
//! One file for each change, in `undo` in the folder for changes: written before the change begins, valid once it is made,
//! and gone with the undo. Its name tells when, and whose: no client gets at another's.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::files::{MAX_MOVED, files_below, private};
use super::plan::{FileEdit, FolderMove, Plan};
use super::text::{self, Text, hash};

/// So long a change can be undone.
const KEPT: Duration = Duration::from_hours(24);
/// All that is kept of all clients; the oldest goes first.
const MAX_ALL_LEN: u64 = 64 * 1024 * 1024;
/// Changes that are kept of all clients: their names are looked through with each change.
pub(crate) const MAX_CHANGES: usize = 1_000;
/// Of one change: a larger one is made, and cannot be undone.
const MAX_LEN: usize = 16 * 1024 * 1024;
/// What a file begins with that is of this version.
const MAGIC: &[u8] = b"baton undo 1\n";
/// Hexadecimal digits of a client in a file's name.
const CLIENT_LEN: usize = 32;
/// Ends the name of what can be undone.
const EXTENSION: &str = "undo";

/// A change that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Why it cannot be undone, when it cannot.
    pub gap: String,
    files: Vec<Was>,
    folders: Vec<Moved>,
    /// Folders that the change makes, the outer ones first.
    pub made: Vec<PathBuf>,
}

/// A file before a change, by its names when folders are not moved yet, and afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Was {
    /// None: the change created it.
    before: Option<PathBuf>,
    /// None: the change deleted it.
    after: Option<PathBuf>,
    old: Vec<u8>,
    /// Of what the change made of it; see [`hash`].
    new: String,
    mode: u32,
}

/// A folder that got another name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Moved {
    before: PathBuf,
    after: PathBuf,
    /// All that is in it then.
    files: Vec<PathBuf>,
}

/// The place of one that is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Milliseconds since 1970; each one's is larger than those before.
    stamp: u128,
    client: String,
    /// Bytes.
    len: u64,
    pub path: PathBuf,
}

/// A client as the names of files have it.
pub(crate) fn client(caller: &str) -> String {
    let mut client = hash(caller.as_bytes());
    client.truncate(CLIENT_LEN);
    client
}

impl Record {
    /// What a plan will do, as the disk is before.
    pub(crate) fn of(plan: &Plan) -> Self {
        let gap = gap(plan);
        let file = |edit: &FileEdit| match gap.is_empty() {
            true => was(plan, edit),
            // Where it is has to be known of one that cannot be undone, too.
            false => Was { after: Some(edit.path.clone()), ..Was::default() },
        };
        let files = plan.edits.iter().map(file).collect();
        let folders = plan.folders.iter().map(|folder| moved(plan, folder)).collect();
        let to = plan.edits.iter().filter_map(|edit| edit.to.as_ref());
        let places = to.chain(plan.folders.iter().map(|folder| &folder.to));
        let missing = |place: &PathBuf| {
            let above = place.ancestors().skip(1).take_while(|folder| !folder.exists());
            above.map(Path::to_owned).collect::<Vec<_>>()
        };
        let mut made: Vec<PathBuf> = places.flat_map(missing).collect();
        made.sort();
        made.dedup();
        Self { gap, files, folders, made }
    }

    /// All places that it names.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().flat_map(|was| was.before.iter().chain(&was.after));
        let folders = self.folders.iter().flat_map(|folder| [&folder.before, &folder.after]);
        files.chain(folders).map(PathBuf::as_path)
    }

    /// What takes the change back, or the files and folders that are not as it left them.
    pub(crate) fn back(&self) -> Result<Plan, Vec<PathBuf>> {
        let folders: Vec<FolderMove> = self.folders.iter().map(Moved::back).collect();
        let (mut edits, mut changed) = (Vec::new(), Vec::new());
        for was in &self.files {
            match was.back(&folders) {
                Ok(edit) => edits.push(edit),
                Err(path) => changed.push(path),
            }
        }
        for folder in &self.folders {
            if !files_below(&folder.after, MAX_MOVED).is_ok_and(|files| files == folder.files) {
                changed.push(folder.after.clone());
            }
        }
        edits.sort_by(|one, other| (&one.path, &one.from).cmp(&(&other.path, &other.from)));
        if changed.is_empty() { Ok(Plan { edits, folders }) } else { Err(changed) }
    }

    /// What a plan does not tell, once it has taken the change back.
    pub(crate) fn finish(&self) {
        for was in self.files.iter().filter(|was| was.after.is_none()) {
            let mode = std::fs::Permissions::from_mode(was.mode);
            let _ = was.before.as_ref().map(|path| std::fs::set_permissions(path, mode));
        }
        // What somebody else put there stays, and the folder with it.
        for folder in self.made.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut put = |field: &[u8]| {
            bytes.extend((field.len() as u64).to_le_bytes());
            bytes.extend(field);
        };
        let count = |number: usize| number.to_string().into_bytes();
        let place = |path: &Option<PathBuf>| path.clone().unwrap_or_default().into_os_string().into_vec();
        put(self.gap.as_bytes());
        put(&count(self.files.len()));
        for was in &self.files {
            put(&place(&was.before));
            put(&place(&was.after));
            put(&was.old);
            put(was.new.as_bytes());
            put(was.mode.to_string().as_bytes());
        }
        put(&count(self.folders.len()));
        for folder in &self.folders {
            put(folder.before.as_os_str().as_bytes());
            put(folder.after.as_os_str().as_bytes());
            put(&count(folder.files.len()));
            folder.files.iter().for_each(|file| put(file.as_os_str().as_bytes()));
        }
        put(&count(self.made.len()));
        self.made.iter().for_each(|folder| put(folder.as_os_str().as_bytes()));
        bytes
    }

    /// None when it is not whole, or of another version.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes.strip_prefix(MAGIC)?);
        let place = |path: PathBuf| Some(path).filter(|path| !path.as_os_str().is_empty());
        let gap = fields.text()?;
        let n_files = fields.number()?;
        let files = (0..n_files).map(|_| {
            Some(Was {
                before: place(fields.path()?),
                after: place(fields.path()?),
                old: fields.next()?.to_vec(),
                new: fields.text()?,
                mode: u32::try_from(fields.number()?).ok()?,
            })
        });
        let files = files.collect::<Option<_>>()?;
        let n_folders = fields.number()?;
        let folders = (0..n_folders).map(|_| {
            let (before, after, n_files) = (fields.path()?, fields.path()?, fields.number()?);
            Some(Moved { before, after, files: (0..n_files).map(|_| fields.path()).collect::<Option<_>>()? })
        });
        let folders = folders.collect::<Option<_>>()?;
        let n_made = fields.number()?;
        let made = (0..n_made).map(|_| fields.path()).collect::<Option<_>>()?;
        Some(Self { gap, files, folders, made })
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.0.split_first_chunk()?;
        let (field, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        self.0 = rest;
        Some(field)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.next()?.to_vec()).ok()
    }

    fn number(&mut self) -> Option<usize> {
        self.text()?.parse().ok()
    }

    fn path(&mut self) -> Option<PathBuf> {
        Some(OsString::from_vec(self.next()?.to_vec()).into())
    }
}

/// Why a plan cannot be undone; empty when it can.
fn gap(plan: &Plan) -> String {
    let len: usize = plan.edits.iter().map(|edit| edit.old.as_str().len()).sum();
    if len > MAX_LEN {
        return "it was too large to be kept".to_owned();
    }
    // What comes back would be a file like any other.
    let is_special = |path: &&PathBuf| {
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink() || metadata.nlink() > 1)
    };
    let deleted = plan.edits.iter().filter(|edit| edit.to.is_none()).filter_map(|edit| edit.from.as_ref());
    match deleted.into_iter().find(is_special) {
        Some(path) => format!("it deleted a link, {}", path.display()),
        None => String::new(),
    }
}

fn was(plan: &Plan, edit: &FileEdit) -> Was {
    let bytes = |text: &str| text::encode(text, edit.storage);
    let mode = edit.from.as_ref().and_then(|from| std::fs::metadata(from).ok());
    Was {
        before: edit.from.clone(),
        after: edit.to.as_ref().map(|to| plan.after_moves(to)),
        old: edit.from.as_ref().map(|_| bytes(edit.old.as_str())).unwrap_or_default(),
        new: hash(&bytes(&edit.new)),
        mode: mode.map_or(0, |metadata| metadata.permissions().mode() & 0o7777),
    }
}

fn moved(plan: &Plan, folder: &FolderMove) -> Moved {
    let goes =
        |file: &&PathBuf| plan.edits.iter().any(|edit| edit.from.as_ref() == Some(*file) && !edit.stays());
    let stays = folder.files.iter().filter(|file| !goes(file)).map(|file| plan.after_moves(file));
    let comes = plan.edits.iter().filter(|edit| !edit.stays());
    let comes = comes.filter_map(|edit| edit.to.as_ref()).filter(|to| to.starts_with(&folder.from));
    let mut files: Vec<PathBuf> = stays.chain(comes.map(|to| plan.after_moves(to))).collect();
    files.sort();
    Moved { before: folder.from.clone(), after: folder.to.clone(), files }
}

impl Moved {
    fn back(&self) -> FolderMove {
        FolderMove { from: self.after.clone(), to: self.before.clone(), files: self.files.clone() }
    }
}

impl Was {
    /// `folders`: moved back after everything else.
    fn back(&self, folders: &[FolderMove]) -> Result<FileEdit, PathBuf> {
        let place = self.after.as_ref().or(self.before.as_ref()).cloned().unwrap_or_default();
        let of = |bytes: Vec<u8>| text::decode(bytes).map_err(|_| place.clone());
        let (old, storage) = of(self.old.clone())?;
        let now = match &self.after {
            Some(after) => {
                let is_file = std::fs::metadata(after).is_ok_and(|metadata| metadata.is_file());
                let bytes =
                    is_file.then(|| std::fs::read(after).ok()).flatten().ok_or_else(|| place.clone())?;
                if hash(&bytes) != self.new {
                    return Err(place);
                }
                of(bytes)?.0
            }
            None => String::new(),
        };
        let now = Arc::new(Text::new(now));
        let Some(before) = &self.before else {
            // Somebody has put a link in the place of the file, and it would go instead.
            let is_link = self.after.as_ref().is_some_and(|after| after.is_symlink());
            if is_link {
                return Err(place);
            }
            return Ok(FileEdit::between((self.after.clone(), None), place, now, None, storage));
        };
        let ends = (self.after.clone(), Some(folders_then(folders, before)));
        Ok(FileEdit::between(ends, before.clone(), now, Some(old), storage))
    }
}

/// Where a file lies that will be at `path` once the folders are moved.
fn folders_then(folders: &[FolderMove], path: &Path) -> PathBuf {
    let inside = folders.iter().find_map(|folder| Some((folder, path.strip_prefix(&folder.to).ok()?)));
    inside.map_or_else(|| path.to_owned(), |(folder, inside)| folder.from.join(inside))
}

/// What is kept, the oldest first.
fn entries(folder: &Path) -> Vec<Entry> {
    let entry = |path: PathBuf| {
        let mut parts = path.file_stem()?.to_str()?.splitn(4, '-');
        let (stamp, client, len) = (parts.next()?.parse().ok()?, parts.next()?.to_owned(), parts.next()?);
        let len = len.parse().ok()?;
        Some(Entry { stamp, client, len, path })
    };
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = all.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    let mut all: Vec<Entry> = all.filter_map(entry).collect();
    all.sort();
    all
}

/// Since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// What is written of a change, and where it belongs.
pub(crate) fn prepare(
    folder: &Path,
    client: &str,
    id: &str,
    record: &Record,
) -> io::Result<(Vec<u8>, PathBuf)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let bytes = record.encode();
    let len = bytes.len();
    let after_last = entries(folder).last().map_or(0, |entry| entry.stamp + 1);
    let stamp = now().as_millis().max(after_last);
    Ok((bytes, folder.join(format!("{stamp:020}-{client}-{len}-{id}.{EXTENSION}"))))
}

/// Writes what nobody else reads.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    private().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Removes what is older than a day, and the oldest of what is too much.
pub(crate) fn clean(folder: &Path) {
    let since = now().saturating_sub(KEPT).as_millis();
    let (mut len, mut n_changes) = (0, 0);
    for entry in entries(folder).into_iter().rev() {
        len += entry.len;
        n_changes += 1;
        if entry.stamp < since || len > MAX_ALL_LEN || n_changes > MAX_CHANGES {
            let _ = std::fs::remove_file(&entry.path);
        }
    }
}

/// A client's changes that can be undone, the last one first.
pub(crate) fn of_client(folder: &Path, client: &str) -> impl Iterator<Item = (Entry, Record)> {
    let since = now().saturating_sub(KEPT).as_millis();
    let own = move |entry: &Entry| entry.stamp >= since && entry.client == client;
    let own: Vec<Entry> = entries(folder).into_iter().rev().filter(own).collect();
    own.into_iter().filter_map(|entry| {
        let bytes = std::fs::read(&entry.path).ok()?;
        Some((entry, Record::decode(&bytes)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Storage;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_not() {
        let was = |before: &str, after: &str| Was {
            before: Some(PathBuf::from(before)).filter(|path| !path.as_os_str().is_empty()),
            after: Some(PathBuf::from(after)).filter(|path| !path.as_os_str().is_empty()),
            old: vec![0, 255, b'\n'],
            new: hash(b"new"),
            mode: 0o751,
        };
        let folder =
            Moved { before: "/d".into(), after: "/e".into(), files: vec!["/e/x".into(), "/e/y".into()] };
        let record = Record {
            gap: "why".to_owned(),
            files: vec![was("/a", "/b"), was("", "/c"), was("/d", "")],
            folders: vec![folder],
            made: vec!["/m".into(), "/m/n".into()],
        };
        let bytes = record.encode();
        assert_eq!(Record::decode(&bytes).as_ref(), Some(&record));
        for len in 0..bytes.len() {
            assert_eq!(Record::decode(&bytes[..len]), None, "{len}");
        }
        assert_eq!(record.places().count(), 6);
    }

    #[test]
    fn what_is_too_old_or_too_much_goes_the_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("undo");
        let keep = |stamp: Duration, len: u64| {
            let path = folder.join(format!("{:020}-{}-{len}-x.undo", stamp.as_millis(), client("one")));
            std::fs::write(path, "").unwrap();
        };
        let stamps = || -> Vec<u128> { entries(&folder).into_iter().map(|entry| entry.stamp).collect() };
        let record = Record { made: vec!["/m".into()], ..Record::default() };
        let (bytes, first) = prepare(&folder, &client("one"), "id", &record).unwrap();
        write(&first, &bytes).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&first)), (0o700, 0o600));
        assert_eq!(of_client(&folder, &client("two")).count(), 0);
        let found: Vec<Record> = of_client(&folder, &client("one")).map(|(_, record)| record).collect();
        assert_eq!(found, std::slice::from_ref(&record));
        std::fs::remove_file(&first).unwrap();

        let hour = Duration::from_hours(1);
        keep(now() - 25 * hour, 1);
        keep(now() - 23 * hour, MAX_ALL_LEN / 2);
        keep(now() - hour, MAX_ALL_LEN / 2);
        let all = stamps();
        clean(&folder);
        assert_eq!(stamps(), all[1..]);
        keep(now() - hour / 2, 1);
        clean(&folder);
        assert_eq!(stamps()[..1], all[2..]);
        (0..)
            .take(MAX_CHANGES)
            .for_each(|number| keep(now() - hour / 4 + number * Duration::from_millis(1), 1));
        clean(&folder);
        assert_eq!(stamps().len(), MAX_CHANGES);
        // A clock that went backwards.
        keep(now() + hour, 1);
        let (_, next) = prepare(&folder, &client("one"), "id", &record).unwrap();
        write(&next, &bytes).unwrap();
        assert_eq!(entries(&folder).last().map(|entry| entry.path.clone()), Some(next));
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_not_removed_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let ends = (None, Some(at("new")));
        let empty = Arc::new(Text::new(String::new()));
        let created = FileEdit::between(ends, at("new"), empty, Some("x".to_owned()), Storage::Plain);
        let record = Record::of(&Plan { edits: vec![created], folders: Vec::new() });
        std::fs::write(at("new"), "x").unwrap();
        let back = record.back().unwrap();
        assert_eq!((back.edits[0].from.clone(), back.edits[0].to.clone()), (Some(at("new")), None));
        std::fs::rename(at("new"), at("moved")).unwrap();
        std::os::unix::fs::symlink("moved", at("new")).unwrap();
        assert_eq!(record.back().unwrap_err(), [at("new")]);
    }

    #[test]
    fn what_would_not_come_back_as_it_was_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "a").unwrap();
        std::os::unix::fs::symlink("a", at("link")).unwrap();
        let deleted = |name: &str, text: &str| {
            let old = Arc::new(Text::new(text.to_owned()));
            let edit = FileEdit::between((Some(at(name)), None), at(name), old, None, Storage::Plain);
            Record::of(&Plan { edits: vec![edit], folders: Vec::new() })
        };
        assert_eq!(deleted("a", "a").gap, "");
        assert!(deleted("link", "a").gap.starts_with("it deleted a link, "));
        let large = deleted("a", &"x".repeat(MAX_LEN + 1));
        assert_eq!(large.gap, "it was too large to be kept");
        assert_eq!(large.places().count(), 1);
    }
}
