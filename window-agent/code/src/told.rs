//! What a server tells of files: whether they are of the tree that was asked about, and whether they are as the server
//! knows them. It may know another text of a file whose changes nobody tells it of.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::documents::Snapshot;
use super::lsp;
use super::server::{Answered, Ask, Server};
use super::types::{ChangeKind, FileChange, Freshness};
use super::watch::Watch;
use super::{CodeIndex, Watching, ask_settled, closing, files, server_error};
use baton_agent_base::fault::Fault;
use baton_agent_base::trees::Trees;
use baton_agent_base::workspace::Workspace;

/// Times that a question is asked again because of what changed.
pub(super) const MAX_AGAIN: usize = 3;
/// Files that a server is shown because it may not know them as they are.
const MAX_SHOWN: usize = 50;
/// A file system tells the time of a change as of the last tick of a clock.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// A moment before a call looked at anything: what changes later its servers may not know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since(SystemTime);

impl Since {
    pub(super) fn now() -> Self {
        Self(SystemTime::now())
    }
}

/// What is known of the files that a server tells of.
struct Ground {
    /// Its changes are told up to then.
    since: SystemTime,
    watch: Option<Arc<Watch>>,
    /// What has not changed since the server was started it has read as it is.
    started: Option<SystemTime>,
    trees: Trees,
}

impl CodeIndex {
    /// Asks, and again with those files shown that are told and may have changed without the server's knowing. What
    /// has changed even so makes the answer stale.
    pub(super) async fn ask_told(
        &self,
        workspace: &Workspace,
        server: &Server,
        ask: Ask,
        since: Since,
        deadline: Instant,
    ) -> Result<(Answered, Freshness), Fault> {
        self.ask_shown(workspace, server, ask, since, deadline)
            .await
            .map(|(answered, freshness, _)| (answered, freshness))
    }

    /// The same, with all that the server was shown.
    pub(super) async fn ask_shown(
        &self,
        workspace: &Workspace,
        server: &Server,
        mut ask: Ask,
        since: Since,
        deadline: Instant,
    ) -> Result<(Answered, Freshness, Vec<Snapshot>), Fault> {
        let mut n_again = 0;
        loop {
            let (answered, freshness) = ask_settled(server, ask.clone(), deadline).await?;
            let told = files_of(&answered.result);
            let unsure = self.unsure(workspace, server, told, &ask.show, since, deadline).await?;
            match unsure.is_empty() {
                true => return Ok((answered, freshness, ask.show)),
                false if n_again == MAX_AGAIN => {
                    return Ok((answered, freshness.and(Freshness::Stale), ask.show));
                }
                false => n_again += 1,
            }
            self.show(server, &unsure, deadline).await?;
            ask.show.retain(|shown| unsure.iter().all(|other| other.path != shown.path));
            ask.show.extend(unsure);
        }
    }

    /// Shows files to a server as they are.
    pub(super) async fn show(
        &self,
        server: &Server,
        files: &[Snapshot],
        deadline: Instant,
    ) -> Result<(), Fault> {
        if self.inner.editor.as_ref().is_some_and(|editor| editor.server().name == server.name) {
            let changes = files.iter().map(|snapshot| (snapshot.path.clone(), ChangeKind::Changed));
            server.tell(changes.collect::<Vec<FileChange>>().into()).await;
            return Ok(());
        }
        let shown = server.ask(Ask::new("", Value::Null, files.to_vec()), deadline).await;
        shown.map(drop).map_err(server_error)
    }

    /// Of these files those that the server may know otherwise than they are now. `shown`: what it was shown.
    pub(super) async fn unsure(
        &self,
        workspace: &Workspace,
        server: &Server,
        told: BTreeSet<PathBuf>,
        shown: &[Snapshot],
        Since(since): Since,
        deadline: Instant,
    ) -> Result<Vec<Snapshot>, Fault> {
        let watching = tokio::time::timeout_at(deadline.into(), self.inner.watching.lock()).await;
        let watch = watching.ok().and_then(|watching| match &*watching {
            Watching::On { watch, .. } => Some(watch.clone()),
            _ => None,
        });
        let started = server.activity().started;
        let mut ground = Ground { since, watch, started, trees: workspace.trees() };
        let shown = shown.to_vec();
        let looked = tokio::task::spawn_blocking(move || {
            let unsure = told.into_iter().filter_map(|path| {
                let known = shown.iter().find(|shown| shown.path == path);
                match known {
                    Some(known) => differs(known),
                    None => ground.may_differ(&path).then(|| files::read(&path).ok()).flatten(),
                }
            });
            unsure.take(MAX_SHOWN).collect()
        });
        looked.await.map_err(|_| closing())
    }
}

/// A file that is not as it was shown. One that is not saved is as its user has it.
fn differs(known: &Snapshot) -> Option<Snapshot> {
    let is_of_disk = known.stamp.len != u64::MAX;
    let is_same = known.stamp.modified.is_some() && files::stamp(&known.path) == Some(known.stamp);
    let now = (is_of_disk && !is_same).then(|| files::read(&known.path).ok()).flatten()?;
    (now.text != known.text).then_some(now)
}

impl Ground {
    fn may_differ(&mut self, path: &Path) -> bool {
        // Such places are not told.
        if !path.exists() || self.trees.other(path).is_some() {
            return false;
        }
        if self.watch.as_ref().is_some_and(|watch| watch.has(path)) {
            let is_told = self.watch.as_ref().is_some_and(|watch| watch.has_told(path));
            return !is_told || modified_at(path).is_none_or(|changed| changed >= self.since);
        }
        let started = self.started.zip(changed_at(path));
        started.is_none_or(|(started, changed)| changed + CLOCK_STEP >= started)
    }
}

fn modified_at(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// When a file was last changed or moved.
fn changed_at(path: &Path) -> Option<SystemTime> {
    let metadata = std::fs::metadata(path).ok()?;
    let moved = Duration::new(metadata.ctime().try_into().ok()?, metadata.ctime_nsec().try_into().ok()?);
    Some(metadata.modified().ok()?.max(SystemTime::UNIX_EPOCH + moved))
}

/// The files that an answer names, whatever it is.
pub(super) fn files_of(answer: &Value) -> BTreeSet<PathBuf> {
    fn collect(value: &Value, found: &mut BTreeSet<PathBuf>) {
        let mut take = |text: &str| {
            if text.starts_with("file:") {
                found.extend(lsp::path(text));
            }
        };
        match value {
            Value::String(text) => take(text),
            Value::Array(all) => all.iter().for_each(|one| collect(one, found)),
            Value::Object(object) => {
                object.keys().for_each(|name| take(name));
                object.values().for_each(|one| collect(one, found));
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    collect(answer, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_names_its_files_wherever_they_stand() {
        let answer = json!([
            {"uri": "file:///w/a%20b.py", "range": {}},
            {"location": {"uri": "file:///w/c.py"}, "name": "file"},
            {"changes": {"file:///w/d.py": [], "untitled:x": []}},
        ]);
        let found: Vec<PathBuf> = files_of(&answer).into_iter().collect();
        assert_eq!(found, ["/w/a b.py", "/w/c.py", "/w/d.py"].map(PathBuf::from));
    }
}
