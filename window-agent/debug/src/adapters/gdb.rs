//! gdb, and what it shares with lldb: what they are given as they start: texts for values that they have none for, what
//! mends gdb's own protocol, and where sources are.

use serde_json::{Map, Value};

/// What stands for texts in an adapter's arguments and fields, and the texts, in its own Python.
const TEXTS: [(&str, &str); 2] = [
    (
        "{texts}",
        concat!(include_str!("gdb_texts.py"), include_str!("gdb_calls.py"), include_str!("gdb_methods.py")),
    ),
    ("{lldb_texts}", include_str!("lldb_texts.py")),
];

/// Arguments with the texts in their places.
pub(crate) fn args(args: &[String]) -> Vec<String> {
    args.iter().map(|arg| filled(arg)).collect()
}

/// The same for fields of a configuration.
pub(crate) fn fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let fill = |value: &Value| match value {
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map_or_else(|| item.clone(), |text| filled(text).into()))
            .collect(),
        other => other.clone(),
    };
    fields.iter().map(|(name, value)| (name.clone(), fill(value))).collect()
}

/// As literals of Python, which JSON's are; lldb runs what stands between backquotes.
fn filled(text: &str) -> String {
    let fill = |text: String, (placeholder, texts): &(&str, &str)| match text.contains(placeholder) {
        true => text.replace(placeholder, &Value::from(*texts).to_string().replace('`', "\\u0060")),
        false => text,
    };
    TEXTS.iter().fold(text.to_owned(), fill)
}

/// Arguments for each path of the configuration's `sourceMap`, an object or a list of pairs: where something was
/// compiled, and where its sources are.
pub(crate) fn source_map(template: &[String], configuration: &mut Map<String, Value>) -> Vec<String> {
    if template.is_empty() {
        return Vec::new();
    }
    let pairs: Vec<(String, String)> = match configuration.remove("sourceMap") {
        Some(Value::Object(map)) => {
            map.into_iter().filter_map(|(from, to)| Some((from, to.as_str()?.to_owned()))).collect()
        }
        Some(Value::Array(list)) => list.iter().filter_map(pair).collect(),
        _ => Vec::new(),
    };
    let filled = |(from, to): &(String, String)| {
        let (from, to) = (quoted(from), quoted(to));
        template
            .iter()
            .map(move |part| part.replace("{from}", &from).replace("{to}", &to))
            .collect::<Vec<_>>()
    };
    pairs.iter().flat_map(filled).collect()
}

fn pair(value: &Value) -> Option<(String, String)> {
    Some((value.get(0)?.as_str()?.to_owned(), value.get(1)?.as_str()?.to_owned()))
}

/// A path as a word of gdb's command line.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_are_mapped_in_gdbs_words() {
        let template = ["-iex", "set substitute-path {from} {to}"].map(str::to_owned);
        let args = |map: Value| {
            let mut configuration = json!({"program": "a", "sourceMap": map}).as_object().cloned().unwrap();
            let args = source_map(&template, &mut configuration);
            assert_eq!(configuration.len(), 1, "gdb knows no such field");
            args
        };
        let expected = ["-iex", r#"set substitute-path "/build" "/w/my \"shop\"""#];
        assert_eq!(args(json!({"/build": "/w/my \"shop\""})), expected);
        assert_eq!(args(json!([["/build", "/w/my \"shop\""], ["odd"]])), expected);
        assert_eq!(args(json!("odd")), [""; 0]);
    }
}
