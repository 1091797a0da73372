//! CORE: checks the arguments of a call against the tool's own input schema, and says in a sentence what is
//! wrong with them.

use serde_json::Value;

use super::{Object, ToolError};

/// Problems that one answer tells.
const MAX_PROBLEMS: usize = 3;
/// Arguments that a hint lists.
const MAX_USAGE: usize = 12;
/// Characters of a wrong value that an answer repeats.
const MAX_SHOWN: usize = 60;

/// Checks `arguments` against `schema` and returns them normalised: an optional argument that is null is left
/// out, and 3.0 becomes 3 where an integer is wanted.
///
/// The schemas are our own and use a part of JSON Schema: `type`, `enum`, `const`, `minimum`, `maximum`,
/// `minLength`, `maxLength`, `properties`, `required`, `additionalProperties`, `items`. An object without
/// `properties` is free; a type that is not in the list is not checked.
pub fn check(tool: &str, schema: &Object, arguments: Option<Object>) -> Result<Object, ToolError> {
    let mut problems = Vec::new();
    let checked = check_object("", schema, arguments.unwrap_or_default(), &mut problems);
    if problems.is_empty() {
        return Ok(checked);
    }
    let n_more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    let mut message = format!("{tool}: {}", problems.join("; "));
    if n_more > 0 {
        message.push_str(&format!("; and {n_more} more"));
    }
    message.push('.');
    Err(ToolError::new("invalid_arguments", message).hint(usage(tool, schema)))
}

fn check_object(at: &str, schema: &Object, given: Object, problems: &mut Vec<String>) -> Object {
    let no_properties = Object::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_properties);
    let required: Vec<&str> = names_of(schema.get("required"));
    let mut checked = Object::new();
    for (name, value) in given {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        let Some(property) = properties.get(&name).and_then(Value::as_object) else {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            let path: String = path.chars().take(MAX_SHOWN).collect();
            problems.push(match closest(&name, &known) {
                Some(closest) => format!("there is no argument {path:?}, did you mean {closest:?}"),
                None => format!("there is no argument {path:?}"),
            });
            continue;
        };
        if value.is_null() && !required.contains(&name.as_str()) {
            continue;
        }
        if let Some(value) = check_value(&path, property, value, problems) {
            checked.insert(name, value);
        }
    }
    for name in required {
        let is_told = problems.iter().any(|problem| problem.contains(&format!("{name:?}")));
        if !checked.contains_key(name) && !is_told {
            let path = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            let wanted = properties.get(name).and_then(Value::as_object).map(wanted).unwrap_or_default();
            problems.push(format!("{path:?} is missing, it must be {wanted}"));
        }
    }
    checked
}

fn check_value(path: &str, schema: &Object, value: Value, problems: &mut Vec<String>) -> Option<Value> {
    let value = match (type_of(schema), value) {
        ("object", Value::Object(object)) if schema.contains_key("properties") => {
            return Some(Value::Object(check_object(path, schema, object, problems)));
        }
        ("object", Value::Object(object)) => return Some(check_entries(path, schema, object, problems)),
        ("array", Value::Array(list)) => return Some(check_items(path, schema, list, problems)),
        ("integer", value) => to_integer(&value).map(Value::from).unwrap_or(value),
        (_, value) => value,
    };
    if is_type(type_of(schema), &value) && is_within(schema, &value) {
        return Some(value);
    }
    problems.push(format!("{path:?} must be {}, got {}", wanted(schema), shown(&value)));
    None
}

/// An object whose names are the caller's: its values may have to be of a type.
fn check_entries(path: &str, schema: &Object, object: Object, problems: &mut Vec<String>) -> Value {
    let Some(values) = schema.get("additionalProperties").and_then(Value::as_object) else {
        return Value::Object(object);
    };
    let entries = object.into_iter().filter_map(|(name, value)| {
        let shown: String = name.chars().take(MAX_SHOWN).collect();
        Some((name, check_value(&format!("{path}.{shown}"), values, value, problems)?))
    });
    Value::Object(entries.collect())
}

fn check_items(path: &str, schema: &Object, list: Vec<Value>, problems: &mut Vec<String>) -> Value {
    let Some(items) = schema.get("items").and_then(Value::as_object) else { return Value::Array(list) };
    let checked = list
        .into_iter()
        .enumerate()
        .filter_map(|(idx, value)| check_value(&format!("{path}[{idx}]"), items, value, problems));
    Value::Array(checked.collect())
}

fn is_type(wanted: &str, value: &Value) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => true,
    }
}

fn is_within(schema: &Object, value: &Value) -> bool {
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    if let Some(value) = value.as_f64()
        && (number("minimum").is_some_and(|minimum| value < minimum)
            || number("maximum").is_some_and(|maximum| value > maximum))
    {
        return false;
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as f64;
        if number("minLength").is_some_and(|minimum| length < minimum)
            || number("maxLength").is_some_and(|maximum| length > maximum)
        {
            return false;
        }
    }
    let is_allowed = schema.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(value));
    is_allowed && schema.get("const").is_none_or(|only| only == value)
}

/// JSON Schema counts 3.0 as an integer, and some clients write it so.
fn to_integer(value: &Value) -> Option<i64> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    let number = value.as_f64()?;
    if value.is_i64() {
        return value.as_i64();
    }
    (number.fract() == 0.0 && number.abs() <= MAX_EXACT).then_some(number as i64)
}

