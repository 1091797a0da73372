//! Tasks of the Baton workspace: `cargo xtask demo | test | check | sim | explore | bench`.
//!
//! Each task installs what it needs into the ignored folder `.cache/` and says what it is doing.
//!
//! | module | what it does |
//! |---|---|
//! | `adapters` | debug adapters: install, demo |
//! | `explore` | searches, which run by hand |
//! | `fuzz` | libFuzzer: build, run, what was reached |
//! | `install` | Python, Node and nginx parts at pinned versions, stamped |
//! | `junit` | reports of test runners |
//! | `nextest` | the runner of the Rust tests |
//! | `report` | what tests did, and the summary |
//! | `run` | child processes: progress, logs, what a failure prints |
//! | `sim` | the whole in one thread, under a seed |
//! | `suites` | the suites of `cargo xtask test`, in their order; what runs again |
//! | `sweep` | ends what a run has started, however the run ends |
//! | `task` | the other tasks |
//! | `windows` | real VS Code windows, and the extension's package |

mod adapters;
mod explore;
mod fuzz;
mod install;
mod junit;
mod nextest;
mod report;
mod run;
mod sim;
mod suites;
mod sweep;
mod task;
mod windows;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Command line of `cargo xtask`.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the Baton workspace")]
struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs the main job on real programs: three windows, a takeover, two kills, one client session
    Demo {
        /// Leave everything running and print the URL and client configurations
        #[arg(long)]
        stay: bool,
        /// Print the address of the page, and wait for Enter before each step
        #[arg(long, conflicts_with = "vscode")]
        page: bool,
        /// In three real VS Code windows: prints their addresses and runs the story there
        #[arg(long)]
        vscode: bool,
        /// One program per language, debugged through the stable URL
        #[arg(long, conflicts_with_all = ["stay", "page", "vscode"])]
        adapters: bool,
        /// An agent finds and reads a function in CPython's own library
        #[arg(long, conflicts_with_all = ["stay", "page", "vscode", "adapters"])]
        code: bool,
    },
    /// Passes all tests, or the named suites: check, unit, it, clients, conformance, adapters, windows; `quick` takes a minute
    Test {
        /// Suites, `quick`, or parts of tests' names: `it faults::`, `windows rules`, `f5_a_stopped`
        words: Vec<String>,
        /// Runs the one test of that name so many times, half of them beside two busy processes
        #[arg(long, value_name = "TIMES")]
        stress: Option<u32>,
        /// The same as a part of a name
        #[arg(long, value_name = "NAME", hide = true)]
        only: Vec<String>,
    },
    /// Formatting, lints and house rules: quick enough to run before every commit
    Check,
    /// Runs worlds of the simulation: the whole of Baton in one thread, each under a seed, and the same for the same seed
    Sim(sim::Wish),
    /// Searches by hand, each for as long as you like; what one finds becomes a test
    Explore {
        /// Searches to run, one after the other; all when none is named
        searches: Vec<explore::Search>,
        /// How long each runs: 90s, 30m, 2h
        #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = explore::time)]
        time: std::time::Duration,
        /// Of everything that is random
        #[arg(long, default_value_t = 1)]
        seed: u32,
        /// For the search that is named
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Measures speed and memory of a release build side by side with peers and writes docs/performance.md
    Bench {
        /// Parts to measure; all when none is named, but `vscode` (real windows; prints a table), which runs alone
        names: Vec<String>,
    },
    /// Makes dist/baton-<target>.vsix, with both programs inside
    Dist {
        /// linux-x64, linux-arm64, darwin-x64 or darwin-arm64; this machine's when none is named
        #[arg(long)]
        target: Option<String>,
    },
    /// Installs what the other tasks need and stops
    Setup,
    /// Waits for the end of standard input, then ends what a run has started
    #[command(name = sweep::WORD, hide = true)]
    Sweep {
        /// Its mark
        run: String,
        /// Its folder for temporary files, which is removed
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let result = match Options::parse().task {
        Task::Demo { adapters: true, .. } => adapters::demo().map(|()| true),
        Task::Demo { code: true, .. } => task::demo_code().map(|()| true),
        Task::Demo { stay, page, vscode: false, .. } => task::demo(stay, page).map(|()| true),
        Task::Demo { stay, vscode: true, .. } => task::demo_in_windows(stay).map(|()| true),
        Task::Test { mut words, stress, only } => {
            words.extend(only);
            suites::test(&suites::Wish { words, stress })
        }
        Task::Check => task::check(),
        Task::Sim(wish) => sim::sim(&wish).map(|()| true),
        Task::Explore { searches, time, seed, arguments } => {
            explore::explore(&explore::Wish { searches, time, seed, arguments })
        }
        Task::Bench { names } => task::bench(&names).map(|()| true),
        Task::Dist { target } => windows::dist(target.as_deref()).map(|()| true),
        Task::Setup => task::setup().map(|()| true),
        Task::Sweep { run, folder } => {
            sweep::wait_and_sweep(&run, &folder);
            Ok(true)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        // What failed has been said.
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            run::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
