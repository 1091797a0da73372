//! What each setting can be.

use std::collections::BTreeMap;
use std::path::Path;

use baton_link::logging;
use baton_proto::control::{Settings, SettingsChange};
use serde_json::Value;

/// Longest time a call may wait for a live window: clients give up earlier.
const MAX_HOLD_CALLS_MS: u64 = 300_000;
/// Longest of the other times, in seconds: a day.
const MAX_TIME_S: u64 = 24 * 60 * 60;
/// Programs that can be named.
const MAX_PROGRAMS: usize = 64;
/// Longest path of one, as systems have it.
const MAX_PATH_LEN: usize = 4096;
/// No language server comes up with less.
const MIN_SERVER_MEMORY_MB: u64 = 64;
/// The toolsets there are.
pub const TOOLSETS: [&str; 7] = ["debugger", "code", "windows", "debug", "quick", "lcp", "refactor"];
/// How much alike two names must be for one to be meant by the other.
const ALIKE: f64 = 0.75;

/// Why a change cannot be carried out: the setting, and what it must be.
pub fn check(change: &SettingsChange) -> Result<(), (&'static str, String)> {
    if change.hold_calls_ms.is_some_and(|hold_ms| hold_ms > MAX_HOLD_CALLS_MS) {
        return Err(("hold_calls_ms", "`hold_calls_ms` must be at most 300000".to_owned()));
    }
    if change.server_memory_mb.is_some_and(|mb| mb < MIN_SERVER_MEMORY_MB) {
        return Err((
            "server_memory_mb",
            format!("`server_memory_mb` must be at least {MIN_SERVER_MEMORY_MB}"),
        ));
    }
    for (name, time) in [
        ("adapter_timeout_s", change.adapter_timeout_s),
        ("expression_timeout_s", change.expression_timeout_s),
        ("server_timeout_s", change.server_timeout_s),
        ("server_idle_s", change.server_idle_s),
    ] {
        if time.is_some_and(|seconds| !(1..=MAX_TIME_S).contains(&seconds)) {
            return Err((name, format!("`{name}` must be between 1 and {MAX_TIME_S}")));
        }
    }
    if change.log_mb == Some(0) {
        return Err(("log_mb", "`log_mb` must be at least 1".to_owned()));
    }
    if let Some(Err(why)) = change.programs.as_ref().map(check_programs) {
        return Err(("programs", why));
    }
    if let Some(Err(why)) = change.log.as_deref().map(logging::check) {
        return Err(("log", format!("`log`: {why}")));
    }
    if let Some(Err(why)) = change.error_dsn.as_deref().map(baton_errors::check) {
        return Err(("error_dsn", format!("`error_dsn`: {why}")));
    }
    if change.otlp_endpoint.as_deref().is_some_and(|endpoint| !is_endpoint(endpoint)) {
        let must = "`otlp_endpoint`: give the URL of a collector, as http://127.0.0.1:4318, without a user name and without \
                    /v1/metrics; empty for none";
        return Err(("otlp_endpoint", must.to_owned()));
    }
    let Some(toolsets) = &change.toolsets else { return Ok(()) };
    if toolsets.is_empty() || toolsets.len() > TOOLSETS.len() {
        let must = format!("`toolsets` must contain at least one of {}", TOOLSETS.join(", "));
        return Err(("toolsets", must));
    }
    match toolsets.iter().find(|name| !TOOLSETS.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let unknown: String = unknown.chars().take(40).collect();
            Err(("toolsets", format!("unknown toolset {unknown:?} ({})", TOOLSETS.join(", "))))
        }
    }
}

/// A URL to which a path can be added, or nothing. What it says goes to logs: no secret may be in it.
fn is_endpoint(endpoint: &str) -> bool {
    let Some((scheme, rest)) = endpoint.split_once("://") else { return endpoint.is_empty() };
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-._~/:[]%".contains(char);
    ["http", "https"].contains(&scheme)
        && rest.chars().all(is_plain)
        && !rest.is_empty()
        && !rest.starts_with(['/', ':'])
        && endpoint.len() <= MAX_PATH_LEN
        && !rest.trim_end_matches('/').ends_with("/v1/metrics")
}

