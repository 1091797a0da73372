//! `baton port`, `baton token`, `baton settings`.

use std::path::PathBuf;

use baton_daemon::configuration::{Configuration, expected, nearest, schema_text};
use baton_daemon::state::State;
use baton_link::connection::CallError;
use baton_link::find::{FindError, find};
use baton_link::home::Home;
use baton_link::logging;
use baton_proto::control::{PortChange, PortChanged, Settings, SettingsChange};
use baton_proto::discovery::Role;
use clap::Args;
use serde_json::{Map, Value, json};

use super::outcome::{Done, Failed, exit};
use super::output;
use super::programs;
use super::reach::{parse_port, started, url};

#[derive(Debug, Args)]
pub(crate) struct PortArgument {
    /// The new port, 1024 or higher
    #[arg(value_parser = parse_port)]
    port: u16,
}

#[derive(Debug, Args)]
pub(crate) struct TokenOptions {
    /// Create a new token and revoke the old one
    #[arg(long)]
    rotate: bool,
    /// Print the token for /metrics, which reads figures and nothing else
    #[arg(long, conflicts_with = "rotate")]
    metrics: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SettingsOptions {
    /// Name of the setting: follow_focus, ai_handover, routing, hold_calls_ms, toolsets, debug_enabled, redact,
    /// allow_protected, session_idle_s, session_memory_mb, session_processes, server_memory_mb, adapter_timeout_s, expression_timeout_s,
    /// server_timeout_s, server_idle_s, programs, show_arguments, log, log_format, log_mb, error_dsn, or otlp_endpoint
    key: Option<String>,
    /// Print the path of the file that holds the settings
    #[arg(long, conflicts_with = "key")]
    path: bool,
    /// Print the JSON schema of that file
    #[arg(long, conflicts_with_all = ["key", "path"])]
    schema: bool,
    /// New value: true, false, a word, a number, a comma-separated list, or NAME=PATH
    #[arg(requires = "key")]
    value: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Parts of the coordinator: baton_edge, baton_election, baton_http, baton_daemon, baton_control, baton_link.
Parts of a window: baton_agent_mcp, baton_agent_tools, baton_agent_debug, baton_agent_code, baton_window_agent.")]
pub(crate) struct LogLevelOptions {
    /// off, error, warn, info, debug, or trace, for all or for some parts (`baton_edge=debug`); `default` for what each
    /// process was started with
    filter: Option<String>,
}

pub(super) async fn port(argument: PortArgument) -> Done {
    if argument.port == 0 {
        return Err(Failed::new(exit::USAGE, "a port must be a number from 1024 to 65535"));
    }
    let changed = match move_to(argument.port).await? {
        // The coordinator ended in the middle: whoever follows it knows whether it has moved.
        Err(CallError::Lost) => move_to(argument.port).await??,
        changed => changed?,
    };
    output::line(changed.url);
    output::hint("update your clients, for example with `baton config CLIENT --write`");
    Ok(())
}

/// Moves the coordinator, unless it is there already.
async fn move_to(port: u16) -> Result<Result<PortChanged, CallError>, Failed> {
    let mut connection = match find(&Home::from_env()?).await {
        Ok(connection) => connection,
        // It is not there, or waits for a port that somebody else holds: it starts on the new one, unless a window
        // starts it sooner on the old one.
        Err(FindError::NotRunning | FindError::PortTaken { .. }) => started(Some(port)).await?,
        Err(error) => return Err(error.into()),
    };
    if connection.hello().port == port {
        return Ok(Ok(PortChanged { url: url(port) }));
    }
    Ok(connection.change_port(&PortChange { port }).await)
}

pub(super) async fn token(options: TokenOptions) -> Done {
    let home = Home::from_env()?;
    if options.metrics {
        output::line(home.secret()?.token(Role::Metrics).expose());
        return Ok(());
    }
    let epoch = if options.rotate {
        started(None).await?.rotate_token().await?.epoch
    } else {
        home.stored_state().client_epoch
    };
    output::line(home.secret()?.token(Role::Client { epoch }).expose());
    Ok(())
}

pub(super) async fn settings(options: SettingsOptions) -> Done {
    let home = Home::from_env()?;
    if options.path {
        output::line(Configuration::new(&home).path().to_string_lossy());
        return Ok(());
    }
    if options.schema {
        output::line(schema_text().trim_end());
        return Ok(());
    }
    let Some(key) = options.key else {
        output::json(&current(&home).await?);
        return Ok(());
    };
    let mut connection = started(None).await?;
    let current = serde_json::to_value(connection.settings().await?).unwrap_or_default();
    let Some(old) = current.get(&key) else {
        let failed = Failed::new(exit::USAGE, format!("unknown setting '{key}'"));
        return Err(failed.with_hint(nearest(&key)));
    };
    let Some(text) = options.value else {
        output::json(old);
        return Ok(());
    };
    let change: SettingsChange =
        serde_json::from_value(json!({ &key: to_value(&text, old) })).map_err(|_| {
            Failed::new(exit::USAGE, format!("invalid value '{text}' for {key} ({})", expected(&key)))
        })?;
    if let Some(programs) = &change.programs {
        // What was named before may be gone by now, and is not to keep others from being named.
        let old = old.as_object();
        let is_new =
            |name: &str, path: &str| old.is_none_or(|old| old.get(name).is_none_or(|old| old != path));
        let new = programs.iter().filter(|(name, path)| is_new(name, path));
        if let Some(problem) = programs::problems(new).await.into_iter().next() {
            return Err(Failed::new(exit::USAGE, problem));
        }
    }
    output::json(&connection.change_settings(&change).await?);
    Ok(())
}

/// What coordinator and windows log, at once and from now on.
pub(super) async fn log_level(options: LogLevelOptions) -> Done {
    const DEFAULT: &str = "default";
    let log = match options.filter {
        None => current(&Home::from_env()?).await?.log,
        Some(filter) => {
            let filter = if filter == DEFAULT { String::new() } else { filter };
            logging::check(&filter).map_err(|why| Failed::new(exit::USAGE, why))?;
            let change = SettingsChange { log: Some(filter), ..SettingsChange::default() };
            started(None).await?.change_settings(&change).await?.log
        }
    };
    output::line(if log.is_empty() { DEFAULT } else { &log });
    Ok(())
}

/// The settings in force, or those that a coordinator will begin with.
pub(super) async fn current(home: &Home) -> Result<Settings, Failed> {
    match find(home).await {
        Ok(mut connection) => Ok(connection.settings().await?),
        Err(FindError::NotRunning) => Ok(stored_settings(home)),
        Err(error) => Err(error.into()),
    }
}

/// What a coordinator that starts now begins with.
pub(super) fn stored_settings(home: &Home) -> Settings {
    let state: Option<State> = home.read_state().ok().flatten();
    Configuration::new(home).begin(&state.unwrap_or_default())
}

/// Reads a value as the kind that the setting has now.
fn to_value(text: &str, old: &Value) -> Value {
    match old {
        Value::Object(entries) => entries_with(entries.clone(), text),
        Value::Array(_) => text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect(),
        Value::String(_) => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

/// A path as the person who typed it means it.
fn absolute(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.into()),
    }
}

/// These entries with those of `NAME=PATH,...`; one without a path goes.
fn entries_with(mut entries: Map<String, Value>, text: &str) -> Value {
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        match entry.split_once('=') {
            Some((name, "")) => {
                entries.remove(name.trim());
            }
            Some((name, path)) => {
                entries.insert(name.trim().to_owned(), absolute(path.trim()).to_string_lossy().into());
            }
            None => return text.into(),
        }
    }
    Value::Object(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_kind_of_their_setting() {
        assert_eq!(to_value("true", &json!(false)), json!(true));
        assert_eq!(to_value("a, b,", &json!([])), json!(["a", "b"]));
        assert_eq!(to_value("1", &json!("ask")), json!("1"));
        assert_eq!(to_value("x", &json!(1)), json!("x"));
        let programs = json!({"gdb": "/g", "ty": "/t"});
        assert_eq!(to_value("gdb=, java = /j", &programs), json!({"java": "/j", "ty": "/t"}));
        assert_eq!(to_value("/g", &programs), json!("/g"));
    }
}
