//! `cargo xtask explore`: searches, each for as long as one likes. What they find is replayed in the tests as a small
//! fixed case; none of them is part of the tests, as a search gives another answer each time.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;

use crate::adapters;
use crate::fuzz;
use crate::install;
use crate::nextest::{ADAPTERS_TARGETS, Runner};
use crate::run::{command, root, say, shown};
use crate::sim;
use crate::suites;
use crate::task::{PROGRAMS, build, built};
use crate::windows;

/// A search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Search {
    /// Clients that edit and undo, saves and kills, with a model of the files; `-- --rounds 10000` says how many steps.
    Changes,
    /// Breaks everything under load and checks what clients saw; `-- --faults a,b` chooses, `-- --help` tells the rest.
    Chaos,
    /// Inputs that nobody thought of: what breaks a property is kept; `-- TARGET...` chooses.
    Fuzz,
    /// All states of the election's model, and the shortest way to a broken rule.
    Model,
    /// Generated programs under the debugger, with the interpreter's tracer or a plain debugger beside it;
    /// `-- gdb_c delve` chooses.
    Oracle,
    /// Worlds of the simulation, one seed after the other.
    Sim,
    /// Windows and trees that come and go, and clients in them: who answers, and what is changed, is what was meant.
    Trees,
    /// A person in two VS Code windows, a client, and faults: bars, gutters and answers agree after each act.
    Windows,
}

/// What a person asked for.
pub(crate) struct Wish {
    /// All when there is none.
    pub(crate) searches: Vec<Search>,
    /// Of each.
    pub(crate) time: Duration,
    pub(crate) seed: u32,
    /// For the one search that was named.
    pub(crate) arguments: Vec<String>,
}

/// Runs all that were named, whatever one finds; false when one found something.
pub(crate) fn explore(wish: &Wish) -> Result<bool> {
    let all = Search::value_variants().to_vec();
    let searches = if wish.searches.is_empty() { all } else { wish.searches.clone() };
    ensure!(
        wish.arguments.is_empty() || searches.len() == 1,
        "what follows `--` is for one search: name it before"
    );
    let mut has_found = false;
    for search in searches {
        let name = search.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        say(&format!("{name}: {} s, seed {}", wish.time.as_secs(), wish.seed));
        let outcome = match search {
            Search::Changes => changes(wish),
            Search::Chaos => chaos(wish),
            Search::Fuzz => fuzz::fuzz(&wish.arguments, wish.time, wish.seed),
            Search::Model => model(wish.time),
            Search::Oracle => oracle(wish),
            Search::Sim => sim::explore(wish.time, wish.seed, &wish.arguments),
            Search::Trees => trees(wish),
            Search::Windows => windows(wish),
        };
        if let Err(error) = outcome {
            has_found = true;
            say(&format!("{name}: {error:#}"));
            say(&format!("again: cargo xtask explore {name} --seed {}", wish.seed));
        }
    }
    Ok(!has_found)
}

/// `90s`, `30m`, `2h`, or plain seconds.
pub(crate) fn time(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 =
        digits.parse().with_context(|| format!("{text} is not a time, such as 90s, 30m, 2h"))?;
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        other => bail!("`{other}` is not a unit of time; there are s, m, h"),
    };
    Ok(Duration::from_secs(number.saturating_mul(unit)))
}

fn changes(wish: &Wish) -> Result<()> {
    build(&PROGRAMS, &["--bins"])?;
    let mut changes = command(built("debug", "baton-changes")?);
    changes.arg("--minutes").arg((wish.time.as_secs_f64() / 60.0).to_string());
    shown("changes", changes.arg("--seed").arg(wish.seed.to_string()).args(&wish.arguments))
}

fn chaos(wish: &Wish) -> Result<()> {
    let faketime = install::install_faketime()?;
    build(&PROGRAMS, &["--bins"])?;
    let mut chaos = command(built("debug", "baton-chaos")?);
    chaos.arg("--minutes").arg((wish.time.as_secs_f64() / 60.0).to_string());
    chaos.arg("--seed").arg(wish.seed.to_string()).args(&wish.arguments);
    shown("chaos", chaos.env("BATON_FAKETIME", faketime))
}

fn trees(wish: &Wish) -> Result<()> {
    install::DEBUGPY.install()?;
    install::MCP_1.install()?;
    install::MCP_2.install()?;
    build(&PROGRAMS, &["--bins"])?;
    let mut trees = command(built("debug", "baton-trees")?);
    trees.arg("--minutes").arg((wish.time.as_secs_f64() / 60.0).to_string());
    trees.arg("--seed").arg(wish.seed.to_string()).args(&wish.arguments);
    shown("trees", trees.env("BATON_TEST_PYTHON", install::DEBUGPY.python()))
}

fn windows(wish: &Wish) -> Result<()> {
    windows::install()?;
    install::MCP_1.install()?;
    build(&PROGRAMS[..4], &["--bins"])?;
    let mut search = command(install::node());
    search.arg(root().join("tests/vscode/explore.mjs")).arg("--seconds").arg(wish.time.as_secs().to_string());
    shown("windows", search.arg("--seed").arg(wish.seed.to_string()).args(&wish.arguments))
}

fn model(time: Duration) -> Result<()> {
    build(&PROGRAMS[4..], &["--bin", "baton-model"])?;
    shown("the model", command(built("debug", "baton-model")?).arg(time.as_secs().to_string()))
}

/// Seed after seed, until the time is over.
fn oracle(wish: &Wish) -> Result<()> {
    install::DEBUGPY.install()?;
    build(&PROGRAMS, &["--bins"])?;
    adapters::install()?;
    let names: Vec<String> =
        wish.arguments.iter().map(|name| format!("test(/^generated::{name}/)")).collect();
    let generated = if names.is_empty() { "test(/^generated::/)".to_owned() } else { names.join(" | ") };
    let began = std::time::Instant::now();
    let mut n_cases = 0;
    for seed in wish.seed.. {
        let seeded = |runner: Runner| runner.with("BATON_ORACLE_SEED", seed.to_string()).ignored();
        let adapters = seeded(suites::runner_of(&ADAPTERS_TARGETS)?);
        let mut cases = adapters.run(&format!("binary(adapters) & ({generated})"))?;
        if wish.arguments.is_empty() {
            let python = seeded(suites::runner()?);
            cases.extend(
                python.run(
                    "(binary_id(baton-agent-debug::it) & test(/^oracle::/)) | test(/^faces::alike::/)",
                )?,
            );
        }
        ensure!(!cases.is_empty(), "no oracle is named {}", wish.arguments.join(", "));
        ensure!(!cases.iter().any(crate::report::Case::has_failed), "seed {seed}; the program is above");
        n_cases += cases.len();
        if began.elapsed() >= wish.time {
            break;
        }
    }
    say(&format!("oracle: {n_cases} searches, and no difference"));
    Ok(())
}
