//! A client that runs `baton stdio`: one process for the whole run, whatever becomes of the coordinator.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::{Client, Heard, Kind, PATIENCE, classify};
use crate::history::Told;

/// Calls until the world ends.
pub(super) async fn run(client: Client) {
    let mut bridge = Bridge::start(client);
    bridge.open().await;
    while !bridge.client.is_over() {
        let (id, message) = bridge.client.next_call();
        let sent = bridge.client.history.now();
        let heard = match bridge.ask(id, &message).await {
            Ok(answer) => classify(&answer),
            Err(heard) => heard,
        };
        let told = heard.told;
        bridge.client.record(id, "call", sent, heard);
        if told == Told::Torn {
            bridge.client.history.note("baton stdio ended by itself; it is started again");
            bridge = Bridge::start(bridge.client);
            bridge.open().await;
        }
        bridge.client.pause(told).await;
    }
    // The end of its input is how a client ends it.
    drop(bridge.input);
    let _ = bridge.child.wait().await;
}

struct Bridge {
    client: Client,
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Bridge {
    fn start(client: Client) -> Self {
        let mut command = tokio::process::Command::from(client.world.baton_command(0, &["stdio"]));
        command.current_dir(client.world.scratch()).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(client.world.log("stdio")).kill_on_drop(true);
        let mut child = command.spawn().expect("baton starts");
        let input = child.stdin.take().expect("standard input is piped");
        let output = child.stdout.take().expect("standard output is piped");
        Self { client, child, input, lines: BufReader::new(output).lines() }
    }

    async fn open(&mut self) {
        if self.client.kind == Kind::StdioStateless {
            return;
        }
        let id = self.client.history.next_id();
        let sent = self.client.history.now();
        let message = self.client.initialize(id);
        let heard = match self.ask(id, &message).await {
            Ok(answer) if answer["result"].is_object() => Heard::new(Told::Done, ""),
            Ok(answer) => Heard::new(Told::Failed, answer.to_string()),
            Err(heard) => heard,
        };
        self.client.record(id, "initialize", sent, heard);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        // The next request tells when it ended.
        let _ = self.input.write_all(format!("{initialized}\n").as_bytes()).await;
    }

    async fn ask(&mut self, id: u64, message: &Value) -> Result<Value, Heard> {
        let line = format!("{message}\n");
        if self.input.write_all(line.as_bytes()).await.is_err() {
            return Err(Heard::new(Told::Torn, "baton stdio takes no input"));
        }
        let answer = async {
            loop {
                let Ok(Some(line)) = self.lines.next_line().await else {
                    return Err(Heard::new(Told::Torn, "baton stdio ended"));
                };
                let Ok(message) = serde_json::from_str::<Value>(&line) else {
                    return Err(Heard::new(Told::Odd, super::shortened(&line)));
                };
                match message["id"].as_u64() {
                    Some(found) if found == id => return Ok(message),
                    // Of a call that this client no longer waits for.
                    Some(found) if found < id => {}
                    Some(_) => return Err(Heard::new(Told::Odd, super::shortened(&line))),
                    None => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| Err(Heard::new(Told::Nothing, "")))
    }
}
