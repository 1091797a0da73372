//! The test runner of the Rust tests: cargo-nextest, the machine's own or installed into `.cache/nextest`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::junit;
use crate::report::{Case, Failure, Outcome};
use crate::run::{command, output_of, say};
use crate::suites::Suite;

/// The version that is installed where a machine has none.
const VERSION: &str = "0.9.143";

/// Where the generated cases of proptest begin; another number searches elsewhere.
const PROPTEST_SEED: &str = "PROPTEST_RNG_SEED";

/// A workspace whose tests nextest runs.
pub(crate) struct Runner {
    root: PathBuf,
    /// cargo, or a cargo-nextest of its own.
    program: PathBuf,
    /// Which targets are built, as cargo takes it.
    targets: &'static [&'static str],
    variables: Vec<(&'static str, std::ffi::OsString)>,
    /// Tests that are ignored, and no others.
    runs_ignored: bool,
    /// Beside what others run, it takes the time that they leave.
    is_modest: bool,
}

/// What a person's `cargo test` builds.
pub(crate) const USUAL_TARGETS: [&str; 4] = ["--workspace", "--lib", "--bins", "--tests"];
/// Those of the simulation.
pub(crate) const SIM_TARGETS: [&str; 3] = ["--workspace", "--test", "worlds"];
/// The adapters' tests are no part of it, and cargo forgets a target that is named beside `--tests`.
pub(crate) const ADAPTERS_TARGETS: [&str; 3] = ["--workspace", "--test", "adapters"];

impl Runner {
    /// One for the workspace at `root`; installs nextest if there is none.
    pub(crate) fn new(root: &Path, targets: &'static [&'static str], cache: &Path) -> Result<Self> {
        let program = find(cache)?;
        Ok(Self {
            root: root.to_owned(),
            program,
            targets,
            variables: Vec::new(),
            runs_ignored: false,
            is_modest: false,
        })
    }

    /// Tests see this variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<std::ffi::OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Runs those tests alone that are ignored.
    pub(crate) fn ignored(self) -> Self {
        Self { runs_ignored: true, ..self }
    }

    /// Takes the time that others leave.
    pub(crate) fn modest(self) -> Self {
        Self { is_modest: true, ..self }
    }

    fn command(&self, verb: &str) -> Command {
        let mut nextest = if self.is_modest {
            let mut nice = command("nice");
            nice.args(["-n", "19"]).arg(&self.program);
            nice
        } else {
            command(&self.program)
        };
        nextest.current_dir(&self.root).args(["nextest", verb]).args(self.targets);
        nextest.envs(self.variables.iter().cloned());
        // The same cases each time: what chance finds is not to be found by whoever changes something else.
        if std::env::var_os(PROPTEST_SEED).is_none() {
            nextest.env(PROPTEST_SEED, "1");
        }
        nextest
    }

    /// Runs the tests that `filter` (nextest's language) chooses; what they did.
    /// Whatever keeps them from running, a compiler's error, is the one case that failed.
    pub(crate) fn run(&self, filter: &str) -> Result<Vec<Case>> {
        let report = self.root.join("target/nextest/default/junit.xml");
        let _ = std::fs::remove_file(&report);
        let mut nextest = self.command("run");
        nextest.args(["--no-fail-fast", "--no-tests", "pass", "--filterset", filter]);
        if self.runs_ignored {
            nextest.args(["--run-ignored", "only"]);
        }
        let status =
            nextest.status().with_context(|| format!("{} cannot be started", self.program.display()))?;
        if !report.is_file() && status.success() {
            return Ok(Vec::new());
        }
        let told = junit::read(&report).unwrap_or_default();
        let mut cases: Vec<Case> = told.into_iter().map(case).collect();
        if !status.success() && !cases.iter().any(Case::has_failed) {
            let words = format!("nextest ended with {status}; what it printed is above");
            cases.push(Case {
                suite: Suite::Unit,
                home: String::new(),
                name: "the test runner".to_owned(),
                seconds: 0.0,
                outcome: Outcome::Failed(Failure::new(words)),
            });
        }
        Ok(cases)
    }

    /// Runs one test alone.
    pub(crate) fn run_alone(&self, case: &Case) -> Result<Outcome> {
        let filter = format!("binary_id(={}) & test(={})", case.home, case.name);
        let cases = self.run(&filter)?;
        let same = cases.into_iter().find(|again| again.name == case.name);
        Ok(same
            .map_or_else(|| Outcome::Failed(Failure::new("it was not found again")), |again| again.outcome))
    }

    /// All tests, as `(binary, name)`. Builds them.
    pub(crate) fn list(&self) -> Result<Vec<(String, String)>> {
        let mut list = self.command("list");
        list.args(["--message-format", "json"]).stderr(std::process::Stdio::inherit());
        let output = list.output().context("nextest cannot be started")?;
        anyhow::ensure!(output.status.success(), "the tests cannot be built; what cargo printed is above");
        let all: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let binaries = all["rust-suites"].as_object().context("nextest lists no tests")?;
        let names = binaries.iter().flat_map(|(binary, suite)| {
            let tests = suite["testcases"].as_object().into_iter().flatten();
            tests.map(move |(name, _)| (binary.clone(), name.clone()))
        });
        Ok(names.collect())
    }
}

fn case(told: junit::Told) -> Case {
    let suite = Suite::of_binary(&told.home);
    Case { suite, home: told.home, name: told.name, seconds: told.seconds, outcome: told.outcome }
}

/// `cargo`, where it knows nextest; else the program in `.cache`, which is built when it is missing.
fn find(cache: &Path) -> Result<PathBuf> {
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if output_of(command(&cargo).args(["nextest", "--version"])).is_some() {
        return Ok(cargo);
    }
    let own = cache.join("nextest/bin/cargo-nextest");
    if !own.is_file() {
        say(&format!("building cargo-nextest {VERSION} into .cache/nextest: this takes some minutes, once"));
        let mut install = command(&cargo);
        install.args(["install", "cargo-nextest", "--locked", "--version", VERSION, "--root"]);
        crate::run::logged("cargo install cargo-nextest", install.arg(cache.join("nextest")))
            .context("is crates.io reachable from here? then run the same command again")?;
    }
    Ok(own)
}
