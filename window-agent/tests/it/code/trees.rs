//! A language server sees one tree: worktrees, nested repositories and submodules inside of a window's folder are in
//! no answer and no change, and what nobody watches is told as it is.

#![expect(clippy::disallowed_methods, reason = "git makes the trees, and says whether one was changed")]

use std::path::Path;
use std::process::Command;

use baton_agent_code::servers::Places;
use serde_json::{Value, json};

use super::oracle::places_of;
use super::place::Place;

const TIMEOUT: u64 = 120;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .output()
        .unwrap();
    let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "git {arguments:?}: {error}");
    told.into_owned()
}

fn commit_all(folder: &Path) {
    git(folder, &["init", "-q", "-b", "main"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "all"]);
}

/// What one server is asked about.
struct Story {
    server: &'static str,
    /// The project.
    files: &'static [(&'static str, &'static str)],
    /// A file that other trees have beside copies of all those: it uses what the project around it defines.
    user: (&'static str, &'static str),
    /// A name, and the file that defines it.
    name: &'static str,
    defined_in: &'static str,
    new_name: &'static str,
    /// Problems in the project.
    n_problems: u64,
}

/// The other trees that a window's folder holds, of all kinds.
const OTHERS: [&str; 4] = ["wt", ".claude/worktrees/x", "nested", "sub"];

/// A repository with a worktree, a hidden one, a nested repository and a submodule in it.
fn forest(story: &Story) -> (Place, tempfile::TempDir) {
    let place = Place::of_server(story.server, story.files);
    let root = place.root.clone();
    commit_all(&root);
    for (tree, branch) in [("wt", "one"), (".claude/worktrees/x", "two")] {
        git(&root, &["worktree", "add", "-q", "-b", branch, tree]);
        std::fs::write(root.join(tree).join(story.user.0), story.user.1).unwrap();
        git(&root.join(tree), &["add", "-A"]);
        git(&root.join(tree), &["commit", "-q", "-m", "more"]);
    }
    let upstream = tempfile::tempdir().unwrap();
    for folder in [root.join("nested"), upstream.path().to_owned()] {
        for (name, text) in story.files.iter().chain([&story.user]) {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        commit_all(&folder);
    }
    git(&root, &["submodule", "--quiet", "add", upstream.path().to_str().unwrap(), "sub"]);
    (place, upstream)
}

fn at(path: &str) -> Value {
    json!({"file_path": path, "timeout": TIMEOUT})
}

async fn uses(place: &Place, name: &str, file: &str) -> Vec<String> {
    let arguments = json!({"symbol_name": name, "context_file": file, "timeout": TIMEOUT});
    let answer = place.ok("lcp_find_references", arguments).await;
    assert_eq!(answer["freshness"], "settled", "{answer:#}");
    places_of(&answer).iter().map(|(file, line)| format!("{file}:{line}")).collect()
}

async fn defined(place: &Place, name: &str) -> Vec<String> {
    let arguments = json!({"to": "symbols", "symbol_name": name, "timeout": TIMEOUT});
    let answer = place.ok("lcp_navigate", arguments).await;
    let named = answer["data"].as_array().unwrap().iter().filter(|entry| entry["name"] == name);
    named.map(|entry| format!("{}:{}", entry["file"].as_str().unwrap(), entry["line"])).collect()
}

async fn rename(place: &Place, name: &str, file: &str, new_name: &str) -> Value {
    let mut arguments =
        json!({"symbol_name": name, "context_file": file, "new_name": new_name, "timeout": TIMEOUT});
    let preview = place.ok("lcp_rename", arguments.clone()).await;
    arguments["apply"] = preview["token"].clone();
    let made = place.ok("lcp_rename", arguments).await;
    assert_eq!(made["applied"], true, "{made:#}");
    made["data"].clone()
}

/// Where git finds a name as a word in what the tree of a folder holds.
fn lines_with(root: &Path, name: &str) -> Vec<String> {
    let found = git(root, &["grep", "-n", "-w", name]);
    found.lines().map(|line| line.splitn(3, ':').take(2).collect::<Vec<_>>().join(":")).collect()
}

/// Each way to ask about a file, or to change it, is refused with the tree that it is of.
async fn is_refused(place: &Place, tree: &str, story: &Story) {
    let file = format!("{tree}/{}", story.defined_in);
    let text = std::fs::read_to_string(place.root.join(&file)).unwrap();
    let symbol = json!({"symbol_name": story.name, "context_file": file});
    let mut rename = symbol.clone();
    rename["new_name"] = story.new_name.into();
    let mut definition = symbol.clone();
    definition["to"] = "definition".into();
    let absolute = place.root.join(&file).display().to_string();
    for (tool, arguments) in [
        ("lcp_get_outline", json!({"file_path": file})),
        ("lcp_get_outline", json!({"file_path": absolute})),
        ("lcp_read_symbol", json!({"file_path": file, "symbol_name": story.name})),
        ("lcp_find_references", symbol),
        ("lcp_navigate", definition),
        ("lcp_get_diagnostics", json!({"file_path": file})),
        ("lcp_rename", rename),
        ("lcp_code_action", json!({"file_path": file, "line": 1})),
        ("lcp_complete", json!({"file_path": file, "line": 1})),
        ("lcp_apply_edit", json!({"file_path": file, "edits": [{"start_line": 1, "new_text": "x"}]})),
    ] {
        let refused = place.call(tool, arguments).await;
        assert_eq!(refused["code"], "outside_window", "{tool}: {refused:#}");
        let top = place.root.join(tree).display().to_string();
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(&format!("belongs to another tree, {top}.")), "{tool}: {message}");
        assert!(refused["hint"].as_str().unwrap().contains(&top), "{refused:#}");
    }
    assert_eq!(std::fs::read_to_string(place.root.join(&file)).unwrap(), text);
}

