//! CORE: replaces `${...}` in a configuration as VS Code does.

use std::path::{Path, PathBuf};

use crate::object::Object;
use serde_json::Value;

/// A folder of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its name, as in `${workspaceFolder:name}`.
    pub name: String,
    /// Absolute.
    pub path: PathBuf,
}

/// What the variables stand for.
pub struct Variables<'a> {
    /// The folder whose launch.json it is.
    pub folder: &'a Folder,
    /// All folders of the window.
    pub folders: &'a [Folder],
    /// What `${file}` means, when the caller named one.
    pub file: Option<&'a Path>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// An environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// A setting by its dotted name.
    pub setting: &'a dyn Fn(&str) -> Option<Value>,
}

/// Why a variable has no value here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("${{{variable}}} in `{field}` {why}")]
pub struct VariableProblem {
    /// What stands between the braces.
    pub variable: String,
    /// Where it stands, as in `env.PATH`.
    pub field: String,
    /// What is wrong.
    pub why: String,
    /// What to try.
    pub hint: String,
}

/// Why, and what to try.
type Failure = (String, String);

/// Replaces all variables in all texts of a configuration, however deep; names of fields stay.
pub fn resolve(configuration: &Object, variables: &Variables<'_>) -> Result<Object, VariableProblem> {
    let mut resolved = Object::new();
    for (name, value) in configuration {
        resolved.insert(name.clone(), resolve_value(name, value, variables)?);
    }
    Ok(resolved)
}

fn resolve_value(field: &str, value: &Value, variables: &Variables<'_>) -> Result<Value, VariableProblem> {
    Ok(match value {
        Value::String(text) => Value::String(resolve_text(field, text, variables)?),
        Value::Array(list) => {
            let items = list.iter().enumerate();
            let items = items.map(|(idx, item)| resolve_value(&format!("{field}[{idx}]"), item, variables));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let mut resolved = Object::new();
            for (name, item) in object {
                resolved.insert(name.clone(), resolve_value(&format!("{field}.{name}"), item, variables)?);
            }
            Value::Object(resolved)
        }
        other => other.clone(),
    })
}

fn resolve_text(field: &str, text: &str, variables: &Variables<'_>) -> Result<String, VariableProblem> {
    let mut resolved = String::new();
    let mut rest = text;
    // A replacement is not looked at again, so that nothing can grow without end.
    while let Some(start) = rest.find("${") {
        let Some(len) = rest[start..].find('}') else { break };
        let variable = &rest[start + 2..start + len];
        resolved.push_str(&rest[..start]);
        let value = value_of(variable, variables).map_err(|(why, hint)| VariableProblem {
            variable: variable.to_owned(),
            field: field.to_owned(),
            why,
            hint,
        })?;
        resolved.push_str(&value);
        rest = &rest[start + len + 1..];
    }
    resolved.push_str(rest);
    Ok(resolved)
}

fn value_of(variable: &str, variables: &Variables<'_>) -> Result<String, Failure> {
    let (name, argument) = match variable.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (variable, None),
    };
    match (name, argument) {
        ("env", Some(name)) => Ok((variables.environment)(name).unwrap_or_default()),
        ("config", Some(name)) => setting(name, variables),
        ("command" | "input", Some(_)) => Err((
            "asks a person in an editor, and this window has none".to_owned(),
            "Write the value into the configuration, or add a configuration without this variable.".to_owned(),
        )),
        ("workspaceFolder" | "workspaceRoot", folder) => Ok(text(&folder_of(folder, variables)?.path)),
        ("workspaceFolderBasename", folder) => {
            Ok(base_name(&folder_of(folder, variables)?.path))
        }
        ("userHome", None) => match &variables.home {
            Some(home) => Ok(text(home)),
            None => Err(("has no value, HOME is not set".to_owned(), "Write the path out.".to_owned())),
        },
        ("pathSeparator" | "/", None) => Ok(std::path::MAIN_SEPARATOR.to_string()),
        ("cwd", None) => Ok(text(&variables.folder.path)),
        ("execPath" | "lineNumber" | "columnNumber" | "selectedText" | "defaultBuildTask" | "extensionInstallFolder", _) => Err((
            "needs an editor, and this window has none".to_owned(),
            "Write the value into the configuration.".to_owned(),
        )),
        (name, folder) if is_of_file(name) => {
            let folder = folder_of(folder, variables)?;
            file_variable(name, folder, variables)
        }
        _ => Err((
            "is not a known variable".to_owned(),
            "Known are workspaceFolder, file, relativeFile, fileBasename, fileDirname, userHome, pathSeparator, env:NAME, config:NAME.".to_owned(),
        )),
    }
}

