//! A Java program by its file: which class it is, and where its compiled form lies.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::adapters::configuration::bad;
use crate::dap::configuration::Configuration;
use crate::error::DebugError;
use crate::options::DebuggerOptions;

/// Sources that are compiled with the adapter when it is installed, by their files: what keeps other users of the machine
/// away from it; frames that outlive a call; values that can be read; expressions as Java has them, and
/// the classes that they name; lines of classes in classes; hits and log messages of breakpoints.
pub const SOURCES: [(&str, &str); 9] = [
    ("Guarded.java", include_str!("java/Guarded.java")),
    ("Frame.java", include_str!("java/Frame.java")),
    ("Shown.java", include_str!("java/Shown.java")),
    ("Expression.java", include_str!("java/Expression.java")),
    ("Tokens.java", include_str!("java/Tokens.java")),
    ("Lines.java", include_str!("java/Lines.java")),
    ("Imports.java", include_str!("java/Imports.java")),
    ("Calls.java", include_str!("java/Calls.java")),
    ("Wish.java", include_str!("java/Wish.java")),
];

/// Where build tools put classes, below the project.
const CLASS_FOLDERS: [&str; 6] =
    ["target/classes", "build/classes/java/main", "out/production/main", "out", "bin", "classes"];

/// Turns `program` into `mainClass` and `classpath`, and VS Code's lists into what the adapter takes.
pub(crate) fn complete(
    arguments: &mut Map<String, Value>,
    program: Option<&Path>,
    options: &DebuggerOptions,
) -> Result<(), DebugError> {
    if let Some(paths) = arguments.remove("classPaths").as_ref().and_then(Value::as_array) {
        let paths: Vec<&str> =
            paths.iter().filter_map(Value::as_str).filter(|path| !path.starts_with('$')).collect();
        if !paths.is_empty() {
            arguments.entry("classpath").or_insert_with(|| json!(paths.join(":")));
        }
    }
    let given = Configuration::of(arguments);
    if let Some(words) = given.vm_args {
        arguments.insert("vmArgs".to_owned(), json!(words.join(" ")));
    }
    if let Some(Value::String(text)) = given.args {
        let words: Vec<&str> = text.split_whitespace().collect();
        arguments.insert("args".to_owned(), json!(words));
    }
    let Some(program) = program else {
        return if arguments.contains_key("mainClass") {
            Ok(())
        } else {
            Err(bad("a launch needs `mainClass`, or `program` with the file of the main class".to_owned()))
        };
    };
    let (class, root) = class_of(program)?;
    if !arguments.contains_key("classpath") {
        arguments.insert("classpath".to_owned(), json!(class_folder(program, &class, &root, options)?));
    }
    arguments.entry("mainClass").or_insert_with(|| json!(class));
    Ok(())
}

/// Where sources can lie: beside the program, in the window's folders, and where build tools expect them.
pub(crate) fn source_roots(arguments: &Map<String, Value>, options: &DebuggerOptions) -> Vec<PathBuf> {
    const SOURCE_FOLDERS: [&str; 4] = ["", "src/main/java", "src/test/java", "src"];
    let program = Configuration::of(arguments).program;
    let own = program.and_then(|program| Some(class_of(Path::new(&program)).ok()?.1));
    let below = options.folders.iter().flat_map(|folder| SOURCE_FOLDERS.map(|name| folder.join(name)));
    own.into_iter().chain(below).filter(|folder| folder.is_dir()).collect()
}

/// The class of a source or class file, and the folder in which its packages begin.
fn class_of(program: &Path) -> Result<(String, PathBuf), DebugError> {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = program.parent().unwrap_or(Path::new("/"));
    if program.extension().is_some_and(|extension| extension == "class") {
        return Ok((stem, folder.to_owned()));
    }
    let text = std::fs::read_to_string(program)
        .map_err(|_| DebugError::FileNotFound { path: program.to_owned() })?;
    let package =
        text.lines().find_map(|line| line.trim().strip_prefix("package ")?.trim().strip_suffix(';'));
    let Some(package) = package.map(str::trim) else { return Ok((stem, folder.to_owned())) };
    let root = folder.ancestors().nth(package.split('.').count()).unwrap_or(folder);
    Ok((format!("{package}.{stem}"), root.to_owned()))
}

/// The folder that has the compiled class.
fn class_folder(
    program: &Path,
    class: &str,
    root: &Path,
    options: &DebuggerOptions,
) -> Result<PathBuf, DebugError> {
    let file = format!("{}.class", class.replace('.', "/"));
    let above = root.ancestors().take_while(|folder| folder.parent().is_some());
    let below = above.flat_map(|folder| CLASS_FOLDERS.map(|name| folder.join(name)));
    let in_folders = options.folders.iter().flat_map(|folder| CLASS_FOLDERS.map(|name| folder.join(name)));
    let mut all = std::iter::once(root.to_owned()).chain(in_folders).chain(below);
    all.find(|folder| folder.join(&file).is_file()).ok_or_else(|| {
        let shown = program.display();
        bad(format!(
            "{shown} is not compiled; compile it with debug information (javac -g -d {} {shown}), or name `classpath`",
            root.join("out").display()
        ))
    })
}
