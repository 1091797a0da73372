//! References that a server leaves out of its answer although it knows of them.
//!
//! rust-analyzer 1.95 does so with some files, and with others after each start, for as long as it runs. What it
//! says of the definition at a place is right, so every place of the name is asked about.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures_util::{StreamExt, stream};
use serde_json::json;

use super::lsp::answers::DocumentHighlight;
use super::lsp::lenient::list;
use super::lsp::{self, Location, Position};
use super::server::{Answered, Ask, Server, ServerError};
use super::servers::ServerSpec;
use super::text::{Encoding, Text};
use super::types::Subject;
use super::{files, search};
use baton_agent_base::walk;

/// Places that are asked about; of a name with more, which is one like `new`, the rest is told to be unknown.
const MAX_PLACES: usize = 1_000;
/// Files of which the server is asked for what it would mark with the symbol.
const MAX_FILES: usize = 50;
/// Questions on their way at once.
const N_AT_ONCE: usize = 32;
/// A line that begins so is no code, in the languages of such servers.
const COMMENT: &str = "//";

/// What is not in the answer.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// References.
    pub(super) found: Vec<Location>,
    /// Places of the name that nothing is known of.
    pub(super) n_unknown: usize,
}

/// Where a name stands, as the server counts.
type Place = (PathBuf, Position);

/// Looks for references to the symbol at `target` that are not among those `told`.
pub(super) async fn look(
    (server, spec): (&Server, Arc<ServerSpec>),
    (subject, target): (&Subject, Position),
    told: &[Location],
    (encoding, with_declaration): (Encoding, bool),
    deadline: Instant,
) -> LeftOut {
    let ask = Ask::about("textDocument/definition", subject, target, json!({}));
    let Ok(answered) = server.ask(ask, deadline).await else {
        return LeftOut { n_unknown: 1, ..LeftOut::default() };
    };
    let defined: HashSet<Place> = places(&lsp::locations(&answered.result)).collect();
    let mut known: HashSet<Place> = places(told).collect();
    if !with_declaration {
        known.extend(defined.iter().cloned());
    }
    let mut left_out = LeftOut::default();
    for location in marked(server, &known, &defined, deadline).await {
        left_out.take(location, &mut known);
    }
    let name = search::word_at(&subject.snapshot.text, target).to_owned();
    let (root, own, there) = (server.root.to_path_buf(), subject.snapshot.path.clone(), known.clone());
    let searched = tokio::task::spawn_blocking(move || {
        search_root(&root, &spec, (&own, &name), encoding, &there, deadline)
    });
    let (mut unknown, n_unread) = searched.await.unwrap_or((Vec::new(), 1));
    left_out.n_unknown = unknown.len().saturating_sub(MAX_PLACES) + n_unread;
    unknown.truncate(MAX_PLACES);
    let asked = unknown.into_iter().map(|place| async {
        let answered = ask_at(server, "textDocument/definition", &place, deadline).await;
        (place, answered)
    });
    let mut answers = stream::iter(asked).buffered(N_AT_ONCE);
    while let Some(((path, start), answered)) = answers.next().await {
        match answered {
            Err(_) => left_out.n_unknown += 1,
            Ok(answered) if is_defined_in(&defined, &answered) => {
                let range = lsp::Range { start, end: start };
                left_out.take(Location { uri: lsp::uri(&path), range }, &mut known);
            }
            Ok(_) => {}
        }
    }
    left_out
}

impl LeftOut {
    fn take(&mut self, location: Location, known: &mut HashSet<Place>) {
        if places(std::slice::from_ref(&location)).all(|place| known.insert(place)) {
            self.found.push(location);
        }
    }

    /// Why the answer may not be complete.
    pub(super) fn doubt(&self) -> Option<String> {
        let places = if self.n_unknown == 1 { "place" } else { "places" };
        (self.n_unknown > 0).then(|| format!("{} {places} of the name were not looked at", self.n_unknown))
    }
}

fn places(locations: &[Location]) -> impl Iterator<Item = Place> {
    locations.iter().filter_map(|location| Some((lsp::path(&location.uri)?, location.range.start)))
}

