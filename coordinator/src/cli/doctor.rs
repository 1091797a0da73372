//! `baton doctor`: looks at everything that can keep Baton from working, and says what to do about it.
//!
//! It starts no coordinator and changes no client's file. The state folder and the secret are made when they are
//! missing, as by any other verb, and a file is written there for a moment.

use std::collections::BTreeMap;
use std::path::Path;

use baton_client_files::file::{self, FileError};
use baton_client_files::{Client, Reach};
use baton_link::find::{FindError, find};
use baton_link::home::Home;
use baton_proto::control::{Status, WindowKind, WindowState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::adapters;
use super::config::{by_command_line, by_url};
use super::outcome::{Done, Failed, exit, with_sources};
use super::output;
use super::programs;
use super::settings::stored_settings;
use super::status::word;

/// Less free space than this, and state and logs are soon not written any more.
const MIN_FREE_BYTES: u64 = 64 * 1024 * 1024;

/// A file that is written into the state folder and removed again.
const PROBE: &str = "doctor.probe";

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    level: Level,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.0.push(Finding { check, level: Level::Ok, message: message.into(), hint: None });
    }

    fn warning(&mut self, check: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        let hint = Some(hint.into());
        self.0.push(Finding { check, level: Level::Warning, message: message.into(), hint });
    }

    fn error(&mut self, check: &'static str, message: impl Into<String>, hint: Option<String>) {
        self.0.push(Finding { check, level: Level::Error, message: message.into(), hint });
    }
}

pub(super) async fn run(as_json: bool) -> Done {
    let findings = examine().await;
    print(&findings, as_json);
    let worst = findings.iter().map(|finding| finding.level).max();
    if worst == Some(Level::Error) { Err(Failed::silently(exit::FAILED)) } else { Ok(()) }
}

/// What `--json` prints.
pub(super) async fn examined() -> Value {
    serde_json::json!(examine().await)
}

async fn examine() -> Vec<Finding> {
    let mut findings = Findings::default();
    if let Some(home) = state_folder(&mut findings) {
        let status = coordinator(&mut findings, &home).await;
        if let Some(status) = &status {
            windows(&mut findings, status);
            if status.windows.iter().any(|window| window.kind == WindowKind::Headless) {
                installed(&mut findings, ADAPTERS, "adapters").await;
                installed(&mut findings, SERVERS, "servers").await;
            }
        }
        named_programs(&mut findings, &home).await;
        let ours = Ours::new(&home, status.as_ref());
        for client in Client::all() {
            client_file(&mut findings, &ours, client);
        }
        if findings.0.iter().all(|finding| finding.check != CLIENT) {
            findings.warning(
                CLIENT,
                "no AI client is configured",
                "run `baton config CLIENT --write`; `baton config --help` lists the clients",
            );
        }
    }
    findings.0
}

fn print(findings: &[Finding], as_json: bool) {
    if as_json {
        output::json(&findings);
        return;
    }
    for Finding { check, level, message, hint } in findings {
        let level = match level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        output::line(format!("{level:8} {check:15} {message}"));
        if let Some(hint) = hint {
            output::line(format!("{:24} hint: {hint}", ""));
        }
    }
}

const FOLDER: &str = "state folder";
const COORDINATOR: &str = "coordinator";
const WINDOW: &str = "window";
const CLIENT: &str = "client";
const ADAPTERS: &str = "debug adapter";
const SERVERS: &str = "language server";
const PROGRAMS: &str = "settings";