fn setting(name: &str, variables: &Variables<'_>) -> Result<String, Failure> {
    match (variables.setting)(name) {
        Some(Value::String(text)) => Ok(text),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(_) => Err((
            "is a list or an object, not a text".to_owned(),
            format!("Give {name:?} a text in .vscode/settings.json, or write the value out."),
        )),
        None => Err((
            "has no value".to_owned(),
            format!("Set {name:?} in .vscode/settings.json, or write the value into the configuration."),
        )),
    }
}

fn folder_of<'a>(name: Option<&str>, variables: &Variables<'a>) -> Result<&'a Folder, Failure> {
    let Some(name) = name else { return Ok(variables.folder) };
    variables.folders.iter().find(|folder| folder.name == name).ok_or_else(|| {
        let names: Vec<&str> = variables.folders.iter().map(|folder| folder.name.as_str()).collect();
        ("names no folder of this window".to_owned(), format!("The folders are: {}.", names.join(", ")))
    })
}

fn is_of_file(name: &str) -> bool {
    name == "file" || name == "relativeFile" || name == "relativeFileDirname" || name.starts_with("file")
}

fn file_variable(name: &str, folder: &Folder, variables: &Variables<'_>) -> Result<String, Failure> {
    let Some(file) = variables.file else {
        return Err((
            "means the file open in the editor, and this window has none".to_owned(),
            "Name the file to debug, or use a configuration with a fixed `program`.".to_owned(),
        ));
    };
    let parent = file.parent().unwrap_or(file);
    let owner = variables.folders.iter().find(|owner| file.starts_with(&owner.path));
    let relative = |path: &Path| text(path.strip_prefix(&folder.path).unwrap_or(path));
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let extension = file.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    Ok(match name {
        "file" => text(file),
        "relativeFile" => relative(file),
        "relativeFileDirname" => match relative(parent).as_str() {
            "" => ".".to_owned(),
            dirname => dirname.to_owned(),
        },
        "fileBasename" => base_name(file),
        "fileBasenameNoExtension" => stem,
        "fileExtname" => extension.unwrap_or_default(),
        "fileDirname" => text(parent),
        "fileDirnameBasename" => base_name(parent),
        "fileWorkspaceFolder" => text(&owner.unwrap_or(folder).path),
        "fileWorkspaceFolderBasename" => base_name(&owner.unwrap_or(folder).path),
        _ => return Err(("is not a known variable".to_owned(), "Check its spelling.".to_owned())),
    })
}

