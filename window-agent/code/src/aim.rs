//! From a name to the place in a file that stands for the symbol: its definition there, or a use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use super::choose::not_found;
use super::lsp::{self, Position};
use super::outline::ask_symbols;
use super::references::{Wanted, name_position};
use super::server::{Ask, Server, ServerError};
use super::symbols::{self, Match, Symbol};
use super::text::{Encoding, is_word};
use super::types::{Freshness, Outline, Subject};
use super::{CodeIndex, freshness_of, search, server_error, wait_settled};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::trees::Trees;
use baton_agent_base::workspace::Workspace;

/// Places in the context file whose definitions tell what a name means there.
const MAX_PLACES: usize = 20;
/// Places that are asked about: of those in comments servers tell nothing.
const MAX_ASKED: usize = 400;
/// Further definitions of one name in one file, as of an overloaded method.
const MAX_OVERLOADS: usize = 30;

/// A place that stands for a symbol.
pub(super) struct Target {
    /// In code points.
    pub(super) position: Position,
    /// Its full name, as far as it is known.
    pub(super) name: String,
    /// Whether the name was not quite right.
    pub(super) is_corrected: bool,
    /// Whether it is no definition.
    pub(super) is_use: bool,
    /// Other definitions of the name in the same file.
    pub(super) overloads: Vec<Position>,
}

/// What a use of a name refers to.
struct Meaning {
    /// The file of the definition; an address when it is none.
    file: PathBuf,
    /// Its line, from 0.
    line: u32,
    /// The first use.
    place: Position,
    /// The full name, when it was looked up.
    name: Option<String>,
}

impl CodeIndex {
    /// The server of the context file, and the place there that stands for the symbol.
    pub(super) async fn aim(
        &self,
        workspace: &Workspace,
        wanted: &Wanted,
        deadline: Instant,
    ) -> Result<(Server, Outline, Target), Fault> {
        let subject = self.open(workspace, &wanted.context_file, deadline).await?;
        let server = self
            .server_for(&subject)
            .map_err(|why| Fault::new(Kind::NoServer, format!("This needs a language server: {why}.")))?;
        self.sync(workspace, Some(deadline)).await;
        let outline = self.outline_of(workspace, subject, deadline).await?;
        let target = target(workspace, &server, &outline, wanted, deadline).await?;
        Ok((server, outline, target))
    }
}

/// A definition with exactly that name goes before its uses, and those before definitions whose names are like it; but
/// a line that was named comes first.
async fn target(
    workspace: &Workspace,
    server: &Server,
    outline: &Outline,
    wanted: &Wanted,
    deadline: Instant,
) -> Result<Target, Fault> {
    let is_defined = match (symbols::find(&outline.symbols, &wanted.symbol), wanted.line) {
        (Match::One(_, false) | Match::Several(_, false), None) => true,
        (Match::One(found, false) | Match::Several(found, false), Some(line)) => {
            found.iter().any(|found| found.symbol.name_range.start.line + 1 == line)
        }
        _ => false,
    };
    if !is_defined && let Some(target) = target_of_use(workspace, server, outline, wanted, deadline).await? {
        return Ok(target);
    }
    let chosen = outline.choose(&wanted.symbol, wanted.line)?;
    let mut places = chosen.symbols.iter().map(|symbol| name_position(outline.text(), symbol));
    let Some(position) = places.next() else {
        return Err(not_found(&wanted.symbol, &[]));
    };
    let overloads = places.take(MAX_OVERLOADS).collect();
    Ok(Target { position, name: chosen.path, is_corrected: chosen.is_corrected, is_use: false, overloads })
}

/// The name is used in the context file: `textDocument/definition` tells what it is.
async fn target_of_use(
    workspace: &Workspace,
    server: &Server,
    outline: &Outline,
    wanted: &Wanted,
    deadline: Instant,
) -> Result<Option<Target>, Fault> {
    let last = symbols::last_name(&wanted.symbol);
    let holder = symbols::holder(&wanted.symbol);
    let mut meanings = loop {
        let meanings = meanings(server, outline, last, wanted.line, deadline).await?;
        let may_change = matches!(freshness_of(server), Freshness::Indexing(_));
        if !meanings.is_empty() || !may_change || !wait_settled(server, deadline).await {
            break meanings;
        }
    };
    if meanings.len() > 1 || holder.is_some() {
        name_all(server, &outline.subject, &mut meanings, last, deadline).await;
    }
    meanings.sort_by_key(|meaning| meaning.place);
    let is_held = |meaning: &Meaning| {
        let Some(holder) = &holder else { return true };
        let is_named = |name: &String| symbols::is_named(name, &wanted.symbol);
        meaning.name.as_ref().is_some_and(is_named) || stands_after(outline, meaning.place, holder)
    };
    let is_corrected = !meanings.iter().any(is_held);
    if !is_corrected {
        meanings.retain(is_held);
    }
    // A bare name means what nothing holds, as it does among the definitions of a file.
    let is_bare = |meaning: &Meaning| holder.is_none() && meaning.name.as_deref() == Some(last);
    if wanted.line.is_none() && meanings.iter().filter(|meaning| is_bare(meaning)).count() == 1 {
        meanings.retain(is_bare);
    }
    let [meaning] = meanings.as_slice() else {
        let Some(first) = meanings.first().filter(|_| wanted.line.is_some()) else {
            return if meanings.is_empty() { Ok(None) } else { Err(several(workspace, last, &meanings)) };
        };
        return Ok(Some(Target::of_use(first, last, is_corrected)));
    };
    let own = (meaning.file == outline.subject.snapshot.path)
        .then(|| symbols::named_on(&outline.symbols, meaning.line, last))
        .flatten();
    Ok(Some(match own {
        Some(found) => {
            let position = name_position(outline.text(), found.symbol);
            let all = symbols::flatten(&outline.symbols).into_iter();
            let all = all.filter(|other| other.path == found.path && other.symbol != found.symbol);
            let places = all.map(|other| name_position(outline.text(), other.symbol));
            let overloads = places.take(MAX_OVERLOADS).collect();
            Target { position, name: found.path, is_corrected, is_use: false, overloads }
        }
        None => Target::of_use(meaning, last, is_corrected),
    }))
}

