//! More ways from a symbol to others: definition, description, callers and callees, search in the whole project.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::aim::{Target, outline_beside};
use super::lsp::answers::{Call, Hover, Named};
use super::lsp::lenient::{Kept, list};
use super::lsp::{self, Location, Position};
use super::references::{Wanted, name_position};
use super::server::{Ask, Server};
use super::symbols::{self, Symbol, kind_name};
use super::text::Encoding;
use super::told::Since;
use super::types::{Freshness, Outline, Spot, Spots, Subject, Unsaved};
use super::{CodeIndex, closing, is_own, of_another_tree};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::trees::Trees;
use baton_agent_base::wire::read;
use baton_agent_base::workspace::Workspace;

/// Servers that a search in the whole project asks.
const MAX_SEARCHED: usize = 4;
/// Overloads of one function that are asked for their calls.
const MAX_ITEMS: usize = 30;
/// Files whose outlines tell what holds the functions that are found.
const MAX_OUTLINES: usize = 40;

impl Spots {
    /// What a server told of a symbol.
    fn of(target: Target, server: Server, all: Vec<Spot>, freshness: Freshness) -> Self {
        let (symbol, is_corrected) = (target.name, target.is_corrected);
        Self { all, symbol, is_corrected, server: server.name, freshness }
    }
}

/// Who calls whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Who calls the symbol.
    Callers,
    /// Whom the symbol calls.
    Callees,
}

impl CodeIndex {
    /// Where a symbol is defined.
    pub async fn definition(
        &self,
        workspace: &Workspace,
        wanted: &Wanted,
        deadline: Instant,
    ) -> Result<Spots, Fault> {
        let since = Since::now();
        let (server, outline, target) = self.aim(workspace, wanted, deadline).await?;
        let ask = Ask::about("textDocument/definition", &outline.subject, target.position, json!({}));
        let (answered, freshness) = self.ask_told(workspace, &server, ask, since, deadline).await?;
        let encoding = answered.agreed.encoding;
        let found = lsp::locations(&answered.result).into_iter().map(|at| (at, Found::default())).collect();
        let trees = workspace.trees().about(&outline.subject.folder);
        let told = spots(found, encoding, &outline.subject.view.unsaved, trees).await?;
        if let (true, Some((path, top))) = (told.all.is_empty(), &told.elsewhere) {
            return Err(of_another_tree(path, top));
        }
        let (all, freshness) = told.with(outline.subject.freshness(freshness));
        Ok(Spots::of(target, server, all, freshness))
    }

    /// What the server tells of a symbol: its type and its description.
    pub async fn hover(
        &self,
        workspace: &Workspace,
        wanted: &Wanted,
        deadline: Instant,
    ) -> Result<(String, Spots), Fault> {
        let (server, outline, target) = self.aim(workspace, wanted, deadline).await?;
        let ask = Ask::about("textDocument/hover", &outline.subject, target.position, json!({}));
        let (answered, freshness) = self.ask_settled(&server, ask, deadline).await?;
        let contents = read::<Hover>(&answered.result).contents;
        let text = contents.map(|contents| contents.text().trim_end().to_owned()).unwrap_or_default();
        Ok((text, Spots::of(target, server, Vec::new(), freshness)))
    }

