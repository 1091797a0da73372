//! Programs that rustc made: how they are known, and the toolchain's own texts for their values.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::adapters::configuration::program_of;
use crate::dap::configuration::Configuration;
use crate::options::{DebuggerOptions, program_on_path};
use baton_agent_base::rustup;

/// Larger programs are not searched for rustc's sign.
const MAX_SCANNED: u64 = 256 * 1024 * 1024;
/// Stands in an adapter's fields for the folder of the texts.
const PLACEHOLDER: &str = "{rust}";

/// Whether a launch is of a program that rustc made: it says so in its comment section.
pub(crate) fn is_rust(arguments: &Map<String, Value>) -> bool {
    const SIGN: &[u8] = b"rustc version ";
    let Some(path) = program_of(&Configuration::of(arguments)) else { return false };
    let is_short = path.metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_SCANNED);
    is_short && std::fs::read(path).is_ok_and(|bytes| memchr::memmem::find(&bytes, SIGN).is_some())
}

/// The folder in which the toolchain of a program keeps its texts for gdb and lldb.
pub(crate) fn formatters(arguments: &Map<String, Value>, options: &DebuggerOptions) -> Option<PathBuf> {
    let program = program_of(&Configuration::of(arguments))?;
    let rustc = program_on_path("rustc", options.search_path.as_deref())?;
    let rustc = rustup::behind(rustc, program.parent()?)?;
    let toolchain = rustc.parent()?.parent()?;
    Some(toolchain.join("lib/rustlib/etc")).filter(|folder| folder.join("lldb_lookup.py").is_file())
}

/// The fields with that folder in the place of `{rust}`; none where one wants a folder that is not there.
pub(crate) fn launch(fields: &Map<String, Value>, folder: Option<&Path>) -> Map<String, Value> {
    let fill = |value: &Value| match value {
        Value::Array(items) => items
            .iter()
            .map(|item| filled(item.as_str()?, folder))
            .collect::<Option<Vec<_>>>()
            .map(|items| json!(items)),
        other => Some(other.clone()),
    };
    let all: Option<Map<String, Value>> =
        fields.iter().map(|(name, value)| Some((name.clone(), fill(value)?))).collect();
    all.unwrap_or_default()
}

/// The same for an adapter's own arguments.
pub(crate) fn args(args: &[String], folder: Option<&Path>) -> Vec<String> {
    args.iter().map(|arg| filled(arg, folder)).collect::<Option<Vec<_>>>().unwrap_or_default()
}

fn filled(text: &str, folder: Option<&Path>) -> Option<String> {
    if !text.contains(PLACEHOLDER) {
        return Some(text.to_owned());
    }
    Some(text.replace(PLACEHOLDER, folder?.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wants_the_toolchain_is_left_out_without_it() {
        let fields = json!({"initCommands": ["source {rust}/x", "y"], "a": true});
        let fields = fields.as_object().unwrap();
        let folder = Some(Path::new("/t"));
        assert_eq!(json!(launch(fields, folder)), json!({"initCommands": ["source /t/x", "y"], "a": true}));
        assert_eq!(launch(fields, None), Map::new());
        let wanted = ["-d".to_owned(), "{rust}".to_owned()];
        assert_eq!(
            (args(&wanted, folder), args(&wanted, None)),
            (vec!["-d".to_owned(), "/t".to_owned()], vec![])
        );
    }
}
