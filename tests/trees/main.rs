//! `cargo xtask explore trees`: windows open, close, die and take over, worktrees and folders come and go, files change, and
//! clients call: every answer, and every effect on disk, must be of the tree that was meant.
//!
//! | module | what it has |
//! |---|---|
//! | `forest` | the folders, which tree git says they are of, and what should be in their files |
//! | `windows` | which windows are open, and what happens to them |
//! | `speaker` | a client, what it means, and what it heard |
//! | `held` | the programs that clients hold in the debugger |
//! | `rules` | what must hold of an answer |

mod forest;
mod held;
mod rules;
mod speaker;
mod windows;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use fastrand::Rng;

use forest::Forest;
use held::Programs;
use rules::{Known, Late};
use speaker::{Act, Speaker};
use windows::Windows;

/// Lines of the story that are shown with a violation.
const SHOWN: usize = 40;

/// Looks for an answer, or an effect, of a tree that was not meant.
#[derive(Debug, Parser)]
struct Options {
    /// How long
    #[arg(long, default_value_t = 3.0)]
    minutes: f64,
    /// Of the order of everything
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ends after so many calls
    #[arg(long, default_value_t = u64::MAX)]
    calls: u64,
    /// A line for each step
    #[arg(long = "verbose")]
    is_verbose: bool,
}

/// What was done, and how often.
#[derive(Default)]
struct Counts {
    calls: u64,
    answered: u64,
    refused: u64,
    unknown: u64,
    cancelled: u64,
    lost: u64,
    disturbances: u64,
}

#[expect(clippy::print_stdout, reason = "the result of the search")]
fn main() -> ExitCode {
    let options = Options::parse();
    let until = Instant::now() + Duration::from_secs_f64(options.minutes * 60.0);
    let mut story = Vec::new();
    let mut counts = Counts::default();
    let found = search(&options, until, &mut story, &mut counts);
    let Counts { calls, answered, refused, unknown, cancelled, lost, disturbances } = counts;
    println!(
        "seed {}: {calls} calls ({answered} answered, {refused} refused, {unknown} unknown, {cancelled} cancelled), \
         {lost} clients lost, {disturbances} disturbances",
        options.seed
    );
    match found {
        Ok(()) => ExitCode::SUCCESS,
        Err(violation) => {
            for line in story.iter().rev().take(SHOWN).rev() {
                println!("  {line}");
            }
            println!("VIOLATION: {violation}");
            ExitCode::FAILURE
        }
    }
}

/// Until the time is over, or something is wrong.
#[expect(clippy::print_stdout, reason = "progress")]
fn search(
    options: &Options,
    until: Instant,
    story: &mut Vec<String>,
    counts: &mut Counts,
) -> Result<(), String> {
    let mut rng = Rng::with_seed(options.seed);
    let began = Instant::now();
    let mut windows = Windows::new();
    let mut forest = Forest::new(&windows.projects());
    windows.open(&forest, "shop");
    windows.open(&forest, "weather");
    let mut speakers = Speaker::first(&windows, &forest);
    let (mut programs, mut late) = (Programs::default(), Vec::new());
    while Instant::now() < until && counts.calls < options.calls {
        let mut tell = |line: String| {
            if options.is_verbose {
                println!("{:.1} {line}", began.elapsed().as_secs_f64());
            }
            story.push(line);
        };
        if rng.u32(..12) == 0 {
            counts.disturbances += 1;
            let done = disturb(&mut rng, &mut windows, &mut forest);
            if done == windows::COORDINATOR_KILLED {
                // What the edge knows of clients by URL ends with it; the next answer tells them: docs/routing.md.
                speakers.iter_mut().filter(|one| !one.remembers()).for_each(|one| one.heard = None);
            }
            tell(done);
        }
        if let Some(done) = windows.revive(&forest) {
            tell(done);
        }
        let lost = speakers.iter().position(|one| one.is_lost);
        counts.lost += u64::from(lost.is_some());
        if lost.is_some() || rng.u32(..60) == 0 {
            let idx = lost.unwrap_or_else(|| rng.usize(..speakers.len()));
            let before = speakers[idx].number;
            speakers[idx] = speakers[idx].again(&mut rng, &windows, &forest);
            if speakers[idx].number != before {
                programs.disown(before);
            }
            tell(format!("client {idx} is new: {}", speakers[idx].shown()));
        }
        let idx = rng.usize(..speakers.len());
        let act = Act::any(&mut rng, &windows, &forest, &programs);
        let is_calm = windows.is_calm();
        if let Act::Cancel(mark) = act {
            counts.calls += 1;
            counts.cancelled += 1;
            late.push(Late::of(&speakers[idx], &act, mark, &windows, &forest));
            speakers[idx].cancel(&act);
            tell(format!("client {idx} ({}) {act:?}", speakers[idx].shown()));
            continue;
        }
        let shown = speakers[idx].call(&act);
        counts.calls += 1;
        match shown.code() {
            "" => counts.answered += 1,
            "outcome_unknown" => counts.unknown += 1,
            _ => counts.refused += 1,
        }
        tell(format!(
            "client {idx} ({}) {act:?}: {} {:?}",
            speakers[idx].shown(),
            shown.code(),
            shown.window
        ));
        let known = Known { windows: &windows, programs: &mut programs, late: &late };
        rules::check(&mut speakers[idx], &act, &shown, is_calm, known, &mut forest)
            .map_err(|why| format!("{why}\n{shown:?}"))?;
        if counts.calls.is_multiple_of(500) {
            println!("{} calls", counts.calls);
        }
    }
    Ok(())
}

/// Something that a person, or the machine, does between two calls.
fn disturb(rng: &mut Rng, windows: &mut Windows, forest: &mut Forest) -> String {
    let done = match rng.u32(..12) {
        0..=2 => windows.open_any(rng, forest),
        3 => windows.close_any(rng),
        4 => windows.kill_any(rng),
        5 => windows.restart_any(rng),
        6 => windows.kill_agent(rng),
        7..=8 => windows.take_any(rng),
        9 => forest.toggle(rng, windows),
        10 => forest.save(rng),
        _ if rng.u32(..4) == 0 => windows.kill_coordinator(),
        _ => windows.take_any(rng),
    };
    if rng.bool() {
        windows.calm_down();
    }
    done
}