/// What the server would mark in the files that it told of: there it also knows the symbol by other names, such as
/// `Self`.
async fn marked(
    server: &Server,
    known: &HashSet<Place>,
    defined: &HashSet<Place>,
    deadline: Instant,
) -> Vec<Location> {
    let mut first_of_each: Vec<Place> = Vec::new();
    for place in known {
        match first_of_each.iter_mut().find(|(path, _)| *path == place.0) {
            Some(first) => first.1 = first.1.min(place.1),
            None => first_of_each.push(place.clone()),
        }
    }
    first_of_each.sort();
    first_of_each.truncate(MAX_FILES);
    let asked = first_of_each.into_iter().map(|place| async move {
        // It also tells of places where the name means something else.
        let answered = ask_at(server, "textDocument/definition", &place, deadline).await;
        if !answered.is_ok_and(|answered| is_defined_in(defined, &answered)) {
            return Vec::new();
        }
        let answered = ask_at(server, "textDocument/documentHighlight", &place, deadline).await;
        let result = answered.map(|answered| answered.result).unwrap_or_default();
        let marks = list::<DocumentHighlight>(&result).into_iter();
        marks.filter_map(|mark| Some(Location { uri: lsp::uri(&place.0), range: mark.range? })).collect()
    });
    stream::iter(asked).buffered(N_AT_ONCE).concat().await
}

fn is_defined_in(defined: &HashSet<Place>, answered: &Answered) -> bool {
    places(&lsp::locations(&answered.result)).any(|place| defined.contains(&place))
}

async fn ask_at(
    server: &Server,
    method: &'static str,
    (path, position): &Place,
    deadline: Instant,
) -> Result<Answered, ServerError> {
    let params = json!({"textDocument": {"uri": lsp::uri(path)}, "position": position});
    server.ask(Ask::new(method, params, Vec::new()), deadline).await
}

/// Where the name stands in the server's files, but for the places that are known: in the file of the question first,
/// in those that are known next. Also how many files the time did not suffice for.
fn search_root(
    root: &Path,
    spec: &ServerSpec,
    (own, name): (&Path, &str),
    encoding: Encoding,
    known: &HashSet<Place>,
    deadline: Instant,
) -> (Vec<Place>, usize) {
    let (mut all, mut n_unread) = (Vec::new(), 0);
    if name.is_empty() {
        return (all, 1);
    }
    let finder = memchr::memmem::Finder::new(name);
    for path in walk::files(&[root.to_owned()]).filter(|path| spec.language_of(path).is_some()) {
        if Instant::now() >= deadline {
            n_unread += 1;
            continue;
        }
        let has_name = std::fs::read(&path).is_ok_and(|bytes| finder.find(&bytes).is_some());
        let Some(snapshot) = has_name.then(|| files::read(&path).ok()).flatten() else { continue };
        let text = &snapshot.text;
        for at in search::words(text.as_str(), name) {
            let place = (path.clone(), text.position(at, encoding));
            if !is_comment(text, at) && !known.contains(&place) {
                all.push(place);
            }
        }
    }
    let files: HashSet<&Path> = known.iter().map(|(path, _)| path.as_path()).collect();
    all.sort_by_cached_key(|(path, start)| {
        (path != own, !files.contains(path.as_path()), path.clone(), *start)
    });
    (all, n_unread)
}

fn is_comment(text: &Text, at: usize) -> bool {
    let before = &text.as_str()[..at];
    let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
    line.trim_start().starts_with(COMMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_name_are_found_but_in_comments_and_those_that_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let [a, own] = [file("a.rs", "ä.go();\nlet going = go;\n // go\n"), file("own.rs", "fn go() {}\n")];
        file("b.txt", "go");
        let languages = [("rs".to_owned(), "rust".to_owned())].into();
        let spec = ServerSpec { languages, ..ServerSpec::default() };
        let at = |line, character| Position { line, character };
        let known = HashSet::from([(a.clone(), at(1, 12))]);
        let far = Instant::now() + std::time::Duration::from_secs(60);
        let found = |known: &HashSet<Place>| {
            search_root(folder.path(), &spec, (&own, "go"), Encoding::Utf8, known, far).0
        };
        assert_eq!(
            found(&HashSet::new()),
            [(own.clone(), at(0, 3)), (a.clone(), at(0, 3)), (a.clone(), at(1, 12))]
        );
        assert_eq!(found(&known), [(own, at(0, 3)), (a, at(0, 3))]);
    }
}
