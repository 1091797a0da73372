//! An official MCP client in a process of its own, obeying one command at a time or several at once.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::place;
use crate::world::World;

/// Longest wait for an answer, unless a test has less: longer than any tool of ours waits by default.
const PATIENCE: Duration = Duration::from_secs(45);

/// Which official client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// PyPI `mcp` 1.30: sessions, 2025-11-25.
    Python1,
    /// PyPI `mcp` 2.3: stateless, 2026-07-28.
    Python2,
    /// The same with `mode="legacy"`: 2025-11-25.
    Python2Legacy,
    /// npm `@modelcontextprotocol/sdk` 1.32: sessions, 2025-11-25.
    Sdk1,
    /// npm `@modelcontextprotocol/client` 2.4: 2026-07-28.
    Client2,
    /// The same without negotiation: 2025-11-25.
    Client2Legacy,
}

impl ClientKind {
    /// The revision it is expected to agree on.
    pub fn protocol(self) -> &'static str {
        match self {
            Self::Python2 | Self::Client2 => "2026-07-28",
            Self::Python1 | Self::Python2Legacy | Self::Sdk1 | Self::Client2Legacy => "2025-11-25",
        }
    }

    fn program(self, world: &World) -> Command {
        let scripts = place::root().join("tests/clients");
        let (interpreter, script, mode) = match self {
            Self::Python1 => (place::tool("mcp1/bin/python"), "python_1.py", None),
            Self::Python2 => (place::tool("mcp2/bin/python"), "python_2.py", Some("auto")),
            Self::Python2Legacy => (place::tool("mcp2/bin/python"), "python_2.py", Some("legacy")),
            Self::Sdk1 => (place::node(), "sdk_1.mjs", None),
            Self::Client2 => (place::node(), "client_2.mjs", Some("auto")),
            Self::Client2Legacy => (place::node(), "client_2.mjs", Some("legacy")),
        };
        let mut command = world.command(interpreter);
        command.arg(scripts.join(script));
        if let Some(mode) = mode {
            command.args(["--mode", mode]);
        }
        if matches!(self, Self::Sdk1 | Self::Client2 | Self::Client2Legacy) {
            command.env("NODE_PACKAGES", place::tool("node"));
        }
        command
    }
}

/// A connected client.
pub struct Client {
    child: Child,
    commands: Option<ChildStdin>,
    lines: Receiver<Value>,
    answers: HashMap<u64, Result<Value, String>>,
    events: VecDeque<(Instant, Value)>,
    next_id: u64,
    /// Longest wait for an answer.
    pub patience: Duration,
    /// Revision, server name and instructions, as the client reports them.
    pub ready: Value,
}

/// A call that was sent and not yet waited for.
#[derive(Clone, Copy, Debug)]
pub struct Pending(u64);

impl Client {
    /// Connects over HTTP with the world's client token.
    pub fn connect(world: &World, kind: ClientKind, url: &str) -> Self {
        let mut command = kind.program(world);
        command.env("MCP_URL", url).env("MCP_TOKEN", world.token());
        Self::spawn(command)
    }

