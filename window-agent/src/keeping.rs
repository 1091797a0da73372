//! Breakpoints outlast their agent: they are written down with each change, and the next agent of the window begins with
//! them. When the window is closed they go; an editor keeps its own, and one that opens the window again soon has only
//! loaded it anew, so that they are still whose they were. What a killed window left is kept for a month, if it should
//! come back.
//!
//! **Invariant:** the file of a window whose agent runs is that agent's: nobody else removes it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use baton_agent_debug::Kept;
use baton_link::home::Home;
use baton_link::process::own_id;
use baton_proto::ids::WindowId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tracing::warn;

use crate::identity::Holder;
use crate::membership::Ended;

/// The folder of their files, in the state folder.
const FOLDER: &str = "breakpoints";
/// Bytes of a file: some thousand breakpoints.
const MAX_LEN: u64 = 1024 * 1024;
/// What a window that did not come back has left is removed after this time.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A window that an editor closes and opens again within this time was loaded anew: extensions were updated, or the user
/// reloaded it. Later nobody's programs are there any more, and what the editor has is the user's.
const RELOADED_WITHIN: Duration = Duration::from_secs(5 * 60);

/// The file with the breakpoints of one window.
#[derive(Clone, Debug)]
pub struct Keeping {
    home: Home,
    name: String,
    agent: Holder,
    is_editors: bool,
    /// It is the next agent's; locked while this one writes.
    is_over: Arc<Mutex<bool>>,
}

/// What stands in the file.
#[derive(Default, Serialize, Deserialize)]
struct Written {
    /// The agent that wrote it.
    #[serde(flatten)]
    agent: Holder,
    /// Its editor closed the window.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_closed: bool,
    #[serde(flatten)]
    kept: Kept,
}

impl Keeping {
    /// That of this window, which may be an editor's, in the state folder.
    pub fn of(home: &Home, window: &WindowId, is_editors: bool) -> Self {
        let name = format!("{FOLDER}/{window}.json");
        Self { home: home.clone(), name, agent: Holder::of(own_id()), is_editors, is_over: Arc::default() }
    }

    /// What the agent before has written down; from now on it is this one's. Of a file that cannot be read nothing is kept.
    pub fn begin(&self) -> Kept {
        let is_over =
            |written: &Written| written.is_closed && self.age().is_none_or(|age| age > RELOADED_WITHIN);
        let kept = match read(&self.home, &self.name) {
            Ok(written) if is_over(&written) => Kept::default(),
            Ok(written) => written.kept,
            Err(error) => {
                warn!(%error, file = %self.name, "the breakpoints of before cannot be read");
                Kept::default()
            }
        };
        self.write_or_warn(&kept);
        self.remove_old();
        kept
    }

    /// Writes them down with each change, for as long as the debugger is there.
    pub async fn follow(self, mut kept: watch::Receiver<Kept>) {
        while kept.changed().await.is_ok() {
            let now = kept.borrow_and_update().clone();
            let keeping = self.clone();
            // A panic has been said already.
            let _ = tokio::task::spawn_blocking(move || keeping.write_while_own(&now)).await;
        }
    }

    fn write_while_own(&self, kept: &Kept) {
        let is_over = self.is_over.lock();
        if !*is_over {
            self.write_or_warn(kept);
        }
    }

    /// This agent ends: when the window goes on in another one, what is not written yet is written now, and nothing
    /// any more after that.
    pub fn end(&self, ended: Ended, kept: &watch::Receiver<Kept>) {
        let mut is_over = self.is_over.lock();
        if std::mem::replace(&mut *is_over, true) {
            return;
        }
        match ended {
            Ended::Restart => self.write_or_warn(&kept.borrow()),
            Ended::Shutdown if self.is_editors => self.warn_of(self.write(&kept.borrow(), true)),
            Ended::Shutdown => self.forget(),
            // The file is the other agent's.
            Ended::Superseded => {}
        }
    }

    fn forget(&self) {
        // What is not there needs no removal; another reason does no harm.
        let _ = std::fs::remove_file(self.home.path().join(&self.name));
    }

    /// Since when nobody has written it; none when that lies ahead.
    fn age(&self) -> Option<Duration> {
        let modified = std::fs::metadata(self.home.path().join(&self.name)).and_then(|file| file.modified());
        SystemTime::now().duration_since(modified.ok()?).ok()
    }

    fn write_or_warn(&self, kept: &Kept) {
        self.warn_of(self.write(kept, false));
    }

    fn warn_of(&self, written: io::Result<()>) {
        if let Err(error) = written {
            warn!(%error, file = %self.name, "breakpoints cannot be written down: a restart would lose them");
        }
    }

