//! VS Code as the code engine sees it: which files it serves, what its user has not saved, and changes made through it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_proto::shim::{
    ApplyInEditor, CodeEdit, CodeEdits, CodeFileEdits, CodeFileOperation, CodeOpened, CodeProblems,
    CodeScope, GetEditorProblems, OpenInEditor,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::documents::{Snapshot, Stamp};
use super::files::{self, FileError, for_editor, on_disk};
use super::lsp::answers::LinkedCode;
use super::lsp::{self, Diagnostic};
use super::plan::{FileEdit, Plan};
use super::search;
use super::server::{Ask, Server};
use super::text::{Encoding, Text, hash};
use super::types::{Freshness, Unsaved, View};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::shim::{Shim, ShimError};

/// An extension that is started for a language may take so long to offer something, and no longer: there is no
/// message for it.
const OFFER_TIMEOUT: Duration = Duration::from_secs(15);
/// How often it is asked meanwhile.
const OFFER_STEP: Duration = Duration::from_millis(100);
/// A language for which nothing was offered is asked about again after so long.
const OFFER_AGAIN: Duration = Duration::from_secs(30);
/// Problems are told in several parts, one shortly after the other.
const SILENCE_MS: u64 = 600;
/// When nothing is told of a new text for so long, the problems are still the same.
const NOTHING_NEW_MS: u64 = 4_000;
/// How often the problems are looked at meanwhile.
const PROBLEMS_STEP: Duration = Duration::from_millis(100);

impl Unsaved {
    /// A file as its user sees it.
    pub fn read(&self, path: &Path) -> Result<Snapshot, FileError> {
        match self.find(path) {
            Some(snapshot) => Ok(snapshot.clone()),
            None => files::read(path),
        }
    }
}

/// A handle on VS Code; clones share it.
#[derive(Clone)]
pub struct CodeEditor {
    shim: Shim,
    server: Server,
    languages: Arc<Mutex<HashMap<String, Offer>>>,
}

/// Whether VS Code has something for a language.
#[derive(Clone, Copy)]
enum Offer {
    Something,
    NothingSince(Instant),
}

impl CodeEditor {
    /// VS Code behind the extension.
    pub fn new(shim: Shim) -> Self {
        Self { server: Server::editor(shim.clone()), shim, languages: Arc::default() }
    }

    /// VS Code in the place of a language server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Has VS Code open a file, waits for what serves its language to come up, and tells what it makes of it.
    pub async fn view(&self, snapshot: &Snapshot, deadline: Instant) -> View {
        let opening = self.shim.ask::<OpenInEditor>(on_disk(snapshot));
        let opened = match tokio::time::timeout_at(deadline.into(), opening).await {
            Ok(Ok(opened)) => opened,
            // VS Code cannot open it: too large for it, or a binary file in its eyes.
            Ok(Err(error)) => {
                tracing::debug!(%error, path = %snapshot.path.display(), "is not opened by VS Code");
                return View::default();
            }
            Err(_) => return View { is_stale: true, is_awaited: true, ..View::default() },
        };
        let is_served = self.is_served(snapshot, &opened, deadline).await;
        let unsaved = opened.unsaved.into_iter().map(|text| {
            // Never equal to a file's, so that the text is let go of once it is saved.
            let stamp = Stamp { modified: None, len: u64::MAX, inode: 0 };
            Snapshot { path: PathBuf::from(text.path), text: Arc::new(Text::new(text.text)), stamp }
        });
        View {
            unsaved: Unsaved(unsaved.collect()),
            is_served,
            is_awaited: !is_served && opened.n_extensions > 0,
            is_stale: !opened.is_current,
            in_tab: opened.in_tab,
        }
    }

