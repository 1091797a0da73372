//! One world, or many: each in a process of its own, because a seed is set once in a process.
#![expect(clippy::print_stdout, reason = "this is a program for people")]

use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use baton_agent_tools::CATALOGUE;
use baton_link::plant;
use baton_link::sim;

use crate::faults::Faults;
use crate::system;
use crate::world::{self, World};

/// Worlds at once.
const AT_ONCE: usize = 2;
/// Lines of a story; with `--trace` there are all.
const LINES: usize = 40;

const HELP: &str = "\
baton-sim [--seed S] [--seeds N] [--seconds 60] [--plant FAULT] [--trace]

  --seed S      the world of this seed; with --seeds, the first of them (default 1)
  --seeds N     so many worlds, two at once; ends with 1 when something is broken
  --for TIME    seeds until so many seconds have passed
  --seconds T   how long each world lasts (default 60)
  --plant NAME  with this fault in the product: it must be found
  --trace       everything that happens, with the product's log";

#[derive(Clone, Debug)]
struct Wish {
    seed: u64,
    n_seeds: Option<u64>,
    time: Option<Duration>,
    length: Duration,
    plant: Option<String>,
    is_traced: bool,
}

/// Does what the command line says.
pub(crate) fn main() -> ExitCode {
    let wish = match wish(std::env::args().skip(1)) {
        Ok(wish) => wish,
        Err(why) => {
            println!("{why}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let is_fine = if wish.n_seeds.is_some() || wish.time.is_some() { many(&wish) } else { one(&wish) };
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn wish(arguments: impl Iterator<Item = String>) -> Result<Wish, String> {
    let length = Duration::from_secs(60);
    let mut wish = Wish { seed: 1, n_seeds: None, time: None, length, plant: None, is_traced: false };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is not a number"));
        match argument.as_str() {
            "--seed" => wish.seed = number(value()?)?,
            "--seeds" => wish.n_seeds = Some(number(value()?)?),
            "--for" => wish.time = Some(Duration::from_secs(number(value()?)?)),
            "--seconds" => wish.length = Duration::from_secs(number(value()?)?),
            "--plant" => wish.plant = Some(value()?),
            "--trace" => wish.is_traced = true,
            _ => return Err(format!("unknown argument {argument}")),
        }
    }
    let is_known = |name: &String| plant::ALL.iter().any(|(known, _)| known == name);
    if let Some(name) = wish.plant.as_ref().filter(|name| !is_known(name)) {
        let all: Vec<&str> = plant::ALL.iter().map(|(known, _)| *known).collect();
        return Err(format!("{name} cannot be planted; what can: {}", all.join(", ")));
    }
    Ok(wish)
}

/// One world in this process; true when all holds.
fn one(wish: &Wish) -> bool {
    // The same in every world, and not of the seed.
    std::sync::LazyLock::force(&CATALOGUE);
    if wish.is_traced {
        let format =
            tracing_subscriber::fmt().with_timer(Clock).with_writer(std::io::stdout).with_ansi(false);
        let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| "info".to_owned());
        format.with_env_filter(filter).init();
    }
    let folder = match world::folder(wish.seed) {
        Ok(folder) => folder,
        Err(error) => {
            println!("cannot make a folder for the world: {error}");
            return false;
        }
    };
    let (seed, length) = (wish.seed, wish.length);
    let planted = plant::ALL.iter().find(|(name, _)| Some(*name) == wish.plant.as_deref());
    // A thread of its own: the keys of its hash maps are thrown when it begins.
    let live = move || {
        // It is planted in this thread alone.
        planted.iter().for_each(|(_, fault)| plant::plant(*fault));
        sim::seed(seed);
        system::begin();
        let mut faults = Faults::of_seed(seed, length);
        let mut world = World::new(folder);
        while world.now < length {
            world.step();
            faults.strike(&mut world);
        }
        world.oracle.finish(length);
        let (oracle, folder) = world.end();
        system::end();
        (oracle, folder, sim::digested())
    };
    let Ok((oracle, folder, digest)) = std::thread::spawn(live).join() else {
        println!("seed {seed}: the simulation panicked");
        return false;
    };
    // It lies in memory.
    let _ = std::fs::remove_dir_all(folder);
    let (n_told, n_done) = oracle.n_answered();
    println!("seed {seed}: {digest:016x}, {n_told} calls, {n_done} done, {} broken", oracle.broken.len());
    if oracle.broken.is_empty() && !wish.is_traced {
        return true;
    }
    let first = oracle.broken.first().map(|(at, _)| *at).unwrap_or(length);
    let before: Vec<_> = oracle.story.iter().filter(|(at, _)| wish.is_traced || *at <= first).collect();
    let shown = if wish.is_traced { before.len() } else { LINES };
    for (at, line) in before.iter().skip(before.len().saturating_sub(shown)) {
        println!("  {:8.3} s  {line}", at.as_secs_f64());
    }
    oracle.broken.is_empty()
}

/// Many worlds, each in a process of its own; true when all holds in all of them.
fn many(wish: &Wish) -> bool {
    let began = Instant::now();
    let Ok(program) = std::env::current_exe() else { return false };
    let start = |seed: u64| {
        #[expect(clippy::disallowed_methods, reason = "each world is a process of its own")]
        let mut command = Command::new(&program);
        command.arg("--seed").arg(seed.to_string()).arg("--seconds").arg(wish.length.as_secs().to_string());
        command.args(wish.plant.iter().flat_map(|name| ["--plant", name.as_str()]));
        command.stdout(Stdio::piped()).spawn()
    };
    let is_over = |seed: u64| {
        wish.n_seeds.is_some_and(|n_seeds| seed >= wish.seed + n_seeds)
            || wish.time.is_some_and(|time| began.elapsed() >= time)
    };
    let (mut seed, mut running) = (wish.seed, Vec::<(u64, Child)>::new());
    let mut failed = Vec::new();
    let mut n_worlds = 0;
    while !running.is_empty() || !is_over(seed) {
        while running.len() < AT_ONCE && !is_over(seed) {
            match start(seed) {
                Ok(child) => running.push((seed, child)),
                Err(error) => {
                    println!("cannot start a world: {error}");
                    return false;
                }
            }
            seed += 1;
        }
        let (seed, child) = running.remove(0);
        n_worlds += 1;
        let Ok(output) = child.wait_with_output() else { return false };
        if !output.status.success() {
            println!("{}", String::from_utf8_lossy(&output.stdout).trim_end());
            failed.push(seed);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{n_worlds} worlds of {} s in {seconds:.1} s; broken in {}: {failed:?}",
        wish.length.as_secs(),
        failed.len()
    );
    failed.is_empty()
}

/// The clock of the simulation, for the log.
struct Clock;

impl tracing_subscriber::fmt::time::FormatTime for Clock {
    fn format_time(&self, writer: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        write!(writer, "{:8.3} s process {}", sim::now().as_secs_f64(), sim::current())
    }
}
