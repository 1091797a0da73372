//! An oracle for the compiled languages and JavaScript: generated programs, breakpoints and moves, played through
//! Baton and through a debugger without it. What both tell at each stop must be the same: stack, breakpoints, values,
//! and at the end output and exit.
//!
//! gdb, node's inspector and delve are driven by their own means (`generated/gdb.py`, `node.mjs`, `delve.py`); lldb's
//! two adapters are compared with gdb, by breakpoints alone, as two debuggers step in their own ways. The generator's
//! search is by hand, `cargo xtask explore oracle`; what it found is played here again, with one program of its own.

#[path = "../it/oracle/choices.rs"]
mod choices;
mod play;
mod program;
mod truth;

use play::Pair;
use program::Tongue;
use truth::Driver;

const JS_DEBUG: Pair = Pair {
    adapter: "js-debug",
    tongue: Tongue::JavaScript,
    driver: Driver::Node,
    is_same_debugger: true,
    logs: true,
};
const GDB_C: Pair =
    Pair { adapter: "gdb", tongue: Tongue::C, driver: Driver::Gdb, is_same_debugger: true, logs: true };
const GDB_RUST: Pair = Pair { tongue: Tongue::Rust, ..GDB_C };
const LLDB_C: Pair = Pair { adapter: "lldb-dap", is_same_debugger: false, ..GDB_C };
const LLDB_RUST: Pair = Pair { tongue: Tongue::Rust, ..LLDB_C };
const CODELLDB_C: Pair = Pair { adapter: "codelldb", ..LLDB_C };
const CODELLDB_RUST: Pair = Pair { tongue: Tongue::Rust, ..CODELLDB_C };
const DELVE: Pair =
    Pair { adapter: "delve", tongue: Tongue::Go, driver: Driver::Delve, is_same_debugger: true, logs: false };

/// The programs that are always the same: their numbers for [`fixed`].
const FIXED: [u32; 3] = [1, 2, 28];

/// For each pair a program that is always the same, and the search.
macro_rules! pairs {
    ($($name:ident: $pair:ident;)*) => {
        $(mod $name {
            #[tokio::test]
            async fn some_programs_are_debugged_as_a_plain_debugger_does() {
                let mut n_stops = 0;
                for nth in super::FIXED {
                    let (program, moves) = super::fixed(nth);
                    n_stops += super::play::both(&super::$pair, program, moves).await.unwrap();
                }
                assert!(n_stops > 3, "programs that stop {n_stops} times show little");
            }

            #[test]
            #[ignore = "generated programs: a search, by hand with `cargo xtask explore oracle`"]
            fn programs_are_debugged_as_a_plain_debugger_does() {
                super::choices::search(8, async |program, moves| super::play::both(&super::$pair, program, moves).await);
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

#[test]
fn one_of_the_fixed_programs_calls_in_a_thread() {
    let text = |nth| program::write(Tongue::C, &mut choices::Choices::new(fixed(nth).0)).text;
    assert!(FIXED.iter().any(|nth| text(*nth).contains("= in_thread(f")));
}

/// Numbers that make the same program and the same moves each time.
fn fixed(nth: u32) -> (Vec<u16>, Vec<u16>) {
    let numbers = |factor: u32| {
        let number = move |n: u32| (n.wrapping_mul(n).wrapping_mul(factor.wrapping_mul(nth)) >> 7) as u16;
        (1..=60).map(number).collect()
    };
    (numbers(2_654_435), numbers(2_246_822_519))
}