    async fn is_served(&self, snapshot: &Snapshot, opened: &CodeOpened, deadline: Instant) -> bool {
        let now = Instant::now();
        let wait_until = match self.languages().get(&opened.language) {
            Some(Offer::Something) => return true,
            Some(Offer::NothingSince(since)) if *since + OFFER_AGAIN > now => return false,
            Some(Offer::NothingSince(_)) => now,
            None if opened.n_extensions == 0 => now,
            None => (now + OFFER_TIMEOUT).min(deadline),
        };
        // Only a text that has symbols tells something by an answer without any.
        let has_symbols = !search::outline(&snapshot.text).is_empty();
        loop {
            if self.has_symbols(snapshot, deadline).await {
                self.languages().insert(opened.language.clone(), Offer::Something);
                return true;
            }
            if !has_symbols {
                return false;
            }
            if Instant::now() >= wait_until {
                // A call that had no time to wait has learnt nothing.
                if wait_until < deadline {
                    let offer = Offer::NothingSince(Instant::now());
                    self.languages().insert(opened.language.clone(), offer);
                }
                return false;
            }
            tokio::time::sleep(OFFER_STEP).await;
        }
    }

    async fn has_symbols(&self, snapshot: &Snapshot, deadline: Instant) -> bool {
        let params = json!({"textDocument": {"uri": lsp::uri(&snapshot.path)}});
        let ask = Ask::new("textDocument/documentSymbol", params, Vec::new());
        let answered = self.server.ask(ask, deadline).await;
        answered.is_ok_and(|answered| answered.result.as_array().is_some_and(|all| !all.is_empty()))
    }

