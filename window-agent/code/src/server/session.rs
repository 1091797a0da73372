//! What is said to every server: what Baton can, answers to what servers ask, and the progress they tell.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lsp;
use crate::lsp::notices::{self, Asked, FileStatus, ServerStatus};
use crate::servers::ServerSpec;

/// JSON-RPC: no such method.
const METHOD_NOT_FOUND: i64 = -32601;

/// The parameters of `initialize`.
pub(super) fn initialize(spec: &ServerSpec, root: &Path) -> Value {
    let folder = json!({
        "uri": lsp::uri(root),
        "name": root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    });
    let dynamic = json!({"dynamicRegistration": true});
    // Tables, links and `&nbsp;` cost a model tokens and tell it nothing.
    let formats = if spec.prefers_markdown { ["markdown", "plaintext"] } else { ["plaintext", "markdown"] };
    json!({
        "processId": std::process::id(),
        "clientInfo": {"name": "baton", "version": env!("CARGO_PKG_VERSION")},
        "rootPath": root,
        "rootUri": lsp::uri(root),
        "workspaceFolders": [folder],
        "initializationOptions": spec.options,
        "capabilities": {
            "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
            "window": {"workDoneProgress": true},
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                // Never made, but some servers tell what they would change in no other way.
                "applyEdit": true,
                "executeCommand": {},
                "didChangeConfiguration": dynamic,
                "didChangeWatchedFiles": {"dynamicRegistration": true, "relativePatternSupport": true},
                "diagnostics": {"refreshSupport": true},
                "symbol": {},
                "workspaceEdit": {
                    "documentChanges": true,
                    "resourceOperations": ["create", "rename", "delete"],
                    "failureHandling": "transactional",
                },
            },
            "textDocument": {
                "synchronization": {"didSave": true},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
                "definition": {"linkSupport": true},
                "references": {},
                "hover": {"contentFormat": formats},
                "callHierarchy": {},
                "completion": {"completionItem": {
                    "documentationFormat": formats,
                    "labelDetailsSupport": true,
                    "resolveSupport": {"properties": ["documentation", "detail"]},
                }},
                "rename": {"prepareSupport": true},
                "codeAction": {
                    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "source"]}},
                    "resolveSupport": {"properties": ["edit"]},
                    "dataSupport": true,
                },
                "publishDiagnostics": {"versionSupport": true},
                "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": false},
            },
            "experimental": {"serverStatusNotification": true},
        },
    })
}

/// The answer to what a server asks.
pub(super) fn answer(spec: &ServerSpec, root: &Path, method: &str, asked: &Asked) -> Result<Value, Value> {
    match method {
        "workspace/configuration" => {
            Ok(asked.items.0.iter().map(|item| setting(&spec.settings, &item.section)).collect())
        }
        "workspace/workspaceFolders" => Ok(json!([{"uri": lsp::uri(root), "name": ""}])),
        "workspace/applyEdit" => Ok(json!({"applied": false, "failureReason": "edits are previewed first"})),
        "client/registerCapability"
        | "client/unregisterCapability"
        | "window/workDoneProgress/create"
        | "window/showMessageRequest" => Ok(Value::Null),
        "window/showDocument" => Ok(json!({"success": false})),
        _ if method.ends_with("/refresh") => Ok(Value::Null),
        _ => Err(json!({"code": METHOD_NOT_FOUND, "message": format!("{method} is not known here")})),
    }
}

/// `a.b` leads into the object.
fn setting(settings: &Value, section: &str) -> Value {
    let mut parts = section.split('.').filter(|part| !part.is_empty());
    parts.try_fold(settings, |value, part| value.get(part)).cloned().unwrap_or_default()
}

/// How gopls begins the title of what is no work but a problem, which lasts until it is mended.
const PROBLEM: &str = "Error";
/// Characters of a problem that are told.
const MAX_PROBLEM: usize = 300;

/// Work without a title, as pyright's, counts so long after the last word of it: some never ends.
const UNTITLED: Duration = Duration::from_secs(10);

/// A server of another version may log something else.
const FILES_LIMIT: Duration = Duration::from_secs(60);
/// Its own settings may keep it from an index.
const INDEX_LIMIT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
struct Work {
    title: String,
    percentage: Option<u64>,
    last_told: Instant,
}

/// The work that a server tells of, and what keeps it from its work.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    running: HashMap<String, Work>,
    problems: BTreeMap<String, String>,
    is_not_quiet: bool,
    /// What it logs when it knows the files of the project, and until when that is waited for.
    awaits: Option<(String, Instant)>,
    /// By what it tells of its index, as long as it has not; and until when that is waited for, once a file is open.
    index: Option<(String, Option<Instant>)>,
}

