//! Settings out of a text, and into it.

use std::fmt;
use std::ops::Range;

use baton_proto::control::{Settings, SettingsChange};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use toml_edit::{Document, DocumentMut, Item, Table};

use crate::SCHEMA_NAME;
use crate::check::{check, expected, names, nearest};

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// In a sentence.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl Fault {
    fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset.min(text.len())).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
        Self { line, column, message: message.into() }
    }
}

/// What `config.toml` says.
pub fn read(text: &str) -> Result<SettingsChange, Fault> {
    let document = Document::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        Fault::at(text, start, first_line(error.message()))
    })?;
    let mut values = Map::new();
    let mut places: Vec<(String, Range<usize>)> = Vec::new();
    for (name, item) in document.iter() {
        let key = document.key(name).and_then(|key| key.span()).unwrap_or_default();
        if !names().iter().any(|known| known == name) {
            return Err(Fault::at(text, key.start, format!("unknown setting '{name}'; {}", nearest(name))));
        }
        let place = item.span().unwrap_or(key);
        values.insert(name.to_owned(), to_json(item));
        places.push((name.to_owned(), place));
    }
    let place =
        |name: &str| places.iter().find(|(known, _)| known == name).map_or(0, |(_, place)| place.start);
    take(&values).map_err(|(name, message)| Fault::at(text, place(&name), message))
}

/// What `lcp.config.json` says, under the same names.
pub fn read_json(text: &str) -> Result<SettingsChange, Fault> {
    let values: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        // Where the parser stands is told apart.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
        Fault { line: error.line().max(1), column: error.column().max(1), message }
    })?;
    // Where a name stands: good enough for a file of some lines, in which none stands twice.
    let place = |name: &str| text.find(&format!("\"{name}\"")).unwrap_or(0);
    if let Some(unknown) = values.keys().find(|name| !names().contains(name)) {
        let message = format!("unknown setting '{unknown}'; {}", nearest(unknown));
        return Err(Fault::at(text, place(unknown), message));
    }
    take(&values).map_err(|(name, message)| Fault::at(text, place(&name), message))
}

/// The settings of these values; the name of the first that cannot be taken, and why.
fn take(values: &Map<String, Value>) -> Result<SettingsChange, (String, String)> {
    for (name, value) in values {
        let alone = json!({ name: value });
        if value.is_null() || serde_json::from_value::<SettingsChange>(alone).is_err() {
            return Err((name.clone(), format!("invalid value for {name} ({})", expected(name))));
        }
    }
    let change: SettingsChange = serde_json::from_value(Value::Object(values.clone())).unwrap_or_default();
    check(&change).map_err(|(name, why)| (name.to_owned(), why))?;
    Ok(change)
}

