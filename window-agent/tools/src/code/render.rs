//! CORE: what the engine found, as the structures of the document and as short texts beside them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::truncate::truncate;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::{Object, object};
use baton_agent_base::view::View;
use baton_agent_code::choose::lines_with_comments;
use baton_agent_code::edits::mark;
use baton_agent_code::lsp::Range;
use baton_agent_code::plan::{FileEdit, Plan};
use baton_agent_code::search;
use baton_agent_code::symbols::Symbol;
use baton_agent_code::types::{
    Chosen, Completions, Freshness, Offers, Outline, Problem, Problems, Reference, References, Source, Spots,
};

/// Documentation can be a manual.
const MAX_HOVER_TOKENS: usize = 1_500;

/// Of each of several.
const MAX_DOCUMENTATION_TOKENS: usize = 150;

/// Comparing two texts takes no longer; what it has by then is right, but not the shortest.
const DIFFERENCE_TIME: Duration = Duration::from_millis(100);

/// An answer: the structure, and a text that says the same in fewer tokens.
pub(super) struct Rendered {
    pub(super) object: Object,
    pub(super) text: String,
}

fn shown_freshness(freshness: &Freshness) -> String {
    match freshness {
        Freshness::Settled => "settled".to_owned(),
        Freshness::Indexing(what) => format!("indexing: {what}"),
        Freshness::Incomplete(why) => format!("incomplete: {why}"),
        Freshness::Stale => "stale".to_owned(),
    }
}

/// Who says so, and a sentence when it is not a server.
fn shown_source(source: &Source) -> (String, Option<String>) {
    match source {
        Source::Server(name) => (name.to_string(), None),
        Source::TextSearch(why) => ("text_search".to_owned(), Some(format!("This is a text search: {why}."))),
    }
}

/// The end of a text's first line: `(ty)`, and what keeps the answer from being final.
fn origin(source: &Source, freshness: &Freshness) -> String {
    let (name, _) = shown_source(source);
    match freshness {
        Freshness::Settled => format!("({name})"),
        other => format!("({name}, {})", shown_freshness(other)),
    }
}

fn answer(data: Value, source: &Source, freshness: &Freshness, notes: Vec<String>) -> (Object, String) {
    let (name, why) = shown_source(source);
    let notes: Vec<String> = why.into_iter().chain(notes).collect();
    let note = notes.join(" ");
    let mut object = object(json!({"success": true, "data": data}));
    object.insert("freshness".to_owned(), shown_freshness(freshness).into());
    object.insert("source".to_owned(), name.into());
    if !note.is_empty() {
        object.insert("note".to_owned(), note.clone().into());
    }
    (object, note)
}

fn correction(is_corrected: bool, name: &str) -> Option<String> {
    is_corrected.then(|| format!("The name was corrected to {name}."))
}

fn with_note(text: &mut String, note: &str) {
    if !note.is_empty() {
        let _ = write!(text, "\n{note}");
    }
}

/// How deep an outline goes.
#[derive(Clone, Copy)]
struct Depth {
    levels: Option<usize>,
}

impl Depth {
    /// Whether what `symbol`, on that level from 1, holds is shown.
    fn opens(self, symbol: &Symbol, level: usize) -> bool {
        match self.levels {
            Some(levels) => level < levels,
            // The inside of functions is for those who read them.
            None => !symbol.is_code(),
        }
    }
}

/// The outline of a file. `as_lines`: the structure holds the text, too.
pub(super) fn outline(outline: &Outline, view: &View, levels: Option<usize>, as_lines: bool) -> Rendered {
    let depth = Depth { levels };
    let file = view.relative(&outline.subject.snapshot.path);
    let mut n_deeper = 0;
    let data: Vec<Value> =
        outline.symbols.iter().map(|symbol| structure(symbol, depth, 1, &mut n_deeper)).collect();
    let mut lines = String::new();
    list(&outline.symbols, depth, 1, &mut lines);
    let n_lines = outline.text().n_lines();
    let data = if as_lines { lines.trim_end().into() } else { Value::from(data) };
    let (mut object, note) = answer(data, &outline.source, &outline.freshness, Vec::new());
    object.insert("file".to_owned(), file.clone().into());
    object.insert("n_lines".to_owned(), n_lines.into());
    let hash = mark(outline.text().as_str());
    object.insert("hash".to_owned(), hash.into());
    if n_deeper > 0 {
        object.insert("n_deeper".to_owned(), n_deeper.into());
    }
    let origin = origin(&outline.source, &outline.freshness);
    let mut text = format!("{file}: {n_lines} lines {origin} #{hash}\n{}", lines.trim_end());
    if outline.symbols.is_empty() {
        text.push_str("no symbols");
    }
    if n_deeper > 0 {
        let _ = write!(text, "\n({n_deeper} symbols lie deeper; ask with depth)");
    }
    with_note(&mut text, &note);
    Rendered { object, text }
}

