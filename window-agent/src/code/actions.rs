//! What a server offers to do about some lines: quick fixes, refactorings. Looked at first, then made.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::change::{Change, planned};
use super::complete::resolve;
use super::diagnostics::problems_of;
use super::edits::{self, Step};
use super::lsp::{self, Diagnostic, Position, Range};
use super::server::{Agreed, Answered, Ask, Server};
use super::text::{Encoding, Text};
use super::{CodeIndex, Freshness, Subject, closing, server_error};
use crate::tools::ToolError;
use crate::workspace::Workspace;

/// A file system tells the time of a change as of the last tick of a clock.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Which lines.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The file.
    pub file: String,
    /// From 1.
    pub first: u32,
    /// From 1.
    pub last: u32,
    /// Only actions of this kind: `quickfix`, `refactor`, `source`.
    pub kind: Option<String>,
}

/// An action that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// In the server's words.
    pub title: String,
    /// `quickfix`, `refactor.extract`, ...
    pub kind: Option<String>,
    /// Whether the server would choose it.
    pub is_preferred: bool,
}

/// What is offered for some lines.
#[derive(Clone, Debug)]
pub struct Offers {
    /// In the server's order.
    pub all: Vec<Action>,
    /// Who offers it.
    pub server: Arc<str>,
    /// How far it can be trusted.
    pub freshness: Freshness,
}

/// The server's own answer, which making an action needs.
struct Offered {
    subject: Subject,
    server: Server,
    answered: Answered,
    freshness: Freshness,
}

impl CodeIndex {
    /// What is offered for some lines.
    pub async fn actions(
        &self,
        workspace: &Workspace,
        lines: &Lines,
        deadline: Instant,
    ) -> Result<Offers, ToolError> {
        let offered = self.offered(workspace, lines, deadline).await?;
        let all = usable(&offered.answered.result).map(told).collect();
        Ok(Offers { all, server: offered.server.name, freshness: offered.freshness })
    }

    /// What one of them would change.
    pub async fn action(
        &self,
        workspace: &Workspace,
        lines: &Lines,
        title: &str,
        deadline: Instant,
    ) -> Result<Change, ToolError> {
        let offered = self.offered(workspace, lines, deadline).await?;
        let all: Vec<&Value> = usable(&offered.answered.result).collect();
        let titles = || -> Vec<String> { all.iter().map(|action| told(action).title).collect() };
        let wanted = title.trim().to_lowercase();
        let is_exact = |action: &&&Value| told(action).title.to_lowercase() == wanted;
        let holds = |action: &&&Value| told(action).title.to_lowercase().contains(&wanted);
        let mut found: Vec<&&Value> = all.iter().filter(is_exact).take(1).collect();
        if found.is_empty() {
            found = all.iter().filter(holds).collect();
        }
        let [action] = found[..] else {
            let (code, message) = match found.is_empty() {
                true => ("action_not_found", format!("Nothing like {title:?} is offered for these lines.")),
                false => ("ambiguous_action", format!("{title:?} could be any of {} actions.", found.len())),
            };
            let error = ToolError::new(code, message).hint("Use the whole title of one of the candidates.");
            return Err(error.detail("candidates", titles()));
        };
        let (edit, made) = edit_of(&offered, action, deadline).await?;
        let encoding = offered.answered.agreed.encoding;
        let plan = planned(workspace, &offered.subject, &edit, made, encoding).await?;
        if plan.is_empty() {
            return Err(ToolError::new(
                "nothing_to_change",
                format!("{} changes no file.", told(action).title),
            )
            .hint("Choose another action."));
        }
        Ok(Change::new(told(action).title, plan, offered.subject.view.unsaved))
    }

    async fn offered(
        &self,
        workspace: &Workspace,
        lines: &Lines,
        deadline: Instant,
    ) -> Result<Offered, ToolError> {
        let subject = self.open(workspace, &lines.file, deadline).await?;
        let server = self.server_for(&subject).map_err(|why| {
            ToolError::new("no_server", format!("Nothing is offered for this file: {why}."))
                .hint("lcp_apply_edit changes any file.")
        })?;
        let text = subject.snapshot.text.clone();
        let n_lines = text.n_lines().max(1) as u32;
        if lines.first == 0 || lines.last < lines.first || lines.first > n_lines {
            let message = format!(
                "Lines {} to {} are not in the file, which has {n_lines} lines.",
                lines.first, lines.last
            );
            return Err(ToolError::new("invalid_range", message).hint("Lines count from 1."));
        }
        // A quick fix is for a problem, and a server wants to hear which.
        self.sync(workspace, Some(deadline)).await;
        let problems = if subject.view.is_served {
            Vec::new()
        } else {
            problems_of(&server, subject.shown(), deadline).await?.0
        };
        let is_here = |range: &Range| range.start.line < lines.last && range.end.line + 1 >= lines.first;
        let problems: Vec<Diagnostic> =
            problems.into_iter().filter(|problem| is_here(&problem.range)).collect();
        let (mut all, mut last, mut freshness) = (Vec::<Value>::new(), None, Freshness::Settled);
        for range in ranges(&text, lines, n_lines) {
            let ask = ask_about(&subject, range, &problems, lines.kind.as_deref());
            let (answered, of_one) = self.ask_settled(&server, ask, deadline).await?;
            freshness = freshness.and(of_one);
            for action in answered.result.as_array().into_iter().flatten() {
                let is_known = all.iter().any(|known| told(known) == told(action));
                let is_wanted = lines
                    .kind
                    .as_ref()
                    .is_none_or(|kind| told(action).kind.is_none_or(|own| own.starts_with(kind.as_str())));
                if is_wanted && !is_known {
                    all.push(action.clone());
                }
            }
            last = Some(answered.agreed);
        }
        let answered = Answered { result: all.into(), agreed: last.unwrap_or_default() };
        let freshness = subject.freshness(freshness);
        Ok(Offered { subject, server, answered, freshness })
    }
}

