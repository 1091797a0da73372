//! Tasks of the Baton workspace: `cargo xtask demo | test | chaos | fuzz | check | bench`.
//!
//! Each task installs what it needs into the ignored folder `.cache/` and says what it is doing.
//!
//! | module | what it does |
//! |---|---|
//! | `adapters` | debug adapters: install, test, demo |
//! | `fuzz` | libFuzzer: build, run, what was reached |
//! | `install` | Python, Node and nginx parts at pinned versions, stamped |
//! | `run` | child processes: progress, logs, what a failure prints |
//! | `task` | the tasks |
//! | `windows` | real VS Code windows, and the extension's package |

mod adapters;
mod fuzz;
mod install;
mod run;
mod task;
mod windows;

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
        /// In three real VS Code windows: prints their addresses and runs the story there
        #[arg(long)]
        vscode: bool,
        /// One program per language, debugged through the stable URL
        #[arg(long, conflicts_with_all = ["stay", "vscode"])]
        adapters: bool,
        /// An agent finds and reads a function in CPython's own library
        #[arg(long, conflicts_with_all = ["stay", "vscode", "adapters"])]
        code: bool,
    },
    /// Passes all tests, or the named suites: unit, it, clients, conformance, tidy, fuzz, adapters, chaos, windows
    Test {
        /// Suites to run; all when none is named
        suites: Vec<task::Suite>,
        /// Of the windows suite this file of tests/vscode alone: `--only code` for code.test.mjs; can be repeated
        #[arg(long, value_name = "FILE")]
        only: Vec<String>,
    },
    /// Breaks everything under load and checks what clients saw: `cargo xtask chaos --minutes 60 --seed 7 --faults a,b`
    Chaos {
        /// See `cargo xtask chaos --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Formatting, lints and house rules: quick enough to run before every commit
    Check,
    /// Tries inputs that nobody thought of, for hours: what breaks a property is kept
    Fuzz {
        /// Targets to run; all, one after the other, when none is named
        targets: Vec<String>,
        /// How long each runs
        #[arg(long)]
        minutes: Option<u64>,
    },
    /// Measures speed and memory of a release build side by side with peers and writes docs/performance.md
    Bench {
        /// Parts to measure; all when none is named, but `vscode` (real windows; prints a table), which runs alone
        names: Vec<String>,
    },
    /// Visits the states of the election's model for that long, and tells the shortest way to a broken rule
    Model {
        /// For how long
        #[arg(default_value_t = 600)]
        seconds: u64,
    },
    /// Makes dist/baton-<target>.vsix, with both programs inside
    Dist {
        /// linux-x64, linux-arm64, darwin-x64 or darwin-arm64; this machine's when none is named
        #[arg(long)]
        target: Option<String>,
    },
    /// Installs what the other tasks need and stops
    Setup,
}

fn main() -> ExitCode {
    let result = match Options::parse().task {
        Task::Demo { adapters: true, .. } => adapters::demo(),
        Task::Demo { code: true, .. } => task::demo_code(),
        Task::Demo { stay, vscode: false, .. } => task::demo(stay),
        Task::Demo { stay, vscode: true, .. } => task::demo_in_windows(stay),
        Task::Test { suites, only } => task::test(&suites, &only),
        Task::Chaos { arguments } => task::chaos_by_hand(&arguments),
        Task::Check => task::check(),
        Task::Fuzz { targets, minutes } => fuzz::fuzz(&targets, minutes),
        Task::Bench { names } => task::bench(&names),
        Task::Model { seconds } => task::model(seconds),
        Task::Dist { target } => windows::dist(target.as_deref()),
        Task::Setup => task::setup(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
