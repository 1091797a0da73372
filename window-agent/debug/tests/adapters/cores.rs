//! What a program left behind when it crashed is looked at as if it had stopped there.

use std::process::Command;

use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::{Evaluate, Phase, Resume, Waited};
use serde_json::json;

use crate::programs::{PATIENCE, Program, debugger, shelf, wait_for};

const C: &str = "#include <stdlib.h>
int load(int given) {
  int own = given + 1;
  if (own) abort(); // here
  return own;
}
int main(void) {
  return load(41);
}
";

async fn a_core_dump_is_looked_at(adapter: &str) {
    let program = Program::compiled(C, "if (own) abort(); // here", &[]);
    let core = program.source.with_file_name("core.1");
    let mut gdb = Command::new(shelf().join("gdb/bin/gdb"));
    gdb.args(["-q", "-batch", "-ex", "run", "-ex"]).arg(format!("generate-core-file {}", core.display()));
    let made = gdb.arg(&program.path).output().unwrap();
    assert!(core.is_file(), "{made:?}");
    let debugger = debugger(&program);
    let wish = Launch {
        adapter: Some(adapter.to_owned()),
        program: program.path.clone(),
        stop_on_entry: true,
        ..Launch::default()
    };
    let mut start = debugger.configure(&Wish::Launch(wish)).await.unwrap();
    start.configuration.insert("coreFile".to_owned(), json!("core.1"));
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    let is_own = |line: i64| line == i64::from(program.line);
    let frame = stop.call_stack.iter().find(|frame| frame.file_path == program.source.to_str().unwrap());
    let frame = frame.unwrap_or_else(|| panic!("{stop:#?}"));
    assert!(is_own(frame.line_number), "{stop:#?}");
    let expression = Evaluate { expression: "own".to_owned(), frame_id: frame.frame_id, context: None };
    assert_eq!(debugger.evaluate(expression).await.unwrap().result, "42");
    assert_eq!(stop.meant_frame(), Some(frame.frame_id), "{stop:#?}");
    // Nothing runs, and nothing goes on.
    let status = debugger.status(Some(&stop.session)).await.unwrap();
    assert!(!status.is_attached, "{status:?}");
    let resumed =
        debugger.resume(Some(&stop.session), stop.thread_id, Resume::Continue, wait_for(PATIENCE)).await;
    assert_eq!(resumed.map(drop), Err(DebugError::CoreDump));
    let status = debugger.status(Some(&stop.session)).await.unwrap();
    assert_eq!(status.phase, Phase::Stopped);
    debugger.stop_all().await;
}

#[tokio::test]
async fn a_core_dump_is_looked_at_with_gdb() {
    a_core_dump_is_looked_at("gdb").await;
}

#[tokio::test]
async fn a_core_dump_is_looked_at_with_lldb_dap() {
    a_core_dump_is_looked_at("lldb-dap").await;
}

#[tokio::test]
async fn a_core_dump_that_is_not_there_or_cannot_be_read_is_told() {
    let program = Program::compiled(C, "if (own) abort(); // here", &[]);
    for (adapter, core, expected) in [
        ("gdb", "core.1", "core.1 does not exist"),
        ("lldb-dap", "program.c", "program.c is not a core dump"),
        ("lldb-dap", "program", "program is not a core dump"),
        ("codelldb", "core.1", "codelldb reads no core dumps; use adapter gdb or lldb-dap"),
    ] {
        let debugger = debugger(&program);
        let wish =
            Launch { adapter: Some(adapter.to_owned()), program: program.path.clone(), ..Launch::default() };
        let mut start = debugger.configure(&Wish::Launch(wish)).await.unwrap();
        start.configuration.insert("coreFile".to_owned(), json!(core));
        let error = debugger.start(start, wait_for(PATIENCE)).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