/// Whether it can be used at all; without it there is nothing more to look at.
fn state_folder(findings: &mut Findings) -> Option<Home> {
    let home = match Home::from_env().and_then(|home| home.secret().map(|_| home)) {
        Ok(home) => home,
        Err(error) => {
            findings.error(FOLDER, with_sources(&error), error.hint());
            return None;
        }
    };
    let path = home.path();
    let written = home.replace(PROBE, PROBE.as_bytes());
    // What was not made need not be removed.
    let _ = std::fs::remove_file(path.join(PROBE));
    match (written, free_bytes(path)) {
        (Err(error), _) => {
            let hint = "make the folder writable, or free some disk space".to_owned();
            findings.error(FOLDER, format!("cannot write to {}: {error}", path.display()), Some(hint));
        }
        (Ok(_), Some(free)) if free < MIN_FREE_BYTES => {
            let message = format!("only {} MiB are free for {}", free / 1024 / 1024, path.display());
            findings.warning(FOLDER, message, "free some disk space");
        }
        (Ok(_), _) => findings.ok(FOLDER, path.display().to_string()),
    }
    Some(home)
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

async fn coordinator(findings: &mut Findings, home: &Home) -> Option<Status> {
    let mut connection = match find(home).await {
        Ok(connection) => connection,
        Err(error @ FindError::NotRunning) => {
            let hint = "it starts with the first window or client; start it now with `baton up`";
            findings.warning(COORDINATOR, error.to_string(), hint);
            return None;
        }
        Err(error) => {
            findings.error(COORDINATOR, with_sources(&error), error.hint());
            return None;
        }
    };
    let status = match connection.status().await {
        Ok(status) => status,
        Err(error) => {
            findings.error(COORDINATOR, error.to_string(), error.hint());
            return None;
        }
    };
    let own = env!("CARGO_PKG_VERSION");
    if status.version == own {
        findings.ok(COORDINATOR, format!("{} (version {own}, process {})", status.url, status.pid));
    } else {
        let message = format!("version {} is running, but this program is version {own}", status.version);
        findings.warning(COORDINATOR, message, "replace it with `baton up --replace`");
    }
    if let Ok(log) = connection.settings().await.map(|settings| settings.log)
        && !log.is_empty()
    {
        let hint = "`baton log-level default` ends that";
        findings.warning(COORDINATOR, format!("everybody logs at `{log}`"), hint);
    }
    for warning in &status.warnings {
        findings.warning(COORDINATOR, warning.clone(), "see `baton logs`");
    }
    Some(status)
}

fn windows(findings: &mut Findings, status: &Status) {
    if status.windows.is_empty() {
        let hint = "open VS Code with the extension, or run `baton window DIR`";
        findings.warning(WINDOW, "no window is open", hint);
        return;
    }
    for window in &status.windows {
        let folders = window.folders.join(", ");
        if window.responsive {
            findings.ok(WINDOW, format!("{} ({}) {folders}", window.name, word(window.state)));
        } else {
            let message = format!("{} does not respond", window.name);
            findings.error(WINDOW, message, Some(format!("restart it with `baton restart {}`", window.id)));
        }
    }
    if status.windows.iter().all(|window| window.state != WindowState::Live) {
        findings.warning(WINDOW, "no window is live", "choose one with `baton take WINDOW`");
    }
}

/// What headless windows can debug and read; VS Code brings its own.
async fn installed(findings: &mut Findings, check: &'static str, verb: &str) {
    #[derive(Deserialize)]
    struct Listed {
        name: String,
        path: Option<String>,
    }
    let Ok(all) = serde_json::from_value::<Vec<Listed>>(adapters::listed(verb).await) else {
        return findings.error(
            check,
            format!("cannot look at the {verb}"),
            Some("reinstall Baton".to_owned()),
        );
    };
    let names: Vec<String> = all.into_iter().filter(|one| one.path.is_some()).map(|one| one.name).collect();
    if names.is_empty() {
        let hint =
            format!("`baton {verb} list` names those there are, `baton {verb} install NAME` installs one");
        findings.warning(check, "none is installed for headless windows", hint);
    } else {
        findings.ok(check, names.join(", "));
    }
}

/// The programs that the settings name, when there is something wrong with them.
async fn named_programs(findings: &mut Findings, home: &Home) {
    let named = stored_settings(home).programs;
    for problem in programs::problems(named.iter()).await {
        let hint =
            "`baton settings programs NAME=PATH` names another one, `baton settings programs NAME=` none";
        findings.error(PROGRAMS, problem, Some(hint.to_owned()));
    }
}

/// How clients reach this Baton; a part is missing when it cannot be known.
struct Ours {
    http: Option<Reach>,
    stdio: Option<Reach>,
}

impl Ours {
    fn new(home: &Home, status: Option<&Status>) -> Self {
        let port = status.map(|status| status.port).or_else(|| home.stored_state().port);
        Self { http: port.and_then(|port| by_url(home, port).ok()), stdio: by_command_line(home).ok() }
    }
}

/// Whether a client that is configured reaches this Baton.
fn client_file(findings: &mut Findings, ours: &Ours, client: Client) {
    let Some(path) = client.default_file().filter(|path| path.exists()) else { return };
    let entry = match file::read(client, &path) {
        Ok(Some(entry)) => entry,
        Ok(None) => return,
        Err(FileError::Broken { why, .. }) => {
            let hint = "fix the file".to_owned();
            return findings.error(CLIENT, format!("{} {why}", path.display()), Some(hint));
        }
        Err(error) => return findings.error(CLIENT, with_sources(&error), None),
    };
    let name = client.name();
    let again = Some(format!("run `baton config {name} --write`"));
    match reached(&entry) {
        // A name alone is found by the client's own search path.
        Reached::Command(command) if !Path::new(&command).is_absolute() || Path::new(&command).is_file() => {
            let is_ours = matches!(&ours.stdio, Some(Reach::Stdio { program, .. }) if Path::new(program) == Path::new(&command));
            let other = if is_ours { "" } else { ", which is another installation of Baton" };
            findings.ok(CLIENT, format!("{name} runs {command}{other}"));
        }
        Reached::Command(command) => {
            findings.error(CLIENT, format!("{name} runs {command}, which does not exist"), again);
        }
        Reached::Url { url: theirs, authorization } => {
            let Some(Reach::Http { url, token }) = &ours.http else { return };
            if !leads_to(&theirs, url) {
                findings.error(CLIENT, format!("{name} uses {theirs}, but Baton is at {url}"), again);
            } else if authorization != Some(format!("Bearer {token}")) {
                findings.error(CLIENT, format!("{name} has a token that is no longer valid"), again);
            } else {
                findings.ok(CLIENT, format!("{name} uses {theirs}"));
            }
        }
        Reached::Unknown => {
            let message = format!("the entry for Baton in {} has no URL and no command", path.display());
            findings.error(CLIENT, message, again);
        }
    }
}

/// How an entry of a client's file reaches its server.
enum Reached {
    Url { url: String, authorization: Option<String> },
    Command(String),
    Unknown,
}

fn reached(entry: &Value) -> Reached {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(url) = ["url", "serverUrl", "httpUrl"].into_iter().find_map(text) {
        let headers = entry.get("headers").or_else(|| entry.get("http_headers"));
        let headers: BTreeMap<String, String> =
            headers.and_then(|headers| serde_json::from_value(headers.clone()).ok()).unwrap_or_default();
        let named = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        let authorization = headers.into_iter().find(named).map(|(_, value)| value);
        return Reached::Url { url, authorization };
    }
    text("command").map_or(Reached::Unknown, Reached::Command)
}

/// Whether a URL is ours: with a window or toolsets after it, and by any name of this machine.
fn leads_to(theirs: &str, ours: &str) -> bool {
    let theirs = theirs.replacen("//localhost:", "//127.0.0.1:", 1).replacen("//[::1]:", "//127.0.0.1:", 1);
    theirs.strip_prefix(ours).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_ours_may_say_more() {
        let ours = "http://127.0.0.1:7717/mcp";
        for theirs in ["", "?toolsets=debug", "/windows/shop", "/"].map(|rest| format!("{ours}{rest}")) {
            assert!(leads_to(&theirs, ours), "{theirs}");
        }
        assert!(leads_to("http://localhost:7717/mcp", ours) && leads_to("http://[::1]:7717/mcp", ours));
        for theirs in
            ["http://127.0.0.1:7718/mcp", "http://127.0.0.1:7717/mcps", "http://127.0.0.2:7717/mcp", ""]
        {
            assert!(!leads_to(theirs, ours), "{theirs}");
        }
    }
}
