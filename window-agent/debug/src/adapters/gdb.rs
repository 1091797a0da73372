//! gdb: what it is given as it starts: texts for values that it has none for, and where sources are.

use serde_json::{Map, Value};

/// In gdb's own Python.
const TEXTS: &str = include_str!("gdb_texts.py");
/// Stands for them in an adapter's arguments.
const PLACEHOLDER: &str = "{texts}";

/// Arguments with the texts in that place, as a literal of Python, which JSON's are.
pub(crate) fn args(args: &[String]) -> Vec<String> {
    args.iter().map(|arg| arg.replace(PLACEHOLDER, &Value::from(TEXTS).to_string())).collect()
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