fn structure(symbol: &Symbol, depth: Depth, level: usize, n_deeper: &mut usize) -> Value {
    let mut entry = object(json!({"name": symbol.name, "kind": symbol.kind, "range": range(&symbol.range)}));
    if symbol.children.is_empty() {
        return Value::Object(entry);
    }
    if depth.opens(symbol, level) {
        let children: Vec<Value> =
            symbol.children.iter().map(|child| structure(child, depth, level + 1, n_deeper)).collect();
        entry.insert("children".to_owned(), children.into());
    } else {
        *n_deeper += baton_agent_code::symbols::flatten(&symbol.children).len();
    }
    Value::Object(entry)
}

/// Lines count from 1 as everywhere, `character` from 0 as in the document.
fn range(range: &Range) -> Value {
    json!({
        "start": {"line": range.start.line + 1, "character": range.start.character},
        "end": {"line": range.end.line + 1, "character": range.end.character},
    })
}

/// Each symbol on a line, its own lines first; short ones side by side.
fn list(symbols: &[Symbol], depth: Depth, level: usize, text: &mut String) {
    let indent = " ".repeat(level - 1);
    let mut is_in_row = false;
    for symbol in symbols {
        let (start, end) = (symbol.range.start.line + 1, symbol.range.end.line + 1);
        let opens = depth.opens(symbol, level) && !symbol.children.is_empty();
        let is_small = start == end
            && !opens
            && matches!(symbol.kind, "variable" | "constant" | "field" | "property" | "enum member");
        if is_small {
            text.push_str(if is_in_row { ", " } else { &indent });
            let _ = write!(text, "{start} {}", symbol.name);
            is_in_row = true;
            continue;
        }
        if std::mem::take(&mut is_in_row) {
            text.push('\n');
        }
        let kind = if symbol.kind == "method" { "" } else { symbol.kind };
        let space = if kind.is_empty() { "" } else { " " };
        let _ = if start == end {
            writeln!(text, "{indent}{start} {kind}{space}{}", symbol.name)
        } else {
            writeln!(text, "{indent}{start}-{end} {kind}{space}{}", symbol.name)
        };
        if opens {
            list(&symbol.children, depth, level + 1, text);
        }
    }
    if is_in_row {
        text.push('\n');
    }
}

/// Which lines of a symbol are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) start: Option<usize>,
    pub(super) end: Option<usize>,
    pub(super) max_tokens: usize,
}

