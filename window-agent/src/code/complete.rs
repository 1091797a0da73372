//! What could stand at a place in a file, as a server completes it.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::lsp::Position;
use super::navigate::marked;
use super::references::about;
use super::server::documents::{Snapshot, Stamp};
use super::server::{Ask, Server};
use super::symbols::completion_kind;
use super::text::{Encoding, Text};
use super::{CodeIndex, Freshness, Subject, search, server_error};
use crate::tools::ToolError;
use crate::workspace::Workspace;

/// Completions whose documentation is asked for: servers look it up one by one.
const MAX_RESOLVED: usize = 10;

/// Where to complete.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// In code points from 1; the end of the line when it is not said.
    pub column: Option<u32>,
    /// What is thought to be typed there, although the file does not hold it.
    pub typed: Option<String>,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What would stand there.
    pub name: String,
    /// What it is.
    pub kind: Option<&'static str>,
    /// Its type or signature.
    pub detail: Option<String>,
    /// Its documentation, of the first ones.
    pub documentation: Option<String>,
}

/// All of them, the best first.
#[derive(Clone, Debug)]
pub struct Completions {
    /// No more than wanted.
    pub all: Vec<Completion>,
    /// How many there are.
    pub total: usize,
    /// Who says so.
    pub server: Arc<str>,
    /// How far it can be trusted.
    pub freshness: Freshness,
}

impl CodeIndex {
    /// What could stand at a place.
    pub async fn completions(
        &self,
        workspace: &Workspace,
        place: &Place,
        limit: usize,
        deadline: Instant,
    ) -> Result<Completions, ToolError> {
        let mut subject = self.open(workspace, &place.file, deadline).await?;
        if place.typed.is_some() {
            // VS Code would have to change what its user sees.
            subject.view.is_served = false;
        }
        let server = self.server_for(&subject).map_err(|why| {
            ToolError::new("no_server", format!("Nothing completes this: {why}."))
                .hint("lcp_get_outline works without a server, by text search.")
        })?;
        self.sync(workspace, Some(deadline)).await;
        let at = typed(&mut subject, place)?;
        let ask = about("textDocument/completion", &subject, at, json!({"context": {"triggerKind": 1}}));
        let (answered, freshness) = self.ask_settled(&server, ask, deadline).await?;
        let items = answered.result["items"].as_array().or(answered.result.as_array());
        let begun = begun_word(&subject.snapshot.text, at).to_lowercase();
        let is_wanted = |item: &&Value| {
            let text = item["filterText"].as_str().or_else(|| label(item)).unwrap_or_default();
            text.trim_start_matches('.').to_lowercase().starts_with(&begun)
        };
        let mut items: Vec<&Value> = items.into_iter().flatten().filter(is_wanted).collect();
        items.sort_by_key(|item| (item["sortText"].as_str().or_else(|| label(item)), label(item)));
        items.dedup_by_key(|item| label(item));
        let total = items.len();
        let resolves = answered.agreed.capabilities["completionProvider"]["resolveProvider"] == true;
        let mut all = Vec::new();
        for (idx, item) in items.into_iter().take(limit).enumerate() {
            let resolved = match resolves && idx < MAX_RESOLVED {
                true => resolve(&server, "completionItem/resolve", item, &subject, deadline).await?,
                false => item.clone(),
            };
            all.push(told(&resolved));
        }
        Ok(Completions { all, total, server: server.name, freshness: subject.freshness(freshness) })
    }
}

/// The rest of something that a server told only in part.
pub(super) async fn resolve(
    server: &Server,
    method: &'static str,
    item: &Value,
    subject: &Subject,
    deadline: Instant,
) -> Result<Value, ToolError> {
    let params = item.clone();
    let ask = Ask { method, params: Arc::new(move |_| params.clone()), show: subject.shown() };
    Ok(server.ask(ask, deadline).await.map_err(server_error)?.result)
}

/// The place in code points, after what is typed there.
fn typed(subject: &mut Subject, place: &Place) -> Result<Position, ToolError> {
    let text = &subject.snapshot.text;
    let n_lines = text.n_lines();
    // After the last line break there is a place, too.
    if place.line == 0 || place.line as usize > n_lines + 1 {
        let message = format!("Line {} is not in the file, which has {n_lines} lines.", place.line);
        return Err(ToolError::new("invalid_range", message).hint("Lines count from 1."));
    }
    let line = place.line - 1;
    let n_chars = text.line(line as usize).trim_end_matches(['\n', '\r']).chars().count() as u32;
    let character = place.column.map_or(n_chars, |column| column.saturating_sub(1).min(n_chars));
    let at = Position { line, character };
    let Some(typed) = &place.typed else { return Ok(at) };
    let mut whole = text.as_str().to_owned();
    let offset = text.offset(at, Encoding::Utf32);
    whole.insert_str(offset, typed);
    let text = Arc::new(Text::new(whole));
    let at = text.position(offset + typed.len(), Encoding::Utf32);
    // Never equal to a file's, so that the file's own text is shown again with the next question.
    let stamp = Stamp { modified: None, len: u64::MAX, inode: 0 };
    subject.snapshot = Snapshot { path: subject.snapshot.path.clone(), text, stamp };
    Ok(at)
}

/// The part of a word before a place.
fn begun_word(text: &Text, at: Position) -> String {
    let before: Vec<char> = text.line(at.line as usize).chars().take(at.character as usize).collect();
    let n_others = before.iter().rposition(|char| !search::is_word(*char)).map_or(0, |at| at + 1);
    before[n_others..].iter().collect()
}

/// VS Code's can have parts.
fn label(item: &Value) -> Option<&str> {
    item["label"].as_str().or_else(|| item["label"]["label"].as_str()).map(str::trim)
}

fn told(item: &Value) -> Completion {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let beside =
        [&item["labelDetails"]["detail"], &item["label"]["detail"], &item["labelDetails"]["description"]];
    let documentation = marked(&item["documentation"]);
    Completion {
        name: label(item).unwrap_or_default().to_owned(),
        kind: item["kind"].as_u64().and_then(completion_kind),
        detail: text(&item["detail"]).or_else(|| beside.into_iter().find_map(text)),
        documentation: Some(documentation).filter(|text| !text.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_is_begun_ends_at_the_place() {
        let text = Text::new("a.größ = b\n".to_owned());
        let word = |character| begun_word(&text, Position { line: 0, character });
        assert_eq!([word(6), word(3), word(2), word(0)], ["größ", "g", "", ""]);
    }
}
