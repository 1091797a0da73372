//! Launch configurations: read as JSON with comments is, variables replaced as a table says, env files bounded.

use std::path::Path;

use serde_json::Value;

use super::json::{Json, read};
use crate::launch_config::variables::{Folder, Variables, resolve};
use crate::launch_config::{LaunchProblem, env_file, for_platform, name_of, parse, parse_jsonc, parts_of};
use crate::object::Object;

/// Longest value that an env file may make: Linux takes none that is longer.
const MAX_VALUE: usize = 128 * 1024;

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    check_env_file(text);
    check_text(text);
    let found = parse_jsonc(text);
    if let Err(LaunchProblem::Syntax { line, column, .. }) = &found {
        let n_lines = text.split(['\n', '\r']).count();
        assert!((1..=n_lines).contains(line) && *column >= 1, "line {line}, column {column} of {text:?}");
    }
    check_value(text, found.as_ref().ok());
    let Ok(file) = parse(text) else { return };
    assert_eq!(found.as_ref().map(Value::is_object), Ok(true), "a launch.json is an object");
    for configuration in file.configurations {
        assert!(name_of(&configuration).is_some(), "what has no name is left out");
        check_texts(&configuration);
        let merged = for_platform(configuration, std::env::consts::OS);
        let is_block = |name: &&str| merged.get(*name).is_some_and(Value::is_object);
        // The block of this system may itself have one; nothing else is left.
        let n_blocks = ["linux", "osx", "windows"].iter().filter(|name| is_block(name)).count();
        assert!(n_blocks <= 1 || merged.values().any(Value::is_object), "{merged:?}");
    }
    file.compounds.iter().for_each(|compound| drop(parts_of(compound)));
}

/// What a plain reader reads, ours reads the same; what ours takes beyond that is nothing but white space.
fn check_value(text: &str, found: Option<&Value>) {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let expected = read(body, true);
    let n_brackets = body.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    match (&expected, found) {
        (Some(expected), Some(found)) if expected.is_plain() && has_plain_numbers(expected) => {
            assert!(expected.is_same(found), "{found} is not {expected:?}");
        }
        (Some(expected), None)
            if expected.is_plain() && n_brackets <= 128 && has_finite_numbers(expected) =>
        {
            panic!("refused: {text:?}")
        }
        (None, Some(found)) => {
            let is_odd = |char: char| char.is_control() || char.is_whitespace() || char == '\u{feff}';
            let is_blank = *found == Value::Null && only_comments(body);
            assert!(is_blank || body.contains(is_odd), "taken as {found}: {text:?}");
        }
        _ => {}
    }
}

/// Nothing in it is a value: putting one behind it makes it one.
fn only_comments(text: &str) -> bool {
    read(&format!("{text}\n0"), true) == Some(Json::Number("0".to_owned()))
}

/// A number beyond all bounds is one that ours may refuse.
fn has_finite_numbers(value: &Json) -> bool {
    match value {
        Json::Number(text) => text.parse().is_ok_and(f64::is_finite),
        Json::List(items) => items.iter().all(has_finite_numbers),
        Json::Object(members) => members.iter().all(|(_, value)| has_finite_numbers(value)),
        _ => true,
    }
}

fn has_plain_numbers(value: &Json) -> bool {
    match value {
        Json::Number(text) => text.len() <= 9 && !text.contains(['e', 'E']),
        Json::List(items) => items.iter().all(has_plain_numbers),
        Json::Object(members) => members.iter().all(|(_, value)| has_plain_numbers(value)),
        _ => true,
    }
}

/// Values are bounded and have names that can be set.
fn check_env_file(text: &str) {
    let pairs = env_file::parse(text, &|name| (name == "HOME").then(|| "/home/u".to_owned()));
    assert!(pairs.len() <= text.lines().count());
    for (name, value) in &pairs {
        assert!(!name.is_empty() && !name.contains(['=', '\0']), "{name:?} cannot be set");
        assert!(value.len() <= MAX_VALUE, "{name} has {} bytes", value.len());
        assert!(!value.contains('\0'), "{name} cannot be set to {value:?}");
    }
}

const VALUES: [(&str, &str); 16] = [
    ("env:STAGE", "test ${file}"),
    ("env:NO", ""),
    ("config:a.b", "${env:STAGE}"),
    ("config:n", "3"),
    ("workspaceFolder", "/w/app"),
    ("workspaceFolder:lib", "/w/lib"),
    ("workspaceFolderBasename", "app"),
    ("userHome", "/home/u"),
    ("pathSeparator", "/"),
    ("/", "/"),
    ("cwd", "/w/app"),
    ("file", "/w/lib/p/m.test.py"),
    ("relativeFile:lib", "p/m.test.py"),
    ("fileBasenameNoExtension", "m.test"),
    ("fileExtname", ".py"),
    ("fileDirnameBasename", "p"),
];

/// What [`resolve`] makes of one text.
fn resolved(text: &str) -> Option<String> {
    let folder = |name: &str| Folder { name: name.to_owned(), path: Path::new("/w").join(name) };
    let folders = [folder("app"), folder("lib")];
    let variables = Variables {
        folder: &folders[0],
        folders: &folders,
        file: Some(Path::new("/w/lib/p/m.test.py")),
        home: Some("/home/u".into()),
        environment: &|name| (name == "STAGE").then(|| "test ${file}".to_owned()),
        setting: &|name| match name {
            "a.b" => Some("${env:STAGE}".into()),
            "n" => Some(3.into()),
            _ => None,
        },
    };
    let configuration = Object::from_iter([("x".to_owned(), Value::from(text))]);
    let resolved = resolve(&configuration, &variables).ok()?;
    Some(resolved["x"].as_str().expect("a text stays one").to_owned())
}

/// The same by cutting the text at `${`: what is in the table is replaced once, and nothing else changes.
fn check_text(text: &str) {
    let mut pieces = text.split("${");
    let mut expected = Some(pieces.next().unwrap_or_default().to_owned());
    let mut is_open = false;
    for piece in pieces {
        let all = expected.as_mut();
        match (all, piece.split_once('}')) {
            (None, _) => {}
            // An opening without an end, or one inside another, is for the reader to say.
            _ if is_open => return,
            (Some(all), None) => {
                all.push_str("${");
                all.push_str(piece);
                is_open = true;
            }
            (Some(all), Some((variable, rest))) => match VALUES.iter().find(|(name, _)| *name == variable) {
                Some((_, value)) => all.push_str(&format!("{value}{rest}")),
                // There are more variables than in the table.
                None => return,
            },
        }
    }
    assert_eq!(resolved(text), expected, "{text:?}");
}

/// All texts of a configuration.
fn check_texts(configuration: &Object) {
    configuration.values().filter_map(Value::as_str).for_each(check_text);
}