async fn one_tree(story: &Story) {
    let (place, _upstream) = forest(story);
    let expected = lines_with(&place.root, story.name);
    assert!(expected.iter().all(|line| !line.contains("nested")) && expected.len() > 1, "{expected:?}");
    assert_eq!(uses(&place, story.name, story.defined_in).await, expected);
    let own = defined(&place, story.name).await;
    assert!(own.len() == 1 && own[0].starts_with(&format!("{}:", story.defined_in)), "{own:?}");
    let problems = place.ok("lcp_get_diagnostics", json!({"timeout": TIMEOUT})).await;
    assert_eq!(problems["total"], story.n_problems, "{problems:#}");
    for tree in OTHERS {
        is_refused(&place, tree, story).await;
    }
    // A name that the end of a path tells is that of the window's own file.
    place.ok("lcp_get_outline", at(story.defined_in.rsplit('/').next().unwrap())).await;

    rename(&place, story.name, story.defined_in, story.new_name).await;
    assert_eq!(lines_with(&place.root, story.new_name), expected);
    for tree in OTHERS {
        assert_eq!(git(&place.root.join(tree), &["status", "--porcelain"]), "", "{tree}");
    }
    assert_eq!(uses(&place, story.new_name, story.defined_in).await, expected);

    // One that comes while the servers run, and those that go.
    git(&place.root, &["worktree", "add", "-q", "-b", "three", "late"]);
    assert_eq!(defined(&place, story.name).await, [""; 0]);
    is_refused(&place, "late", story).await;
    for tree in ["wt", ".claude/worktrees/x", "late"] {
        git(&place.root, &["worktree", "remove", "--force", tree]);
    }
    std::fs::remove_dir_all(place.root.join("nested")).unwrap();
    assert_eq!(defined(&place, story.name).await, [""; 0]);
    assert_eq!(uses(&place, story.new_name, story.defined_in).await, expected);

    // A window on another tree serves it.
    let sub = Place::on(&place.root.join("sub"));
    let mut found = uses(&sub, story.name, story.defined_in).await;
    found.retain(|line| !line.starts_with(story.user.0));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn ty_sees_one_tree() {
    one_tree(&Story {
        server: "ty",
        files: &[
            ("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n"),
            ("shop.py", "def price() -> int:\n    return 3\n"),
            ("main.py", "from shop import price\n\nbill: str = price()\n"),
        ],
        user: ("user.py", "from shop import price\n\nprice()\n"),
        name: "price",
        defined_in: "shop.py",
        new_name: "cost",
        n_problems: 1,
    })
    .await;
}

#[tokio::test]
async fn typescript_sees_one_tree() {
    one_tree(&Story {
        server: "typescript",
        files: &[
            ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}"),
            ("shop.ts", "export function price(): number {\n  return 3;\n}\n"),
            ("main.ts", "import { price } from './shop';\nexport const bill: string = price();\n"),
        ],
        user: ("user.ts", "import { price } from '../shop';\nexport const other = price();\n"),
        name: "price",
        defined_in: "shop.ts",
        new_name: "cost",
        n_problems: 1,
    })
    .await;
}

