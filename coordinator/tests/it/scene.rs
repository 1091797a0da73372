//! A state folder of its own, commands run on it, and an end for everything they started.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use baton_link::home::Home;
use baton_link::process::{is_running, kill_verified};
use baton_proto::discovery::Discovery;
use baton_proto::start::Waiting;
use serde_json::Value;

pub(crate) const BATON: &str = env!("CARGO_BIN_EXE_baton");

/// Longer than anything here takes on a loaded machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Scene {
    dir: tempfile::TempDir,
    port: String,
}

impl Scene {
    /// Any free port, kept for later starts.
    pub(crate) fn new() -> Self {
        Self::on_port(0)
    }

    pub(crate) fn on_port(port: u16) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), port: port.to_string() }
    }

    pub(crate) fn home_path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A folder beside the state folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn home(&self) -> Home {
        Home::open(self.home_path()).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BATON);
        command.args(args).env("BATON_HOME", self.home_path()).env("BATON_PORT", &self.port);
        command.env("HOME", self.dir.path()).env_remove("BATON_LOG").env_remove("XDG_CONFIG_HOME");
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().unwrap())
    }

    /// `baton up`, and where it runs.
    pub(crate) fn up(&self) -> Discovery {
        let answer = self.run(&["up"]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let discovery = self.home().discovery().expect("a running coordinator has a discovery file");
        assert_eq!(answer.stdout.trim(), format!("http://127.0.0.1:{}/mcp", discovery.port));
        discovery
    }

    /// Everything the coordinators of this folder logged.
    pub(crate) fn logs(&self) -> String {
        let files = std::fs::read_dir(self.home_path().join("logs")).unwrap();
        files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A test may have made the folder untrusted; what runs is ended all the same.
        let text = std::fs::read(self.home_path().join("discovery.json")).unwrap_or_default();
        if let Ok(discovery) = serde_json::from_slice::<Discovery>(&text) {
            kill_verified(discovery.pid, discovery.pid_start);
        }
        let text = std::fs::read(self.home_path().join("waiting.json")).unwrap_or_default();
        if let Ok(waiting) = serde_json::from_slice::<Waiting>(&text) {
            kill_verified(waiting.pid, waiting.pid_start);
        }
    }
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// Waits until `is_true`, and says how long that took.
pub(crate) fn await_that(what: &str, mut is_true: impl FnMut() -> bool) -> Duration {
    let since = Instant::now();
    while !is_true() {
        assert!(since.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    since.elapsed()
}

pub(crate) fn await_end(discovery: &Discovery) -> Duration {
    await_that("the coordinator is shutting down", || !is_running(discovery.pid, discovery.pid_start))
}

pub(crate) fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::symlink_metadata(path).unwrap().permissions()) & 0o777
}
