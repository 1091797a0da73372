//! The table adapter x feature in docs/debugging.md, as the scenarios found it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::languages::workspace_root;

/// Columns, in order.
const FEATURES: [&str; 13] = [
    "condition",
    "hit count",
    "log point",
    "function",
    "stop on entry",
    "step over",
    "step in",
    "step out",
    "variables",
    "evaluate",
    "crash",
    "output",
    "exit code",
];
const BEGIN: &str = "<!-- features: written by `UPDATE_EXPECT=1 cargo xtask test adapters` -->\n";
const END: &str = "<!-- end of features -->\n";

/// What worked with an adapter.
#[derive(Debug, Default)]
pub(crate) struct Features(BTreeMap<&'static str, bool>);

impl Features {
    /// Notes that a feature works, or does not; what failed once stays failed.
    pub(crate) fn set(&mut self, feature: &'static str, works: bool) {
        assert!(FEATURES.contains(&feature), "{feature}");
        *self.0.entry(feature).or_insert(true) &= works;
    }

    fn row(&self, adapter: &str, language: &str) -> String {
        let mark = |feature| if self.0.get(feature) == Some(&true) { "yes" } else { "-" };
        let cells: Vec<&str> = FEATURES.into_iter().map(mark).collect();
        format!("| {adapter} | {language} | {} |\n", cells.join(" | "))
    }
}

/// Compares a row with the document, or with `UPDATE_EXPECT` writes it there.
pub(crate) fn check_row(adapter: &str, language: &str, features: &Features) {
    let row = features.row(adapter, language);
    let path = document();
    let begin = format!("| {adapter} | {language} |");
    let find =
        |text: &str| text.lines().find(|line| line.starts_with(&begin)).map(|line| format!("{line}\n"));
    if std::env::var_os("UPDATE_EXPECT").is_none() {
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, table) = text.split_once(BEGIN).expect("the document has a table");
        assert_eq!(find(table).as_ref(), Some(&row), "docs/debugging.md; UPDATE_EXPECT=1 writes it");
        return;
    }
    // Tests are threads of one process, or processes.
    let lock = std::fs::File::open(&path).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the document has a place for the table");
    let (old, after) = rest.split_once(END).expect("the table ends");
    let head = format!(
        "| adapter | language | {} |\n|{}\n",
        FEATURES.join(" | "),
        "---|".repeat(FEATURES.len() + 2)
    );
    let rows: String = crate::ROWS
        .iter()
        .filter_map(|(of_adapter, of_language)| {
            let begin = format!("| {of_adapter} | {of_language} |");
            if (*of_adapter, *of_language) == (adapter, language) {
                return Some(row.clone());
            }
            old.lines().find(|line| line.starts_with(&begin)).map(|line| format!("{line}\n"))
        })
        .collect();
    let text = format!("{before}{BEGIN}{head}{rows}{END}{after}");
    std::fs::write(&path, text).unwrap();
}

fn document() -> PathBuf {
    workspace_root().join("docs/debugging.md")
}
