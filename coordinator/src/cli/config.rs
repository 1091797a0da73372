//! `baton config CLIENT`: what an AI client's configuration needs, printed, written, or taken out again.

use std::path::PathBuf;

use baton_link::home::{HOME_VARIABLE, Home};
use baton_proto::discovery::Role;
use clap::Args;

use super::{Done, Failed, absolute, exit, output, parse_client, started, url};
use crate::clients::{self, Client, FileError, Reach, Written};

#[derive(Debug, Args)]
pub(crate) struct ConfigOptions {
    /// claude-code, claude-desktop, cursor, cline, roo, vscode, windsurf, codex, gemini or zed
    #[arg(value_parser = parse_client)]
    client: Client,
    /// By URL, with the client token (the default where the client can)
    #[arg(long, conflicts_with = "stdio")]
    http: bool,
    /// By a command that needs no secret
    #[arg(long)]
    stdio: bool,
    /// Merge it into the client's file; everything else there stays as it is
    #[arg(long, conflicts_with = "remove")]
    write: bool,
    /// Take Baton out of the client's file again
    #[arg(long)]
    remove: bool,
    /// Another file than the client's own for all projects
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

pub(super) async fn run(options: ConfigOptions) -> Done {
    let client = options.client;
    if options.http && !client.takes_http() {
        let message = "Claude Desktop's file takes commands only; use --stdio";
        return Err(Failed::new(exit::USAGE, message));
    }
    let file = match &options.file {
        Some(file) => absolute(file)?,
        None => client.default_file().ok_or_else(|| {
            Failed::new(exit::UNAVAILABLE, "no home folder is known; name the file with --file")
        })?,
    };
    let home = Home::from_env()?;
    if options.remove {
        let what = match clients::remove(&home, client, &file)? {
            Written::Changed => "took Baton out of",
            Written::Unchanged => "Baton is not in",
            Written::Deleted => "deleted, as it held nothing but Baton:",
        };
        output::note(format!("{what} {}", file.display()));
        return Ok(());
    }
    let by_command = options.stdio || (!options.http && !client.takes_http());
    let reach = if by_command { by_command_line(&home)? } else { by_url(&home).await? };
    let entry = client.entry(&reach);
    if options.write {
        let what = match clients::write(&home, client, &file, &entry)? {
            Written::Unchanged => "Baton is already in",
            Written::Changed | Written::Deleted => "wrote Baton into",
        };
        output::note(format!("{what} {}", file.display()));
        if !by_command && clients::is_open_to_others(&file) {
            output::note(format!("other users can read the token in it; run `chmod 600 {}`", file.display()));
        }
        return Ok(());
    }
    output::line(client.render(&entry));
    output::note(format!("goes into {} (or add --write)", file.display()));
    Ok(())
}

/// The URL is what the client stores, so the port must be settled: by a running coordinator if need be.
async fn by_url(home: &Home) -> Result<Reach, Failed> {
    let port = match home.stored_state().port {
        Some(port) => port,
        None => started(None).await?.hello().port,
    };
    let role = Role::Client { epoch: home.stored_state().client_epoch };
    Ok(Reach::Http { url: url(port), token: home.secret()?.token(role).expose().to_owned() })
}

fn by_command_line(home_folder: &Home) -> Result<Reach, Failed> {
    let program = std::env::current_exe()
        .map_err(|error| Failed::new(exit::FAILED, format!("cannot find my own path: {error}")))?;
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
        Self::new(code, super::with_sources(&error))
    }
}
