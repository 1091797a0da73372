//! A Go program by its file, its folder or its binary: what delve makes of it, where, and into which file.

use std::fs;
use std::path::{Path, PathBuf};

use baton_link::scratch;
use serde_json::{Map, Value, json};

use crate::adapter::Adapter;
use crate::adapters::configuration::bad;
use crate::adapters::select;
use crate::dap::body::read;
use crate::dap::configuration::Configuration;
use crate::error::DebugError;
use crate::host::reach::Plan;

/// How the names of binaries begin that delve builds for us.
const BINARY: &str = "baton-go-";
/// How the names of files with tests end.
const TESTS: &str = "_test.go";
/// Debugging the tests of a package, in delve's words.
const TEST: &str = "test";

/// The file that a session builds for itself, which its debugger leaves behind when it is killed.
pub(crate) fn own_binary(plan: &Plan) -> Option<PathBuf> {
    let output = PathBuf::from(read::<Configuration>(&plan.session.arguments).output?);
    let is_ours = output.file_name()?.to_str()?.starts_with(BINARY);
    (is_ours && scratch::holds(&output)).then_some(output)
}

/// Fills in what VS Code's own extension would.
pub(super) fn complete(
    adapter: &Adapter,
    arguments: &mut Map<String, Value>,
    has_cwd: bool,
    program: Option<&Path>,
) -> Result<(), DebugError> {
    let Some(program) = program else { return Ok(()) };
    let is_file = !program.is_dir();
    let is_source = !is_file || program.extension().is_some_and(|extension| extension == "go");
    let folder = if is_file { program.parent().unwrap_or(program) } else { program };
    let mode = match Configuration::of(arguments).mode.filter(|mode| mode != "auto") {
        Some(mode) => mode,
        None if is_source => mode_of(program, folder)?.to_owned(),
        None => "exec".to_owned(),
    };
    if mode == TEST {
        // Of a package, in whose folder Go runs them.
        arguments.insert("program".to_owned(), json!(folder));
        if !has_cwd {
            arguments.insert("cwd".to_owned(), json!(folder));
        }
    }
    arguments.insert("mode".to_owned(), json!(mode));
    if is_source {
        let project = select::project_root(adapter, program).unwrap_or_else(|| folder.to_owned());
        arguments.entry("dlvCwd").or_insert_with(|| json!(project));
        // It would leave its binary in the project when it is killed.
        if let Ok(folder) = scratch::folder() {
            let binary = folder.join(format!("{BINARY}{}", uuid::Uuid::new_v4().simple()));
            arguments.entry("output").or_insert_with(|| json!(binary));
        }
    }
    Ok(())
}

/// VS Code decides by the file that is open; here it is by what can be run: a package that is no program has its tests.
fn mode_of(program: &Path, folder: &Path) -> Result<&'static str, DebugError> {
    if is_test(program) {
        return Ok(TEST);
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let (tests, sources): (Vec<PathBuf>, Vec<PathBuf>) = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "go"))
        .partition(|path| is_test(path));
    let asked = if program.is_dir() { sources } else { vec![program.to_owned()] };
    let packages: Vec<String> = asked.iter().filter_map(|path| package_of(path)).collect();
    match packages.iter().find(|package| *package != "main") {
        Some(package) if packages.iter().all(|package| package != "main") => {
            let shown = program.display();
            let why = format!("{shown} is of the package {package}, and only the package main is a program");
            if tests.is_empty() { Err(bad(format!("{why}; it has no tests, either"))) } else { Ok(TEST) }
        }
        _ => Ok("debug"),
    }
}

fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(TESTS))
}

/// The name in a file's package clause.
fn package_of(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let clause = text.lines().find_map(|line| line.trim_start().strip_prefix("package "))?;
    clause.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_delve_makes_of_a_program_is_what_can_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("cmd/main.go", "// Package main is a program.\n\npackage main // as it says\n");
        write("cmd/gen.go", "//go:build ignore\n\npackage gen\n");
        write("cmd/main_test.go", "package main\n");
        write("mean/mean.go", "package mean\n");
        write("mean/mean_test.go", "package mean_test\n");
        write("bare/bare.go", "package bare\n");
        write("empty/readme.md", "");
        let mode = |name: &str| {
            let path = folder.path().join(name);
            let beside = if path.is_dir() { path.as_path() } else { path.parent().unwrap() };
            mode_of(&path, beside).map_err(|error| error.to_string())
        };
        for debugged in ["cmd", "cmd/main.go", "empty"] {
            assert_eq!(mode(debugged).unwrap(), "debug", "{debugged}");
        }
        for tested in ["cmd/main_test.go", "mean", "mean/mean.go", "mean/mean_test.go"] {
            assert_eq!(mode(tested).unwrap(), TEST, "{tested}");
        }
        let why = mode("bare/bare.go").unwrap_err();
        assert!(why.contains("is of the package bare, and only the package main is a program"), "{why}");
    }
}
