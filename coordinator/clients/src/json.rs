//! CORE: an entry in a client's JSON file. Comments, trailing commas, line ends and indentation stay as they are.

use baton_jsonc::{OPTIONS, body};
use jsonc_parser::ast::{self, ObjectProp};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::cst::CstRootNode;
use serde_json::{Map, Value};

use super::edit::{Broken, in_reading_order};

/// The whole text as a value; an empty text is an empty object.
pub(super) fn to_value(text: &str) -> Result<Value, Broken> {
    let value: Option<Value> = baton_jsonc::parse(text).map_err(broken)?;
    match value {
        None => Ok(Value::Object(Map::new())),
        Some(Value::Object(map)) => Ok(Value::Object(map)),
        Some(_) => Err(Broken("is not a JSON object".to_owned())),
    }
}

/// The text with `section.name` set to `entry`; nothing else is changed.
pub(super) fn set(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, Broken> {
    to_value(text)?;
    let start = text.len() - body(text).len();
    let parsed = jsonc_parser::parse_to_ast(body(text), &Default::default(), &OPTIONS).map_err(broken)?;
    let style = Style::of(body(text));
    let Some(root) = parsed.value.as_ref().and_then(ast::Value::as_object) else {
        let whole = style.render(&serde_json::json!({ section: { name: entry } }), "");
        return Ok(format!("{text}{whole}{}", style.newline));
    };
    let edits = match unique(root, section)? {
        None => style.add(body(text), root, section, &serde_json::json!({ name: entry })),
        Some(prop) => {
            let object = prop.value.as_object();
            let object = object.ok_or_else(|| Broken(format!("has a `{section}` that is not an object")))?;
            match unique(object, name)? {
                None => style.add(body(text), object, name, entry),
                Some(prop) => {
                    let indent = indent_at(body(text), prop.start());
                    vec![Edit {
                        range: (prop.value.start(), prop.value.end()),
                        text: style.render(entry, indent),
                    }]
                }
            }
        }
    };
    let mut changed = text.to_owned();
    for edit in edits.iter().rev() {
        changed.replace_range(start + edit.range.0..start + edit.range.1, &edit.text);
    }
    Ok(changed)
}

/// The text without `section.name`, and without an empty section when that was Baton's as well.
pub(super) fn unset(text: &str, section: &str, name: &str, drop_section: bool) -> Result<String, Broken> {
    let root = CstRootNode::parse(body(text), &OPTIONS).map_err(broken)?;
    if let Some(section) = root.object_value().and_then(|object| object.get(section))
        && let Some(servers) = section.object_value()
        && let Some(entry) = servers.get(name)
    {
        entry.remove();
        if drop_section && servers.properties().is_empty() {
            section.remove();
        }
    }
    let mark = &text[..text.len() - body(text).len()];
    Ok(format!("{mark}{root}"))
}

/// How a file is laid out.
struct Style {
    newline: &'static str,
    unit: String,
}

/// Replaces a range of the text.
struct Edit {
    range: (usize, usize),
    text: String,
}

impl Style {
    fn of(text: &str) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        // The first line that is indented shows the unit.
        let indents = text.lines().map(|line| indent_at(line, line.len()));
        let unit = indents.filter(|indent| !indent.is_empty()).min_by_key(|indent| indent.len());
        Self { newline, unit: unit.unwrap_or("  ").to_owned() }
    }

    /// Adds a property as the last one.
    fn add(&self, text: &str, object: &ast::Object<'_>, name: &str, value: &Value) -> Vec<Edit> {
        let name = Value::from(name);
        let (open, close) = (object.start() + 1, object.end() - 1);
        let insert = |at: usize, text: String| Edit { range: (at, at), text };
        let Some(last) = object.properties.last() else {
            let at = open + end_of_last_comment(&text[open..close]);
            let outer = indent_at(text, object.start());
            let inner = format!("{outer}{}", self.unit);
            let closing = if text[at..close].contains('\n') { String::new() } else { self.line(outer) };
            let property = format!("{}{name}: {}", self.line(&inner), self.render(value, &inner));
            return vec![insert(at, format!("{property}{closing}"))];
        };
        let comma = find_comma(&text[last.end()..close]).map(|idx| last.end() + idx);
        let is_own_line = text[..last.start()].trim_end_matches([' ', '\t']).ends_with('\n');
        if !is_own_line {
            let property = format!("{name}: {}", compact(value));
            return match comma {
                Some(comma) => vec![insert(comma + 1, format!(" {property},"))],
                None => vec![insert(last.end(), format!(", {property}"))],
            };
        }
        let indent = indent_at(text, last.start());
        let property = format!("{}{name}: {}", self.line(indent), self.render(value, indent));
        // A comment behind the last property stays behind it.
        let from = comma.map_or(last.end(), |comma| comma + 1);
        let at = from + end_of_line_comment(&text[from..close]);
        match comma {
            Some(_) => vec![insert(at, format!("{property},"))],
            None => vec![insert(last.end(), ",".to_owned()), insert(at, property)],
        }
    }

    fn line(&self, indent: &str) -> String {
        format!("{}{indent}", self.newline)
    }

    fn render(&self, value: &Value, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let object = match value {
            Value::Object(object) if !object.is_empty() => object,
            value => return value.to_string(),
        };
        let properties = in_reading_order(object).into_iter().map(|(name, value)| {
            format!("{}{}: {}", self.line(&inner), Value::from(name.as_str()), self.render(value, &inner))
        });
        format!("{{{}{}}}", properties.collect::<Vec<_>>().join(","), self.line(indent))
    }
}

