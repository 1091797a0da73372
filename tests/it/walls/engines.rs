//! Engines know no tool: what a client may call is the faces' business, each of which has its own names.

use std::path::Path;

use serde_json::Value;

use baton_tests::place::root;

use super::source::Source;
use crate::tidy::{read, rust_files, shown};

/// What stands below the faces.
const BELOW: [&str; 3] = ["window-agent/base/src/", "window-agent/code/src/", "window-agent/debug/src/"];

/// Names that are no word of their own: a tool is meant wherever they stand.
fn names() -> Vec<String> {
    // As the edge offers them; a test of the agent keeps that list current.
    let all = read(&root().join("coordinator/edge/src/catalogue.json"));
    let all: Vec<Value> = serde_json::from_str(&all).expect("it is JSON");
    let all = all.iter().filter_map(|entry| entry["tool"]["name"].as_str().map(str::to_owned));
    let names: Vec<String> = all.filter(|name| name.contains('_')).collect();
    assert!(names.len() > 20, "the tools were not found");
    names
}

/// Where a text of the product names a tool.
fn named(source: &Source, names: &[String]) -> Vec<String> {
    let texts = source.texts().into_iter();
    let of = |text: &str| {
        let words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
        words.into_iter().find(|word| names.iter().any(|name| name == word)).map(str::to_owned)
    };
    let found = texts.filter_map(|(line, text)| Some((line, of(&text)?)));
    found.map(|(line, name)| format!("{}:{line}: {name}", source.path.display())).collect()
}

#[test]
fn no_engine_names_a_tool() {
    let names = names();
    let files = rust_files().into_iter().map(|path| (shown(&path), path));
    let below = files.filter(|(shown, _)| BELOW.iter().any(|folder| shown.starts_with(folder)));
    let sources = below.filter(|(shown, _)| !shown.ends_with("/tests.rs"));
    let found: Vec<String> = sources
        .flat_map(|(shown, path)| named(&Source::parse(Path::new(&shown), &read(&path)), &names))
        .collect();
    assert!(found.is_empty(), "what to call is said in `window-agent/tools`: {found:#?}");
}

#[test]
fn a_planted_name_is_found() {
    let names = names();
    let of = |text: &str| named(&Source::parse(Path::new("x/src/lib.rs"), text), &names).len();
    assert_eq!(of("fn f() -> String { format!(\"Call start_debugging for {}.\", 1) }"), 1);
    assert_eq!(of("const HINT: &str = \"lcp_get_outline has it\";"), 1);
    assert_eq!(
        of(
            "fn f() { println!(\"restart debugging\") } #[cfg(test)] mod t { const T: &str = \"start_debugging\"; }"
        ),
        0
    );
}
