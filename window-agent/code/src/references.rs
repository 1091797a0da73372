//! Where a symbol is used, in the whole project.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::choose::{not_found, not_on_line};
use super::lsp::{self, Location, Position};
use super::server::{Ask, Server};
use super::servers::ServerSpec;
use super::text::{Encoding, Text, is_word};
use super::told::Since;
use super::types::{Freshness, Reference, References, Source, Subject};
use super::{CodeIndex, closing, files, left_out, search, symbols};
use baton_agent_base::fault::Fault;
use baton_agent_base::walk;
use baton_agent_base::workspace::Workspace;

/// Hits of a text search.
const MAX_TEXT_HITS: usize = 5_000;
/// Files that a text search reads.
const MAX_TEXT_FILES: usize = 50_000;

/// What is searched.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The name of the symbol.
    pub symbol: String,
    /// The file that tells which symbol of that name.
    pub context_file: String,
    /// A line of that file, from 1, that tells it among several.
    pub line: Option<u32>,
    /// Whether the place of its definition counts.
    pub with_declaration: bool,
    /// References whose text is told; of the others the place.
    pub n_texts: usize,
}

impl Wanted {
    /// A symbol, whatever is wanted of it.
    pub fn place(symbol: String, context_file: String, line: Option<u32>) -> Self {
        Self { symbol, context_file, line, with_declaration: true, n_texts: 0 }
    }
}

impl CodeIndex {
    /// All uses of a symbol.
    pub async fn references(
        &self,
        workspace: &Workspace,
        wanted: &Wanted,
        deadline: Instant,
    ) -> Result<References, Fault> {
        let subject = self.open(workspace, &wanted.context_file, deadline).await?;
        if let Err(why) = self.server_for(&subject) {
            return text_references(workspace, &subject, wanted, why).await;
        }
        let since = Since::now();
        let (server, outline, target) = self.aim(workspace, wanted, deadline).await?;
        let more = json!({"context": {"includeDeclaration": wanted.with_declaration}});
        let ask = |place| Ask::about("textDocument/references", &outline.subject, place, more.clone());
        let told = |place| self.ask_told(workspace, &server, ask(place), since, deadline);
        let (answered, mut freshness) = told(target.position).await?;
        let mut found = lsp::locations(&answered.result);
        // Overloads are one symbol in some languages, and several in others.
        let own = lsp::uri(&outline.subject.snapshot.path);
        for place in target.overloads.iter().filter(|_| wanted.line.is_none()) {
            let is_it = |known: &Location| known.uri == own && known.range.start.line == place.line;
            if !found.iter().any(is_it) {
                let (answered, of_one) = told(*place).await?;
                freshness = freshness.and(of_one);
                let others = lsp::locations(&answered.result).into_iter();
                found.extend(others.filter(|other| !found.contains(other)).collect::<Vec<_>>());
            }
        }
        let mut trees = workspace.trees().about(&outline.subject.folder);
        let looked = tokio::task::spawn_blocking(move || {
            found.retain(|place| lsp::path(&place.uri).is_some_and(|path| trees.other(&path).is_none()));
            found
        });
        let mut found = looked.await.map_err(|_| closing())?;
        let encoding = answered.agreed.encoding;
        let note = self.what_is_not_searched(&server);
        if let Some(spec) = self.spec_of(&server).filter(|spec| spec.leaves_out_references) {
            let about = (&outline.subject, target.position);
            let how = (encoding, wanted.with_declaration);
            let left_out = left_out::look((&server, spec), about, &found, how, deadline).await;
            if let (Freshness::Settled, Some(doubt)) = (&freshness, left_out.doubt()) {
                freshness = Freshness::Incomplete(doubt);
            }
            found.extend(left_out.found);
        }
        let (subject, n_texts) = (outline.subject.clone(), wanted.n_texts);
        let told = tokio::task::spawn_blocking(move || tell(found, encoding, &subject, n_texts));
        let (all, is_whole) = told.await.map_err(|_| closing())?;
        if !is_whole {
            freshness = freshness.and(Freshness::Stale);
        }
        Ok(References {
            symbol: target.name,
            is_corrected: target.is_corrected,
            all,
            source: Source::Server(server.name.clone()),
            freshness: outline.subject.freshness(freshness),
            note,
        })
    }

    /// The server's line of the table.
    pub(super) fn spec_of(&self, server: &Server) -> Option<Arc<ServerSpec>> {
        self.table().specs().iter().find(|spec| *spec.name == *server.name).cloned()
    }

    /// Some servers know only the files that were opened, unless the project says how it is built.
    fn what_is_not_searched(&self, server: &Server) -> Option<String> {
        let spec = self.spec_of(server)?;
        spec.knows_only_opened(&server.root).then_some(())?;
        Some(format!(
            "Only files that were opened are searched: {} needs {} for all of them.",
            server.name,
            spec.index_needs.first()?
        ))
    }
}

