//! `baton-agent servers`: what language servers there are, getting one, and seeing whether one works.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::code::server::{Ask, Server};
use crate::code::servers::{Choice, Places, ServerSpec, Table, choice_of};
use crate::debug::DebuggerOptions;
use crate::install::step::{self, program};
use crate::install::{Done, Failed, exit, fail, finish, line, note, parts};

/// How long a server may take to come up; on a busy machine a cold one needs seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Language servers: which there are, and how to get them.
#[derive(Clone, Debug, Args)]
pub struct ServersOptions {
    #[command(subcommand)]
    verb: ServersVerb,
    /// Folder of installed servers; what comes from PyPI and npm is put there even when the machine has it elsewhere
    /// [default: that of the user, or BATON_SERVERS].
    #[arg(long, global = true, value_name = "DIR")]
    into: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
enum ServersVerb {
    /// List the language servers, and which are installed
    List {
        /// Print JSON, for scripts
        #[arg(long)]
        json: bool,
    },
    /// Install language servers
    Install {
        /// Names, as `list` shows them
        #[arg(required = true)]
        names: Vec<String>,
        /// Also those that are there already
        #[arg(long)]
        force: bool,
    },
    /// Start each language server, or the named ones
    Check {
        /// Names; all that are installed when none is named
        names: Vec<String>,
    },
}

/// Runs the verb.
pub fn run(options: ServersOptions) -> ExitCode {
    let mut places = Places::from_env();
    let own_only = options.into.is_some();
    if let Some(folder) = options.into {
        places.installed = Some(std::path::absolute(&folder).unwrap_or(folder));
    }
    let table = Table::open(&places);
    if let Some(problem) = &table.problem {
        return fail(exit::FAILED, problem);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(exit::FAILED, &format!("cannot start the runtime: {error}")),
    };
    let done = runtime.block_on(async {
        match options.verb {
            ServersVerb::List { json } => list(&table, &places, json).await,
            ServersVerb::Install { names, force } => {
                let force = if force { Force::Always } else { Force::from_folder(own_only) };
                install(&chosen(&table, &names)?, &places, force).await
            }
            ServersVerb::Check { names } => check(&table, &names, &places).await,
        }
    });
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => fail(failed.code, &failed.message),
    }
}

fn chosen(table: &Table, names: &[String]) -> Result<Vec<Arc<ServerSpec>>, Failed> {
    let all: Vec<&str> = table.specs().iter().map(|spec| spec.name.as_str()).collect();
    let find = |name: &String| {
        let found = table.specs().iter().find(|spec| spec.name == *name).cloned();
        let message = || format!("there is no language server `{name}`; there are {}", all.join(", "));
        found.ok_or_else(|| Failed { code: exit::USAGE, message: message() })
    };
    names.iter().map(find).collect()
}

/// The server on a folder without a project.
fn find(spec: &Arc<ServerSpec>, places: &Places) -> Option<Choice> {
    choice_of(spec, places, &std::env::temp_dir())
}

async fn list(table: &Table, places: &Places, as_json: bool) -> Done {
    let mut entries = Vec::new();
    for spec in table.specs() {
        entries.push(entry(spec, places).await);
    }
    if as_json {
        line(&serde_json::to_string_pretty(&entries).unwrap_or_default());
        return Ok(());
    }
    for entry in &entries {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let extensions: Vec<&str> =
            entry["extensions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let rest = match entry["path"].is_null() {
            true => format!("not installed. `baton servers install {}`", text("name")),
            false => format!("{} {}", text("version"), text("path")).trim_start().to_owned(),
        };
        line(&format!("{:27} {:40} {rest}", text("name"), extensions.join(" ")));
    }
    Ok(())
}

