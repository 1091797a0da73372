//! The user's `config.toml`: read at the start and whenever it changes, written by `baton settings`.
//!
//! What cannot be taken changes nothing: the last good settings stay in force, over a restart as well, for `state.json`
//! holds them. A file that is removed takes its settings along.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

pub use baton_config::file::schema_text;
use baton_config::file::{Fault, beyond_defaults, edit, read, read_json};
use baton_config::{ALIAS, NAME, SCHEMA_NAME};
pub use baton_config::{expected, nearest, nearest_of};
use baton_link::explain::Explanation;
use baton_link::home::{Home, replace_file};
use baton_proto::control::{Settings, SettingsChange};
use rustix::fs::OFlags;

use crate::state::State;

/// Largest file.
const LEN_MAX: u64 = 64 * 1024;
/// How often a change is made anew when somebody else changed the file meanwhile.
const TRIES: usize = 3;

/// The files, and what was seen of them.
#[derive(Debug)]
pub struct Configuration {
    path: PathBuf,
    alias: PathBuf,
    seen: Option<[Option<Seen>; 2]>,
    warning: Option<String>,
}

/// What tells one state of a file from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    inode: u64,
    changed: (i64, i64),
    len: u64,
}

/// Settings out of the text of one kind of file.
type Reader = fn(&str) -> Result<SettingsChange, Fault>;

/// What the files say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is none.
    Nothing,
    /// These settings; all others have their defaults.
    Settings(Box<SettingsChange>),
    /// Nothing that can be taken.
    Broken(String),
}

impl Configuration {
    /// The files of a state folder, of which nothing was seen yet.
    pub fn new(home: &Home) -> Self {
        let folder = home.config_folder();
        Self { path: folder.join(NAME), alias: folder.join(ALIAS), seen: None, warning: None }
    }

    /// The settings that a coordinator begins with, whose predecessors left `before`.
    pub fn begin(&mut self, before: &State) -> Settings {
        match self.look() {
            Some(Found::Settings(change)) => Settings::default().changed(*change),
            Some(Found::Nothing) if before.configured => Settings::default(),
            _ => before.settings.clone(),
        }
    }

    /// Where the settings are written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the user should know of the file.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Whether a file was there when it was looked at last.
    pub fn is_there(&self) -> bool {
        self.seen.is_some_and(|seen| seen.iter().any(Option::is_some))
    }

    /// What the files say, when they have changed since they were looked at last.
    pub fn look(&mut self) -> Option<Found> {
        let seen = [&self.path, &self.alias].map(|path| Seen::of(path));
        if self.seen == Some(seen) {
            return None;
        }
        self.seen = Some(seen);
        let (path, read): (_, Reader) = match seen {
            [None, None] => {
                self.warning = None;
                return Some(Found::Nothing);
            }
            [None, Some(_)] => (&self.alias, read_json),
            [Some(_), _] => (&self.path, read),
        };
        let said = read_text(path).map_err(|error| error.to_string());
        let said = said.and_then(|text| read(&text).map_err(|fault| fault.to_string()));
        let shown = path.display();
        let ignored = (seen[0].is_some() && seen[1].is_some())
            .then(|| format!("{} is ignored, because {NAME} is beside it", self.alias.display()));
        match said {
            Ok(change) => {
                self.warning = ignored;
                Some(Found::Settings(Box::new(change)))
            }
            Err(why) => {
                let warning = format!("{shown}: {why}; the settings that were in force before stay");
                self.warning = Some(warning.clone());
                Some(Found::Broken(warning))
            }
        }
    }

    /// Writes a change into the file, which is made when there is none: then with what is `in_force`.
    pub fn write(&self, change: &SettingsChange, in_force: &Settings) -> Result<(), Explanation> {
        let shown = self.path.display();
        let not_written = |error: std::io::Error| {
            let failed =
                Explanation::new(format!("the settings did not change: cannot write {shown} ({error})"));
            failed.with_hint(match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on its disk, then try again",
                _ => "make the file and its folder writable, then try again",
            })
        };
        for _ in 0..TRIES {
            let before = Seen::of(&self.path);
            let (text, change) = match before {
                None => (String::new(), beyond_defaults(in_force).and(change.clone())),
                Some(_) => (read_text(&self.path).map_err(not_written)?, change.clone()),
            };
            let edited = edit(&text, &change).map_err(|fault| {
                let why = format!("the settings did not change: {shown} has a mistake at {fault}");
                Explanation::new(why).with_hint("mend the file, or remove it, then try again")
            })?;
            if Seen::of(&self.path) != before {
                continue;
            }
            // What a link leads to is written, not the link.
            let target = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder).map_err(not_written)?;
            }
            if before.is_none() {
                // For editors alone.
                let _ = replace_file(&self.path.with_file_name(SCHEMA_NAME), schema_text().as_bytes());
            }
            let mode = std::fs::metadata(&target).map(|found| found.permissions());
            replace_file(&target, edited.as_bytes()).map_err(not_written)?;
            if let Ok(mode) = mode {
                // It may be shared; that it is for the user alone now harms nobody.
                let _ = std::fs::set_permissions(&target, mode);
            }
            return Ok(());
        }
        Err(not_written(std::io::Error::other("somebody else changes it all the time")))
    }
}

