//! Taking back the last change of a client: all of it, as a change like any other, or nothing.

use std::path::{Path, PathBuf};

use super::change::{folders_of, is_inside};
use super::journal::{TURN_LIMIT, Turn};
use super::kept;
use super::plan::Plan;
use super::write::{Trace, write_all};
use super::{CodeIndex, closing};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::workspace::Workspace;

/// Files that a refusal names.
const MAX_NAMED: usize = 5;

impl CodeIndex {
    /// Undoes the last change that the client made in the window's folders, and tells what was done for it.
    pub async fn undo(&self, workspace: &Workspace, client: &str) -> Result<Plan, Fault> {
        if self.inner.editor.is_some() {
            let message = "Changes in this window are VS Code's to undo.";
            return Err(Fault::new(Kind::Unsupported, message)
                .hint("Ask the user to undo it in the editor, or edit the files once more."));
        }
        let (index, workspace, client) = (self.clone(), workspace.clone(), kept::client(client));
        let undone = tokio::task::spawn_blocking(move || index.undo_now(&workspace, &client));
        undone.await.map_err(|_| closing())?
    }

    fn undo_now(&self, workspace: &Workspace, client: &str) -> Result<Plan, Fault> {
        let folders = folders_of(workspace);
        let turn = self.inner.ledger.turn(&folders, TURN_LIMIT)?;
        self.add_news(turn.undo_left());
        let mut trees = workspace.trees();
        let is_here = |path: &Path| is_inside(path, &folders) && trees.other(path).is_none();
        undo_last(&turn, client, is_here, |plan| self.ensure_unprotected(workspace, plan))
    }
}

/// Undoes the last change of a client that is about these places. `ensure`: whether the user allows it.
pub(crate) fn undo_last(
    turn: &Turn,
    client: &str,
    is_here: impl FnMut(&Path) -> bool,
    ensure: impl FnOnce(&Plan) -> Result<(), Fault>,
) -> Result<Plan, Fault> {
    let (place, record) = turn.last_of(client, is_here).ok_or_else(nothing)?;
    if !record.gap.is_empty() {
        let message = format!("The last change cannot be undone: {}.", record.gap);
        return Err(Fault::new(Kind::Unsupported, message).hint("Change the files back by hand."));
    }
    let plan = record.back().map_err(|changed| changed_since(&changed))?;
    ensure(&plan)?;
    write_all(&plan, turn, Trace::Undo(&place))?;
    record.finish();
    Ok(plan)
}

fn nothing() -> Fault {
    Fault::new(Kind::NothingToUndo, "There is no change of yours left to undo in this window.")
        .hint("What this client changed with these tools can be undone for a day.")
}

fn changed_since(changed: &[PathBuf]) -> Fault {
    let mut names: Vec<String> =
        changed.iter().take(MAX_NAMED).map(|path| path.display().to_string()).collect();
    if changed.len() > MAX_NAMED {
        names.push(format!("{} more", changed.len() - MAX_NAMED));
    }
    let have = if changed.len() == 1 { "has" } else { "have" };
    let message = format!("{} {have} changed since; nothing was undone.", names.join(", "));
    Fault::new(Kind::ChangedMeanwhile, message)
        .hint("Edit what is there now; no earlier change can be undone before it.")
}
