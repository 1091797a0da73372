//! js-debug: wants to know the workspace; what it opens is kept from other users.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::host::terminal::PRINTED;
use crate::options::{DebuggerOptions, program_on_path};
use baton_agent_base::process::Program;

/// What runs it. See there.
const START: &str = include_str!("js_debug.js");

/// The server's command line with what keeps its sockets from other users.
pub(crate) fn guarded(mut program: Program) -> Program {
    program.args.splice(0..0, ["-e".into(), START.into()]);
    program
}

/// Fills in what its own extension would.
pub(crate) fn complete(
    arguments: &mut Map<String, Value>,
    program: Option<&Path>,
    options: &DebuggerOptions,
) {
    // Without it the search for files that a source was compiled to finds nothing, and short programs run to
    // their ends before the sources are mapped.
    let beside = program.and_then(Path::parent).unwrap_or(Path::new("/"));
    let folder =
        options.folders.iter().find(|folder| program.is_none_or(|program| program.starts_with(folder)));
    let folder = folder.map_or(beside, PathBuf::as_path);
    arguments.entry("__workspaceFolder").or_insert_with(|| json!(folder));
    arguments.entry("outFiles").or_insert_with(|| {
        json!([format!("{}/**/*.(m|c|)js", folder.display()), "!**/node_modules/**".to_owned()])
    });
    let has_node = program_on_path("node", options.search_path.as_deref()).is_some();
    if !has_node && let Some(node) = options.shelf.node(options.search_path.as_deref()) {
        arguments.entry("runtimeExecutable").or_insert_with(|| json!(node));
    }
}

/// Children of what is attached to are debugged, too.
pub(crate) fn complete_attach(arguments: &mut Map<String, Value>) {
    let env = arguments.entry("env").or_insert_with(|| json!({}));
    let Some(env) = env.as_object_mut() else { return };
    let own = env.get("NODE_OPTIONS").and_then(Value::as_str).unwrap_or_default();
    let options = format!("{own} {PRINTED}");
    env.insert("NODE_OPTIONS".to_owned(), json!(options.trim_start()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::terminal::{TOLD_TO_ALL, guarded_options};

    #[test]
    fn the_address_of_a_debugger_is_told_to_nobody() {
        let options = "--require /x/bootloader.js --inspect-publish-uid=http";
        assert_eq!(guarded_options(options), "--require /x/bootloader.js --inspect-publish-uid=stderr");
        assert!(START.contains(TOLD_TO_ALL) && START.contains(PRINTED));
        let mut arguments = json!({"port": 9229, "env": {"NODE_OPTIONS": "--no-warnings"}});
        let arguments = arguments.as_object_mut().unwrap();
        complete_attach(arguments);
        assert_eq!(arguments["env"]["NODE_OPTIONS"], "--no-warnings --inspect-publish-uid=stderr");
    }
}