impl Seen {
    /// `None` when there is nothing of that name.
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).or_else(|_| std::fs::symlink_metadata(path)).ok()?;
        Some(Self { inode: found.ino(), changed: (found.ctime(), found.ctime_nsec()), len: found.len() })
    }
}

/// The text of a file of this user's or the system's.
fn read_text(path: &Path) -> io::Result<String> {
    let is_link_lost = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => io::Error::other("it is a link to nothing"),
        _ => error,
    };
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::CLOEXEC).bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(is_link_lost)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if ![0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
        return Err(io::Error::other("it is owned by another user"));
    }
    // It names programs that run.
    if found.mode() & 0o002 != 0 {
        return Err(io::Error::other("every user may write to it; `chmod o-w` ends that"));
    }
    let mut text = String::new();
    file.take(LEN_MAX + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => io::Error::other("it is not a text in UTF-8"),
        _ => error,
    })?;
    if text.len() as u64 > LEN_MAX {
        return Err(io::Error::other(format!("it is larger than {} KiB", LEN_MAX / 1024)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use baton_proto::control::Routing;

    use super::*;

    fn configuration() -> (tempfile::TempDir, Configuration) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        (dir, Configuration::new(&home))
    }

    fn any() -> SettingsChange {
        SettingsChange { routing: Some(Routing::Any), ..SettingsChange::default() }
    }

    #[test]
    fn a_file_is_read_when_it_changes_and_only_then() {
        let (dir, mut configuration) = configuration();
        assert_eq!(configuration.look(), Some(Found::Nothing));
        assert_eq!(configuration.look(), None);
        std::fs::write(dir.path().join(NAME), "routing = \"any\"").unwrap();
        assert_eq!(configuration.look(), Some(Found::Settings(Box::new(any()))));
        assert_eq!(configuration.look(), None);
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
        assert_eq!(configuration.look(), Some(Found::Nothing));
    }

    #[test]
    fn what_cannot_be_read_is_a_sentence_and_the_last_good_settings_stay() {
        let (dir, mut configuration) = configuration();
        let path = dir.path().join(NAME);
        let before =
            State { settings: Settings::default().changed(any()), configured: true, ..State::default() };
        let broken = |configuration: &mut Configuration| {
            assert_eq!(configuration.begin(&before).routing, Routing::Any);
            configuration.warning().unwrap_or_default().to_owned()
        };
        std::fs::write(&path, "routing = \"all\"").unwrap();
        assert!(
            broken(&mut configuration).contains("config.toml: line 1, column 11: invalid value for routing")
        );
        std::fs::write(&path, [0xff, 0xfe, 0xfd]).unwrap();
        assert!(broken(&mut configuration).contains("it is not a text in UTF-8"));
        std::fs::write(&path, "#".repeat(70_000)).unwrap();
        assert!(broken(&mut configuration).contains("larger than 64 KiB"));
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(broken(&mut configuration).contains("every user may write to it; `chmod o-w`"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(broken(&mut configuration).contains("it is a folder"));
        std::fs::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink("nothing", &path).unwrap();
        assert!(broken(&mut configuration).contains("a link to nothing"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            configuration.begin(&before),
            Settings::default(),
            "it was removed, and its settings with it"
        );
        let unconfigured = State { configured: false, ..before.clone() };
        let mut again = Configuration { seen: None, ..configuration };
        assert_eq!(again.begin(&unconfigured).routing, Routing::Any, "of a version that had no file");
    }

    #[test]
    fn a_change_goes_through_a_link_and_a_new_file_holds_what_is_in_force() {
        let (dir, mut configuration) = configuration();
        let in_force = Settings { hold_calls_ms: 7, ..Settings::default() };
        configuration.write(&any(), &in_force).unwrap();
        let expected = SettingsChange { hold_calls_ms: Some(7), ..any() };
        assert_eq!(configuration.look(), Some(Found::Settings(Box::new(expected))));
        assert!(dir.path().join(SCHEMA_NAME).is_file());
        let elsewhere = dir.path().join("dotfiles.toml");
        std::fs::rename(dir.path().join(NAME), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.path().join(NAME)).unwrap();
        let change = SettingsChange { redact: Some(true), ..SettingsChange::default() };
        configuration.write(&change, &in_force).unwrap();
        assert!(std::fs::read_to_string(&elsewhere).unwrap().contains("redact = true"));
        assert!(dir.path().join(NAME).is_symlink());
        let mode = || std::fs::metadata(&elsewhere).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o644)).unwrap();
        configuration.write(&any(), &in_force).unwrap();
        assert_eq!(mode(), 0o644, "what the user gave it stays");
        std::fs::write(&elsewhere, "redact = 1").unwrap();
        let refused = configuration.write(&change, &in_force).unwrap_err();
        assert!(refused.message.contains("has a mistake at line 1, column 10"), "{}", refused.message);
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "redact = 1");
    }

    #[test]
    fn the_other_name_is_read_alone_and_ignored_beside_it() {
        let (dir, mut configuration) = configuration();
        std::fs::write(dir.path().join(ALIAS), r#"{ "routing": "any" }"#).unwrap();
        assert_eq!(configuration.look(), Some(Found::Settings(Box::new(any()))));
        std::fs::write(dir.path().join(NAME), "").unwrap();
        assert_eq!(configuration.look(), Some(Found::Settings(Box::default())));
        assert!(configuration.warning().unwrap().contains("lcp.config.json is ignored"));
    }
}
