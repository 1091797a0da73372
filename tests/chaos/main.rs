//! `cargo xtask explore chaos`: real windows and clients of every kind while everything breaks, and a checker that reads the whole
//! history afterwards.
//!
//! | module | what it does |
//! |---|---|
//! | `world` | state folder, builds, windows: real processes |
//! | `nemesis` | the faults, and the order that a seed gives them |
//! | `clients` | clients of both eras over HTTP and `baton stdio` |
//! | `effects` | marks that calls leave in the world, once for each execution |
//! | `history` | every call and every event |
//! | `checker` | what must hold of a history |
//! | `run` | world after world, step after step |
//! | `story` | a violation for the person who reads it |
//! | `summary` | figures |

mod checker;
mod clients;
mod effects;
mod history;
mod nemesis;
mod run;
mod story;
mod summary;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton_tests::process::command;
use clap::Parser;

use nemesis::{FAULTS, FIXED, Fault, Need, Plan, Step};
use world::Setting;

/// Set once we have name spaces of our own.
const INSIDE: &str = "BATON_CHAOS_INSIDE";
/// What is broken when nothing is said, in this order of dice.
const FIXED_SEED: u64 = 12;

/// No list of steps is longer.
const MAX_STEPS: usize = 100_000;

/// Breaks Baton in every way and checks what clients saw.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// How long
    #[arg(long, default_value_t = 3.0)]
    minutes: f64,
    /// Of the order of faults, and of everything in them
    #[arg(long, default_value_t = FIXED_SEED)]
    pub(crate) seed: u64,
    /// Faults to choose from, alone and in pairs: names with commas, or one step as `a+b`; all when none is named
    #[arg(long, value_delimiter = ',')]
    faults: Vec<String>,
    /// At most so many steps
    #[arg(long)]
    pub(crate) steps: Option<u32>,
    /// A fixed choice, of about three minutes
    #[arg(long)]
    fixed: bool,
    /// A line for each step
    #[arg(long = "verbose")]
    pub(crate) is_verbose: bool,
    /// Write the figures into docs/reliability.md when there was no violation
    #[arg(long)]
    write: bool,
    /// List the faults
    #[arg(long)]
    list: bool,
    /// What the stranger of `port-squatted` is started with
    #[arg(long, hide = true, value_name = "PORT")]
    squat: Option<u16>,
}

impl Options {
    pub(crate) fn duration(&self) -> Duration {
        // A list ends by itself; that it never does is noticed all the same.
        Duration::from_secs_f64(if self.fixed { 900.0 } else { self.minutes * 60.0 })
    }

    /// The faults to choose from.
    pub(crate) fn chosen(&self) -> Result<Vec<&'static Fault>> {
        let names = match (self.fixed, self.faults.is_empty()) {
            (true, _) => FIXED.to_vec(),
            (false, true) => return Ok(FAULTS.iter().collect()),
            (false, false) => self.faults.iter().map(String::as_str).collect(),
        };
        let names = names.iter().flat_map(|name| name.split('+'));
        names
            .map(|name| nemesis::find(name).with_context(|| format!("there is no fault {name}; --list")))
            .collect()
    }

    /// The steps, one after the other.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let is_list = self.faults.iter().any(|name| name.contains('+'));
        let names: Vec<&str> = match (self.fixed, is_list) {
            (true, _) => FIXED.to_vec(),
            // Again and again, until the time is over.
            (false, true) => self.faults.iter().map(String::as_str).cycle().take(MAX_STEPS).collect(),
            (false, false) => return Ok(Plan::dice(self.chosen()?, self.seed)),
        };
        Plan::list(&names, self.seed).context("a step is one fault, or two as `a+b`; --list")
    }

    /// What a person types for the same run.
    pub(crate) fn command(&self) -> String {
        if self.fixed {
            return "cargo xtask explore chaos -- --fixed".to_owned();
        }
        let mut text =
            format!("cargo xtask explore chaos --for {:.0}s --seed {}", self.minutes * 60.0, self.seed);
        if !self.faults.is_empty() {
            text += &format!(" -- --faults {}", self.faults.join(","));
        }
        text
    }

    /// What a person types for a step again and again.
    pub(crate) fn again(&self, step: &Step) -> String {
        format!("cargo xtask explore chaos --for 5m --seed {} -- --faults {}", self.seed, step.names())
    }
}

fn main() -> ExitCode {
    let is_root = rustix::process::getuid().is_root();
    let is_inside = std::env::var_os(INSIDE).is_some();
    let result = if is_root && !is_inside { inside() } else { chaos(is_root) };
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs; how many violations there were.
fn chaos(is_root: bool) -> Result<u32> {
    let options = Options::parse();
    if options.list {
        for fault in &FAULTS {
            say(fault.name);
        }
        return Ok(0);
    }
    if let Some(port) = options.squat {
        nemesis::network::squat_here(port);
        return Ok(0);
    }
    let chosen = options.chosen()?;
    if let Some(fault) = chosen.iter().find(|fault| fault.need == Need::Root && !is_root) {
        bail!("{} needs root: run this with sudo, or choose others with --faults", fault.name);
    }
    let mut setting = Setting { has_disk: is_root, ..Setting::default() };
    if chosen.iter().any(|fault| fault.need == Need::Clock) {
        setting.faketime =
            Some(faketime().context("clocks are stepped by libfaketime; `apt install faketime` has it")?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let summary = run::run(&options, &setting, runtime.handle())?;
    say(&summary.to_markdown());
    if options.write && summary.n_violations() == 0 {
        summary.write()?;
    }
    Ok(summary.n_violations())
}

/// The same once more in name spaces of its own, so that the small disk and all processes go when it does, whatever ends it.
/// What was to be said has been said there.
fn inside() -> Result<u32> {
    let program = std::env::current_exe()?;
    let mut unshare = command("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]);
    // The shell waits for those who lose their parent, as the first process of a system has to.
    unshare.args(["sh", "-c", "\"$0\" \"$@\"; exit $?"]).arg(program).args(std::env::args_os().skip(1));
    let status = unshare.env(INSIDE, "1").status().context("unshare (util-linux) is not there")?;
    ensure!(status.code().is_some(), "chaos was ended by a signal");
    Ok(u32::from(!status.success()))
}

/// The library of Debian's package `faketime`.
fn faketime() -> Option<PathBuf> {
    let given = std::env::var_os("BATON_FAKETIME").map(PathBuf::from);
    let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu"];
    let usual = folders.map(|folder| PathBuf::from(format!("/usr/lib/{folder}/faketime/libfaketime.so.1")));
    given.into_iter().chain(usual).find(|path| path.is_file())
}

/// For the person who waits.
#[expect(clippy::print_stdout, reason = "figures are what a run is for")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}
