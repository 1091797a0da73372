//! Where adapters are found: installed by us, on the search path, named by the user.
//!
//! In a command line `{installed}` stands for the folder that Baton installed the adapter into, `{node}` and `{java}`
//! for those programs, `{port}` and `{socket}` for what the host chooses at each start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::adapter::{Adapter, Dialect};
use crate::adapters::debugpy;
use crate::options::{DebuggerOptions, program_on_path};
use baton_agent_base::{process, programs};
use parking_lot::Mutex;

/// An adapter that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Absolute.
    pub program: PathBuf,
    /// What the host chooses still stands in them as a placeholder.
    pub args: Vec<OsString>,
    /// How it came there.
    pub origin: Origin,
}

/// Where an adapter was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Installed by Baton.
    Installed,
    /// On the search path.
    Machine,
    /// Named by the settings or the environment.
    Named,
}

/// Finds an adapter; a sentence says why there is none.
pub fn find(adapter: &Adapter, options: &DebuggerOptions) -> Result<Found, String> {
    let shelf = &options.shelf;
    if adapter.dialect == Dialect::Debugpy {
        let python = debugpy::find_pythons(options).into_iter().next();
        return python
            .map(|program| Found { program, args: Vec::new(), origin: Origin::Machine })
            .ok_or_else(|| "cannot find a Python interpreter".to_owned());
    }
    if let Some(program) = shelf.programs.get(&adapter.name) {
        let command = adapter.commands.first().map(|command| programs::at(command, &program));
        let found = command.filter(|_| program.exists()).and_then(|it| resolve(&it, adapter, options));
        return found.map(|found| Found { origin: Origin::Named, ..found }).ok_or_else(|| {
            format!("{}, the program that is named for {}, cannot be run", program.display(), adapter.name)
        });
    }
    let mut too_old = None;
    for command in &adapter.commands {
        let Some(found) = resolve(command, adapter, options) else { continue };
        if found.origin == Origin::Machine
            && let Some(oldest) = &adapter.oldest
        {
            let version = version_of(&found.program, &adapter.version_args).unwrap_or_default();
            if numbers(&version) < numbers(oldest) {
                too_old =
                    Some(format!("{} is {version}, at least {oldest} is needed", found.program.display()));
                continue;
            }
        }
        return Ok(found);
    }
    Err(too_old.unwrap_or_else(|| format!("{} is not installed", adapter.name)))
}

/// A command line with its program found; `None` when something of it is missing.
fn resolve(command: &[String], adapter: &Adapter, options: &DebuggerOptions) -> Option<Found> {
    let search_path = options.search_path.as_deref();
    let installed = options.shelf.folder_of(&adapter.name).filter(|folder| folder.is_dir());
    let uses_installed = command.iter().any(|part| part.contains("{installed}"));
    let mut parts = Vec::with_capacity(command.len());
    for part in command {
        let mut part = part.clone();
        if part.contains("{installed}") {
            part = part.replace("{installed}", installed.as_ref()?.to_str()?);
            // An older installation may lack it.
            if Path::new(&part).is_absolute() && !Path::new(&part).exists() {
                return None;
            }
        }
        if part.contains("{node}") {
            part = part.replace("{node}", options.shelf.node(search_path)?.to_str()?);
        }
        if part.contains("{java}") {
            part = part.replace("{java}", find_java(search_path)?.to_str()?);
        }
        parts.push(part);
    }
    let program = program_on_path(parts.first()?, search_path)?;
    let origin = if uses_installed { Origin::Installed } else { Origin::Machine };
    Some(Found { program, args: parts.drain(..).skip(1).map(OsString::from).collect(), origin })
}

/// The Java of `JAVA_HOME`, or of the search path.
pub(crate) fn find_java(search_path: Option<&OsStr>) -> Option<PathBuf> {
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    home.filter(|path| path.is_file()).or_else(|| program_on_path("java", search_path))
}

/// What a program says its version is, when it says one. It is asked once.
pub fn version_of(program: &Path, args: &[String]) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Option<String>>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock();
    if let Some(version) = known().get(program) {
        return version.clone();
    }
    // Nobody waits for the lock while it runs; two that ask at once both run it.
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let version = process::text_of(program, &args, None).as_deref().and_then(first_version);
    known().insert(program.to_owned(), version.clone());
    version
}

/// The first thing in a text that looks like a version.
fn first_version(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.find(|word| word.contains('.')).map(str::to_owned)
}

/// A version as numbers, for comparison.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_and_compared() {
        let gdb = "GNU gdb (Debian 13.1-3) 13.1\nCopyright (C) 2023";
        assert_eq!(first_version(gdb).as_deref(), Some("13.1"));
        assert_eq!(first_version("Delve Debugger\nVersion: 1.20.2\n").as_deref(), Some("1.20.2"));
        assert_eq!(first_version("none"), None);
        assert!(numbers("13.1") < numbers("14.1"));
        assert!(numbers("14.1") <= numbers("14.1.0"));
        assert!(numbers("9.2") < numbers("14.1"));
        assert!(numbers("") < numbers("1"));
    }
}