impl Target {
    fn of_use(meaning: &Meaning, last: &str, is_corrected: bool) -> Self {
        let name = meaning.name.clone().unwrap_or_else(|| last.to_owned());
        Self { position: meaning.place, name, is_corrected, is_use: true, overloads: Vec::new() }
    }
}

/// What a name means at its places in a file, each thing once. Places that mean nothing, as in comments, which some
/// servers refuse, are passed over.
async fn meanings(
    server: &Server,
    outline: &Outline,
    name: &str,
    line: Option<u32>,
    deadline: Instant,
) -> Result<Vec<Meaning>, Fault> {
    let text = outline.text();
    let places = search::words(text.as_str(), name)
        .map(|at| text.position(at, Encoding::Utf32))
        .filter(|place| line.is_none_or(|line| place.line + 1 == line));
    let (mut n_told, mut n_answered, mut refused) = (0, 0, None);
    let mut meanings: BTreeMap<(PathBuf, u32), Position> = BTreeMap::new();
    for place in places.take(MAX_ASKED) {
        let ask = Ask::about("textDocument/definition", &outline.subject, place, json!({}));
        match server.ask(ask, deadline).await {
            Ok(answered) => {
                n_answered += 1;
                let Some(first) = lsp::locations(&answered.result).into_iter().next() else { continue };
                let file = lsp::path(&first.uri).unwrap_or_else(|| PathBuf::from(&first.uri));
                meanings.entry((file, first.range.start.line)).or_insert(place);
                n_told += 1;
            }
            Err(error @ ServerError::Refused { .. }) => refused = Some(error),
            // What is known by then is better than nothing.
            Err(ServerError::Timeout { .. }) if !meanings.is_empty() => break,
            Err(error) => return Err(server_error(error)),
        }
        if n_told == MAX_PLACES {
            break;
        }
    }
    if let Some(refused) = refused.filter(|_| n_answered == 0 && !has_like(outline, name)) {
        return Err(server_error(refused));
    }
    let meaning = |((file, line), place)| Meaning { file, line, place, name: None };
    Ok(meanings.into_iter().map(meaning).collect())
}

/// Whether a definition in the file has a name like it.
fn has_like(outline: &Outline, name: &str) -> bool {
    !matches!(symbols::find(&outline.symbols, name), Match::Nearest(_))
}

/// Full names, from the outlines of the files; overloads of one name are one.
async fn name_all(
    server: &Server,
    subject: &Subject,
    meanings: &mut Vec<Meaning>,
    last: &str,
    deadline: Instant,
) {
    let mut outlines: BTreeMap<PathBuf, Vec<Symbol>> = BTreeMap::new();
    for meaning in meanings.iter_mut() {
        if !outlines.contains_key(&meaning.file) {
            let beside = outline_beside(server, subject, &meaning.file, deadline).await;
            outlines.insert(meaning.file.clone(), beside.map(|(_, symbols)| symbols).unwrap_or_default());
        }
        let found = symbols::named_on(&outlines[&meaning.file], meaning.line, last);
        meaning.name = found.map(|found| found.path);
    }
    meanings.dedup_by(|next, kept| next.file == kept.file && next.name.is_some() && next.name == kept.name);
}

/// Another file of the same server and the same tree, with its symbols; `None` when it cannot tell.
pub(super) async fn outline_beside(
    server: &Server,
    subject: &Subject,
    file: &Path,
    deadline: Instant,
) -> Option<(Subject, Vec<Symbol>)> {
    let (unsaved, path) = (subject.view.unsaved.clone(), file.to_owned());
    let mut trees = Trees::new([subject.folder.clone()]);
    let read = tokio::task::spawn_blocking(move || match trees.other(&path) {
        None => unsaved.read(&path).ok(),
        Some(_) => None,
    })
    .await;
    let beside = Subject { snapshot: read.ok()??, ..subject.clone() };
    let symbols = ask_symbols(server, &beside, deadline).await.ok()?;
    Some((beside, symbols))
}

/// Whether what holds the name stands right before it: `A.b`, `A::b`, `A->b`.
fn stands_after(outline: &Outline, place: Position, holder: &str) -> bool {
    let line = outline.text().line(place.line as usize);
    let before: String = line.chars().take(place.character as usize).collect();
    let before = before.trim_end_matches(['.', ':', '-', '>', '#']).replace("::", ".").replace("->", ".");
    let rest = before.strip_suffix(holder);
    rest.is_some_and(|rest| !rest.ends_with(is_word))
}

fn several(workspace: &Workspace, name: &str, meanings: &[Meaning]) -> Fault {
    let view = workspace.view();
    let shown = |meaning: &Meaning| {
        let file = view.relative(&meaning.file);
        let name = meaning.name.as_deref().unwrap_or(name);
        format!("line {}: {name}, defined at {file}:{}", meaning.place.line + 1, meaning.line + 1)
    };
    let candidates: Vec<String> = meanings.iter().map(shown).collect();
    Fault::new(Kind::AmbiguousSymbol, format!("{name:?} means several things in this file."))
        .hint("Choose one by the argument line, a line of context_file from the candidates.")
        .detail("candidates", candidates)
}
