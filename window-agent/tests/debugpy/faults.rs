//! What breaks: adapters, programs, configurations. Each is told, and nothing is left running.

use std::time::{Duration, Instant};

use baton_window_agent::debug::types::Resume;
use expect_test::expect;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::standalone::Standalone;
use crate::story::{Story, launch, options, processes_with, python, start, until_gone, wait};

/// A copy of a fixture under a name that no other test's processes have.
fn unique(program: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(program);
    std::fs::copy(crate::story::fixture(program), &copy).unwrap();
    (folder, copy.to_str().unwrap().to_owned())
}

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
    // The engine goes on.
    story.start(launch("asks.py", json!({}))).await;
    story
        .end(expect![[r#"
            interrupted session-1
            error adapter_died: the debug adapter of session session-1 was killed by signal 9
            completed session-2 with 0
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
        completed session-1 with 247
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

/// The orphan-to-be of `spawns.py`: a process in a session of its own.
async fn orphan_of(program: &str) -> i32 {
    let found = async {
        loop {
            let candidates = processes_with("time.sleep(600)");
            match candidates.into_iter().find(|pid| is_child_of(*pid, program)) {
                Some(orphan) => return orphan,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(crate::story::PATIENCE, found).await.expect("the program starts a process")
}

fn is_child_of(pid: i32, program: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(1).unwrap_or("0").to_owned();
    std::fs::read_to_string(format!("/proc/{parent}/cmdline")).unwrap_or_default().contains(program)
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
async fn nothing_outlives_an_agent_that_is_killed() {
    let (folder, program) = unique("spawns.py");
    std::fs::create_dir(folder.path().join(".vscode")).unwrap();
    let launch = json!({"configurations": [{
        "name": "spawns", "type": "debugpy", "request": "launch", "program": program, "python": python(),
        "console": "internalConsole",
    }]});
    std::fs::write(folder.path().join(".vscode/launch.json"), launch.to_string()).unwrap();
    let mut agent = Standalone::start(folder.path(), &[]);
    let starting = tokio::spawn(agent.call("start_debugging", json!({"configuration_name": "spawns"})));
    let orphan = orphan_of(&program).await;
    agent.kill();
    until_gone(&program).await;
    let gone = async {
        while processes_with("time.sleep(600)").contains(&orphan) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(5), gone).await.is_ok(), "the orphan lives");
    starting.abort();
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
        error unknown_type: no debug adapter serves configurations of type `cobol`; known types: debugpy, python, pwa-node, node, gdb, cppdbg, lldb-dap, lldb-vscode, lldb, codelldb, go, java, bash, bashdb
        error bad_configuration: `request` of the configuration is "jump", it must be "launch" or "attach"
        error bad_configuration: `request` of the configuration is missing, it must be "launch" or "attach"
        error bad_configuration: a launch needs `program`, `module` or `code`
        error bad_configuration: the program /no/such/file.py does not exist
        error bad_configuration: the working directory /no/such/folder does not exist
        error bad_configuration: the Python interpreter /no/such/python does not exist or cannot be run
        error bad_configuration: `cwd` of the configuration must be a text
        error bad_configuration: `args` of the configuration must be a list of texts
        error start_failed: Invalid message: "console" must be one of: ['internalConsole', 'integratedTerminal', 'externalTerminal']
    "#]]).await;
}

#[tokio::test]
async fn a_missing_debugpy_says_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python");
    // An interpreter without site packages.
    let script = format!("#!/bin/sh\nexec {} -S \"$@\"\n", crate::story::python().display());
    std::fs::write(&python, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&python, mode).unwrap();
    let bare = baton_window_agent::debug::DebuggerOptions { python: None, search_path: None, ..options() };
    let mut story = Story::with(bare);
    let waited = story.debugger.start(launch("demo.py", json!({"python": python})), wait()).await;
    let error = waited.unwrap_err();
    let text =
        format!("{} {error} / {}", error.code(), error.hint()).replace(python.to_str().unwrap(), "PYTHON");
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
