//! What tests did: one case for each, the table at the end, and for each failure how to look at it alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::run::say;
use crate::suites::Suite;

/// One test that ran.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) suite: Suite,
    /// What runs it again: the test binary, or the file of the window tests.
    pub(crate) home: String,
    /// As its runner says it.
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) outcome: Outcome,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// It failed so, and passed when it ran again alone.
    Unsteady(Failure),
    Failed(Failure),
    Skipped,
}

/// What a test said when it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Everything it said.
    pub(crate) text: String,
    /// Where that lies, once it is written.
    pub(crate) log: PathBuf,
}

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), log: PathBuf::new() }
    }

    /// The first line that says something: of a panic the line below the place.
    pub(crate) fn first_line(&self) -> &str {
        let lines = || self.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_place = |line: &&str| line.contains("panicked at");
        let panicked = lines().skip_while(|line| !is_place(line)).find(|line| !is_place(line));
        panicked.or_else(|| lines().next()).unwrap_or("it said nothing")
    }
}

impl Case {
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    /// What a person calls it.
    pub(crate) fn title(&self) -> String {
        match self.suite {
            Suite::Windows => format!("{}: {}", self.home, self.name),
            _ => self.name.clone(),
        }
    }

    /// What runs it alone.
    fn command(&self) -> String {
        match self.suite {
            Suite::Check => "cargo xtask check".to_owned(),
            Suite::Windows => format!("cargo xtask test windows '{}'", self.home),
            suite => format!("cargo xtask test {} {}", suite.name(), self.name),
        }
    }
}

/// Writes what each test said that failed, once or for good, into a file of `folder`.
pub(crate) fn keep_logs(cases: &mut [Case], folder: &Path) {
    for case in cases {
        let suite = case.suite.name();
        let title = case.title();
        let (Outcome::Failed(failure) | Outcome::Unsteady(failure)) = &mut case.outcome else { continue };
        let name: String =
            title.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).take(120).collect();
        failure.log = folder.join(suite).join(name).with_extension("log");
        let written = std::fs::create_dir_all(folder.join(suite))
            .and_then(|()| std::fs::write(&failure.log, &failure.text));
        if let Err(error) = written {
            say(&format!("{} cannot be written: {error}", failure.log.display()));
        }
    }
}

/// The table of suites, then each failure, then each unsteady test, then the counts, which are the last line. Seconds of
/// a suite are those of its tests, of which several run at a time; `took` is what the person waited.
pub(crate) fn summary(cases: &[Case], took: u64) -> String {
    let mut text =
        format!("{:<12}{:>8}{:>8}{:>10}{:>9}\n", "suite", "passed", "failed", "unsteady", "seconds");
    for suite in Suite::ALL {
        let of = || cases.iter().filter(|case| case.suite == suite);
        if of().next().is_some() {
            let seconds: f64 = of().map(|case| case.seconds).sum();
            row(&mut text, suite.name(), counts(of()), seconds);
        }
    }
    let all = counts(cases.iter());
    row(&mut text, "all, in all", all, took as f64);
    text.push('\n');
    for case in cases {
        if let Outcome::Failed(failure) = &case.outcome {
            let _ = writeln!(text, "FAIL {}: {}", case.title(), failure.first_line());
            let _ = writeln!(text, "     log: {}", failure.log.display());
            let _ = writeln!(text, "     alone: {}", case.command());
        }
    }
    for case in cases {
        if let Outcome::Unsteady(failure) = &case.outcome {
            let _ = writeln!(text, "UNSTEADY: {}", case.title());
            let _ = writeln!(text, "     at first: {}", failure.first_line());
            let _ = writeln!(text, "     log: {}", failure.log.display());
        }
    }
    let [passed, failed, unsteady] = all;
    let _ = write!(text, "{} passed, {failed} failed", passed + unsteady);
    text
}

fn row(text: &mut String, name: &str, [passed, failed, unsteady]: [usize; 3], seconds: f64) {
    let _ = writeln!(text, "{name:<12}{passed:>8}{failed:>8}{unsteady:>10}{seconds:>9.0}");
}

/// Passed at once, failed, passed when they ran again.
fn counts<'a>(cases: impl Iterator<Item = &'a Case>) -> [usize; 3] {
    cases.fold([0; 3], |[passed, failed, unsteady], case| match case.outcome {
        Outcome::Passed => [passed + 1, failed, unsteady],
        Outcome::Failed(_) => [passed, failed + 1, unsteady],
        Outcome::Unsteady(_) => [passed, failed, unsteady + 1],
        Outcome::Skipped => [passed, failed, unsteady],
    })
}
