//! An agent that is killed while a program runs: nothing of the program, of its adapter and of the agent is left, with
//! every adapter.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use baton_link::home::Home;
use baton_proto::edge::PIN_HEADER;
use serde_json::{Value, json};

use crate::programs::{BOUND, PATIENCE, Program, processes_with, shelf};

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
    let state = tempfile::Builder::new().prefix("baton-killed-").tempdir().unwrap();
    let home = Home::open(state.path().join("home")).unwrap();
    let looping = state.path().join("looping");
    let mut agent = Command::new(env!("CARGO_BIN_EXE_baton-agent"))
        .args(["--standalone", "--window", "w", "--folder"])
        .arg(program.source.parent().unwrap())
        .env("BATON_HOME", home.path())
        .env("BATON_ADAPTERS", shelf())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(agent.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let token = home.secret().unwrap().window_token(&"w".parse().unwrap());
    let arguments = json!({"action": "launch", "adapter": adapter, "program": program.path, "stop_on_entry": false,
        "args": ["loop", looping]});
    let call = reqwest::Client::new()
        .post(format!("http://127.0.0.1:{}/mcp", ready["ready"]["port"]))
        .bearer_auth(token.expose())
        .header("accept", "application/json, text/event-stream")
        .header(PIN_HEADER, "w")
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "debug", "arguments": arguments}}))
        .send();
    let starting = tokio::spawn(call);
    until("the program turns", PATIENCE, || looping.exists()).await;
    agent.kill().unwrap();
    agent.wait().unwrap();
    let needle = state.path().file_name().unwrap().to_string_lossy().into_owned();
    let left = || -> BTreeSet<i32> {
        let of_agent = processes_with(&needle, "environ");
        &of_agent | &processes_with(&program.needle(), "cmdline")
    };
    until("nothing of it is left", BOUND, || left().is_empty()).await;
    starting.abort();
}

/// A test for each adapter.
macro_rules! killed {
    ($($module:ident: $adapter:literal;)*) => {
        $(#[tokio::test]
        async fn $module() {
            an_agent_is_killed($adapter).await;
        })*
    };
}

killed! {
    debugpy: "debugpy";
    js_debug: "js-debug";
    gdb: "gdb";
    lldb_dap: "lldb-dap";
    codelldb: "codelldb";
    delve: "delve";
    java: "java";
    bash_dap: "bash-dap";
}
