//! The debug adapters: installed by Baton itself, tested with one scenario, shown by the demo.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::install::{self, DEBUGPY, MCP_1, TYPESCRIPT};
use crate::run::{cache, command, shown, shown_again};
use crate::task::{PROGRAMS, build, built, cargo};

/// Installs all adapters with the agent that was built, and what builds the programs of the tests.
pub(crate) fn install() -> Result<()> {
    TYPESCRIPT.install()?;
    install_with("debug")
}

/// The adapters alone, with the agent of that build.
pub(crate) fn install_with(profile: &str) -> Result<()> {
    install_some(profile, "--all")
}

/// The one that an extension of the window tests stands before.
pub(crate) fn install_for_windows() -> Result<()> {
    install_some("debug", "lldb-dap")
}

fn install_some(profile: &str, which: &str) -> Result<()> {
    let mut agent = command(built(profile, "baton-agent")?);
    agent.args(["adapters", "install", which]);
    shown("installing the debug adapters", with_tools(&mut agent)?)
}

/// `cargo xtask test adapters`; they are installed already.
pub(crate) fn test() -> Result<()> {
    // The whole workspace, so that nothing is compiled twice; two at a time, for each runs a compiler, a debugger
    // and a program.
    let arguments = ["test", "--workspace", "--test", "adapters", "--", "--test-threads", "2"];
    shown_again("the tests of the debug adapters", with_tools(&mut cargo(&arguments))?)
}

/// `cargo xtask demo --adapters`.
pub(crate) fn demo() -> Result<()> {
    DEBUGPY.install()?;
    MCP_1.install()?;
    build(&PROGRAMS, &["--bins"])?;
    install()?;
    let mut demo = command(built("debug", "baton-demo")?);
    demo.arg("--adapters");
    shown("the demo", with_tools(&mut demo)?)
}

/// Where the adapters are, and Node on the search path.
pub(crate) fn with_tools(command: &mut Command) -> Result<&mut Command> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let node = install::node_home().join("bin");
    let folders: Vec<PathBuf> = std::iter::once(node).chain(std::env::split_paths(&path)).collect();
    let path = std::env::join_paths(folders).context("the search path cannot be extended")?;
    Ok(command.env("PATH", path).env("BATON_ADAPTERS", cache().join("adapters")))
}
