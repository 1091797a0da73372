//! The binary `baton-agent`.

use std::io::Write;
use std::process::ExitCode;

use baton_window_agent::options::Options;
use baton_window_agent::tools::CATALOGUE;
use clap::Parser;

fn main() -> ExitCode {
    let options = Options::parse();
    if options.print_catalogue {
        return print_catalogue();
    }
    ExitCode::SUCCESS
}

fn print_catalogue() -> ExitCode {
    let text = serde_json::to_string_pretty(CATALOGUE.definitions()).unwrap_or_default();
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
