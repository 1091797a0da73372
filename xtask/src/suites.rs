//! `cargo xtask test`: which suites run, in which order, what runs again, and what a person reads at the end.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::install::{self, DEBUGPY};
use crate::nextest::{ADAPTERS_TARGETS, Runner, SIM_TARGETS, USUAL_TARGETS};
use crate::report::{Case, Failure, Outcome, keep_logs, summary};
use crate::run::{cache, command, root, say};
use crate::sweep::Sweeper;
use crate::{adapters, sim, task, windows};

/// A part of `cargo xtask test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Suite {
    /// Formatting and lints.
    Check,
    /// Tests of the crates, alone and with real debuggers and language servers.
    Unit,
    /// Real processes: rules, edge, debugging, faults, threats, bad input; and the house rules.
    It,
    /// Official MCP clients against the whole.
    Clients,
    /// The official conformance suite, both revisions.
    Conformance,
    /// Every debug adapter.
    Adapters,
    /// Worlds of the simulation.
    Sim,
    /// Real VS Code windows in Chromium.
    Windows,
}

impl Suite {
    pub(crate) const ALL: [Self; 8] = [
        Self::Check,
        Self::Unit,
        Self::It,
        Self::Clients,
        Self::Conformance,
        Self::Adapters,
        Self::Sim,
        Self::Windows,
    ];

    /// As the command line takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Unit => "unit",
            Self::It => "it",
            Self::Clients => "clients",
            Self::Conformance => "conformance",
            Self::Adapters => "adapters",
            Self::Sim => "sim",
            Self::Windows => "windows",
        }
    }

    /// The suite of a test binary, by nextest's name of it.
    pub(crate) fn of_binary(binary: &str) -> Self {
        match binary {
            "baton-tests::it" => Self::It,
            "baton-tests::clients" => Self::Clients,
            "baton-tests::conformance" => Self::Conformance,
            "baton-sim::worlds" => Self::Sim,
            binary if binary.ends_with("::adapters") => Self::Adapters,
            _ => Self::Unit,
        }
    }

    /// Its tests in nextest's language.
    fn filter(self) -> Option<&'static str> {
        match self {
            Self::Unit => Some(
                "not (binary(adapters) | binary(worlds) | binary_id(baton-tests::it) | binary_id(baton-tests::clients) \
                 | binary_id(baton-tests::conformance))",
            ),
            Self::It => Some("binary_id(baton-tests::it)"),
            Self::Clients => Some("binary_id(baton-tests::clients)"),
            Self::Conformance => Some("binary_id(baton-tests::conformance)"),
            Self::Adapters => Some("binary(adapters)"),
            Self::Sim => Some("binary(worlds)"),
            Self::Check | Self::Windows => None,
        }
    }
}

/// What a person asked for.
pub(crate) struct Wish {
    /// Suites, `quick`, and parts of tests' names.
    pub(crate) words: Vec<String>,
    /// Runs one test so many times.
    pub(crate) stress: Option<u32>,
}

/// More failures than this are no accident: nothing runs again.
const MAX_AGAIN: usize = 20;
/// How often a test that failed runs again, alone.
const TRIES: usize = 2;
/// A clone with its build and its downloads takes 9.
const ROOM_GB: u64 = 12;

