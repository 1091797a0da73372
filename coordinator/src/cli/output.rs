//! The only place that writes to standard output and error.

use std::io::Write as _;

use baton_link::explain::Explanation;
use serde::Serialize;

/// A line of the answer. A reader that went away (`baton status | head -1`) is no fault.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout().lock(), "{}", text.as_ref());
}

/// Text as it is.
pub(crate) fn raw(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

/// JSON for scripts.
pub(crate) fn json(value: &impl Serialize) {
    line(serde_json::to_string_pretty(value).unwrap_or_default());
}

/// What happens meanwhile, for people.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text.as_ref());
}

/// What went wrong although the verb succeeded.
pub(crate) fn warning(text: impl AsRef<str>) {
    note(format!("warning: {}", text.as_ref()));
}

/// What to try or to do next.
pub(crate) fn hint(text: impl AsRef<str>) {
    note(format!("hint: {}", text.as_ref()));
}

/// Why a verb failed, and what to try.
pub(crate) fn error(why: &Explanation) {
    note(format!("error: {}", why.message));
    if let Some(text) = &why.hint {
        hint(text);
    }
}

/// Columns as wide as their widest cell.
pub(crate) fn table(rows: &[Vec<String>]) {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n_columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        line(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
