//! Which language server serves a file: a table as data, the user's own entries before it, and where the programs
//! are.
//!
//! In a command line `{installed}` stands for the folder that Baton installed the server into.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_link::folders;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use baton_agent_base::process::Program;
use baton_agent_base::programs::{self, Programs};
use baton_agent_base::rustup;

/// The table of this build.
const TABLE: &str = include_str!("servers.json");
/// Environment variable that names the folder of installed servers.
const SERVERS_VARIABLE: &str = "BATON_SERVERS";
/// Environment variables that start with this name the program of a server: `BATON_SERVER_CLANGD`.
const PROGRAM_VARIABLE: &str = "BATON_SERVER_";
/// Largest table of a user.
const MAX_CONFIG_LEN: u64 = 1024 * 1024;

/// One line of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Its name; one of the user replaces one of ours.
    pub name: String,
    /// The protocol's name of the language, by the extension of a file.
    pub languages: BTreeMap<String, String>,
    /// Command lines; the first one whose program is there is used.
    pub commands: Vec<Vec<String>>,
    /// Files that mark the root of a project.
    #[serde(default)]
    pub markers: Vec<String>,
    /// `initializationOptions`.
    #[serde(default)]
    pub options: Value,
    /// What `workspace/configuration` answers, by section.
    #[serde(default)]
    pub settings: Value,
    /// Whether it builds an index first, so that early answers can miss something.
    #[serde(default)]
    pub indexes: bool,
    /// What is in the line that it logs when it knows the files of the project; before that, answers miss something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knows_files_when_logged: Option<String>,
    /// Whether its answers leave out references, so that each place of the name is asked about too.
    #[serde(default)]
    pub leaves_out_references: bool,
    /// How long it takes to put a new file into its project, in milliseconds; until then it is a project of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regroups_after_ms: Option<u64>,
    /// Whether a file that changes on disk counts only when it is opened.
    #[serde(default)]
    pub reads_only_opened: bool,
    /// Files, one of which it needs to know of files that nobody opened.
    #[serde(default)]
    pub index_needs: Vec<String>,
    /// The token of the progress that it tells of its index. Where the project has one of `index_needs`, that begins
    /// some time after the first file was opened, and answers before it miss something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_progress: Option<String>,
    /// What it may take, in MiB, with all that it starts; 4,096 when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory_mb: Option<u64>,
    /// What to install, by installer.
    #[serde(default)]
    pub install: BTreeMap<String, Vec<String>>,
    /// Arguments that make it print its version.
    #[serde(default)]
    pub version_args: Vec<String>,
    /// How it is told of folders that are none of the project's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_out: Option<LeavesOut>,
    /// Whether its plain text lacks something, such as the line break between a type and what is said of it.
    #[serde(default)]
    pub prefers_markdown: bool,
}

impl ServerSpec {
    /// Whether it lacks in this project what says how files are built that nobody opened.
    pub(crate) fn knows_only_opened(&self, root: &Path) -> bool {
        !self.index_needs.is_empty() && !self.index_needs.iter().any(|file| root.join(file).exists())
    }
}

/// How a server is told of folders that it shall not read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeavesOut {
    /// The objects in `options` that lead to a list of them.
    pub option: Vec<String>,
    /// An entry of that list; `{}` stands for the folder, relative to the root.
    pub entry: String,
}

/// Where servers are looked for.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Folder with a folder for each server that Baton installed.
    pub installed: Option<PathBuf>,
    /// The user's own table.
    pub config: Option<PathBuf>,
    /// The search path for programs.
    pub search_path: Option<OsString>,
    /// Folder for what is known of changes that are being made.
    pub changes: Option<PathBuf>,
    /// Programs that the user has somewhere of their own, by server.
    pub programs: Programs,
}

impl Places {
    /// The user's own places; with `BATON_HOME` set they lie in that folder.
    pub fn from_env() -> Self {
        Self {
            installed: folders::installed("servers", SERVERS_VARIABLE),
            config: folders::config("servers.json"),
            search_path: std::env::var_os("PATH"),
            changes: folders::changes(),
            programs: Programs::from_env(PROGRAM_VARIABLE),
        }
    }
}

/// A server that can be started for a file.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Which.
    pub spec: Arc<ServerSpec>,
    /// How.
    pub(crate) program: Program,
    /// The root of the file's project.
    pub root: PathBuf,
}

/// Why no server serves a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoServer {
    /// None is known for such files.
    Unknown,
    /// These would, but are not installed.
    NotInstalled(Vec<String>),
}

/// All servers, in order of preference.
#[derive(Clone, Debug)]
pub struct Table {
    specs: Vec<Arc<ServerSpec>>,
    /// What is wrong with the user's own table.
    pub problem: Option<String>,
}