/// `cargo xtask test [WORD...]`. False when a test failed.
pub(crate) fn test(wish: &Wish) -> Result<bool> {
    let began = Instant::now();
    let _sweeper = Sweeper::start()?;
    if let Some(times) = wish.stress {
        return stress(&wish.words, times);
    }
    if wish.words == ["quick"] {
        return quick(began);
    }
    let chosen = Chosen::of(&wish.words)?;
    warn_of_room();
    let mut cases = prepare(&chosen)?;
    chosen.ensure_known()?;
    let runners = Runners::new()?;
    let filter = chosen.filter(|suite| !matches!(suite, Suite::Adapters | Suite::Sim));
    if let Some(filter) = filter {
        say("running the tests");
        cases.extend(runners.usual.run(&filter)?);
    }
    if let Some(filter) = chosen.filter(|suite| suite == Suite::Adapters) {
        // After the others: each runs a compiler, a debugger and a program.
        say("running the tests of the debug adapters");
        cases.extend(runners.adapters.run(&filter)?);
    }
    // The windows' tests wait more than they compute, but not beside the others: what takes a browser and three extension
    // hosts takes the machine.
    let (worlds, of_windows) = std::thread::scope(|scope| {
        let filter = chosen.filter(|suite| suite == Suite::Sim);
        let sim = &runners.sim;
        let worlds = filter.map(|filter| scope.spawn(move || sim.run(&filter)));
        let of_windows = chosen.wants(Suite::Windows).then(|| windows::test(&chosen.words));
        let worlds = worlds.map(|worlds| worlds.join().unwrap_or_else(|_| bail!("the simulation panicked")));
        (worlds, of_windows)
    });
    cases.extend(worlds.transpose()?.unwrap_or_default());
    cases.extend(of_windows.transpose()?.unwrap_or_default());
    again(&runners, &mut cases);
    if chosen.words.is_empty() {
        let none: Vec<Case> = chosen.suites.iter().filter_map(|suite| empty(*suite, &cases)).collect();
        cases.extend(none);
    }
    Ok(finish(cases, began))
}

/// A suite of which no test ran tells no truth.
fn empty(suite: Suite, cases: &[Case]) -> Option<Case> {
    let words = "no test of this suite ran";
    cases.iter().all(|case| case.suite != suite).then(|| Case {
        suite,
        home: String::new(),
        name: "the whole suite".to_owned(),
        seconds: 0.0,
        outcome: Outcome::Failed(Failure::new(words)),
    })
}

/// The runners of all Rust tests.
struct Runners {
    usual: Runner,
    adapters: Runner,
    sim: Runner,
}

impl Runners {
    fn new() -> Result<Self> {
        let sim = runner_of(&SIM_TARGETS)?.with(sim::WRAPPER, sim::wrapper()).modest();
        Ok(Self { usual: runner()?, adapters: runner_of(&ADAPTERS_TARGETS)?, sim })
    }

    /// The one that has the tests of this suite.
    fn of(&self, suite: Suite) -> &Runner {
        match suite {
            Suite::Adapters => &self.adapters,
            Suite::Sim => &self.sim,
            _ => &self.usual,
        }
    }
}

/// The runner of all Rust tests but the adapters', with what they need in their environment.
pub(crate) fn runner() -> Result<Runner> {
    runner_of(&USUAL_TARGETS)
}

/// The same for these targets alone.
pub(crate) fn runner_of(targets: &'static [&'static str]) -> Result<Runner> {
    let runner = Runner::new(&root(), targets, &cache())?;
    let path = install::path_with_node()?;
    Ok(runner
        .with("BATON_TEST_PYTHON", DEBUGPY.python())
        .with("BATON_ADAPTERS", cache().join("adapters"))
        .with("PATH", path))
}

/// Prints the summary; whether nothing failed.
#[expect(clippy::print_stdout, reason = "the result of the task")]
pub(crate) fn finish(mut cases: Vec<Case>, began: Instant) -> bool {
    keep_logs(&mut cases, &root().join("target/test-logs"));
    let took = began.elapsed().as_secs();
    println!("\n{}", summary(&cases, took));
    !cases.iter().any(Case::has_failed)
}

/// The suites and names that the words mean.
struct Chosen {
    suites: Vec<Suite>,
    /// Parts of names; all tests when there is none.
    words: Vec<String>,
}