    /// Who calls a function, or whom it calls.
    pub async fn calls(
        &self,
        workspace: &Workspace,
        wanted: &Wanted,
        direction: Direction,
        deadline: Instant,
    ) -> Result<Spots, Fault> {
        let since = Since::now();
        let (server, outline, target) = self.aim(workspace, wanted, deadline).await?;
        let items = self.call_items(&server, &outline, &target, deadline).await?;
        if items.is_empty() {
            return Err(Fault::new(Kind::NotCallable, format!("{} is not callable.", target.name)));
        }
        let method = match direction {
            Direction::Callers => "callHierarchy/incomingCalls",
            Direction::Callees => "callHierarchy/outgoingCalls",
        };
        let mut freshness = Freshness::Settled;
        let (mut found, mut encoding) = (Vec::new(), Encoding::default());
        for item in items {
            let ask = Ask::new(method, json!({"item": item.raw}), Vec::new());
            let (answered, of_one) = self.ask_told(workspace, &server, ask, since, deadline).await?;
            freshness = freshness.and(of_one);
            encoding = answered.agreed.encoding;
            found.extend(list::<Call>(&answered.result).into_iter().filter_map(|call| {
                let at = Location { uri: call.other.uri.clone(), range: call.other.selection_range? };
                let calls = call.from_ranges.0.iter().map(|range| range.start.line + 1).collect();
                Some((at, Found::of(call.other, calls)))
            }));
        }
        let mut found = once_each(found);
        name_holders(workspace, &server, &outline, &mut found, deadline).await;
        let trees = workspace.trees().about(&outline.subject.folder);
        let told = spots(found, encoding, &outline.subject.view.unsaved, trees).await?;
        let (all, freshness) = told.with(outline.subject.freshness(freshness));
        Ok(Spots::of(target, server, all, freshness))
    }

    /// What can be asked for calls: all overloads of a function, of which only one has calls in it.
    async fn call_items(
        &self,
        server: &Server,
        outline: &Outline,
        target: &Target,
        deadline: Instant,
    ) -> Result<Vec<Kept<Named>>, Fault> {
        let mut items: Vec<Kept<Named>> = Vec::new();
        let mut take = |prepared: Value| {
            for item in list::<Kept<Named>>(&prepared) {
                let is_known = |known: &Kept<Named>| {
                    known.uri == item.uri && known.selection_range == item.selection_range
                };
                if items.len() < MAX_ITEMS && !items.iter().any(is_known) {
                    items.push(item);
                }
            }
        };
        let method = "textDocument/prepareCallHierarchy";
        for place in std::iter::once(&target.position).chain(&target.overloads) {
            let ask = Ask::about(method, &outline.subject, *place, json!({}));
            take(self.ask_settled(server, ask, deadline).await?.0.result);
        }
        if target.is_use {
            for (beside, place) in self.defined_beside(server, outline, target, deadline).await? {
                // The use told already what there is, when these cannot be asked.
                if let Ok(answered) =
                    server.ask(Ask::about(method, &beside, place, json!({})), deadline).await
                {
                    take(answered.result);
                }
            }
        }
        Ok(items)
    }

    /// The definitions of what is used at the target, with all overloads.
    async fn defined_beside(
        &self,
        server: &Server,
        outline: &Outline,
        target: &Target,
        deadline: Instant,
    ) -> Result<Vec<(Subject, Position)>, Fault> {
        let ask = Ask::about("textDocument/definition", &outline.subject, target.position, json!({}));
        let (answered, _) = self.ask_settled(server, ask, deadline).await?;
        let Some(first) = lsp::locations(&answered.result).into_iter().next() else { return Ok(Vec::new()) };
        let Some(file) = lsp::path(&first.uri) else { return Ok(Vec::new()) };
        let beside = outline_beside(server, &outline.subject, &file, deadline).await;
        let Some((subject, symbols)) = beside else { return Ok(Vec::new()) };
        let last = symbols::last_name(&target.name);
        let named = symbols::named_on(&symbols, first.range.start.line, last).map(|found| found.path);
        let all = symbols::flatten(&symbols).into_iter().filter(|found| Some(&found.path) == named.as_ref());
        let place = |symbol| (subject.clone(), name_position(&subject.snapshot.text, symbol));
        Ok(all.take(MAX_ITEMS).map(|found| place(found.symbol)).collect())
    }

