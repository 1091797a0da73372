//! Which Python runs a program: what it names itself, then the nearest environment above it, then the window's.

use std::path::{Path, PathBuf};
use std::process::Command;

use baton_agent_debug::types::Waited;
use baton_agent_debug::{Debugger, DebuggerOptions};
use serde_json::json;

use super::fixtures::python;
use super::story::{options, start, wait};

/// An environment without packages: debugpy runs in the one that the options name.
fn environment(folder: &Path) -> PathBuf {
    let made = Command::new(python()).args(["-m", "venv", "--without-pip"]).arg(folder).status().unwrap();
    assert!(made.success());
    folder.to_owned()
}

#[tokio::test]
async fn a_program_is_run_by_its_own_interpreter() {
    const SOURCE: &str = "import sys\nprint('prefix', sys.prefix)\n";
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let outer = environment(&root.join(".venv"));
    let inner = environment(&root.join("services/shop/.venv"));
    let named = environment(&root.join("tools/own"));
    let write = |path: &str, first_line: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("{first_line}{SOURCE}")).unwrap();
        path
    };
    let names = format!("#!{}/bin/python -u\n", named.display());
    for (program, expected) in [
        (write("main.py", ""), &outer),
        (write("services/other/main.py", ""), &outer),
        (write("services/shop/src/main.py", ""), &inner),
        (write("services/shop/tool.py", &names), &named),
        // These mean whichever is there, as does one that is gone.
        (write("services/shop/any.py", "#!/usr/bin/env python3\n"), &inner),
        (write("gone.py", "#!/there/is/none/python3\n"), &outer),
    ] {
        let debugger = Debugger::spawn(DebuggerOptions { folders: vec![root.clone()], ..options() });
        let base = json!({"type": "debugpy", "request": "launch", "program": program});
        let mut start = start("own", base, json!({}));
        start.no_debug = true;
        let waited = debugger.start(start, wait()).await;
        let Ok(Waited::Completed(completed)) = waited else { panic!("{}: {waited:?}", program.display()) };
        let told = format!("prefix {}\n", expected.display());
        assert!(completed.output.text.contains(&told), "{}: {completed:?}", program.display());
    }
}
