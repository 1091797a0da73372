//! Language servers: what is known of each on this machine, and how each comes into its folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::depot::{self, Depot};
use super::kind::Kind;
use super::say::note;
use super::step::{self, program};
use baton_agent_code::server::{Ask, Server, Shared};
use baton_agent_code::servers::{Choice, Places, ServerSpec, Table, choice_of};

/// How long a server may take to come up; on a busy machine a cold one needs seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// See the module.
pub(super) struct Servers {
    table: Table,
    places: Places,
    /// The user named a folder: what lies elsewhere on the machine is installed there as well.
    own_only: bool,
}

impl Servers {
    /// Those of the user's table, installed in the user's folder or in `into`.
    pub(super) fn open(into: Option<PathBuf>) -> Result<Self, String> {
        let mut places = Places::from_env();
        let own_only = into.is_some();
        if let Some(folder) = into {
            places.installed = Some(std::path::absolute(&folder).unwrap_or(folder));
        }
        let table = Table::open(&places);
        match &table.problem {
            Some(problem) => Err(problem.clone()),
            None => Ok(Self { table, places, own_only }),
        }
    }
}

/// What is known of a server on this machine.
#[derive(Debug, Serialize)]
pub(super) struct ServerEntry {
    name: String,
    /// Of files that it reads.
    extensions: Vec<String>,
    /// None when it is not installed.
    path: Option<String>,
    version: Option<String>,
}

impl Kind for Servers {
    type Item = Arc<ServerSpec>;
    type Entry = ServerEntry;
    const NOUN: &'static str = "language server";
    const VERB: &'static str = "servers";

    fn items(&self) -> Vec<Self::Item> {
        self.table.specs().to_vec()
    }

    fn name(spec: &Self::Item) -> &str {
        &spec.name
    }

    async fn entry(&self, spec: &Self::Item) -> ServerEntry {
        ServerEntry {
            name: spec.name.clone(),
            extensions: spec.languages.keys().cloned().collect(),
            path: find(spec, &self.places).map(|found| found.path().display().to_string()),
            version: self.version(spec).await,
        }
    }

    fn line(ServerEntry { name, extensions, path, version }: &ServerEntry) -> String {
        let rest = match path {
            None => format!("not installed; run `baton servers install {name}`"),
            Some(path) => version.iter().chain([path]).map(String::as_str).collect::<Vec<_>>().join(" "),
        };
        format!("{:40} {rest}", extensions.join(" "))
    }

    async fn is_there(&self, spec: &Self::Item) -> bool {
        find(spec, &self.places).is_some()
    }

    async fn version(&self, spec: &Self::Item) -> Option<String> {
        let found = find(spec, &self.places)?;
        match version(spec, &found).await {
            None => installed_version(spec, &found, &self.places),
            told => told,
        }
    }

    async fn is_kept(&self, spec: &Self::Item) -> bool {
        let Some(found) = find(spec, &self.places) else { return false };
        if let Some((installed, pinned)) = outdated(spec, &found, &self.places) {
            note(&format!("replacing {} {installed} with {pinned}", spec.name));
            return false;
        }
        if let Some(missing) = missing_component(spec).await {
            note(&format!("{} needs {missing}", spec.name));
            return false;
        }
        let mut installers = spec.install.keys();
        let goes_into_folder = installers.any(|installer| matches!(installer.as_str(), "pip" | "npm"));
        let is_own = self.places.installed.as_ref().is_some_and(|own| found.path().starts_with(own));
        !self.own_only || !goes_into_folder || is_own
    }

    /// By the first installer that its line in the table names.
    async fn fetch(&self, spec: &Self::Item) -> Result<(), String> {
        let Places { installed, search_path, .. } = &self.places;
        let depot = Depot::open(installed.clone(), search_path.clone(), "BATON_SERVERS")?;
        let Some((installer, packages)) = spec.install.iter().next() else {
            return Err(depot::BY_HAND.to_owned());
        };
        let shown = packages.join(" ");
        match installer.as_str() {
            "pip" => depot.pip(&spec.name, packages).await,
            "npm" => {
                note(&format!("installing {shown} from npm"));
                depot.place(&spec.name, async |folder| install_npm(folder, packages, &depot).await).await
            }
            "apt" => depot.apt(packages).await,
            "rustup" => {
                note(&format!("installing {shown} with rustup"));
                let args = ["component", "add"].into_iter().chain(packages.iter().map(String::as_str));
                step::download("rustup component add", &program("rustup", args), step::nothing)
                    .await
                    .map(drop)
            }
            other => Err(format!("unknown installer {other:?} (pip, npm, apt, rustup)")),
        }
    }