/// The code of a symbol.
pub(super) fn symbol(
    outline: &Outline,
    chosen: &Chosen,
    view: &View,
    window: Window,
) -> Result<Rendered, Fault> {
    let (text, file) = (outline.text(), view.relative(&outline.subject.snapshot.path));
    let spans: Vec<(usize, usize)> =
        chosen.symbols.iter().map(|symbol| lines_with_comments(text, symbol)).collect();
    let first = spans.iter().map(|(first, _)| *first).min().unwrap_or_default();
    let last = spans.iter().map(|(_, last)| *last).max().unwrap_or_default();
    let is_part = window.start.is_some() || window.end.is_some();
    let mut notes = Vec::new();
    let (code, start, end) = if is_part {
        let (from, to) =
            (window.start.map_or(first, |line| line - 1), window.end.map_or(last, |line| line - 1));
        let extent = format!("{} is lines {} to {}", chosen.path, first + 1, last + 1);
        if from > to || from > last || to < first {
            let message = format!("Lines {} to {} are none of it: {extent}.", from + 1, to + 1);
            return Err(Fault::new(Kind::InvalidRange, message)
                .hint("Name lines of the file that the symbol has, or leave start_line and end_line out."));
        }
        if from < first || to > last {
            notes.push(format!("{extent}: no others are here."));
        }
        let (start, end) = (from.max(first), to.min(last));
        (text.lines(start, end).to_owned(), start, end)
    } else {
        let parts: Vec<&str> = spans.iter().map(|(first, last)| text.lines(*first, *last)).collect();
        (parts.join("\n\n"), first, last)
    };
    let truncated = truncate(&code, window.max_tokens);
    notes.extend(correction(chosen.is_corrected, &chosen.path));
    if spans.len() > 1 && !is_part {
        notes.push(format!("It is defined {} times; all of them are here.", spans.len()));
    }
    // Where several definitions are put together, lines of the text are not lines of the file.
    let skipped = truncated.skipped.map(|(first, last)| match spans.len() {
        1 => (start + first, start + last),
        _ => (start, end),
    });
    if let Some((first, last)) = skipped.filter(|_| spans.len() == 1) {
        notes.push(format!("Lines {} to {} not shown; pass start_line and end_line.", first + 1, last + 1));
    } else if skipped.is_some() {
        let places = spans.iter().map(|(first, last)| format!("{} to {}", first + 1, last + 1));
        notes.push(format!(
            "The middle is omitted; read lines {} one by one, with start_line and end_line.",
            places.collect::<Vec<_>>().join(", ")
        ));
    }
    let (mut object, note) =
        answer(truncated.text.clone().into(), &outline.source, &outline.freshness, notes);
    let kind = chosen.symbols.first().map(|symbol| symbol.kind).unwrap_or_default();
    let hash = mark(text.as_str());
    object.extend(self::object(json!({
        "file": file, "symbol": chosen.path, "kind": kind, "start_line": start + 1, "end_line": end + 1,
        "hash": hash,
    })));
    if let Some((first, last)) = skipped {
        object.insert("skipped".to_owned(), json!({"start_line": first + 1, "end_line": last + 1}));
    }
    let origin = origin(&outline.source, &outline.freshness);
    let lines = format!("{}-{}", start + 1, end + 1);
    let mut shown = format!("{file}:{lines} {kind} {} {origin} #{hash}\n{}", chosen.path, truncated.text);
    with_note(&mut shown, &note);
    Ok(Rendered { object, text: shown })
}

/// The uses of a symbol.
pub(super) fn references(found: &References, view: &View) -> Rendered {
    let mut data = Vec::new();
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    let mut more: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for reference in &found.all {
        let file = view.relative(&reference.file);
        let Some((snippet, header)) = &reference.text else {
            more.entry(file).or_default().push(reference.line);
            continue;
        };
        data.push(entry(reference, &file, snippet, header.as_deref()));
        let line = format!(" {}: {snippet}", reference.line);
        match told.last_mut() {
            // Several on one line.
            Some((known, lines)) if *known == file && lines.last() == Some(&line) => {}
            Some((known, lines)) if *known == file => lines.push(line),
            _ => told.push((file, vec![line])),
        }
    }
    let mut notes: Vec<String> = correction(found.is_corrected, &found.symbol).into_iter().collect();
    notes.extend(found.note.clone());
    match &found.freshness {
        Freshness::Settled => {}
        Freshness::Incomplete(_) => {
            notes.push("Some may be missing.".to_owned());
        }
        Freshness::Indexing(_) | Freshness::Stale => {
            notes.push("Some may be missing: the server is still reading the project.".to_owned());
        }
    }
    let (mut object, note) = answer(data.into(), &found.source, &found.freshness, notes);
    object.insert("symbol".to_owned(), found.symbol.clone().into());
    object.insert("total".to_owned(), found.all.len().into());
    let n_files: std::collections::BTreeSet<&Path> =
        found.all.iter().map(|reference| reference.file.as_path()).collect();
    let mut text = format!(
        "{} references to {} in {} files {}",
        found.all.len(),
        found.symbol,
        n_files.len(),
        origin(&found.source, &found.freshness)
    );
    for (file, lines) in told {
        let _ = write!(text, "\n{file}\n{}", lines.join("\n"));
    }
    if !more.is_empty() {
        text.push_str("\nfurther lines, without their code (limit tells more):");
        for (file, lines) in &more {
            let mut lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            lines.dedup();
            let _ = write!(text, "\n{file} {}", lines.join(","));
        }
        object.insert("more".to_owned(), json!(more));
    }
    with_note(&mut text, &note);
    Rendered { object, text }
}