/// What is asked about: the lines, and where it is but one, its first word, too: many refactorings want a place. What
/// is offered for both is made for the lines: TypeScript moves the whole file from the start of its first statement.
fn ranges(text: &Text, lines: &Lines, n_lines: u32) -> Vec<Range> {
    let last = lines.last.min(n_lines) - 1;
    let n_chars = |line: u32| text.line(line as usize).trim_end_matches(['\n', '\r']).chars().count() as u32;
    let first = lines.first - 1;
    let indent = text.line(first as usize).chars().take_while(|char| char.is_whitespace()).count() as u32;
    let start = Position { line: first, character: indent.min(n_chars(first)) };
    let whole = Range { start, end: Position { line: last, character: n_chars(last) } };
    let place = Range { start, end: start };
    if lines.first == lines.last { vec![whole, place] } else { vec![whole] }
}

fn ask_about(subject: &Subject, range: Range, problems: &[Diagnostic], kind: Option<&str>) -> Ask {
    let (text, uri) = (subject.snapshot.text.clone(), lsp::uri(&subject.snapshot.path));
    let mut context = json!({"diagnostics": problems, "triggerKind": 1});
    if let Some(kind) = kind {
        context["only"] = json!([kind]);
    }
    let params = Arc::new(move |agreed: &Agreed| {
        let place = |place: Position| text.position(text.offset(place, Encoding::Utf32), agreed.encoding);
        let range = Range { start: place(range.start), end: place(range.end) };
        json!({"textDocument": {"uri": uri}, "range": range, "context": context})
    });
    Ask { method: "textDocument/codeAction", params, show: subject.shown() }
}

/// What can be looked at before it is made: an edit, or what leads to one. VS Code makes what its commands do at once.
fn usable(result: &Value) -> impl Iterator<Item = &Value> {
    let is_enabled = |action: &&Value| action.get("disabled").is_none_or(Value::is_null);
    let leads_to_edit = |action: &&Value| {
        let has = |name: &str| action.get(name).is_some_and(|value| !value.is_null());
        has("edit") || has("data") || (has("command") && action["kind"].get("value").is_none())
    };
    result.as_array().into_iter().flatten().filter(is_enabled).filter(leads_to_edit)
}

fn told(action: &Value) -> Action {
    let kind = action["kind"].as_str().or_else(|| action["kind"]["value"].as_str());
    Action {
        title: action["title"].as_str().unwrap_or_default().to_owned(),
        kind: kind.filter(|kind| !kind.is_empty()).map(str::to_owned),
        is_preferred: action["isPreferred"] == true,
    }
}

/// The edit that an action stands for: in it, in what the server adds when asked, or in what its command asks for.
/// With the files that the command made itself.
async fn edit_of(
    offered: &Offered,
    action: &Value,
    deadline: Instant,
) -> Result<(Value, Vec<PathBuf>), ToolError> {
    let (server, subject) = (&offered.server, &offered.subject);
    if !action["edit"].is_null() {
        return Ok((action["edit"].clone(), Vec::new()));
    }
    let resolves = offered.answered.agreed.capabilities["codeActionProvider"]["resolveProvider"] == true;
    let action = match resolves && action.get("data").is_some() {
        true => resolve(server, "codeAction/resolve", action, subject, deadline).await?,
        false => action.clone(),
    };
    if !action["edit"].is_null() {
        return Ok((action["edit"].clone(), Vec::new()));
    }
    // The old form of an action is a command itself.
    let command = if action["command"].is_string() { &action } else { &action["command"] };
    if command.is_null() {
        return Ok((Value::Null, Vec::new()));
    }
    let params = json!({"command": command["command"], "arguments": command["arguments"]});
    let params = Arc::new(move |_: &Agreed| params.clone());
    let ask = Ask { method: "workspace/executeCommand", params, show: subject.shown() };
    let before = SystemTime::now();
    let edit = server.ask(ask, deadline).await.map_err(server_error)?.result["edit"].clone();
    let told = edit.clone();
    let made = tokio::task::spawn_blocking(move || take_back_made(&told, before));
    Ok((edit, made.await.map_err(|_| closing())?))
}

/// typescript-language-server makes the files that its edit will fill, before it tells the edit. A preview makes none:
/// they go again, and are told.
fn take_back_made(edit: &Value, since: SystemTime) -> Vec<PathBuf> {
    let is_new = |path: &Path| {
        let metadata = std::fs::symlink_metadata(path);
        metadata.is_ok_and(|metadata| {
            let is_recent = metadata.modified().is_ok_and(|at| at + CLOCK_STEP >= since);
            metadata.is_file() && metadata.len() == 0 && is_recent
        })
    };
    let steps = edits::steps(edit).unwrap_or_default();
    let named = steps.iter().filter_map(|step| match step {
        Step::Edit { path, .. } => Some(path),
        _ => None,
    });
    named.filter(|path| is_new(path) && std::fs::remove_file(path).is_ok()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_looked_at_is_not_offered() {
        let all = json!([
            {"title": "edit", "kind": "quickfix", "edit": {}},
            {"title": "later", "data": 1},
            {"title": "command", "command": "server.fix", "arguments": []},
            {"title": "of VS Code", "kind": {"value": "refactor"}, "command": {"command": "x"}},
            {"title": "not here", "edit": {}, "disabled": {"reason": "no"}},
        ]);
        let titles: Vec<String> = usable(&all).map(|action| told(action).title).collect();
        assert_eq!(titles, ["edit", "later", "command"]);
    }
}