impl Table {
    /// Ours, with the user's before it.
    pub fn open(places: &Places) -> Self {
        let built_in: Vec<ServerSpec> =
            serde_json::from_str(TABLE).expect("invariant: servers.json is checked by a test of this file");
        let (own, problem) = match places.config.as_deref().map(read_config) {
            None | Some(Ok(None)) => (Vec::new(), None),
            Some(Ok(Some(own))) => (own, None),
            Some(Err(problem)) => (Vec::new(), Some(problem)),
        };
        let is_replaced = |spec: &ServerSpec| own.iter().any(|own| own.name == spec.name);
        let kept: Vec<ServerSpec> = built_in.into_iter().filter(|spec| !is_replaced(spec)).collect();
        let specs = own.into_iter().chain(kept).map(Arc::new).collect();
        Self { specs, problem }
    }

    /// All of them.
    pub fn specs(&self) -> &[Arc<ServerSpec>] {
        &self.specs
    }

    /// Whether a server, installed or not, serves files of this name.
    pub fn knows(&self, file: &Path) -> bool {
        let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        extension
            .is_some_and(|extension| self.specs.iter().any(|spec| spec.languages.contains_key(&extension)))
    }

    /// The protocol's name of the language of a file.
    pub fn language_of(&self, file: &Path) -> Option<&str> {
        self.specs.iter().find_map(|spec| spec.language_of(file))
    }

    /// The first server that is there for `file`, which lies in the window's folder `folder`.
    pub fn choose(&self, places: &Places, file: &Path, folder: &Path) -> Result<Choice, NoServer> {
        let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let Some(extension) = extension else { return Err(NoServer::Unknown) };
        let mut missing = Vec::new();
        for spec in self.specs.iter().filter(|spec| spec.languages.contains_key(&extension)) {
            let root = root_of(spec, file, folder);
            match find_program(spec, places, &root, folder) {
                Some(mut program) => {
                    program.cwd = Some(root.clone());
                    return Ok(Choice { spec: spec.clone(), program, root });
                }
                None => missing.push(spec.name.clone()),
            }
        }
        Err(if missing.is_empty() { NoServer::Unknown } else { NoServer::NotInstalled(missing) })
    }
}

/// A server on a folder, whatever files are there; `None` when it is not installed.
pub fn choice_of(spec: &Arc<ServerSpec>, places: &Places, folder: &Path) -> Option<Choice> {
    let mut program = find_program(spec, places, folder, folder)?;
    program.cwd = Some(folder.to_owned());
    Some(Choice { spec: spec.clone(), program, root: folder.to_owned() })
}

impl Choice {
    /// The program that is run.
    pub fn path(&self) -> &Path {
        &self.program.path
    }
}

impl ServerSpec {
    /// The same server, told to leave out these folders, as far as it can be told.
    pub(super) fn without(&self, folders: &[PathBuf], root: &Path) -> Self {
        /// What patterns do not take for itself.
        const SIGNS: [char; 8] = ['*', '?', '[', ']', '{', '}', '!', '\\'];
        let mut spec = self.clone();
        let Some(LeavesOut { option, entry }) = &self.leaves_out else { return spec };
        let inside = folders.iter().filter_map(|folder| folder.strip_prefix(root).ok()?.to_str());
        let plain = inside.filter(|folder| !folder.is_empty() && !folder.contains(SIGNS));
        let entries: Vec<Value> = plain.map(|folder| entry.replace("{}", folder).into()).collect();
        if entries.is_empty() {
            return spec;
        }
        let mut place = &mut spec.options;
        for name in option {
            if !place.is_object() {
                *place = json!({});
            }
            place = &mut place[name.as_str()];
        }
        match place {
            Value::Array(all) => all.extend(entries),
            other => *other = entries.into(),
        }
        spec
    }

    /// The protocol's name of the language of a file.
    pub fn language_of(&self, file: &Path) -> Option<&str> {
        let extension = file.extension()?.to_string_lossy().to_lowercase();
        self.languages.get(&extension).map(String::as_str)
    }
}

/// The outermost folder with a marker, not outside the window's folder; without any marker that folder itself.
/// Outermost, because references from one package of a repository to another count.
pub(super) fn root_of(spec: &ServerSpec, file: &Path, folder: &Path) -> PathBuf {
    let has_marker = |dir: &&Path| spec.markers.iter().any(|marker| dir.join(marker).exists());
    let inside = file.ancestors().skip(1).take_while(|dir| dir.starts_with(folder));
    inside.filter(has_marker).last().unwrap_or(folder).to_owned()
}

