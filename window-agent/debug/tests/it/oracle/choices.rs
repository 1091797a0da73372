//! What a generator of programs chooses by, and the search among what it can choose. Smaller and fewer numbers make a
//! simpler program.
//!
//! `BATON_ORACLE_CASES` and `BATON_ORACLE_SEED` (1) choose how many programs and which; what fails shrinks.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Numbers to choose by; endless zeros follow.
pub(crate) struct Choices {
    numbers: std::vec::IntoIter<u16>,
}

impl Choices {
    pub(crate) fn new(numbers: Vec<u16>) -> Self {
        Self { numbers: numbers.into_iter() }
    }

    /// One of `0..n`.
    pub(crate) fn pick(&mut self, n: usize) -> usize {
        usize::from(self.numbers.next().unwrap_or(0)) % n
    }

    pub(crate) fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.pick(all.len())]
    }
}

/// Plays that many programs, each chosen by numbers for itself and numbers for what is done with it; panics with the
/// simplest that fails.
pub(crate) fn search<T>(n_cases: u32, play: impl AsyncFn(Vec<u16>, Vec<u16>) -> anyhow::Result<T>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seed = number("BATON_ORACLE_SEED").unwrap_or(1);
    let cases = number("BATON_ORACLE_CASES").map_or(n_cases, |cases| u32::try_from(cases).unwrap());
    let config = Config {
        cases,
        max_shrink_iters: 400,
        max_shrink_time: 120_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let numbers = || prop::collection::vec(any::<u16>(), 0..80);
    let outcome = runner.run(&(numbers(), numbers()), |(program, moves)| {
        let outcome = runtime.block_on(play(program, moves));
        outcome.map(|_| ()).map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    if let Err(error) = outcome {
        panic!("seed {seed}: {error}");
    }
}

fn number(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap())
}
