//! The house rules: headers, lengths, pure cores, and a wire contract that moves with its types.

use std::path::{Path, PathBuf};

use baton_tests::place::root;
use sha2::{Digest, Sha256};

/// Past this many lines a file needs a split.
const MAX_LINES: usize = 800;

/// Files that take `now` and an input and return outputs.
const CORES: [&str; 17] = [
    "coordinator/src/election.rs",
    "coordinator/src/mcp/envelope.rs",
    "coordinator/src/mcp/route.rs",
    "coordinator/src/mcp/session.rs",
    "window-agent/src/framing.rs",
    "window-agent/src/paths.rs",
    "window-agent/src/debug/session.rs",
    "window-agent/src/debug/breakpoints.rs",
    "window-agent/src/code/text.rs",
    "window-agent/src/code/symbols.rs",
    "window-agent/src/code/search.rs",
    "window-agent/src/code/edits.rs",
    "window-agent/src/code/plan.rs",
    "window-agent/src/code/server/life.rs",
    "window-agent/src/code/server/documents.rs",
    "window-agent/src/tools/code/render.rs",
    "window-agent/src/tools/code/truncate.rs",
];

/// What no core does: read a clock, open, connect, spawn, wait.
const IMPURE: [&str; 9] = [
    "Instant::now",
    "SystemTime",
    "std::fs",
    "std::net",
    "tokio::fs",
    "tokio::net",
    "tokio::spawn",
    "std::process",
    ".await",
];

/// Folders with sources of ours.
const SOURCES: [&str; 6] = ["proto", "link", "coordinator", "window-agent", "tests", "xtask"];

fn rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in SOURCES {
        collect(&root().join(folder), "rs", &mut files);
    }
    assert!(files.len() > 20, "the sources were not found");
    files
}

fn collect(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .expect("a source folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') && name != "node_modules" {
            collect(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_file_opens_with_a_sentence() {
    let bad: Vec<String> = rust_files()
        .iter()
        .filter(|path| !read(path).starts_with("//! ") || read(path).starts_with("//! (skeleton)"))
        .map(|path| shown(path))
        .collect();
    assert!(bad.is_empty(), "no `//!` sentence at the top of {bad:#?}");
}

#[test]
fn no_file_is_too_long() {
    let bad: Vec<String> = rust_files()
        .iter()
        .filter_map(|path| {
            let n_lines = read(path).lines().count();
            (n_lines > MAX_LINES).then(|| format!("{}: {n_lines} lines", shown(path)))
        })
        .collect();
    assert!(bad.is_empty(), "over {MAX_LINES} lines: {bad:#?}");
}

#[test]
fn modules_are_files_beside_their_folder() {
    let bad: Vec<String> =
        rust_files().iter().filter(|path| path.ends_with("mod.rs")).map(|path| shown(path)).collect();
    assert!(bad.is_empty(), "`foo.rs` plus `foo/`, not {bad:#?}");
}

#[test]
fn cores_have_no_io_and_no_clock() {
    let mut bad = Vec::new();
    for core in CORES {
        let path = root().join(core);
        assert!(path.is_file(), "{core} is listed as a core and is not there");
        // Tests of a core may do what they like.
        let text = read(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            for word in IMPURE.iter().filter(|word| !is_comment && holds(line, word)) {
                bad.push(format!("{core}:{}: {word}", number + 1));
            }
        }
    }
    assert!(bad.is_empty(), "cores are pure, but {bad:#?}");
}

/// True when the line holds the word as a word: `.awaiting` is not `.await`.
fn holds(line: &str, word: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    line.match_indices(word).any(|(at, _)| is_end(&line[at + word.len()..]))
}

#[test]
fn the_wire_contract_moves_with_its_types() {
    let mut files = Vec::new();
    collect(&root().join("proto/src"), "rs", &mut files);
    let mut hash = Sha256::new();
    for path in &files {
        hash.update(shown(path));
        hash.update(read(path));
    }
    let found: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let document = read(&root().join("docs/protocol.md"));
    assert!(
        document.contains(&format!("proto/src: {found}")),
        "proto/src changed: bring docs/protocol.md up to date and write `proto/src: {found}` at its end"
    );
}

#[test]
fn the_readme_names_commands_that_exist() {
    let readme = read(&root().join("README.md"));
    let tasks = read(&root().join("xtask/src/main.rs"));
    for task in ["demo", "test", "check", "bench"] {
        assert!(readme.contains(&format!("cargo xtask {task}")), "README does not name `cargo xtask {task}`");
        let variant = format!("{}{}", task[..1].to_uppercase(), &task[1..]);
        assert!(tasks.contains(&variant), "xtask has no {variant}");
    }
    assert!(read(&root().join(".ci/run")).trim_end().ends_with("cargo xtask test"), ".ci/run runs the tests");
}

#[test]
fn documents_link_to_files_that_exist() {
    let mut documents = vec![root().join("README.md")];
    collect(&root().join("docs"), "md", &mut documents);
    let mut bad = Vec::new();
    for document in documents {
        let text = read(&document);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let is_local = !file.is_empty() && !target.contains("://");
            if is_local && !document.parent().expect("a file lies in a folder").join(file).exists() {
                bad.push(format!("{}: {target}", shown(&document)));
            }
        }
    }
    assert!(bad.is_empty(), "dead links: {bad:#?}");
}
