//! Log files: one a day, or more when there is much to tell, for this user alone, one line an event, never through a
//! link.
//!
//! All processes of a kind write to `KIND.DATE.log`. Who finds it full renames it to `KIND.DATE-TIME.log`, which sorts
//! before it, and begins the next; the others follow with their next line.
//!
//! Whatever a peer sends may end up in a field of an event. [`OneLine`] takes care that it forges no line of its own
//! and does nothing to a terminal.
//!
//! | module | what |
//! |---|---|
//! | [`lines`] | what lines say, and which are wanted |

pub mod lines;

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};

/// Days of logs that are kept, for each kind of them.
const DAYS_MAX: usize = 7;
/// Bytes of logs that are kept, for each kind of them: the newest.
static KEPT_MAX: AtomicU64 = AtomicU64::new(128 * MIB);
/// Largest file, and no more than a quarter of what is kept.
const FILE_MAX: u64 = 16 * MIB;
/// Bytes of a mebibyte.
const MIB: u64 = 1024 * 1024;
/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// Target of events with the bodies of messages: they are logged only when the filter names it.
pub const BODIES: &str = "baton_bodies";

/// Target of the line that each call writes which changes or runs something: it is logged whatever the filter says.
pub const AUDIT: &str = "baton_audit";

/// The directives of a filter, without bodies unless they are asked for by name, and with the audit always.
pub fn without_bodies(directives: &str) -> String {
    let with_audit = format!("{directives},{AUDIT}=info");
    if directives.contains(BODIES) { with_audit } else { format!("{with_audit},{BODIES}=off") }
}

/// Whether an event may be logged at all: other crates tell bodies and tokens at the levels below warnings, and the
/// MCP library in warnings, too.
pub fn is_logged(metadata: &tracing::Metadata<'_>) -> bool {
    let target = metadata.target();
    let least = if target.starts_with("rmcp") { tracing::Level::ERROR } else { tracing::Level::WARN };
    target.starts_with("baton") || *metadata.level() <= least
}

/// The folder of the log files, opened once: what its name leads to later does not matter.
#[derive(Debug)]
pub struct LogFolder(OwnedFd);

impl LogFolder {
    /// Opens the folder, which is no link and ours.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&folder)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("the log folder is owned by another user"));
        }
        Ok(Self(folder))
    }

    /// Opens the folder, and makes it when it is missing.
    pub fn create(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Self::open(path),
        }
    }

    /// Names of the files of one kind, in the order of their days.
    pub fn names(&self, kind: &str) -> io::Result<Vec<String>> {
        let is_of_kind = |name: &&CStr| {
            name.to_str().is_ok_and(|name| {
                name.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".log"))
            })
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            if let Some(name) = Some(entry.file_name()).filter(is_of_kind) {
                names.push(name.to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens one of the files to read it.
    pub fn read(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY)
    }

    /// What tells one state of the files of these kinds from the next: the newest of each, and its length.
    pub fn stamp(&self, kinds: &[&str]) -> String {
        let newest = |kind: &&str| {
            let name = self.names(kind).ok()?.pop()?;
            let len = self.stat(&name).map_or(0, |stat| size_of(&stat));
            Some(format!("{name}-{len}"))
        };
        kinds.iter().filter_map(newest).collect::<Vec<_>>().join("_")
    }

    fn append(&self, name: &str) -> io::Result<File> {
        let file = self.open_file(name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
        // Older ones, and those that another umask made.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o600))?;
        Ok(file)
    }

    fn open_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // Whoever could put a pipe there must not make us wait for its other end.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(0o600))?;
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink > 1 {
            return Err(io::Error::other(format!("{name} is a link or not a regular file")));
        }
        Ok(File::from(file))
    }

    /// Removes the oldest of a kind; that it cannot be removed harms nobody.
    fn prune(&self, kind: &str, kept_max: u64) {
        let names = self.names(kind).unwrap_or_default();
        let (mut days, mut n_bytes) = (BTreeSet::new(), 0);
        for (idx, name) in names.iter().rev().enumerate() {
            days.insert(name.get(..kind.len() + ".2026-11-22".len()).unwrap_or(name));
            n_bytes += self.stat(name).map_or(0, |stat| size_of(&stat));
            if idx > 0 && (days.len() > DAYS_MAX || n_bytes > kept_max) {
                let _ = rustix::fs::unlinkat(&self.0, name.as_str(), AtFlags::empty());
            }
        }
    }

    fn stat(&self, name: &str) -> Option<Stat> {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }
}

fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// From now on the files of a kind may take so many megabytes.
pub(crate) fn keep_mb(mb: u64) {
    KEPT_MAX.store(mb.saturating_mul(MIB), Ordering::Relaxed);
}

fn kept_max() -> u64 {
    KEPT_MAX.load(Ordering::Relaxed)
}

/// Writes to the file of the day.
#[derive(Debug)]
pub struct DailyFile {
    folder: LogFolder,
    kind: &'static str,
    day: u64,
    file: File,
    file_max: u64,
}

impl DailyFile {
    /// Appends to `KIND.DATE.log` in the folder.
    pub fn open(folder: &Path, kind: &'static str) -> io::Result<Self> {
        Self::with_max(folder, kind, FILE_MAX)
    }

    fn with_max(folder: &Path, kind: &'static str, file_max: u64) -> io::Result<Self> {
        let folder = LogFolder::create(folder)?;
        let (day, _) = now();
        let file = folder.append(&name_of(kind, day))?;
        folder.prune(kind, kept_max());
        Ok(Self { folder, kind, day, file, file_max })
    }

    /// Goes on with the file of the day; when there can be none, the one that is open goes on.
    fn reopen(&mut self) {
        if let Ok(file) = self.folder.append(&name_of(self.kind, self.day)) {
            self.file = file;
            self.folder.prune(self.kind, kept_max());
        }
    }

    /// Begins the next file when this one is full, unless another process has, or when this one was removed.
    fn rotate(&mut self, second: u64) {
        let Ok(stat) = rustix::fs::fstat(&self.file) else { return };
        if size_of(&stat) < self.file_max.min(kept_max() / 4) && stat.st_nlink > 0 {
            return;
        }
        let name = name_of(self.kind, self.day);
        let is_ours = |other: Stat| (other.st_dev, other.st_ino) == (stat.st_dev, stat.st_ino);
        if self.folder.stat(&name).is_some_and(is_ours) && !self.rename(&name, second, is_ours) {
            return;
        }
        self.reopen();
    }

    /// Gives the full file its name; `false` when it keeps the one it has for now.
    fn rename(&self, name: &str, second: u64, is_ours: impl Fn(Stat) -> bool) -> bool {
        let time = format!("{:02}{:02}{:02}", second / 3_600, second / 60 % 60, second % 60);
        let full = format!("{}-{time}.log", name.trim_end_matches(".log"));
        let folder = &self.folder.0;
        // One process at a time, or the second would put the file that the first has just begun over the full one.
        if rustix::fs::flock(folder, FlockOperation::NonBlockingLockExclusive).is_err() {
            return false;
        }
        // A second full one in one second has no name of its own: it goes on until the next.
        let is_renamed = self.folder.stat(name).is_some_and(is_ours)
            && self.folder.stat(&full).is_none()
            && rustix::fs::renameat(folder, name, folder, &full).is_ok();
        let _ = rustix::fs::flock(folder, FlockOperation::Unlock);
        is_renamed
    }
}

