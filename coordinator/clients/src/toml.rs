//! CORE: a table in a client's TOML file. Everything else stays as it is.

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

use super::edit::{Broken, in_reading_order, take_entry};

/// `[section.name]` with the entry's values.
pub(super) fn render(section: &str, name: &str, entry: &Value, newline: &str) -> String {
    let pairs = entry.as_object().map(in_reading_order).unwrap_or_default();
    let lines = pairs.into_iter().map(|(key, value)| format!("{key} = {}", inline(value)));
    let header = format!("[{section}.{name}]");
    let lines: Vec<_> = std::iter::once(header).chain(lines).collect();
    lines.join(newline)
}

/// The table as a value, when there is one.
pub(super) fn find(text: &str, section: &str, name: &str) -> Result<Option<Value>, Broken> {
    let document = parse(text)?;
    Ok(document.get(section).and_then(|section| section.get(name)).map(from_item))
}

/// True when there is such a section.
pub(super) fn has(text: &str, section: &str) -> Result<bool, Broken> {
    Ok(parse(text)?.get(section).is_some())
}

/// Everything but the table, to see that nothing else has changed.
pub(super) fn rest(text: &str, section: &str, name: &str) -> Result<Value, Broken> {
    let mut value = from_item(parse(text)?.as_item());
    take_entry(&mut value, section, name);
    Ok(value)
}

/// The text with `[section.name]` set to `entry`.
pub(super) fn set(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, Broken> {
    let mut document = parse(text)?;
    let exists = document.get(section).and_then(|section| section.get(name)).is_some();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    if !exists {
        // Behind everything else: what stands there already is not touched at all.
        let gap = if text.is_empty() {
            String::new()
        } else if text.ends_with('\n') {
            newline.to_owned()
        } else {
            newline.repeat(2)
        };
        let changed = format!("{text}{gap}{}{newline}", render(section, name, entry, newline));
        if parse(&changed).is_ok() {
            return Ok(changed);
        }
    }
    // The section is an inline table, or the entry is there: change it in place.
    let fresh: DocumentMut = render(section, name, entry, "\n").parse().map_err(broken)?;
    let table = fresh.get(section).and_then(|section| section.get(name)).cloned().unwrap_or(Item::None);
    let servers = document.entry(section).or_insert(Item::Table(Table::new()));
    let servers = servers.as_table_like_mut();
    let servers = servers.ok_or_else(|| Broken(format!("has a `{section}` that is not a table")))?;
    match servers.get_mut(name).filter(|_| exists) {
        Some(place) if place.is_table() => {
            let (mut table, old) =
                (table, place.as_table().map(|table| (table.decor().clone(), table.position())));
            if let (Some(table), Some((decor, position))) = (table.as_table_mut(), old) {
                *table.decor_mut() = decor;
                table.set_position(position);
            }
            *place = table;
        }
        _ => {
            let inline = table.into_value().map_err(|_| Broken("cannot be edited".to_owned()))?;
            servers.insert(name, Item::Value(inline));
        }
    }
    Ok(document.to_string())
}

/// The text without the table, and without an empty section when that was Baton's as well.
pub(super) fn unset(text: &str, section: &str, name: &str, drop_section: bool) -> Result<String, Broken> {
    let mut document = parse(text)?;
    if let Some(servers) = document.get_mut(section).and_then(Item::as_table_like_mut) {
        servers.remove(name);
        if drop_section && servers.is_empty() {
            document.remove(section);
        }
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, Broken> {
    text.parse().map_err(broken)
}

fn broken(error: toml_edit::TomlError) -> Broken {
    let message = error.to_string();
    Broken(format!("is not valid TOML ({})", message.lines().next().unwrap_or_default()))
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| format!("{key} = {}", inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => toml_edit::Value::from(text.as_str()).to_string().trim().to_owned(),
        other => other.to_string(),
    }
}

/// For comparisons: dates and floats become texts.
fn from_item(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => from_value(value),
        Item::Table(table) => from_pairs(table.iter()),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| from_pairs(table.iter())).collect(),
    }
}

fn from_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a Item)>) -> Value {
    Value::Object(pairs.map(|(key, item)| (key.to_owned(), from_item(item))).collect::<Map<_, _>>())
}

fn from_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(flag) => (*flag.value()).into(),
        toml_edit::Value::Array(items) => items.iter().map(from_value).collect(),
        toml_edit::Value::InlineTable(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.to_owned(), from_value(value))).collect())
        }
        other => other.to_string().trim().into(),
    }
}