/// The text of `config.toml` with a change in it; everything else stays as it is. An empty text is begun.
pub fn edit(text: &str, change: &SettingsChange) -> Result<String, Fault> {
    read(text)?;
    let mut head = if text.trim().is_empty() { begin() } else { String::new() };
    let mut document: DocumentMut = text.parse().map_err(|_| Fault::at(text, 0, "this is not TOML"))?;
    if document.as_table().is_empty() {
        // Comments alone stand behind whatever is put in.
        head += text;
        if !head.ends_with('\n') {
            head.push('\n');
        }
        document = DocumentMut::new();
    }
    let Ok(Value::Object(values)) = serde_json::to_value(change) else { return Ok(text.to_owned()) };
    for (name, value) in values.iter().filter(|(_, value)| !value.is_null()) {
        if let Value::Object(entries) = value {
            put_table(&mut document, name, entries);
            continue;
        }
        let Some(mut value) = to_toml(value) else { continue };
        match document.get_mut(name).and_then(Item::as_value_mut) {
            // A comment behind it stays.
            Some(old) => {
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
            None => {
                document.insert(name, Item::Value(value));
            }
        }
    }
    Ok(head + &document.to_string())
}

/// Entries that stay keep their comments.
fn put_table(document: &mut DocumentMut, name: &str, entries: &Map<String, Value>) {
    let item = document.entry(name).or_insert_with(|| Item::Table(Table::new()));
    let Some(table) = item.as_table_like_mut() else { return };
    let gone = |key: &str| !entries.contains_key(key);
    for key in table.iter().map(|(key, _)| key.to_owned()).filter(|key| gone(key)).collect::<Vec<_>>() {
        table.remove(&key);
    }
    for (key, value) in entries {
        let is_same = table.get(key).is_some_and(|item| to_json(item) == *value);
        if let Some(value) = to_toml(value).filter(|_| !is_same) {
            table.insert(key, Item::Value(value));
        }
    }
    if table.is_empty() {
        document.remove(name);
    }
}

/// What a new file begins with.
fn begin() -> String {
    format!(
        "#:schema ./{SCHEMA_NAME}\n\
         # Settings of Baton. Changes are in force as soon as they are saved; `baton settings` shows and changes them.\n\n"
    )
}

/// What differs from the defaults.
pub fn beyond_defaults(settings: &Settings) -> SettingsChange {
    let (all, defaults) = (serde_json::to_value(settings), serde_json::to_value(Settings::default()));
    let (Ok(Value::Object(all)), Ok(Value::Object(defaults))) = (all, defaults) else {
        return SettingsChange::default();
    };
    let differing = all.into_iter().filter(|(name, value)| defaults.get(name) != Some(value)).collect();
    serde_json::from_value(Value::Object(differing)).unwrap_or_default()
}

/// The JSON schema of the file, for editors.
pub fn schema_text() -> String {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<Settings>();
    schema.insert("title".to_owned(), "Settings of Baton".into());
    schema.insert("additionalProperties".to_owned(), false.into());
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or("this is not TOML").to_owned()
}

fn to_json(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(name, item)| (name.to_owned(), to_json(item))).collect();
    }
    match item.as_value() {
        Some(toml_edit::Value::String(text)) => text.value().as_str().into(),
        Some(toml_edit::Value::Integer(number)) => (*number.value()).into(),
        Some(toml_edit::Value::Boolean(flag)) => (*flag.value()).into(),
        Some(toml_edit::Value::Array(items)) => {
            items.iter().map(|value| to_json(&Item::Value(value.clone()))).collect()
        }
        // A kind that no setting has.
        _ => Value::Null,
    }
}