    fn languages(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Offer>> {
        self.languages.lock()
    }

    /// What VS Code finds wrong in a file, once it has looked at its newest text.
    pub async fn problems(
        &self,
        path: &Path,
        deadline: Instant,
    ) -> Result<(Vec<Diagnostic>, Freshness), Fault> {
        loop {
            let found = self.ask_problems(Some(path), deadline).await?;
            let is_told = found.told_age_ms.is_some_and(|age| age >= SILENCE_MS);
            let is_old = found.told_age_ms.is_none() && found.text_age_ms >= NOTHING_NEW_MS;
            let is_over = Instant::now() + PROBLEMS_STEP >= deadline;
            if is_told || is_old || is_over {
                let freshness = if is_told || is_old { Freshness::Settled } else { Freshness::Stale };
                let items = found.files.iter().flat_map(|file| diagnostics(&file.problems)).collect();
                return Ok((items, freshness));
            }
            tokio::time::sleep(PROBLEMS_STEP).await;
        }
    }

    /// What VS Code finds wrong in all files.
    pub async fn all_problems(&self, deadline: Instant) -> Result<Vec<(PathBuf, Vec<Diagnostic>)>, Fault> {
        let found = self.ask_problems(None, deadline).await?;
        Ok(found.files.iter().map(|file| ((&file.path).into(), diagnostics(&file.problems))).collect())
    }

    async fn ask_problems(&self, path: Option<&Path>, deadline: Instant) -> Result<CodeProblems, Fault> {
        let scope = CodeScope { path: path.map(|path| path.display().to_string()) };
        let asked = self.shim.ask::<GetEditorProblems>(scope);
        tokio::time::timeout_at(deadline.into(), asked)
            .await
            .map_err(|_| late())?
            .map_err(|error| gone(&error))
    }

    /// Makes changes in VS Code, all or none. False when VS Code has another text of a file than we know, although
    /// its user changed nothing, also not since the files were looked at.
    pub async fn apply(&self, plan: &Plan, unsaved: &Unsaved) -> Result<bool, Fault> {
        let files = plan.edits.iter().filter_map(|edit| {
            Some(CodeFileEdits {
                path: edit.from.as_ref()?.display().to_string(),
                hash: hash(edit.old.as_str().as_bytes()),
                edits: edit.replacements.iter().map(|(span, new)| to_edit(&edit.old, span, new)).collect(),
            })
        });
        let operations = plan.operations().ok_or_else(|| {
            Fault::new(Kind::UnsupportedEdit, "Files would take each other's names; nothing was changed.")
                .hint("Rename them one after the other, by way of a third name.")
        })?;
        let operations = operations.into_iter().map(|operation| CodeFileOperation {
            from: operation.from.map(|path| path.display().to_string()),
            to: operation.to.map(|path| path.display().to_string()),
            text: operation.text.map(str::to_owned),
        });
        let edits = CodeEdits { files: files.collect(), operations: operations.collect() };
        let applied = self.shim.ask::<ApplyInEditor>(edits).await;
        let applied = applied.map_err(|error| gone(&error))?;
        if let Some(path) = applied.changed {
            if unsaved.all().is_empty() && !self.is_being_changed(plan, Path::new(&path)).await? {
                return Ok(false);
            }
            let message = format!("{path} was changed by someone else; nothing was written.");
            return Err(Fault::new(Kind::ChangedMeanwhile, message).hint("Look again, then try again."));
        }
        match applied.failure {
            None => Ok(true),
            Some(why) => {
                Err(Fault::new(Kind::CannotWrite, format!("The window did not take the change: {why}."))
                    .hint("Look at the files before you try again."))
            }
        }
    }
}

impl CodeEditor {
    /// Whether the user has by now changed one of the plan's files without saving it. `other`: the one of which
    /// VS Code has another text.
    async fn is_being_changed(&self, plan: &Plan, other: &Path) -> Result<bool, Fault> {
        let is_it = |edit: &&FileEdit| edit.from.as_deref() == Some(other);
        let Some(edit) = plan.edits.iter().find(is_it) else { return Ok(true) };
        let opening = self.shim.ask::<OpenInEditor>(for_editor(other, edit.old.as_str()));
        let opened = opening.await.map_err(|error| gone(&error))?;
        // One that is not current is listed, although nobody changed it.
        let is_unsaved = |path: &Path| opened.is_current || path != other;
        let mut unsaved = opened.unsaved.iter().map(|text| Path::new(&text.path));
        Ok(unsaved.any(|path| is_unsaved(path) && plan.has(path)))
    }
}

fn to_edit(text: &Text, span: &std::ops::Range<usize>, new: &str) -> CodeEdit {
    let place = |offset| text.position(offset, Encoding::Utf16);
    let (start, end) = (place(span.start), place(span.end));
    CodeEdit { range: [start.line, start.character, end.line, end.character], text: new.to_owned() }
}

/// VS Code counts severities from 0.
fn diagnostics(problems: &[Value]) -> Vec<Diagnostic> {
    let mut all: Vec<Diagnostic> =
        problems.iter().filter_map(|problem| Diagnostic::deserialize(problem).ok()).collect();
    for problem in &mut all {
        problem.severity = problem.severity.map(|severity| severity.saturating_add(1));
        // With a link to what it means.
        let code = problem.code.as_ref().and_then(|code| LinkedCode::deserialize(code).ok()?.value);
        problem.code = code.or(problem.code.take());
    }
    all
}

fn gone(error: &ShimError) -> Fault {
    Fault::new(Kind::ServerUnavailable, format!("VS Code did not respond: {error}."))
        .hint("Try again in a moment.")
}

fn late() -> Fault {
    Fault::new(Kind::Timeout, "VS Code did not respond in time.")
        .hint("Try again in a moment, or give a longer timeout (seconds).")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_as_a_server_tells_them() {
        let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 2}});
        let linked =
            json!({"range": range, "severity": 0, "message": "a", "code": {"value": "E1", "target": "x"}});
        let all = diagnostics(&[
            linked,
            json!({"message": "no range"}),
            json!({"range": range, "message": "b", "code": 7}),
        ]);
        let told: Vec<_> = all.iter().map(|one| (one.severity, one.code.clone())).collect();
        assert_eq!(told, [(Some(1), Some(json!("E1"))), (None, Some(json!(7)))]);
    }
}