impl Chosen {
    fn of(words: &[String]) -> Result<Self> {
        let (suites, words): (Vec<_>, Vec<_>) =
            words.iter().partition(|word| Suite::from_str(word, true).is_ok());
        let mut suites: Vec<Suite> =
            suites.iter().filter_map(|word| Suite::from_str(word, true).ok()).collect();
        let words: Vec<String> = words.into_iter().cloned().collect();
        if suites.is_empty() {
            suites = Suite::ALL.to_vec();
            if !words.is_empty() {
                // A name alone: where it is known without a build, and otherwise in the runner's suites.
                let is_window =
                    words.iter().all(|word| !windows::matching(word).unwrap_or_default().is_empty());
                // The simulation is built for itself: its tests are meant when it is named.
                suites.retain(|suite| match suite {
                    Suite::Check | Suite::Sim => false,
                    suite => (*suite == Suite::Windows) == is_window,
                });
            }
        }
        if let Some(unknown) = words.iter().find(|word| *word == "quick") {
            bail!("`{unknown}` stands alone: `cargo xtask test quick`");
        }
        Ok(Self { suites, words })
    }

    fn wants(&self, suite: Suite) -> bool {
        self.suites.contains(&suite)
    }

    fn wants_any(&self, suites: &[Suite]) -> bool {
        suites.iter().any(|suite| self.wants(*suite))
    }

    /// Nextest's filter for the chosen suites that `is_meant`; `None` when there is none of them.
    fn filter(&self, is_meant: impl Fn(Suite) -> bool) -> Option<String> {
        let suites = self.suites.iter().filter(|suite| is_meant(**suite)).filter_map(|suite| suite.filter());
        let suites: Vec<String> = suites.map(|filter| format!("({filter})")).collect();
        if suites.is_empty() {
            return None;
        }
        let names: Vec<String> = self.words.iter().map(|word| format!("test(~{word})")).collect();
        let names = if names.is_empty() { "all()".to_owned() } else { names.join(" | ") };
        Some(format!("({}) & ({names})", suites.join(" | ")))
    }

    /// A name that fits no test is an error, which tells the nearest one.
    fn ensure_known(&self) -> Result<()> {
        if self.words.is_empty() {
            return Ok(());
        }
        let mut known = if self.wants(Suite::Windows) { windows::titles()? } else { Vec::new() };
        let runners = Runners::new()?;
        let is_usual =
            |suite: &Suite| suite.filter().is_some() && !matches!(suite, Suite::Adapters | Suite::Sim);
        if self.suites.iter().any(is_usual) {
            known.extend(runners.usual.list()?.into_iter().map(|(_, name)| name));
        }
        if self.wants(Suite::Adapters) {
            known.extend(runners.adapters.list()?.into_iter().map(|(_, name)| name));
        }
        if self.wants(Suite::Sim) {
            known.extend(runners.sim.list()?.into_iter().map(|(_, name)| name));
        }
        for word in &self.words {
            if !known.iter().any(|name| name.contains(word.as_str())) {
                bail!("no test is named {word}{}", nearest(word, &known));
            }
        }
        Ok(())
    }
}

/// `; the nearest is NAME`, where one is near.
fn nearest(word: &str, known: &[String]) -> String {
    let nearness = |name: &String| {
        let last = name.rsplit("::").next().unwrap_or(name);
        let of = |text| (strsim::jaro_winkler(word, text) * 1000.0) as u32;
        of(name).max(of(last))
    };
    let best = known.iter().max_by_key(|name| nearness(name));
    best.map_or_else(String::new, |name| format!("; the nearest is {name}"))
}

