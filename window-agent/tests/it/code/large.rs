//! A tree of 10,000 files, with every server: the first outline waits for no index, and references are complete or
//! say that they are not. Times are bounds for a busy machine, not figures; `cargo xtask bench code` has those.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::place::Place;

const N_FOLDERS: usize = 100;
const N_IN_FOLDER: usize = 100;
/// The first outline: the start of the server, on a busy machine.
const FIRST: Duration = Duration::from_secs(30);
/// One outline after it.
const WARM: Duration = Duration::from_secs(2);
/// What references may take; then they say that they are not complete.
const PATIENCE_S: u64 = 8;

/// A language: how a file of the tree looks.
struct Kind {
    server: &'static str,
    extension: &'static str,
    project: &'static [(&'static str, &'static str)],
    /// What is in the file of this number in the folder of this number.
    text: fn(usize, usize) -> String,
    /// Makes what names the files, where the language wants that.
    modules: fn(&Path),
}

fn no_modules(_: &Path) {}

async fn is_ready_at_once(kind: Kind) {
    let place = Place::of_server(kind.server, kind.project);
    for folder in 0..N_FOLDERS {
        let path = place.root.join(format!("part_{folder}"));
        std::fs::create_dir(&path).unwrap();
        for file in 0..N_IN_FOLDER {
            std::fs::write(path.join(format!("m_{file}.{}", kind.extension)), (kind.text)(folder, file))
                .unwrap();
        }
    }
    (kind.modules)(&place.root);
    let file = |folder: usize, file: usize| format!("part_{folder}/m_{file}.{}", kind.extension);
    let begun = Instant::now();
    let outline = place.ok("lcp_get_outline", json!({"file_path": file(5, 5), "timeout": 60})).await;
    let first = begun.elapsed();
    assert_eq!(outline["source"], kind.server, "{outline}");
    assert_eq!(outline["data"][0]["name"].as_str().unwrap().trim_end_matches("()"), "f_5_5", "{outline}");
    let begun = Instant::now();
    for n in 0..20 {
        place.ok("lcp_get_outline", json!({"file_path": file(n, n), "timeout": 60})).await;
    }
    let warm = begun.elapsed() / 20;
    let arguments = json!({"symbol_name": "f_1_1", "context_file": file(1, 1), "timeout": PATIENCE_S});
    let references = place.call("lcp_find_references", arguments).await;
    // It is defined and used there, and used in the next file, which first says where it is from.
    let n_lines = if kind.extension == "go" { 3 } else { 4 };
    let is_complete = references["total"] == n_lines;
    let says_so = references["code"] == "timeout"
        || references["freshness"].as_str().is_some_and(|freshness| freshness.starts_with("indexing"))
        || references["note"].is_string();
    assert!(is_complete || says_so, "{references}");
    assert!(first < FIRST, "{first:?}");
    assert!(warm < WARM, "{warm:?}");
}

/// The number of the file before, in the same folder.
fn before(file: usize) -> usize {
    (file + N_IN_FOLDER - 1) % N_IN_FOLDER
}

fn python_text(folder: usize, file: usize) -> String {
    let other = before(file);
    format!(
        "def f_{folder}_{file}():\n    return {file}\n\n\nfrom part_{folder}.m_{other} import f_{folder}_{other}\n\nuse = f_{folder}_{other}() + f_{folder}_{file}()\n"
    )
}

fn typescript_text(folder: usize, file: usize) -> String {
    let other = before(file);
    format!(
        "export function f_{folder}_{file}() {{\n  return {file};\n}}\n\nimport {{ f_{folder}_{other} }} from './m_{other}';\n\nexport const use = f_{folder}_{other}() + f_{folder}_{file}();\n"
    )
}

fn c_text(folder: usize, file: usize) -> String {
    let other = before(file);
    format!(
        "int f_{folder}_{file}(void) {{\n  return {file};\n}}\n\nint f_{folder}_{other}(void);\n\nint use_{folder}_{file}(void) {{\n  return f_{folder}_{other}()\n    + f_{folder}_{file}();\n}}\n"
    )
}

fn c_units(root: &Path) {
    let all = (0..N_FOLDERS)
        .flat_map(|folder| (0..N_IN_FOLDER).map(move |file| format!("part_{folder}/m_{file}.c")));
    let units: Vec<_> =
        all.map(|file| json!({"directory": root, "file": file, "arguments": ["cc", "-c", file]})).collect();
    std::fs::write(root.join("compile_commands.json"), json!(units).to_string()).unwrap();
}

fn rust_text(folder: usize, file: usize) -> String {
    let other = before(file);
    format!(
        "pub fn f_{folder}_{file}() -> u32 {{\n    {file}\n}}\n\nuse super::m_{other}::f_{folder}_{other};\n\npub fn sum() -> u32 {{\n    f_{folder}_{other}() + f_{folder}_{file}()\n}}\n"
    )
}

fn rust_modules(root: &Path) {
    let list =
        |prefix: &str, n: usize| -> String { (0..n).map(|at| format!("pub mod {prefix}_{at};\n")).collect() };
    for folder in 0..N_FOLDERS {
        std::fs::write(root.join(format!("part_{folder}/mod.rs")), list("m", N_IN_FOLDER)).unwrap();
    }
    std::fs::write(root.join("lib.rs"), list("part", N_FOLDERS)).unwrap();
}

fn go_text(folder: usize, file: usize) -> String {
    let other = before(file);
    format!(
        "package part_{folder}\n\nfunc f_{folder}_{file}() int {{\n\treturn {file}\n}}\n\nvar use_{folder}_{file} = f_{folder}_{other}() +\n\tf_{folder}_{file}()\n"
    )
}

const TSCONFIG: (&str, &str) = ("tsconfig.json", "{}");
const CARGO: (&str, &str) = (
    "Cargo.toml",
    "[package]\nname = \"large\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\npath = \"lib.rs\"\n\n[workspace]\n",
);

/// A test for each server.
macro_rules! large {
    ($($name:ident: $server:literal, $extension:literal, $project:expr, $text:expr, $modules:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            let kind = Kind { server: $server, extension: $extension, project: $project, text: $text, modules: $modules };
            is_ready_at_once(kind).await;
        })*
    };
}

large! {
    ty: "ty", "py", &[], python_text, no_modules;
    pyright: "pyright", "py", &[], python_text, no_modules;
    basedpyright: "basedpyright", "py", &[], python_text, no_modules;
    typescript: "typescript", "ts", &[TSCONFIG], typescript_text, no_modules;
    typescript_language_server: "typescript-language-server", "ts", &[TSCONFIG], typescript_text, no_modules;
    clangd: "clangd", "c", &[], c_text, c_units;
    rust_analyzer: "rust-analyzer", "rs", &[CARGO], rust_text, rust_modules;
    gopls: "gopls", "go", &[("go.mod", "module large\n\ngo 1.14\n")], go_text, no_modules;
}
