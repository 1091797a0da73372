//! Who clears up after an agent that was killed. In a simulation (`--cfg sim`) nobody has to.

use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Child;

use super::{MARK, new_command};

/// Waits for the end of this process, however it comes, and then kills what carries one of its marks, and removes the
/// folders that are named so: an agent that is killed cannot do it itself, and not every adapter ends with whom it
/// speaks to.
#[derive(Debug)]
pub struct Sentinel {
    /// Its standard input ends with us.
    _child: Child,
}

impl Sentinel {
    /// For marks that begin like this. It outlives us; the runtime reaps it when only the engine goes.
    pub fn spawn(beginning: &str) -> io::Result<Self> {
        /// Looks three times, for a program can fork meanwhile.
        const SCRIPT: &str = r#"read -r _
for _ in 1 2 3; do
    for found in $(grep -lsz "^$0" /proc/[0-9]*/environ); do
        pid=${found#/proc/}
        kill -9 "${pid%/environ}"
    done
done
rm -rf "${TMPDIR:-/tmp}/baton-${0#*=}"*"#;
        let mut command = new_command(Path::new("/bin/sh"));
        command.arg("-c").arg(SCRIPT).arg(format!("{MARK}={beginning}")).env_remove(MARK).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0).spawn().map(|child| Self { _child: child })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_sentinel_removes_the_folders_and_ends_the_processes_of_its_marks_alone() {
        let beginning = format!("sentinel-{}-", std::process::id());
        let folder = |name: &str| std::env::temp_dir().join(format!("baton-{name}"));
        let (ours, others) = (folder(&format!("{beginning}1")), folder(&format!("other-{beginning}1")));
        for made in [&ours, &others] {
            std::fs::create_dir(made).unwrap();
            std::fs::write(made.join("file"), "").unwrap();
        }
        let sleeper = |mark: String| {
            let mut command = new_command(Path::new("/bin/sleep"));
            command.arg("60").env(MARK, mark).kill_on_drop(true).spawn().unwrap()
        };
        let (mut marked, mut other) =
            (sleeper(format!("{beginning}1")), sleeper(format!("other-{beginning}1")));
        let mut sentinel = Sentinel::spawn(&beginning).unwrap();
        // As when the agent is killed.
        drop(sentinel._child.stdin.take());
        let ended = tokio::time::timeout(Duration::from_secs(20), sentinel._child.wait()).await;
        assert!(ended.expect("it ends").unwrap().success());
        marked.wait().await.unwrap();
        assert!(other.try_wait().unwrap().is_none() && others.join("file").exists(), "not ours");
        assert!(!ours.exists());
        std::fs::remove_dir_all(others).unwrap();
    }
}