    /// Symbols anywhere in the project whose names are like `query`.
    pub async fn project_symbols(
        &self,
        workspace: &Workspace,
        query: &str,
        deadline: Instant,
    ) -> Result<Spots, Fault> {
        let since = Since::now();
        let (mut servers, mut unsaved) = (self.started(), Unsaved::default());
        if servers.is_empty() || self.inner.editor.is_some() {
            let mut first = None;
            for subject in self.examples(workspace, deadline).await?.0 {
                unsaved = subject.view.unsaved.clone();
                if let Ok(server) = self.server_for(&subject)
                    && subject.view.is_served
                {
                    first = Some(server);
                }
            }
            servers = first.into_iter().chain(self.started()).collect();
        }
        self.sync(workspace, Some(deadline)).await;
        servers.truncate(MAX_SEARCHED);
        if servers.is_empty() {
            return Err(Fault::new(Kind::NoServer, "No language server can search this project.")
                .hint("`baton servers list` shows what there is."));
        }
        let (mut answering, mut finding): (Vec<Arc<str>>, Vec<Arc<str>>) = (Vec::new(), Vec::new());
        let (mut all, mut refused, mut freshness) = (Vec::new(), None, Freshness::Settled);
        for server in &servers {
            let ask = Ask::new("workspace/symbol", json!({"query": query}), Vec::new());
            let (answered, of_one) = match self.ask_told(workspace, server, ask, since, deadline).await {
                Ok(answered) => answered,
                Err(error) => {
                    refused = Some(error);
                    continue;
                }
            };
            let found = list::<Named>(&answered.result).into_iter().map(|symbol| {
                let at = Location {
                    uri: symbol.location.uri.clone(),
                    range: symbol.location.range.unwrap_or_default(),
                };
                (at, Found::of(symbol, Vec::new()))
            });
            let trees = workspace.trees().about(&server.root);
            let told = spots(found.collect(), answered.agreed.encoding, &unsaved, trees).await?;
            let (mut found, of_one) = told.with(of_one);
            freshness = freshness.and(of_one);
            found.retain(|spot| is_own(server, &servers, &spot.file));
            let told = if found.is_empty() { &mut answering } else { &mut finding };
            told.extend((!told.contains(&server.name)).then(|| server.name.clone()));
            all.extend(found);
        }
        let named = if finding.is_empty() { answering } else { finding };
        // Servers find a name by some letters of it, in any order of files.
        let like = |spot: &Spot| likeness(spot.name.as_deref().unwrap_or_default(), query);
        all.sort_by_cached_key(|spot| Reverse(like(spot)));
        if all.first().is_some_and(|best| like(best).is_some()) {
            all.retain(|spot| like(spot).is_some());
        }
        match refused {
            Some(error) if all.is_empty() => Err(error),
            _ => Ok(Spots {
                all,
                symbol: query.to_owned(),
                is_corrected: false,
                server: named.join(", ").into(),
                freshness,
            }),
        }
    }
}

/// What holds the functions, as the outlines of the project's files tell.
async fn name_holders(
    workspace: &Workspace,
    server: &Server,
    outline: &Outline,
    found: &mut [(Location, Found)],
    deadline: Instant,
) {
    let mut outlines: HashMap<PathBuf, Vec<Symbol>> = HashMap::new();
    outlines.insert(outline.subject.snapshot.path.clone(), outline.symbols.clone());
    for (location, more) in found {
        let (Some(file), Some(name)) = (lsp::path(&location.uri), &more.name) else { continue };
        let is_ours = workspace.folders().iter().any(|folder| file.starts_with(&folder.path));
        if !outlines.contains_key(&file) && is_ours && outlines.len() < MAX_OUTLINES {
            let beside = outline_beside(server, &outline.subject, &file, deadline).await;
            outlines.insert(file.clone(), beside.map(|(_, symbols)| symbols).unwrap_or_default());
        }
        let symbols = outlines.get(&file).map(Vec::as_slice).unwrap_or_default();
        let symbol = symbols::named_on(symbols, location.range.start.line, name);
        more.container = symbol.and_then(|symbol| symbols::holder(&symbol.path));
    }
}

