//! A plain client of language servers: starts one over standard streams and asks it, one request at a time.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use baton_tests::place;
use baton_tests::process::{await_some, is_alive, kill9, tree};
use serde_json::{Value, json};

/// Longest wait for an answer: a server may read a whole project first.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server may take to end by itself.
const FAREWELL: Duration = Duration::from_millis(500);
/// How often a question is asked again that was not answered in full yet.
const AGAIN: Duration = Duration::from_millis(5);
/// How often it is asked whether a server has read its project.
const LOOK: Duration = Duration::from_millis(100);
/// The protocol's codes for "ask again": content modified, server cancelled.
const ASK_AGAIN: [i64; 2] = [-32801, -32802];

/// A server as Baton's own table describes it.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// Its line of the table.
    entry: Value,
    /// The command that is there.
    words: Vec<String>,
}

/// A place in a file, from 0.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) character: usize,
}

/// See the module. The process and all that it started end when it is dropped.
pub(crate) struct Server {
    child: Child,
    input: Arc<Mutex<ChildStdin>>,
    answers: Receiver<Value>,
    last_id: i64,
    language: Value,
    /// The work that it tells of.
    work: Arc<Mutex<BTreeSet<String>>>,
}

impl Spec {
    /// The server of that name, installed by Baton or on the search path.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let path = place::root().join("window-agent/code/src/servers.json");
        let table: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let entry = table.into_iter().find(|entry| entry["name"] == name);
        let entry = entry.with_context(|| format!("there is no server {name}"))?;
        let installed = servers().join(name);
        for command in entry["commands"].as_array().into_iter().flatten() {
            let words = command.as_array().into_iter().flatten().filter_map(Value::as_str);
            let words: Vec<String> =
                words.map(|word| word.replace("{installed}", &installed.to_string_lossy())).collect();
            if which::which(&words[0]).is_ok() {
                return Ok(Self { entry, words });
            }
        }
        bail!("{name} is not installed; `baton servers install {name}` does so");
    }

    /// The command line.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }
}

/// Where `cargo xtask bench` installed the servers.
pub(crate) fn servers() -> PathBuf {
    std::env::var_os("BATON_SERVERS").map_or_else(|| place::tool("servers"), PathBuf::from)
}

impl Spot {
    /// Where `name` stands in the first line of a file that starts like this.
    pub(crate) fn find(file: &Path, start: &str, name: &str) -> Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let found = text.lines().enumerate().find(|(_, line)| line.starts_with(start));
        let (line, found) = found.with_context(|| format!("no {start} in {}", file.display()))?;
        let character = found.find(name).with_context(|| format!("no {name} in {found}"))?;
        Ok(Self { file: file.to_owned(), line, character })
    }
}