impl Progress {
    /// Of a server that starts; see [`ServerSpec::knows_files_when_logged`] and [`ServerSpec::index_progress`].
    pub(super) fn new(now: Instant, spec: &ServerSpec, root: &Path) -> Self {
        let awaits = spec.knows_files_when_logged.clone().map(|text| (text, now + FILES_LIMIT));
        let index = spec.index_progress.clone().filter(|_| !spec.knows_only_opened(root));
        Self { awaits, index: index.map(|token| (token, None)), ..Self::default() }
    }

    /// Takes in that a file was opened.
    pub(super) fn on_opened(&mut self, now: Instant) {
        if let Some((_, until @ None)) = &mut self.index {
            *until = Some(now + INDEX_LIMIT);
        }
    }

    /// Takes in `window/logMessage`.
    pub(super) fn on_log(&mut self, line: &str) {
        self.awaits.take_if(|(text, _)| line.contains(text.as_str()));
    }

    /// Takes in `$/progress`.
    pub(super) fn on_progress(&mut self, now: Instant, told: notices::Progress) {
        self.index.take_if(|(token, _)| told.token == token.as_str());
        let (token, step) = (told.token.to_string(), told.value);
        match step.kind.as_str() {
            "begin" => {
                let title = step.title.unwrap_or_else(|| "working".to_owned());
                if title.starts_with(PROBLEM) {
                    let told = [title.as_str(), &step.message].join(": ");
                    self.problems.insert(token, in_one_line(&told));
                } else {
                    let percentage = step.percentage;
                    self.running.insert(token, Work { title, percentage, last_told: now });
                }
            }
            "report" => {
                if let Some(work) = self.running.get_mut(&token) {
                    work.percentage = step.percentage.or(work.percentage);
                    work.last_told = now;
                }
            }
            "end" => {
                self.running.remove(&token);
                self.problems.remove(&token);
            }
            _ => {}
        }
    }

    /// Takes in rust-analyzer's `experimental/serverStatus`.
    pub(super) fn on_status(&mut self, status: &ServerStatus) {
        self.is_not_quiet = status.quiescent == Some(false);
        match status.message.as_deref().filter(|_| status.health != "ok") {
            Some(told) => self.problems.insert(String::new(), in_one_line(told)),
            None => self.problems.remove(""),
        };
    }

    /// Takes in clangd's `textDocument/clangd.fileStatus`: an open file that it reads again, for whatever reason.
    pub(super) fn on_file_status(&mut self, now: Instant, status: &FileStatus) {
        let file = status.uri.to_string();
        match status.state.as_deref() {
            // One that is closed meanwhile never comes to rest, so it is work without a title.
            Some(state) if state != "idle" => {
                self.running.insert(file, Work { title: String::new(), percentage: None, last_told: now });
            }
            _ => drop(self.running.remove(&file)),
        }
    }

    /// Why it does not know all of the project.
    pub(super) fn problem(&self) -> Option<String> {
        self.problems.values().next().cloned()
    }

    /// What it is busy with.
    pub(super) fn shown(&self, now: Instant) -> Option<String> {
        let counts = |work: &&Work| work.expires().is_none_or(|at| now < at);
        let first = self.running.values().filter(counts).min_by_key(|work| (&work.title, work.percentage));
        let shown = first.map(|Work { title, percentage, .. }| match percentage {
            Some(percentage) => format!("{title} {percentage} %"),
            None if title.is_empty() => "working".to_owned(),
            None => title.clone(),
        });
        let is_awaited = self.awaited().any(|until| now < until);
        shown.or_else(|| (self.is_not_quiet || is_awaited).then(|| "loading the project".to_owned()))
    }

    /// When something stops to count.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let all = self.running.values().filter_map(Work::expires);
        all.chain(self.awaited()).filter(|at| *at > now).min()
    }

    /// Until when its words are waited for.
    fn awaited(&self) -> impl Iterator<Item = Instant> {
        let files = self.awaits.as_ref().map(|(_, until)| *until);
        files.into_iter().chain(self.index.as_ref().and_then(|(_, until)| *until))
    }
}

impl Work {
    fn expires(&self) -> Option<Instant> {
        self.title.is_empty().then(|| self.last_told + UNTITLED)
    }
}

