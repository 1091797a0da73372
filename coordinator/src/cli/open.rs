//! `baton open` and `baton top`: what the coordinator shows, in the user's browser and in the terminal.

use baton_link::home::Home;
use baton_show::{browser, top};
use clap::Args;

use super::outcome::{Done, Failed, exit};
use super::output;
use super::reach::started;

#[derive(Debug, Args)]
pub(crate) struct OpenOptions {
    /// Print the address instead, for a browser of your choice; it is good for one use within a minute
    #[arg(long)]
    print: bool,
}

pub(super) async fn open(options: OpenOptions) -> Done {
    let url = started(None).await?.page_link().await?.url;
    if options.print {
        output::line(url);
        return Ok(());
    }
    browser::open(&Home::from_env()?, &url).map_err(|why| Failed { code: exit::FAILED, why })?;
    output::line("The page opens in your browser.");
    output::hint("if it does not, or the browser cannot read the file, use `baton open --print`");
    Ok(())
}

pub(super) async fn top() -> Done {
    match top::run(&Home::from_env()?).await {
        Ok(()) => Ok(()),
        Err(top::TopError::Find(error)) => Err(error.into()),
        Err(error) => Err(Failed::from_error(exit::FAILED, &error, error.hint())),
    }
}
