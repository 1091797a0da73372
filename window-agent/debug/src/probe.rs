//! Starts an adapter, says hello, and hears its first answer.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::timeout;

use crate::adapter::{Adapter, Dialect};
use crate::adapters::{debugpy, general, shelf};
use crate::connection::{Connection, connect};
use crate::dap::Incoming;
use crate::host::reach::Reach;
use crate::host::server::Running;
use crate::options::DebuggerOptions;
use baton_agent_base::process::{self, Program};

/// How long an adapter may take to answer `initialize`; on a busy machine a cold one needs seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether an adapter starts and answers within 30 s. An error says what it did instead; nothing of it is left running.
pub async fn probe(adapter: &Adapter, options: &DebuggerOptions) -> Result<(), String> {
    let found = if adapter.dialect == Dialect::Debugpy {
        let python = options.shelf.folder_of("debugpy").map(|folder| folder.join("bin/python"));
        debugpy::program(python.ok_or("cannot determine where adapters are installed")?, None)
    } else {
        let found = shelf::find(adapter, options)?;
        Program { path: found.program, args: found.args, ..Program::default() }
    };
    let mark = format!("probe-{}", std::process::id());
    let answered = timeout(ANSWER_TIMEOUT, hello(adapter, general::reach(adapter, found), &mark)).await;
    process::kill_marked(&mark);
    answered.unwrap_or_else(|_| Err(format!("it did not respond within {} s", ANSWER_TIMEOUT.as_secs())))
}

async fn hello(adapter: &Adapter, reach: Reach, mark: &str) -> Result<(), String> {
    match reach {
        Reach::Stdio(programs) => {
            let program = programs.first().ok_or("the program does not exist")?;
            let mut child = process::spawn_piped(program, mark).map_err(|error| error.to_string())?;
            let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
                return Err("it has no standard streams".to_owned());
            };
            greet(adapter, connect(stdout, stdin)).await
        }
        Reach::Server(server) => {
            let mut running = Running::spawn(&server, mark).await.map_err(|error| error.to_string())?;
            let (_, connection) = running.connect().await?;
            greet(adapter, connection).await
        }
        Reach::Tcp { .. } | Reach::Unix(_) => Ok(()),
    }
}

async fn greet(adapter: &Adapter, mut connection: Connection) -> Result<(), String> {
    let request = json!({
        "seq": 1, "type": "request", "command": "initialize",
        "arguments": {"clientID": "baton", "adapterID": adapter.types[0], "pathFormat": "path"},
    });
    let _ = connection.outgoing.send(Bytes::from(request.to_string())).await;
    while let Some(message) = connection.incoming.recv().await {
        if let Incoming::Response(response) = message {
            return if response.success { Ok(()) } else { Err(response.error_text()) };
        }
    }
    Err("it exited without responding".to_owned())
}
