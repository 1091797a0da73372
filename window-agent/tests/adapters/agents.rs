//! An agent that is killed while a program runs: nothing of the program, of its adapter and of the agent is left, with
//! every adapter.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::programs::{BOUND, PATIENCE, Program, each_adapter, processes_with, shelf};
use crate::standalone::Standalone;

/// Waits until something is as it should be.
async fn until(what: &str, bound: Duration, is_it: impl Fn() -> bool) {
    let waiting = async {
        while !is_it() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(bound, waiting).await.is_ok(), "{what}");
}

async fn an_agent_is_killed(adapter: &str) {
    let program = Program::of(adapter);
    // By this name in their environment all are known that the agent started, and what those started.
    let mark = tempfile::Builder::new().prefix("baton-killed-").tempdir().unwrap();
    let looping = mark.path().join("looping");
    let variables = [("BATON_ADAPTERS", shelf()), ("BATON_TEST_MARK", mark.path().to_owned())];
    let mut agent = Standalone::start(program.source.parent().unwrap(), &variables);
    let arguments = json!({"action": "launch", "adapter": adapter, "program": program.path, "stop_on_entry": false,
        "args": ["loop", looping]});
    let starting = tokio::spawn(agent.call("debug", arguments));
    until("the program turns", PATIENCE, || looping.exists()).await;
    agent.kill();
    let needle = mark.path().file_name().unwrap().to_string_lossy().into_owned();
    let left = || -> BTreeSet<i32> {
        let of_agent = processes_with(&needle, "environ");
        &of_agent | &processes_with(&program.needle(), "cmdline")
    };
    until("nothing of it is left", BOUND, || left().is_empty()).await;
    starting.abort();
}

each_adapter!([an_agent_is_killed]);