fn in_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', ':']).chars().take(MAX_PROBLEM).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_agent_base::wire::read;

    #[test]
    fn servers_get_an_answer_to_whatever_they_ask() {
        let spec = ServerSpec { settings: json!({"a": {"b": 1}}), ..ServerSpec::default() };
        let ask = |method: &str, params: Value| answer(&spec, Path::new("/w"), method, &read(&params));
        let items = json!({"items": [{"section": "a.b"}, {"section": "none"}, {}]});
        assert_eq!(ask("workspace/configuration", items), Ok(json!([1, null, {"a": {"b": 1}}])));
        assert_eq!(ask("workspace/diagnostic/refresh", Value::Null), Ok(Value::Null));
        assert_eq!(ask("x/y", Value::Null).unwrap_err()["code"], METHOD_NOT_FOUND);
    }

    #[test]
    fn progress_is_told_until_its_end() {
        let (mut progress, now) = (Progress::default(), Instant::now());
        progress
            .on_progress(now, read(&json!({"token": 1, "value": {"kind": "begin", "title": "Indexing"}})));
        progress.on_progress(now, read(&json!({"token": 1, "value": {"kind": "report", "percentage": 40}})));
        progress.on_progress(now, read(&json!({"token": "odd", "value": {"kind": "report"}})));
        assert_eq!(progress.shown(now).as_deref(), Some("Indexing 40 %"));
        progress.on_progress(now, read(&json!({"token": 1, "value": {"kind": "end"}})));
        assert_eq!(progress.shown(now), None);
        progress.on_status(&read(&json!({"quiescent": false})));
        assert!(progress.shown(now).is_some());
        progress.on_status(&read(&json!({"quiescent": true})));
        assert_eq!(progress.shown(now), None);
    }

    #[test]
    fn work_without_a_title_is_over_when_nothing_more_is_told() {
        let (mut progress, now) = (Progress::default(), Instant::now());
        progress.on_progress(now, read(&json!({"token": 1, "value": {"kind": "begin", "title": ""}})));
        progress.on_progress(now + UNTITLED / 2, read(&json!({"token": 1, "value": {"kind": "report"}})));
        assert_eq!(progress.shown(now + UNTITLED).as_deref(), Some("working"));
        let over = progress.poll_timeout(now).unwrap();
        assert_eq!(over, now + UNTITLED / 2 + UNTITLED);
        assert_eq!((progress.shown(over), progress.poll_timeout(over)), (None, None));
    }

    #[test]
    fn a_server_that_logs_its_files_reads_until_then() {
        let spec =
            ServerSpec { knows_files_when_logged: Some("source file".to_owned()), ..ServerSpec::default() };
        let now = Instant::now();
        let mut progress = Progress::new(now, &spec, Path::new("/w"));
        progress.on_log("starting");
        assert!(progress.shown(now).is_some());
        assert_eq!(progress.shown(progress.poll_timeout(now).unwrap()), None, "not for ever");
        progress.on_log("Found 3 source files");
        assert_eq!((progress.shown(now), progress.poll_timeout(now)), (None, None));
    }

    #[test]
    fn an_index_that_is_to_come_is_waited_for_once_a_file_is_open() {
        let spec = ServerSpec { index_progress: Some("index".to_owned()), ..ServerSpec::default() };
        let now = Instant::now();
        let mut progress = Progress::new(now, &spec, Path::new("/w"));
        let work =
            |kind: &str| read(&json!({"token": "index", "value": {"kind": kind, "title": "indexing"}}));
        assert_eq!(
            (progress.shown(now), progress.poll_timeout(now)),
            (None, None),
            "no file asks for it yet"
        );
        progress.on_opened(now);
        assert!(progress.shown(now).is_some());
        progress.on_opened(now + INDEX_LIMIT / 2);
        let over = progress.poll_timeout(now).unwrap();
        assert_eq!((over, progress.shown(over)), (now + INDEX_LIMIT, None), "not for ever");
        progress.on_progress(now, work("begin"));
        assert_eq!(progress.shown(now).as_deref(), Some("indexing"));
        progress.on_progress(now, work("end"));
        progress.on_opened(now);
        assert_eq!(progress.shown(now), None);
        let spec = ServerSpec { index_needs: vec!["none.json".to_owned()], ..spec };
        let mut progress = Progress::new(now, &spec, Path::new("/w"));
        progress.on_opened(now);
        assert_eq!(progress.shown(now), None, "there is none to come");
    }

    #[test]
    fn a_problem_is_no_work() {
        let (mut progress, now) = (Progress::default(), Instant::now());
        let value = json!({"kind": "begin", "title": "Error loading workspace", "message": "1 module:\n\tx"});
        progress.on_progress(now, read(&json!({"token": 1, "value": value})));
        assert_eq!(progress.shown(now), None);
        assert_eq!(progress.problem().as_deref(), Some("Error loading workspace: 1 module: x"));
        progress.on_progress(now, read(&json!({"token": 1, "value": {"kind": "end"}})));
        assert_eq!(progress.problem(), None);
        let status =
            |health: &str, message: Value| json!({"quiescent": true, "health": health, "message": message});
        progress.on_status(&read(&status("error", json!("Failed to load workspaces."))));
        assert_eq!(progress.problem().as_deref(), Some("Failed to load workspaces"));
        progress.on_status(&read(&status("ok", Value::Null)));
        assert_eq!(progress.problem(), None);
    }
}