/// Installs and builds what the chosen suites need; checks meanwhile, as one waits for the network and the other for
/// the processor.
fn prepare(chosen: &Chosen) -> Result<Vec<Case>> {
    let rust = [Suite::Unit, Suite::It, Suite::Clients, Suite::Conformance];
    let clients = [Suite::It, Suite::Clients, Suite::Conformance];
    let install = || -> Result<()> {
        if chosen.wants_any(&rust) {
            task::install_for_tests(chosen.wants_any(&clients))?;
        }
        if chosen.wants(Suite::It) {
            install::install_for_it()?;
        }
        if chosen.wants(Suite::Windows) {
            windows::install()?;
        }
        Ok(())
    };
    let check = || if chosen.wants(Suite::Check) { task::check_cases() } else { Vec::new() };
    let (installed, cases) = std::thread::scope(|scope| {
        let installing = scope.spawn(install);
        let cases = check();
        (installing.join().unwrap_or_else(|_| bail!("installing panicked")), cases)
    });
    installed?;
    let mut cases = cases;
    if chosen.wants(Suite::Check) {
        // Its packages are installed by now, where windows are tested.
        cases.push(windows::lint()?);
    }
    if chosen.suites.iter().all(|suite| matches!(suite, Suite::Check | Suite::Sim)) {
        return Ok(cases);
    }
    let install_tools = || -> Result<()> {
        if chosen.wants_any(&[Suite::Unit, Suite::It, Suite::Windows]) {
            task::install_servers(&task::SERVERS)?;
        }
        if chosen.wants_any(&[Suite::Unit, Suite::Adapters]) {
            adapters::install()?;
        } else if chosen.wants(Suite::Windows) {
            adapters::install_for_windows()?;
        }
        Ok(())
    };
    if chosen.suites.iter().any(|suite| suite.filter().is_some()) {
        task::build_tests(chosen.wants(Suite::Adapters), install_tools)?;
    } else {
        task::build(&task::PROGRAMS, &["--bins"])?;
        install_tools()?;
    }
    Ok(cases)
}

/// Each test that failed runs again, alone, after all others have ended.
fn again(runners: &Runners, cases: &mut [Case]) {
    let failed: Vec<&mut Case> =
        cases.iter_mut().filter(|case| case.has_failed() && case.suite != Suite::Check).collect();
    if failed.len() > MAX_AGAIN {
        say(&format!("{} tests failed: none of them runs again", failed.len()));
        return;
    }
    for case in failed {
        for attempt in 1..=TRIES {
            say(&format!("again, alone ({attempt} of {TRIES}): {}", case.title()));
            match run_alone(runners, case, attempt > 1) {
                Ok(Outcome::Passed) => {
                    let first = std::mem::replace(&mut case.outcome, Outcome::Passed);
                    if let Outcome::Failed(first) = first {
                        case.outcome = Outcome::Unsteady(first);
                    }
                    break;
                }
                Ok(_) => {}
                Err(error) => say(&format!("it could not run: {error:#}")),
            }
        }
    }
}

/// `with_story`: of the window tests, with those before it in its file.
fn run_alone(runners: &Runners, case: &Case, with_story: bool) -> Result<Outcome> {
    match case.suite {
        Suite::Windows => windows::run_alone(case, with_story),
        suite => runners.of(suite).run_alone(case),
    }
}

fn warn_of_room() {
    let Ok(room) = rustix::fs::statvfs(root().as_path()) else { return };
    let free_gb = room.f_bavail * room.f_frsize / 1_000_000_000;
    if free_gb < ROOM_GB && !root().join("target/debug/baton").is_file() {
        say(&format!("only {free_gb} GB are free here: a first build with its downloads takes 9 GB"));
    }
}

/// `cargo xtask test quick`: what can fail in a minute.
fn quick(began: Instant) -> Result<bool> {
    DEBUGPY.install()?;
    let mut cases = task::check_cases();
    cases.extend(runner()?.run(QUICK)?);
    Ok(finish(cases, began))
}

/// What reads our own sources, in nextest's language.
pub(crate) const HOUSE_RULES: &str = "binary_id(baton-tests::it) & test(/^(tidy|walls|words)::/)";
/// Tests within one process, none of which waits for a real debugger or language server.
const QUICK: &str = "kind(lib) | kind(bin) | binary_id(baton-daemon::edge) | \
                     (binary_id(baton-window-agent::it) & test(/^catalogue::/)) | \
                     (binary_id(baton-tests::it) & test(/^(tidy|walls|words)::/))";

