//! The binary `baton-agent`.

use std::io::Write;
use std::process::ExitCode;

use baton_agent_tools::CATALOGUE;
use baton_link::home::{Home, HomeError};
use baton_link::logging::{self, LIFECYCLES, LastWords, Stderr};
use baton_window_agent::options::{Kind, Options, Verb};
use baton_window_agent::{agent, install};
use clap::Parser;
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let mut options = Options::parse();
    match options.verb.take() {
        Some(Verb::Adapters(adapters)) => return install::adapters(adapters),
        Some(Verb::Servers(servers)) => return install::servers(servers),
        None => {}
    }
    if options.print_catalogue {
        return print_catalogue();
    }
    // The extension shows what it reads there; `baton window` lets a person's terminal show it.
    let from = match options.kind {
        Kind::Vscode => LevelFilter::INFO,
        Kind::Headless => LevelFilter::ERROR,
    };
    let home = Home::from_env().ok();
    let files = home.as_ref().map(|home| (home, "agent"));
    // Whoever has no log has been told by the coordinator, which writes to the same folder.
    let _ = logging::start(files, LIFECYCLES, Some(Stderr { from, has_time: false }));
    logging::log_panics();
    baton_errors::install(baton_errors::Process::Window);
    let _told = LastWords;
    run(options).unwrap_or_else(|error| {
        let hint = error.downcast_ref::<HomeError>().and_then(HomeError::hint);
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        tracing::error!("{error:#}{hint}");
        ExitCode::FAILURE
    })
}

fn run(options: Options) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(Box::pin(agent::run(options)));
    // A search of files may still run on its thread; nobody waits for it.
    runtime.shutdown_background();
    baton_link::scratch::remove();
    code
}

fn print_catalogue() -> ExitCode {
    let text = serde_json::to_string_pretty(CATALOGUE.definitions()).unwrap_or_default();
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
