//! `baton adapters` and `baton servers`: the agent's program knows them; it is run with the same words.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::process::Command;

use super::outcome::{Done, Failed, exit};
use super::programs;
use super::window::agent_program;

/// How long the agent's program may take to look at what is installed.
const LIST_LIMIT: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct AdaptersOptions {
    /// list [--json] | install NAME... | check [NAME...]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// `verb` is `adapters` or `servers`.
pub(super) async fn run(verb: &str, options: AdaptersOptions) -> Done {
    let program = agent_program()?;
    let mut command = Command::new(&program);
    // Its help shows the words that were typed.
    #[cfg(unix)]
    command.arg0("baton");
    command.arg(verb).args(options.arguments).envs(programs::variables(verb)).stdin(Stdio::null());
    let status = command.status().await.map_err(|error| {
        let message = format!("cannot run {}: {error}", program.display());
        Failed::new(exit::UNAVAILABLE, message).with_hint("reinstall Baton")
    })?;
    match status.code() {
        Some(0) => Ok(()),
        // What went wrong is printed already. clap's own code for a senseless command line is 2.
        Some(2) => Err(Failed::silently(exit::USAGE)),
        code => Err(Failed::silently(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED))),
    }
}

/// What the agent's program lists.
pub(super) async fn listed(verb: &str) -> Value {
    let Ok(program) = agent_program() else { return json!({ "error": "there is no baton-agent" }) };
    let mut command = Command::new(&program);
    command.envs(programs::variables(verb));
    command.args([verb, "list", "--json"]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(LIST_LIMIT, command.output()).await {
        Ok(Ok(output)) => serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| json!({ "error": format!("it ended with {}", output.status) })),
        Ok(Err(error)) => json!({ "error": format!("cannot run {}: {error}", program.display()) }),
        Err(_) => json!({ "error": format!("it took longer than {} s", LIST_LIMIT.as_secs()) }),
    }
}