async fn entry(spec: &Arc<ServerSpec>, places: &Places) -> Value {
    let found = find(spec, places);
    let version = match &found {
        Some(found) => match version(spec, found).await {
            None => installed_version(spec, found, places),
            told => told,
        },
        None => None,
    };
    json!({
        "name": spec.name,
        "extensions": spec.languages.keys().collect::<Vec<_>>(),
        "path": found.map(|found| found.path().display().to_string()),
        "version": version,
    })
}

async fn version(spec: &ServerSpec, found: &Choice) -> Option<String> {
    if spec.version_args.is_empty() {
        return None;
    }
    let args = spec.version_args.iter().map(String::as_str);
    let said = step::run("asking for the version", &program(found.path(), args)).await.ok()?;
    let is_number =
        |word: &&str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    said.split_whitespace().map(|word| word.trim_start_matches('v')).find(is_number).map(str::to_owned)
}

/// When something is installed that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Force {
    Never,
    /// When it is elsewhere on the machine.
    Elsewhere,
    Always,
}

impl Force {
    fn from_folder(own_only: bool) -> Self {
        if own_only { Force::Elsewhere } else { Force::Never }
    }

    fn is_satisfied(self, spec: &ServerSpec, found: &Choice, places: &Places) -> bool {
        let goes_into_folder =
            spec.install.keys().any(|installer| matches!(installer.as_str(), "pip" | "npm"));
        match self {
            Force::Never => true,
            Force::Elsewhere if !goes_into_folder => true,
            Force::Elsewhere => places.installed.as_ref().is_some_and(|own| found.path().starts_with(own)),
            Force::Always => false,
        }
    }
}

/// What Baton installed, and what the table says now, when that is another version.
fn outdated(spec: &ServerSpec, found: &Choice, places: &Places) -> Option<(String, String)> {
    let package = spec.install.values().next()?.first()?;
    let (_, pinned) = package.split_once("==").or_else(|| package.rsplit_once('@'))?;
    let installed = installed_version(spec, found, places)?;
    (installed != pinned).then(|| (installed, pinned.to_owned()))
}

/// Of one that Baton installed.
fn installed_version(spec: &ServerSpec, found: &Choice, places: &Places) -> Option<String> {
    let own = places.installed.as_ref()?.join(&spec.name);
    found.path().starts_with(&own).then(|| parts::version_in(&own)).flatten()
}

async fn install(specs: &[Arc<ServerSpec>], places: &Places, force: Force) -> Done {
    let mut n_failed = 0;
    for spec in specs {
        let found = find(spec, places);
        let outdated = found.as_ref().and_then(|found| outdated(spec, found, places));
        if let Some((installed, pinned)) = outdated {
            note(&format!("{} {installed} is replaced by {pinned}", spec.name));
        } else if found.is_some_and(|found| force.is_satisfied(spec, &found, places)) {
            note(&format!("{} is there already", spec.name));
            continue;
        }
        let installed = match fetch(spec, places).await {
            Ok(()) => start(spec, places)
                .await
                .map_err(|problem| format!("{} was installed and does not start: {problem}", spec.name)),
            Err(problem) => Err(format!("{} could not be installed: {problem}", spec.name)),
        };
        match installed {
            Ok(()) => line(&format!("{} is installed", spec.name)),
            Err(problem) => {
                n_failed += 1;
                note(&format!("baton: {problem}"));
            }
        }
    }
    finish(n_failed)
}

/// By the first installer that its line in the table names.
async fn fetch(spec: &ServerSpec, places: &Places) -> Result<(), String> {
    let mut options =
        DebuggerOptions { search_path: places.search_path.clone(), ..DebuggerOptions::default() };
    options.shelf.folder = Some(places.installed.clone().ok_or("no folder is known; set BATON_SERVERS")?);
    let Some((installer, packages)) = spec.install.iter().next() else {
        return Err("its entry in the table does not say how; put it on the search path".to_owned());
    };
    let shown = packages.join(" ");
    match installer.as_str() {
        "pip" => {
            note(&format!("installing {shown} from PyPI"));
            parts::place(&spec.name, &options, async |folder| parts::pip(folder, packages, &options).await)
                .await
        }
        "npm" => {
            let npm = parts::npm_program(&options).await?;
            note(&format!("installing {shown} from npm"));
            parts::place(&spec.name, &options, async |folder| install_npm(folder, packages, &npm).await).await
        }
        "apt" => parts::apt(packages, &options).await,
        "rustup" => {
            note(&format!("installing {shown} with rustup"));
            let args = ["component", "add"].into_iter().chain(packages.iter().map(String::as_str));
            step::run("rustup component add", &program("rustup", args)).await.map(drop)
        }
        other => Err(format!("{other:?} is no installer; there are pip, npm, apt and rustup")),
    }
}

