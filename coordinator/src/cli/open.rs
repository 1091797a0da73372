//! `baton open`: the coordinator's page, in the user's browser.

use std::path::PathBuf;

use baton_link::home::Home;
use clap::Args;

use super::outcome::{Done, Failed, exit};
use super::output;
use super::reach::started;

/// What leads the browser to the page. A browser's arguments can be read by everybody, and its link is for one.
const FILE: &str = "open.html";

#[derive(Debug, Args)]
pub(crate) struct OpenOptions {
    /// Print the address instead, for a browser of your choice; it is good for one use within a minute
    #[arg(long)]
    print: bool,
}

pub(super) async fn run(options: OpenOptions) -> Done {
    let url = started(None).await?.page_link().await?.url;
    if options.print {
        output::line(url);
        return Ok(());
    }
    let file = write(&Home::from_env()?, &url)?;
    open::that_detached(&file).map_err(|error| {
        let failed = Failed::new(exit::FAILED, format!("cannot start a browser: {error}"));
        failed.with_hint("open the address that `baton open --print` gives, on this machine")
    })?;
    output::line("The page opens in your browser.");
    output::hint("if it does not, or the browser cannot read the file, use `baton open --print`");
    Ok(())
}

fn write(home: &Home, url: &str) -> Result<PathBuf, Failed> {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Baton</title>\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n\
         <a href=\"{url}\">Open Baton</a> (once, within a minute; `baton open` gives another link)\n"
    );
    let path = home.path().join(FILE);
    home.replace(FILE, page.as_bytes()).map_err(|error| {
        let failed = Failed::new(exit::FAILED, format!("cannot write {}: {error}", path.display()));
        failed.with_hint("use `baton open --print`, which writes no file")
    })?;
    Ok(path)
}
