//! The window's folders on disk: which file a path names, launch.json, settings.json.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_link::blocking;
use serde_json::Value;

use crate::fault::{Fault, Kind};
use crate::launch_config::inputs::{self, Answers, Question};
use crate::launch_config::variables::{Folder, VariableProblem, Variables};
use crate::launch_config::{self, LaunchFile, LaunchProblem, env_file};
use crate::names;
use crate::object::Object;
use crate::paths::{self, Fit, Given, Remote};
use crate::tasks::{self, Step, Surroundings};
use crate::trees::Trees;
use crate::view::View;
use crate::walk::walk;

/// Most files a search looks at.
const MAX_WALKED: usize = 100_000;
/// Longest search.
const MAX_WALK: Duration = Duration::from_secs(3);
/// Candidates that an answer lists.
const MAX_CANDIDATES: usize = 10;
/// Most folders that the coordinator takes, and the longest path of one in bytes.
const MAX_TOLD_FOLDERS: usize = 64;
const MAX_TOLD_PATH: usize = 4_096;
/// Largest launch.json, settings.json or environment file.
const MAX_FILE_LEN: u64 = 4 * 1024 * 1024;

/// What a missing launch.json should hold.
const EXAMPLE: &str = r#"{"version":"0.2.0","configurations":[{"name":"Python: main.py","type":"debugpy","request":"launch","program":"${workspaceFolder}/main.py"}]}"#;

/// The folders of a window; cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace {
    folders: Arc<[Folder]>,
    /// Where the client of a call stands, in one of the folders: relative paths mean that first.
    seen: Option<Arc<Seen>>,
    /// Whose addresses of remote files are files of this window.
    remote: Remote,
    /// What an editor has to launch besides the launch.json of each folder.
    editor_launch: Arc<LaunchFile>,
}

/// Where a client stands.
#[derive(Clone, Debug)]
pub struct Stand {
    /// Its working directory, which may be gone.
    pub folder: PathBuf,
    /// The root of the tree that the directory is in, when it is in one.
    pub tree: Option<PathBuf>,
}

/// A client's folder, in a folder of the window.
#[derive(Debug)]
struct Seen {
    folder: Folder,
    /// Its tree, where that begins below the window's folder: the window has other trees beside it.
    tree: Option<PathBuf>,
}

/// What the launch.json files of all folders hold.
#[derive(Clone, Debug, Default)]
pub struct Configurations {
    /// Configurations with the index of their folder, as written.
    pub configurations: Vec<(usize, Object)>,
    /// Compounds, likewise.
    pub compounds: Vec<(usize, Object)>,
    /// What they can ask a person for, likewise.
    pub inputs: Vec<(usize, Value)>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// The first file that cannot be read, when others can: a name that none of them has may be in it.
    broken: Option<Fault>,
    /// The folders that the indices mean.
    folders: Vec<Folder>,
}

/// A configuration of launch.json that can be started.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its fields; all variables are resolved.
    pub configuration: Object,
    /// What is worth knowing about it.
    pub notes: Vec<String>,
    /// What is run before, in this order.
    pub steps: Vec<Step>,
    /// Whether it is started even if one of these fails.
    pub goes_on: bool,
    /// What is run once it has ended.
    pub after: Vec<Step>,
}

/// A configuration or compound as it is written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Of its launch.json.
    pub folder: PathBuf,
    /// Its fields; variables are still in them.
    pub configuration: Object,
    /// Answers stand in it: it is no longer the one that goes by its name.
    pub is_changed: bool,
}

/// Configurations that are started together.
#[derive(Clone, Debug)]
pub struct Compound {
    /// Their names, as [`Workspace::configuration`] takes them.
    pub parts: Vec<String>,
    /// What is run before the first, and is worth knowing.
    pub before: Prepared,
    /// Whether all end when a client ends one.
    pub stops_all: bool,
}

