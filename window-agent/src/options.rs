//! The command line of `baton-agent`.

use std::path::PathBuf;

use baton_proto::control::WindowKind;
use baton_proto::ids::WindowId;
use clap::{Parser, Subcommand, ValueEnum};

use crate::install::AdaptersOptions;
use crate::install::servers::ServersOptions;

/// The agent of one window of Baton. Started by `baton window` or by the VS Code extension; it ends when its
/// standard input does.
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

    /// Id of the window; it survives restarts of this agent.
    #[arg(long, required_unless_present_any = ["print_catalogue", "storage"])]
    pub window: Option<WindowId>,

    /// Where the ids of an editor's windows are kept, for one that has none yet: it is claimed for the process that
    /// started this agent.
    #[arg(long, value_name = "DIR", conflicts_with = "window")]
    pub storage: Option<PathBuf>,

    /// Name of the window for people [default: the name of its first folder].
    #[arg(long)]
    pub name: Option<String>,

    /// A folder of the window; may be repeated.
    #[arg(long = "folder", value_name = "DIR")]
    pub folders: Vec<PathBuf>,

    /// What the window is.
    #[arg(long, value_enum, default_value = "headless")]
    pub kind: Kind,

    /// Whether the window may become live by itself.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub auto_start: bool,

    /// Print the catalogue of tools as JSON and end.
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
    /// Debug adapters: which there are, and how to get them
    Adapters(AdaptersOptions),
    /// Language servers: which there are, and how to get them
    Servers(ServersOptions),
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
