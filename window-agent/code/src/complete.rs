//! What could stand at a place in a file, as a server completes it.

use std::sync::Arc;
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::documents::{Snapshot, Stamp};
use super::lsp::Position;
use super::lsp::answers::{CompletionItem, Marked, completions};
use super::lsp::lenient::Kept;
use super::server::{Ask, Server};
use super::symbols::completion_kind;
use super::text::{Encoding, Text, is_word};
use super::types::{Completion, Completions, Subject};
use super::{CodeIndex, server_error};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::wire::read;
use baton_agent_base::workspace::Workspace;

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

impl CodeIndex {
    /// What could stand at a place.
    pub async fn completions(
        &self,
        workspace: &Workspace,
        place: &Place,
        limit: usize,
        deadline: Instant,
    ) -> Result<Completions, Fault> {
        let mut subject = self.open(workspace, &place.file, deadline).await?;
        if place.typed.is_some() {
            // VS Code would have to change what its user sees.
            subject.view.is_served = false;
        }
        let server = self
            .server_for(&subject)
            .map_err(|why| Fault::new(Kind::NoServer, format!("Cannot complete this: {why}.")))?;
        self.sync(workspace, Some(deadline)).await;
        let at = typed(&mut subject, place)?;
        let ask = Ask::about("textDocument/completion", &subject, at, json!({"context": {"triggerKind": 1}}));
        let (answered, freshness) = self.ask_settled(&server, ask, deadline).await?;
        let begun = begun_word(&subject.snapshot.text, at).to_lowercase();
        let mut items = completions(&answered.result);
        items.retain(|item| {
            let text = item.filter_text.as_deref().unwrap_or(item.label());
            text.trim_start_matches('.').to_lowercase().starts_with(&begun)
        });
        items.sort_by(|left, right| left.order().cmp(&right.order()));
        items.dedup_by(|item, before| item.label() == before.label());
        let total = items.len();
        let resolves = answered.agreed.capabilities.completion_provider.resolve_provider;
        let mut all = Vec::new();
        for (idx, item) in items.into_iter().take(limit).enumerate() {
            let resolved = match resolves && idx < MAX_RESOLVED {
                true => resolve(&server, "completionItem/resolve", &item, &subject, deadline).await?,
                false => item,
            };
            all.push(told(&resolved));
        }
        Ok(Completions { all, total, server: server.name, freshness: subject.freshness(freshness) })
    }
}

/// The rest of something that a server told only in part.
pub(super) async fn resolve<T: DeserializeOwned + Default>(
    server: &Server,
    method: &'static str,
    item: &Kept<T>,
    subject: &Subject,
    deadline: Instant,
) -> Result<Kept<T>, Fault> {
    let ask = Ask::new(method, item.raw.clone(), subject.shown());
    Ok(read(&server.ask(ask, deadline).await.map_err(server_error)?.result))
}

/// The place in code points, after what is typed there.
fn typed(subject: &mut Subject, place: &Place) -> Result<Position, Fault> {
    let text = &subject.snapshot.text;
    let n_lines = text.n_lines();
    // After the last line break there is a place, too.
    if place.line == 0 || place.line as usize > n_lines + 1 {
        let message = format!("Line {} is not in the file, which has {n_lines} lines.", place.line);
        return Err(Fault::new(Kind::InvalidRange, message).hint("Lines count from 1."));
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
    let n_others = before.iter().rposition(|char| !is_word(*char)).map_or(0, |at| at + 1);
    before[n_others..].iter().collect()
}

fn told(item: &CompletionItem) -> Completion {
    Completion {
        name: item.label().to_owned(),
        kind: item.kind.and_then(completion_kind),
        detail: item.detail().map(str::to_owned),
        documentation: item.documentation.as_ref().map(Marked::text).filter(|text| !text.is_empty()),
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
