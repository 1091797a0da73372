//! The command line of `baton-agent`.

use std::path::PathBuf;

use baton_proto::control::WindowKind;
use baton_proto::ids::WindowId;
use clap::{Parser, Subcommand, ValueEnum};

use crate::install::InstallOptions;

/// The agent of one Baton window, started by `baton window` or the VS Code extension. It exits when its stdin
/// closes.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "baton-agent",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Options {
    /// What to do instead of serving a window.
    #[command(subcommand)]
    pub verb: Option<Verb>,

    /// ID of the window; it survives restarts of this agent
    #[arg(long, required_unless_present_any = ["print_catalogue", "storage"])]
    pub window: Option<WindowId>,

    /// Folder that stores the IDs of an editor's windows; a free one is claimed for the process that started this
    /// agent
    #[arg(long, value_name = "DIR", conflicts_with = "window")]
    pub storage: Option<PathBuf>,

    /// Display name of the window [default: the name of its first folder]
    #[arg(long)]
    pub name: Option<String>,

    /// Folder of the window; can be repeated
    #[arg(long = "folder", value_name = "DIR")]
    pub folders: Vec<PathBuf>,

    /// Kind of window
    #[arg(long, value_enum, default_value = "headless")]
    pub kind: Kind,

    /// Let the window become live automatically
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub auto_start: bool,

    /// Print the tool catalog as JSON and exit
    #[arg(long)]
    pub print_catalogue: bool,

    /// Serve MCP without a coordinator, on --port; for measurements.
    #[arg(long, hide = true)]
    pub standalone: bool,

    /// Loopback port of the MCP server; 0 is any free one.
    #[arg(long, hide = true, default_value_t = 0)]
    pub port: u16,
}

/// What the program does besides serving a window.
#[derive(Clone, Debug, Subcommand)]
pub enum Verb {
    /// List, install, and check debug adapters
    Adapters(InstallOptions),
    /// List, install, and check language servers
    Servers(InstallOptions),
}

/// [`WindowKind`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Kind {
    /// A window on a folder without an editor.
    Headless,
    /// A VS Code window.
    Vscode,
}

impl From<Kind> for WindowKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Headless => WindowKind::Headless,
            Kind::Vscode => WindowKind::Vscode,
        }
    }
}