fn base_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(file: Option<&str>, texts: &[&str], expected: Expect) {
        let folders = [
            Folder { name: "app".to_owned(), path: "/w/app".into() },
            Folder { name: "lib".to_owned(), path: "/w/lib".into() },
        ];
        let variables = Variables {
            folder: &folders[0],
            folders: &folders,
            file: file.map(Path::new),
            home: Some("/home/u".into()),
            environment: &|name| (name == "STAGE").then(|| "test ${file}".to_owned()),
            setting: &|name| match name {
                "python.path" => Some(json!("/usr/bin/python3")),
                "n" => Some(json!(3)),
                "list" => Some(json!([1])),
                _ => None,
            },
        };
        let lines: Vec<String> = texts
            .iter()
            .map(|text| {
                let configuration = json!({"args": [{"x": text}], "port": 1});
                match resolve(configuration.as_object().unwrap(), &variables) {
                    Ok(resolved) => format!("{text} -> {}\n", resolved["args"][0]["x"].as_str().unwrap()),
                    Err(problem) => format!("{problem}; {}\n", problem.hint),
                }
            })
            .collect();
        expected.assert_eq(&lines.concat());
    }

    #[test]
    fn variables_without_an_editor() {
        check(
            None,
            &[
                "${workspaceFolder}/main.py",
                "${workspaceFolder:lib}/${workspaceFolderBasename}-${workspaceFolderBasename:lib}",
                "${env:STAGE}|${env:NO}|",
                "${config:python.path} ${config:n}",
                "${userHome}${pathSeparator}x${/}",
                "$notone ${ open",
                "${file}",
                "${config:no}",
                "${config:list}",
                "${command:pickProcess}",
                "${input:who}",
                "${workspaceFolder:no}",
                "${lineNumber}",
                "${wrokspaceFolder}",
            ],
            expect![[r#"
                ${workspaceFolder}/main.py -> /w/app/main.py
                ${workspaceFolder:lib}/${workspaceFolderBasename}-${workspaceFolderBasename:lib} -> /w/lib/app-lib
                ${env:STAGE}|${env:NO}| -> test ${file}||
                ${config:python.path} ${config:n} -> /usr/bin/python3 3
                ${userHome}${pathSeparator}x${/} -> /home/u/x/
                $notone ${ open -> $notone ${ open
                ${file} in `args[0].x` means the file open in the editor, and this window has none; Name the file to debug, or use a configuration with a fixed `program`.
                ${config:no} in `args[0].x` has no value; Set "no" in .vscode/settings.json, or write the value into the configuration.
                ${config:list} in `args[0].x` is a list or an object, not a text; Give "list" a text in .vscode/settings.json, or write the value out.
                ${command:pickProcess} in `args[0].x` asks a person in an editor, and this window has none; Write the value into the configuration, or add a configuration without this variable.
                ${input:who} in `args[0].x` asks a person in an editor, and this window has none; Write the value into the configuration, or add a configuration without this variable.
                ${workspaceFolder:no} in `args[0].x` names no folder of this window; The folders are: app, lib.
                ${lineNumber} in `args[0].x` needs an editor, and this window has none; Write the value into the configuration.
                ${wrokspaceFolder} in `args[0].x` is not a known variable; Known are workspaceFolder, file, relativeFile, fileBasename, fileDirname, userHome, pathSeparator, env:NAME, config:NAME.
            "#]],
        );
    }

    #[test]
    fn variables_of_a_file() {
        check(
            Some("/w/lib/pkg/mod.test.py"),
            &[
                "${file}",
                "${relativeFile} ${relativeFile:lib} ${relativeFileDirname:lib}",
                "${fileBasename} ${fileBasenameNoExtension} ${fileExtname}",
                "${fileDirname} ${fileDirnameBasename}",
                "${fileWorkspaceFolder} ${fileWorkspaceFolderBasename}",
            ],
            expect![[r#"
                ${file} -> /w/lib/pkg/mod.test.py
                ${relativeFile} ${relativeFile:lib} ${relativeFileDirname:lib} -> /w/lib/pkg/mod.test.py pkg/mod.test.py pkg
                ${fileBasename} ${fileBasenameNoExtension} ${fileExtname} -> mod.test.py mod.test .py
                ${fileDirname} ${fileDirnameBasename} -> /w/lib/pkg pkg
                ${fileWorkspaceFolder} ${fileWorkspaceFolderBasename} -> /w/lib lib
            "#]],
        );
    }
}
