//! What the servers find wrong: asked for where they can be asked, otherwise as they told it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::documents::Snapshot;
use super::lsp::answers::{FileDiagnostics, ProjectDiagnostics};
use super::lsp::{self, Diagnostic};
use super::server::{Ask, Server};
use super::servers::root_of;
use super::told::Since;
use super::types::{Freshness, Problem, Problems, Subject, View};
use super::{CodeIndex, ask_settled, closing, files, freshness_of, is_own, server_error, wait_settled};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::trees::{Trees, Whose};
use baton_agent_base::walk;
use baton_agent_base::wire::read;
use baton_agent_base::workspace::Workspace;

/// Files that are asked about at once, when a server cannot be asked for the whole project.
const N_AT_ONCE: usize = 8;
/// Files that are looked at to learn which languages a project is in.
const MAX_COUNTED: usize = 20_000;
/// Projects that are checked, each of one language and with a root of its own; fewer than servers may run at once.
const MAX_PROJECTS: usize = 6;
/// For a project in languages that the table does not know.
const NO_LANGUAGE: &str =
    "`baton servers list` shows which files have one; an entry in servers.json adds a server for others.";
/// What VS Code does not tell of a project.
const ONLY_OPENED: &str = "VS Code checks what it has open, and little else: name a file_path for more.";
/// A server that tells by itself is done when it has been silent so long.
const SILENCE: Duration = Duration::from_millis(400);

impl CodeIndex {
    /// The problems in one file.
    pub async fn file_problems(
        &self,
        workspace: &Workspace,
        given: &str,
        deadline: Instant,
    ) -> Result<Problems, Fault> {
        let subject = self.open(workspace, given, deadline).await?;
        let server = self
            .server_for(&subject)
            .map_err(|why| Fault::new(Kind::NoServer, format!("Cannot check {given}: {why}.")))?;
        self.sync(workspace, Some(deadline)).await;
        let (items, freshness) = match self.inner.editor.as_ref().filter(|_| subject.view.is_served) {
            Some(editor) => editor.problems(&subject.snapshot.path, deadline).await?,
            None => problems_of(&server, subject.shown(), deadline).await?,
        };
        let freshness = subject.freshness(freshness);
        let mut all = with_file(&subject.snapshot.path, items);
        sort(&mut all);
        let notes = no_environment(&server, &all).into_iter().collect();
        Ok(Problems { all, servers: vec![server.name.clone()], freshness, notes })
    }

    /// The problems in all files: of the servers that run, or of those for the languages that the project is in.
    pub async fn all_problems(&self, workspace: &Workspace, deadline: Instant) -> Result<Problems, Fault> {
        let since = Since::now();
        let mut problems = Problems {
            all: Vec::new(),
            servers: Vec::new(),
            freshness: Freshness::Settled,
            notes: Vec::new(),
        };
        let mut by_editor = None;
        let (examples, n_left_out) = self.examples(workspace, deadline).await?;
        if n_left_out > 0 {
            let why = format!("{n_left_out} more projects in the window's folders were not checked");
            problems.notes.push(format!("{why}: name a file_path for them."));
            problems.freshness = Freshness::Incomplete(why);
        }
        for subject in examples {
            match self.server_for(&subject) {
                Ok(_) if subject.view.is_served => by_editor = self.inner.editor.as_ref(),
                Ok(_) => {}
                Err(why) if problems.notes.len() < MAX_PROJECTS => problems.notes.push(why),
                Err(_) => {}
            }
        }
        let servers = self.started();
        if let Some(editor) = by_editor {
            let found = editor.all_problems(deadline).await?;
            let mut trees = workspace.trees();
            let ours = found.into_iter().filter(|(path, _)| is_ours(&mut trees, path));
            problems.all.extend(ours.flat_map(|(path, items)| with_file(&path, items)));
            problems.servers.push(editor.server().name.clone());
            problems.notes.push(ONLY_OPENED.to_owned());
        }
        if servers.is_empty() && by_editor.is_none() {
            return Err(Fault::new(Kind::NoServer, "No language server can check this project.")
                .hint(problems.notes.first().cloned().unwrap_or_else(|| NO_LANGUAGE.to_owned())));
        }
        self.sync(workspace, Some(deadline)).await;
        // All at once: none waits for the time that another takes.
        let asked = servers.iter().map(|server| self.problems_of_project(server, workspace, since, deadline));
        for (server, found) in servers.iter().zip(join_all(asked).await) {
            match found {
                Ok((mut found, freshness, note)) => {
                    found.retain(|problem| is_own(server, &servers, &problem.file));
                    problems.notes.extend(no_environment(server, &found));
                    problems.all.extend(found);
                    problems.notes.extend(note);
                    problems.freshness = problems.freshness.and(freshness);
                    problems.servers.push(server.name.clone());
                }
                Err(error) => {
                    let why = error.message.trim_end_matches('.').to_owned();
                    problems.freshness = problems.freshness.and(Freshness::Incomplete(why));
                    problems.notes.push(error.message);
                }
            }
        }
        if problems.servers.is_empty() {
            let why = problems.notes.pop().unwrap_or_default();
            return Err(Fault::new(Kind::ServerUnavailable, why).hint("Try again, with a longer timeout."));
        }
        sort(&mut problems.all);
        Ok(problems)
    }

