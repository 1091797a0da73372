//! `baton port`, `baton token`, `baton settings`.

use baton_link::find::{FindError, find};
use baton_link::home::Home;
use baton_proto::control::{PortChange, PortChanged, Rotated, Settings, SettingsChange};
use baton_proto::discovery::Role;
use clap::Args;
use serde_json::{Value, json};

use super::{Done, Failed, exit, output, parse_port, started, url};
use crate::state::State;

#[derive(Debug, Args)]
pub(crate) struct PortArgument {
    /// The new port, 1024 or higher
    #[arg(value_parser = parse_port)]
    port: u16,
}

#[derive(Debug, Args)]
pub(crate) struct TokenOptions {
    /// Make a new token; clients with the old one are refused from now on
    #[arg(long)]
    rotate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SettingsOptions {
    /// Name of a setting: follow_focus, ai_handover, routing, hold_calls_ms, toolsets or redact
    key: Option<String>,
    /// Its new value: true, false, a word, a number, or words separated by commas
    #[arg(requires = "key")]
    value: Option<String>,
}

pub(super) async fn port(argument: PortArgument) -> Done {
    if argument.port == 0 {
        return Err(Failed::new(exit::USAGE, "a port is a number from 1024 to 65535"));
    }
    let change = PortChange { port: argument.port };
    let changed: PortChanged = match find(&Home::from_env()?).await {
        Ok(mut connection) => connection.post("/v1/port", &change).await?,
        // It is not there, or waits for a port that somebody else holds: it starts on the new one.
        Err(FindError::NotRunning | FindError::PortTaken { .. }) => {
            PortChanged { url: url(started(Some(argument.port)).await?.hello().port) }
        }
        Err(error) => return Err(error.into()),
    };
    output::line(changed.url);
    output::note(
        "write the new URL into your clients' configuration, for example with `baton config CLIENT --write`",
    );
    Ok(())
}

pub(super) async fn token(options: TokenOptions) -> Done {
    let home = Home::from_env()?;
    let epoch = if options.rotate {
        let rotated: Rotated = started(None).await?.post("/v1/token/rotate", &json!({})).await?;
        rotated.epoch
    } else {
        home.stored_state().client_epoch
    };
    output::line(home.secret()?.token(Role::Client { epoch }).expose());
    Ok(())
}

pub(super) async fn settings(options: SettingsOptions) -> Done {
    let home = Home::from_env()?;
    let Some(key) = options.key else {
        let settings: Settings = match find(&home).await {
            Ok(mut connection) => connection.get("/v1/settings").await?,
            Err(FindError::NotRunning) => stored_settings(&home),
            Err(error) => return Err(error.into()),
        };
        output::json(&settings);
        return Ok(());
    };
    let mut connection = started(None).await?;
    let current: Settings = connection.get("/v1/settings").await?;
    let current = serde_json::to_value(current).unwrap_or_default();
    let Some(old) = current.get(&key) else {
        let names: Vec<_> =
            current.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let message = format!("there is no setting {key}; there are {}", names.join(", "));
        return Err(Failed::new(exit::USAGE, message));
    };
    let Some(text) = options.value else {
        output::json(old);
        return Ok(());
    };
    let change: SettingsChange = serde_json::from_value(json!({ &key: to_value(&text, old) }))
        .map_err(|error| Failed::new(exit::USAGE, format!("{text} is no value of {key}: {error}")))?;
    let settings: Settings = connection.patch("/v1/settings", &change).await?;
    output::json(&settings);
    Ok(())
}

fn stored_settings(home: &Home) -> Settings {
    let state: Option<State> = home.read_state().ok().flatten();
    state.unwrap_or_default().settings
}

/// Reads a value as the kind that the setting has now.
fn to_value(text: &str, old: &Value) -> Value {
    match old {
        Value::Array(_) => text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect(),
        Value::String(_) => text.into(),
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
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
    }
}