/// `cargo xtask test --stress TIMES NAME`: half of the runs beside two busy processes.
fn stress(words: &[String], times: u32) -> Result<bool> {
    let [name] = words else { bail!("--stress takes the name of one test") };
    let (runners, case) = find_one(name)?;
    let mut seconds = Vec::new();
    let mut failures: BTreeMap<String, u32> = BTreeMap::new();
    for idx in 0..times {
        let busy = if idx % 2 == 1 { vec![Busy::start()?, Busy::start()?] } else { Vec::new() };
        let began = Instant::now();
        let outcome = run_alone(&runners, &case, true)?;
        seconds.push(began.elapsed().as_secs_f64());
        let beside = if busy.is_empty() { "" } else { " beside two busy processes" };
        match outcome {
            Outcome::Failed(failure) => {
                say(&format!("{} of {times}{beside}: FAILED", idx + 1));
                say(&failure.text);
                *failures.entry(failure.first_line().to_owned()).or_default() += 1;
            }
            _ => say(&format!("{} of {times}{beside}: passed", idx + 1)),
        }
    }
    seconds.sort_by(f64::total_cmp);
    let at = |share: usize| {
        seconds.get(seconds.len().saturating_sub(1) * share / 100).copied().unwrap_or_default()
    };
    let n_failed: u32 = failures.values().sum();
    for (words, count) in &failures {
        say(&format!("{count} x {words}"));
    }
    say(&format!(
        "{}: {:.1} s at the least, {:.1} s in the middle, {:.1} s at the most",
        case.title(),
        at(0),
        at(50),
        at(100)
    ));
    print_counts(times - n_failed, n_failed);
    Ok(n_failed == 0)
}

#[expect(clippy::print_stdout, reason = "the result of the task")]
fn print_counts(passed: u32, failed: u32) {
    println!("{passed} passed, {failed} failed");
}

/// The one test of that name, or with that part of a name.
fn find_one(word: &str) -> Result<(Runners, Case)> {
    let case = |suite, home: String, name: String| Case {
        suite,
        home,
        name,
        seconds: 0.0,
        outcome: Outcome::Skipped,
    };
    let of_windows = windows::matching(word)?;
    let wants_windows = !of_windows.is_empty();
    let chosen = Chosen {
        suites: if wants_windows { vec![Suite::Windows] } else { Suite::ALL.to_vec() },
        words: Vec::new(),
    };
    let chosen = Chosen {
        suites: chosen
            .suites
            .into_iter()
            .filter(|suite| wants_windows || !matches!(suite, Suite::Check | Suite::Sim | Suite::Windows))
            .collect(),
        ..chosen
    };
    prepare(&chosen)?;
    let runners = Runners::new()?;
    let known: Vec<Case> = if wants_windows {
        windows::package_for_tests()?;
        of_windows.into_iter().map(|(home, name)| case(Suite::Windows, home, name)).collect()
    } else {
        let all = [runners.usual.list()?, runners.adapters.list()?].concat();
        all.into_iter().map(|(home, name)| case(Suite::of_binary(&home), home, name)).collect()
    };
    let is_exact = |case: &&Case| case.name == word || case.title() == word;
    let mut fitting: Vec<&Case> = known.iter().filter(is_exact).collect();
    if fitting.is_empty() {
        fitting = known.iter().filter(|case| case.title().contains(word)).collect();
    }
    match fitting[..] {
        [case] => Ok((runners, case.clone())),
        [] => {
            let names: Vec<String> = known.iter().map(Case::title).collect();
            bail!("no test is named {word}{}", nearest(word, &names))
        }
        _ => {
            let names: Vec<String> = fitting.iter().take(10).map(|case| case.title()).collect();
            bail!("{} tests fit {word}; name one of them: {}", fitting.len(), names.join(", "))
        }
    }
}

/// A process that computes for as long as it lives.
struct Busy(Child);

