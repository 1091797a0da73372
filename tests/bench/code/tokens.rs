//! What answers cost a model, and hundreds of references.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Client, Used, n_tokens, open, p95, projects, spot, straight, world};
use crate::adapters::{ms, since};
use crate::lsp::places;
use crate::report::{Section, median, say, verdict};

/// Files that are measured.
const N_FILES: usize = 100;
/// Shorter ones are not.
const MIN_LINES: usize = 200;
/// Classes of files by the tokens of the whole file: the lower ends.
const CLASSES: [usize; 5] = [0, 2_000, 5_000, 10_000, 20_000];
/// From here on more is asked for.
const LARGE: usize = 5_000;
/// What is asked for, in percent.
const FEWER: f64 = 85.0;
/// The same for large files.
const FEWER_LARGE: f64 = 90.0;

/// Tokens of one file.
struct File {
    whole: usize,
    /// Outline and one function, as text.
    text: usize,
    /// The same as structure.
    structure: usize,
}

impl File {
    fn fewer(&self, shown: usize) -> f64 {
        100.0 - 100.0 * shown as f64 / self.whole as f64
    }
}

pub(crate) fn outlines() -> Result<Section> {
    let mut world = world();
    let project = projects::library(&world)?;
    open(&mut world, "library", &project.folder);
    let client = Client::of_window(&world, "library")?;
    let mut files = Vec::new();
    for path in projects::files(&project.folder, "py")? {
        let text = std::fs::read_to_string(&path)?;
        if text.lines().count() < MIN_LINES || files.len() >= N_FILES {
            continue;
        }
        files.extend(measure(&client, &path, &text)?);
    }
    ensure!(files.len() == N_FILES, "only {} files of {MIN_LINES} lines with a function", files.len());
    Ok(outlines_section(&files))
}

/// `None` when the file has no function.
fn measure(client: &Client, path: &Path, text: &str) -> Result<Option<File>> {
    let outline = client.outline(&path.to_string_lossy())?;
    let mut names = Vec::new();
    functions(&outline.structure()["data"], "", &mut names);
    let Some((name, line)) = names.get(names.len() / 2) else { return Ok(None) };
    let arguments = json!({ "file_path": path, "symbol_name": name, "line": line });
    let symbol = client.call("lcp_read_symbol", &arguments)?;
    Ok(Some(File {
        whole: n_tokens(text),
        text: n_tokens(outline.text()) + n_tokens(symbol.text()),
        structure: n_tokens(&outline.structure().to_string()) + n_tokens(&symbol.structure().to_string()),
    }))
}

/// Functions and methods with their first lines.
fn functions(symbols: &Value, holder: &str, all: &mut Vec<(String, u64)>) {
    for symbol in symbols.as_array().into_iter().flatten() {
        let name = format!("{holder}{}", symbol["name"].as_str().unwrap_or_default());
        if matches!(symbol["kind"].as_str(), Some("function" | "method")) {
            all.push((name.clone(), symbol["range"]["start"]["line"].as_u64().unwrap_or_default()));
        }
        functions(&symbol["children"], &format!("{name}."), all);
    }
}