#[tokio::test]
async fn gopls_sees_one_tree() {
    one_tree(&Story {
        server: "gopls",
        files: &[
            ("go.mod", "module shop\n\ngo 1.19\n"),
            ("price.go", "package shop\n\nfunc Price() int { return 1 }\n"),
            ("bill.go", "package shop\n\nvar Bill string = Price()\n"),
        ],
        user: ("user.go", "package shop\n\nvar Other = Price()\n"),
        name: "Price",
        defined_in: "price.go",
        new_name: "Cost",
        n_problems: 1,
    })
    .await;
}

#[tokio::test]
async fn rust_analyzer_sees_one_tree() {
    one_tree(&Story {
        server: "rust-analyzer",
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
            ),
            ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n"),
            (".gitignore", "target\n"),
            ("src/lib.rs", "pub mod bag;\n\npub fn shop() {\n    bag::fill();\n}\n"),
            ("src/bag.rs", "pub fn fill() {}\n"),
        ],
        user: ("src/user.rs", "pub fn other() {\n    crate::bag::fill();\n}\n"),
        name: "fill",
        defined_in: "src/bag.rs",
        new_name: "stuff",
        n_problems: 0,
    })
    .await;
}

/// A repository inside of the project that is a part of it for the compiler: its uses are another tree's still.
#[tokio::test]
async fn a_repository_in_a_project_keeps_its_text() {
    let manifest = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{more}")
    };
    let of_rust: [(&str, String); 4] = [
        ("Cargo.toml", manifest("shop", "\n[workspace]\nmembers = [\"plug\"]\n")),
        ("src/lib.rs", "pub fn fill() {}\n\npub fn shop() {\n    fill();\n}\n".to_owned()),
        ("plug/Cargo.toml", manifest("plug", "\n[dependencies]\nshop = { path = \"..\" }\n")),
        ("plug/src/lib.rs", "pub fn plug() {\n    shop::fill();\n}\n".to_owned()),
    ];
    let of_rust = of_rust.each_ref().map(|(path, text)| (*path, text.as_str()));
    let of_go = [
        ("go.mod", "module shop\n\ngo 1.19\n"),
        ("shop.go", "package shop\n\nfunc Fill() {}\n\nfunc Shop() { Fill() }\n"),
        ("plug/plug.go", "package plug\n\nimport \"shop\"\n\nfunc Plug() { shop.Fill() }\n"),
    ];
    for (server, files, name, new_name, file, expected) in [
        ("rust-analyzer", &of_rust[..], "fill", "stuff", "src/lib.rs", ["src/lib.rs:1", "src/lib.rs:4"]),
        ("gopls", &of_go[..], "Fill", "Stuff", "shop.go", ["shop.go:3", "shop.go:5"]),
    ] {
        let place = Place::of_server(server, files);
        let plug = place.root.join("plug");
        commit_all(&plug);
        git(&place.root, &["init", "-q"]);
        assert_eq!(uses(&place, name, file).await, expected, "{server}");
        let callers = json!({"to": "callers", "symbol_name": name, "context_file": file, "timeout": TIMEOUT});
        let callers = place.ok("lcp_navigate", callers).await;
        let files: Vec<&Value> = callers["data"].as_array().unwrap().iter().map(|one| &one["file"]).collect();
        assert_eq!(files, [file], "{server}");
        rename(&place, name, file, new_name).await;
        assert_eq!(git(&plug, &["status", "--porcelain"]), "", "{server}");
    }
}

