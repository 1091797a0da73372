//! `cargo xtask explore changes`: clients edit and undo, another program saves, agents are killed, and a model says what the
//! files hold.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_tests::edits::{self, Options};
use clap::Parser;

/// Lines of the story that are shown with what was found.
const SHOWN: usize = 40;

/// Looks for a change that is lost, made twice, or undone by the wrong client.
#[derive(Debug, Parser)]
struct Wanted {
    /// How long at most
    #[arg(long, default_value_t = 60.0)]
    minutes: f64,
    /// Of the order of everything
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ends after so many steps
    #[arg(long, default_value_t = u64::MAX)]
    rounds: u64,
    /// A line for each step
    #[arg(long = "verbose")]
    is_verbose: bool,
}

#[expect(clippy::print_stdout, reason = "the result of the search")]
fn main() -> ExitCode {
    let wanted = Wanted::parse();
    let began = Instant::now();
    let until = began + Duration::from_secs_f64(wanted.minutes * 60.0);
    let options = Options { seed: wanted.seed, n_rounds: wanted.rounds, until: Some(until), is_rough: true };
    let mut story: Vec<String> = Vec::new();
    let found = edits::search(&options, &mut |line| {
        if wanted.is_verbose {
            println!("{:.1} {line}", began.elapsed().as_secs_f64());
        }
        story.push(line.to_owned());
    });
    match found {
        Ok(counts) => {
            println!("seed {}, {:.0} s: {counts:?}", wanted.seed, began.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(why) => {
            for line in story.iter().rev().take(SHOWN).rev() {
                println!("  {line}");
            }
            println!("seed {}, VIOLATION: {why}", wanted.seed);
            ExitCode::FAILURE
        }
    }
}
