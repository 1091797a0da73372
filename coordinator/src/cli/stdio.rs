//! `baton stdio`: MCP over standard input and output.

use clap::Args;

use super::{Done, Failed, exit};

#[derive(Debug, Args)]
pub(crate) struct StdioOptions {
    /// Window to talk to: id, unique prefix, name or folder; without it the one whose folder holds the working directory
    #[arg(long)]
    window: Option<String>,
}

pub(super) async fn run(options: StdioOptions) -> Done {
    let _ = options.window;
    Err(Failed::new(exit::UNAVAILABLE, "the bridge is not part of this build"))
}
