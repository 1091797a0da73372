//! Programs whose sources lie elsewhere than where they were built, or where they run: paths are those of the window.

use std::path::Path;
use std::process::Command;

use baton_agent_debug::Debugger;
use baton_agent_debug::adapters::wish::{Attach, Launch, Wish};
use baton_agent_debug::types::{Start, Waited};
use serde_json::{Value, json};

use crate::attach::Running;
use crate::programs::{PATIENCE, Program, debugger, wait_for};
use crate::quirks::at;

/// Starts it, and expects it to stop at a breakpoint that is set in the window's own copy of the source.
async fn stops_in_the_windows_copy(debugger: &Debugger, program: &Program, mut start: Start, more: Value) {
    start.configuration.extend(more.as_object().cloned().unwrap());
    debugger.set_breakpoint(at(&program.source, program.line)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    let place = stop.source.as_ref().map(|source| source.path.as_str());
    assert_eq!((place, stop.line), (program.source.to_str(), Some(i64::from(program.line))), "{stop:?}");
    debugger.stop_all().await;
}

/// Builds the source in a folder of its own, which is gone afterwards.
async fn built_elsewhere(adapter: &str, field: &str) {
    let program = Program::of(adapter);
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("program.c");
    std::fs::copy(&program.source, &copy).unwrap();
    let mut build = Command::new("cc");
    build.args(["-g", "-O0", "-o"]).arg(&program.path).arg(&copy);
    assert!(build.status().unwrap().success());
    std::fs::remove_file(&copy).unwrap();
    let debugger = debugger(&program);
    let wish = Launch {
        adapter: Some(adapter.to_owned()),
        program: program.path.clone(),
        args: vec!["loop".to_owned()],
        ..Launch::default()
    };
    let start = debugger.configure(&Wish::Launch(wish)).await.unwrap();
    let map = json!({ field: { elsewhere.path().display().to_string(): program.folder.path() } });
    stops_in_the_windows_copy(&debugger, &program, start, map).await;
}

#[tokio::test]
async fn gdb_finds_sources_that_moved() {
    built_elsewhere("gdb", "sourceFileMap").await;
}

#[tokio::test]
async fn lldb_dap_finds_sources_that_moved() {
    built_elsewhere("lldb-dap", "sourceFileMap").await;
}

#[tokio::test]
async fn codelldb_finds_sources_that_moved() {
    built_elsewhere("codelldb", "sourceMap").await;
}

/// A copy of the program that runs in another folder, as in a container.
fn copied(program: &Program, name: &str, elsewhere: &Path) -> std::path::PathBuf {
    let copy = elsewhere.join(name);
    std::fs::copy(&program.source, &copy).unwrap();
    copy
}

#[tokio::test]
async fn a_node_that_runs_elsewhere_is_attached_to() {
    let program = Program::of("js-debug");
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = copied(&program, "program.js", elsewhere.path());
    let mut running =
        Running::start(Command::new("node").arg("--inspect=127.0.0.1:0").arg(&copy).arg("loop"));
    let port = Some(running.port("ws://127.0.0.1:", true));
    let debugger = debugger(&program);
    let start = debugger.configure(&Wish::Attach(Attach { port, ..Attach::default() })).await.unwrap();
    let roots = json!({"localRoot": program.folder.path(), "remoteRoot": elsewhere.path()});
    stops_in_the_windows_copy(&debugger, &program, start, roots).await;
}

#[tokio::test]
async fn a_program_of_go_that_runs_elsewhere_is_attached_to() {
    let program = Program::of("delve");
    let elsewhere = tempfile::tempdir().unwrap();
    copied(&program, "program.go", elsewhere.path());
    std::fs::copy(program.folder.path().join("go.mod"), elsewhere.path().join("go.mod")).unwrap();
    let mut command = Command::new("dlv");
    command.args(["debug", "--headless", "--listen=127.0.0.1:0", "--accept-multiclient", ".", "--", "loop"]);
    let mut running = Running::start(command.current_dir(elsewhere.path()));
    let port = Some(running.port("listening at: 127.0.0.1:", false));
    let debugger = debugger(&program);
    let start = debugger.configure(&Wish::Attach(Attach { port, ..Attach::default() })).await.unwrap();
    let map = json!({"substitutePath": [{"from": program.folder.path(), "to": elsewhere.path()}]});
    stops_in_the_windows_copy(&debugger, &program, start, map).await;
}
