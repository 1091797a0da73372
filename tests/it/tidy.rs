//! The house rules: headers, lengths, documents that are true, and a wire contract that moves with its types.

use std::path::{Path, PathBuf};

use baton_tests::place::root;
use sha2::{Digest, Sha256};

/// Past this many lines a file needs a split.
const MAX_LINES: usize = 800;

/// Folders with sources of ours.
const SOURCES: [&str; 6] = ["proto", "link", "coordinator", "window-agent", "tests", "xtask"];

pub(crate) fn rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in SOURCES {
        collect(&root().join(folder), "rs", &mut files);
    }
    assert!(files.len() > 20, "the sources were not found");
    files
}

/// What the crates say of themselves.
pub(crate) fn manifests() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in SOURCES {
        collect(&root().join(folder), "toml", &mut files);
    }
    files.retain(|path| path.ends_with("Cargo.toml"));
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

pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

pub(crate) fn read(path: &Path) -> String {
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

/// The faults and threats that Baton was made against; `docs/reliability.md` and `docs/security.md` have a row each.
const ROWS: [(&str, char, &[u8]); 2] = [
    (
        "docs/reliability.md",
        'F',
        &[1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 19, 20, 21, 22, 24, 25, 27, 29, 30, 33, 34],
    ),
    ("docs/security.md", 'T', &[1, 2, 3, 5, 8, 9, 11, 13, 14, 15, 16, 17, 18, 19, 20, 23, 24, 25]),
];

/// Folders with tests that the rows may name.
const TESTS: [&str; 5] = [
    "tests/it",
    "coordinator/tests",
    "coordinator/daemon/tests",
    "coordinator/election/src/election/tests",
    "window-agent",
];

#[test]
fn every_fault_and_threat_has_a_row_with_tests_that_exist() {
    let mut files = Vec::new();
    TESTS.iter().for_each(|folder| collect(&root().join(folder), "rs", &mut files));
    let sources: Vec<(String, String)> = files.iter().map(|path| (shown(path), read(path))).collect();
    let mut bad = Vec::new();
    for (document, letter, numbers) in ROWS {
        let text = read(&root().join(document));
        for number in numbers {
            let start = format!("| {letter}{number} |");
            let mut rows = text.lines().filter(|line| line.starts_with(&start));
            let (Some(row), None) = (rows.next(), rows.next()) else {
                bad.push(format!("{document}: {letter}{number} has not exactly one row"));
                continue;
            };
            let tests = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
            let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
            let is_told = row.contains("**not survived**") || row.contains("**not shown**");
            if named.is_empty() && !is_told {
                bad.push(format!("{document}: {letter}{number} names no test, and does not say why"));
            }
            let missing = named.iter().filter(|name| !exists(name, &sources));
            bad.extend(missing.map(|name| format!("{document}: {letter}{number}: there is no test {name}")));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// A test of Rust by module and name, or one in real windows by file and the beginning of its title.
fn exists(test: &str, sources: &[(String, String)]) -> bool {
    if let Some((file, title)) = test.split_once(": ") {
        let path = root().join("tests/vscode").join(file);
        return path.is_file() && read(&path).contains(&format!("test('{title}"));
    }
    let mut parts: Vec<&str> = test.split("::").collect();
    let function = format!("fn {}(", parts.pop().unwrap_or_default());
    let is_place = |path: &str| parts.iter().all(|part| path.split(['/', '.']).any(|found| found == *part));
    sources.iter().any(|(path, text)| is_place(path) && text.contains(&function))
}
