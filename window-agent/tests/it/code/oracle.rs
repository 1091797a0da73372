//! The servers themselves as the oracle: asked straight, in UTF-16, by a client that shares nothing with the engine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::place::{Place, servers};

/// How long an empty answer is not believed.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server spoken to directly, one request at a time.
pub(crate) struct Oracle {
    opened: BTreeSet<String>,
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last_id: i64,
}

impl Oracle {
    pub(crate) async fn start(program: &Path, args: &[&str], root: &Path) -> Self {
        let mut child = Command::new(program)
            .args(args)
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut oracle = Self { opened: BTreeSet::new(), _child: child, stdin, stdout, last_id: 0 };
        let uri = format!("file://{}", root.display());
        let hierarchy = json!({"documentSymbol": {"hierarchicalDocumentSymbolSupport": true}});
        oracle
            .ask(
                "initialize",
                json!({"processId": null, "rootUri": uri, "capabilities": {"textDocument": hierarchy},
                    "workspaceFolders": [{"uri": uri, "name": "w"}]}),
            )
            .await;
        oracle.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}})).await;
        oracle
    }

    async fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let head = format!("Content-Length: {}\r\n\r\n", body.len());
        self.stdin.write_all((head + &body).as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let mut len = 0;
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).await.unwrap() > 0, "the server ended");
            match line.trim().to_ascii_lowercase().strip_prefix("content-length:") {
                Some(text) => len = text.trim().parse().unwrap(),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; len];
        self.stdout.read_exact(&mut body).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.try_ask(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    async fn try_ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let message = self.receive().await;
            if message.get("method").is_some() {
                if let Some(theirs) = message.get("id") {
                    let n_items = message["params"]["items"].as_array().map_or(0, Vec::len);
                    let result = if n_items > 0 { json!(vec![Value::Null; n_items]) } else { Value::Null };
                    self.send(&json!({"jsonrpc": "2.0", "id": theirs, "result": result})).await;
                }
            } else if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    async fn open(&mut self, path: &Path, language: &str) -> String {
        let uri = format!("file://{}", path.display());
        if !self.opened.insert(uri.clone()) {
            return uri;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let document = json!({"uri": uri, "languageId": language, "version": 1, "text": text});
        let params = json!({"textDocument": document});
        self.send(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": params})).await;
        uri
    }
}

/// Names and first and last lines, with what holds them, from the server's own answer.
fn theirs(symbols: &Value, holder: &str, all: &mut Vec<String>) {
    for symbol in symbols.as_array().into_iter().flatten() {
        let path = format!("{holder}{}", symbol["name"].as_str().unwrap());
        let line = |end: &str| symbol["range"][end]["line"].as_u64().unwrap() + 1;
        all.push(format!("{path} {}-{}", line("start"), line("end")));
        theirs(&symbol["children"], &format!("{path}."), all);
    }
}

fn ours(symbols: &Value, holder: &str, all: &mut Vec<String>) {
    for symbol in symbols.as_array().into_iter().flatten() {
        let path = format!("{holder}{}", symbol["name"].as_str().unwrap());
        let line = |end: &str| symbol["range"][end]["line"].as_u64().unwrap();
        all.push(format!("{path} {}-{}", line("start"), line("end")));
        ours(&symbol["children"], &format!("{path}."), all);
    }
}

pub(crate) fn files(folder: &Path, extension: &str, all: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, extension, all);
        } else if path.extension().is_some_and(|found| found == extension) {
            all.push(path);
        }
    }
}

