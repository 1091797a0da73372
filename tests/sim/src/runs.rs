//! One world, or many: each in a process of its own, because a seed is set once in a process.
#![expect(clippy::print_stdout, reason = "this is a program for people")]

use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use baton_agent_tools::CATALOGUE;
use baton_link::plant;
use baton_link::sim;

use crate::faults::{self, Faults};
use crate::system;
use crate::world::{self, World};

/// Worlds at once.
const AT_ONCE: usize = 2;
/// Broken worlds that are shortened, of many.
const TOLD: usize = 3;
/// Lines of a story; with `--trace` there are all.
const LINES: usize = 40;

const HELP: &str = "\
baton-sim [--seed S] [--seeds N] [--seconds 60] [--plant FAULT] [--trace]

  --seed S      the world of this seed; with --seeds, the first of them (default 1)
  --seeds N     so many worlds, two at once; ends with 1 when something is broken
  --for TIME    seeds until so many seconds have passed
  --seconds T   how long each world lasts (default 60)
  --without A,B without these of what goes wrong, by their numbers from 0
  --plant NAME  with this fault in the product: it must be found
  --trace       everything that happens, with the product's log";

#[derive(Clone, Debug)]
struct Wish {
    seed: u64,
    n_seeds: Option<u64>,
    time: Option<Duration>,
    length: Duration,
    plant: Option<String>,
    without: Vec<usize>,
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
    let mut wish = Wish {
        seed: 1,
        n_seeds: None,
        time: None,
        length,
        plant: None,
        without: Vec::new(),
        is_traced: false,
    };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is not a number"));
        match argument.as_str() {
            "--seed" => wish.seed = number(value()?)?,
            "--seeds" => wish.n_seeds = Some(number(value()?)?),
            "--for" => wish.time = Some(Duration::from_secs(number(value()?)?)),
            "--seconds" => wish.length = Duration::from_secs(number(value()?)?),
            "--without" => {
                let text = value()?;
                let numbers = text.split(',').map(|number| number.trim().parse());
                let numbers = numbers.collect::<Result<_, _>>();
                wish.without = numbers.map_err(|_| format!("{text} are not numbers"))?;
            }
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
    for definition in CATALOGUE.definitions() {
        (definition.tool(), definition.shape());
    }
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
    let (seed, length, without) = (wish.seed, wish.length, wish.without.clone());
    let planted = plant::ALL.iter().find(|(name, _)| Some(*name) == wish.plant.as_deref());
    // A thread of its own: the keys of its hash maps are thrown when it begins.
    let live = move || {
        // It is planted in this thread alone.
        planted.iter().for_each(|(_, fault)| plant::plant(*fault));
        sim::seed(seed);
        system::begin();
        let mut faults = Faults::of_seed(seed, length, &without);
        let mut world = World::new(folder);
        faults.strike(&mut world);
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

/// Starts a world in a process of its own.
fn start(wish: &Wish, seed: u64, without: &[usize]) -> std::io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "each world is a process of its own")]
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--seed").arg(seed.to_string()).arg("--seconds").arg(wish.length.as_secs().to_string());
    command.args(wish.plant.iter().flat_map(|name| ["--plant", name.as_str()]));
    if !without.is_empty() {
        command.arg("--without").arg(list(without));
    }
    command.stdout(Stdio::piped()).spawn()
}

fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(",")
}

/// Whether all held in a world, and what it printed.
fn ended(child: Child) -> Option<(bool, String)> {
    let output = child.wait_with_output().ok()?;
    Some((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// What a world prints that is broken still when as much as possible of what goes wrong in it is left out; `None` when
/// all of it is needed.
fn shortened(wish: &Wish, seed: u64) -> Option<String> {
    let mut without = Vec::new();
    let mut story = None;
    for number in 0..faults::n_of_seed(seed, wish.length) {
        let fewer: Vec<usize> = without.iter().copied().chain([number]).collect();
        if let Some((false, printed)) = start(wish, seed, &fewer).ok().and_then(ended) {
            (without, story) = (fewer, Some(printed));
        }
    }
    story.map(|story| format!("shortened by --without {}:\n{story}", list(&without)))
}

/// Many worlds, each in a process of its own; true when all holds in all of them.
fn many(wish: &Wish) -> bool {
    let began = Instant::now();
    let is_over = |seed: u64| {
        wish.n_seeds.is_some_and(|n_seeds| seed >= wish.seed + n_seeds)
            || wish.time.is_some_and(|time| began.elapsed() >= time)
    };
    let (mut seed, mut running) = (wish.seed, Vec::<(u64, Child)>::new());
    let mut failed = Vec::new();
    let mut n_worlds = 0;
    while !running.is_empty() || !is_over(seed) {
        while running.len() < AT_ONCE && !is_over(seed) {
            match start(wish, seed, &[]) {
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
        let Some((is_fine, output)) = ended(child) else { return false };
        if !is_fine {
            let is_told = failed.len() < TOLD;
            let shorter = is_told.then(|| shortened(wish, seed)).flatten();
            println!("{}", shorter.unwrap_or(output).trim_end());
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
