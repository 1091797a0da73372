//! `cargo xtask demo --code`: an agent finds and reads a function in a large tree, and its uses, through the stable
//! URL, and what that costs it.

use std::path::Path;
use std::process::ExitCode;

use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::command;
use baton_tests::world::{WindowOptions, World};
use serde_json::{Value, json};

use crate::Timeline;

/// Bytes of a token, roughly: enough for a comparison.
const TOKEN_LEN: usize = 4;
/// Lines of an answer that are shown.
const MAX_SHOWN: usize = 6;

pub(crate) fn demo() -> ExitCode {
    let mut timeline = Timeline::new();
    let servers = place::tool("servers");
    let mut world = World::new().with_env("BATON_SERVERS", servers.to_str().expect("a path in UTF-8"));
    timeline.heading("1. a window on CPython's own library");
    let folder = world.folder("library");
    let n_files = copy_sources(&python_library(), &folder);
    world.window_with("library", WindowOptions { folder: Some(folder.clone()), ..WindowOptions::default() });
    world.await_live("library");
    timeline.say(&format!("{n_files} files of Python"));

    timeline.heading(&format!("2. one MCP client at {} looks for how words are split", world.url()));
    let mut client = world.client(ClientKind::Python1);
    let mut ask = |what: &str, tool: &str, arguments: Value| {
        let answer = ask(&mut client, tool, arguments);
        let shown = show(&answer["data"]);
        timeline.say(&format!("{what} ({} tokens)", answer["data"].to_string().len() / TOKEN_LEN));
        print_lines(&shown);
        answer
    };
    let found = ask(
        "symbols like `shlex`",
        "lcp_navigate",
        json!({"to": "symbols", "symbol_name": "shlex", "limit": 3}),
    );
    assert!(found["total"].as_u64() > Some(0), "{found:#}");
    let outline = json!({"file_path": "shlex.py", "depth": 1, "format": "lines"});
    ask("outline of shlex.py", "lcp_get_outline", outline);
    let read = ask(
        "its function `split`",
        "lcp_read_symbol",
        json!({"file_path": "shlex.py", "symbol_name": "split"}),
    );
    let code = read["data"].as_str().expect("code").to_owned();
    assert!(code.starts_with("def split("), "{read:#}");
    let wanted = json!({"symbol_name": "split", "context_file": "shlex.py", "limit": 5, "timeout": 30});
    let uses = ask("who uses it, in all files", "lcp_find_references", wanted);
    assert_eq!(uses["freshness"], "settled", "{uses:#}");
    let whole = std::fs::metadata(folder.join("shlex.py")).map_or(0, |file| file.len()) as usize;
    let ends = format!(
        "{} uses in all; the function takes {} tokens, its file {}",
        uses["total"],
        code.len() / TOKEN_LEN,
        whole / TOKEN_LEN
    );
    timeline.say(&ends);
    client.close();
    timeline.heading("3. everything ends");
    super::end(&mut world, &mut timeline)
}

fn ask(client: &mut Client, tool: &str, mut arguments: Value) -> Value {
    // A first answer waits for the server to come up.
    arguments["timeout"] = json!(60);
    let answer = client.call(tool, arguments);
    assert_eq!(answer["success"], true, "{tool}: {answer:#}");
    answer
}

/// A text as it is, of a list the places.
fn show(data: &Value) -> Vec<String> {
    let lines: Vec<String> = match data {
        Value::String(text) => text.lines().map(str::to_owned).collect(),
        Value::Array(all) => {
            let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let place = |entry: &Value| {
                format!("{}:{} {}", text(entry, "file"), entry["line"], text(entry, "code_snippet"))
            };
            all.iter().map(place).collect()
        }
        other => vec![other.to_string()],
    };
    let n_more = lines.len().saturating_sub(MAX_SHOWN);
    let more = (n_more > 0).then(|| format!("... {n_more} more lines"));
    lines.into_iter().take(MAX_SHOWN).chain(more).collect()
}

#[expect(clippy::print_stdout, reason = "the answers are what the demo is for")]
fn print_lines(lines: &[String]) {
    for line in lines {
        println!("              | {line}");
    }
}

fn python_library() -> std::path::PathBuf {
    let asked = ["-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"];
    let output = command(place::python()).args(asked).output().expect("Python runs");
    String::from_utf8_lossy(&output.stdout).trim().into()
}

/// The library without its tests and what is installed into it.
fn copy_sources(from: &Path, to: &Path) -> usize {
    std::fs::create_dir_all(to).expect("a temporary folder");
    let mut n_files = 0;
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let is_other = ["site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib"]
            .iter()
            .any(|name| entry.file_name() == *name);
        if path.is_dir() && !is_other {
            n_files += copy_sources(&path, &target);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            std::fs::copy(&path, &target).expect("a file");
            n_files += 1;
        }
    }
    n_files
}
