//! The tasks themselves.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::install::{
    self, AI_CLIENTS, CODENAV_MCP, DAP_MCP, DEBUGGER_MCP, DEBUGPY, MCP_1, MCP_2, MCP_DEBUGGER, MCP_PROXY,
    NODE_CLIENTS, RXJS, SERENA, SUPERGATEWAY,
};
use crate::run::{cache, command, is_ci, output_of, root, say, shown, shown_again};
use crate::{adapters, fuzz, windows};

/// A part of `cargo xtask test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Tests inside the crates.
    Unit,
    /// Real processes: rules, edge, debugging, faults, threats, bad input.
    It,
    /// Official MCP clients against the whole.
    Clients,
    /// The official conformance suite, both revisions.
    Conformance,
    /// House rules: headers, lengths, purity.
    Tidy,
    /// Each fuzz target for 10 s; when it is named.
    Fuzz,
    /// Every debug adapter with one scenario; after the others.
    Adapters,
    /// Real VS Code windows in Chromium; after the others, one file at a time.
    Windows,
    /// Three minutes of faults under load, and a checker of everything that clients saw; when it is named.
    Chaos,
}

/// Suites that the test runner has no part in.
const ALONE: [Suite; 4] = [Suite::Adapters, Suite::Windows, Suite::Chaos, Suite::Fuzz];

/// `cargo xtask demo`.
pub(crate) fn demo(stay: bool) -> Result<()> {
    in_parallel(&[&|| DEBUGPY.install(), &|| MCP_1.install()])?;
    build(&PROGRAMS, &["--bins"])?;
    let mut demo = command(built("debug", "baton-demo")?);
    if stay {
        demo.arg("--stay");
    }
    shown("the demo", &mut demo)
}

/// `cargo xtask demo --code`.
pub(crate) fn demo_code() -> Result<()> {
    in_parallel(&[&|| DEBUGPY.install(), &|| MCP_1.install()])?;
    build(&PROGRAMS, &["--bins"])?;
    install_servers(&SERVERS[..1])?;
    let mut demo = command(built("debug", "baton-demo")?);
    shown("the demo", demo.arg("--code").env("BATON_TEST_PYTHON", DEBUGPY.python()))
}

/// `cargo xtask demo --vscode`.
pub(crate) fn demo_in_windows(stay: bool) -> Result<()> {
    windows::install()?;
    build(&PROGRAMS[..4], &["--bins"])?;
    let mut demo = command(install::node());
    demo.arg(root().join("tests/demo/windows.mjs"));
    if stay {
        demo.arg("--stay");
    }
    shown("the demo", &mut demo)
}

/// `cargo xtask test [suite...]`.
pub(crate) fn test(suites: &[Suite], only: &[String]) -> Result<()> {
    // A search gives another answer each time: it runs when it is named, never with all.
    let is_search = |suite| matches!(suite, Suite::Fuzz | Suite::Chaos);
    let wants = |suite| suites.contains(&suite) || (suites.is_empty() && !is_search(suite));
    let wants_runner = suites.is_empty() || suites.iter().any(|suite| !ALONE.contains(suite));
    let needs_clients = wants(Suite::Clients) || wants(Suite::Conformance);
    let needs_programs = wants(Suite::Unit) || wants(Suite::It) || needs_clients;
    if needs_programs {
        install_for_tests(needs_clients || wants(Suite::It))?;
    }
    if wants(Suite::Windows) {
        windows::install()?;
    }
    if needs_programs {
        // The same selection as the runner's, so that nothing is compiled twice.
        build(&["--workspace"], &["--all-targets"])?;
    } else if ALONE.iter().any(|suite| *suite != Suite::Fuzz && wants(*suite)) {
        build(&PROGRAMS, &["--bins"])?;
    }
    if wants(Suite::It) {
        install::install_faketime().and_then(|_| install::install_strace())?;
    }
    if wants(Suite::Unit) || wants(Suite::It) || wants(Suite::Windows) {
        install_servers(&SERVERS)?;
    }
    if wants(Suite::Unit) || wants(Suite::Adapters) {
        adapters::install()?;
    } else if wants(Suite::Windows) {
        adapters::install_for_windows()?;
    }
    let mut results = Vec::new();
    if wants_runner {
        say("running the tests");
        results.push(shown("the tests", &mut test_command(suites)));
    }
    if wants(Suite::Fuzz) {
        results.push(fuzz::test());
    }
    if wants(Suite::Adapters) {
        results.push(adapters::test());
    }
    if wants(Suite::Chaos) {
        results.push(chaos(&["--fixed".to_owned()]));
    }
    if wants(Suite::Windows) {
        // Not beside the others: what takes a browser and three extension hosts takes the machine.
        results.push(windows::test(only));
    }
    let failures: Vec<String> =
        results.into_iter().filter_map(|result| Some(format!("{:#}", result.err()?))).collect();
    if !failures.is_empty() {
        bail!("{}", failures.join("; "));
    }
    Ok(())
}