fn to_toml(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => number.as_i64()?.into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().filter_map(to_toml).collect()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use baton_proto::control::{AiHandover, Routing};
    use proptest::prelude::*;

    use super::*;

    fn fault(text: &str) -> String {
        read(text).expect_err("this cannot be taken").to_string()
    }

    #[test]
    fn a_file_says_what_it_says() {
        let text =
            "# mine\nai_handover = \"never\"\nhold_calls_ms = 5_000 # enough\ntoolsets = [\"debug\"]\n";
        let change = read(text).unwrap();
        let expected = SettingsChange {
            ai_handover: Some(AiHandover::Never),
            hold_calls_ms: Some(5_000),
            toolsets: Some(vec!["debug".to_owned()]),
            ..SettingsChange::default()
        };
        assert_eq!(change, expected);
        assert_eq!(read("").unwrap(), SettingsChange::default());
        let json = r#"{ "ai_handover": "never", "hold_calls_ms": 5000, "toolsets": ["debug"] }"#;
        assert_eq!(read_json(json).unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_line_and_column() {
        let cases = [
            (
                "redact = true\nhold_call_ms = 1\n",
                "line 2, column 1: unknown setting 'hold_call_ms'; did you mean 'hold_calls_ms'?",
            ),
            ("redact = \"yes\"\n", "line 1, column 10: invalid value for redact (true, false)"),
            ("\n  routing = \"all\"", "line 2, column 13: invalid value for routing (live, any)"),
            (
                "hold_calls_ms = -1",
                "line 1, column 17: invalid value for hold_calls_ms (a number up to 300000)",
            ),
            ("hold_calls_ms = 300001", "line 1, column 17: `hold_calls_ms` must be at most 300000"),
            (
                "toolsets = [\"debag\"]",
                "line 1, column 12: unknown toolset \"debag\" (debugger, code, windows, debug, quick, lcp, refactor)",
            ),
            (
                "[programs]\nty = \"bin/ty\"",
                "line 1, column 1: `programs`: the path of \"ty\" must be absolute",
            ),
            ("server_idle_s = 0", "line 1, column 17: `server_idle_s` must be between 1 and 86400"),
            ("log_mb = 0", "line 1, column 10: `log_mb` must be at least 1"),
            ("follow_focus = 2026-11-27", "line 1, column 16: invalid value for follow_focus (true, false)"),
        ];
        for (text, expected) in cases {
            assert_eq!(fault(text), expected, "{text}");
        }
        for text in
            ["redact = tru", "redact = true\nredact = true", "[log]\nlevel = 1", "redact true", "é = \u{1b}"]
        {
            let said = fault(text);
            assert!(said.starts_with("line ") && !said.contains('\n'), "{text}: {said}");
        }
        assert_eq!(
            read_json("{\n \"redact\": 1 }").unwrap_err().to_string(),
            "line 2, column 2: invalid value for redact (true, false)"
        );
        assert_eq!(read_json("{").unwrap_err().line, 1);
    }

    #[test]
    fn a_change_leaves_everything_else_as_it_is() {
        let text = "# mine\nredact = true # because\n\n# how long\nhold_calls_ms = 1\n";
        let change =
            SettingsChange { redact: Some(false), routing: Some(Routing::Any), ..SettingsChange::default() };
        let expected =
            "# mine\nredact = false # because\n\n# how long\nhold_calls_ms = 1\nrouting = \"any\"\n";
        assert_eq!(edit(text, &change).unwrap(), expected);
        assert!(edit("redact = 1", &change).is_err(), "a file with a fault is the user's to mend");
        let begun = edit("", &change).unwrap();
        assert!(begun.starts_with("#:schema ./config.schema.json\n# Settings of Baton."), "{begun}");
        assert_eq!(read(&begun).unwrap(), change);
        let programs = |named: &[(&str, &str)]| {
            let named = named.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned())).collect();
            SettingsChange { programs: Some(named), ..SettingsChange::default() }
        };
        let two = programs(&[("gdb", "/g"), ("ty", "/t")]);
        let written = edit("redact = true\n", &two).unwrap();
        assert_eq!(written, "redact = true\n\n[programs]\ngdb = \"/g\"\nty = \"/t\"\n");
        let of_user = written.replace("\"/g\"", "\"/g\" # mine");
        let one = edit(&of_user, &programs(&[("gdb", "/g")])).unwrap();
        assert_eq!(one, "redact = true\n\n[programs]\ngdb = \"/g\" # mine\n");
        assert_eq!(edit(&one, &programs(&[])).unwrap(), "redact = true\n");
        let inline = edit("programs = { gdb = \"/g\" }\n", &two).unwrap();
        assert_eq!(read(&inline).unwrap(), two);
        let comments = edit("# mine", &SettingsChange { redact: Some(true), ..SettingsChange::default() });
        assert_eq!(comments.unwrap(), "# mine\nredact = true\n");
    }

    #[test]
    fn the_schema_names_every_setting_and_nothing_else() {
        let schema: Value = serde_json::from_str(&schema_text()).unwrap();
        let known: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let mut expected = names();
        expected.sort();
        assert_eq!(known, expected.iter().collect::<Vec<_>>());
        assert_eq!(schema["additionalProperties"], false);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(focus: bool, hold_ms in 0..300_000_u64, log in "(info|debug|baton_edge=trace)", redact: Option<bool>) {
            let change = SettingsChange { follow_focus: Some(focus), hold_calls_ms: Some(hold_ms), log: Some(log), redact, ..SettingsChange::default() };
            prop_assert_eq!(read(&edit("", &change).unwrap()).unwrap(), change.clone());
            let settings = Settings::default().changed(change);
            prop_assert_eq!(Settings::default().changed(beyond_defaults(&settings)), settings);
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,200}") {
            if let Err(fault) = read(&text) {
                prop_assert!(fault.line >= 1 && fault.column >= 1 && !fault.message.is_empty());
            }
        }
    }
}