impl Workspace {
    /// A workspace on these folders; they are made absolute and free of links. Those that cannot be opened are left
    /// out, which is an error when nothing is left.
    pub fn open(folders: &[PathBuf]) -> std::io::Result<Self> {
        let (workspace, missing) = Self::open_some(folders);
        match missing.first() {
            Some(folder) if workspace.folders.is_empty() => {
                let error = std::fs::canonicalize(folder).err();
                let kind = error.as_ref().map_or(std::io::ErrorKind::NotFound, std::io::Error::kind);
                let why = error.map_or_else(String::new, |error| format!(": {error}"));
                Err(std::io::Error::new(kind, format!("{}{why}", folder.display())))
            }
            Some(_) => {
                tracing::warn!(?missing, "cannot open these folders; ignoring them");
                Ok(Self { remote: Remote::Foreign, ..workspace })
            }
            None => Ok(Self { remote: Remote::Foreign, ..workspace }),
        }
    }

    /// The same for an editor's window, which has folders even when none is there; and those that were left out.
    pub fn open_some(folders: &[PathBuf]) -> (Self, Vec<PathBuf>) {
        let mut opened = Vec::new();
        let mut missing = Vec::new();
        for folder in folders {
            match std::fs::canonicalize(folder) {
                Ok(path) => {
                    opened.push(named(path));
                }
                Err(error) => {
                    tracing::debug!(folder = %folder.display(), %error, "a folder cannot be opened");
                    missing.push(folder.clone());
                }
            }
        }
        let editor_launch = Arc::default();
        (Self { folders: opened.into(), seen: None, remote: Remote::Own, editor_launch }, missing)
    }

    /// The same, with what an editor has to launch besides the launch.json of each folder.
    pub fn with_editor_launch(self, editor_launch: Arc<LaunchFile>) -> Self {
        Self { editor_launch, ..self }
    }

    /// The same for a client that stands there; a folder that is in none of the window's means nothing.
    pub fn seen_from(mut self, stand: &Stand) -> Self {
        let folder = paths::clean(&stand.folder);
        let holds = |path: &Path| self.folders.iter().any(|own| path.starts_with(&own.path));
        if holds(&folder) {
            let is_below = |tree: &PathBuf| tree.parent().is_some_and(holds);
            let tree = stand.tree.as_deref().map(paths::clean).filter(is_below);
            self.seen = Some(Arc::new(Seen { folder: named(folder), tree }));
        }
        self
    }

    /// The folders.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// How files are called for the client that the folders are seen by.
    pub fn view(&self) -> View {
        let view = View::new(self.folders.iter().map(|folder| folder.path.clone()));
        match &self.seen {
            Some(seen) => view.seen_from(seen.folder.path.clone(), seen.tree.clone(), Path::is_file),
            None => view,
        }
    }

    /// The trees of the folders, as they are now.
    pub fn trees(&self) -> Trees {
        Trees::new(self.folders.iter().map(|folder| folder.path.clone()))
    }

    /// The absolute folders, as the coordinator is told them: without those that it would refuse the window for.
    pub fn folder_paths(&self) -> Vec<String> {
        let paths = self.folders.iter().map(|folder| folder.path.to_string_lossy().into_owned());
        let is_taken = |path: &String| path.len() <= MAX_TOLD_PATH && !path.chars().any(char::is_control);
        paths.filter(is_taken).take(MAX_TOLD_FOLDERS).collect()
    }

    /// The one file that `given` names: absolute, relative to a folder, an address, or a unique end of a path.
    pub async fn resolve_file(&self, given: &str) -> Result<PathBuf, Fault> {
        let parsed = self.parse(given)?;
        let (workspace, given) = (self.clone(), given.to_owned());
        run_blocking(move || workspace.resolve(&given, &parsed)).await
    }

