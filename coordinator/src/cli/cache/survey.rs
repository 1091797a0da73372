//! What Baton keeps on this machine, and what of it is needed.
//!
//! **Invariant:** nothing counts as not needed that a running program has, or that only the person can make again. No link
//! is followed but those by which Baton itself names what it installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use baton_link::folders;
use baton_link::home::Home;
use baton_link::process::is_running;
use baton_proto::record::{ENDING, FOLDER};
use serde::Deserialize;

/// Where all installations of a kind lie; each has a link with its plain name beside this folder.
const STORE: &str = ".store";
/// Held while something is installed there.
const STORE_LOCK: &str = ".lock";

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Logs,
    Breakpoints,
    Undo,
    Records,
    Leftovers,
    Adapters,
    Servers,
    OldInstalls,
}

/// Whether somebody needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A program has it, or it goes by itself in time.
    Used,
    /// It was downloaded, and would be again.
    Installed,
    /// Nobody does.
    None,
}

/// A file, or a folder with all that is in it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    /// Where all of its kind lie.
    pub(super) folder: PathBuf,
    pub(super) path: PathBuf,
    pub(super) n_files: u64,
    pub(super) n_bytes: u64,
    pub(super) changed: SystemTime,
    pub(super) need: Need,
    /// To be held while it is removed.
    pub(super) lock: Option<PathBuf>,
    /// Names of it that go with it.
    pub(super) links: Vec<PathBuf>,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Logs,
        Self::Breakpoints,
        Self::Undo,
        Self::Records,
        Self::Leftovers,
        Self::Adapters,
        Self::Servers,
        Self::OldInstalls,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Breakpoints => "breakpoints",
            Self::Undo => "changes that can be undone",
            Self::Records => "records of calls",
            Self::Leftovers => "damaged and unfinished files",
            Self::Adapters => "debug adapters",
            Self::Servers => "language servers",
            Self::OldInstalls => "old and unfinished installs",
        }
    }
}

/// Everything, by kind.
pub(super) fn all(home: &Home) -> Vec<Item> {
    let mut items = logs(&home.logs_path());
    items.extend(breakpoints(&home.path().join("breakpoints")));
    // The agents remove them after a day, and finish or undo by them what was left in the middle.
    let changes = folders::changes().unwrap_or_else(|| home.path().join("changes"));
    items.extend(entries(&changes).map(|path| item(Kind::Undo, &changes, path, Need::Used)));
    items.extend(records(&home.path().join(FOLDER)));
    items.extend(leftovers(home.path()));
    for (kind, name, variable) in
        [(Kind::Adapters, "adapters", "BATON_ADAPTERS"), (Kind::Servers, "servers", "BATON_SERVERS")]
    {
        items
            .extend(folders::installed(name, variable).into_iter().flat_map(|shelf| installed(kind, &shelf)));
    }
    items
}

/// Of each kind of log the newest one is being written.
fn logs(folder: &Path) -> Vec<Item> {
    let mut items: Vec<Item> = files(folder, |name| log_kind(name).is_some())
        .map(|path| item(Kind::Logs, folder, path, Need::None))
        .collect();
    let kind_of = |item: &Item| {
        let name = item.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        log_kind(&name).unwrap_or_default().to_owned()
    };
    let mut newest: BTreeMap<String, PathBuf> = BTreeMap::new();
    for item in &items {
        let known = newest.entry(kind_of(item)).or_default();
        // Their names begin with the kind, and go on with the day.
        *known = known.clone().max(item.path.clone());
    }
    for item in items.iter_mut().filter(|item| newest.values().any(|path| *path == item.path)) {
        item.need = Need::Used;
    }
    items
}

/// `KIND` of `KIND.DATE.log` and `KIND.DATE-TIME.log`.
fn log_kind(name: &str) -> Option<&str> {
    let mut parts = name.split('.');
    let (kind, date, end, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next());
    let (date, time) = date.split_at_checked("2026-11-22".len())?;
    let is_time = |digits: &str| digits.len() == 6 && digits.chars().all(|digit| digit.is_ascii_digit());
    let is_dated = date.parse::<jiff::civil::Date>().is_ok();
    let is_log = is_dated && (time.is_empty() || time.strip_prefix('-').is_some_and(is_time));
    let is_log = is_log && ["agent", "baton"].contains(&kind);
    (is_log && end == "log" && rest.is_none()).then_some(kind)
}

