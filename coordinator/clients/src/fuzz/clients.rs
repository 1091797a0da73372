//! Files of AI clients: with Baton in them they say what they said and Baton; without it they are the bytes they were.

use std::cell::RefCell;
use std::path::Path;

use serde_json::{Value, json};

use super::json::{Json, read};
use super::scratch::Scratch;
use crate::file::{Written, remove, write};
use crate::{Client, ENTRY, Language, Reach};

/// Where the records of what was written lie.
const RECORDS: &str = "clients.json";

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// The first byte chooses the client, the second one what happens in between; the rest is the file.
pub(super) fn run(bytes: &[u8]) {
    let [which, how, text @ ..] = bytes else { return };
    let clients: Vec<Client> = Client::all().collect();
    let client = clients[usize::from(*which) % clients.len()];
    SCRATCH.with_borrow(|scratch| {
        scratch.put("file", text);
        scratch.put(RECORDS, b"{}");
        let path = scratch.home.path().join("file");
        let now = || std::fs::read(&path).expect("the file is there");
        let entry = client.entry(&reach(how & 1 == 1 && client.takes_http(), "7717"));
        let Ok(Written::Changed) = write(&scratch.home, client, &path, &entry) else {
            assert_eq!(now(), text, "what is refused is not touched");
            return;
        };
        check_meaning(client, text, &now(), &entry);
        assert!(matches!(write(&scratch.home, client, &path, &entry), Ok(Written::Unchanged)));
        if how & 2 == 2 {
            // Another port or another way: still to be taken back as a whole.
            let entry = client.entry(&reach(how & 4 == 4 && client.takes_http(), "7718"));
            assert!(write(&scratch.home, client, &path, &entry).is_ok(), "written once is written twice");
            check_meaning(client, text, &now(), &entry);
        }
        if how & 8 == 8 {
            return without_records(scratch, client, &path, text);
        }
        assert!(remove(&scratch.home, client, &path).is_ok(), "what was written can be taken out");
        let shown = String::from_utf8_lossy(text);
        assert_eq!(String::from_utf8_lossy(&now()), shown, "the bytes are those of before");
    });
}

/// The records are lost: the entry goes, and everything else stays as it is meant.
fn without_records(scratch: &Scratch, client: Client, path: &Path, text: &[u8]) {
    scratch.put(RECORDS, b"");
    assert!(
        matches!(remove(&scratch.home, client, path), Ok(Written::Changed)),
        "the entry is found without records"
    );
    let now = std::fs::read(path).expect("the file is there");
    let (Some(before), Some(after)) = (meaning(client, text), meaning(client, &now)) else { return };
    assert_eq!(rest(client, &before), rest(client, &after));
    assert_eq!(entry_of(client, &after), None);
}

fn reach(is_http: bool, port: &str) -> Reach {
    if is_http {
        return Reach::Http { url: format!("http://127.0.0.1:{port}/mcp"), token: "0123abc".to_owned() };
    }
    let args = vec!["stdio".to_owned(), "--window".to_owned(), port.to_owned()];
    Reach::Stdio { program: "/opt/ba ton/\"b\"\\é".to_owned(), args, home: Some("/tmp/h".to_owned()) }
}

/// Baton is in it, and all else is as it was. What another reader did not understand before, it need not afterwards.
fn check_meaning(client: Client, before: &[u8], now: &[u8], entry: &Value) {
    let Some(before) = meaning(client, before) else { return };
    let after = meaning(client, now);
    let Some(after) = after else { panic!("is no file any more: {}", String::from_utf8_lossy(now)) };
    assert_eq!(entry_of(client, &after), Some(entry.clone()));
    assert_eq!(rest(client, &before), rest(client, &after));
}

fn entry_of(client: Client, file: &Value) -> Option<Value> {
    file.get(client.section()).and_then(|servers| servers.get(ENTRY)).cloned()
}

/// Without Baton, and without a section that holds nothing else.
fn rest(client: Client, file: &Value) -> Value {
    let mut rest = file.clone();
    if let Some(servers) = rest.get_mut(client.section()).and_then(Value::as_object_mut) {
        servers.remove(ENTRY);
        if servers.is_empty() {
            rest.as_object_mut().expect("it has a section").remove(client.section());
        }
    }
    rest
}

/// What a file says, by another reader than ours.
fn meaning(client: Client, bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match client.language() {
        Language::Json if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() => Some(json!({})),
        Language::Json => read(text, true).map(|value| shown(&value)),
        Language::Toml => {
            let document: toml_edit::DocumentMut = text.parse().ok()?;
            Some(toml(document.as_item()))
        }
    }
}

/// Numbers as they are written; of equal names the last.
fn shown(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(text) => json!({ "number": text }),
        Json::Text(text) => text.clone().unwrap_or_default().into(),
        Json::List(items) => items.iter().map(shown).collect(),
        Json::Object(members) => {
            members.iter().map(|(name, value)| (name.clone().unwrap_or_default(), shown(value))).collect()
        }
    }
}

/// All but texts, lists and tables as they are written.
fn toml(item: &toml_edit::Item) -> Value {
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().map(|table| toml(&toml_edit::Item::Table(table.clone()))).collect();
    }
    if let Some(table) = item.as_table_like() {
        return table.iter().map(|(name, item)| (name.to_owned(), toml(item))).collect();
    }
    match item.as_value() {
        Some(toml_edit::Value::String(text)) => text.value().as_str().into(),
        Some(toml_edit::Value::Array(items)) => {
            items.iter().map(|value| toml(&toml_edit::Item::Value(value.clone()))).collect()
        }
        Some(other) => json!({ "value": other.to_string().trim() }),
        None => Value::Null,
    }
}