async fn install_npm(folder: &Path, packages: &[String], npm: &[String]) -> Result<String, String> {
    let shown = folder.to_string_lossy();
    let mut args: Vec<&str> = npm[1..].iter().map(String::as_str).collect();
    args.extend(["install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", &shown]);
    args.extend(packages.iter().map(String::as_str));
    step::run("npm install", &program(&npm[0], args)).await.map_err(|problem| {
        format!("{problem}\n  is the npm registry reachable from here? then run the same command again")
    })?;
    Ok(packages.first().and_then(|package| package.rsplit('@').next()).unwrap_or_default().to_owned())
}

async fn check(table: &Table, names: &[String], places: &Places) -> Done {
    let specs = match names.is_empty() {
        true => table.specs().iter().filter(|spec| find(spec, places).is_some()).cloned().collect(),
        false => chosen(table, names)?,
    };
    if specs.is_empty() {
        let message = "no language server is installed; `baton servers list` shows what there is".to_owned();
        return Err(Failed { code: exit::FAILED, message });
    }
    let mut n_failed = 0;
    for spec in specs {
        let begun = Instant::now();
        match start(&spec, places).await {
            Ok(()) => line(&format!("{}: ok, up in {} ms", spec.name, begun.elapsed().as_millis())),
            Err(problem) => {
                n_failed += 1;
                line(&format!("{}: {problem}", spec.name));
            }
        }
    }
    finish(n_failed)
}

/// Starts a server on an empty folder and hears its first answer.
async fn start(spec: &Arc<ServerSpec>, places: &Places) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("baton-check-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let started = match choice_of(spec, places, &folder) {
        Some(choice) => {
            let server = Server::spawn(choice, "servers-check");
            let ask = Ask { method: "", params: Arc::new(|_| Value::Null), show: Vec::new() };
            let up = server.ask(ask, Instant::now() + START_TIMEOUT).await;
            server.stop().await;
            up.map(drop).map_err(|error| error.to_string())
        }
        None => Err(format!("it is not installed; `baton servers install {}`", spec.name)),
    };
    let _ = std::fs::remove_dir_all(&folder);
    started
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn another_version_than_the_pinned_one_is_outdated() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("ty/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("ty"), "").unwrap();
        std::fs::set_permissions(bin.join("ty"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let places = Places { installed: Some(folder.path().to_owned()), ..Places::default() };
        let of_table = Table::open(&places);
        let ty = of_table.specs().iter().find(|spec| spec.name == "ty").unwrap();
        let pinned = ty.install["pip"][0].strip_prefix("ty==").unwrap();
        let check = |version: &str| {
            let facts = json!({"name": "ty", "version": version}).to_string();
            std::fs::write(folder.path().join("ty/installed.json"), facts).unwrap();
            outdated(ty, &find(ty, &places).unwrap(), &places)
        };
        assert_eq!(check("0.0.1"), Some(("0.0.1".to_owned(), pinned.to_owned())));
        assert_eq!(check(pinned), None);
        // One that is not ours is left alone.
        let elsewhere = tempfile::tempdir().unwrap();
        let others = Places { installed: Some(elsewhere.path().to_owned()), ..Places::default() };
        assert_eq!(outdated(ty, &find(ty, &places).unwrap(), &others), None);
    }
}
