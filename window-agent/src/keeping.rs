//! Breakpoints outlast their agent: they are written down with each change, and the next agent of the window begins with
//! them. When the window is closed they go.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use baton_agent_debug::Kept;
use baton_link::home::Home;
use baton_proto::ids::WindowId;
use tokio::sync::watch;
use tracing::warn;

use crate::membership::Ended;

/// The folder of their files, in the state folder.
const FOLDER: &str = "breakpoints";
/// Bytes of a file: some thousand breakpoints.
const MAX_LEN: u64 = 1024 * 1024;
/// What a window that did not come back has left is removed after this time.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The file with the breakpoints of one window.
#[derive(Clone, Debug)]
pub struct Keeping {
    home: Home,
    name: String,
}

impl Keeping {
    /// That of this window, in the state folder.
    pub fn of(home: &Home, window: &WindowId) -> Self {
        Self { home: home.clone(), name: format!("{FOLDER}/{window}.json") }
    }

    /// What the agent before has written down. Of a file that cannot be read nothing is kept.
    pub fn read(&self) -> Kept {
        remove_old(&self.home.path().join(FOLDER));
        let read = || -> io::Result<Kept> {
            let bytes = self.home.read(&self.name, MAX_LEN)?;
            bytes.map_or_else(|| Ok(Kept::default()), |bytes| Ok(serde_json::from_slice(&bytes)?))
        };
        read().unwrap_or_else(|error| {
            warn!(%error, file = %self.name, "the breakpoints of before cannot be read");
            Kept::default()
        })
    }

    /// Writes them down with each change, for as long as the debugger is there.
    pub async fn follow(self, mut kept: watch::Receiver<Kept>) {
        while kept.changed().await.is_ok() {
            let now = kept.borrow_and_update().clone();
            let keeping = self.clone();
            let written = tokio::task::spawn_blocking(move || keeping.write(&now)).await;
            if let Ok(Err(error)) = written {
                warn!(%error, file = %self.name, "breakpoints cannot be written down: a restart would lose them");
            }
        }
    }

    /// This agent ends: when the window goes on in another one, what is not written yet is written now.
    pub fn end(&self, ended: Ended, kept: &watch::Receiver<Kept>) {
        match ended {
            Ended::Restart => {
                if let Err(error) = self.write(&kept.borrow()) {
                    warn!(%error, file = %self.name, "breakpoints cannot be written down");
                }
            }
            Ended::Shutdown => self.forget(),
            // The file is the other agent's.
            Ended::Superseded => {}
        }
    }

    fn forget(&self) {
        // What is not there needs no removal; another reason does no harm.
        let _ = std::fs::remove_file(self.home.path().join(&self.name));
    }

    fn write(&self, kept: &Kept) -> io::Result<()> {
        if kept.is_empty() {
            self.forget();
            return Ok(());
        }
        let bytes = serde_json::to_vec(kept)?;
        if bytes.len() as u64 > MAX_LEN {
            return Err(io::Error::other(format!("they take more than {MAX_LEN} bytes")));
        }
        match DirBuilder::new().mode(0o700).create(self.home.path().join(FOLDER)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.home.replace(&self.name, &bytes),
        }
    }
}

/// Windows that were killed and never came back left these, and writers that were killed their temporary files.
fn remove_old(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let modified = || entry.metadata().and_then(|meta| meta.modified()).ok();
        let age = || SystemTime::now().duration_since(modified()?).ok();
        if age().is_some_and(|age| age > MAX_AGE) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use baton_agent_debug::types::SetBreakpoint;

    #[test]
    fn they_are_there_again_until_the_window_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let keeping = Keeping::of(&home, &"w1".parse().unwrap());
        assert!(keeping.read().is_empty());
        let line = SetBreakpoint { path: "/a.py".into(), line: 1, ..SetBreakpoint::default() };
        let kept = Kept { lines: vec![line], ..Kept::default() };
        keeping.write(&kept).unwrap();
        assert_eq!(keeping.read(), kept);
        assert!(Keeping::of(&home, &"w2".parse().unwrap()).read().is_empty());
        keeping.write(&Kept::default()).unwrap();
        assert!(!dir.path().join("breakpoints/w1.json").exists());
        keeping.write(&kept).unwrap();
        let many = Kept { lines: vec![SetBreakpoint::default(); 20_000], ..Kept::default() };
        assert!(keeping.write(&many).is_err());
        assert_eq!(keeping.read(), kept, "what is too much leaves what was there");
        keeping.forget();
        assert!(keeping.read().is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_nothing_and_what_is_old_goes() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        fs::write(dir.path().join("breakpoints/w1.json"), "{\"lines\":[{").unwrap();
        fs::write(dir.path().join("breakpoints/w2.json"), "{}").unwrap();
        fs::write(dir.path().join("state.json"), "{}").unwrap();
        let old = SystemTime::now() - 2 * MAX_AGE;
        for name in ["breakpoints/w2.json", "state.json"] {
            File::options().write(true).open(dir.path().join(name)).unwrap().set_modified(old).unwrap();
        }
        assert!(Keeping::of(&home, &"w1".parse().unwrap()).read().is_empty());
        assert!(!dir.path().join("breakpoints/w2.json").exists() && dir.path().join("state.json").exists());
    }
}