fn entry(reference: &Reference, file: &str, snippet: &str, header: Option<&str>) -> Value {
    let context = match header {
        Some(header) => format!("{header} {snippet}"),
        None => snippet.to_owned(),
    };
    json!({"file": file, "line": reference.line, "code_snippet": snippet, "context": context})
}

/// What is wrong, from the worst severity that is wanted.
pub(super) fn problems(found: &Problems, view: &View, mildest: u8, limit: usize) -> Rendered {
    let severity = |problem: &Problem| problem.diagnostic.severity.unwrap_or(1);
    let wanted: Vec<_> = found.all.iter().filter(|problem| severity(problem) <= mildest).collect();
    let mut notes = found.notes.clone();
    let n_milder = found.all.len() - wanted.len();
    if n_milder > 0 {
        notes.push(format!("{n_milder} less severe hidden; lower `severity`."));
    }
    // The worst of them, where they stand.
    let mut told: Vec<usize> = (0..wanted.len()).collect();
    told.sort_by_key(|idx| severity(wanted[*idx]));
    if told.len() > limit {
        notes.push(format!("{} less severe not shown; raise `limit`.", told.len() - limit));
        told.truncate(limit);
    }
    told.sort_unstable();
    let (mut data, mut lines) = (Vec::new(), String::new());
    for problem in told.iter().map(|idx| wanted[*idx]) {
        let file = view.relative(&problem.file);
        let (line, severity) =
            (problem.diagnostic.range.start.line + 1, severity_name(problem.diagnostic.severity));
        let message = without_information(&problem.diagnostic.message);
        let mut entry = object(json!({"file": file, "line": line, "severity": severity, "message": message}));
        let code = match &problem.diagnostic.code {
            Some(Value::String(code)) => Some(code.clone()),
            Some(Value::Number(code)) => Some(code.to_string()),
            _ => None,
        };
        let _ = write!(lines, "\n{file}:{line} {severity}: {message}");
        if let Some(code) = code {
            let _ = write!(lines, " [{code}]");
            entry.insert("code".to_owned(), code.into());
        }
        data.push(Value::Object(entry));
    }
    let source = Source::Server(found.servers.join(", ").into());
    let (mut object, note) = answer(data.into(), &source, &found.freshness, notes);
    object.insert("total".to_owned(), wanted.len().into());
    let mut text = format!("{} problems {}{lines}", wanted.len(), origin(&source, &found.freshness));
    with_note(&mut text, &note);
    Rendered { object, text }
}

