//! gdb: texts for values that it has none for, which it is given as it starts.

use serde_json::Value;

/// In gdb's own Python.
const TEXTS: &str = include_str!("gdb_texts.py");
/// Stands for them in an adapter's arguments.
const PLACEHOLDER: &str = "{texts}";

/// Arguments with the texts in that place, as a literal of Python, which JSON's are.
pub(crate) fn args(args: &[String]) -> Vec<String> {
    args.iter().map(|arg| arg.replace(PLACEHOLDER, &Value::from(TEXTS).to_string())).collect()
}
