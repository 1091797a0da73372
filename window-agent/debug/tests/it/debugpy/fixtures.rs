//! The programs that are debugged, and the processes that come of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait in a test; nothing takes that long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn fixture(name: &str) -> PathBuf {
    workspace_root().join("tests/fixtures/debug").join(name)
}

pub(crate) fn workspace_root() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.into_iter().find(|folder| folder.join("Cargo.lock").is_file()).unwrap().to_owned()
}

/// The interpreter with debugpy that `cargo xtask test` installs.
pub(crate) fn python() -> PathBuf {
    let given = std::env::var_os("BATON_TEST_PYTHON").map(PathBuf::from);
    let python = given.unwrap_or_else(|| workspace_root().join(".cache/py/bin/python"));
    assert!(python.exists(), "there is no {}: `cargo xtask test` installs it", python.display());
    python
}

/// A copy of a fixture under a name that no other test's processes have.
pub(crate) fn unique(program: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(program);
    std::fs::copy(fixture(program), &copy).unwrap();
    (folder, copy.to_str().unwrap().to_owned())
}

/// Living processes whose command line contains `needle`.
pub(crate) fn processes_with(needle: &str) -> BTreeSet<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_living = |process: &PathBuf| {
        let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X'])
    };
    processes
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(process.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (line.contains(needle) && is_living(&process.path())).then_some(pid)
        })
        .collect()
}

/// Waits until no process whose command line contains `needle` lives; the bound is the fault matrix's.
pub(crate) async fn until_gone(needle: &str) {
    let gone = async {
        while !processes_with(needle).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let bound = Duration::from_secs(5);
    assert!(tokio::time::timeout(bound, gone).await.is_ok(), "still alive: {:?}", processes_with(needle));
}

/// The orphan-to-be of `spawns.py`: a process in a session of its own.
pub(crate) async fn orphan_of(program: &str) -> i32 {
    let found = async {
        loop {
            let candidates = processes_with("time.sleep(600)");
            match candidates.into_iter().find(|pid| is_child_of(*pid, program)) {
                Some(orphan) => return orphan,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the program starts a process")
}

fn is_child_of(pid: i32, program: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(1).unwrap_or("0").to_owned();
    std::fs::read_to_string(format!("/proc/{parent}/cmdline")).unwrap_or_default().contains(program)
}