/// A message without what ty adds about its own way to it, in lines of their own.
fn without_information(message: &str) -> String {
    let lines = message.lines().filter(|line| !line.starts_with("info: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Places, from a symbol or a search.
pub(super) fn spots(found: &Spots, view: &View, limit: usize) -> Rendered {
    let (mut data, mut text) = (Vec::new(), String::new());
    for spot in found.all.iter().take(limit) {
        let file = view.relative(&spot.file);
        let mut entry = object(json!({"file": file, "line": spot.line}));
        let _ = write!(text, "\n{file}:{}", spot.line);
        for (name, value) in
            [("name", spot.name.as_deref()), ("kind", spot.kind), ("container", spot.container.as_deref())]
        {
            if let Some(value) = value {
                entry.insert(name.to_owned(), value.into());
            }
        }
        if let (Some(kind), Some(name)) = (spot.kind, &spot.name) {
            // Names from a search have their holders in them with some servers.
            let holder = spot.container.as_ref().filter(|_| !spot.calls.is_empty());
            let _ = match holder {
                Some(holder) => write!(text, " {kind} {holder}.{name}"),
                None => write!(text, " {kind} {name}"),
            };
        } else {
            let _ = write!(text, " {}", spot.text);
        }
        if !spot.text.is_empty() {
            entry.insert("code_snippet".to_owned(), spot.text.clone().into());
        }
        if !spot.calls.is_empty() {
            let lines: Vec<String> = spot.calls.iter().map(u32::to_string).collect();
            let _ = write!(text, " (calls in {})", lines.join(","));
            entry.insert("calls".to_owned(), json!(spot.calls));
        }
        data.push(Value::Object(entry));
    }
    let mut notes: Vec<String> = correction(found.is_corrected, &found.symbol).into_iter().collect();
    if found.all.len() > limit {
        notes.push(format!("{} more not shown; raise `limit`.", found.all.len() - limit));
    }
    let source = Source::Server(found.server.clone());
    let (mut object, note) = answer(data.into(), &source, &found.freshness, notes);
    object.insert("symbol".to_owned(), found.symbol.clone().into());
    object.insert("total".to_owned(), found.all.len().into());
    let mut text =
        format!("{}: {} {}{text}", found.symbol, found.all.len(), origin(&source, &found.freshness));
    with_note(&mut text, &note);
    Rendered { object, text }
}

/// What a server tells of a symbol.
pub(super) fn hover(told: &str, found: &Spots) -> Rendered {
    let source = Source::Server(found.server.clone());
    let told = truncate(told, MAX_HOVER_TOKENS).text;
    let notes = correction(found.is_corrected, &found.symbol).into_iter().collect();
    let (mut object, note) = answer(told.as_str().into(), &source, &found.freshness, notes);
    object.insert("symbol".to_owned(), found.symbol.clone().into());
    let mut text = format!("{} {}\n{told}", found.symbol, origin(&source, &found.freshness));
    with_note(&mut text, &note);
    Rendered { object, text }
}

/// What could stand at a place.
pub(super) fn completions(found: &Completions) -> Rendered {
    let (mut data, mut text) = (Vec::new(), String::new());
    for completion in &found.all {
        let mut entry = object(json!({"name": completion.name}));
        let _ = write!(text, "\n{}", completion.name);
        if let Some(kind) = completion.kind {
            let _ = write!(text, " ({kind})");
            entry.insert("kind".to_owned(), kind.into());
        }
        if let Some(detail) = &completion.detail {
            let _ = write!(text, " {detail}");
            entry.insert("detail".to_owned(), detail.as_str().into());
        }
        if let Some(documentation) = &completion.documentation {
            let told = truncate(documentation, MAX_DOCUMENTATION_TOKENS).text;
            let _ = write!(text, "\n  {}", told.trim().replace('\n', "\n  "));
            entry.insert("documentation".to_owned(), told.into());
        }
        data.push(Value::Object(entry));
    }
    let mut notes = Vec::new();
    if found.total > found.all.len() {
        notes.push(format!(
            "{} more not shown; type more of the word or raise `limit`.",
            found.total - found.all.len()
        ));
    }
    let source = Source::Server(found.server.clone());
    let (mut object, note) = answer(data.into(), &source, &found.freshness, notes);
    object.insert("total".to_owned(), found.total.into());
    let mut text = format!("{} completions {}{text}", found.total, origin(&source, &found.freshness));
    with_note(&mut text, &note);
    Rendered { object, text }
}

/// What is offered for some lines.
pub(super) fn actions(found: &Offers) -> Rendered {
    let (mut data, mut text) = (Vec::new(), String::new());
    for action in &found.all {
        let mut entry = object(json!({"title": action.title}));
        let _ = write!(text, "\n{}", action.title);
        if let Some(kind) = &action.kind {
            let _ = write!(text, " ({kind})");
            entry.insert("kind".to_owned(), kind.as_str().into());
        }
        if action.is_preferred {
            text.push_str(" preferred");
            entry.insert("preferred".to_owned(), true.into());
        }
        data.push(Value::Object(entry));
    }
    let source = Source::Server(found.server.clone());
    let (object, note) = answer(data.into(), &source, &found.freshness, Vec::new());
    let mut text = format!("{} actions {}{text}", found.all.len(), origin(&source, &found.freshness));
    with_note(&mut text, &note);
    Rendered { object, text }
}

/// Changed files, or those that would be; of these up to `n_shown` lines that go or come.
pub(super) fn changes(plan: &Plan, view: &View, n_shown: usize, more: Value) -> Rendered {
    let (mut data, mut text, mut n_left) = (Vec::new(), String::new(), n_shown);
    for edit in &plan.edits {
        let file = view.relative(&edit.path);
        let mut entry = object(json!({"file": file}));
        text.push('\n');
        match (&edit.from, &edit.to) {
            (None, _) => {
                let n_lines = edit.new.lines().count();
                let _ = write!(text, "{file} created, {n_lines} lines");
                entry.extend(object(json!({"change": "created", "n_lines": n_lines})));
            }
            (_, None) => {
                let _ = write!(text, "{file} deleted");
                entry.insert("change".to_owned(), "deleted".into());
            }
            (Some(from), _) if *from != edit.path => {
                let from = view.relative(from);
                let _ = write!(text, "{from} -> {file}");
                entry.extend(object(json!({"change": "renamed", "from": from})));
            }
            _ => text.push_str(&file),
        }
        if edit.from.is_some() && !edit.lines.is_empty() {
            let lines: Vec<String> = edit.lines.iter().map(u32::to_string).collect();
            let _ = write!(text, " {}", lines.join(","));
            entry.insert("lines".to_owned(), json!(edit.lines));
        }
        if n_left > 0 && edit.to.is_some() {
            let difference = difference(edit.old.as_str(), &edit.new, &mut n_left);
            if !difference.is_empty() {
                let _ = write!(text, "\n{difference}");
                entry.insert("difference".to_owned(), difference.into());
            }
        }
        data.push(Value::Object(entry));
    }
    for folder in &plan.folders {
        let (from, to) = (view.relative(&folder.from), view.relative(&folder.to));
        let inside = folder.files.iter().filter_map(|file| file.strip_prefix(&folder.from).ok());
        let inside: Vec<String> = inside.map(|file| file.display().to_string()).collect();
        let _ = write!(text, "\n{from}/ -> {to}/ with {}", inside.join(", "));
        data.push(json!({"file": to, "change": "renamed", "from": from, "files": inside}));
    }
    let mut object = object(json!({"success": true, "data": data}));
    object.extend(self::object(more));
    let note = object.get("note").and_then(Value::as_str).unwrap_or_default();
    Rendered { text: format!("{note}{text}"), object }
}

/// The lines that go and those that come, with their numbers, as many as are left to be shown.
fn difference(old: &str, new: &str, n_left: &mut usize) -> String {
    const MAX_SHOWN: usize = 160;
    let compared = TextDiff::configure().timeout(DIFFERENCE_TIME).diff_lines(old, new);
    let changed = compared.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
    let mut shown = Vec::new();
    for change in changed {
        if *n_left == 0 {
            shown.push("...".to_owned());
            break;
        }
        *n_left -= 1;
        let (number, sign) = match change.tag() {
            ChangeTag::Delete => (change.old_index(), '-'),
            _ => (change.new_index(), '+'),
        };
        let line: String = change.value().trim_end().chars().take(MAX_SHOWN).collect();
        shown.push(format!("{}{sign} {line}", number.unwrap_or_default() + 1));
    }
    shown.join("\n")
}

/// That a new name stands already in files that it comes to: whether it means something else there, a server does not
/// always look.
pub(super) fn taken(plan: &Plan, new_name: &str, view: &View) -> Option<String> {
    const MAX_SHOWN: usize = 5;
    let has_it = |edit: &&FileEdit| {
        !edit.replacements.is_empty() && search::words(edit.old.as_str(), new_name).next().is_some()
    };
    let shown = |edit: &FileEdit| {
        let lines = search::lines_with(&edit.old, new_name);
        format!("{}:{}", view.relative(&edit.path), lines.first().copied().unwrap_or_default())
    };
    let all: Vec<String> = plan.edits.iter().filter(has_it).take(MAX_SHOWN).map(shown).collect();
    let places = all.join(", ");
    (!all.is_empty())
        .then(|| format!("{new_name} stands there already ({places}): see that nothing else is meant by it."))
}

fn severity_name(severity: Option<u8>) -> &'static str {
    match severity {
        Some(2) => "warning",
        Some(3) => "information",
        Some(4) => "hint",
        _ => "error",
    }
}

/// The number of a severity's name.
pub(super) fn severity(name: &str) -> u8 {
    match name {
        "error" => 1,
        "warning" => 2,
        "information" => 3,
        _ => 4,
    }
}
