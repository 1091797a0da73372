//! An oracle for the compiled languages and JavaScript: generated programs, breakpoints and moves, played through
//! Baton and through a debugger without it. What both tell at each stop must be the same: stack, breakpoints, values,
//! and at the end output and exit.
//!
//! gdb, node's inspector and delve are driven by their own means (`generated/gdb.py`, `node.mjs`, `delve.py`); lldb's
//! two adapters are compared with gdb, by breakpoints alone, as two debuggers step in their own ways. The generator's
//! search is by hand, `cargo xtask explore oracle`; what it found is played here again, with one program of its own.
//! `BATON_ORACLE_CASES` (8) and `BATON_ORACLE_SEED` (1) choose how many and which; what fails shrinks.

#[path = "../it/oracle/choices.rs"]
mod choices;
mod play;
mod program;
mod truth;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use play::Pair;
use program::Tongue;
use truth::Driver;

const JS_DEBUG: Pair = Pair {
    adapter: "js-debug",
    tongue: Tongue::JavaScript,
    driver: Driver::Node,
    is_same_debugger: true,
    counts: true,
    logs: true,
};
const GDB_C: Pair = Pair {
    adapter: "gdb",
    tongue: Tongue::C,
    driver: Driver::Gdb,
    is_same_debugger: true,
    counts: true,
    logs: false,
};
const GDB_RUST: Pair = Pair { tongue: Tongue::Rust, ..GDB_C };
const LLDB_C: Pair = Pair { adapter: "lldb-dap", is_same_debugger: false, ..GDB_C };
const LLDB_RUST: Pair = Pair { tongue: Tongue::Rust, ..LLDB_C };
const CODELLDB_C: Pair = Pair { adapter: "codelldb", ..LLDB_C };
const CODELLDB_RUST: Pair = Pair { tongue: Tongue::Rust, ..CODELLDB_C };
const DELVE: Pair = Pair {
    adapter: "delve",
    tongue: Tongue::Go,
    driver: Driver::Delve,
    is_same_debugger: true,
    counts: false,
    logs: false,
};

/// For each pair a program that is always the same, and the search.
macro_rules! pairs {
    ($($name:ident: $pair:ident;)*) => {
        $(mod $name {
            #[tokio::test]
            async fn some_programs_are_debugged_as_a_plain_debugger_does() {
                let mut n_stops = 0;
                for nth in 1..=3 {
                    let (program, moves) = super::fixed(nth);
                    n_stops += super::play::both(&super::$pair, program, moves).await.unwrap();
                }
                assert!(n_stops > 3, "programs that stop {n_stops} times show little");
            }

            #[test]
            #[ignore = "generated programs: a search, by hand with `cargo xtask explore oracle`"]
            fn programs_are_debugged_as_a_plain_debugger_does() {
                super::search(&super::$pair);
            }
        })*
    };
}

pairs! {
    js_debug: JS_DEBUG;
    gdb_c: GDB_C;
    gdb_rust: GDB_RUST;
    lldb_c: LLDB_C;
    lldb_rust: LLDB_RUST;
    codelldb_c: CODELLDB_C;
    codelldb_rust: CODELLDB_RUST;
    delve: DELVE;
}

/// Numbers that make the same program and the same moves each time.
fn fixed(nth: u32) -> (Vec<u16>, Vec<u16>) {
    let numbers = |factor: u32| {
        let number = move |n: u32| (n.wrapping_mul(n).wrapping_mul(factor.wrapping_mul(nth)) >> 7) as u16;
        (1..=60).map(number).collect()
    };
    (numbers(2_654_435), numbers(2_246_822_519))
}

fn search(pair: &Pair) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seed = number("BATON_ORACLE_SEED", 1);
    let config = Config {
        cases: u32::try_from(number("BATON_ORACLE_CASES", 8)).unwrap(),
        max_shrink_iters: 200,
        max_shrink_time: 120_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let numbers = || prop::collection::vec(any::<u16>(), 0..80);
    let outcome = runner.run(&(numbers(), numbers()), |(program, moves)| {
        let outcome = runtime.block_on(play::both(pair, program, moves));
        outcome.map(|_| ()).map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    if let Err(error) = outcome {
        panic!("seed {seed}: {error}");
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}
