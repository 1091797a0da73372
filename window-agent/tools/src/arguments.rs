//! CORE: checks the arguments of a call against the tool's own input schema, and says in a sentence what is
//! wrong with them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::names::closest;
use baton_agent_base::object::Object;

/// Problems that one answer tells.
const MAX_PROBLEMS: usize = 3;
/// Arguments that a hint lists.
const MAX_USAGE: usize = 12;
/// Characters of a wrong value that an answer repeats.
const MAX_SHOWN: usize = 60;
/// Elements of a list whose schema names no bound; each of them is work.
const MAX_ITEMS: usize = 1_000;
/// Characters of a text whose schema names no bound: names, paths and conditions are compared and repeated.
const MAX_TEXT: usize = 100_000;
/// Arguments that hold what files and programs hold, and may be as long as a message.
const CONTENT: [&str; 8] =
    ["code", "content", "expression", "new_text", "old_text", "text", "value", "variable_value"];

/// The part of JSON Schema that ours use. An object without `properties` is free; a type that is not in the list is not
/// checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Shape {
    #[serde(rename = "type")]
    kind: String,
    r#enum: Option<Vec<Value>>,
    r#const: Option<Value>,
    minimum: Option<Number>,
    maximum: Option<Number>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    properties: Option<BTreeMap<String, Shape>>,
    required: Vec<String>,
    additional_properties: Option<Additional>,
    items: Option<Box<Shape>>,
}

/// What an object may hold besides.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Additional {
    Allowed(#[expect(dead_code, reason = "that it is no shape is what counts")] bool),
    Of(Box<Shape>),
}

impl Shape {
    /// Of a schema of ours.
    pub(crate) fn of(schema: &Object) -> Self {
        // A test reads all of them.
        serde_json::from_value(Value::Object(schema.clone())).unwrap_or_default()
    }
}

/// What starts programs, and what sets breakpoints for them.
const SETTERS: [(&str, &str); 4] = [
    ("debug", "a call with `action` set_breakpoint"),
    ("start_debugging", "a call of set_breakpoint"),
    ("debug_start", "a call of debug_setBreakpoint"),
    ("lcp_debug_launch", "a call of lcp_add_breakpoint"),
];

/// What is wrong: the first few things, and how many there are.
#[derive(Debug, Default)]
struct Problems {
    told: Vec<String>,
    n_all: usize,
    /// A name is like that of no argument.
    has_stranger: bool,
    /// So is one of breakpoints, which no start takes.
    has_breakpoints: bool,
}

impl Problems {
    /// What is not told is not put into words, either: there may be thousands.
    fn push(&mut self, problem: impl FnOnce() -> String) {
        self.n_all += 1;
        if self.told.len() < MAX_PROBLEMS {
            self.told.push(problem());
        }
    }
}

/// Checks `arguments` against `schema` and returns them normalised: an optional argument that is null is left
/// out, and 3.0 becomes 3 where an integer is wanted.
pub fn check(tool: &str, shape: &Shape, arguments: Option<Object>) -> Result<Object, Fault> {
    let mut problems = Problems::default();
    let checked = check_object("", shape, arguments.unwrap_or_default(), &mut problems);
    if problems.n_all == 0 {
        return Ok(checked);
    }
    let n_more = problems.n_all - problems.told.len();
    let mut message = format!("{tool}: {}", problems.told.join("; "));
    if n_more > 0 {
        message.push_str(&format!("; and {n_more} more"));
    }
    message.push('.');
    let mut hint = usage(tool, shape);
    let has_more = shape.properties.as_ref().is_some_and(|known| known.contains_key("arguments"));
    if has_more && problems.has_stranger {
        hint.push_str(" What a launch configuration can have besides goes into `arguments`.");
    }
    let setter = SETTERS.iter().find(|(start, _)| problems.has_breakpoints && *start == tool);
    if let Some((_, setter)) = setter {
        hint.push_str(&format!(" Breakpoints are set first, each by {setter}."));
    }
    Err(Fault::new(Kind::InvalidArguments, message).hint(hint))
}

fn check_object(at: &str, shape: &Shape, given: Object, problems: &mut Problems) -> Object {
    let no_properties = BTreeMap::new();
    let properties = shape.properties.as_ref().unwrap_or(&no_properties);
    let given = as_called(given, properties);
    let mut checked = Object::new();
    for (name, value) in given {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        let Some(property) = properties.get(&name) else {
            let (mut is_stranger, mut is_breakpoints) = (false, false);
            problems.push(|| {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                let path: String = path.chars().take(MAX_SHOWN).collect();
                match closest(&name, &known) {
                    Some(closest) => format!("unknown argument {path:?} (did you mean {closest:?}?)"),
                    None => {
                        is_stranger = true;
                        is_breakpoints = at.is_empty() && ["breakpoint", "breakpoints"].contains(&&*name);
                        format!("unknown argument {path:?}")
                    }
                }
            });
            problems.has_stranger |= is_stranger;
            problems.has_breakpoints |= is_breakpoints;
            continue;
        };
        if value.is_null() && !shape.required.contains(&name) {
            continue;
        }
        if let Some(value) = check_value(&path, property, value, problems) {
            checked.insert(name, value);
        }
    }
    for name in &shape.required {
        let is_told = problems.told.iter().any(|problem| problem.contains(&format!("{name:?}")));
        if !checked.contains_key(name) && !is_told {
            let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            let wanted = properties.get(name).map(wanted).unwrap_or_default();
            problems.push(|| format!("{path:?} is missing, it must be {wanted}"));
        }
    }
    checked
}