    fn write(&self, kept: &Kept, is_closed: bool) -> io::Result<()> {
        if kept.is_empty() {
            self.forget();
            return Ok(());
        }
        let bytes = serde_json::to_vec(&Written { agent: self.agent, is_closed, kept: kept.clone() })?;
        if bytes.len() as u64 > MAX_LEN {
            return Err(io::Error::other(format!("they take more than {MAX_LEN} bytes")));
        }
        match DirBuilder::new().mode(0o700).create(self.home.path().join(FOLDER)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.home.replace(&self.name, &bytes),
        }
    }

    /// Windows that were killed and never came back left these, and writers that were killed their temporary files.
    fn remove_old(&self) {
        let Ok(entries) = std::fs::read_dir(self.home.path().join(FOLDER)) else { return };
        for entry in entries.flatten() {
            let modified = || entry.metadata().and_then(|meta| meta.modified()).ok();
            let age = || SystemTime::now().duration_since(modified()?).ok();
            let name = format!("{FOLDER}/{}", entry.file_name().to_string_lossy());
            let is_used = || read(&self.home, &name).is_ok_and(|written| written.agent.is_alive());
            if age().is_some_and(|age| age > MAX_AGE) && !is_used() {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn read(home: &Home, name: &str) -> io::Result<Written> {
    let bytes = home.read(name, MAX_LEN)?;
    bytes.map_or_else(|| Ok(Written::default()), |bytes| Ok(serde_json::from_slice(&bytes)?))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use baton_agent_debug::types::SetBreakpoint;

    fn some() -> Kept {
        let line = SetBreakpoint { path: "/a.py".into(), line: 1, ..SetBreakpoint::default() };
        Kept { lines: vec![line], ..Kept::default() }
    }

    fn of(home: &Home, window: &str) -> Keeping {
        Keeping::of(home, &window.parse().unwrap(), false)
    }

    #[test]
    fn they_are_there_again_until_the_window_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let keeping = of(&home, "w1");
        assert!(keeping.begin().is_empty());
        keeping.write(&some(), false).unwrap();
        assert_eq!(keeping.begin(), some());
        assert!(of(&home, "w2").begin().is_empty());
        keeping.write(&Kept::default(), false).unwrap();
        assert!(!dir.path().join("breakpoints/w1.json").exists());
        keeping.write(&some(), false).unwrap();
        let many = Kept { lines: vec![SetBreakpoint::default(); 20_000], ..Kept::default() };
        assert!(keeping.write(&many, false).is_err());
        assert_eq!(keeping.begin(), some(), "what is too much leaves what was there");
        keeping.forget();
        assert!(keeping.begin().is_empty());
    }

    #[test]
    fn a_window_that_its_editor_loads_anew_has_them_still() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let file = dir.path().join("breakpoints/w1.json");
        let (_sender, kept) = watch::channel(some());
        let again = || Keeping { is_editors: true, ..of(&home, "w1") };
        let keeping = again();
        keeping.end(Ended::Shutdown, &kept);
        assert_eq!(again().begin(), some());
        keeping.write_while_own(&Kept::default());
        keeping.end(Ended::Shutdown, &watch::channel(Kept::default()).1);
        assert_eq!(again().begin(), some(), "what the agent before still does changes nothing");
        let keeping = again();
        keeping.end(Ended::Shutdown, &kept);
        let long_ago = SystemTime::now() - 2 * RELOADED_WITHIN;
        File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
        assert!(keeping.begin().is_empty(), "opened another day");
        of(&home, "w1").end(Ended::Shutdown, &kept);
        assert!(!file.exists(), "nobody else keeps them");
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        fs::write(dir.path().join("breakpoints/w1.json"), "{\"lines\":[{").unwrap();
        let keeping = of(&home, "w1");
        assert!(keeping.begin().is_empty());
        keeping.write(&some(), false).unwrap();
        assert_eq!(keeping.begin(), some());
    }

    #[test]
    fn old_files_go_unless_they_are_this_windows_or_their_agent_runs() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let path = |window: &str| dir.path().join(format!("breakpoints/{window}.json"));
        for window in ["own", "running", "gone", "fresh"] {
            let mut keeping = of(&home, window);
            if window != "running" {
                keeping.agent = Holder::default();
            }
            keeping.write(&some(), false).unwrap();
        }
        fs::write(dir.path().join("state.json"), "{}").unwrap();
        let old = SystemTime::now() - 2 * MAX_AGE;
        for path in [path("own"), path("running"), path("gone"), dir.path().join("state.json")] {
            File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        }
        assert_eq!(of(&home, "own").begin(), some(), "a window that slept for long");
        for window in ["own", "running", "fresh"] {
            assert!(path(window).exists(), "{window}");
        }
        assert!(!path("gone").exists() && dir.path().join("state.json").exists());
    }
}
