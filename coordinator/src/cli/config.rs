//! `baton config CLIENT`: what an AI client's configuration needs, printed, written, or taken out again.

use std::path::PathBuf;

use baton_client_files::file::{self, FileError, Written};
use baton_client_files::{Client, Reach};
use baton_link::home::{HOME_VARIABLE, Home, HomeError};
use baton_proto::discovery::Role;
use clap::Args;
use serde_json::json;

use super::outcome::{Done, Failed, exit};
use super::output;
use super::reach::{started, url};

#[derive(Debug, Args)]
pub(crate) struct ConfigOptions {
    /// claude-code, claude-desktop, cursor, cline, roo, vscode, windsurf, codex, gemini or zed
    #[arg(value_parser = parse_client)]
    client: Client,
    /// Use the URL with the client token (default if the client supports it)
    #[arg(long, conflicts_with = "stdio")]
    http: bool,
    /// Use a command that needs no secret
    #[arg(long)]
    stdio: bool,
    /// Write it to the client's file, leaving everything else unchanged
    #[arg(long, conflicts_with = "remove")]
    write: bool,
    /// Remove Baton from the client's file
    #[arg(long)]
    remove: bool,
    /// Print the text and the file that it belongs into as JSON
    #[arg(long, conflicts_with_all = ["write", "remove"])]
    json: bool,
    /// Use this file instead of the client's global one
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

pub(super) async fn run(options: ConfigOptions) -> Done {
    let client = options.client;
    if options.http && !client.takes_http() {
        let message = "Claude Desktop supports only commands";
        return Err(Failed::new(exit::USAGE, message).with_hint("use --stdio"));
    }
    let path = match &options.file {
        Some(path) => absolute(path)?,
        None => client.default_file().ok_or_else(|| {
            let failed = Failed::new(exit::UNAVAILABLE, "cannot determine your home folder");
            failed.with_hint("pass the file with --file")
        })?,
    };
    let home = Home::from_env()?;
    if options.remove {
        let what = match file::remove(&home, client, &path)? {
            Written::Changed => "Removed Baton from",
            Written::Unchanged => "Baton is not in",
            Written::Deleted => "Deleted (it contained only Baton):",
        };
        output::note(format!("{what} {}", path.display()));
        return Ok(());
    }
    let by_command = options.stdio || (!options.http && !client.takes_http());
    let reach = if by_command { by_command_line(&home)? } else { by_url(&home, settled_port(&home).await?)? };
    let entry = client.entry(&reach);
    if options.write {
        let what = match file::write(&home, client, &path, &entry)? {
            Written::Unchanged => "Baton is already in",
            Written::Changed | Written::Deleted => "Added Baton to",
        };
        output::note(format!("{what} {}", path.display()));
        warn_of_bearer(&reach);
        return Ok(());
    }
    if options.json {
        output::json(&json!({ "text": client.render(&entry), "file": path }));
        return Ok(());
    }
    output::line(client.render(&entry));
    output::hint(format!("add this to {}, or rerun with --write", path.display()));
    warn_of_bearer(&reach);
    Ok(())
}

/// A client that sends a token to a port sends it to whoever has that port.
fn warn_of_bearer(reach: &Reach) {
    if matches!(reach, Reach::Http { .. }) {
        output::hint(
            "on a shared machine, prefer --stdio: with a URL, the client sends its token to any program listening on \
             the port",
        );
    }
}

/// The URL is what the client stores, so the port must be settled: by a running coordinator if need be.
async fn settled_port(home: &Home) -> Result<u16, Failed> {
    match home.stored_state().port {
        Some(port) => Ok(port),
        None => Ok(started(None).await?.hello().port),
    }
}

/// With the client token that is valid now.
pub(super) fn by_url(home: &Home, port: u16) -> Result<Reach, HomeError> {
    let role = Role::Client { epoch: home.stored_state().client_epoch };
    Ok(Reach::Http { url: url(port), token: home.secret()?.token(role).expose().to_owned() })
}

pub(super) fn by_command_line(home_folder: &Home) -> Result<Reach, Failed> {
    let program = std::env::current_exe().map_err(|error| {
        Failed::new(exit::FAILED, format!("cannot determine the path of this program: {error}"))
    })?;
    let program = program.to_string_lossy().into_owned();
    // The client starts the command without the environment of this shell.
    let home = std::env::var_os(HOME_VARIABLE).filter(|value| !value.is_empty());
    let home = home.map(|_| home_folder.path().to_string_lossy().into_owned());
    Ok(Reach::Stdio { program, args: vec!["stdio".to_owned()], home })
}

impl From<FileError> for Failed {
    fn from(error: FileError) -> Self {
        let code = match error {
            FileError::Broken { .. } => exit::BROKEN_FILE,
            FileError::Io { .. } => exit::FAILED,
        };
        Self::from_error(code, &error, error.hint().map(str::to_owned))
    }
}

/// Names of clients are values of an enum, so that `--help` lists them.
fn parse_client(text: &str) -> Result<Client, String> {
    let names = || Client::all().map(Client::name).collect::<Vec<_>>().join(", ");
    Client::from_name(text).ok_or_else(|| format!("possible values: {}", names()))
}

/// A path as the user wrote it, made absolute.
fn absolute(path: &PathBuf) -> Result<PathBuf, Failed> {
    std::path::absolute(path)
        .map_err(|error| Failed::new(exit::USAGE, format!("invalid path {}: {error}", path.display())))
}
