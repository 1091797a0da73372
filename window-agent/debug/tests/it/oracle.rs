//! An oracle: random programs are debugged by random breakpoints and moves, and the interpreter's own tracer says what
//! is true: stops, stacks, values, logs, output, and which breakpoints were never hit.

mod choices;
mod play;
mod program;
mod truth;

use std::path::{Path, PathBuf};

#[test]
#[ignore = "generated programs: a search, by hand with `cargo nextest run -p baton-agent-debug --run-ignored all oracle`"]
fn python_is_debugged_as_its_tracer_tells() {
    choices::search(30, async |program, play| play::python(&python(), program, play).await);
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