/// Callers of several overloads are told once.
fn once_each(found: Vec<(Location, Found)>) -> Vec<(Location, Found)> {
    let mut all: Vec<(Location, Found)> = Vec::with_capacity(found.len());
    let mut known: HashMap<(String, Position), usize> = HashMap::new();
    for (location, more) in found {
        let idx = *known.entry((location.uri.clone(), location.range.start)).or_insert(all.len());
        match all.get_mut(idx) {
            Some((_, kept)) => kept.calls.extend(more.calls),
            None => all.push((location, more)),
        }
    }
    for (_, found) in &mut all {
        found.calls.sort_unstable();
        found.calls.dedup();
    }
    all
}

/// The more, the more a name is like what was asked for; `None` when it has at most its letters. Case and underscores do
/// not count.
fn likeness(name: &str, query: &str) -> Option<u8> {
    let plain = |text: &str| text.replace('_', "").to_lowercase();
    let (name, query) = (plain(name), plain(query));
    match () {
        () if name == query => Some(2),
        () if name.starts_with(&query) => Some(1),
        () if name.contains(&query) => Some(0),
        () => None,
    }
}

/// What a server tells of a symbol beside its place.
#[derive(Clone, Debug, Default)]
struct Found {
    name: Option<String>,
    kind: Option<&'static str>,
    container: Option<String>,
    calls: Vec<u32>,
}

impl Found {
    fn of(symbol: Named, calls: Vec<u32>) -> Self {
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let (name, container) = (text(symbol.name), text(symbol.container_name));
        Self { name, kind: symbol.kind.map(kind_name), container, calls }
    }
}

/// What becomes of the places that a server told.
#[derive(Default)]
struct Told {
    all: Vec<Spot>,
    /// A file of another tree among them, and the top of that.
    elsewhere: Option<(PathBuf, PathBuf)>,
    /// Whether some do not fit what their file holds.
    is_misfit: bool,
}

impl Told {
    fn with(self, freshness: Freshness) -> (Vec<Spot>, Freshness) {
        let freshness = if self.is_misfit { freshness.and(Freshness::Stale) } else { freshness };
        (self.all, freshness)
    }
}

/// Places of the trees that are meant, or of libraries; a server may still know a file that was deleted.
async fn spots(
    found: Vec<(Location, Found)>,
    encoding: Encoding,
    unsaved: &Unsaved,
    mut trees: Trees,
) -> Result<Told, Fault> {
    const MAX_SHOWN: usize = 200;
    let unsaved = unsaved.clone();
    let told = tokio::task::spawn_blocking(move || {
        let mut last: Option<(PathBuf, Option<Arc<super::text::Text>>)> = None;
        let mut told = Told::default();
        for (location, more) in found {
            let Some(file) = lsp::path(&location.uri) else { continue };
            if last.as_ref().is_none_or(|(known, _)| *known != file) {
                if let Some(top) = trees.other(&file) {
                    told.elsewhere = Some((file, top));
                    continue;
                }
                if !file.exists() && unsaved.find(&file).is_none() {
                    continue;
                }
                last = Some((file.clone(), unsaved.read(&file).ok().map(|snapshot| snapshot.text)));
            }
            let text = last.as_ref().and_then(|(_, text)| text.clone());
            let start = location.range.start;
            if text.as_ref().is_some_and(|text| !text.has(start)) {
                told.is_misfit = true;
                continue;
            }
            let place = text.as_ref().map_or(start, |text| text.to_chars(start, encoding));
            let line = text.as_ref().map(|text| text.line(start.line as usize).trim()).unwrap_or_default();
            told.all.push(Spot {
                file,
                line: place.line + 1,
                column: place.character + 1,
                name: more.name,
                kind: more.kind,
                container: more.container,
                text: line.chars().take(MAX_SHOWN).collect(),
                calls: more.calls,
            });
        }
        told
    });
    told.await.map_err(|_| closing())
}