/// Two names that the tools have for one thing: a client that knows it from one tool is understood by the other.
fn as_called(mut given: Object, properties: &BTreeMap<String, Shape>) -> Object {
    const SAME: [(&str, &str); 2] = [("file_path", "context_file"), ("context_file", "file_path")];
    for (other, own) in SAME {
        let is_meant = properties.contains_key(own) && !properties.contains_key(other);
        if is_meant
            && !given.contains_key(own)
            && let Some(value) = given.remove(other)
        {
            given.insert(own.to_owned(), value);
        }
    }
    given
}

fn check_value(path: &str, shape: &Shape, value: Value, problems: &mut Problems) -> Option<Value> {
    let value = match (shape.kind.as_str(), value) {
        ("object", Value::Object(object)) if shape.properties.is_some() => {
            return Some(Value::Object(check_object(path, shape, object, problems)));
        }
        ("object", Value::Object(object)) => return Some(check_entries(path, shape, object, problems)),
        ("array", Value::Array(list)) => return Some(check_items(path, shape, list, problems)),
        ("integer", value) => to_integer(&value).map(Value::from).unwrap_or(value),
        (_, value) => value,
    };
    if !is_type(&shape.kind, &value) || !is_within(shape, &value) {
        problems.push(|| match slip(shape, &value) {
            Some(meant) => format!("{path:?} is {} (did you mean {meant:?}?)", shown(&value)),
            None => format!("{path:?} must be {}, got {}", wanted(shape), shown(&value)),
        });
        return None;
    }
    let is_content = CONTENT.iter().any(|name| path.rsplit('.').next() == Some(name));
    if value.as_str().is_some_and(|text| text.len() > MAX_TEXT && text.chars().count() > MAX_TEXT)
        && !is_content
    {
        problems.push(|| format!("{path:?} has more than {MAX_TEXT} characters"));
        return None;
    }
    Some(value)
}

/// An object whose names are the caller's: its values may have to be of a type.
fn check_entries(path: &str, shape: &Shape, object: Object, problems: &mut Problems) -> Value {
    let Some(Additional::Of(values)) = &shape.additional_properties else {
        return Value::Object(object);
    };
    let entries = object.into_iter().filter_map(|(name, value)| {
        let shown: String = name.chars().take(MAX_SHOWN).collect();
        Some((name, check_value(&format!("{path}.{shown}"), values, value, problems)?))
    });
    Value::Object(entries.collect())
}

fn check_items(path: &str, shape: &Shape, list: Vec<Value>, problems: &mut Problems) -> Value {
    if list.len() > MAX_ITEMS {
        problems
            .push(|| format!("{path:?} has {} elements, at most {MAX_ITEMS} are taken at once", list.len()));
        return Value::Null;
    }
    let Some(items) = &shape.items else { return Value::Array(list) };
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

fn is_within(shape: &Shape, value: &Value) -> bool {
    let number = |bound: &Option<Number>| bound.as_ref().and_then(Number::as_f64);
    if let Some(value) = value.as_f64()
        && (number(&shape.minimum).is_some_and(|minimum| value < minimum)
            || number(&shape.maximum).is_some_and(|maximum| value > maximum))
    {
        return false;
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count();
        if shape.min_length.is_some_and(|minimum| length < minimum)
            || shape.max_length.is_some_and(|maximum| length > maximum)
        {
            return false;
        }
    }
    let is_allowed = shape.r#enum.as_ref().is_none_or(|all| all.contains(value));
    is_allowed && shape.r#const.as_ref().is_none_or(|only| only == value)
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

/// The one of many values that was most likely meant: to list them all would cost more than it tells.
fn slip<'a>(shape: &'a Shape, value: &Value) -> Option<&'a str> {
    const MANY: usize = 8;
    let all = shape.r#enum.as_ref().filter(|all| all.len() > MANY)?;
    let names: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    closest(value.as_str()?, &names)
}