impl Busy {
    fn start() -> Result<Self> {
        let mut shell = command("sh");
        shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        shell.spawn().map(Self).context("sh cannot be started")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A workspace with a test of each kind.
    fn toy(root: &Path) -> Runner {
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "Cargo.toml",
            "[package]\nname = \"toy\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n",
        );
        write(
            ".config/nextest.toml",
            "[profile.default]\nslow-timeout = { period = \"1s\", terminate-after = 2, grace-period = \"0s\" }\njunit.path = \"junit.xml\"\n",
        );
        let text = "#[test] fn passes() {}\n\
                    #[test] fn fails() { panic!(\"two and two are five\") }\n\
                    #[test] fn hangs() { std::thread::sleep(std::time::Duration::from_secs(600)) }\n\
                    #[test] fn is_unsteady() { \
                    assert!(!std::fs::File::create_new(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/once\")).is_ok()) }\n";
        write("src/lib.rs", text);
        Runner::new(root, &["--lib"], &cache()).unwrap()
    }

    #[test]
    fn each_kind_of_test_is_told_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let runner = toy(root.path());
        let mut cases = runner.run("all()").unwrap();
        let runners = Runners { adapters: toy(root.path()), sim: toy(root.path()), usual: runner };
        again(&runners, &mut cases);
        keep_logs(&mut cases, &root.path().join("logs"));
        let text = summary(&cases, 61);
        assert!(text.contains("FAIL fails: two and two are five\n"), "{text}");
        assert!(text.contains("alone: cargo xtask test unit fails\n"), "{text}");
        assert!(text.contains("FAIL hangs: test timeout\n"), "{text}");
        let unsteady = text.split("\nUNSTEADY: is_unsteady\n     at first: ").nth(1).unwrap();
        let first = unsteady.lines().nth(1).and_then(|line| line.trim().strip_prefix("log: ")).unwrap();
        assert!(unsteady.starts_with("assertion failed"), "{text}");
        assert!(fs::read_to_string(first).unwrap().contains("assertion failed"));
        assert!(text.ends_with("\n2 passed, 2 failed"), "{text}");
        let log = text.lines().find_map(|line| line.trim().strip_prefix("log: ")).unwrap();
        assert!(fs::read_to_string(log).unwrap().contains("two and two are five"));
        let names = runners.usual.list().unwrap();
        assert!(empty(Suite::Unit, &cases).is_none());
        let none = empty(Suite::Adapters, &cases).unwrap();
        assert!(summary(&[none], 1).contains("FAIL the whole suite: no test of this suite ran"));
        assert!(names.contains(&("toy".to_owned(), "hangs".to_owned())), "{names:?}");
    }

    #[test]
    fn what_does_not_compile_is_a_failure() {
        let root = tempfile::tempdir().unwrap();
        let runner = toy(root.path());
        fs::write(root.path().join("src/lib.rs"), "fn").unwrap();
        let cases = runner.run("all()").unwrap();
        assert!(summary(&cases, 1).ends_with("0 passed, 1 failed"));
    }

    #[test]
    fn a_name_that_no_test_has_is_told_with_the_nearest() {
        let known = ["faults::f5_a_stopped_coordinator_is_replaced".to_owned(), "edge::eras".to_owned()];
        let told = nearest("f5_a_stoped_coordinator_is_replaced", &known);
        assert_eq!(told, "; the nearest is faults::f5_a_stopped_coordinator_is_replaced");
    }

    #[test]
    fn words_choose_suites_and_names() {
        let chosen = Chosen::of(&["it".to_owned(), "faults::f5".to_owned()]).unwrap();
        assert_eq!(
            (chosen.suites.as_slice(), chosen.words.as_slice()),
            (&[Suite::It][..], &["faults::f5".to_owned()][..])
        );
        assert_eq!(chosen.filter(|_| true).unwrap(), "((binary_id(baton-tests::it))) & (test(~faults::f5))");
        let windows = Chosen::of(&["rules".to_owned()]).unwrap();
        assert_eq!(windows.suites, [Suite::Windows]);
    }
}
