//! `baton stdio`: MCP over standard input and output.

use baton_bridge::Options;
use baton_link::find::FindOptions;
use baton_link::home::Home;
use clap::Args;

use super::outcome::Done;

#[derive(Debug, Args)]
pub(crate) struct StdioOptions {
    /// ID, unique ID prefix, name, or folder of the window [default: the one that contains the working directory]
    #[arg(long)]
    window: Option<String>,
}

pub(super) async fn run(options: StdioOptions) -> Done {
    let find = FindOptions::new(Home::from_env()?);
    // A folder may be given as a person types it.
    let absolute = |window: String| match std::path::Path::new(&window).canonicalize() {
        Ok(path) if window.contains(std::path::is_separator) || window == "." => {
            path.to_string_lossy().into_owned()
        }
        _ => window,
    };
    let options =
        Options { find, window: options.window.map(absolute), folder: std::env::current_dir().ok() };
    baton_bridge::run(options, tokio::io::stdin(), tokio::io::stdout()).await;
    Ok(())
}