    /// One file for each project of each language in the window's folders, those with most files, and how many projects
    /// are left out.
    pub(super) async fn examples(
        &self,
        workspace: &Workspace,
        deadline: Instant,
    ) -> Result<(Vec<Subject>, usize), Fault> {
        let (index, workspace) = (self.clone(), workspace.clone());
        let found = tokio::task::spawn_blocking(move || {
            let mut roots: HashMap<(String, PathBuf), PathBuf> = HashMap::new();
            // By server and root: files, one of them, its folder in the window.
            let mut counted: BTreeMap<(String, PathBuf), (usize, PathBuf, PathBuf)> = BTreeMap::new();
            for folder in workspace.folders() {
                for path in walk::files(std::slice::from_ref(&folder.path)).take(MAX_COUNTED) {
                    let specs = index.table().specs();
                    let spec = specs.iter().find(|spec| spec.language_of(&path).is_some());
                    let Some((spec, parent)) = spec.zip(path.parent()) else { continue };
                    let root = roots.entry((spec.name.clone(), parent.to_owned()));
                    let root = root.or_insert_with(|| root_of(spec, &path, &folder.path)).clone();
                    let known = counted.entry((spec.name.clone(), root));
                    known.or_insert_with(|| (0, path, folder.path.clone())).0 += 1;
                }
            }
            let mut counted: Vec<_> = counted.into_values().collect();
            counted.sort_by_key(|(count, _, _)| std::cmp::Reverse(*count));
            let n_left_out = counted.len().saturating_sub(MAX_PROJECTS);
            let opened = counted.into_iter().take(MAX_PROJECTS).filter_map(|(_, path, folder)| {
                Some(Subject { snapshot: files::read(&path).ok()?, folder, view: View::default() })
            });
            (opened.collect::<Vec<_>>(), n_left_out)
        });
        let (found, n_left_out) = found.await.map_err(|_| closing())?;
        let mut subjects = Vec::new();
        for subject in found {
            subjects.push(self.in_view(subject, deadline).await);
        }
        Ok((subjects, n_left_out))
    }

    async fn problems_of_project(
        &self,
        server: &Server,
        workspace: &Workspace,
        since: Since,
        deadline: Instant,
    ) -> Result<(Vec<Problem>, Freshness, Option<String>), Fault> {
        let mut trees = workspace.trees().about(&server.root);
        let own = self.own_files(server, workspace).await?;
        let n_files = own.len();
        let Some(first) = own.iter().find_map(|path| files::read(path).ok()) else {
            return Ok((Vec::new(), Freshness::Settled, None));
        };
        let (_, mut freshness) = problems_of(server, vec![first.clone()], deadline).await?;
        if server.activity().pulls_workspace {
            let mut found = workspace_problems(server, &first.path, deadline).await?;
            found.retain(|problem| is_ours(&mut trees, &problem.file));
            let told = found.iter().map(|problem| problem.file.clone()).collect();
            for snapshot in self.unsure(workspace, server, told, &[], since, deadline).await? {
                found.retain(|problem| problem.file != snapshot.path);
                let (items, of_one) = problems_of(server, vec![snapshot.clone()], deadline).await?;
                found.extend(with_file(&snapshot.path, items));
                freshness = freshness.and(of_one);
            }
            return Ok((found, freshness, None));
        }
        let asked = own.into_iter().take(MAX_COUNTED).map(|path| async move {
            if deadline.saturating_duration_since(Instant::now()) < SILENCE {
                return None;
            }
            // One that is gone meanwhile, or no text, has no problems.
            let Ok(snapshot) = files::read(&path) else { return Some((Vec::new(), Freshness::Settled)) };
            let (items, freshness) = problems_of(server, vec![snapshot], deadline).await.ok()?;
            Some((with_file(&path, items), freshness))
        });
        let (mut found, mut n_asked) = (Vec::new(), 0);
        let mut answers = stream::iter(asked).buffered(N_AT_ONCE);
        while let Some(answer) = answers.next().await {
            if let Some((items, of_one)) = answer {
                n_asked += 1;
                found.extend(items);
                freshness = freshness.and(of_one);
            }
        }
        if n_asked < n_files {
            let why = format!("{} was asked about {n_asked} of {n_files} files", server.name);
            let note = format!("{why}: raise timeout, or name a file_path.");
            return Ok((found, Freshness::Incomplete(why), Some(note)));
        }
        for (path, published) in server.all_published() {
            if !published.is_current || !is_ours(&mut trees, &path) {
                continue;
            }
            if !found.iter().any(|problem: &Problem| problem.file == path) {
                found.extend(with_file(&path, published.items.to_vec()));
            }
        }
        Ok((found, freshness, None))
    }

