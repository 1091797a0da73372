//! What a server offers to do about some lines: quick fixes, refactorings. Looked at first, then made.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::change::{Change, changes, planned};
use super::complete::resolve;
use super::diagnostics::problems_of;
use super::documents::Snapshot;
use super::edits::{self, Step};
use super::lsp::answers::{CodeAction, Command, Valued};
use super::lsp::lenient::{Kept, Or, list};
use super::lsp::{self, Diagnostic, Position, Range};
use super::server::{Agreed, Ask, Server};
use super::text::{Encoding, Text};
use super::told::{self, MAX_AGAIN, Since};
use super::types::{Action, Freshness, Offers, Subject};
use super::{CodeIndex, closing, server_error};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::workspace::Workspace;

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

/// The server's own answers, which making an action needs.
struct Offered {
    subject: Subject,
    server: Server,
    all: Vec<Kept<CodeAction>>,
    agreed: Arc<Agreed>,
    freshness: Freshness,
}

impl CodeIndex {
    /// What is offered for some lines.
    pub async fn actions(
        &self,
        workspace: &Workspace,
        lines: &Lines,
        deadline: Instant,
    ) -> Result<Offers, Fault> {
        let offered = self.offered(workspace, lines, deadline).await?;
        let all = offered.all.iter().map(|action| to_action(action)).collect();
        Ok(Offers { all, server: offered.server.name, freshness: offered.freshness })
    }

    /// What one of them would change.
    pub async fn action(
        &self,
        workspace: &Workspace,
        lines: &Lines,
        title: &str,
        deadline: Instant,
    ) -> Result<Change, Fault> {
        let since = Since::now();
        let mut shown: Vec<Snapshot> = Vec::new();
        for _ in 0..MAX_AGAIN {
            let offered = self.offered(workspace, lines, deadline).await?;
            let action = chosen(&offered, title)?;
            let (edit, made) = edit_of(&offered, action, deadline).await?;
            let told = told::files_of(&edit);
            let plan = planned(workspace, &offered.subject, &edit, made, offered.agreed.encoding).await?;
            if plan.is_empty() {
                let message = format!("{} changes no file.", action.title);
                return Err(Fault::new(Kind::NothingToChange, message).hint("Choose another action."));
            }
            shown.retain(|known| known.path != offered.subject.snapshot.path);
            let known: Vec<Snapshot> = offered.subject.shown().into_iter().chain(shown.clone()).collect();
            let unsure = self.unsure(workspace, &offered.server, told, &known, since, deadline).await?;
            if unsure.is_empty() {
                return Ok(Change::new(action.title.clone(), plan, offered.subject.view.unsaved));
            }
            // What the server may know otherwise it is shown before it is asked again.
            self.show(&offered.server, &unsure, deadline).await?;
            shown.retain(|known| unsure.iter().all(|other| other.path != known.path));
            shown.extend(unsure);
        }
        Err(changes(shown.first().map_or(Path::new(&lines.file), |snapshot| &snapshot.path)))
    }