/// A value on several lines.
pub(super) fn render(value: &Value) -> String {
    Style { newline: "\n", unit: "  ".to_owned() }.render(value, "")
}

/// A value on one line.
fn compact(value: &Value) -> String {
    let Some(object) = value.as_object() else { return value.to_string() };
    let properties = in_reading_order(object).into_iter();
    let properties =
        properties.map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), compact(value)));
    format!("{{{}}}", properties.collect::<Vec<_>>().join(", "))
}

/// Clients differ in which one of two equal names they take.
fn unique<'a, 'b>(object: &'b ast::Object<'a>, name: &str) -> Result<Option<&'b ObjectProp<'a>>, Broken> {
    let mut found = object.properties.iter().filter(|property| property.name.as_str() == name);
    match (found.next(), found.next()) {
        (first, None) => Ok(first),
        _ => Err(Broken(format!("has `{name}` twice"))),
    }
}

/// White space at the start of the line that holds `at`.
fn indent_at(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |idx| idx + 1);
    let indent = text[line..at].len() - text[line..at].trim_start_matches([' ', '\t']).len();
    &text[line..line + indent]
}

/// A stretch of white space, comments and commas, in pieces.
fn trivia(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let rest = &text[offset..];
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |idx| idx + 2)
        } else {
            rest.chars().next()?.len_utf8()
        };
        let piece = (offset, &rest[..len]);
        offset += len;
        Some(piece)
    })
}

fn find_comma(text: &str) -> Option<usize> {
    trivia(text).find(|(_, piece)| *piece == ",").map(|(offset, _)| offset)
}

fn end_of_last_comment(text: &str) -> usize {
    trivia(text)
        .filter(|(_, piece)| piece.starts_with('/'))
        .last()
        .map_or(0, |(offset, piece)| offset + piece.trim_end_matches('\r').len())
}

/// End of the comments that stand on the same line.
fn end_of_line_comment(text: &str) -> usize {
    let line =
        trivia(text).take_while(|(_, piece)| *piece != "\n" && (*piece == " " || !piece.contains('\n')));
    let last = line.filter(|(_, piece)| piece.starts_with('/')).last();
    last.map_or(0, |(offset, piece)| offset + piece.trim_end_matches('\r').len())
}

fn broken(error: jsonc_parser::errors::ParseError) -> Broken {
    Broken(format!("is not valid JSON ({error})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_spaces_and_tabs_are_taken_over_as_indentation() {
        let set = |text: &str| set(text, "servers", "baton", &json!({"url": "x"})).unwrap();
        assert_eq!(set("\u{c}\n").matches('\u{c}').count(), 1);
        assert!(set("{\n\t\"a\": 1\n}").contains("\n\t\"servers\": {\n\t\t\"baton\""));
    }
}