    /// Connects to a server on standard input and output, such as `baton stdio`, started in `folder`.
    pub fn connect_stdio(
        world: &World,
        kind: ClientKind,
        arguments: &[&str],
        folder: &std::path::Path,
    ) -> Self {
        let mut server = vec![place::program("baton").display().to_string()];
        server.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let mut command = kind.program(world);
        command.env("MCP_COMMAND", json!(server).to_string()).current_dir(folder);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the client starts");
        let commands = child.stdin.take();
        let output = child.stdout.take().expect("standard output is piped");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "noise": line }));
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let (answers, events) = (HashMap::new(), VecDeque::new());
        let (next_id, patience, ready) = (1, PATIENCE, Value::Null);
        let mut client = Self { child, commands, lines, answers, events, next_id, patience, ready };
        let deadline = Instant::now() + PATIENCE;
        while client.ready.is_null() {
            assert!(client.pump(deadline), "the client did not connect");
        }
        client
    }

    /// Names of the tools the server lists.
    pub fn list(&mut self) -> Vec<String> {
        let names = self.command(json!({ "do": "list" })).expect("tools/list is answered");
        serde_json::from_value(names).expect("a list of names")
    }

    /// Calls a tool and waits; the whole result, or the client's error.
    pub fn try_call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        let pending = self.send_call(tool, arguments);
        self.wait(pending)
    }

    /// Calls a tool, which must give a result (an error result is one); its `structuredContent`.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.try_call(tool, arguments.clone());
        let result = result.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"));
        // Reading code has a shorter text of its own beside the structure.
        if !tool.starts_with("lcp_") {
            assert_same_as_text(&result);
        }
        result["structuredContent"].clone()
    }

    /// [`Client::call`] with the status that is wanted.
    pub fn expect(&mut self, status: &str, tool: &str, arguments: Value) -> Value {
        let content = self.call(tool, arguments.clone());
        assert_eq!(content["status"], status, "{tool} {arguments}: {content:#}");
        content
    }

    /// Starts `wait.py` of the project `shop`, and gives its stop at a breakpoint.
    pub fn stop_in_wait(&mut self) -> Value {
        self.expect("success", "set_breakpoint", json!({ "file_path": "wait.py", "line_number": 10 }));
        let mut started = self.expect("stopped", "start_debugging", json!({ "configuration_name": "wait" }));
        started["stop_event_data"].take()
    }

    /// Sends a call without waiting for its answer.
    pub fn send_call(&mut self, tool: &str, arguments: Value) -> Pending {
        self.send(json!({ "do": "call", "tool": tool, "arguments": arguments }))
    }

    /// Cancels a call.
    pub fn cancel(&mut self, call: Pending) {
        self.try_cancel(call).expect("the client can cancel");
    }

    /// The same, where the connection may be gone.
    pub fn try_cancel(&mut self, call: Pending) -> Result<Value, String> {
        self.command(json!({ "do": "cancel", "of": call.0 }))
    }

    /// Waits for the answer to a call.
    pub fn wait(&mut self, call: Pending) -> Result<Value, String> {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(answer) = self.answers.remove(&call.0) {
                return answer;
            }
            if !self.pump(deadline) {
                return Err("the client ended or gave no answer".to_owned());
            }
        }
    }

    /// Forgets the list_changed notices heard so far.
    pub fn forget_events(&mut self) {
        while let Ok(message) = self.lines.try_recv() {
            self.take_in(message);
        }
        self.events.clear();
    }

    /// Waits for a list_changed notice.
    pub fn await_list_changed(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some((_, event)) = self.events.pop_front() {
                if event["event"] == "list_changed" {
                    return;
                }
                continue;
            }
            assert!(self.pump(deadline), "no list_changed was heard");
        }
    }

    /// Process id of the client.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the session as the client does it, and the client.
    pub fn close(mut self) {
        self.command(json!({ "do": "close" })).expect("the client closes");
        self.commands = None;
        let status = self.child.wait().expect("the client ends");
        assert!(status.success(), "the client ended {status}");
    }

    fn command(&mut self, command: Value) -> Result<Value, String> {
        let pending = self.send(command);
        self.wait(pending)
    }

    fn send(&mut self, mut command: Value) -> Pending {
        let id = self.next_id;
        self.next_id += 1;
        command["id"] = json!(id);
        let input = self.commands.as_mut().expect("the client is not closed");
        writeln!(input, "{command}").expect("the client takes commands");
        Pending(id)
    }

    /// Takes in one message; false when the deadline passed or the client ended.
    fn pump(&mut self, deadline: Instant) -> bool {
        match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(message) => {
                self.take_in(message);
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    fn take_in(&mut self, message: Value) {
        if let Some(id) = message["id"].as_u64() {
            let answer = match message.get("error") {
                Some(error) => Err(error.as_str().unwrap_or_default().to_owned()),
                None => Ok(message["ok"].clone()),
            };
            self.answers.insert(id, answer);
        } else if message.get("ready").is_some() {
            self.ready = message["ready"].clone();
        } else {
            self.events.push_back((Instant::now(), message));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.commands = None;
        if matches!(self.child.try_wait(), Ok(None)) {
            // Both only fail when it has ended by itself.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What a result says to programs: its `structuredContent`, or what stands beside a text.
pub fn content_of(result: &Value) -> &Value {
    result.get("structuredContent").unwrap_or(&result["_meta"]["baton/details"])
}

/// The text of a result is the same JSON as its structured content.
fn assert_same_as_text(result: &Value) {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let parsed: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("not JSON: {text}"));
    assert_eq!(parsed, result["structuredContent"], "text and structured content differ");
}