    async fn offered(
        &self,
        workspace: &Workspace,
        lines: &Lines,
        deadline: Instant,
    ) -> Result<Offered, Fault> {
        let subject = self.open(workspace, &lines.file, deadline).await?;
        let server = self
            .server_for(&subject)
            .map_err(|why| Fault::new(Kind::NoServer, format!("No code actions for this file: {why}.")))?;
        let text = subject.snapshot.text.clone();
        let n_lines = text.n_lines().max(1) as u32;
        if lines.first == 0 || lines.last < lines.first || lines.first > n_lines {
            let message = format!(
                "Lines {} to {} are not in the file, which has {n_lines} lines.",
                lines.first, lines.last
            );
            return Err(Fault::new(Kind::InvalidRange, message).hint("Lines count from 1."));
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
        let mut all: Vec<Kept<CodeAction>> = Vec::new();
        let (mut last, mut freshness) = (None, Freshness::Settled);
        for range in ranges(&text, lines, n_lines) {
            let ask = ask_about(&subject, range, &problems, lines.kind.as_deref());
            let (answered, of_one) = self.ask_settled(&server, ask, deadline).await?;
            freshness = freshness.and(of_one);
            for action in list::<Kept<CodeAction>>(&answered.result) {
                let is_known = all.iter().any(|known| to_action(known) == to_action(&action));
                let is_wanted = lines.kind.as_ref().is_none_or(|kind| {
                    to_action(&action).kind.is_none_or(|own| own.starts_with(kind.as_str()))
                });
                if is_wanted && !is_known {
                    all.push(action);
                }
            }
            last = Some(answered.agreed);
        }
        all.retain(|action| is_usable(action));
        let freshness = subject.freshness(freshness);
        Ok(Offered { subject, server, all, agreed: last.unwrap_or_default(), freshness })
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
    let context = match kind {
        Some(kind) => json!({"diagnostics": problems, "triggerKind": 1, "only": [kind]}),
        None => json!({"diagnostics": problems, "triggerKind": 1}),
    };
    let params = Arc::new(move |agreed: &Agreed| {
        let place = |place: Position| text.position(text.offset(place, Encoding::Utf32), agreed.encoding);
        let range = Range { start: place(range.start), end: place(range.end) };
        json!({"textDocument": {"uri": uri}, "range": range, "context": context})
    });
    Ask { method: "textDocument/codeAction", params, show: subject.shown() }
}

/// Whether it can be looked at before it is made: an edit, or what leads to one. VS Code makes what its commands do at
/// once.
fn is_usable(action: &CodeAction) -> bool {
    let is_of_editor = matches!(action.kind, Some(Or::More(_)));
    let leads_to_edit = action.edit.is_some() || action.data.is_some();
    action.disabled.is_none() && (leads_to_edit || (action.command.is_some() && !is_of_editor))
}

/// The one action of that title, or with that in its title.
fn chosen<'a>(offered: &'a Offered, title: &str) -> Result<&'a Kept<CodeAction>, Fault> {
    let titles = || -> Vec<&str> { offered.all.iter().map(|action| action.title.as_str()).collect() };
    let wanted = title.trim().to_lowercase();
    let is_exact = |action: &&Kept<CodeAction>| action.title.to_lowercase() == wanted;
    let holds = |action: &&Kept<CodeAction>| action.title.to_lowercase().contains(&wanted);
    let mut found: Vec<_> = offered.all.iter().filter(is_exact).take(1).collect();
    if found.is_empty() {
        found = offered.all.iter().filter(holds).collect();
    }
    let [action] = found[..] else {
        let (kind, message) = match found.is_empty() {
            true => (Kind::ActionNotFound, format!("Nothing like {title:?} is offered for these lines.")),
            false => (Kind::AmbiguousAction, format!("{title:?} could be any of {} actions.", found.len())),
        };
        let error = Fault::new(kind, message).hint("Use the whole title of one of the candidates.");
        return Err(error.detail("candidates", titles()));
    };
    Ok(action)
}

fn to_action(action: &CodeAction) -> Action {
    let kind = action.kind.as_ref().map(|(Or::Plain(kind) | Or::More(Valued { value: kind }))| kind.clone());
    Action {
        title: action.title.clone(),
        kind: kind.filter(|kind| !kind.is_empty()),
        is_preferred: action.is_preferred,
    }
}

/// The edit that an action stands for: in it, in what the server adds when asked, or in what its command asks for.
/// With the files that the command made itself.
async fn edit_of(
    offered: &Offered,
    action: &Kept<CodeAction>,
    deadline: Instant,
) -> Result<(Value, Vec<PathBuf>), Fault> {
    let (server, subject) = (&offered.server, &offered.subject);
    if let Some(edit) = &action.edit {
        return Ok((edit.clone(), Vec::new()));
    }
    let resolves = offered.agreed.capabilities.code_action_provider.resolve_provider;
    let action = match resolves && action.data.is_some() {
        true => resolve(server, "codeAction/resolve", action, subject, deadline).await?,
        false => action.clone(),
    };
    if let Some(edit) = &action.edit {
        return Ok((edit.clone(), Vec::new()));
    }
    let (command, arguments) = match &action.command {
        Some(Or::Plain(name)) => (name, &action.arguments),
        Some(Or::More(Command { command, arguments })) => (command, arguments),
        None => return Ok((Value::Null, Vec::new())),
    };
    let params = json!({"command": command, "arguments": arguments});
    let ask = Ask::new("workspace/executeCommand", params, subject.shown());
    let before = SystemTime::now();
    let edit = server.ask(ask, deadline).await.map_err(server_error)?.result;
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
        let mut all: Vec<CodeAction> = list(&all);
        all.retain(is_usable);
        let titles: Vec<&str> = all.iter().map(|action| action.title.as_str()).collect();
        assert_eq!(titles, ["edit", "later", "command"]);
    }
}
