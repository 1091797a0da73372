//! Tables of measured figures, for the terminal and for `docs/performance.md`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use baton_tests::place;

/// What one part measured.
pub(crate) struct Section {
    /// Heading.
    pub(crate) title: &'static str,
    /// One sentence a line: how it was measured, what was asked for and whether it is met.
    pub(crate) notes: Vec<String>,
    /// Column names.
    pub(crate) columns: Vec<&'static str>,
    /// Rows.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Section {
    /// The section as Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        for note in &self.notes {
            text += &format!("{note}\n");
        }
        text += &format!("\n| {} |\n|{}\n", self.columns.join(" | "), "---|".repeat(self.columns.len()));
        for row in &self.rows {
            text += &format!("| {} |\n", row.join(" | "));
        }
        text
    }
}

/// A sentence that says whether a bound is kept.
pub(crate) fn verdict(what: &str, found: f64, bound: f64, unit: &str) -> String {
    let word = if found <= bound { "kept" } else { "MISSED" };
    format!("{what}: {found:.2} {unit}, asked for at most {bound} {unit}: {word}.")
}

/// Milliseconds with the digits that mean something.
pub(crate) fn ms(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }
}

/// A percentile of unsorted samples.
pub(crate) fn percentile(samples: &[Duration], percent: usize) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

/// Middle of some figures.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// For the person who waits.
#[expect(clippy::print_stdout, reason = "figures are what a bench is for")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

/// Replaces the part's section in the document, between its own markers.
pub(crate) fn write(name: &str, section: &Section) -> Result<()> {
    ensure!(!cfg!(debug_assertions), "these are the figures of a debug build");
    let path = place::root().join("docs/performance.md");
    let text = std::fs::read_to_string(&path).context("the document cannot be read")?;
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let (before, rest) = text.split_once(&begin).with_context(|| format!("no marker {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no marker {end}"))?;
    let command = format!("`cargo xtask bench {name}`");
    let body = section.to_markdown().replacen("\n\n", &format!("\n\n{command}\n\n"), 1);
    std::fs::write(&path, format!("{before}{begin}\n{body}{end}{after}"))
        .context("the document cannot be written")
}