fn check_programs(programs: &BTreeMap<String, String>) -> Result<(), String> {
    if programs.len() > MAX_PROGRAMS {
        return Err(format!("`programs` must name at most {MAX_PROGRAMS}"));
    }
    let is_path = |path: &str| path.len() <= MAX_PATH_LEN && Path::new(path).is_absolute();
    match programs.iter().find(|(_, path)| !is_path(path)) {
        None => Ok(()),
        Some((name, _)) => {
            let name: String = name.chars().take(40).collect();
            Err(format!("`programs`: the path of {name:?} must be absolute"))
        }
    }
}

/// What a setting can be, in words.
pub fn expected(key: &str) -> &'static str {
    match key {
        "ai_handover" => "ask, always, never",
        "routing" => "live, any",
        "hold_calls_ms" => "a number up to 300000",
        "session_idle_s" | "session_memory_mb" | "session_processes" => "a number, 0 or more",
        "server_memory_mb" => "a number, 64 or more",
        "adapter_timeout_s" | "expression_timeout_s" | "server_timeout_s" | "server_idle_s" => {
            "a number from 1 to 86400"
        }
        "programs" => "NAME=PATH, several with commas between them; NAME= for none",
        "log_mb" => "a number, 1 or more",
        "toolsets" => "a comma-separated list",
        "log" => "a filter such as debug",
        "log_format" => "text, json",
        "otlp_endpoint" => "the URL of a collector such as http://127.0.0.1:4318, or nothing",
        "error_dsn" => "a DSN such as https://KEY@HOST/PROJECT, or nothing",
        _ => "true, false",
    }
}

/// Names of all settings.
pub(crate) fn names() -> Vec<String> {
    match serde_json::to_value(Settings::default()) {
        Ok(Value::Object(settings)) => settings.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

/// The name that was probably meant.
pub fn nearest_of<'a>(unknown: &str, names: &'a [String]) -> Option<&'a String> {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let unknown = plain(unknown);
    let likeness = |name: &&String| strsim::jaro_winkler(&unknown, &plain(name));
    let best = names.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    best.filter(|name| likeness(name) >= ALIKE)
}

/// What to say of a name that no setting has: the nearest one, or all.
pub fn nearest(unknown: &str) -> String {
    let names = names();
    match nearest_of(unknown, &names) {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("possible settings: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_the_name_that_was_meant() {
        assert_eq!(nearest("hold_call_ms"), "did you mean 'hold_calls_ms'?");
        assert_eq!(nearest("followFocus"), "did you mean 'follow_focus'?");
        assert_eq!(nearest("log-format"), "did you mean 'log_format'?");
        assert!(nearest("colour").starts_with("possible settings: "), "{}", nearest("colour"));
    }

    #[test]
    fn each_setting_says_what_it_can_be() {
        for name in names() {
            assert!(!expected(&name).is_empty(), "{name}");
        }
        let change = SettingsChange { hold_calls_ms: Some(300_001), ..SettingsChange::default() };
        assert_eq!(check(&change).unwrap_err().0, "hold_calls_ms");
        let change = SettingsChange { server_memory_mb: Some(0), ..SettingsChange::default() };
        assert_eq!(check(&change).unwrap_err().0, "server_memory_mb");
        let change = SettingsChange { toolsets: Some(Vec::new()), ..SettingsChange::default() };
        assert_eq!(check(&change).unwrap_err().0, "toolsets");
        let collector = |url: &str| {
            let change = SettingsChange { otlp_endpoint: Some(url.to_owned()), ..SettingsChange::default() };
            check(&change).map_err(|(name, _)| name)
        };
        for right in ["", "http://127.0.0.1:4318", "https://otel.example/prefix/", "http://[::1]:4318"] {
            assert_eq!(collector(right), Ok(()), "{right}");
        }
        for wrong in [
            "localhost:4318",
            "grpc://h:4317",
            "http://",
            "http:///v1",
            "http://user:secret@h",
            "http://h/?key=secret",
            "http://h:4318/v1/metrics",
        ] {
            assert_eq!(collector(wrong), Err("otlp_endpoint"), "{wrong}");
        }
        assert!(check(&SettingsChange::from(Settings::default())).is_ok());
    }
}
