//! `cargo xtask explore fuzz`: libFuzzer on the stable toolchain. What it finds becomes a file of the corpus.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::run::{cache, command, logged, output_of, root, say, shown};
use crate::task::cargo;

/// An input that takes longer than this is a hang, in seconds.
const INPUT_SECONDS: u64 = 10;
/// Memory of one fuzzer, in MiB; what an input may take is bounded by the fuzzer's own allocator.
const MEMORY_MB: u64 = 2_048;
/// Longest input: what is wrong beyond that is wrong with less.
const INPUT_BYTES: u64 = 4_096;

/// How a run goes.
#[derive(Clone, Copy)]
struct Run {
    seconds: u64,
    seed: u32,
}

/// `cargo xtask explore fuzz [-- TARGET...]`: the targets share the time.
pub(crate) fn fuzz(names: &[String], time: Duration, seed: u32) -> Result<()> {
    let all = targets()?;
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!("no target is named {unknown}; there are {}", all.join(", "));
    }
    let chosen = if names.is_empty() { all } else { names.to_vec() };
    let program = build()?;
    let rounds = chosen.len().div_ceil(n_threads(&chosen)) as u64;
    run_all(&program, &chosen, Run { seconds: (time.as_secs() / rounds).max(1), seed })
}

fn n_threads(targets: &[String]) -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(targets.len()).max(1)
}

/// Every target has a folder of the corpus.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(corpus()).context("the corpus cannot be read")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn corpus() -> PathBuf {
    root().join("tests/fuzz/corpus")
}

fn scratch() -> PathBuf {
    root().join("target/fuzz")
}

/// Builds into a folder of its own: the workspace's crates are instrumented there.
fn build() -> Result<PathBuf> {
    ensure_compiler()?;
    say("building the fuzzer");
    let mut cargo =
        cargo(&["build", "--package", "baton-fuzz", "--features", "libfuzzer", "--profile", "fuzz"]);
    cargo.arg("--target-dir").arg(scratch());
    cargo.env("RUSTC_WORKSPACE_WRAPPER", root().join("tests/fuzz/rustc.sh"));
    // Set from outside they would make everything anew, and miss build scripts.
    cargo.env_remove("RUSTFLAGS");
    shown("cargo build", &mut cargo)?;
    Ok(scratch().join("fuzz/baton-fuzz"))
}

/// libFuzzer is written in C++ and compiled with ours.
fn ensure_compiler() -> Result<()> {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if output_of(command(compiler).arg("--version")).is_some() {
        return Ok(());
    }
    let hint = "libFuzzer needs a C++ compiler: install one (`apt-get install g++`), or name it with CXX";
    bail!(hint)
}

/// As many at a time as there are processors; all of them, whatever one finds.
fn run_all(program: &Path, targets: &[String], run: Run) -> Result<()> {
    let n_threads = n_threads(targets);
    let seconds = run.seconds * targets.len().div_ceil(n_threads) as u64;
    say(&format!(
        "fuzzing {} targets for {} s each, {n_threads} at a time: {seconds} s",
        targets.len(),
        run.seconds
    ));
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = run_one(program, target, run) {
                        say(&format!("{target}: {error:#}"));
                        failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(target.clone());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "the fuzzer broke {}; put the input into tests/fuzz/corpus/TARGET, where `cargo test the_corpus_holds` runs it, \
         and write the smallest test that fails",
        failed.join(", ")
    )
}

fn run_one(program: &Path, target: &str, run: Run) -> Result<()> {
    let kept = scratch().join("corpus").join(target);
    let crashes = scratch().join("crashes");
    for folder in [&kept, &crashes] {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let mut fuzzer = command(program);
    fuzzer.env("BATON_FUZZ", target).env("RUST_BACKTRACE", "1").args([&kept, &corpus().join(target)]);
    fuzzer.arg(format!("-max_total_time={}", run.seconds));
    fuzzer.arg(format!("-timeout={INPUT_SECONDS}"));
    fuzzer.arg(format!("-rss_limit_mb={MEMORY_MB}"));
    fuzzer.arg(format!("-max_len={INPUT_BYTES}"));
    fuzzer.arg(format!("-artifact_prefix={}/{target}-", crashes.display()));
    fuzzer.args(["-print_final_stats=1", "-use_value_profile=1"]);
    fuzzer.arg(format!("-seed={}", run.seed));
    let words = root().join("tests/fuzz/words").join(target);
    if words.is_file() {
        fuzzer.arg(format!("-dict={}", words.display()));
    }
    run_logged(target, &mut fuzzer)
}

/// One line of what was reached; the log is kept.
fn run_logged(target: &str, fuzzer: &mut Command) -> Result<()> {
    let label = format!("fuzz {target}");
    let result = logged(&label, fuzzer);
    let log = std::fs::read(cache().join("logs").join(format!("fuzz-{target}.log"))).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let n_runs = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let reached = log.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once(" cov: ")?;
        rest.split_whitespace().next()
    });
    let (n_runs, reached) = (n_runs.map_or("?", str::trim), reached.unwrap_or("?"));
    say(&format!("  {target}: {n_runs} inputs, {reached} edges reached"));
    result
}