/// Where a symbol's name stands. Some servers tell the place of the whole symbol only.
pub(super) fn name_position(text: &Text, symbol: &symbols::Symbol) -> Position {
    let start = text.offset(symbol.name_range.start, Encoding::Utf32);
    let end = text.offset(symbol.name_range.end, Encoding::Utf32).max(start);
    let name = symbol.name.rsplit(['.', ':', ' ']).next().unwrap_or(&symbol.name);
    let name: &str = name.split(|char| !is_word(char)).next().unwrap_or(name);
    let inside = text.as_str().get(start..end).unwrap_or_default();
    let at = search::words(inside, name).next().unwrap_or(0);
    text.position(start + at, Encoding::Utf32)
}

/// Places by file and line, with the texts of the first ones; and whether all of them fit what the files hold.
fn tell(
    found: Vec<Location>,
    encoding: Encoding,
    subject: &Subject,
    n_texts: usize,
) -> (Vec<Reference>, bool) {
    let mut by_file: BTreeMap<PathBuf, Vec<Position>> = BTreeMap::new();
    for location in found {
        if let Some(path) = lsp::path(&location.uri) {
            by_file.entry(path).or_default().push(location.range.start);
        }
    }
    // The context file first: it is what the caller looks at.
    let own = by_file.remove_entry(&subject.snapshot.path);
    let (mut all, mut is_whole) = (Vec::new(), true);
    // A server may still know a file that was deleted.
    by_file.retain(|path, _| path.exists());
    for (path, mut places) in own.into_iter().chain(by_file) {
        places.sort();
        places.dedup();
        let read = match path == subject.snapshot.path {
            true => Some(subject.snapshot.text.clone()),
            false => subject.view.unsaved.read(&path).ok().map(|snapshot| snapshot.text),
        };
        for place in places {
            if read.as_ref().is_some_and(|text| !text.has(place)) {
                is_whole = false;
                continue;
            }
            let wants_text = all.len() < n_texts;
            let place = read.as_ref().map(|text| text.to_chars(place, encoding)).unwrap_or(place);
            let text = read.as_ref().filter(|_| wants_text).map(|text| text_at(text, place.line));
            all.push(Reference {
                file: path.clone(),
                line: place.line + 1,
                column: place.character + 1,
                text,
            });
        }
    }
    (all, is_whole)
}

/// A line and the header of what it is in, both bounded.
fn text_at(text: &Text, line: u32) -> (String, Option<String>) {
    const MAX_SHOWN: usize = 160;
    let shown = |line: &str| line.trim().chars().take(MAX_SHOWN).collect::<String>();
    (shown(text.line(line as usize)), search::header(text, line as usize).map(shown))
}

/// Every place where the name stands as a word, in the window's folders.
async fn text_references(
    workspace: &Workspace,
    subject: &Subject,
    wanted: &Wanted,
    why: String,
) -> Result<References, Fault> {
    let folders: Vec<PathBuf> = workspace.folders().iter().map(|folder| folder.path.clone()).collect();
    let name = symbols::last_name(&wanted.symbol).to_owned();
    if name.is_empty() {
        return Err(not_found(&wanted.symbol, &[]));
    }
    let text = &subject.snapshot.text;
    let lines = search::lines_with(text, &name);
    if let Some(line) = wanted.line.filter(|line| !lines.is_empty() && !lines.contains(line)) {
        return Err(not_on_line(text, &name, line, lines, std::iter::empty()));
    }
    let (word, n_texts) = (name.clone(), wanted.n_texts);
    let searched = tokio::task::spawn_blocking(move || search_folders(&folders, &word, n_texts));
    let (all, is_cut) = searched.await.map_err(|_| closing())?;
    if all.is_empty() {
        return Err(not_found(&wanted.symbol, &[]));
    }
    Ok(References {
        symbol: name,
        is_corrected: false,
        all,
        source: Source::TextSearch(why),
        freshness: Freshness::Settled,
        note: is_cut.then(|| "There may be more: the search was cut short.".to_owned()),
    })
}

fn search_folders(folders: &[PathBuf], word: &str, n_texts: usize) -> (Vec<Reference>, bool) {
    let mut all = Vec::new();
    for (n_files, path) in walk::files(folders).enumerate() {
        if n_files >= MAX_TEXT_FILES || all.len() >= MAX_TEXT_HITS {
            return (all, true);
        }
        let Ok(snapshot) = files::read(&path) else { continue };
        let text = &snapshot.text;
        let mut last_line = None;
        for at in search::words(text.as_str(), word) {
            let place = text.position(at, Encoding::Utf32);
            if last_line.replace(place.line) == Some(place.line) {
                continue;
            }
            let shown = (all.len() < n_texts).then(|| text_at(text, place.line));
            all.push(Reference {
                file: path.clone(),
                line: place.line + 1,
                column: place.character + 1,
                text: shown,
            });
        }
    }
    (all, false)
}