    async fn start(&self, spec: &Self::Item) -> Result<(), String> {
        start(spec, &self.places).await
    }

    async fn check(&self, spec: &Self::Item) -> Result<String, String> {
        let begun = Instant::now();
        start(spec, &self.places).await?;
        Ok(format!("up in {} ms", begun.elapsed().as_millis()))
    }
}

/// The server on a folder without a project.
fn find(spec: &Arc<ServerSpec>, places: &Places) -> Option<Choice> {
    choice_of(spec, places, &std::env::temp_dir())
}

async fn version(spec: &ServerSpec, found: &Choice) -> Option<String> {
    if spec.version_args.is_empty() {
        return None;
    }
    let args = spec.version_args.iter().map(String::as_str);
    let said = step::run("checking the version", &program(found.path(), args)).await.ok()?;
    let is_number =
        |word: &&str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    said.split_whitespace().map(|word| word.trim_start_matches('v')).find(is_number).map(str::to_owned)
}

/// What Baton installed, and what the table says now, when that is another version.
fn outdated(spec: &ServerSpec, found: &Choice, places: &Places) -> Option<(String, String)> {
    let package = spec.install.values().next()?.first()?;
    let (_, pinned) = package.split_once("==").or_else(|| package.rsplit_once('@'))?;
    let installed = installed_version(spec, found, places)?;
    (installed != pinned).then(|| (installed, pinned.to_owned()))
}

/// A part of rustup's toolchain that the server needs and that is not there: without the sources of Rust's own library
/// rust-analyzer fetches them when it starts, and does not know them until it is started again.
async fn missing_component(spec: &ServerSpec) -> Option<String> {
    let wanted = spec.install.get("rustup")?;
    let listed = program("rustup", ["component", "list", "--installed"]);
    // Without rustup somebody else keeps them.
    let installed = step::run("looking for the components", &listed).await.ok()?;
    first_missing(wanted, &installed).cloned()
}

/// The first component that is not in rustup's list, where most names end with a platform.
fn first_missing<'a>(wanted: &'a [String], installed: &str) -> Option<&'a String> {
    let is_listed = |name: &&String| {
        installed
            .lines()
            .filter_map(|line| line.trim().strip_prefix(name.as_str()))
            .any(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    wanted.iter().find(|name| !is_listed(name))
}

/// Of one that Baton installed.
fn installed_version(spec: &ServerSpec, found: &Choice, places: &Places) -> Option<String> {
    let own = places.installed.as_ref()?.join(&spec.name);
    found.path().starts_with(&own).then(|| depot::version_in(&own)).flatten()
}

async fn install_npm(folder: &Path, packages: &[String], depot: &Depot) -> Result<String, String> {
    let shown = folder.to_string_lossy();
    let mut args = vec!["install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", &shown];
    args.extend(packages.iter().map(String::as_str));
    depot.npm("npm install", &args).await?;
    Ok(packages.first().and_then(|package| package.rsplit('@').next()).unwrap_or_default().to_owned())
}

/// Starts a server on an empty folder and hears its first answer.
async fn start(spec: &Arc<ServerSpec>, places: &Places) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("baton-check-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let started = match choice_of(spec, places, &folder) {
        Some(choice) => {
            let server = Server::spawn(choice, "servers-check", Shared::default());
            let ask = Ask::new("", Value::Null, Vec::new());
            let up = server.ask(ask, Instant::now() + START_TIMEOUT).await;
            server.stop().await;
            up.map(drop).map_err(|error| error.to_string())
        }
        None => Err(format!("it is not installed\nhint: run `baton servers install {}`", spec.name)),
    };
    let _ = std::fs::remove_dir_all(&folder);
    started
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_component_is_missed_whatever_else_is_there() {
        let wanted = ["rust-analyzer".to_owned(), "rust-src".to_owned()];
        let analyzer = "rust-analyzer-x86_64-unknown-linux-gnu\n";
        assert_eq!(first_missing(&wanted, "rustc-x86_64-unknown-linux-gnu\n"), Some(&wanted[0]));
        assert_eq!(first_missing(&wanted, &format!("{analyzer}rust-srcs\n")), Some(&wanted[1]));
        assert_eq!(first_missing(&wanted, &format!("{analyzer}rust-src\n")), None);
    }

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
