//! An oracle: random programs are debugged by random breakpoints and moves, and the interpreter's own tracer says what
//! is true: stops, stacks, values, logs, output, and which breakpoints were never hit.
//!
//! `BATON_ORACLE_CASES` (30) and `BATON_ORACLE_SEED` (1) choose how many and which; what fails shrinks.

mod choices;
mod play;
mod program;
mod truth;

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

#[test]
#[ignore = "generated programs: a search, by hand with `cargo nextest run -p baton-agent-debug --run-ignored all oracle`"]
fn python_is_debugged_as_its_tracer_tells() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seed = number("BATON_ORACLE_SEED", 1);
    let cases = number("BATON_ORACLE_CASES", 30);
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        max_shrink_iters: 400,
        max_shrink_time: 120_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let numbers = || prop::collection::vec(any::<u16>(), 0..80);
    let outcome = runner.run(&(numbers(), numbers()), |(program, play)| {
        let outcome = runtime.block_on(play::python(&python(), program, play));
        outcome.map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    if let Err(error) = outcome {
        panic!("seed {seed}: {error}");
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The interpreter with debugpy that `cargo xtask test` installs.
fn python() -> PathBuf {
    let given = std::env::var_os("BATON_TEST_PYTHON").map(PathBuf::from);
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = above.into_iter().find(|folder| folder.join("Cargo.lock").is_file()).unwrap();
    let python = given.unwrap_or_else(|| root.join(".cache/py/bin/python"));
    assert!(python.exists(), "there is no {}: `cargo xtask test` installs it", python.display());
    python
}