impl Write for DailyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (day, second) = now();
        if day != self.day {
            self.day = day;
            self.reopen();
        }
        self.rotate(second);
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes each event as one line of plain text: it gets one event at a time, whole.
#[derive(Debug)]
pub struct OneLine<W>(pub W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if text.iter().all(|byte| (0x20..0x7f).contains(byte)) {
            self.0.write_all(bytes)?;
        } else {
            let mut line = escaped(&String::from_utf8_lossy(text));
            if text.len() < bytes.len() {
                line.push('\n');
            }
            self.0.write_all(line.as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes each event, an object of JSON, as one line that names the process: it gets one event at a time, whole.
#[derive(Debug)]
pub struct JsonLine<W> {
    /// Where to.
    pub to: W,
    /// Id of the process.
    pub pid: u32,
}

impl<W: Write> Write for JsonLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(bytes));
        let members = text.strip_prefix('{').unwrap_or(&text);
        // What its texts hold of this kind has been left as it was: JSON minds only the first 32 characters.
        let members = escaped_with(members, |character, line| {
            let _ = write!(line, "\\u{:04x}", u32::from(character));
        });
        self.to.write_all(format!("{{\"pid\":{},{members}\n", self.pid).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// With what breaks lines, moves cursors or turns the direction of text written out.
fn escaped(text: &str) -> String {
    escaped_with(text, |character, line| line.extend(character.escape_default()))
}

fn escaped_with(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut line = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        let turns = matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns {
            escape(character, &mut line);
        } else {
            line.push(character);
        }
    }
    line
}

/// The day, and the second of it.
fn now() -> (u64, u64) {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    (seconds / DAY, seconds % DAY)
}

/// `KIND.YEAR-MONTH-DAY.log`, by the calendar of UTC.
fn name_of(kind: &str, day: u64) -> String {
    // Howard Hinnant's `civil_from_days`, whose year begins in March.
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{kind}.{year:04}-{month:02}-{day:02}.log")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (day, date) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (20_779, "2026-11-22"), (47_540, "2100-02-28")]
        {
            assert_eq!(name_of("baton", day), format!("baton.{date}.log"));
        }
    }

    #[test]
    fn an_event_is_one_line() {
        let mut written = Vec::new();
        let mut lines = OneLine(&mut written);
        lines.write_all(b"plain\n").unwrap();
        lines.write_all("a\n2026 ERROR forged\r\x1b[31m \u{85}\u{202e} \u{fc}\n".as_bytes()).unwrap();
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text, "plain\na\\n2026 ERROR forged\\r\\u{1b}[31m \\u{85}\\u{202e} \u{fc}\n");
    }

    #[test]
    fn an_event_in_json_is_one_line_of_it() {
        let mut written = Vec::new();
        let event = json!({ "message": "a\n\u{1b}[31m \u{85}\u{202e} \u{fc} \"pid\":7," });
        JsonLine { to: &mut written, pid: 42 }.write_all(format!("{event}\n").as_bytes()).unwrap();
        let text = String::from_utf8(written).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(!text.trim_end().contains(|it: char| it.is_control() || it == '\u{202e}'), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&read["pid"], &read["message"]), (&json!(42), &event["message"]));
    }

    #[test]
    fn a_link_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (logs, elsewhere) = (place.path().join("logs"), place.path().join("elsewhere"));
        std::fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &logs).unwrap();
        assert!(DailyFile::open(&logs, "baton").is_err(), "the folder is a link");
        std::fs::remove_file(&logs).unwrap();
        let mut file = DailyFile::open(&logs, "baton").unwrap();
        file.write_all(b"x\n").unwrap();
        let folder = LogFolder::open(&logs).unwrap();
        let name = folder.names("baton").unwrap().pop().unwrap();
        let mode = std::fs::metadata(logs.join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::rename(logs.join(&name), elsewhere.join("target")).unwrap();
        symlink(elsewhere.join("target"), logs.join(&name)).unwrap();
        assert!(
            DailyFile::open(&logs, "baton").is_err() && folder.read(&name).is_err(),
            "the file is a link"
        );
        std::fs::remove_file(logs.join(&name)).unwrap();
        std::fs::hard_link(elsewhere.join("target"), logs.join(&name)).unwrap();
        assert!(DailyFile::open(&logs, "baton").is_err(), "the file has another name");
    }

    #[test]
    fn the_oldest_go() {
        let place = tempfile::tempdir().unwrap();
        for day in 10..20 {
            std::fs::write(place.path().join(format!("baton.2020-01-{day}.log")), "").unwrap();
        }
        std::fs::write(place.path().join("agent.2020-01-01.log"), "").unwrap();
        drop(DailyFile::open(place.path(), "baton").unwrap());
        let folder = LogFolder::open(place.path()).unwrap();
        assert_eq!(folder.names("baton").unwrap().len(), DAYS_MAX);
        assert_eq!(folder.names("agent").unwrap().len(), 1);
        // Of one day as many as there is room for, and the newest always.
        for hour in 10..20 {
            std::fs::write(place.path().join(format!("agent.2020-01-01-{hour}0000.log")), [b'x'; 100])
                .unwrap();
        }
        folder.prune("agent", 350);
        let of_day =
            |names: &[&str]| names.iter().map(|it| format!("agent.2020-01-01{it}.log")).collect::<Vec<_>>();
        assert_eq!(folder.names("agent").unwrap(), of_day(&["-170000", "-180000", "-190000", ""]));
        folder.prune("agent", 0);
        assert_eq!(folder.names("agent").unwrap(), of_day(&[""]));
    }

    #[test]
    fn a_full_file_is_followed_by_another_and_nobody_loses_a_line() {
        let place = tempfile::tempdir().unwrap();
        let open = || DailyFile::with_max(place.path(), "agent", 2_560).unwrap();
        let (mut one, mut other) = (open(), open());
        for number in 0..100 {
            // Whole, as events come.
            one.write_all(format!("one {number}\n").as_bytes()).unwrap();
            other.write_all(format!("other {number} {}\n", "x".repeat(80)).as_bytes()).unwrap();
        }
        let folder = LogFolder::open(place.path()).unwrap();
        let names = folder.names("agent").unwrap();
        let texts: Vec<String> =
            names.iter().map(|name| std::fs::read_to_string(place.path().join(name)).unwrap()).collect();
        assert!(names.len() > 1 && texts[0].len() < 3_000, "{names:?}");
        assert!(texts[1..].iter().any(|text| text.contains("one ")), "both go on in the next");
        let whole = texts.concat();
        for writer in ["one", "other"] {
            let prefix = format!("{writer} ");
            let numbers = whole.lines().filter_map(|line| line.strip_prefix(&prefix)?.split(' ').next());
            let numbers: Vec<usize> = numbers.map(|number| number.parse().unwrap()).collect();
            assert_eq!(numbers, (0..100).collect::<Vec<_>>(), "in their order, read file by file");
        }
    }

    #[test]
    fn a_removed_file_is_begun_anew() {
        let place = tempfile::tempdir().unwrap();
        let mut file = DailyFile::open(place.path(), "agent").unwrap();
        let folder = LogFolder::open(place.path()).unwrap();
        let name = folder.names("agent").unwrap().pop().unwrap();
        file.write_all(b"one\n").unwrap();
        std::fs::remove_file(place.path().join(&name)).unwrap();
        file.write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(place.path().join(&name)).unwrap(), "two\n");
    }

    #[test]
    fn writers_that_find_it_full_at_once_lose_no_line() {
        let place = tempfile::tempdir().unwrap();
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let (place, start) = (&place, &start);
                scope.spawn(move || {
                    let mut file = DailyFile::with_max(place.path(), "agent", 64).unwrap();
                    start.wait();
                    for number in 0..200 {
                        file.write_all(format!("{writer} {number}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let folder = LogFolder::open(place.path()).unwrap();
        let names = folder.names("agent").unwrap();
        let texts = names.iter().map(|name| std::fs::read_to_string(place.path().join(name)).unwrap());
        assert_eq!(texts.map(|text| text.lines().count()).sum::<usize>(), 8 * 200, "{names:?}");
    }
}