    /// The same for a file that will be changed: none that is merely called alike.
    pub async fn resolve_exactly(&self, given: &str) -> Result<PathBuf, Fault> {
        let parsed = self.parse(given)?;
        let (workspace, given) = (self.clone(), given.to_owned());
        run_blocking(move || match &parsed {
            Given::Absolute(_) => workspace.resolve(&given, &parsed),
            Given::Relative(path) => {
                workspace.named_file(&given, path)?.ok_or_else(|| workspace.not_found(&given, path))
            }
        })
        .await
    }

    /// What a path means that a client gave.
    pub fn parse(&self, given: &str) -> Result<Given, Fault> {
        paths::parse(given, self.remote).map_err(|problem| {
            Fault::new(Kind::InvalidPath, format!("{:?} {problem}.", shorten(given)))
                .hint("Give an absolute path, or one relative to the window's folder.")
        })
    }

    fn resolve(&self, given: &str, parsed: &Given) -> Result<PathBuf, Fault> {
        match parsed {
            Given::Absolute(path) => file_at(path)?.ok_or_else(|| self.not_found(given, path)),
            Given::Relative(path) => self.resolve_relative(given, path),
        }
    }

    fn resolve_relative(&self, given: &str, path: &Path) -> Result<PathBuf, Fault> {
        if let Some(file) = self.named_file(given, path)? {
            return Ok(file);
        }
        let best = self.search(path);
        match best.as_slice() {
            [] => Err(self.not_found(given, path)),
            [file] => Ok(file.clone()),
            files => Err(ambiguous(given, files)),
        }
    }

    /// The file at that place: seen from the client's folder, from the folder that the path begins with in a window of
    /// several, from each folder. The first of these that has one counts, so that what an answer calls a file is that file.
    /// Only from its own folder a client is led to a file of another tree.
    fn named_file(&self, given: &str, path: &Path) -> Result<Option<PathBuf>, Fault> {
        if let Some(seen) = &self.seen
            && let Some(file) = file_at(&seen.folder.path.join(path))?
        {
            return Ok(Some(file));
        }
        let (mut plain, mut by_name) = (Vec::new(), Vec::new());
        for folder in self.folders.iter() {
            plain.extend(self.own_file_at(&folder.path.join(path))?);
            if let Ok(rest) = path.strip_prefix(&folder.name) {
                by_name.extend(self.own_file_at(&folder.path.join(rest))?);
            }
        }
        let in_order = if self.folders.len() > 1 { [by_name, plain] } else { [plain, by_name] };
        let mut found = in_order.into_iter().find(|files| !files.is_empty()).unwrap_or_default();
        found.sort();
        found.dedup();
        match found.len() {
            0 => Ok(None),
            1 => Ok(found.pop()),
            _ => Err(ambiguous(given, &found)),
        }
    }

    /// The client's tree, where the window has others beside it.
    fn own_tree(&self) -> Option<&PathBuf> {
        self.seen.as_ref()?.tree.as_ref()
    }

    /// The file at a path, unless it is of another tree than the client.
    fn own_file_at(&self, path: &Path) -> Result<Option<PathBuf>, Fault> {
        if self.own_tree().is_some_and(|tree| !paths::clean(path).starts_with(tree)) {
            return Ok(None);
        }
        file_at(path)
    }

    /// Where files are looked for by a part of their path.
    fn searched(&self) -> Vec<PathBuf> {
        match self.own_tree() {
            Some(tree) => vec![tree.clone()],
            None => self.folders.iter().map(|folder| folder.path.clone()).collect(),
        }
    }

