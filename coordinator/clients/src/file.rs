//! Writes Baton into a client's file and takes it out again, so that the file is as it was before.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use baton_link::home::{Home, random_hex};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::edit::{Broken, Splice, take_entry};
use crate::{Client, ENTRY, Language, folder_of, json, toml};

/// How each file was changed, in the state folder (a change may hold the client token).
const RECORDS: &str = "clients.json";

/// Largest file that is changed; Claude Code's own grows to a few MiB.
const MAX_FILE_LEN: u64 = 64 * 1024 * 1024;

/// The mode of a file of Baton's making, which may hold the client token.
const PRIVATE: u32 = 0o600;

/// What a mode allows to anybody but the file's owner.
const OTHERS: u32 = 0o077;

/// What became of the file.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// It was changed.
    Changed,
    /// It was as wanted already.
    Unchanged,
    /// It was made by Baton and held nothing else: it is gone.
    Deleted,
}

/// Why a client's file was left alone.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be understood.
    #[error("nothing was changed: {} {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: Broken,
    },
    /// It cannot be read or written.
    #[error("nothing was changed: cannot read or write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FileError {
    /// What to try.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Broken { .. } => Some("fix the file, then try again"),
            Self::Io { .. } => None,
        }
    }
}

/// How a file was changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    /// The file was not there before.
    created: bool,
    /// The section was not there before.
    section_created: bool,
    splice: Splice,
    /// Who could use the file before the token came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    /// Folders that were made for it, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    folders: Vec<PathBuf>,
}

/// Baton's entry in the client's file, as it is now.
pub fn read(client: Client, path: &Path) -> Result<Option<Value>, FileError> {
    let target = Target::new(client, path)?;
    let text = target.read()?;
    text.map_or(Ok(None), |text| target.find(&text))
}

/// Merges the entry into the client's file.
pub fn write(home: &Home, client: Client, path: &Path, entry: &Value) -> Result<Written, FileError> {
    let target = Target::new(client, path)?;
    let old = target.read()?;
    let text = old.clone().unwrap_or_default();
    if target.find(&text)?.as_ref() == Some(entry) {
        return Ok(Written::Unchanged);
    }
    let mut records = Records::load(home);
    let known = records.get(&target.path);
    // The change is made on the file as it was without Baton, so that it can be undone as a whole.
    let base = match &known {
        Some(record) => target.without_entry(&text, Some(record))?,
        None => text,
    };
    let changed = target.set(&base, entry)?;
    let is_private = holds_token(entry);
    let mode_before = known.as_ref().and_then(|record| record.mode).or_else(|| target.mode());
    let created = known.as_ref().map_or(old.is_none(), |record| record.created);
    let record = Record {
        created,
        section_created: !target.has_section(&base)?,
        splice: Splice::between(&base, &changed),
        folders: known
            .as_ref()
            .map_or_else(|| missing_folders(&target.path), |record| record.folders.clone()),
        mode: mode_before.filter(|mode| is_private && mode & OTHERS != 0),
    };
    // First the record: a file that was changed can always be changed back.
    records.put(&target.path, Some(record));
    records.save().map_err(|source| target.io_error(source))?;
    let mode = mode_before.map_or(PRIVATE, |mode| if is_private { mode & !OTHERS } else { mode });
    target.replace(old.as_deref(), &changed, mode)?;
    Ok(Written::Changed)
}

/// Takes the entry out of the client's file.
pub fn remove(home: &Home, client: Client, path: &Path) -> Result<Written, FileError> {
    let target = Target::new(client, path)?;
    let mut records = Records::load(home);
    let record = records.get(&target.path);
    let Some(text) = target.read()? else {
        records.put(&target.path, None);
        records.save().map_err(|source| target.io_error(source))?;
        return Ok(Written::Unchanged);
    };
    if target.find(&text)?.is_none() {
        return Ok(Written::Unchanged);
    }
    let base = target.without_entry(&text, record.as_ref())?;
    let is_ours = record.as_ref().is_some_and(|record| record.created);
    let done = if is_ours && target.is_empty(&base)? {
        std::fs::remove_file(&target.path).map_err(|source| target.io_error(source))?;
        for folder in record.iter().flat_map(|record| &record.folders) {
            // One in which something else lies by now stays.
            let _ = std::fs::remove_dir(folder);
        }
        Written::Deleted
    } else {
        let mode = record.as_ref().and_then(|record| record.mode).or_else(|| target.mode());
        target.replace(Some(&text), &base, mode.unwrap_or(PRIVATE))?;
        Written::Changed
    };
    records.put(&target.path, None);
    records.save().map_err(|source| target.io_error(source))?;
    Ok(done)
}

/// The folders that have to be made for a file, the innermost first.
fn missing_folders(file: &Path) -> Vec<PathBuf> {
    file.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect()
}

/// A command needs no secret; a URL comes with the client token.
fn holds_token(entry: &Value) -> bool {
    entry.to_string().contains("Bearer ")
}

/// A client's file.
struct Target {
    client: Client,
    path: PathBuf,
}

impl Target {
    /// Follows symbolic links: people keep their configuration in a repository of dotfiles.
    fn new(client: Client, path: &Path) -> Result<Self, FileError> {
        let resolved = match std::fs::symlink_metadata(path) {
            Ok(_) => std::fs::canonicalize(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path),
            Err(error) => Err(error),
        };
        match resolved {
            Ok(path) => Ok(Self { client, path }),
            Err(source) => Err(FileError::Io { path: path.to_owned(), source }),
        }
    }

