//! The walls of the house: cores are pure, and see only each other; crates see those below them.

mod circles;
mod crates;
mod engines;
pub(crate) mod source;

use std::path::{Path, PathBuf};

use baton_tests::place::root;

use crate::tidy::{read, rust_files, shown};
use source::Source;

/// What no core names: clocks, files, connections, processes, channels, tasks, locks that are waited for.
const IMPURE: [&str; 16] = [
    "Instant::now",
    "SystemTime",
    "baton_link",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::sync::mpsc",
    "std::thread",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "tokio::spawn",
    "tokio::sync",
    "tokio::task",
    "tokio_util::sync",
];

/// Says of a file that it is a core.
const MARK: &str = "//! CORE";

/// All our files, and whether each is a core.
fn files() -> Vec<(PathBuf, bool)> {
    let is_core = |path: &Path| read(path).starts_with(MARK);
    rust_files().iter().map(|path| (PathBuf::from(shown(path)), is_core(path))).collect()
}

/// The cores alone: to parse all files takes many seconds.
fn cores() -> Vec<Source> {
    let cores = rust_files().into_iter().map(|path| (shown(&path), read(&path)));
    let cores: Vec<Source> = cores
        .filter(|(_, text)| text.starts_with(MARK))
        .map(|(path, text)| Source::parse(Path::new(&path), &text))
        .collect();
    assert!(cores.len() > 40, "the cores were not found");
    cores
}

/// Where a core is impure.
fn impurities(source: &Source) -> Vec<String> {
    let is_impure = |path: &[String]| {
        let path = path.join("::");
        IMPURE.iter().find(|word| holds(&path, word)).copied()
    };
    let named = source.paths().into_iter().filter_map(|(line, path)| Some((line, is_impure(&path)?)));
    let awaits = source.awaits().into_iter().map(|line| (line, ".await"));
    named.chain(awaits).map(|(line, word)| format!("{}:{line}: {word}", source.path.display())).collect()
}

/// True when `path` has the segments of `word` one after the other.
fn holds(path: &str, word: &str) -> bool {
    format!("::{path}::").contains(&format!("::{word}::"))
}

#[test]
fn cores_are_pure() {
    let bad: Vec<String> = cores().iter().flat_map(impurities).collect();
    assert!(bad.is_empty(), "cores are pure, but {bad:#?}");
}

#[test]
fn an_impure_line_in_any_core_is_found() {
    for core in cores() {
        let before = impurities(&core).len();
        for planted in [
            "fn planted() -> std::time::Instant { std::time::Instant::now() }",
            "use std::{fs, net as planted};",
            "fn planted() { assert!(std::fs::exists(\"x\").is_ok()) }",
            "async fn planted() { planted().await }",
            "struct Planted(tokio_util::sync::CancellationToken);",
        ] {
            let after = impurities(&core.with(planted)).len();
            assert!(after > before, "{}: {planted} is not found", core.path.display());
        }
        let of_tests = "#[cfg(test)] mod planted { use std::fs; } #[test] fn planted() { std::env::args(); }";
        assert_eq!(impurities(&core.with(of_tests)).len(), before, "tests may do what they like");
    }
}

/// Crates of ours that have cores, by the name that code calls them.
const FOLDERS: [(&str, &str); 9] = [
    ("baton_agent_base", "window-agent/base"),
    ("baton_agent_code", "window-agent/code"),
    ("baton_agent_debug", "window-agent/debug"),
    ("baton_agent_tools", "window-agent/tools"),
    ("baton_client_files", "coordinator/clients"),
    ("baton_edge", "coordinator/edge"),
    ("baton_election", "coordinator/election"),
    ("baton_jsonc", "link/jsonc"),
    ("baton_mcp", "coordinator/mcp"),
];

#[test]
fn the_architecture_names_every_core() {
    let page = read(&root().join("docs/architecture.md"));
    let (_, table) = page.split_once("## Cores").expect("the page has its cores");
    let (table, _) = table.split_once("\n## ").expect("something follows");
    for (path, _) in files().into_iter().filter(|(_, is_core)| *is_core) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = if stem == "lib" { crate_of(&path).display().to_string() } else { stem };
        assert!(
            table.contains(&format!("{name}`")),
            "{} is a core that the page does not name",
            path.display()
        );
    }
}

/// What `core` names in its own crate or one below, and is no core.
fn strangers(core: &Source, files: &[(PathBuf, bool)]) -> Vec<String> {
    let own = source::module_of(&core.path);
    let home = crate_of(&core.path);
    let mut targets: Vec<(PathBuf, Vec<String>)> =
        core.siblings().into_iter().map(|target| (home.clone(), target)).collect();
    for (_, path) in core.paths() {
        let below = FOLDERS.iter().find(|(name, _)| path.first().is_some_and(|first| first == name));
        targets.extend(below.map(|(_, folder)| (PathBuf::from(folder), path[1..].to_vec())));
    }
    let mut found = Vec::new();
    for (folder, target) in targets {
        // The longest module that the path leads to.
        let modules = files.iter().filter(|(path, _)| crate_of(path) == folder);
        let modules = modules.map(|(path, is_core)| (source::module_of(path), path, is_core));
        let seen =
            modules.filter(|(module, ..)| target.starts_with(module)).max_by_key(|(module, ..)| module.len());
        let is_own = |module: &[String]| folder == home && module == own;
        if let Some((_, path, _)) = seen.filter(|(module, _, is_core)| !**is_core && !is_own(module)) {
            let target = target.join("::");
            found.push(format!("{} -> {} ({target})", core.path.display(), path.display()));
        }
    }
    found
}

fn crate_of(path: &Path) -> PathBuf {
    path.iter().take_while(|part| *part != "src").collect()
}

#[test]
fn cores_see_only_cores() {
    let files = files();
    let bad: Vec<String> = cores().iter().flat_map(|core| strangers(core, &files)).collect();
    assert!(bad.is_empty(), "cores see only cores, but {bad:#?}");
}

#[test]
fn a_core_that_sees_a_stranger_is_found() {
    let file = |path: &str, is_core| (PathBuf::from(path), is_core);
    let files = [
        file("x/src/lib.rs", false),
        file("x/src/core.rs", true),
        file("x/src/core/pure.rs", true),
        file("x/src/core/io.rs", false),
        file("x/src/net.rs", false),
        file("y/src/core.rs", false),
        file("window-agent/base/src/process.rs", false),
        file("window-agent/base/src/object.rs", true),
    ];
    let strangers = |text: &str| strangers(&Source::parse(Path::new("x/src/core.rs"), text), &files);
    for planted in [
        "use crate::net::Socket;",
        "use super::{core::pure, net};",
        "mod io; use io::read;",
        "mod io; fn f() { self::io::read() }",
        "mod io; fn f() { assert!(io::read()) }",
        "fn f() -> super::net::Socket { todo() }",
        "use baton_agent_base::process::Program;",
    ] {
        assert_eq!(strangers(planted).len(), 1, "{planted}");
    }
    assert_eq!(
        strangers(
            "mod pure; use pure::f; use baton_agent_base::object::Object; use std::fmt; #[cfg(test)] use crate::net;"
        ),
        [""; 0]
    );
}