    fn not_found(&self, given: &str, path: &Path) -> Fault {
        let given = shorten(given);
        if let Some(seen) = self.seen.as_ref().filter(|seen| path.is_relative() && !seen.folder.path.exists())
        {
            let folder = seen.folder.path.display();
            return Fault::new(Kind::FileNotFound, format!("There is no file {given:?}: {folder} is gone."))
                .hint("Give an absolute path, or start the client again in a folder that is there.");
        }
        // Joining an absolute path gives that path.
        let error = if self.folders.iter().any(|folder| folder.path.join(path).is_dir()) {
            Fault::new(Kind::NotAFile, format!("{given:?} is a folder, not a file."))
        } else {
            Fault::new(Kind::FileNotFound, format!("There is no file {given:?} in this window."))
        };
        let mut alike = path.file_name().map(|name| self.search(Path::new(name))).unwrap_or_default();
        if alike.is_empty() && error.kind == Kind::FileNotFound {
            alike = self.nearest(path);
        }
        if alike.is_empty() {
            let folders: Vec<String> = match &self.seen {
                Some(seen) if seen.tree.is_some() => vec![seen.folder.path.display().to_string()],
                _ => self.folders.iter().map(|folder| folder.path.display().to_string()).collect(),
            };
            return error.hint(format!("Relative paths start at {}.", folders.join(" or ")));
        }
        error.hint("Did you mean one of the candidates?").detail("candidates", shown(&alike))
    }

    /// The files whose names are most like the wanted one.
    fn nearest(&self, wanted: &Path) -> Vec<PathBuf> {
        // Half of the pairs of letters are others after one slip in a name of six letters.
        const LEAST: f64 = 0.5;
        let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folders = self.searched();
        names::nearest(&stem(wanted), files(&folders).map(|path| (stem(&path), path)), LEAST)
    }

    /// The files in the folders whose path ends so, of the best fit there is. What .gitignore names is left out.
    fn search(&self, wanted: &Path) -> Vec<PathBuf> {
        let folders = self.searched();
        let fitting = files(&folders).filter_map(|path| Some((paths::fit(&path, wanted)?, path)));
        let found: Vec<(Fit, PathBuf)> = fitting.collect();
        let Some(best) = found.iter().map(|(fit, _)| *fit).min() else { return Vec::new() };
        let mut files: Vec<PathBuf> =
            found.into_iter().filter(|(fit, _)| *fit == best).map(|(_, path)| path).collect();
        files.sort();
        files.dedup();
        files
    }

    /// Everything in the launch.json files.
    pub async fn configurations(&self) -> Result<Configurations, Fault> {
        let workspace = self.clone();
        run_blocking(move || workspace.read_configurations()).await
    }