fn outlines_section(files: &[File]) -> Section {
    let middle = |files: &[&File], of: fn(&File) -> f64| {
        median(&files.iter().map(|file| of(file)).collect::<Vec<_>>())
    };
    let row = |name: &str, files: &[&File]| {
        vec![
            name.to_owned(),
            files.len().to_string(),
            format!("{:.0}", middle(files, |file| file.whole as f64)),
            format!("{:.0}", middle(files, |file| file.text as f64)),
            format!("{:.1} %", middle(files, |file| file.fewer(file.text))),
            format!("{:.1} %", middle(files, |file| file.fewer(file.structure))),
        ]
    };
    let mut rows = Vec::new();
    for (at, from) in CLASSES.iter().enumerate() {
        let to = CLASSES.get(at + 1).copied().unwrap_or(usize::MAX);
        let of_class: Vec<&File> = files.iter().filter(|file| (*from..to).contains(&file.whole)).collect();
        if of_class.is_empty() {
            continue;
        }
        let name = if to == usize::MAX { format!("{from} and more") } else { format!("{from} to {to}") };
        rows.push(row(&name, &of_class));
    }
    let all: Vec<&File> = files.iter().collect();
    rows.push(row("**all**", &all));
    let large: Vec<&File> = files.iter().filter(|file| file.whole >= LARGE).collect();
    let fewer = |files: &[&File], aim: f64| {
        let found = middle(files, |file| file.fewer(file.text));
        let word = if found >= aim { "kept" } else { "MISSED" };
        format!("{found:.1} % fewer, asked for at least {aim} %: {word}.")
    };
    Section {
        title: "Reading code: tokens of an outline and one function",
        notes: vec![
            format!(
                "The first {N_FILES} files of CPython's library with {MIN_LINES} lines or more; the middle function of each is read. Counted with cl100k on the text that a model is shown; medians."
            ),
            format!("All files: {}", fewer(&all, FEWER)),
            format!("Files of {LARGE} tokens and more: {}", fewer(&large, FEWER_LARGE)),
        ],
        columns: vec![
            "tokens of the file",
            "files",
            "whole file",
            "outline and function",
            "fewer",
            "fewer, when the structure is shown",
        ],
        rows,
    }
}

/// References to the symbol of [`write_events`].
pub(super) const N_REFERENCES: usize = 275;
/// The symbol.
pub(super) const EVENTS: Used =
    Used { file: "pkg/core.py", start: "def dispatch_event(", name: "dispatch_event" };
/// Rounds that count.
const N_ROUNDS: usize = 40;
/// What they may cost.
const MAX_TOKENS: f64 = 1_500.0;
/// What Baton may take more than the server.
const MORE_MS: f64 = 30.0;

pub(crate) fn references() -> Result<Section> {
    let mut world = world();
    let folder = world.folder("events");
    write_events(&folder)?;
    open(&mut world, "events", &folder);
    let client = Client::of_window(&world, "events")?;
    let mut server = straight(&world, "ty", &folder)?;
    let spot = spot(&folder, &EVENTS)?;
    server.open(&spot.file)?;
    say(&format!("{N_REFERENCES} references"));
    let (mut theirs, mut ours, mut more) = (Vec::new(), Vec::new(), Vec::new());
    let (mut text, mut structure) = (0, 0);
    for round in 0..=N_ROUNDS {
        let begun = Instant::now();
        let found = server.references(&spot)?;
        let straight = since(begun);
        let told = client.references(&EVENTS)?;
        ensure!(places(&found).len() == N_REFERENCES, "the server tells {}", found.len());
        ensure!(told.structure()["total"] == N_REFERENCES, "{}", told.text());
        (text, structure) = (n_tokens(told.text()), n_tokens(&told.structure().to_string()));
        if round > 0 {
            theirs.push(straight);
            ours.push(told.ms);
            more.push(told.ms - straight);
        }
    }
    let row = |name: &str, samples: &[f64]| vec![name.to_owned(), ms(median(samples)), ms(p95(samples))];
    Ok(Section {
        title: "Reading code: 275 references",
        notes: vec![
            format!("A function that is used in 39 files of Python; {N_ROUNDS} rounds in turns."),
            verdict("Tokens of the text", text as f64, MAX_TOKENS, "tokens"),
            verdict("More than the server itself", median(&more), MORE_MS, "ms"),
            format!("The structure beside the text has {structure} tokens."),
        ],
        columns: vec!["who", "p50 ms", "p95 ms"],
        rows: vec![row("ty itself", &theirs), row("**Baton**", &ours), row("what it takes more", &more)],
    })
}

/// A package with [`N_REFERENCES`] uses of one function, its definition among them.
pub(super) fn write_events(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder.join("pkg"))?;
    std::fs::write(folder.join("pkg/__init__.py"), "")?;
    let core = "def dispatch_event(event):\n    return event\n\n\ndispatch_event(None)\n";
    std::fs::write(folder.join("pkg/core.py"), core)?;
    for file in 0..39 {
        let mut text = "from pkg.core import dispatch_event\n\n".to_owned();
        for handler in 0..6 {
            write!(text, "\ndef handle_{handler}(event):\n    dispatch_event(event)\n")?;
        }
        std::fs::write(folder.join(format!("pkg/part_{file}.py")), text)?;
    }
    Ok(())
}
