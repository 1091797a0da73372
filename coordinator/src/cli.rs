//! The command line: what can be said, and one file per verb.
//!
//! Scripts depend on names, output and exit codes; `docs/commands.md` is the contract.

mod adapters;
mod cache;
mod command;
mod config;
mod doctor;
mod logs;
mod memory;
mod network;
mod open;
mod outcome;
mod output;
mod profile;
mod programs;
mod raw_sse;
mod reach;
mod record;
mod replay;
mod report;
mod serve;
mod settings;
mod status;
mod stdio;
mod up;
mod window;

use std::path::Path;
use std::process::ExitCode;

use baton_daemon::holder;
use baton_link::home::{HOME_VARIABLE, Home};
use baton_proto::shim::Verb as Order;
use clap::{Args, Parser, Subcommand};

use self::outcome::{Done, Failed, exit};
use crate::logging;

const EXIT_CODES: &str = "\
Exit codes:
  0   success
  1   failure
  3   the coordinator is not running (status, windows)
  64  invalid usage
  65  invalid client configuration file
  69  cannot reach or start the coordinator
  75  another coordinator is already running (serve)
  77  the state folder is not safe to use

Environment variables:
  BATON_HOME      State folder
  BATON_PORT      Port
  BATON_LOG       Log filter, such as `debug`
  BATON_ADAPTERS  Folder of installed debug adapters
  BATON_SERVERS   Folder of installed language servers
  LCP_PORT        Port, where BATON_PORT is not set
  LCP_LOG_LEVEL   Log filter, where BATON_LOG is not set
  LCP_TMP_DIR     Folder for temporary files";

/// One MCP URL for all your VS Code windows.
#[derive(Debug, Parser)]
#[command(name = "baton", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the coordinator in the foreground
    Serve(serve::Serve),
    /// Start the coordinator if needed and print its URL
    Up(up::UpOptions),
    /// Stop the coordinator until `baton up` or a new window starts it
    Down,
    /// Show the coordinator and its windows
    Status(JsonOption),
    /// List the windows
    Windows(JsonOption),
    /// Run a headless window on a folder in the foreground
    Window(window::WindowOptions),
    /// Make a window live
    Take(Target),
    /// Start a window and make it live
    Start(Target),
    /// Stop a window; it stays off until you start or take it
    Stop(Target),
    /// Restart a window's agent; the window keeps its state
    Restart(Target),
    /// Serve MCP over stdio, for clients that run a command
    Stdio(stdio::StdioOptions),
    /// Print or write the configuration for an AI client
    Config(config::ConfigOptions),
    /// Change the coordinator's port permanently
    Port(settings::PortArgument),
    /// Print or rotate the client token
    Token(settings::TokenOptions),
    /// Show or change settings
    Settings(settings::SettingsOptions),
    /// Open a page in the browser: which window is live and why, and what clients call
    Open(open::OpenOptions),
    /// Show the same in the terminal
    Top,
    /// Check everything that can keep Baton from working
    Doctor(JsonOption),
    /// Show the log
    Logs(logs::LogsOptions),
    /// Show or change what the coordinator and all windows log
    LogLevel(settings::LogLevelOptions),
    /// Write one file with everything that helps to find out what is wrong
    Report(report::ReportOptions),
    /// Find out where the coordinator or a window spends its processor time
    Profile(profile::ProfileOptions),
    /// Show what memory the coordinator, the windows and their programs take
    Memory(memory::MemoryOptions),
    /// Record what clients call and are answered
    Record(record::RecordOptions),
    /// Make the calls of a record once more, and show where the answers differ
    Replay(replay::ReplayOptions),
    /// Show the events that went to clients, byte by byte
    RawSse(raw_sse::RawSseOptions),
    /// Show what Baton keeps on this machine, and remove what nothing needs
    Cache(cache::CacheOptions),
    /// List, install, and check debug adapters
    Adapters(adapters::AdaptersOptions),
    /// List, install, and check language servers
    Servers(adapters::AdaptersOptions),
    /// Keep the coordinator's port while coordinators come and go
    #[command(hide = true)]
    HoldPort,
}

#[derive(Debug, Args)]
struct JsonOption {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Target {
    /// ID, unique ID prefix, name, or folder of the window
    window: String,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // When even standard error is closed, the exit code still tells.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 });
        }
    };
    if matches!(cli.verb, Verb::HoldPort) {
        return hold_port();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(run(cli.verb));
            // A read of standard input cannot be interrupted; do not wait for it.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Failed::new(exit::FAILED, format!("cannot start the runtime: {error}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            if !failed.why.message.is_empty() {
                output::error(&failed.why);
            }
            ExitCode::from(failed.code)
        }
    }
}

/// Without a runtime: it is there for as long as the coordinator, and is to cost nothing.
fn hold_port() -> ExitCode {
    let folder = std::env::var_os(HOME_VARIABLE).filter(|folder| Path::new(folder).is_dir());
    // Gone again already: it is not for the holder to make it.
    let Some(folder) = folder else { return ExitCode::from(exit::FAILED) };
    let held = Home::open(folder).map_err(std::io::Error::other).and_then(|home| holder::run(&home));
    if held.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) }
}

async fn run(verb: Verb) -> Done {
    if !matches!(verb, Verb::Serve(_)) {
        logging::start_command();
    }
    match verb {
        Verb::Serve(serve) => serve::run(serve).await,
        Verb::Up(options) => up::up(options).await,
        Verb::Down => up::down().await,
        Verb::Status(JsonOption { json }) => status::status(json).await,
        Verb::Windows(JsonOption { json }) => status::windows(json).await,
        Verb::Window(options) => window::run(options).await,
        Verb::Take(target) => command::run(Order::Take, &target.window).await,
        Verb::Start(target) => command::run(Order::Start, &target.window).await,
        Verb::Stop(target) => command::run(Order::Stop, &target.window).await,
        Verb::Restart(target) => command::run(Order::Restart, &target.window).await,
        Verb::Stdio(options) => stdio::run(options).await,
        Verb::Config(options) => config::run(options).await,
        Verb::Port(argument) => settings::port(argument).await,
        Verb::Token(options) => settings::token(options).await,
        Verb::Settings(options) => settings::settings(options).await,
        Verb::Open(options) => open::open(options).await,
        Verb::Top => open::top().await,
        Verb::Doctor(JsonOption { json }) => doctor::run(json).await,
        Verb::Logs(options) => logs::run(options).await,
        Verb::LogLevel(options) => settings::log_level(options).await,
        Verb::Report(options) => report::run(options).await,
        Verb::Profile(options) => profile::run(options).await,
        Verb::Memory(options) => memory::run(options).await,
        Verb::Record(options) => record::run(options).await,
        Verb::Replay(options) => replay::run(options).await,
        Verb::RawSse(options) => raw_sse::run(options).await,
        Verb::Cache(options) => cache::run(options),
        Verb::Adapters(options) => adapters::run("adapters", options).await,
        Verb::Servers(options) => adapters::run("servers", options).await,
        Verb::HoldPort => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