/// What another tree defines is not shown, and not renamed from here.
#[tokio::test]
async fn a_definition_in_another_tree_is_told_to_be_there() {
    let place = Place::of_server(
        "typescript",
        &[
            ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}"),
            ("main.ts", "import { price } from './sub/shop';\nexport const bill = price();\n"),
            ("sub/shop.ts", "export function price(): number {\n  return 3;\n}\n"),
        ],
    );
    let sub = place.root.join("sub");
    commit_all(&sub);
    git(&place.root, &["init", "-q"]);
    let arguments =
        json!({"to": "definition", "symbol_name": "price", "context_file": "main.ts", "timeout": TIMEOUT});
    let refused = place.call("lcp_navigate", arguments).await;
    assert_eq!(refused["code"], "outside_window", "{refused:#}");
    assert_eq!(uses(&place, "price", "main.ts").await, ["main.ts:1", "main.ts:2"]);
    let arguments =
        json!({"symbol_name": "price", "context_file": "main.ts", "new_name": "cost", "timeout": TIMEOUT});
    let refused = place.call("lcp_rename", arguments).await;
    assert_eq!(refused["code"], "not_renamable", "{refused:#}");
    assert_eq!(git(&sub, &["status", "--porcelain"]), "");
}

/// ty reads what is hidden, so that is watched, too.
#[tokio::test]
async fn a_hidden_folder_is_told_as_it_is() {
    let place = Place::of_server(
        "ty",
        &[
            ("pyproject.toml", "[project]\nname = \"shop\"\nversion = \"1\"\n"),
            ("shop.py", "def price():\n    return 3\n"),
            (".tools/gen.py", "from shop import price\n\nprice()\n"),
        ],
    );
    assert_eq!(uses(&place, "price", "shop.py").await, [".tools/gen.py:1", ".tools/gen.py:3", "shop.py:1"]);
    for n in 1..=5 {
        let text = format!("{}from shop import price\n\nprice()\n", "# first\n".repeat(n));
        place.write(".tools/gen.py", &text);
        let found = uses(&place, "price", "shop.py").await;
        assert_eq!(found[..2], [format!(".tools/gen.py:{}", n + 1), format!(".tools/gen.py:{}", n + 3)]);
        let text = format!("# second\n{text}");
        place.write(".tools/gen.py", &text);
        rename(&place, "price", "shop.py", "cost").await;
        let written = std::fs::read_to_string(place.root.join(".tools/gen.py")).unwrap();
        assert_eq!(written, text.replace("price", "cost"));
        rename(&place, "cost", "shop.py", "price").await;
    }
    std::fs::remove_dir_all(place.root.join(".tools")).unwrap();
    assert_eq!(uses(&place, "price", "shop.py").await, ["shop.py:1"]);
}

