//! `baton stdio`, spoken to by hand: a client without habits of its own, in a folder of the test's choice.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::world::World;

/// A client of 2025-11-25 that calls one tool after the other.
pub struct Bridge {
    child: Child,
    answers: BufReader<ChildStdout>,
    n_calls: u64,
}

/// What a client is shown of an answer.
#[derive(Debug)]
pub struct Shown {
    /// All its texts.
    pub text: String,
    /// Its structure; of a tool that has none what stands beside the text.
    pub content: Value,
    /// Name of the window that answered; empty when the edge did.
    pub window: String,
    /// Its id.
    pub window_id: String,
}

impl Bridge {
    /// Starts it in `folder` and opens a session.
    pub fn start(world: &World, folder: &Path, arguments: &[&str]) -> Self {
        let mut stdio = world.baton_command(&["stdio"]);
        stdio.args(arguments).current_dir(folder).env("PWD", folder);
        let mut child = stdio
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it starts");
        let answers = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let mut bridge = Self { child, answers, n_calls: 0 };
        let client = json!({ "name": "by hand", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        bridge.ask("initialize", &hello);
        bridge
    }

    /// Calls a tool and waits for its answer.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Shown {
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        Shown::of(&result)
    }

    /// The code of the error that a call ends in; empty when it succeeds.
    pub fn code(&mut self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).code().to_owned()
    }

    /// Calls a tool, and cancels the call before there is an answer.
    pub fn call_and_cancel(&mut self, tool: &str, arguments: Value) {
        self.n_calls += 1;
        let (id, params) = (self.n_calls, json!({ "name": tool, "arguments": arguments }));
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        let params = json!({ "requestId": id });
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }

    fn send(&mut self, message: &Value) {
        let input = self.child.stdin.as_mut().expect("standard input is piped");
        writeln!(input, "{message}").expect("it reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.n_calls += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.n_calls, "method": method, "params": params });
        self.send(&message);
        loop {
            let mut line = String::new();
            let n_read = self.answers.read_line(&mut line).expect("it writes text");
            assert!(n_read > 0, "baton stdio ended");
            let answer: Value = serde_json::from_str(&line).expect("a message a line");
            if answer["id"] == self.n_calls {
                assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
                return answer["result"].clone();
            }
        }
    }
}

impl Shown {
    /// Of the result of a call.
    pub fn of(result: &Value) -> Self {
        let texts = result["content"].as_array().into_iter().flatten();
        let texts: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
        Self {
            text: texts.join("\n"),
            content: crate::client::content_of(result).clone(),
            window: result["_meta"]["baton/window"]["name"].as_str().unwrap_or_default().to_owned(),
            window_id: result["_meta"]["baton/window"]["id"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Of a call of which nobody knows whether it was made.
    pub fn unknown(why: &str) -> Self {
        let (window, window_id) = Default::default();
        Self { text: why.to_owned(), content: json!({ "code": "outcome_unknown" }), window, window_id }
    }

    /// Its error code; empty when it tells of none.
    pub fn code(&self) -> &str {
        self.content["code"].as_str().unwrap_or_default()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
