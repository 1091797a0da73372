//! The tasks themselves.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::install::{
    self, AI_CLIENTS, CODENAV_MCP, DAP_MCP, DEBUGGER_MCP, DEBUGPY, MCP_1, MCP_2, MCP_DEBUGGER, MCP_PROXY,
    NODE_CLIENTS, RXJS, SERENA, SUPERGATEWAY,
};
use crate::nextest::{ADAPTERS_TARGETS, USUAL_TARGETS};
use crate::report::{Case, Failure, Outcome};
use crate::run::{cache, command, logged, root, say, shown};
use crate::suites::{self, Suite};
use crate::{adapters, windows};

/// `cargo xtask demo`.
pub(crate) fn demo(stay: bool, page: bool) -> Result<()> {
    in_parallel(&[&|| DEBUGPY.install(), &|| MCP_1.install()])?;
    build(&PROGRAMS, &["--bins"])?;
    let mut demo = command(built("debug", "baton-demo")?);
    demo.args(
        [(stay, "--stay"), (page, "--page")].iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, flag)| flag),
    );
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

/// `cargo xtask check`: formatting and lints, each a case.
pub(crate) fn check_cases() -> Vec<Case> {
    let fmt = cargo(&["fmt", "--all", "--check"]);
    let clippy = |targets: &[&str]| {
        let mut clippy = cargo(&["clippy", "--quiet"]);
        clippy.args(targets).args(["--", "--deny", "warnings"]);
        clippy
    };
    let usual = clippy(&["--workspace", "--all-targets"]);
    let steps = [
        ("cargo fmt --check", fmt),
        ("cargo clippy", usual),
        ("cargo clippy adapters", clippy(&ADAPTERS_TARGETS)),
    ];
    steps.map(|(name, step)| check_case(name, step)).into()
}

pub(crate) fn check_case(name: &str, mut step: Command) -> Case {
    let began = Instant::now();
    let outcome = match logged(name, &mut step) {
        Ok(()) => Outcome::Passed,
        Err(error) => {
            say(&format!("error: {error:#}"));
            Outcome::Failed(Failure::new(format!("{error:#}")))
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    Case { suite: Suite::Check, home: String::new(), name: name.to_owned(), seconds, outcome }
}

/// `cargo xtask check`: with the tests of the extension's parts, and the house rules, which read our own sources and run
/// nothing.
pub(crate) fn check() -> Result<bool> {
    let began = Instant::now();
    let mut cases = check_cases();
    cases.push(windows::lint()?);
    cases.extend(windows::test_parts()?);
    cases.extend(suites::runner_of(&["--workspace", "--test", "it"])?.run(suites::HOUSE_RULES)?);
    Ok(suites::finish(cases, began))
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
    install::install_for_it()?;
    windows::install()?;
    build_tests(true, || install_servers(&SERVERS).and_then(|()| adapters::install()))
}

pub(crate) fn install_for_tests(with_clients: bool) -> Result<()> {
    if !with_clients {
        return DEBUGPY.install();
    }
    // Node comes through the first environment's pip, so those two are made one after the other.
    let node = || DEBUGPY.install().and_then(|()| NODE_CLIENTS.install()).and_then(|()| AI_CLIENTS.install());
    in_parallel(&[&node, &|| MCP_1.install(), &|| MCP_2.install()])
}

/// The language servers that the tests ask, installed as a user does it.
pub(crate) fn install_servers(names: &[&str]) -> Result<()> {
    install_servers_with("debug", names)
}

/// The same with the agent of that build.
fn install_servers_with(profile: &str, names: &[&str]) -> Result<()> {
    say("looking for the language servers");
    let mut install = command(built(profile, "baton-agent")?);
    install.args(["servers", "install"]).args(names);
    shown("baton servers install", install.arg("--into").arg(cache().join("servers")))
}

/// All of the table, each with the story of `window-agent/tests/it/code/languages.rs`.
pub(crate) const SERVERS: [&str; 8] = [
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

/// Builds all tests; the adapters' when they are wanted. Runs `meanwhile` as soon as the agent is there, whose network
/// it waits for while the build takes the processor.
pub(crate) fn build_tests(with_adapters: bool, meanwhile: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    say("building the programs");
    let mut build = cargo(&["build", "--message-format=json-render-diagnostics"]);
    let mut build =
        build.args(USUAL_TARGETS).stdout(Stdio::piped()).spawn().context("cargo cannot be started")?;
    let told = BufReader::new(build.stdout.take().context("cargo's output is piped")?);
    std::thread::scope(|scope| {
        let mut meanwhile = Some(meanwhile);
        let mut running = None;
        for line in told.lines() {
            if is_agent(&line?)
                && let Some(meanwhile) = meanwhile.take()
            {
                running = Some(scope.spawn(meanwhile));
            }
        }
        let status = build.wait()?;
        anyhow::ensure!(status.success(), "cargo build failed ({status}); what it printed is above");
        if with_adapters {
            shown("cargo build", cargo(&["build"]).args(ADAPTERS_TARGETS))?;
        }
        let running = running.context("cargo has not told of the agent")?;
        running.join().unwrap_or_else(|_| bail!("a step panicked"))
    })
}

/// Whether cargo tells in this line that the agent's program is built.
fn is_agent(line: &str) -> bool {
    let told: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let executable = told["executable"].as_str().unwrap_or_default();
    told["reason"] == "compiler-artifact" && Path::new(executable).ends_with("debug/baton-agent")
}

/// A program that was just built: started directly, because `cargo run` would select other features and build anew.
pub(crate) fn built(profile: &str, name: &str) -> Result<PathBuf> {
    let xtask = std::env::current_exe()?;
    let target = xtask.parent().and_then(Path::parent).context("xtask lies in the target folder")?;
    let path = target.join(profile).join(name);
    anyhow::ensure!(path.is_file(), "{} was not built", path.display());
    Ok(path)
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