/// Those of a window whose agent runs are that agent's.
fn breakpoints(folder: &Path) -> Vec<Item> {
    /// Who wrote them.
    #[derive(Deserialize)]
    struct Written {
        pid: Option<u32>,
        #[serde(rename = "pidStart")]
        pid_start: Option<u64>,
    }
    let is_used = |path: &Path| {
        let written = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Written>(&bytes).ok());
        written.is_some_and(|by| by.pid.zip(by.pid_start).is_some_and(|(pid, start)| is_running(pid, start)))
    };
    let need = |path: &Path| if is_used(path) { Need::Used } else { Need::None };
    files(folder, |name| name.ends_with(".json"))
        .map(|path| {
            let need = need(&path);
            item(Kind::Breakpoints, folder, path, need)
        })
        .collect()
}

/// One that was not ended may be the one that runs.
fn records(folder: &Path) -> Vec<Item> {
    /// No record runs for longer without a change of a window or a call.
    const QUIET: Duration = Duration::from_secs(24 * 60 * 60);
    let mut items: Vec<Item> = files(folder, |name| name.ends_with(ENDING))
        .map(|path| item(Kind::Records, folder, path, Need::None))
        .collect();
    let is_ended = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().last().is_some_and(|line| line.starts_with("{\"kind\":\"end\""))
    };
    for item in items.iter_mut().filter(|item| item.changed.elapsed().is_ok_and(|age| age < QUIET)) {
        if !is_ended(&item.path) {
            item.need = Need::Used;
        }
    }
    items
}

/// What could not be read was set aside; what a writer was killed over was not finished.
fn leftovers(folder: &Path) -> Vec<Item> {
    /// A writer needs less.
    const WRITING: Duration = Duration::from_secs(60);
    let is_left = |name: &str| name.ends_with(".broken") || name.ends_with(".tmp");
    let mut items: Vec<Item> =
        files(folder, is_left).map(|path| item(Kind::Leftovers, folder, path, Need::None)).collect();
    for item in items.iter_mut().filter(|item| item.changed.elapsed().is_ok_and(|age| age < WRITING)) {
        item.need = Need::Used;
    }
    items
}

/// What Baton installed there: it lies in the store, and a link beside the store names it.
fn installed(kind: Kind, shelf: &Path) -> Vec<Item> {
    let store = shelf.join(STORE);
    let lock = store.join(STORE_LOCK);
    let mut links: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for link in entries(shelf).filter(|path| path.is_symlink()) {
        if let Ok(target) = fs::canonicalize(&link) {
            links.entry(target).or_default().push(link);
        }
    }
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    entries(&store)
        .filter(is_folder)
        .map(|path| {
            let links = fs::canonicalize(&path).ok().and_then(|path| links.remove(&path)).unwrap_or_default();
            let (kind, need) =
                if links.is_empty() { (Kind::OldInstalls, Need::None) } else { (kind, Need::Installed) };
            Item { lock: Some(lock.clone()), links, ..item(kind, shelf, path, need) }
        })
        .collect()
}

/// Whether what was installed is named by a link, or by none, as before; other things do not change.
pub(super) fn is_as_it_was(item: &Item) -> bool {
    let is_same = |now: &Item| now.path == item.path && now.need == item.need && now.links == item.links;
    item.lock.is_none() || installed(item.kind, &item.folder).iter().any(is_same)
}

/// The files of a folder of Baton's own with such names. Nothing where the folder, or the file, is a link: what it leads
/// to is somebody else's.
fn files(folder: &Path, is_ours: impl Fn(&str) -> bool) -> impl Iterator<Item = PathBuf> {
    let is_own = fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
    let is_ours = move |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(&is_ours)
            && fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
    };
    is_own.then(|| entries(folder)).into_iter().flatten().filter(is_ours)
}

/// What lies in a folder, by name; nothing where there is none.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter()
}

fn item(kind: Kind, folder: &Path, path: PathBuf, need: Need) -> Item {
    let changed = fs::symlink_metadata(&path).and_then(|meta| meta.modified());
    let (n_files, n_bytes) = measure(&path);
    Item {
        kind,
        folder: folder.to_owned(),
        path,
        n_files,
        n_bytes,
        // Of unknown age: not old.
        changed: changed.unwrap_or_else(|_| SystemTime::now()),
        need,
        lock: None,
        links: Vec::new(),
    }
}