/// What a value must be, in words.
fn wanted(shape: &Shape) -> String {
    if let Some(only) = &shape.r#const {
        return format!("{only}");
    }
    if let Some(all) = &shape.r#enum {
        let names: Vec<String> = all.iter().map(Value::to_string).collect();
        return format!("one of {}", names.join(", "));
    }
    let kind = match shape.kind.as_str() {
        "integer" => "an integer",
        "object" => "an object",
        "array" => "an array",
        "string" if shape.min_length.is_some() => "a non-empty string",
        "string" => "a string",
        "boolean" => "true or false",
        _ => "a number",
    };
    match (&shape.minimum, &shape.maximum, shape.max_length) {
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
fn usage(tool: &str, shape: &Shape) -> String {
    let Some(properties) = &shape.properties else { return String::new() };
    if properties.len() > MAX_USAGE {
        return format!("Usage: {tool}({}, ...); see tools/list for the rest.", shape.required.join(", "));
    }
    let arguments: Vec<String> = properties
        .iter()
        .map(|(name, property)| {
            let mark = if shape.required.contains(name) { "" } else { "?" };
            format!("{name}{mark}: {}", property.kind)
        })
        .collect();
    format!("Usage: {tool}({}); ? marks what is optional.", arguments.join(", "))
}

/// Arguments as a type. The schema was checked before, so a failure here is a gap between the two.
pub(crate) fn typed<T: DeserializeOwned>(arguments: Object) -> Result<T, Fault> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Fault::new(Kind::InvalidArguments, format!("The arguments do not fit: {error}.")))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::CATALOGUE;

    fn check_call(tool: &str, arguments: Value, expected: Expect) {
        let definition = CATALOGUE.find(tool).unwrap();
        let arguments = arguments.as_object().cloned();
        expected.assert_eq(&match check(tool, definition.shape(), arguments) {
            Ok(arguments) => Value::Object(arguments).to_string(),
            Err(error) => error.message,
        });
    }

    #[test]
    fn the_shape_of_every_tool_is_read() {
        for definition in CATALOGUE.definitions() {
            let input = definition.whole().input_schema;
            let n_arguments = input["properties"].as_object().map(Object::len);
            let shape: Shape =
                serde_json::from_value(Value::Object((*input).clone())).expect(definition.name);
            assert_eq!(shape.properties.map(|all| all.len()), n_arguments, "{}", definition.name);
        }
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
                r#"set_breakpoint: unknown argument "line" (did you mean "line_number"?); unknown argument "path" (did you mean "file_path"?)."#
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
    fn lists_and_texts_are_bounded_and_content_is_not() {
        let edits = |n: usize| json!({"file_path": "a", "edits": vec![json!({"new_text": "x"}); n]});
        check_call(
            "lcp_apply_edit",
            edits(MAX_ITEMS + 1),
            expect![[r#"lcp_apply_edit: "edits" has 1001 elements, at most 1000 are taken at once."#]],
        );
        let check_fits = |tool: &str, arguments: Value| {
            let definition = CATALOGUE.find(tool).unwrap();
            check(tool, definition.shape(), arguments.as_object().cloned()).unwrap();
        };
        check_fits("lcp_apply_edit", edits(MAX_ITEMS));
        let long = "x".repeat(MAX_TEXT + 1);
        check_call(
            "lcp_get_outline",
            json!({"file_path": long}),
            expect![[r#"lcp_get_outline: "file_path" has more than 100000 characters."#]],
        );
        check_fits(
            "lcp_apply_edit",
            json!({"file_path": "a", "edits": [{"old_text": long, "new_text": long}]}),
        );
        check_fits("evaluate_expression", json!({"expression": long, "frame_id": 1}));
    }

    #[test]
    fn a_file_goes_by_either_of_its_names() {
        let checked = |tool: &str, arguments: Value| {
            let definition = CATALOGUE.find(tool).unwrap();
            check(tool, definition.shape(), arguments.as_object().cloned()).map(Value::Object)
        };
        let by_file_path = checked("lcp_find_references", json!({"symbol_name": "a", "file_path": "a.py"}));
        assert_eq!(by_file_path.unwrap(), json!({"symbol_name": "a", "context_file": "a.py"}));
        let by_context = checked("lcp_get_outline", json!({"context_file": "a.py"}));
        assert_eq!(by_context.unwrap(), json!({"file_path": "a.py"}));
        check_call(
            "lcp_find_references",
            json!({"symbol_name": "a", "file_path": "a.py", "context_file": "b.py"}),
            expect![[r#"lcp_find_references: unknown argument "file_path"."#]],
        );
    }

    #[test]
    fn a_field_of_a_configuration_is_told_where_it_goes() {
        let hinted = |arguments: Value| {
            let shape = CATALOGUE.find("debug").unwrap().shape();
            let fault = check("debug", shape, arguments.as_object().cloned()).unwrap_err();
            fault.hint.unwrap_or_default().contains("goes into `arguments`")
        };
        assert!(hinted(json!({"action": "launch", "python": "/venv/bin/python"})));
        assert!(!hinted(json!({"action": "launch", "progam": "a.py"})), "it is a slip");
    }

    #[test]
    fn thousands_of_problems_are_counted_and_three_are_told() {
        let many: Object = (0..10_000).map(|n| (format!("line_numbr{n:05}"), Value::Null)).collect();
        check_call(
            "get_breakpoints",
            Value::Object(many),
            expect![[
                r#"get_breakpoints: unknown argument "line_numbr00000"; unknown argument "line_numbr00001"; unknown argument "line_numbr00002"; and 9997 more."#
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
