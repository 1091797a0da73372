//! TypeScript that nobody compiled: a node that does not run it says so in words of its own parser.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::adapters::configuration::{bad, program_of};
use crate::adapters::shelf;
use crate::dap::configuration::Configuration;
use crate::error::DebugError;
use crate::options::{DebuggerOptions, program_on_path};
use crate::types::Start;

const SOURCES: [&str; 4] = ["ts", "mts", "cts", "tsx"];
const COMPILED: [&str; 3] = ["js", "mjs", "cjs"];
/// Folders that hold nobody's own programs.
const SKIPPED: [&str; 2] = ["node_modules", ".git"];
/// How many entries of folders are looked at for a compiled program.
const MAX_LOOKS: usize = 20_000;

/// Refuses a launch of TypeScript that the program's node does not run, and says what helps.
pub(super) fn refuse_uncompiled(start: &Start, options: &DebuggerOptions) -> Result<(), DebugError> {
    let given = Configuration::of(&start.configuration);
    let program = program_of(&given).filter(|program| has_extension(program, &SOURCES) && program.is_file());
    let Some(program) = program.filter(|_| !given.attaches() && !says_how(&start.configuration)) else {
        return Ok(());
    };
    let search_path = options.search_path.as_deref();
    let node = program_on_path("node", search_path).or_else(|| options.shelf.node(search_path));
    let Some(version) = node.and_then(|node| shelf::version_of(&node, &["--version".to_owned()])) else {
        return Ok(());
    };
    let is_markup = has_extension(&program, &["tsx"]);
    if (runs_types(&version) && !is_markup) || is_compiled(&program, options) {
        return Ok(());
    }
    // No node runs a `.tsx`.
    let newer = if is_markup { "" } else { ", or use node 22.18 or later" };
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Err(bad(format!(
        "{name} is TypeScript, which node {version} cannot run; compile it with source maps (tsc --sourceMap), \
         or run it by tsx with `arguments` {{\"runtimeArgs\": [\"--import\", \"tsx\"]}}{newer}"
    )))
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|own| known.contains(&own))
}

/// Whether something else runs the program than node as it is, or what it is compiled to lies somewhere else, or comes
/// to be only when it is started.
fn says_how(configuration: &Map<String, Value>) -> bool {
    const FIELDS: [&str; 5] = ["runtimeExecutable", "runtimeArgs", "envFile", "outFiles", "preLaunchTask"];
    FIELDS.iter().any(|field| configuration.get(*field).is_some_and(|value| !value.is_null()))
        || configuration.get("env").and_then(|env| env.get("NODE_OPTIONS")).is_some()
}

/// From 22.18 and 23.6 on, node leaves types out.
fn runs_types(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    match major {
        22 => minor >= 18,
        23 => minor >= 6,
        _ => major > 23,
    }
}

/// Whether a file of the same name lies in the window's folder, or beside it, that could be what it was compiled to.
fn is_compiled(program: &Path, options: &DebuggerOptions) -> bool {
    let folder = options.folders.iter().find(|folder| program.starts_with(folder)).map(PathBuf::as_path);
    let Some(folder) = folder.or(program.parent()) else { return false };
    let is_it = |path: &Path| path.file_stem() == program.file_stem() && has_extension(path, &COMPILED);
    let mut folders = VecDeque::from([folder.to_owned()]);
    let mut n_looks = 0;
    while let Some(folder) = folders.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            n_looks += 1;
            // Of a folder that is too large nothing is known.
            if n_looks > MAX_LOOKS || is_it(&entry.path()) {
                return true;
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                folders.push_back(entry.path());
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_types_is_known() {
        for (version, expected) in [
            ("18.20.4", false),
            ("20.20.2", false),
            ("22.17.9", false),
            ("22.18.0", true),
            ("23.5.0", false),
            ("23.6.1", true),
            ("24.0.0", true),
            ("odd", false),
        ] {
            assert_eq!(runs_types(version), expected, "{version}");
        }
    }
}
