//! Worlds that are part of `cargo xtask test`: always the same ones. Elsewhere there is nothing to simulate.
#![cfg(sim)]

use std::process::Command;

/// As many as a minute beside the windows' tests allows; the other tests take others, as a world's folder is named after
/// its seed.
const SEEDS: &str = "60";

/// What the simulation prints with these arguments, and whether nothing is broken.
fn simulate(arguments: &[&str]) -> (bool, String) {
    // At run time: a shell, as what adds `--cfg sim` is one, passes no variable on whose name has a hyphen.
    let program = std::env::var_os("CARGO_BIN_EXE_baton-sim").unwrap();
    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    let output = Command::new(program).args(arguments).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn nothing_is_broken_in_any_world() {
    let (is_fine, told) = simulate(&["--seeds", SEEDS]);
    assert!(is_fine && told.contains(&format!("{SEEDS} worlds of 60 s")), "{told}");
}

#[test]
fn a_world_is_the_same_each_time() {
    let (is_fine, told) = simulate(&["--seed", "62"]);
    assert!(is_fine && told.contains(" calls, "), "{told}");
    assert_eq!(told, simulate(&["--seed", "62"]).1);
}

/// The checks do see what they are for.
#[test]
fn a_fault_in_the_product_is_found() {
    let (is_fine, told) = simulate(&["--seed", "61", "--plant", "no-term"]);
    assert!(!is_fine && told.contains("BROKEN"), "{told}");
}

/// Each of them found a fault once, see docs/simulation.md.
#[test]
fn what_was_found_is_mended() {
    for seed in ["578", "1605", "1933", "3107", "3684", "20708"] {
        let (is_fine, told) = simulate(&["--seed", seed]);
        assert!(is_fine, "{told}");
    }
}
