//! An agent that is killed while a program runs leaves nothing behind. `tests/adapters` does it with every adapter.

#[path = "../../debug/tests/it/debugpy/fixtures.rs"]
mod fixtures;

use std::time::Duration;

use serde_json::json;

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
