//! VS Code in the place of a language server: requests of the protocol become commands of VS Code's, and their
//! results answers of the protocol.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_proto::shim::{CodeCommand, CodeResult, ExecuteInEditor, OpenInEditor};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::task::sleep_until;
use super::{Activity, Agreed, Answered, Ask, Command, ServerError};
use crate::files::{self, on_disk};
use crate::lsp::answers::TextDocument;
use crate::lsp::lenient::list;
use crate::lsp::{self, Position, Range};
use crate::text::Encoding;
use crate::types::{ChangeKind, FileChange};
use baton_agent_base::shim::{Shim, ShimError};
use baton_agent_base::wire::{bodies, read};

/// Its name in answers.
pub(super) const NAME: &str = "vscode";
/// Items that VS Code completes to the last detail.
const MAX_RESOLVED: u64 = 50;
/// Files that changed on disk since the last call and are shown to VS Code before the next; more change only when a
/// whole tree does.
const MAX_SHOWN: usize = 50;
/// How long that may take; the extension waits two seconds for each file, for all at once.
const SHOW_TIMEOUT: Duration = Duration::from_secs(5);

/// What was not shown VS Code comes to by itself; so long after it changed, its extensions are taken to know of it.
const BY_ITSELF: Duration = Duration::from_secs(3);

/// Answers until nobody can ask any more.
pub(super) async fn run(
    shim: Shim,
    mut commands: mpsc::Receiver<Command>,
    activity: watch::Sender<Activity>,
) {
    let host = Host { shim, agreed: Arc::new(agreed()), warm: Arc::default() };
    let mut reads_until = None;
    loop {
        let command = tokio::select! {
            command = commands.recv() => command,
            () = sleep_until(reads_until) => {
                reads_until = None;
                activity.send_modify(|activity| activity.progress = None);
                continue;
            }
        };
        let Some(command) = command else { return };
        match command {
            Command::Ask { ask, mut reply, .. } => {
                let host = host.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        answered = host.answer(&ask) => drop(reply.send(answered)),
                        // Its client went away. VS Code cannot be told to stop.
                        () = reply.closed() => {}
                    }
                });
            }
            Command::Cancel { .. } => {}
            // What is asked afterwards waits for it.
            Command::Changed { changes } => {
                if !host.show(&changes).await {
                    reads_until = Some(Instant::now() + BY_ITSELF);
                    let what = format!("reading {} changed files", changes.len());
                    activity.send_modify(|activity| activity.progress = Some(what));
                }
            }
            Command::Stop { reply } => drop(reply.send(())),
        }
    }
}

fn agreed() -> Agreed {
    Agreed { encoding: Encoding::Utf16, ..Agreed::default() }
}

#[derive(Clone)]
struct Host {
    shim: Shim,
    agreed: Arc<Agreed>,
    /// Kinds of files for which a request was answered that only those answer who have read the project.
    warm: Arc<Mutex<HashSet<String>>>,
}

impl Host {
    /// VS Code watches the disk itself, and tells its extensions when it comes to it. A file that it has open is
    /// another matter: it is read at once, and what the extensions know of it is what was read. False when that was
    /// not done with all of them.
    async fn show(&self, changes: &[FileChange]) -> bool {
        let there = changes.iter().filter(|(_, kind)| *kind != ChangeKind::Deleted);
        let mut paths: Vec<PathBuf> = there.map(|(path, _)| path.clone()).collect();
        let is_all = paths.len() <= MAX_SHOWN;
        paths.truncate(MAX_SHOWN);
        let read = tokio::task::spawn_blocking(move || {
            paths.iter().filter_map(|path| files::read(path).ok()).collect::<Vec<_>>()
        });
        let shown = read.await.unwrap_or_default().into_iter().map(|snapshot| {
            let shim = self.shim.clone();
            async move {
                if let Err(error) = shim.ask::<OpenInEditor>(on_disk(&snapshot)).await {
                    tracing::debug!(%error, path = %snapshot.path.display(), "is not opened by VS Code");
                }
            }
        });
        let is_in_time =
            tokio::time::timeout(SHOW_TIMEOUT, futures_util::future::join_all(shown)).await.is_ok();
        is_all && is_in_time
    }

    async fn answer(&self, ask: &Ask) -> Result<Answered, ServerError> {
        let params = (ask.params)(&self.agreed);
        let asked: Asked = read(&params);
        let result = match ask.method {
            "" => Value::Null,
            "textDocument/references" => self.references(&asked).await?,
            "textDocument/rename" => {
                self.warm_up(&asked).await?;
                self.one("vscode.executeDocumentRenameProvider", asked.at([json!(asked.new_name)])).await?
            }
            "textDocument/documentSymbol" => {
                self.one("vscode.executeDocumentSymbolProvider", vec![asked.file()]).await?
            }
            "textDocument/definition" => self.one("vscode.executeDefinitionProvider", asked.at([])).await?,
            "textDocument/hover" => {
                let hovers = self.one("vscode.executeHoverProvider", asked.at([])).await?;
                let parts = list::<Hover>(&hovers).into_iter().flat_map(|hover| hover.contents);
                json!({"contents": parts.collect::<Vec<_>>()})
            }
            "textDocument/prepareCallHierarchy" => {
                self.kept("vscode.prepareCallHierarchy", asked.at([])).await?
            }
            "callHierarchy/incomingCalls" => {
                self.one("vscode.provideIncomingCalls", vec![json!({"$kept": asked.item.kept})]).await?
            }
            "callHierarchy/outgoingCalls" => {
                self.one("vscode.provideOutgoingCalls", vec![json!({"$kept": asked.item.kept})]).await?
            }
            "workspace/symbol" => {
                self.one("vscode.executeWorkspaceSymbolProvider", vec![json!(asked.query)]).await?
            }
            "textDocument/completion" => {
                let more = [Value::Null, json!(MAX_RESOLVED)];
                self.one("vscode.executeCompletionItemProvider", asked.at(more)).await?
            }
            "completionItem/resolve" | "codeAction/resolve" => params,
            "textDocument/codeAction" => {
                let Range { start, end } = asked.range;
                let range = json!({"$range": [start.line, start.character, end.line, end.character]});
                let arguments = vec![asked.file(), range, Value::Null, json!(MAX_RESOLVED)];
                self.one("vscode.executeCodeActionProvider", arguments).await?
            }
            other => {
                let message = format!("VS Code has nothing for {other}");
                return Err(ServerError::Refused { server: NAME.to_owned(), message });
            }
        };
        Ok(Answered { result, agreed: self.agreed.clone() })
    }

