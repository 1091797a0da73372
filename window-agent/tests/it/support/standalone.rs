//! An agent in a process of its own, without a coordinator: started, asked over HTTP, killed.

#![expect(unreachable_pub, clippy::unwrap_used, reason = "a module of test binaries")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use baton_link::home::Home;
use baton_proto::edge::{CALLER_HEADER, PIN_HEADER};
use serde_json::{Value, json};

/// See the module. Killed when it is dropped.
pub struct Standalone {
    child: Child,
    port: u64,
    token: String,
    _state: tempfile::TempDir,
}

impl Standalone {
    /// One for `folder`, with these variables.
    pub fn start(folder: &Path, variables: &[(&str, PathBuf)]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let home = Home::open(state.path().join("home")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test kills it")]
        let mut child = Command::new(env!("CARGO_BIN_EXE_baton-agent"))
            .args(["--standalone", "--window", "w", "--folder"])
            .arg(folder)
            .env("BATON_HOME", home.path())
            .envs(variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        let ready: Value = serde_json::from_str(&ready).unwrap();
        let token = home.secret().unwrap().window_token(&"w".parse().unwrap(), None).expose().to_owned();
        Self { child, port: ready["ready"]["port"].as_u64().unwrap(), token, _state: state }
    }

    /// What a tool answers, as the protocol's result.
    pub fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = Value> + Send + use<> {
        self.call_as("the only client", tool, arguments)
    }

    /// The same, of one of several clients.
    pub fn call_as(
        &self,
        caller: &str,
        tool: &str,
        arguments: Value,
    ) -> impl Future<Output = Value> + Send + use<> {
        let request = reqwest::Client::new()
            .post(format!("http://127.0.0.1:{}/mcp", self.port))
            .bearer_auth(&self.token)
            .header("accept", "application/json, text/event-stream")
            .header(PIN_HEADER, "w")
            .header(CALLER_HEADER, caller)
            .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments}}));
        async move {
            let answer = request.send().await.unwrap().error_for_status().unwrap().text().await.unwrap();
            let data = answer.lines().rev().find_map(|line| line.strip_prefix("data: "));
            let answer: Value = serde_json::from_str(data.unwrap_or(&answer)).unwrap();
            answer["result"].clone()
        }
    }

    /// Without a chance to end what it started.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
