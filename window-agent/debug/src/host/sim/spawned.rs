//! The adapter of a simulation: it speaks DAP over memory. Its program stops at its entry and after each step, and ends
//! by itself at some time.

use std::time::Duration;

use baton_agent_base::process::Program;
use baton_link::sim;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, connect};
use crate::dap::Incoming;
use crate::host::inbox::{FromHost, Inbox};
use crate::host::reach::Plan;

/// Bytes that wait between engine and adapter.
const PIPE: usize = 64 * 1024;
/// Longest that the program runs between two stops.
const RUNS_MS: u64 = 400;
/// It ends at one stop of so many.
const ENDS: u64 = 8;

/// Runs an adapter until it ends or its session is over.
pub(super) async fn run_spawned(
    _programs: &[Program],
    _plan: &Plan,
    _mark: Option<&str>,
    over: &CancellationToken,
    inbox: &Inbox,
) {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(adapt(connect(read, write)));
    let (read, write) = tokio::io::split(ours);
    let Connection { outgoing, mut incoming, writer: _ } = connect(read, write);
    inbox.tell(FromHost::Reached(outgoing)).await;
    loop {
        tokio::select! {
            message = incoming.recv() => match message {
                Some(message) => inbox.tell(FromHost::Message(message)).await,
                None => return inbox.tell(FromHost::Closed { how: "exited".to_owned() }).await,
            },
            () = over.cancelled() => return,
        }
    }
}

/// No process of a simulation leaves others behind.
pub(super) async fn sweep(_mark: String) {}

async fn adapt(connection: Connection) {
    let Connection { outgoing, mut incoming, writer: _ } = connection;
    let mut adapter = Adapter { to: outgoing, last_seq: 0 };
    while let Some(message) = incoming.recv().await {
        let Incoming::Request { seq, command, arguments } = message else { continue };
        adapter.handle(seq, &command, &arguments).await;
        if command == "disconnect" {
            return;
        }
    }
}

struct Adapter {
    to: mpsc::Sender<Bytes>,
    last_seq: i64,
}

impl Adapter {
    async fn handle(&mut self, request: i64, command: &str, arguments: &Value) {
        let body = match command {
            "initialize" => json!({ "supportsConfigurationDoneRequest": true }),
            "setBreakpoints" => {
                let n = arguments["breakpoints"].as_array().map_or(0, Vec::len);
                json!({ "breakpoints": vec![json!({ "verified": true }); n] })
            }
            "threads" => json!({ "threads": [{ "id": 1, "name": "main" }] }),
            "stackTrace" => json!({ "stackFrames": [{ "id": 1, "name": "main", "line": 1, "column": 1 }] }),
            "scopes" => json!({ "scopes": [] }),
            "continue" => json!({ "allThreadsContinued": true }),
            _ => json!({}),
        };
        let answer = json!({
            "type": "response", "request_seq": request, "success": true, "command": command, "body": body,
        });
        self.say(answer).await;
        match command {
            "launch" => self.tell("initialized", json!({})).await,
            "configurationDone" => self.stop("entry").await,
            "continue" | "next" | "stepIn" | "stepOut" if sim::dice() % ENDS == 0 => {
                self.tell("exited", json!({ "exitCode": 0 })).await;
                self.tell("terminated", json!({})).await;
            }
            "continue" | "next" | "stepIn" | "stepOut" => self.stop("step").await,
            _ => {}
        }
    }

    async fn stop(&mut self, reason: &str) {
        sleep(Duration::from_millis(sim::dice() % RUNS_MS)).await;
        self.tell("stopped", json!({ "reason": reason, "threadId": 1, "allThreadsStopped": true })).await;
    }

    async fn tell(&mut self, event: &str, body: Value) {
        self.say(json!({ "type": "event", "event": event, "body": body })).await;
    }

    async fn say(&mut self, mut message: Value) {
        self.last_seq += 1;
        message["seq"] = json!(self.last_seq);
        // An engine that is gone needs to know nothing.
        let _ = self.to.send(Bytes::from(message.to_string())).await;
    }
}