    fn read(&self) -> Result<Option<String>, FileError> {
        let metadata = match std::fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.io_error(source)),
        };
        if !metadata.is_file() || metadata.len() > MAX_FILE_LEN {
            return Err(self.broken(Broken("is too large or not a regular file".to_owned())));
        }
        let bytes = std::fs::read(&self.path).map_err(|source| self.io_error(source))?;
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| self.broken(Broken("is not valid UTF-8".to_owned())))
    }

    fn find(&self, text: &str) -> Result<Option<Value>, FileError> {
        let found = match self.client.language() {
            Language::Json => json::to_value(text).map(|value| {
                value.get(self.client.section()).and_then(|servers| servers.get(ENTRY)).cloned()
            }),
            Language::Toml => toml::find(text, self.client.section(), ENTRY),
        };
        found.map_err(|why| self.broken(why))
    }

    fn set(&self, text: &str, entry: &Value) -> Result<String, FileError> {
        let section = self.client.section();
        let changed = match self.client.language() {
            Language::Json => json::set(text, section, ENTRY, entry),
            Language::Toml => toml::set(text, section, ENTRY, entry),
        };
        let changed = changed.map_err(|why| self.broken(why))?;
        // Whatever the file looked like: what is written must say what was meant, and nothing else.
        if self.find(&changed)?.as_ref() != Some(entry) || self.rest(&changed)? != self.rest(text)? {
            return Err(self.broken(Broken("has a format that Baton does not support".to_owned())));
        }
        Ok(changed)
    }

    /// The text as it was before Baton, when that can be known; else without the entry.
    fn without_entry(&self, text: &str, record: Option<&Record>) -> Result<String, FileError> {
        if let Some(undone) = record.and_then(|record| record.splice.undo(text))
            && self.rest(&undone).ok() == self.rest(text).ok()
        {
            return Ok(undone);
        }
        let drop_section = record.is_some_and(|record| record.section_created);
        let section = self.client.section();
        let text = match self.client.language() {
            Language::Json => json::unset(text, section, ENTRY, drop_section),
            Language::Toml => toml::unset(text, section, ENTRY, drop_section),
        };
        text.map_err(|why| self.broken(why))
    }

    /// Everything that is not Baton's.
    fn rest(&self, text: &str) -> Result<Value, FileError> {
        let rest = match self.client.language() {
            Language::Json => json::to_value(text).map(|mut value| {
                take_entry(&mut value, self.client.section(), ENTRY);
                value
            }),
            Language::Toml => toml::rest(text, self.client.section(), ENTRY),
        };
        rest.map_err(|why| self.broken(why))
    }

    fn has_section(&self, text: &str) -> Result<bool, FileError> {
        let has = match self.client.language() {
            Language::Json => json::to_value(text).map(|value| value.get(self.client.section()).is_some()),
            Language::Toml => toml::has(text, self.client.section()),
        };
        has.map_err(|why| self.broken(why))
    }

    fn is_empty(&self, text: &str) -> Result<bool, FileError> {
        let has_comments = text.contains("//") || text.contains("/*") || text.contains('#');
        Ok(!has_comments && self.rest(text)?.as_object().is_none_or(serde_json::Map::is_empty))
    }

    /// Who can use the file; `None` when it is not there.
    fn mode(&self) -> Option<u32> {
        std::fs::metadata(&self.path).map(|metadata| metadata.permissions().mode() & 0o7777).ok()
    }

    /// Replaces the file as a whole, unless its client wrote to it meanwhile.
    fn replace(&self, old: Option<&str>, text: &str, mode: u32) -> Result<(), FileError> {
        self.try_replace(old, text, mode).map_err(|source| self.io_error(source))
    }

    fn try_replace(&self, old: Option<&str>, text: &str, mode: u32) -> io::Result<()> {
        let folder = folder_of(&self.path);
        DirBuilder::new().recursive(true).create(folder)?;
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(format!(".{}.tmp", random_hex()?));
        let temporary = PathBuf::from(temporary);
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.set_permissions(Permissions::from_mode(mode))?;
            file.sync_all()?;
            let now = match std::fs::read(&self.path) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            if now.as_deref() != old.map(str::as_bytes) {
                return Err(io::Error::other("the client changed it at the same time; try again"));
            }
            std::fs::rename(&temporary, &self.path)?;
            File::open(folder)?.sync_all()
        };
        let written = write();
        if written.is_err() {
            // It may not be there; the first error is the one that counts.
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    fn broken(&self, why: Broken) -> FileError {
        FileError::Broken { path: self.path.clone(), why }
    }

    fn io_error(&self, source: io::Error) -> FileError {
        FileError::Io { path: self.path.clone(), source }
    }
}

/// All records, by path.
struct Records<'a> {
    home: &'a Home,
    records: BTreeMap<String, Record>,
}

impl<'a> Records<'a> {
    /// Without records an entry is still found and removed; only the layout may then differ.
    fn load(home: &'a Home) -> Self {
        let bytes = std::fs::read(home.path().join(RECORDS)).unwrap_or_default();
        Self { home, records: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    fn get(&self, path: &Path) -> Option<Record> {
        self.records.get(&*path.to_string_lossy()).cloned()
    }

    fn put(&mut self, path: &Path, record: Option<Record>) {
        let path = path.to_string_lossy().into_owned();
        match record {
            Some(record) => drop(self.records.insert(path, record)),
            None => drop(self.records.remove(&path)),
        }
    }

    fn save(&self) -> io::Result<()> {
        self.home.replace(RECORDS, &serde_json::to_vec_pretty(&self.records)?)
    }
}