    /// VS Code always counts the declaration.
    async fn references(&self, asked: &Asked) -> Result<Value, ServerError> {
        self.warm_up(asked).await?;
        let found = self.one("vscode.executeReferenceProvider", asked.at([])).await?;
        if asked.context.include_declaration {
            return Ok(found);
        }
        let defined = self.one("vscode.executeDefinitionProvider", asked.at([])).await?;
        let defined = lsp::locations(&defined);
        let is_use = |one: &Value| {
            lsp::locations(one).iter().all(|at| {
                !defined.iter().any(|known| known.uri == at.uri && known.range.start == at.range.start)
            })
        };
        Ok(found.as_array().into_iter().flatten().filter(|one| is_use(one)).cloned().collect())
    }

    /// While it still reads the project, VS Code's TypeScript answers from open files alone, without saying so. Calls
    /// it only tells once it has read everything, so they are asked for once before.
    async fn warm_up(&self, asked: &Asked) -> Result<(), ServerError> {
        let kind = asked.text_document.uri.rsplit('.').next().unwrap_or_default().to_owned();
        if self.warm().contains(&kind) {
            return Ok(());
        }
        // A language without calls refuses at once, which is as good.
        let _ = self.one("vscode.prepareCallHierarchy", asked.at([])).await;
        self.warm().insert(kind);
        Ok(())
    }

    fn warm(&self) -> parking_lot::MutexGuard<'_, HashSet<String>> {
        self.warm.lock()
    }

    async fn one(&self, command: &str, arguments: Vec<Value>) -> Result<Value, ServerError> {
        Ok(self.execute(command, arguments, false).await?.result)
    }

    /// Each object of the result knows where VS Code's own is kept.
    async fn kept(&self, command: &str, arguments: Vec<Value>) -> Result<Value, ServerError> {
        let CodeResult { mut result, kept } = self.execute(command, arguments, true).await?;
        for (idx, item) in result.as_array_mut().into_iter().flatten().enumerate() {
            if let Value::Object(item) = item {
                item.insert("$kept".to_owned(), json!([kept, idx]));
            }
        }
        Ok(result)
    }

    async fn execute(
        &self,
        command: &str,
        arguments: Vec<Value>,
        keep: bool,
    ) -> Result<CodeResult, ServerError> {
        let command = CodeCommand { command: command.to_owned(), arguments, keep };
        let executed = self.shim.ask::<ExecuteInEditor>(command).await;
        let mut answer = executed.map_err(|error| match error {
            ShimError::Closed => ServerError::ShuttingDown,
            ShimError::Refused(message) | ShimError::Malformed(message) => ServerError::Refused {
                server: NAME.to_owned(),
                message: message.trim_end_matches('.').to_owned(),
            },
        })?;
        count_from_1(&mut answer.result);
        Ok(answer)
    }
}

bodies! {
    pub(super),

    /// What the engine asks, as far as commands need it.
    Asked {
        text_document: TextDocument,
        position: Position,
        range: Range,
        new_name: String,
        query: String,
        item: Item,
        context: Context,
    }

    /// Where VS Code's own is kept.
    Item { #[serde(rename = "$kept")] kept: Value, }

    Context { include_declaration: bool, }

    /// VS Code has one for each of its providers.
    Hover { contents: Vec<Value>, }
}

impl Asked {
    fn file(&self) -> Value {
        json!({"$path": lsp::path(&self.text_document.uri)})
    }

    /// The arguments for a place in a file.
    fn at<const N: usize>(&self, more: [Value; N]) -> Vec<Value> {
        let place = json!({"$position": [self.position.line, self.position.character]});
        [self.file(), place].into_iter().chain(more).collect()
    }
}

/// The protocol's numbers of kinds are one more than VS Code's.
fn count_from_1(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(count_from_1),
        Value::Object(object) => {
            for (name, value) in object {
                match (name.as_str(), value.as_u64()) {
                    ("kind", Some(kind)) => *value = json!(kind + 1),
                    _ => count_from_1(value),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_becomes_arguments() {
        let place =
            json!({"textDocument": {"uri": "file:///w/a%20b.ts"}, "position": {"line": 3, "character": 4}});
        let asked: Asked = read(&place);
        assert_eq!(
            asked.at([json!("new")]),
            [json!({"$path": "/w/a b.ts"}), json!({"$position": [3, 4]}), json!("new")]
        );
        let asked: Asked = read(&json!({"item": {"name": "f", "$kept": [1, 2]}}));
        assert_eq!(asked.item.kept, json!([1, 2]));
    }

    #[test]
    fn kinds_are_those_of_the_protocol() {
        let mut symbols = json!([{"name": "a", "kind": 4, "children": [{"name": "b", "kind": 5}]}]);
        count_from_1(&mut symbols);
        assert_eq!(symbols, json!([{"name": "a", "kind": 5, "children": [{"name": "b", "kind": 6}]}]));
    }
}