    fn read_configurations(&self) -> Result<Configurations, Fault> {
        let mut all = Configurations { folders: self.launch_folders(), ..Configurations::default() };
        let mut problems = Vec::new();
        let mut n_read = 0;
        for (idx, folder) in all.folders.iter().enumerate() {
            match read_launch_file(&folder.path.join(".vscode/launch.json")) {
                Ok(Some(file)) => {
                    n_read += 1;
                    all.configurations.extend(file.configurations.into_iter().map(|entry| (idx, entry)));
                    all.compounds.extend(file.compounds.into_iter().map(|entry| (idx, entry)));
                    all.inputs.extend(file.inputs.into_iter().map(|input| (idx, input)));
                    all.notes.extend(file.notes);
                }
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        n_read += self.add_editor_launch(&mut all);
        match problems.into_iter().next() {
            Some(problem) if n_read == 0 => Err(problem),
            Some(problem) => {
                all.notes.push(problem.message.clone());
                all.broken = Some(problem);
                Ok(all)
            }
            None if n_read == 0 => Err(self.no_launch_file()),
            None => Ok(all),
        }
    }

    /// What a folder has goes before what the editor has of that name; how many files that makes.
    fn add_editor_launch(&self, all: &mut Configurations) -> usize {
        let LaunchFile { configurations, compounds, inputs, notes } = &*self.editor_launch;
        if all.folders.is_empty() || configurations.is_empty() && compounds.is_empty() {
            return 0;
        }
        let is_new = |known: &[(usize, Object)], entry: &Object| {
            let name = launch_config::name_of(entry);
            name.is_some() && known.iter().all(|(_, known)| launch_config::name_of(known) != name)
        };
        for entry in configurations {
            if is_new(&all.configurations, entry) {
                all.configurations.push((0, entry.clone()));
            }
        }
        for entry in compounds {
            if is_new(&all.compounds, entry) {
                all.compounds.push((0, entry.clone()));
            }
        }
        all.inputs.extend(inputs.iter().map(|input| (0, input.clone())));
        all.notes.extend(notes.iter().cloned());
        1
    }

    /// Where launch.json files may lie: the client's own folder goes first, where it has one.
    fn launch_folders(&self) -> Vec<Folder> {
        let seen = self.seen.as_deref().map(|seen| &seen.folder);
        let seen = seen.filter(|seen| self.folders.iter().all(|own| own.path != seen.path));
        let seen = seen.filter(|seen| seen.path.join(".vscode/launch.json").is_file());
        seen.into_iter().chain(self.folders.iter()).cloned().collect()
    }

    fn no_launch_file(&self) -> Fault {
        let Some(folder) = self.folders.first() else {
            return Fault::new(Kind::NoFolder, "This window has no folder, so there is no launch.json.")
                .hint("Open a window on a folder, for example with `baton window DIR`.");
        };
        let path = folder.path.join(".vscode/launch.json");
        Fault::new(Kind::LaunchJsonMissing, format!("There is no {}.", path.display()))
            .hint(format!("Create it, for example with: {EXAMPLE}"))
    }

    /// The configuration of that name, with all variables resolved.
    pub async fn configuration(
        &self,
        name: &str,
        file: Option<PathBuf>,
        answers: &Answers,
    ) -> Result<Prepared, Fault> {
        let (workspace, name, answers) = (self.clone(), name.to_owned(), answers.clone());
        run_blocking(move || {
            let all = workspace.read_configurations()?;
            let (folder_idx, raw) = workspace.choose(&all, &name)?;
            let raw = answered(&all, folder_idx, &raw, &answers)?;
            workspace.prepare(&all.folders[folder_idx], raw, file.as_deref())
        })
        .await
    }

    /// The compound of that name; `None` when there is none.
    pub async fn compound(&self, name: &str, file: Option<PathBuf>) -> Result<Option<Compound>, Fault> {
        let (workspace, name) = (self.clone(), name.to_owned());
        run_blocking(move || {
            let all = workspace.read_configurations()?;
            let is_meant = |entry: &Object| launch_config::name_of(entry) == Some(&name);
            let has_one = all.configurations.iter().any(|(_, entry)| is_meant(entry));
            let Some((folder_idx, compound)) = all.compounds.iter().find(|(_, entry)| is_meant(entry)) else {
                return Ok(None);
            };
            if has_one {
                return Ok(None);
            }
            let task = compound.get("preLaunchTask").cloned().unwrap_or_default();
            let only_task = Object::from_iter([("preLaunchTask".to_owned(), task)]);
            let before = workspace.prepare(&all.folders[*folder_idx], only_task, file.as_deref())?;
            let stops_all = compound.get("stopAll").and_then(Value::as_bool) == Some(true);
            Ok(Some(Compound { parts: launch_config::parts_of(compound), before, stops_all }))
        })
        .await
    }

    /// The configuration or compound of that name as it is written, with its folder; what a configuration asks for is
    /// answered.
    pub async fn written_configuration(&self, name: &str, answers: &Answers) -> Result<Written, Fault> {
        let (workspace, name, answers) = (self.clone(), name.to_owned(), answers.clone());
        run_blocking(move || {
            let all = workspace.read_configurations()?;
            let is_meant = |entry: &&(usize, Object)| launch_config::name_of(&entry.1) == Some(&name);
            if let Some((folder_idx, compound)) = all.compounds.iter().find(is_meant) {
                let folder = all.folders[*folder_idx].path.clone();
                return Ok(Written { folder, configuration: compound.clone(), is_changed: false });
            }
            let (folder_idx, raw) = workspace.choose(&all, &name)?;
            let configuration = answered(&all, folder_idx, &raw, &answers)?;
            let folder = all.folders[folder_idx].path.clone();
            Ok(Written { folder, is_changed: configuration != raw, configuration })
        })
        .await
    }

    fn choose(&self, all: &Configurations, name: &str) -> Result<(usize, Object), Fault> {
        let with_folder = |idx: usize, entry: &Object| {
            format!("{} ({})", launch_config::name_of(entry).unwrap_or_default(), all.folders[idx].name)
        };
        let matching: Vec<&(usize, Object)> = all
            .configurations
            .iter()
            .filter(|(idx, entry)| {
                launch_config::name_of(entry) == Some(name) || with_folder(*idx, entry) == name
            })
            .collect();
        // Of several the client's own.
        let is_near = |idx: usize| {
            self.seen.as_ref().is_some_and(|seen| seen.folder.path.starts_with(&all.folders[idx].path))
        };
        let near = matching.iter().find(|(idx, _)| is_near(*idx));
        match near.map_or(matching.as_slice(), std::slice::from_ref) {
            [(idx, entry)] => Ok((*idx, entry.clone())),
            [(first_idx, first), rest @ ..] => {
                if rest.iter().all(|(idx, _)| idx == first_idx) {
                    // The first of the same name in one file, as VS Code does.
                    return Ok((*first_idx, first.clone()));
                }
                let candidates: Vec<String> =
                    matching.iter().map(|(idx, entry)| with_folder(*idx, entry)).collect();
                Err(Fault::new(
                    Kind::AmbiguousConfiguration,
                    format!("Several folders have a configuration {:?}.", shorten(name)),
                )
                .hint("Use one of the candidates as configuration_name.")
                .detail("candidates", candidates))
            }
            [] => Err(unknown_configuration(all, name)),
        }
    }

    fn prepare(&self, folder: &Folder, raw: Object, file: Option<&Path>) -> Result<Prepared, Fault> {
        let settings = read_settings(&folder.path);
        let environment = |name: &str| std::env::var(name).ok();
        let variables = Variables {
            folder,
            folders: &self.folders,
            file,
            home: std::env::home_dir(),
            environment: &environment,
            setting: &|name| dotted(&settings, name),
        };
        let mut raw = launch_config::for_platform(raw, std::env::consts::OS);
        let mut notes = Vec::new();
        let mut steps = |name: &str, was: &str| match raw.remove(name).filter(|task| !task.is_null()) {
            Some(task) => steps_of(&task, &variables).unwrap_or_else(|why| {
                notes.push(format!("{name} {task} {was} run: {why}."));
                Vec::new()
            }),
            None => Vec::new(),
        };
        let (steps, after) = (steps("preLaunchTask", "was not"), steps("postDebugTask", "will not be"));
        let mut configuration =
            launch_config::variables::resolve(&raw, &variables).map_err(variable_error)?;
        merge_env_file(&mut configuration, folder, &environment, &mut notes)?;
        let goes_on = dotted(&settings, "debug.onTaskErrors") == Some("debugAnyway".into());
        Ok(Prepared { configuration, notes, steps, goes_on, after })
    }
}

fn named(path: PathBuf) -> Folder {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Folder { name: name.unwrap_or_default(), path }
}

/// What is run for a task; else why it is not.
fn steps_of(task: &Value, variables: &Variables<'_>) -> Result<Vec<Step>, String> {
    let path = variables.folder.path.join(".vscode/tasks.json");
    let text = read_text(&path).map_err(|fault| fault.message)?;
    let file = launch_config::parse_jsonc(text.as_deref().unwrap_or("{}"))
        .map_err(|problem| format!("{} is broken: {problem}", path.display()))?;
    let chosen = tasks::chosen(&file, task, std::env::consts::OS).map_err(|problem| problem.to_string())?;
    let around = Surroundings {
        folder: &variables.folder.path,
        shell: (variables.environment)("SHELL"),
        is_there: &|path| path.exists(),
    };
    let mut steps = Vec::new();
    for task in chosen {
        let resolved = launch_config::variables::resolve(&tasks::fields(&task), variables);
        let resolved = resolved.map_err(|problem| problem.to_string())?;
        steps.extend(tasks::step(&task, &resolved, &around).map_err(|problem| problem.to_string())?);
    }
    Ok(steps)
}

/// Puts what stands in the file `envFile` under what stands in `env`.
fn merge_env_file(
    configuration: &mut Object,
    folder: &Folder,
    environment: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Result<(), Fault> {
    let Some(Value::String(path)) = configuration.remove("envFile") else { return Ok(()) };
    let path = folder.path.join(path);
    let Some(text) = read_text(&path)? else {
        notes.push(format!("envFile {} does not exist; ignored.", path.display()));
        return Ok(());
    };
    let mut merged = Object::new();
    merged.extend(
        env_file::parse(&text, environment).into_iter().map(|(name, value)| (name, Value::String(value))),
    );
    if let Some(Value::Object(env)) = configuration.remove("env") {
        merged.extend(env);
    }
    configuration.insert("env".to_owned(), Value::Object(merged));
    Ok(())
}

/// A configuration with the answers to what it asks a person for; nobody is asked.
fn answered(
    all: &Configurations,
    folder_idx: usize,
    raw: &Object,
    answers: &Answers,
) -> Result<Object, Fault> {
    // In an editor it would be looked at again, and some variables run commands there.
    if let Some((id, _)) = answers.inputs.iter().find(|(_, value)| value.contains("${")) {
        let what = format!("The value of the input {:?} has a variable in it.", shorten(id));
        return Err(Fault::new(Kind::InvalidArguments, what).hint("Write the value out."));
    }
    let definitions: Vec<Value> =
        all.inputs.iter().filter(|(idx, _)| *idx == folder_idx).map(|(_, input)| input.clone()).collect();
    let (answered, open) = inputs::answer(raw, &definitions, answers);
    if open.is_empty() {
        return Ok(answered);
    }
    let name = launch_config::name_of(raw).unwrap_or_default();
    let questions: Vec<String> = open.iter().map(Question::to_string).collect();
    let what = format!("{:?} asks a person for {}.", shorten(name), questions.join(", "));
    let example = open.iter().filter_map(|question| match question {
        Question::Input { id, .. } => Some((id.clone(), question.example().into())),
        Question::Process => None,
    });
    Err(Fault::new(Kind::NeedsInput, what)
        .hint("Write the values into the configuration, or add a configuration that has them.")
        .detail("inputs", Object::from_iter(example))
        .detail("needs_process", open.contains(&Question::Process)))
}

fn unknown_configuration(all: &Configurations, name: &str) -> Fault {
    let named = |entry: &&(usize, Object)| launch_config::name_of(&entry.1) == Some(name);
    if let Some((_, compound)) = all.compounds.iter().find(named) {
        let parts = launch_config::parts_of(compound);
        return Fault::new(
            Kind::Compound,
            format!("{:?} is a compound, a group of configurations.", shorten(name)),
        )
        .hint(format!("Start its parts one by one: {}.", parts.join(", ")))
        .detail("candidates", parts);
    }
    let names: Vec<&str> =
        all.configurations.iter().filter_map(|(_, entry)| launch_config::name_of(entry)).collect();
    let error = Fault::new(
        Kind::UnknownConfiguration,
        format!("launch.json has no configuration {:?}.", shorten(name)),
    );
    match (names::closest(name, &names), &all.broken) {
        (Some(closest), _) => error.hint(format!("Did you mean {closest:?}?")).detail("candidates", names),
        (None, Some(broken)) => broken.clone(),
        (None, None) if names.is_empty() => error.hint(format!("It has none at all. Example: {EXAMPLE}")),
        (None, None) => error.hint("Use one of the candidates.").detail("candidates", names),
    }
}

fn variable_error(problem: VariableProblem) -> Fault {
    let hint = problem.hint.clone();
    Fault::new(Kind::UnresolvedVariable, format!("{problem}.")).hint(hint)
}

fn read_launch_file(path: &Path) -> Result<Option<LaunchFile>, Fault> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    let file = launch_config::parse(&text).map_err(|problem| {
        let path = path.display();
        let error = Fault::new(Kind::LaunchJsonBroken, format!("{path} is broken: {problem}."));
        match problem {
            LaunchProblem::Syntax { line, column, .. } => error
                .hint("Correct it; comments and trailing commas are fine.")
                .detail("line", line)
                .detail("column", column),
            LaunchProblem::Shape(_) => error.hint(format!("It should look like: {EXAMPLE}")),
        }
    })?;
    Ok(Some(file))
}

/// The settings of a folder; broken ones are none, as in VS Code.
fn read_settings(folder: &Path) -> Value {
    let text = read_text(&folder.join(".vscode/settings.json")).ok().flatten();
    text.and_then(|text| launch_config::parse_jsonc(&text).ok()).unwrap_or_default()
}

/// A setting is written `"a.b": 1`, or `"a": {"b": 1}`.
fn dotted(settings: &Value, name: &str) -> Option<Value> {
    if let Some(value) = settings.get(name) {
        return Some(value.clone());
    }
    name.match_indices('.').find_map(|(at, _)| dotted(settings.get(&name[..at])?, &name[at + 1..]))
}

/// The text of a file; `None` when there is none.
fn read_text(path: &Path) -> Result<Option<String>, Fault> {
    let unreadable = |why: &str| {
        Fault::new(Kind::UnreadableFile, format!("{} cannot be read: {why}.", path.display()))
            .hint("Make it a readable UTF-8 file.")
    };
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(unreadable("it is not a file")),
        Ok(metadata) if metadata.len() > MAX_FILE_LEN => return Err(unreadable("it is larger than 4 MiB")),
        Ok(_) => {}
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(unreadable(&error.to_string())),
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(&error.to_string()))?;
    String::from_utf8(bytes).map(Some).map_err(|_| unreadable("it is not UTF-8"))
}

/// The file at a path without its links, when there is one.
fn file_at(path: &Path) -> Result<Option<PathBuf>, Fault> {
    match std::fs::canonicalize(path) {
        Ok(path) => Ok(path.is_file().then_some(path)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => {
            Err(Fault::new(Kind::UnreadableFile, format!("{} cannot be read: {error}.", path.display()))
                .hint("Check the path and its permissions."))
        }
    }
}

/// The files of the folders, as far as a search goes.
fn files(folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let started = Instant::now();
    let entries = walk(folders, folders).take(MAX_WALKED).take_while(move |_| started.elapsed() <= MAX_WALK);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(ignore::DirEntry::into_path)
}

fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

fn ambiguous(given: &str, files: &[PathBuf]) -> Fault {
    Fault::new(Kind::AmbiguousPath, format!("{:?} could be any of {} files.", shorten(given), files.len()))
        .hint("Give more of the path: use one of the candidates.")
        .detail("candidates", shown(files))
}

fn shown(files: &[PathBuf]) -> Vec<String> {
    files.iter().take(MAX_CANDIDATES).map(|file| file.display().to_string()).collect()
}

/// What a client wrote, bounded.
fn shorten(text: &str) -> String {
    const MAX_SHOWN: usize = 200;
    text.chars().take(MAX_SHOWN).collect()
}

/// The work may have been done.
const LOOK_FIRST: &str = "Check before you repeat it.";

/// Disks can be slow; calls of other clients go on meanwhile.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let is_closing = || Err(Fault::new(Kind::ShuttingDown, "The window is closing.").hint(LOOK_FIRST));
    blocking::finish(work).await.unwrap_or_else(is_closing)
}

#[cfg(test)]
mod tests;