impl Server {
    /// Starts a server on a folder, up to the end of its greeting. `command` has its environment.
    pub(crate) fn start(spec: &Spec, mut command: Command, root: &Path) -> Result<Self> {
        command.args(&spec.words[1..]).current_dir(root);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| spec.words[0].clone())?;
        let input = Arc::new(Mutex::new(child.stdin.take().context("its input is piped")?));
        let output = child.stdout.take().context("its output is piped")?;
        let (sender, answers) = channel();
        let reply = input.clone();
        let settings = spec.entry["settings"].clone();
        let work = Arc::new(Mutex::new(BTreeSet::new()));
        let told = work.clone();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(message) = receive(&mut output) {
                if message["method"].is_null() {
                    if sender.send(message).is_err() {
                        return;
                    }
                } else if message["method"] == "$/progress" {
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    let (token, kind) =
                        (message["params"]["token"].to_string(), &message["params"]["value"]["kind"]);
                    let _ = if kind == "end" { told.remove(&token) } else { told.insert(token) };
                } else if let Some(id) = message.get("id") {
                    let answer = answer(&settings, &message);
                    let _ = write(&reply, &json!({ "jsonrpc": "2.0", "id": id, "result": answer }));
                }
            }
        });
        let language = spec.entry["languages"].clone();
        let mut server = Self { child, input, answers, last_id: 0, language, work };
        server.ask("initialize", &greeting(spec, root))?;
        server.tell("initialized", &json!({}))?;
        server.tell("workspace/didChangeConfiguration", &json!({ "settings": spec.entry["settings"] }))?;
        Ok(server)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Shows it a file.
    pub(crate) fn open(&mut self, file: &Path) -> Result<()> {
        let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        let document = json!({
            "uri": uri(file), "languageId": self.language[&extension], "version": 1,
            "text": std::fs::read_to_string(file)?,
        });
        self.tell("textDocument/didOpen", &json!({ "textDocument": document }))
    }

    /// The symbols of a file.
    pub(crate) fn outline(&mut self, file: &Path) -> Result<Value> {
        self.ask("textDocument/documentSymbol", &json!({ "textDocument": { "uri": uri(file) } }))
    }

    /// Where the symbol at a place is used.
    pub(crate) fn references(&mut self, spot: &Spot) -> Result<Vec<Value>> {
        let params = json!({
            "textDocument": { "uri": uri(&spot.file) },
            "position": { "line": spot.line, "character": spot.character },
            "context": { "includeDeclaration": true },
        });
        let answer = self.ask("textDocument/references", &params)?;
        Ok(answer.as_array().cloned().unwrap_or_default())
    }

    /// The same, asked until there are so many: what a client does that knows how many there are.
    pub(crate) fn all_references(&mut self, spot: &Spot, n_wanted: usize) -> Result<()> {
        let found = await_some(PATIENCE, || match self.references(spot) {
            Ok(found) if places(&found).len() >= n_wanted => Some(Ok(())),
            // What it does not know yet some refuse.
            _ if is_alive(self.child.id()) => {
                std::thread::sleep(AGAIN);
                None
            }
            other => Some(other.map(drop)),
        });
        found.with_context(|| format!("never {n_wanted} references"))?
    }

    /// Asks until the server is done with the project: it tells of no work, and has no more for so long.
    pub(crate) fn settled_references(&mut self, spot: &Spot, quiet: Duration) -> Result<Vec<Value>> {
        let mut found = self.references(spot).unwrap_or_default();
        let begun = Instant::now();
        let mut grown = begun;
        while (found.is_empty() || grown.elapsed() < quiet) && begun.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
            let now = self.references(spot).unwrap_or_default();
            let is_at_work = !self.work.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            if now.len() != found.len() || is_at_work {
                (found, grown) = (now, Instant::now());
            }
        }
        ensure!(!found.is_empty(), "no references in {}", spot.file.display());
        Ok(found)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        loop {
            self.last_id += 1;
            let id = self.last_id;
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            write(&self.input, &request)?;
            let answer = loop {
                let answer = self.answers.recv_timeout(PATIENCE).context("the server says nothing more")?;
                if answer["id"] == id {
                    break answer;
                }
            };
            let code = answer["error"]["code"].as_i64();
            if code.is_some_and(|code| ASK_AGAIN.contains(&code)) {
                continue;
            }
            ensure!(code.is_none(), "{method} failed: {}", answer["error"]);
            return Ok(answer["result"].clone());
        }
    }

    fn tell(&self, method: &str, params: &Value) -> Result<()> {
        write(&self.input, &json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let all = tree(self.child.id());
        let _ = write(&self.input, &json!({ "jsonrpc": "2.0", "id": -1, "method": "shutdown" }));
        let _ = self.tell("exit", &Value::Null);
        let ended = await_some(FAREWELL, || self.child.try_wait().ok().flatten());
        if ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // Some leave those behind that they started.
        for pid in all.into_iter().skip(1).filter(|pid| is_alive(*pid)) {
            kill9(pid);
        }
    }
}

/// `initialize`, with what Baton says of itself as far as servers work differently for it.
fn greeting(spec: &Spec, root: &Path) -> Value {
    let dynamic = json!({ "dynamicRegistration": true });
    json!({
        "processId": std::process::id(),
        "rootUri": uri(root),
        "workspaceFolders": [{ "uri": uri(root), "name": "bench" }],
        "initializationOptions": spec.entry["options"],
        "capabilities": {
            "general": { "positionEncodings": ["utf-8", "utf-16"] },
            "window": { "workDoneProgress": true },
            "workspace": {
                "configuration": true, "workspaceFolders": true,
                "didChangeConfiguration": dynamic, "didChangeWatchedFiles": dynamic,
                "diagnostics": { "refreshSupport": true },
            },
            "textDocument": {
                "synchronization": { "didSave": true },
                "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
                "references": {},
                "publishDiagnostics": { "versionSupport": true },
                "diagnostic": dynamic,
            },
            "experimental": { "serverStatusNotification": true },
        },
    })
}

/// The answer to what a server asks.
fn answer(settings: &Value, message: &Value) -> Value {
    if message["method"] != "workspace/configuration" {
        return Value::Null;
    }
    let items = message["params"]["items"].as_array().into_iter().flatten();
    let one = |item: &Value| settings[item["section"].as_str().unwrap_or_default()].clone();
    items.map(one).collect()
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// A file and a place in it, from 0.
pub(crate) type Place = (PathBuf, u64, u64);

/// Each place once: some servers tell one twice.
pub(crate) fn places(found: &[Value]) -> BTreeSet<Place> {
    let place = |one: &Value| {
        let start = &one["range"]["start"];
        let number = |name: &str| start[name].as_u64().unwrap_or_default();
        let path = one["uri"].as_str().unwrap_or_default().trim_start_matches("file://");
        (PathBuf::from(path), number("line"), number("character"))
    };
    found.iter().map(place).collect()
}

fn write(input: &Mutex<ChildStdin>, message: &Value) -> Result<()> {
    let body = message.to_string();
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    input.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    Ok(input.flush()?)
}

fn receive(output: &mut impl BufRead) -> Result<Value> {
    let mut n_bytes = 0;
    loop {
        let mut line = String::new();
        ensure!(output.read_line(&mut line)? > 0, "the server ended");
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            n_bytes = number.trim().parse()?;
        }
    }
    let mut body = vec![0; n_bytes];
    output.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}