fn type_of(schema: &Object) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn names_of(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What a value must be, in words.
fn wanted(schema: &Object) -> String {
    if let Some(only) = schema.get("const") {
        return format!("{only}");
    }
    if schema.contains_key("enum") {
        let names: Vec<String> =
            names_of(schema.get("enum")).iter().map(|name| format!("{name:?}")).collect();
        return format!("one of {}", names.join(", "));
    }
    let kind = match type_of(schema) {
        "integer" => "an integer",
        "object" => "an object",
        "array" => "an array",
        "string" if schema.contains_key("minLength") => "a non-empty string",
        "string" => "a string",
        "boolean" => "true or false",
        _ => "a number",
    };
    match (schema.get("minimum"), schema.get("maximum"), schema.get("maxLength")) {
        (Some(minimum), Some(maximum), _) => format!("{kind} from {minimum} to {maximum}"),
        (Some(minimum), None, _) => format!("{kind} of at least {minimum}"),
        (_, _, Some(length)) => format!("{kind} of at most {length} characters"),
        _ => kind.to_owned(),
    }
}

/// A wrong value, in words and bounded.
fn shown(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Object(_) => return "an object".to_owned(),
        Value::Array(_) => return "an array".to_owned(),
        Value::String(_) => "the string ",
        Value::Bool(_) | Value::Number(_) => "",
    };
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN {
        return format!("{kind}{text}");
    }
    let start: String = text.chars().take(MAX_SHOWN).collect();
    format!("{kind}{start}... ({} characters)", text.chars().count())
}

/// How to call the tool, for the hint.
fn usage(tool: &str, schema: &Object) -> String {
    let required = names_of(schema.get("required"));
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return String::new() };
    if properties.len() > MAX_USAGE {
        return format!("Usage: {tool}({}, ...); the list of tools tells the rest.", required.join(", "));
    }
    let arguments: Vec<String> = properties
        .iter()
        .map(|(name, property)| {
            let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            format!("{name}{mark}: {kind}")
        })
        .collect();
    format!("Usage: {tool}({}); ? marks what may be left out.", arguments.join(", "))
}

/// The name that `given` most likely meant.
pub fn closest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    // A name this long was not a slip of the pen, and the distance is quadratic.
    const MAX_LEN: usize = 64;
    if given.len() > MAX_LEN {
        return None;
    }
    let (distance, name) = names.iter().map(|name| (distance(given, name), *name)).min()?;
    if distance <= 1 + name.len() / 4 {
        return Some(name);
    }
    let is_part = |name: &&&str| given.len() >= 4 && (name.contains(given) || given.contains(**name));
    names.iter().find(is_part).copied()
}

/// Levenshtein's distance, without regard to case.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (left_idx, left_char) in left.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = left_idx + 1;
        for (right_idx, right_char) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(left_char != *right_char);
            diagonal = row[right_idx + 1];
            row[right_idx + 1] = substituted.min(diagonal + 1).min(row[right_idx] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::tools::CATALOGUE;

    fn check_call(tool: &str, arguments: Value, expected: Expect) {
        let definition = CATALOGUE.find(tool).unwrap();
        let arguments = arguments.as_object().cloned();
        expected.assert_eq(&match check(tool, &definition.input, arguments) {
            Ok(arguments) => Value::Object(arguments).to_string(),
            Err(error) => error.message,
        });
    }

    #[test]
    fn right_arguments_pass_and_are_normalised() {
        check_call(
            "set_breakpoint",
            json!({"line_number": 3.0, "file_path": "a.py", "condition": null}),
            expect![[r#"{"file_path":"a.py","line_number":3}"#]],
        );
        check_call("get_breakpoints", Value::Null, expect!["{}"]);
    }

    #[test]
    fn wrong_arguments_are_named() {
        check_call(
            "set_breakpoint",
            json!({"file_path": "a.py", "line_number": "12"}),
            expect![[
                r#"set_breakpoint: "line_number" must be an integer from 1 to 2147483647, got the string "12"."#
            ]],
        );
        check_call(
            "set_breakpoint",
            json!({"file_path": ["a.py"], "line_number": 0}),
            expect![[
                r#"set_breakpoint: "file_path" must be a non-empty string, got an array; "line_number" must be an integer from 1 to 2147483647, got 0."#
            ]],
        );
        check_call(
            "set_breakpoint",
            json!({"file_path": "a.py", "line_number": 1.5, "column_number": 1e300}),
            expect![[
                r#"set_breakpoint: "column_number" must be an integer from 1 to 2147483647, got 1e+300; "line_number" must be an integer from 1 to 2147483647, got 1.5."#
            ]],
        );
        check_call(
            "set_breakpoint",
            json!({"path": "a.py", "line": 4}),
            expect![[
                r#"set_breakpoint: there is no argument "line", did you mean "line_number"; there is no argument "path", did you mean "file_path"."#
            ]],
        );
        check_call(
            "step_execution",
            json!({"thread_id": 1, "step_type": "in"}),
            expect![[
                r#"step_execution: "step_type" must be one of "over", "into", "out", got the string "in"."#
            ]],
        );
        check_call(
            "continue_debugging",
            json!({"thread_id": null, "timeout": 301}),
            expect![[
                r#"continue_debugging: "thread_id" must be an integer, got null; "timeout" must be a number from 1 to 300, got 301."#
            ]],
        );
        check_call(
            "remove_breakpoint",
            json!({"location": {"file_path": "a.py"}}),
            expect![[
                r#"remove_breakpoint: "location.line_number" is missing, it must be an integer from 1 to 2147483647."#
            ]],
        );
    }

    #[test]
    fn long_values_are_cut() {
        check_call(
            "start_debugging",
            json!({"configuration_name": "ok", "timeout": "x".repeat(1_000_000)}),
            expect![[
                r#"start_debugging: "timeout" must be a number from 1 to 300, got the string "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... (1000002 characters)."#
            ]],
        );
    }
}