    /// The files of the project that a server serves.
    async fn own_files(&self, server: &Server, workspace: &Workspace) -> Result<Vec<PathBuf>, Fault> {
        let Some(spec) = self.spec_of(server) else { return Ok(Vec::new()) };
        let root = server.root.to_path_buf();
        let is_in_window = workspace.folders().iter().any(|folder| root.starts_with(&folder.path));
        if !is_in_window {
            return Ok(Vec::new());
        }
        let read = tokio::task::spawn_blocking(move || {
            walk::files(&[root])
                .filter(|path| spec.language_of(path).is_some())
                .take(MAX_COUNTED + 1)
                .collect()
        });
        read.await.map_err(|_| closing())
    }
}

/// Whether a file is there, and in a tree of the window.
fn is_ours(trees: &mut Trees, path: &Path) -> bool {
    matches!(trees.whose(path), Whose::Own(_)) && trees.other(path).is_none() && path.exists()
}

/// The problems of the first of these files, as soon as the server has looked at its newest text.
pub(super) async fn problems_of(
    server: &Server,
    shown: Vec<Snapshot>,
    deadline: Instant,
) -> Result<(Vec<Diagnostic>, Freshness), Fault> {
    let Some(path) = shown.first().map(|snapshot| snapshot.path.clone()) else {
        return Ok((Vec::new(), Freshness::Settled));
    };
    // Opened first: only then is it known how the server tells.
    server.ask(Ask::new("", Value::Null, shown.clone()), deadline).await.map_err(server_error)?;
    let is_told = || server.published(&path).is_some_and(|published| published.is_current);
    let is_known = server.wait_for(deadline, |activity| activity.pulls || is_told()).await;
    if server.activity().pulls {
        let params = json!({"textDocument": {"uri": lsp::uri(&path)}});
        let ask = Ask::new("textDocument/diagnostic", params, shown);
        let (answered, freshness) = ask_settled(server, ask, deadline).await?;
        // What it also tells by itself counts when it is about the newest text.
        let told = server.published(&path).filter(|published| published.is_current);
        let mut items = told.map(|published| published.items.to_vec()).unwrap_or_default();
        for item in read::<FileDiagnostics>(&answered.result).items.0 {
            if !items.iter().any(|known| known.range == item.range && known.message == item.message) {
                items.push(item);
            }
        }
        return Ok((items, freshness));
    }
    let told = || server.published(&path).map(|published| published.items.to_vec()).unwrap_or_default();
    if !is_known {
        return Ok((told(), Freshness::Stale));
    }
    loop {
        let is_settled = wait_settled(server, deadline).await;
        wait_silent(server, &path, deadline).await;
        // It may have begun to work again meanwhile, as on what includes a header.
        if !is_settled || server.activity().progress.is_none() || Instant::now() >= deadline {
            return Ok((told(), freshness_of(server)));
        }
    }
}

/// Why packages are not found that the program finds: ty knows those of an environment alone.
fn no_environment(server: &Server, found: &[Problem]) -> Option<String> {
    let is_package =
        |problem: &Problem| problem.diagnostic.message.starts_with("Cannot resolve imported module");
    let has_one = || {
        server.root.join(".venv").exists()
            || ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().any(|name| std::env::var_os(name).is_some())
    };
    (*server.name == *"ty" && found.iter().any(is_package) && !has_one()).then(|| {
        "ty looks for packages in the project's .venv, or in what VIRTUAL_ENV or CONDA_PREFIX name, and there is none: \
         `python` under [tool.ty.environment] in pyproject.toml names another place."
            .to_owned()
    })
}

/// A server that tells by itself often tells twice: what is wrong with the form first, then the rest.
async fn wait_silent(server: &Server, path: &Path, deadline: Instant) {
    let n_told = || server.published(path).map(|published| published.n_told);
    loop {
        let before = n_told();
        let silence = (Instant::now() + SILENCE).min(deadline);
        if !server.wait_for(silence, |_| n_told() != before).await {
            return;
        }
    }
}

/// Asks for the problems of the whole project. A server may hold its answer until something changes, so one file is
/// named with a result that it never gave: that is a change.
async fn workspace_problems(
    server: &Server,
    one_file: &Path,
    deadline: Instant,
) -> Result<Vec<Problem>, Fault> {
    let params = json!({"previousResultIds": [{"uri": lsp::uri(one_file), "value": "baton"}]});
    let ask = Ask::new("workspace/diagnostic", params, Vec::new());
    let answered = server.ask(ask, deadline).await.map_err(server_error)?;
    let reports = read::<ProjectDiagnostics>(&answered.result).items.0.into_iter();
    let of = |report: FileDiagnostics| Some(with_file(&lsp::path(&report.uri)?, report.items.0));
    Ok(reports.filter_map(of).flatten().collect())
}

fn with_file(path: &Path, items: Vec<Diagnostic>) -> Vec<Problem> {
    items.into_iter().map(|diagnostic| Problem { file: path.to_owned(), diagnostic }).collect()
}

fn sort(all: &mut [Problem]) {
    all.sort_by(|left, right| {
        let key = |problem: &Problem| (problem.diagnostic.range.start, problem.diagnostic.severity);
        left.file.cmp(&right.file).then_with(|| key(left).cmp(&key(right)))
    });
}
