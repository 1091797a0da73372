//! The debug adapters: installed by Baton itself, tested with one scenario, shown by the demo.

use std::process::Command;

use anyhow::Result;

use crate::install::{self, DEBUGPY, MCP_1, TYPESCRIPT};
use crate::run::{cache, command, shown};
use crate::task::{PROGRAMS, build, built};

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
    let path = install::path_with_node()?;
    Ok(command.env("PATH", path).env("BATON_ADAPTERS", cache().join("adapters")))
}
