//! What breaks: adapters, programs, configurations. Each is told, and nothing is left running.

use std::time::{Duration, Instant};

use baton_agent_debug::types::Resume;
use expect_test::expect;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::fixtures::{orphan_of, processes_with, unique, until_gone};
use super::story::{Story, launch, options, start, wait};

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// The process that runs the adapter of the only session: the launcher's parent.
fn adapter_of(program: &str) -> i32 {
    let launcher = processes_with(program).into_iter().find(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().contains("launcher")
    });
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", launcher.expect("a launcher"))).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_adapter_that_is_killed_ends_its_session_and_its_program() {
    let (_folder, program) = unique("endless.py");
    let mut story = Story::begin();
    story.start_running(launch("endless.py", json!({"program": program}))).await;
    let debugger = story.debugger.clone();
    let mut waiting = Box::pin(debugger.resume(None, 1, Resume::Continue, wait()));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    kill(adapter_of(&program));
    let begun = Instant::now();
    let waited = waiting.await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    story.waited(waited);
    until_gone(&program).await;
    // The session begins again, if that is wanted.
    story.set(&program, 6).await;
    let waited = story.debugger.restart(None, wait()).await;
    story.waited(waited);
    story.debugger.stop(None).await.unwrap();
    until_gone(&program).await;
    // The engine goes on.
    story.start(launch("asks.py", json!({}))).await;
    story
        .end(expect![[r#"
            interrupted session-1
            error adapter_died: the debug adapter of session session-1 was killed by signal 9
            breakpoint 1 endless.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in <module> endless.py:6
              Locals: beats=0
            completed session-2 with 0 never hit [1]
        "#]])
        .await;
}

#[tokio::test]
async fn a_program_that_is_killed_completes_its_session() {
    let (_folder, program) = unique("endless.py");
    let mut story = Story::begin();
    story.start_running(launch("endless.py", json!({"program": program}))).await;
    let adapter = adapter_of(&program);
    // The youngest is the program; the launcher starts it.
    let youngest = processes_with(&program).into_iter().filter(|pid| *pid != adapter).max().unwrap();
    kill(youngest);
    story.go_thread(None, 1, Resume::Continue).await;
    until_gone(&program).await;
    story
        .end(expect![[r#"
        interrupted session-1
        > Continue
        completed session-1 with 247 (the program was ended by SIGKILL, or exited with code 247 itself)
    "#]])
        .await;
}

#[tokio::test]
async fn an_endless_program_is_stopped_with_all_it_started() {
    let (_folder, program) = unique("spawns.py");
    let mut story = Story::begin();
    let starting = {
        let (debugger, program) = (story.debugger.clone(), program.clone());
        tokio::spawn(
            async move { debugger.start(launch("spawns.py", json!({"program": program})), wait()).await },
        )
    };
    let orphan = orphan_of(&program).await;
    story.debugger.stop(None).await.unwrap();
    let waited = starting.await.unwrap();
    story.waited(waited);
    until_gone(&program).await;
    assert!(!processes_with("time.sleep(600)").contains(&orphan), "the orphan lives");
    story
        .end(expect![[r#"
            completed session-1 without an exit code (the debug session was stopped)
        "#]])
        .await;
}

#[tokio::test]
async fn nothing_outlives_the_engine() {
    let (_folder, program) = unique("endless.py");
    let mut story = Story::begin();
    story.start_running(launch("endless.py", json!({"program": program}))).await;
    assert!(!processes_with(&program).is_empty());
    drop(story);
    until_gone(&program).await;
}

#[tokio::test]
async fn configurations_that_cannot_work_are_refused_with_the_reason() {
    let mut story = Story::begin();
    let base = json!({"type": "debugpy", "request": "launch"});
    for more in [
        json!({"type": "cobol"}),
        json!({"request": "jump"}),
        json!({"request": null}),
        json!({}),
        json!({"program": "/no/such/file.py"}),
        json!({"program": "demo.py", "cwd": "/no/such/folder"}),
        json!({"program": "demo.py", "python": "/no/such/python"}),
        json!({"program": "demo.py", "cwd": 5}),
        json!({"program": "demo.py", "args": "one two"}),
        json!({"program": "demo.py", "console": "moon"}),
    ] {
        story.start(start("bad", base.clone(), more)).await;
    }
    story.end(expect![[r#"
        error unknown_type: no debug adapter serves configurations of type `cobol`; known types: debugpy, python, pwa-node, node, javascript, typescript, gdb, cppdbg, cppvsdbg, c, cpp, rust, lldb-dap, lldb-vscode, lldb, codelldb, go, java, bash, bashdb
        error bad_configuration: `request` of the configuration is "jump", it must be "launch" or "attach"
        error bad_configuration: `request` of the configuration is missing, it must be "launch" or "attach"
        error bad_configuration: a launch needs `program`, `module` or `code`
        error bad_configuration: the program /no/such/file.py does not exist
        error bad_configuration: the working directory /no/such/folder does not exist
        error bad_configuration: the Python interpreter /no/such/python does not exist or cannot be run
        error bad_configuration: `cwd` of the configuration must be a string
        error bad_configuration: `args` of the configuration must be a list of strings
        error start_failed: Invalid message: "console" must be one of: ['internalConsole', 'integratedTerminal', 'externalTerminal']
    "#]]).await;
}

#[tokio::test]
async fn a_missing_debugpy_says_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python");
    // An interpreter without site packages.
    let script = format!("#!/bin/sh\nexec {} -S \"$@\"\n", super::fixtures::python().display());
    std::fs::write(&python, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&python, mode).unwrap();
    let bare = baton_agent_debug::DebuggerOptions { python: None, search_path: None, ..options() };
    let mut story = Story::with(bare);
    let waited = story.debugger.start(launch("demo.py", json!({"python": python})), wait()).await;
    let error = waited.unwrap_err();
    let text = format!("{} {error} / {}", error.kind(), error.hint().unwrap_or_default())
        .replace(python.to_str().unwrap(), "PYTHON");
    story.line(&text);
    // Another interpreter that has it steps in.
    let mut other = Story::begin();
    other.start(launch("asks.py", json!({"debugAdapterPython": python}))).await;
    let found = other.transcript;
    story.line(&found);
    story.end(expect![[r#"
        adapter_missing debugpy is not installed in PYTHON / Run `baton adapters install debugpy`, or install it into the interpreter that runs the program: PYTHON -m pip install debugpy
        completed session-1 with 0

    "#]]).await;
}

#[tokio::test]
async fn a_program_that_does_not_parse_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("broken.py");
    std::fs::write(&program, "def broken(:\n    pass\n").unwrap();
    let mut story = Story::begin();
    story.start(launch("broken", json!({"program": program}))).await;
    story.transcript = story.transcript.replace(folder.path().to_str().unwrap(), "FOLDER");
    story
        .end(expect![[r#"
            completed session-1 with 1
        "#]])
        .await;
}
