//! CORE: what stands in a launch.json.

pub mod env_file;
pub mod inputs;
pub mod variables;

use std::collections::BTreeSet;

use crate::object::Object;
use crate::wire::{bodies, read};
use serde_json::Value;

/// A launch.json, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchFile {
    /// Its configurations that have a name, as written.
    pub configurations: Vec<Object>,
    /// Its compounds, as written.
    pub compounds: Vec<Object>,
    /// What its configurations can ask a person for.
    pub inputs: Vec<Value>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// Why a text is no launch.json.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchProblem {
    /// It does not parse.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What the parser says.
        what: String,
    },
    /// It parses and is something else.
    #[error("{0}")]
    Shape(&'static str),
}

/// Deepest nesting of a file that is parsed; the parser recurses.
const MAX_DEPTH: usize = 128;

/// Reads a launch.json: JSON with comments, trailing commas and perhaps a byte order mark.
pub fn parse(text: &str) -> Result<LaunchFile, LaunchProblem> {
    let Value::Object(mut root) = parse_jsonc(text)? else {
        return Err(LaunchProblem::Shape("it must be an object with a list `configurations`"));
    };
    let list = match root.remove("configurations") {
        Some(Value::Array(list)) => list,
        None => Vec::new(),
        Some(_) => return Err(LaunchProblem::Shape("`configurations` must be a list")),
    };
    let mut nameless = Vec::new();
    let mut configurations = Vec::new();
    for (idx, entry) in list.into_iter().enumerate() {
        match entry {
            Value::Object(entry) if name_of(&entry).is_some() => configurations.push(entry),
            _ => nameless.push(format!("Configuration {} has no `name` and is ignored.", idx + 1)),
        }
    }
    let mut list = |name: &str| match root.remove(name) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let compounds = list("compounds").into_iter().filter_map(|entry| entry.as_object().cloned()).collect();
    let mut file = LaunchFile::of(configurations, compounds, list("inputs"));
    file.notes.splice(0..0, nameless);
    Ok(file)
}

impl LaunchFile {
    /// These, with a note about configurations of which the name is no name.
    pub fn of(configurations: Vec<Object>, compounds: Vec<Object>, inputs: Vec<Value>) -> Self {
        let names: Vec<&str> = configurations.iter().filter_map(name_of).collect();
        let is_again = |idx: usize| names[..idx].contains(&names[idx]);
        let again: BTreeSet<&str> =
            (0..names.len()).filter(|idx| is_again(*idx)).map(|idx| names[idx]).collect();
        let told = |name: &&str| format!("Several configurations are named `{name}`: the first is started.");
        let notes = again.iter().map(told).collect();
        Self { configurations, compounds, inputs, notes }
    }
}

/// JSON with what VS Code allows in its files, and nothing more lenient.
pub fn parse_jsonc(text: &str) -> Result<Value, LaunchProblem> {
    if depth(text) > MAX_DEPTH {
        return Err(LaunchProblem::Shape("it is nested too deeply"));
    }
    baton_jsonc::parse(text).map_err(|error| LaunchProblem::Syntax {
        line: error.line_display(),
        column: error.column_display(),
        what: error.kind().to_string(),
    })
}

/// An upper bound of the nesting: brackets in strings and comments count too, so only far-off files are hit.
fn depth(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The `name` of a configuration or compound.
pub fn name_of(entry: &Object) -> Option<&str> {
    entry.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
}

bodies! { pub(crate),
    /// A compound.
    Parts {
        configurations: Vec<Value>,
    }

    /// A configuration of one folder among several.
    Part {
        name: Option<String>,
        folder: Option<String>,
    }
}

/// The configurations a compound consists of: `Run`, or of one folder among several `Run (app)`.
pub fn parts_of(compound: &Object) -> Vec<String> {
    let name = |part: &Value| {
        if let Some(name) = part.as_str() {
            return Some(name.to_owned());
        }
        let Part { name, folder } = read(part);
        let name = name.filter(|name| !name.is_empty())?;
        Some(folder.map_or(name.clone(), |folder| format!("{name} ({folder})")))
    };
    let Parts { configurations } = read(&Value::Object(compound.clone()));
    configurations.iter().filter_map(name).collect()
}

/// Lays the block for the operating system (`linux`, `osx`, `windows`) over a configuration; `os` is its name in Rust.
pub fn for_platform(mut configuration: Object, os: &str) -> Object {
    let current = match os {
        "macos" => "osx",
        "windows" => "windows",
        _ => "linux",
    };
    for platform in ["linux", "osx", "windows"] {
        if let Some(Value::Object(block)) = configuration.get(platform).cloned() {
            configuration.remove(platform);
            if platform == current {
                configuration.extend(block);
            }
        }
    }
    configuration
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&match parse(text) {
            Ok(file) => {
                let names = |list: &[Object]| {
                    list.iter().filter_map(name_of).map(str::to_owned).collect::<Vec<_>>().join(", ")
                };
                format!("[{}] [{}] {:?}", names(&file.configurations), names(&file.compounds), file.notes)
            }
            Err(problem) => problem.to_string(),
        });
    }

    #[test]
    fn comments_trailing_commas_and_a_byte_order_mark_are_fine() {
        check(
            "\u{feff}{\n  // how we run\n  \"version\": \"0.2.0\",\n  \"configurations\": [\n    {\"name\": \"a\", /* x */ \"type\": \"debugpy\",},\n    {\"type\": \"debugpy\"},\n  ],\n  \"compounds\": [{\"name\": \"both\", \"configurations\": [\"a\"]}],\n}\n",
            expect![[r#"[a] [both] ["Configuration 2 has no `name` and is ignored."]"#]],
        );
        check("{}", expect!["[] [] []"]);
        check(
            r#"{"configurations": [{"name": "a"}, {"name": "b"}, {"name": "a"}, {"name": "a"}]}"#,
            expect![[r#"[a, b, a, a] [] ["Several configurations are named `a`: the first is started."]"#]],
        );
    }

    #[test]
    fn a_broken_file_is_told_with_its_place() {
        check(
            "{\n  \"configurations\": [\n    {\"name\": \"a\" \"type\": \"b\"}\n  ]\n}",
            expect!["line 3, column 17: Expected comma"],
        );
        check("{\"configurations\": [", expect!["line 1, column 21: Unterminated array"]);
        check("", expect!["it must be an object with a list `configurations`"]);
        check("[]", expect!["it must be an object with a list `configurations`"]);
        check("{\"configurations\": {}}", expect!["`configurations` must be a list"]);
        check("{name: 'a'}", expect!["line 1, column 2: Expected string for object property"]);
        check(&"[".repeat(100_000), expect!["it is nested too deeply"]);
    }

    #[test]
    fn the_block_of_the_platform_wins() {
        let configuration = json!({"program": "a", "linux": {"program": "l"}, "osx": {"program": "m"}, "windows": {"program": "w"}});
        for (os, program) in [("linux", "l"), ("macos", "m"), ("windows", "w"), ("freebsd", "l")] {
            let merged = for_platform(configuration.as_object().unwrap().clone(), os);
            assert_eq!(Value::from(merged), json!({ "program": program }));
        }
    }
}
