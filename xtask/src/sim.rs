//! `cargo xtask sim`: the whole of Baton in one thread, under a seed. See docs/simulation.md.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::run::{command, root, say, shown};
use crate::task::{built, cargo};

/// What a person asked for.
#[derive(clap::Args)]
pub(crate) struct Wish {
    /// So many worlds, two at once
    #[arg(long)]
    seeds: Option<u64>,
    /// The world of this seed; with `--seeds`, the first of them
    #[arg(long)]
    seed: Option<u64>,
    /// How long each world lasts, in its own time
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Everything that happens in one world, with the product's log
    #[arg(long, conflicts_with = "seeds")]
    trace: bool,
    /// Without these of what goes wrong, by their numbers from 0, as in `--without 1,3`
    #[arg(long, value_name = "NUMBERS")]
    without: Option<String>,
    /// With this fault in the product, which must be found
    #[arg(long)]
    plant: Option<String>,
}

/// Worlds when nobody says how many.
const SEEDS: u64 = 60;

/// Runs one world, or many; an error when something is broken in one of them.
pub(crate) fn sim(wish: &Wish) -> Result<()> {
    let mut sim = program()?;
    match (wish.seed, wish.seeds) {
        (Some(seed), None) => sim.arg("--seed").arg(seed.to_string()),
        (seed, seeds) => {
            sim.arg("--seed").arg(seed.unwrap_or(1).to_string());
            if wish.trace { &mut sim } else { sim.arg("--seeds").arg(seeds.unwrap_or(SEEDS).to_string()) }
        }
    };
    sim.arg("--seconds").arg(wish.seconds.to_string());
    if wish.trace {
        sim.arg("--trace");
    }
    sim.args(wish.without.iter().flat_map(|numbers| ["--without", numbers.as_str()]));
    sim.args(wish.plant.iter().flat_map(|name| ["--plant", name.as_str()]));
    shown("the simulation", &mut sim)
}

/// Seed after seed, until the time is over.
pub(crate) fn explore(time: Duration, seed: u32, arguments: &[String]) -> Result<()> {
    let mut sim = program()?;
    sim.arg("--for").arg(time.as_secs().to_string()).arg("--seed").arg(seed.to_string()).args(arguments);
    shown("the simulation", &mut sim)
}

/// The program, built.
fn program() -> Result<Command> {
    say("building the simulation");
    let mut cargo = cargo(&["build", "--package", "baton-sim", "--profile", "sim"]);
    shown("cargo build", cargo.env(WRAPPER, wrapper()))?;
    Ok(command(built("sim", "baton-sim")?))
}

/// The variable by which cargo builds our own crates with `--cfg sim`.
pub(crate) const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Its value. Crates that are not ours are those of any other build.
pub(crate) fn wrapper() -> PathBuf {
    root().join("xtask/rustc-sim")
}