/// Nobody watches what is installed; it is shown to the server when it tells of it.
#[tokio::test]
async fn what_nobody_watches_is_told_as_it_is() {
    let place = Place::of_server(
        "typescript",
        &[
            ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}"),
            ("main.ts", "import { price } from 'lib';\nexport const bill = price();\n"),
            ("node_modules/lib/package.json", "{\"name\":\"lib\",\"types\":\"index.d.ts\"}"),
            ("node_modules/lib/index.d.ts", "export declare function price(): number;\n"),
        ],
    );
    let arguments =
        json!({"to": "definition", "symbol_name": "price", "context_file": "main.ts", "timeout": TIMEOUT});
    for n in 1..=5 {
        let told = place.ok("lcp_navigate", arguments.clone()).await;
        let line = told["data"][0]["line"].as_u64().unwrap();
        assert_eq!((line, &told["freshness"]), (n, &json!("settled")), "{told:#}");
        let lines = "// first\n".repeat(n as usize);
        place.write(
            "node_modules/lib/index.d.ts",
            format!("{lines}export declare function price(): number;\n"),
        );
    }
}

/// Says that `price` is used where it is not, and would change it there.
const LIAR: &str = r#"
import json, sys
def read():
    length = 0
    while (line := sys.stdin.buffer.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length)) if length else sys.exit()
def at(file, line, start, end):
    place = lambda character: {"line": line, "character": character}
    return {"uri": "file://{ROOT}/" + file, "range": {"start": place(start), "end": place(end)}}
own = at("a.odd", 0, 4, 9)
symbol = {"name": "price", "kind": 12, "range": own["range"], "selectionRange": own["range"]}
def edit(place):
    return {place["uri"]: [{"range": place["range"], "newText": "cost"}]}
answers = {
    "initialize": {"capabilities": {"positionEncoding": "utf-8"}},
    "textDocument/documentSymbol": [symbol],
    "textDocument/definition": [own],
    "textDocument/references": [own, at("b.odd", 0, 0, 5), at("b.odd", 9, 0, 5), at("gone.odd", 0, 0, 5)],
    "textDocument/rename": {"changes": {**edit(own), **edit(at("b.odd", 1, 0, 5))}},
    "workspace/symbol": [{"name": "price", "kind": 12, "location": place} for place in [own, at("b.odd", 9, 0, 5)]],
}
while True:
    message = read()
    if "id" in message and "method" in message:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answers.get(message["method"])}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        sys.stdout.buffer.flush()
"#;

#[tokio::test]
async fn a_place_that_does_not_fit_its_file_is_not_believed() {
    let place = Place::new(&[("a.odd", "def price\n"), ("b.odd", "price\nother\n"), ("liar.py", LIAR)]);
    let config = place.root.join("servers.json");
    let script = place.root.join("liar.py");
    let spec = json!([{"name": "liar", "languages": {"odd": "odd"}, "commands": [["python3", script]]}]);
    std::fs::write(&config, spec.to_string()).unwrap();
    let search_path = std::env::var_os("PATH");
    let liar = Place::with(
        &place.root,
        Places { installed: None, config: Some(config), search_path, ..Places::default() },
    );

    let arguments = json!({"symbol_name": "price", "context_file": "a.odd", "timeout": TIMEOUT});
    let answer = liar.ok("lcp_find_references", arguments).await;
    let found: Vec<(String, u64)> = places_of(&answer).into_iter().collect();
    assert_eq!(found, [("a.odd".to_owned(), 1), ("b.odd".to_owned(), 1)]);
    assert_eq!(answer["freshness"], "stale", "{answer:#}");
    let symbols = json!({"to": "symbols", "symbol_name": "price", "timeout": TIMEOUT});
    let answer = liar.ok("lcp_navigate", symbols).await;
    assert_eq!((answer["data"].as_array().unwrap().len(), &answer["freshness"]), (1, &json!("stale")));
    let arguments =
        json!({"symbol_name": "price", "context_file": "a.odd", "new_name": "cost", "timeout": TIMEOUT});
    let refused = liar.call("lcp_rename", arguments).await;
    assert_eq!(refused["code"], "changed_meanwhile", "{refused:#}");
    assert_eq!(std::fs::read_to_string(liar.root.join("b.odd")).unwrap(), "price\nother\n");
}
