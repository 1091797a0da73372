//! Every server on real sources: what it tells an independent client is what the tools tell.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::oracle::{Oracle, files, library, outlines_agree, places_of, references};
use super::place::{Place, servers};

/// Indexing on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a server is started by hand.
fn command_of(server: &str) -> (PathBuf, Vec<&'static str>) {
    let installed = |program: &str| servers().join(server).join(program);
    match server {
        "basedpyright" => (installed("bin/basedpyright-langserver"), vec!["--stdio"]),
        "pyright" => (installed("node_modules/.bin/pyright-langserver"), vec!["--stdio"]),
        "typescript-language-server" => {
            (installed("node_modules/.bin/typescript-language-server"), vec!["--stdio"])
        }
        "clangd" => (installed("bin/clangd"), vec!["--background-index"]),
        other => (PathBuf::from(other), Vec::new()),
    }
}

/// Files of a tree, copied into a window where that server goes before all others.
fn copied(server: &str, from: &Path, all: &[PathBuf], more: &[(&str, &str)]) -> Place {
    let place = Place::of_server(server, more);
    for path in all {
        let to = place.root.join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(path, to).unwrap();
    }
    place
}

/// Symbols of all files, and the references of some names, each a place in a file.
async fn agree(server: &str, place: &Place, language: (&str, &str), names: &[(&str, &str, &str)]) -> usize {
    let (program, args) = command_of(server);
    let mut oracle = Oracle::start(&program, &args, &place.root).await;
    let n_symbols = outlines_agree(place, &mut oracle, language.0, language.1).await;
    for (file, sign, name) in names {
        let text = std::fs::read_to_string(place.root.join(file)).unwrap();
        let line =
            text.lines().position(|line| line.contains(sign)).unwrap_or_else(|| panic!("{sign}")) as u64 + 1;
        let arguments = json!({"symbol_name": name, "context_file": file, "line": line, "limit": 0, "timeout": PATIENCE.as_secs()});
        let answer = place.ok("lcp_find_references", arguments).await;
        assert_eq!(
            (answer["freshness"].as_str(), answer["source"].as_str()),
            (Some("settled"), Some(server)),
            "{answer}"
        );
        let ours = places_of(&answer);
        assert!(ours.len() >= 3, "{name}: {ours:?}");
        let until = Instant::now() + PATIENCE;
        loop {
            // Asked by hand it does not say when it has read everything.
            let theirs = references(&mut oracle, &place.root, (file, line, name), language.1).await;
            if theirs.as_ref() == Some(&ours) {
                break;
            }
            assert!(Instant::now() < until, "{name}: {ours:?}\n{theirs:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    n_symbols
}

async fn python(server: &str) {
    let library = library();
    let mut all = Vec::new();
    for folder in ["json", "logging"] {
        files(&library.root.join(folder), "py", &mut all);
    }
    let place = copied(server, &library.root, &all, &[]);
    let names = [
        ("json/decoder.py", "class JSONDecodeError", "JSONDecodeError"),
        ("logging/__init__.py", "class Handler(", "Handler"),
    ];
    let n_symbols = agree(server, &place, ("py", "python"), &names).await;
    assert!(n_symbols > 500, "{n_symbols}");
}

#[tokio::test]
async fn pyright() {
    python("pyright").await;
}

#[tokio::test]
async fn basedpyright() {
    python("basedpyright").await;
}

/// Baton's own extension.
#[tokio::test]
async fn typescript_language_server() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("vscode-shim/src");
    let mut all = Vec::new();
    files(&sources, "ts", &mut all);
    let project = [("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}")];
    let place = copied("typescript-language-server", &sources, &all, &project);
    let names =
        [("problems.ts", "export function reason", "reason"), ("agent.ts", "export function tell", "tell")];
    let n_symbols = agree("typescript-language-server", &place, ("ts", "typescript"), &names).await;
    assert!(n_symbols > 100, "{n_symbols}");
}

/// The allocator that Baton is built with.
#[tokio::test]
async fn clangd() {
    let registry = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo"));
    let indexes = std::fs::read_dir(registry.join("registry/src")).unwrap().flatten();
    let crates = indexes.flat_map(|index| std::fs::read_dir(index.path()).unwrap().flatten());
    let is_allocator = |name: &str| name.starts_with("libmimalloc-sys-");
    let allocator = crates
        .map(|entry| entry.path())
        .filter(|path| is_allocator(&path.file_name().unwrap().to_string_lossy()));
    let sources = allocator.max().expect("the sources of libmimalloc-sys").join("c_src/mimalloc/v2");
    let mut all = Vec::new();
    files(&sources.join("src"), "c", &mut all);
    files(&sources.join("src"), "h", &mut all);
    files(&sources.join("include"), "h", &mut all);
    let unit = |file: &str| json!({"directory": "{ROOT}", "file": format!("src/{file}"), "arguments": ["cc", "-Iinclude", "-c", format!("src/{file}")]});
    let units = Value::Array(["heap.c", "page.c", "alloc.c", "init.c"].map(unit).to_vec()).to_string();
    let place = copied("clangd", &sources, &all, &[("compile_commands.json", &units)]);
    let names = [
        ("src/heap.c", "mi_heap_t* mi_heap_get_default(void)", "mi_heap_get_default"),
        ("src/page.c", "void _mi_page_free_collect(mi_page_t* page, bool force) {", "_mi_page_free_collect"),
    ];
    let n_symbols = agree("clangd", &place, ("c", "c"), &names).await;
    assert!(n_symbols > 300, "{n_symbols}");
}

/// Baton's own types; what they take from other crates is not there.
#[tokio::test]
async fn rust_analyzer() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("proto/src");
    let mut all = Vec::new();
    files(&sources, "rs", &mut all);
    let project = "[package]\nname = \"proto\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\npath = \"lib.rs\"\n\n[workspace]\n";
    let place = copied("rust-analyzer", &sources, &all, &[("Cargo.toml", project)]);
    let names =
        [("control.rs", "pub enum WindowState", "WindowState"), ("shim.rs", "pub struct Problem", "Problem")];
    let n_symbols = agree("rust-analyzer", &place, ("rs", "rust"), &names).await;
    assert!(n_symbols > 300, "{n_symbols}");
}

/// With the crates that it is built with, where the server's own answer leaves out some places.
#[tokio::test]
async fn rust_analyzer_leaves_nothing_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut manifest: toml_edit::DocumentMut = manifest.parse().unwrap();
    manifest["workspace"]["members"] = toml_edit::value(toml_edit::Array::from_iter(["proto"]));
    manifest["workspace"].as_table_mut().unwrap().remove("default-members");
    let manifest = manifest.to_string();
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let mut all = vec![root.join("proto/Cargo.toml")];
    files(&root.join("proto"), "rs", &mut all);
    let place = copied("rust-analyzer", root, &all, &[("Cargo.toml", &manifest), ("Cargo.lock", &lock)]);
    let file = "proto/src/discovery.rs";
    let text = std::fs::read_to_string(place.root.join(file)).unwrap();
    let mut is_own = false;
    let mut expected = BTreeSet::new();
    for (line, number) in text.lines().zip(1..) {
        is_own = (is_own && line != "}") || line == "impl Secret {";
        let has = |name: &str| {
            let words = line.split(|char: char| !char.is_alphanumeric() && char != '"');
            words.into_iter().any(|word| word == name)
        };
        if !line.trim_start().starts_with("//") && (has("Secret") || (is_own && has("Self"))) {
            expected.insert((file.to_owned(), number));
        }
    }
    assert!(expected.len() > 10, "{expected:?}");
    let arguments =
        json!({"symbol_name": "Secret", "context_file": file, "limit": 0, "timeout": PATIENCE.as_secs()});
    let answer = place.ok("lcp_find_references", arguments).await;
    assert_eq!(answer["freshness"], "settled", "{answer}");
    assert_eq!(places_of(&answer), expected, "{answer}");
    let arguments =
        json!({"symbol_name": "Secret", "context_file": file, "include_declaration": false, "limit": 0});
    let answer = place.ok("lcp_find_references", arguments).await;
    assert_eq!(places_of(&answer).len(), expected.len() - 1, "{answer}");
}

/// Packages of Go's own library that take nothing from inside of it.
#[tokio::test]
async fn gopls() {
    #[expect(clippy::disallowed_methods, reason = "it ends by itself")]
    let root = Command::new("go").args(["env", "GOROOT"]).output().unwrap().stdout;
    let sources = PathBuf::from(String::from_utf8(root).unwrap().trim()).join("src");
    let mut all = Vec::new();
    for folder in ["container/list", "encoding/csv", "text/tabwriter", "text/scanner"] {
        files(&sources.join(folder), "go", &mut all);
    }
    all.retain(|path| !path.to_string_lossy().ends_with("_test.go"));
    let place = copied("gopls", &sources, &all, &[("go.mod", "module library\n\ngo 1.14\n")]);
    let names = [
        ("container/list/list.go", "type Element struct", "Element"),
        ("text/tabwriter/tabwriter.go", "type Writer struct", "Writer"),
    ];
    let n_symbols = agree("gopls", &place, ("go", "go"), &names).await;
    assert!(n_symbols > 150, "{n_symbols}");
}
