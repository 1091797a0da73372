//! `baton stdio`: MCP over standard input and output.

use std::path::Path;

use baton_bridge::{Options, Stand};
use baton_link::find::FindOptions;
use baton_link::home::Home;
use clap::Args;

use super::outcome::Done;

#[derive(Debug, Args)]
pub(crate) struct StdioOptions {
    /// ID, name, or folder of the window [default: the one on the git tree, or the folder, of the working directory]
    #[arg(long)]
    window: Option<String>,
    /// Follow the live window; ignore the working directory
    #[arg(long, conflicts_with = "window")]
    live: bool,
}

pub(super) async fn run(options: StdioOptions) -> Done {
    let find = FindOptions::new(Home::from_env()?);
    let (window, stand) = match options.window {
        None if options.live => (None, None),
        None => (None, Stand::of_process()),
        Some(window) => named(window),
    };
    baton_bridge::run(Options { find, window, stand }, tokio::io::stdin(), tokio::io::stdout()).await;
    Ok(())
}

/// A folder may be given as a person types it, and lie inside of the window's own.
fn named(window: String) -> (Option<String>, Option<Stand>) {
    match Path::new(&window).canonicalize() {
        Ok(path) if window.contains(std::path::is_separator) || window == "." => {
            (Some(path.to_string_lossy().into_owned()), Stand::of(&path))
        }
        // A window may be called as a folder here is.
        Ok(path) if path.is_dir() => (Some(window), Stand::of(&path)),
        _ => (Some(window), None),
    }
}