/// `cargo xtask chaos`: builds, and breaks things for as long as it is told.
pub(crate) fn chaos_by_hand(arguments: &[String]) -> Result<()> {
    build(&PROGRAMS, &["--bins"])?;
    chaos(arguments)
}

fn chaos(arguments: &[String]) -> Result<()> {
    let faketime = install::install_faketime()?;
    let mut chaos = command(built("debug", "baton-chaos")?);
    shown_again("chaos", chaos.args(arguments).env("BATON_FAKETIME", faketime))
}

/// Modules of the suite `it` that read our own sources and run nothing.
const HOUSE_RULES: [&str; 3] = ["tidy::", "walls::", "words::"];

/// `cargo xtask check`.
pub(crate) fn check() -> Result<()> {
    shown("cargo fmt --check", &mut cargo(&["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    shown("cargo clippy", &mut cargo(&clippy))?;
    // No part of all targets, as its adapters take long to install.
    let adapters = ["clippy", "--quiet", "--workspace", "--test", "adapters", "--", "--deny", "warnings"];
    shown("cargo clippy of the adapters' tests", &mut cargo(&adapters))?;
    let rules = ["test", "--quiet", "--workspace", "--test", "it", "--"];
    shown("the house rules", cargo(&rules).args(HOUSE_RULES))
}

/// `cargo xtask bench [name...]`.
pub(crate) fn bench(names: &[String]) -> Result<()> {
    if names == ["vscode"] {
        return bench_windows();
    }
    // `code` is a group of parts, each of which can be named, too.
    let is_part = |name: &str, part: &str| name.split('-').next() == Some(part);
    let wants = |part: &str| names.is_empty() || names.iter().any(|name| is_part(name, part));
    DEBUGPY.install().and_then(|()| install::install_node())?;
    if wants("edge") {
        in_parallel(&[&|| SUPERGATEWAY.install(), &|| MCP_PROXY.install(), &install::install_nginx])?;
    }
    if wants("peers") {
        in_parallel(&[&|| MCP_DEBUGGER.install(), &|| DEBUGGER_MCP.install(), &|| DAP_MCP.install()])?;
    }
    build(&PROGRAMS, &["--release", "--bins"])?;
    if wants("adapters") || wants("flood") {
        adapters::install_with("release")?;
    }
    if wants("code") {
        in_parallel(&[
            &|| RXJS.install(),
            &|| MCP_1.install(),
            &|| SERENA.install(),
            &|| CODENAV_MCP.install(),
            &|| install_servers_with("release", &SERVERS),
        ])?;
    }
    let mut bench = command(built("release", "baton-bench")?);
    adapters::with_tools(bench.args(names))?;
    if let Some(nginx) = install::nginx() {
        bench.env("BATON_NGINX", nginx);
    }
    shown("the benches", &mut bench)
}

/// `cargo xtask model [SECONDS]`.
pub(crate) fn model(seconds: u64) -> Result<()> {
    build(&PROGRAMS[4..], &["--bin", "baton-model"])?;
    shown("the model", command(built("debug", "baton-model")?).arg(seconds.to_string()))
}

/// `cargo xtask bench vscode`: what users feel, in real windows; prints a table.
fn bench_windows() -> Result<()> {
    windows::install()?;
    build(&PROGRAMS[..4], &["--release", "--bins"])?;
    let xtask = std::env::current_exe()?;
    let target = xtask.parent().and_then(Path::parent).context("xtask lies in the target folder")?;
    let mut measure = command(install::node());
    measure.arg(root().join("tests/vscode/measure.mjs")).env("BATON_TEST_BIN", target.join("release"));
    shown("the measurements", &mut measure)
}

/// `cargo xtask setup`: after it every suite starts at once.
pub(crate) fn setup() -> Result<()> {
    install_for_tests(true)?;
    windows::install()?;
    build(&["--workspace"], &["--all-targets"])?;
    install_servers(&SERVERS)?;
    adapters::install()
}

fn install_for_tests(with_clients: bool) -> Result<()> {
    if !with_clients {
        return DEBUGPY.install();
    }
    // Node comes through the first environment's pip, so those two are made one after the other.
    let node = || DEBUGPY.install().and_then(|()| NODE_CLIENTS.install()).and_then(|()| AI_CLIENTS.install());
    in_parallel(&[&node, &|| MCP_1.install(), &|| MCP_2.install()])
}

/// The language servers that the tests ask, installed as a user does it.
fn install_servers(names: &[&str]) -> Result<()> {
    install_servers_with("debug", names)
}

/// The same with the agent of that build.
fn install_servers_with(profile: &str, names: &[&str]) -> Result<()> {
    say("looking for the language servers");
    let mut install = command(built(profile, "baton-agent")?);
    install.args(["servers", "install"]).args(names);
    shown("baton servers install", install.arg("--into").arg(cache().join("servers")))
}

/// All of the table, each with the story of `window-agent/tests/code/languages.rs`.
const SERVERS: [&str; 8] = [
    "ty",
    "typescript",
    "clangd",
    "rust-analyzer",
    "gopls",
    "basedpyright",
    "pyright",
    "typescript-language-server",
];

/// The programs of a user, and what drives them.
pub(crate) const PROGRAMS: [&str; 6] =
    ["-p", "baton-coordinator", "-p", "baton-window-agent", "-p", "baton-tests"];

/// Builds into the target folder, from where the tests start the programs.
pub(crate) fn build(packages: &[&str], arguments: &[&str]) -> Result<()> {
    say("building the programs");
    shown("cargo build", cargo(&["build"]).args(packages).args(arguments))
}

/// A program that was just built: started directly, because `cargo run` would select other features and build anew.
pub(crate) fn built(profile: &str, name: &str) -> Result<PathBuf> {
    let xtask = std::env::current_exe()?;
    let target = xtask.parent().and_then(Path::parent).context("xtask lies in the target folder")?;
    let path = target.join(profile).join(name);
    anyhow::ensure!(path.is_file(), "{} was not built", path.display());
    Ok(path)
}

/// One run of the test runner for all chosen suites, so that slow ones go side by side.
fn test_command(suites: &[Suite]) -> Command {
    let has_nextest = output_of(&mut cargo(&["nextest", "--version"])).is_some();
    let mut test = if has_nextest {
        cargo(&["nextest", "run", "--no-fail-fast"])
    } else {
        cargo(&["test", "--no-fail-fast"])
    };
    if has_nextest && is_ci() {
        // The summary lists what passed at the second try only, as FLAKY.
        test.args(["--retries", "1"]);
    }
    test.arg("--workspace");
    if !suites.is_empty() && !suites.contains(&Suite::Unit) {
        let targets = suites.iter().filter_map(|suite| match suite {
            Suite::Clients => Some("clients"),
            Suite::Conformance => Some("conformance"),
            Suite::Unit | Suite::It | Suite::Tidy => Some("it"),
            Suite::Adapters | Suite::Windows | Suite::Chaos | Suite::Fuzz => None,
        });
        for target in targets {
            test.args(["--test", target]);
        }
    }
    if suites.iter().all(|suite| *suite == Suite::Tidy || ALONE.contains(suite)) && !suites.is_empty() {
        test.arg("--").args(HOUSE_RULES);
    }
    test.env("BATON_TEST_PYTHON", DEBUGPY.python());
    test
}

/// cargo itself, as it runs this task.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments);
    cargo
}

/// Runs steps side by side; the first error is reported when all have ended.
fn in_parallel(steps: &[&(dyn Fn() -> Result<()> + Sync)]) -> Result<()> {
    std::thread::scope(|scope| {
        let running: Vec<_> = steps.iter().map(|step| scope.spawn(*step)).collect();
        let results: Vec<Result<()>> = running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a step panicked")))
            .collect();
        results.into_iter().collect::<Result<()>>().context("what the task needs could not be installed")
    })
}
