//! What a run gave: figures for the terminal and for `docs/reliability.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use baton_tests::place;

use crate::history::{Record, Told};
use crate::nemesis::Step;

/// Where the figures stand in the document.
const MARKERS: (&str, &str) = ("<!-- chaos:begin -->", "<!-- chaos:end -->");

/// One fault in a run.
#[derive(Clone, Debug, Default)]
struct Struck {
    alone: u32,
    paired: u32,
    worst: Duration,
}

/// Figures of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    command: String,
    pub(crate) took: Duration,
    n_worlds: u32,
    faults: BTreeMap<&'static str, Struck>,
    told: BTreeMap<Told, u64>,
    n_steps: u32,
    n_terms: usize,
    worst_wait: Duration,
    worst_convergence: Duration,
    /// Rule and how often.
    pub(crate) violations: BTreeMap<&'static str, u32>,
}

impl Summary {
    pub(crate) fn new(command: String) -> Self {
        Self { command, ..Self::default() }
    }

    /// A step that converged after so long.
    pub(crate) fn step(&mut self, step: &Step, convergence: Duration) {
        self.n_steps += 1;
        self.worst_convergence = self.worst_convergence.max(convergence);
        let is_pair = step.faults.iter().flatten().count() > 1;
        for fault in step.faults.iter().flatten() {
            let struck = self.faults.entry(fault.name).or_default();
            if is_pair {
                struck.paired += 1;
            } else {
                struck.alone += 1;
                struck.worst = struck.worst.max(convergence);
            }
        }
    }

    /// The calls of a world that ended.
    pub(crate) fn take_in(&mut self, record: &Record) {
        for call in &record.calls {
            *self.told.entry(call.told).or_default() += 1;
            self.worst_wait = self.worst_wait.max(call.answered.saturating_sub(call.sent));
        }
        let terms: std::collections::BTreeSet<_> = record.calls.iter().filter_map(|call| call.term).collect();
        self.n_terms += terms.len();
        self.n_worlds += 1;
    }

    pub(crate) fn n_violations(&self) -> u32 {
        self.violations.values().sum()
    }

    /// As Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let n_calls: u64 = self.told.values().sum();
        let mut text = format!("`{}`\n\n", self.command);
        let _ = writeln!(
            text,
            "{:.0} minutes, {} worlds of {} windows and {} clients; {} steps with {} faults; {n_calls} calls under {} terms.",
            self.took.as_secs_f64() / 60.0,
            self.n_worlds,
            crate::world::WINDOWS.len(),
            crate::clients::CLIENTS.len(),
            self.n_steps,
            self.faults.len(),
            self.n_terms,
        );
        let _ = writeln!(
            text,
            "Worst wait of a call {:.1} s; worst time from the end of a fault until all is well {:.1} s.",
            self.worst_wait.as_secs_f64(),
            self.worst_convergence.as_secs_f64(),
        );
        match self.n_violations() {
            0 => text += "Violations: none.\n",
            n => {
                let rules = self.violations.iter().map(|(rule, n)| format!("{rule} ({n})"));
                let _ = writeln!(text, "Violations: {n}: {}.", rules.collect::<Vec<_>>().join(", "));
            }
        }
        text += "\n| what clients were told | calls |\n|---|---|\n";
        for (told, n) in &self.told {
            let _ = writeln!(text, "| {} | {n} |", told.word());
        }
        text += "\n| fault | alone | in pairs | all is well after, at worst |\n|---|---|---|---|\n";
        for (name, struck) in &self.faults {
            let worst =
                if struck.alone > 0 { format!("{:.1} s", struck.worst.as_secs_f64()) } else { "-".into() };
            let _ = writeln!(text, "| {name} | {} | {} | {worst} |", struck.alone, struck.paired);
        }
        text
    }

    /// Writes the figures into the document, between their markers.
    pub(crate) fn write(&self) -> Result<()> {
        let path = place::root().join("docs/reliability.md");
        let text = std::fs::read_to_string(&path).context("the document cannot be read")?;
        let (before, rest) = text.split_once(MARKERS.0).context("the document has no chaos:begin")?;
        let (_, after) = rest.split_once(MARKERS.1).context("the document has no chaos:end")?;
        let whole = format!("{before}{}\n{}{}{after}", MARKERS.0, self.to_markdown(), MARKERS.1);
        std::fs::write(&path, whole).context("the document cannot be written")
    }
}
