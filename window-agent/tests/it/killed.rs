//! An agent that is killed while a program runs leaves nothing behind. `tests/adapters` does it with every adapter.

#[path = "../../debug/tests/it/debugpy/fixtures.rs"]
mod fixtures;

use std::time::Duration;

use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::support::standalone::Standalone;
use fixtures::{orphan_of, processes_with, python, unique, until_gone};

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

/// A task and what it left running in a session of its own.
#[tokio::test]
async fn a_task_in_the_background_does_not_outlive_an_agent_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let vscode = folder.path().join(".vscode");
    std::fs::create_dir(&vscode).unwrap();
    let tasks = json!({ "tasks": [{
        "label": "watch", "type": "shell", "isBackground": true,
        "command": "setsid sleep 600 & echo $! $$ >pids; echo ready; exec cat",
        "problemMatcher": { "pattern": { "regexp": "^never$" }, "background": {
            "activeOnStart": true, "beginsPattern": "^begins", "endsPattern": "^ready$" } },
    }] });
    std::fs::write(vscode.join("tasks.json"), tasks.to_string()).unwrap();
    let launch = json!({ "configurations": [{
        "name": "naps", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/naps.py",
        "python": python(), "console": "internalConsole", "preLaunchTask": "watch",
    }] });
    std::fs::write(vscode.join("launch.json"), launch.to_string()).unwrap();
    let napping = "import pathlib, time\npathlib.Path('naps').touch()\ntime.sleep(600)\n";
    std::fs::write(folder.path().join("naps.py"), napping).unwrap();
    let mut agent = Standalone::start(folder.path(), &[]);
    let starting = tokio::spawn(agent.call("start_debugging", json!({ "configuration_name": "naps" })));
    let naps = async {
        while !folder.path().join("naps").exists() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), naps).await.expect("the program runs");
    let pids = std::fs::read_to_string(folder.path().join("pids")).unwrap();
    let process = |pid: &str| std::path::PathBuf::from(format!("/proc/{pid}/cmdline"));
    let runs = |pid: &str| std::fs::read(process(pid)).is_ok_and(|words| !words.is_empty());
    assert!(pids.split_whitespace().count() == 2 && pids.split_whitespace().all(runs), "{pids}");
    agent.kill();
    let gone = async {
        while pids.split_whitespace().any(runs) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(5), gone).await.expect("the task is ended with its agent");
    starting.abort();
}