/// A program of the project itself goes before the machine's.
fn find_program(spec: &ServerSpec, places: &Places, root: &Path, folder: &Path) -> Option<Program> {
    let installed = places.installed.as_ref().map(|all| all.join(&spec.name)).filter(|own| own.is_dir());
    let mut search: Vec<PathBuf> = [root, folder]
        .iter()
        .flat_map(|dir| [".venv/bin", "venv/bin", "node_modules/.bin"].map(|inner| dir.join(inner)))
        .collect();
    search.extend(places.search_path.iter().flat_map(std::env::split_paths));
    let search = std::env::join_paths(search).ok();
    let named = places.programs.get(&spec.name);
    let named = named.map(|program| spec.commands.first().map(|first| programs::at(first, &program)));
    // Without the named one the server is missing, rather than another than the user wants.
    let commands = named.as_ref().map_or(&spec.commands[..], |named| named.as_slice());
    commands.iter().find_map(|command| {
        let mut parts = Vec::with_capacity(command.len());
        for part in command {
            parts.push(match part.contains("{installed}") {
                true => part.replace("{installed}", installed.as_ref()?.to_str()?),
                false => part.clone(),
            });
        }
        let path = which::which_in(parts.first()?, search.as_ref(), root).ok()?;
        let path = rustup::behind(path, root)?;
        let args = parts.drain(..).skip(1).map(OsString::from).collect();
        Some(Program { path, args, ..Program::default() })
    })
}

fn read_config(path: &Path) -> Result<Option<Vec<ServerSpec>>, String> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_CONFIG_LEN => {
            return Err(format!("{shown} is larger than 1 MiB"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{shown} cannot be read: {error}")),
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let value = baton_agent_base::launch_config::parse_jsonc(&text)
        .map_err(|error| format!("{shown} is broken: {error}"))?;
    let own: Vec<ServerSpec> =
        serde_json::from_value(value).map_err(|error| format!("{shown} is not as it should be: {error}"))?;
    Ok(Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_trees_are_among_the_options_as_the_server_wants_them() {
        let option = vec!["files".to_owned(), "exclude".to_owned()];
        let leaves_out = Some(LeavesOut { option, entry: "{}/".to_owned() });
        let spec = ServerSpec { options: json!({"a": 1}), leaves_out, ..ServerSpec::default() };
        let folders = ["/w/sub", "/w/.x/y", "/w/odd*", "/elsewhere", "/w"].map(PathBuf::from);
        let told = spec.without(&folders, Path::new("/w"));
        assert_eq!(told.options, json!({"a": 1, "files": {"exclude": ["sub/", ".x/y/"]}}));
        assert_eq!(told.without(&folders[..1], Path::new("/w")).options["files"]["exclude"][2], "sub/");
        assert_eq!(spec.without(&[], Path::new("/w")), spec);
        let other = ServerSpec::default();
        assert_eq!(other.without(&folders, Path::new("/w")), other);
    }

    #[test]
    fn the_table_is_whole() {
        let table = Table::open(&Places::default());
        assert!(table.problem.is_none());
        for spec in table.specs() {
            assert!(!spec.commands.is_empty() && !spec.languages.is_empty(), "{}", spec.name);
            assert!(!spec.install.is_empty(), "{} cannot be installed", spec.name);
        }
    }

    #[test]
    fn the_root_is_the_outermost_with_a_marker() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b/c");
        std::fs::create_dir_all(&inner).unwrap();
        let table = Table::open(&Places::default());
        let file = inner.join("x.py");
        let root = || root_of(&table.specs()[0], &file, folder.path());
        assert_eq!(root(), folder.path());
        std::fs::write(folder.path().join("a/b/pyproject.toml"), "").unwrap();
        assert_eq!(root(), folder.path().join("a/b"));
        std::fs::write(folder.path().join("a/setup.py"), "").unwrap();
        assert_eq!(root(), folder.path().join("a"));
    }

    #[test]
    fn a_user_adds_and_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("servers.json");
        let places = Places { config: Some(config.clone()), ..Places::default() };
        let own = r#"[
            // Ours, with other arguments.
            {"name": "ty", "languages": {"py": "python"}, "commands": [["/bin/sh", "-c", "ty server"]]},
            {"name": "lua", "languages": {"lua": "lua"}, "commands": [["no-such-program"]]},
        ]"#;
        std::fs::write(&config, own).unwrap();
        let table = Table::open(&places);
        assert_eq!(table.problem, None);
        assert_eq!(table.specs().iter().filter(|spec| spec.name == "ty").count(), 1);
        let choose = |name: &str| table.choose(&places, &folder.path().join(name), folder.path());
        assert_eq!(choose("x.py").unwrap().program.path, Path::new("/bin/sh"));
        assert_eq!(choose("x.lua").unwrap_err(), NoServer::NotInstalled(vec!["lua".to_owned()]));
        assert_eq!(choose("x.nothing").unwrap_err(), NoServer::Unknown);
        assert_eq!(choose("Makefile").unwrap_err(), NoServer::Unknown);
        let named = |path: &str| BTreeMap::from([("lua".to_owned(), path.to_owned())]);
        places.programs.set(&named("/bin/sh"));
        assert_eq!(choose("x.lua").unwrap().program.path, Path::new("/bin/sh"));
        places.programs.set(&named("/no/such"));
        assert_eq!(choose("x.lua").unwrap_err(), NoServer::NotInstalled(vec!["lua".to_owned()]));
        std::fs::write(&config, "[{}]").unwrap();
        assert!(Table::open(&places).problem.unwrap().contains("missing field"));
    }
}
