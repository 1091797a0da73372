//! The command line: what can be said, and one file per verb.
//!
//! Scripts depend on names, output and exit codes; `docs/commands.md` is the contract.

mod adapters;
mod command;
mod config;
mod logs;
mod output;
mod serve;
mod settings;
mod status;
mod stdio;
mod up;
mod window;

use std::path::PathBuf;
use std::process::ExitCode;

use baton_link::connection::{CallError, Connection};
use baton_link::find::{FindError, FindOptions, find, find_or_start};
use baton_link::home::{Home, HomeError};
use clap::{Args, Parser, Subcommand};

use crate::clients::Client;
use crate::logging;

/// The program's exit codes.
pub(crate) mod exit {
    /// Something was refused or failed.
    pub(crate) const FAILED: u8 = 1;
    /// No coordinator runs, and the verb starts none.
    pub(crate) const NOT_RUNNING: u8 = 3;
    /// The command line makes no sense.
    pub(crate) const USAGE: u8 = 64;
    /// A file of a client cannot be understood.
    pub(crate) const BROKEN_FILE: u8 = 65;
    /// The coordinator cannot be reached or started.
    pub(crate) const UNAVAILABLE: u8 = 69;
    /// Another coordinator runs.
    pub(crate) const ALREADY_RUNNING: u8 = 75;
    /// The state folder cannot be trusted.
    pub(crate) const UNTRUSTED: u8 = 77;
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 refused or failed, 3 no coordinator runs (status, windows), 64 wrong usage, \
65 a client's file is broken, 69 the coordinator cannot be reached or started, \
75 another coordinator runs (serve), 77 the state folder cannot be trusted.

Environment: BATON_HOME (state folder), BATON_PORT (port), BATON_LOG (log filter, such as `debug`), BATON_ADAPTERS and BATON_SERVERS (folders of what Baton installed).";

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
    /// Make sure the coordinator runs, and print its URL
    Up(up::UpOptions),
    /// Stop the coordinator; `baton up` or a new window starts it again, open windows do not
    Down,
    /// Show the coordinator and its windows
    Status(JsonOption),
    /// List the windows
    Windows(JsonOption),
    /// Run a window without an editor on a folder, in the foreground
    Window(window::WindowOptions),
    /// Make a window live
    Take(Target),
    /// Start a window: it becomes live
    Start(Target),
    /// Stop a window: it is off until it is started or taken
    Stop(Target),
    /// Restart the agent of a window; it stands afterwards where it stood
    Restart(Target),
    /// MCP over standard input and output, for clients that run a command
    Stdio(stdio::StdioOptions),
    /// Print what an AI client's configuration needs, or write it there
    Config(config::ConfigOptions),
    /// Move the coordinator to another port, for good
    Port(settings::PortArgument),
    /// Print the token of MCP clients
    Token(settings::TokenOptions),
    /// Show or change the settings
    Settings(settings::SettingsOptions),
    /// Show the newest log file
    Logs(logs::LogsOptions),
    /// Debug adapters: list, install, check
    Adapters(adapters::AdaptersOptions),
    /// Language servers: list, install, check
    Servers(adapters::AdaptersOptions),
}

#[derive(Debug, Args)]
struct JsonOption {
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PortOption {
    /// Port to listen on (0: any free one); kept for later starts
    #[arg(long, env = "BATON_PORT", value_parser = parse_port)]
    port: Option<u16>,
}

#[derive(Debug, Args)]
struct Target {
    /// Id, unique prefix of an id, name, or folder of a window
    window: String,
}

/// A verb failed: one sentence for people, and the exit code for scripts.
#[derive(Debug)]
pub(crate) struct Failed {
    code: u8,
    message: String,
}

type Done = Result<(), Failed>;

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
            if !failed.message.is_empty() {
                output::error(&failed.message);
            }
            ExitCode::from(failed.code)
        }
    }
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
        Verb::Take(target) => command::run("take", &target.window).await,
        Verb::Start(target) => command::run("start", &target.window).await,
        Verb::Stop(target) => command::run("stop", &target.window).await,
        Verb::Restart(target) => command::run("restart", &target.window).await,
        Verb::Stdio(options) => stdio::run(options).await,
        Verb::Config(options) => config::run(options).await,
        Verb::Port(argument) => settings::port(argument).await,
        Verb::Token(options) => settings::token(options).await,
        Verb::Settings(options) => settings::settings(options).await,
        Verb::Logs(options) => logs::run(options).await,
        Verb::Adapters(options) => adapters::run("adapters", options).await,
        Verb::Servers(options) => adapters::run("servers", options).await,
    }
}

/// The coordinator that runs.
async fn running() -> Result<Connection, Failed> {
    Ok(find(&Home::from_env()?).await?)
}

/// The coordinator, started when there is none.
async fn started(port: Option<u16>) -> Result<Connection, Failed> {
    let options = FindOptions { port, ..FindOptions::new(Home::from_env()?) };
    Ok(find_or_start(&options).await?)
}

/// The URL for MCP clients.
fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/mcp")
}

/// A port that needs no privilege, or 0.
fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port == 0 || port >= 1024 => Ok(port),
        _ => Err("a port is a number from 1024 to 65535".to_owned()),
    }
}

/// Names of clients are values of an enum, so that `--help` lists them.
fn parse_client(text: &str) -> Result<Client, String> {
    Client::from_name(text).ok_or_else(|| format!("known clients are {}", Client::names().join(", ")))
}

/// A path as the user wrote it, made absolute.
fn absolute(path: &PathBuf) -> Result<PathBuf, Failed> {
    std::path::absolute(path)
        .map_err(|error| Failed::new(exit::USAGE, format!("{} is no path: {error}", path.display())))
}

impl Failed {
    fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// For a verb that has already said everything.
    fn silently(code: u8) -> Self {
        Self::new(code, "")
    }
}

impl From<HomeError> for Failed {
    fn from(error: HomeError) -> Self {
        let code = match error {
            HomeError::Untrusted { .. } => exit::UNTRUSTED,
            HomeError::Unknown | HomeError::Io { .. } => exit::UNAVAILABLE,
        };
        Self::new(code, with_sources(&error))
    }
}

impl From<FindError> for Failed {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Home(error) => error.into(),
            FindError::NotRunning => Self::new(exit::NOT_RUNNING, error.to_string()),
            error => Self::new(exit::UNAVAILABLE, with_sources(&error)),
        }
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        let mut message = error.to_string();
        let code = match &error {
            CallError::Refused { failure, .. } => {
                for candidate in &failure.candidates {
                    message.push_str(&format!("\n  {}  {}", candidate.id, candidate.name));
                }
                exit::FAILED
            }
            CallError::Lost | CallError::Silent | CallError::Malformed(_) => exit::UNAVAILABLE,
        };
        Self::new(code, message)
    }
}

/// An error with what caused it, in one sentence.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message} ({text})");
        }
        source = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn ports_need_no_privilege() {
        assert_eq!(parse_port("0"), Ok(0));
        assert_eq!(parse_port("7717"), Ok(7717));
        for bad in ["80", "65536", "-1", "x", ""] {
            assert!(parse_port(bad).is_err(), "{bad}");
        }
    }
}