/// Every symbol of every file is the server's own.
pub(crate) async fn outlines_agree(
    place: &Place,
    oracle: &mut Oracle,
    extension: &str,
    language: &str,
) -> usize {
    let mut all = Vec::new();
    files(&place.root, extension, &mut all);
    let mut n_symbols = 0;
    for path in &all {
        let shown = path.strip_prefix(&place.root).unwrap();
        let answer =
            place.ok("lcp_get_outline", json!({"file_path": shown, "depth": 40, "timeout": 60})).await;
        let uri = oracle.open(path, language).await;
        let (mut ours_all, mut theirs_all) = (Vec::new(), Vec::new());
        ours(&answer["data"], "", &mut ours_all);
        let until = Instant::now() + PATIENCE;
        loop {
            let params = json!({"textDocument": {"uri": uri}});
            theirs(&oracle.ask("textDocument/documentSymbol", params).await, "", &mut theirs_all);
            // Some say for a moment that nothing is in a file, while they take a project in.
            if !theirs_all.is_empty() || ours_all.is_empty() || Instant::now() > until {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(ours_all, theirs_all, "{}", shown.display());
        n_symbols += ours_all.len();
    }
    n_symbols
}

/// The server's own references, by file and line; `None` when it refuses, as some do while they are reading.
pub(crate) async fn references(
    oracle: &mut Oracle,
    root: &Path,
    (file, line, name): (&str, u64, &str),
    language: &str,
) -> Option<BTreeSet<(String, u64)>> {
    let uri = oracle.open(&root.join(file), language).await;
    let text = std::fs::read_to_string(root.join(file)).unwrap();
    let at = text.lines().nth(line as usize - 1).unwrap().find(name).unwrap();
    let params = json!({"textDocument": {"uri": uri}, "position": {"line": line - 1, "character": at},
        "context": {"includeDeclaration": true}});
    let found = oracle.try_ask("textDocument/references", params).await.ok()?;
    let prefix = format!("file://{}/", root.display());
    let place = |found: &Value| {
        let file = found["uri"].as_str().unwrap().trim_start_matches(&prefix).to_owned();
        (file, found["range"]["start"]["line"].as_u64().unwrap() + 1)
    };
    Some(found.as_array().into_iter().flatten().map(place).collect())
}

/// File and line of each reference.
pub(crate) fn places_of(answer: &Value) -> BTreeSet<(String, u64)> {
    let told = answer["data"].as_array().unwrap().iter();
    let mut all: BTreeSet<(String, u64)> = told
        .map(|entry| (entry["file"].as_str().unwrap().to_owned(), entry["line"].as_u64().unwrap()))
        .collect();
    for (file, lines) in answer["more"].as_object().into_iter().flatten() {
        all.extend(lines.as_array().unwrap().iter().map(|line| (file.clone(), line.as_u64().unwrap())));
    }
    all
}

/// Every reference, by file and line, is the server's own.
async fn references_agree(
    place: &Place,
    oracle: &mut Oracle,
    file: &str,
    line: u64,
    name: &str,
    language: &str,
) -> usize {
    let theirs = references(oracle, &place.root, (file, line, name), language).await.unwrap();
    let arguments =
        json!({"symbol_name": name, "context_file": file, "line": line, "limit": 10, "timeout": 60});
    let answer = place.ok("lcp_find_references", arguments).await;
    assert_eq!(answer["freshness"], "settled");
    let ours = places_of(&answer);
    assert_eq!(ours, theirs, "{name}");
    ours.len()
}

/// A part of CPython's own library, whichever Python made the environment of the servers.
pub(crate) fn library() -> Place {
    let config = std::fs::read_to_string(servers().join("ty/pyvenv.cfg")).unwrap();
    let home = config.lines().find_map(|line| line.strip_prefix("home = ")).unwrap();
    let lib = Path::new(home).parent().unwrap().join("lib");
    let lib = std::fs::read_dir(lib).unwrap().map(|entry| entry.unwrap().path());
    let lib = lib.filter(|path| path.join("argparse.py").exists()).max().unwrap();
    let place = Place::new(&[]);
    for folder in ["", "json", "logging", "email", "unittest"] {
        std::fs::create_dir_all(place.root.join(folder)).unwrap();
        for entry in std::fs::read_dir(lib.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "py") {
                let to = place.root.join(path.strip_prefix(&lib).unwrap());
                std::fs::copy(&path, to).unwrap();
            }
        }
    }
    place
}

#[tokio::test]
async fn python_is_as_ty_says() {
    let place = library();
    let mut oracle = Oracle::start(&servers().join("ty/bin/ty"), &["server"], &place.root).await;
    let n_symbols = outlines_agree(&place, &mut oracle, "py", "python").await;
    assert!(n_symbols > 5_000, "{n_symbols}");
    let text = std::fs::read_to_string(place.root.join("argparse.py")).unwrap();
    let line_of = |start: &str| text.lines().position(|line| line.starts_with(start)).unwrap() as u64 + 1;
    for (start, name) in [
        ("class ArgumentParser(", "ArgumentParser"),
        ("class HelpFormatter(", "HelpFormatter"),
        ("SUPPRESS", "SUPPRESS"),
    ] {
        let found =
            references_agree(&place, &mut oracle, "argparse.py", line_of(start), name, "python").await;
        assert!(found >= 5, "{name}: {found}");
    }
}

#[tokio::test]
async fn typescript_is_as_its_server_says() {
    // Baton's own extension, with something outside ASCII.
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("vscode-shim/src");
    let mut all = Vec::new();
    files(&sources, "ts", &mut all);
    let place = Place::new(&[
        ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true},\"include\":[\"src\"]}"),
        (
            "src/ünï.ts",
            "/* ä😀 */ export const größe = 1; /* 😀 */ export function größer(x: number) { return x + größe; }\n",
        ),
    ]);
    for path in &all {
        let to = place.root.join("src").join(path.strip_prefix(&sources).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(path, to).unwrap();
    }
    let program = servers().join("typescript/node_modules/.bin/tsc");
    let mut oracle = Oracle::start(&program, &["--lsp", "--stdio"], &place.root).await;
    let n_symbols = outlines_agree(&place, &mut oracle, "ts", "typescript").await;
    assert!(n_symbols > 100, "{n_symbols}");
    let answer = place.ok("lcp_get_outline", json!({"file_path": "src/ünï.ts", "depth": 1})).await;
    let characters: Vec<u64> = answer["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|symbol| symbol["range"]["end"]["character"].as_u64().unwrap())
        .collect();
    let line =
        "/* ä😀 */ export const größe = 1; /* 😀 */ export function größer(x: number) { return x + größe; }";
    assert!(characters.iter().all(|end| *end as usize <= line.chars().count()), "{characters:?}");
    let references =
        place.ok("lcp_find_references", json!({"symbol_name": "größe", "context_file": "src/ünï.ts"})).await;
    assert_eq!(references["total"], 2, "{references}");
}