/// Files and bytes, as they lie on the disk, of a file or a folder.
fn measure(path: &Path) -> (u64, u64) {
    let (mut n_files, mut n_bytes) = (0, 0);
    let mut to_do = vec![path.to_owned()];
    while let Some(path) = to_do.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            to_do.extend(entries(&path));
        } else {
            n_files += 1;
            n_bytes += meta.len();
        }
    }
    (n_files, n_bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use baton_link::process::{own_id, own_start_time};

    use super::*;

    fn needs(items: &[Item]) -> Vec<(String, Kind, Need)> {
        let name = |item: &Item| item.path.file_name().unwrap().to_string_lossy().into_owned();
        items.iter().map(|item| (name(item), item.kind, item.need)).collect()
    }

    #[test]
    fn the_newest_log_of_each_kind_is_used() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["agent.2026-11-26-101500.log", "agent.2026-11-26.log", "baton.2026-11-24.log"] {
            fs::write(dir.path().join(name), "line\n").unwrap();
        }
        let found = logs(dir.path());
        let needs: Vec<Need> = found.iter().map(|item| item.need).collect();
        assert_eq!(needs, [Need::None, Need::Used, Need::Used]);
        assert_eq!((found[0].n_files, found[0].n_bytes), (1, 5));
    }

    #[test]
    fn what_a_link_leads_to_and_what_is_named_otherwise_is_somebody_else_s() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, ours) = (dir.path().join("theirs"), dir.path().join("ours"));
        for folder in [&theirs, &ours] {
            fs::create_dir(folder).unwrap();
        }
        for name in ["agent.2026-11-25.log", "baton.2026-11-25.log", "a.json"] {
            fs::write(theirs.join(name), "{}").unwrap();
        }
        let by_link = dir.path().join("link");
        symlink(&theirs, &by_link).unwrap();
        assert!(logs(&by_link).is_empty() && breakpoints(&by_link).is_empty());
        for name in
            ["notes.log", "agent.log", "agent.today.log", "agent.2026-11-25.log.gz", "other.2026-11-25.log"]
        {
            fs::write(ours.join(name), "line").unwrap();
        }
        symlink(theirs.join("baton.2026-11-25.log"), ours.join("baton.2026-11-25.log")).unwrap();
        symlink(theirs.join("a.json"), ours.join("a.json")).unwrap();
        fs::create_dir(ours.join("b.json")).unwrap();
        assert!(logs(&ours).is_empty() && breakpoints(&ours).is_empty() && leftovers(&ours).is_empty());
    }

    #[test]
    fn breakpoints_of_a_window_that_runs_stay() {
        let dir = tempfile::tempdir().unwrap();
        let ours = format!("{{\"pid\":{},\"pidStart\":{},\"lines\":[]}}", own_id(), own_start_time());
        fs::write(dir.path().join("a.json"), ours).unwrap();
        fs::write(dir.path().join("b.json"), r#"{"pid":1,"pidStart":1,"lines":[]}"#).unwrap();
        fs::write(dir.path().join("c.json"), "{").unwrap();
        let needs: Vec<Need> = breakpoints(dir.path()).iter().map(|item| item.need).collect();
        assert_eq!(needs, [Need::Used, Need::None, Need::None]);
    }

    #[test]
    fn what_no_link_names_is_an_old_install_and_what_is_not_baton_s_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join(STORE);
        for folder in ["gdb-1", "gdb-2"] {
            fs::create_dir_all(store.join(folder).join("bin")).unwrap();
            fs::write(store.join(folder).join("bin/gdb"), "12345").unwrap();
        }
        fs::write(store.join(STORE_LOCK), "").unwrap();
        symlink(store.join("gdb-2"), dir.path().join("gdb")).unwrap();
        fs::create_dir(dir.path().join("of-the-user")).unwrap();
        symlink("/", dir.path().join("elsewhere")).unwrap();
        symlink("/", store.join("out")).unwrap();
        let found = installed(Kind::Adapters, dir.path());
        assert_eq!(
            needs(&found),
            [
                ("gdb-1".to_owned(), Kind::OldInstalls, Need::None),
                ("gdb-2".to_owned(), Kind::Adapters, Need::Installed),
            ]
        );
        assert_eq!((found[1].n_files, found[1].n_bytes), (1, 5));
        assert_eq!(found[1].links, [dir.path().join("gdb")]);
    }
}
