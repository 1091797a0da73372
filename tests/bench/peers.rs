//! The same session of a Python program with other MCP servers that debug without an editor, in turns.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use baton_tests::place;
use baton_tests::process::{command, is_alive, kill9, tree};
use baton_tests::world::{WindowOptions, World};
use serde_json::{Value, json};

use crate::adapters::step_and_end;
use crate::adapters::{ms, since};
use crate::load::{Caller, Target};
use crate::report::{Section, median, say};

/// Rounds that count; the one before them fills caches.
const N_ROUNDS: usize = 5;
/// Steps and evaluations in each session.
const N_TIMES: usize = 10;
/// Line of the addition.
const LINE: u64 = 12;
/// What is evaluated.
const EXPRESSION: &str = "left + right";
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Stands in arguments for the id that the first call of a session gave.
const SESSION: &str = "{session}";

/// Calls that are made one after the other: tool and arguments.
type Calls = Vec<(&'static str, Value)>;

/// A server, and how one says the same to it.
struct Peer {
    name: &'static str,
    command: Vec<String>,
    /// From nothing to the locals at the first stop.
    start: Calls,
    evaluate: Calls,
    /// Takes the breakpoint away.
    clear: Calls,
    /// With the locals where it ends.
    step: Calls,
    end: Calls,
}

/// First stop, step, evaluation in milliseconds: the middle one of a session.
type Figures = [f64; 3];

pub(crate) fn run() -> Result<Section> {
    let mut world = World::new();
    let folder = world.folder("languages");
    place::copy_folder(&place::root().join("tests/fixtures/languages"), &folder);
    let peers = peers(&folder)?;
    write_launch_json(&folder)?;
    let options = WindowOptions { folder: Some(folder.clone()), ..WindowOptions::default() };
    world.window_with("languages", options);
    world.await_live("languages");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let target = Target::edge(world.port(), &world.token()).in_session().await?;
        let mut ours: Vec<Figures> = Vec::new();
        let mut theirs: Vec<Vec<Figures>> = peers.iter().map(|_| Vec::new()).collect();
        for round in 0..=N_ROUNDS {
            say(&format!("round {round} of {N_ROUNDS}"));
            let figures = through_baton(&target).await?;
            if round > 0 {
                ours.push(figures);
            }
            for (peer, all) in peers.iter().zip(&mut theirs) {
                let figures = through_peer(peer, &folder).context(peer.name)?;
                if round > 0 {
                    all.push(figures);
                }
            }
        }
        Ok(section(&ours, peers.iter().map(|peer| peer.name).zip(&theirs)))
    })
}

fn section<'a>(ours: &[Figures], theirs: impl Iterator<Item = (&'static str, &'a Vec<Figures>)>) -> Section {
    let row = |name: &str, figures: &[Figures]| {
        let cell = |at: usize| ms(median(&figures.iter().map(|one| one[at]).collect::<Vec<_>>()));
        vec![name.to_owned(), cell(0), cell(1), cell(2)]
    };
    let mut rows = vec![row("**Baton**", ours)];
    rows.extend(theirs.map(|(name, figures)| row(name, figures)));
    Section {
        title: "Python beside other MCP servers",
        notes: vec![
            format!("{N_ROUNDS} sessions of each in turns, {N_TIMES} steps and evaluations in each; medians in ms. All servers run already."),
            "The first stop is all calls from nothing to the locals at a breakpoint; a step is all calls to the locals where it ends.".to_owned(),
        ],
        columns: vec!["server", "first stop with locals", "step with locals", "evaluate"],
        rows,
    }
}

fn write_launch_json(folder: &Path) -> Result<()> {
    let configuration = json!({
        "name": "Python", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/sums.py",
    });
    std::fs::create_dir_all(folder.join(".vscode"))?;
    let text = json!({ "version": "0.2.0", "configurations": [configuration] }).to_string();
    Ok(std::fs::write(folder.join(".vscode/launch.json"), text)?)
}

fn peers(folder: &Path) -> Result<Vec<Peer>> {
    let program = folder.join("sums.py");
    let python = place::python();
    let tool = |path: &str| place::tool(path).to_string_lossy().into_owned();
    let config = folder.join("dap-mcp.json");
    let settings = json!({
        "type": "debugpy", "python": [python], "debuggerPath": python, "debuggerArgs": ["-m", "debugpy.adapter"],
        "program": program, "cwd": folder, "sourceDirs": [folder],
    });
    std::fs::write(&config, settings.to_string())?;
    let session = || json!({ "sessionId": SESSION });
    Ok(vec![
        Peer {
            name: "mcp-debugger 0.24.2",
            command: vec![
                place::node().to_string_lossy().into_owned(),
                tool("mcp-debugger/node_modules/@debugmcp/mcp-debugger/dist/cli.mjs"),
                "stdio".to_owned(),
            ],
            start: vec![
                ("create_debug_session", json!({ "language": "python", "executablePath": python })),
                ("set_breakpoint", json!({ "sessionId": SESSION, "file": program, "line": LINE })),
                (
                    "start_debugging",
                    json!({ "sessionId": SESSION, "scriptPath": program, "dapLaunchArgs": { "stopOnEntry": false } }),
                ),
                ("get_local_variables", session()),
            ],
            evaluate: vec![(
                "evaluate_expression",
                json!({ "sessionId": SESSION, "expression": EXPRESSION }),
            )],
            clear: vec![("clear_breakpoints", session())],
            step: vec![("step_over", session()), ("get_local_variables", session())],
            end: vec![("close_debug_session", session())],
        },
        Peer {
            name: "debugger-mcp 0.1.1",
            command: vec![tool("debugger-mcp/bin/debugger-mcp")],
            start: vec![
                ("debug_launch", json!({ "program": program, "language": "python" })),
                ("debug_breakpoint", json!({ "file": program, "line": LINE })),
                ("debug_continue", json!({})),
                ("debug_variables", json!({})),
            ],
            evaluate: vec![("debug_evaluate", json!({ "expression": EXPRESSION }))],
            // It has no way to do so: every other step ends at the breakpoint.
            clear: vec![],
            step: vec![("debug_step", json!({ "action": "next" })), ("debug_variables", json!({}))],
            end: vec![("debug_stop", json!({}))],
        },
        Peer {
            name: "dap-mcp 0.1.5",
            command: vec![
                tool("dap-mcp/bin/dap-mcp"),
                "--config".to_owned(),
                config.to_string_lossy().into_owned(),
            ],
            // Its views of a stop show the locals.
            start: vec![("set_breakpoint", json!({ "path": program, "line": LINE })), ("launch", json!({}))],
            evaluate: vec![("evaluate", json!({ "expression": EXPRESSION }))],
            clear: vec![("remove_all_breakpoints", json!({}))],
            step: vec![("next", json!({}))],
            end: vec![("terminate", json!({}))],
        },
    ])
}

fn through_peer(peer: &Peer, folder: &Path) -> Result<Figures> {
    let mut server = command(&peer.command[0]);
    server.args(&peer.command[1..]).current_dir(folder);
    let mut server = Server::start(&mut server)?;
    let begun = Instant::now();
    server.make(&peer.start)?;
    let first_stop = since(begun);
    let evaluation = server.times(&peer.evaluate)?;
    server.make(&peer.clear)?;
    let step = server.times(&peer.step)?;
    server.make(&peer.end)?;
    Ok([first_stop, step, evaluation])
}

async fn through_baton(target: &Target) -> Result<Figures> {
    // A connection that lay idle while others were measured may be closed.
    let mut caller = Caller::connect(target).await?;
    let begun = Instant::now();
    let breakpoint = json!({ "file_path": "sums.py", "line_number": LINE });
    caller.expect("success", "set_breakpoint", breakpoint).await?;
    let started =
        caller.expect("stopped", "start_debugging", json!({ "configuration_name": "Python" })).await?;
    let first_stop = since(begun);
    let event = started["stop_event_data"].clone();
    let mut evaluations = Vec::new();
    for _ in 0..N_TIMES {
        let begun = Instant::now();
        let wish = json!({ "expression": EXPRESSION, "frame_id": event["call_stack"][0]["frame_id"] });
        caller.expect("success", "evaluate_expression", wish).await?;
        evaluations.push(since(begun));
    }
    let steps = step_and_end(&mut caller, event, N_TIMES).await?;
    Ok([first_stop, median(&steps), median(&evaluations)])
}

/// An MCP server over standard streams: a message is a line.
pub(crate) struct Server {
    child: Child,
    messages: Receiver<Value>,
    session: Option<String>,
    last_id: u64,
}

impl Server {
    /// Starts one, and says who asks.
    pub(crate) fn start(server: &mut Command) -> Result<Self> {
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let program = server.get_program().to_string_lossy().into_owned();
        let mut child = server.spawn().context(program)?;
        let output = child.stdout.take().context("its output is piped")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for message in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut server = Self { child, messages, session: None, last_id: 0 };
        let client = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        server.ask("initialize", client)?;
        server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    /// Makes calls; one that fails is an error.
    fn make(&mut self, calls: &Calls) -> Result<()> {
        for (tool, arguments) in calls {
            let mut arguments = arguments.clone();
            if arguments["sessionId"] == SESSION {
                arguments["sessionId"] = json!(self.session);
            }
            let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))?;
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            let told: Value = serde_json::from_str(text).unwrap_or_default();
            let is_failure = result["isError"] == true || told["success"] == false;
            ensure!(!is_failure, "{tool} failed: {result}");
            if let Some(session) = told["sessionId"].as_str() {
                self.session = Some(session.to_owned());
            }
        }
        Ok(())
    }

    /// How long calls take that are made again and again.
    fn times(&mut self, calls: &Calls) -> Result<f64> {
        let mut samples = Vec::new();
        for _ in 0..N_TIMES {
            let begun = Instant::now();
            self.make(calls)?;
            samples.push(since(begun));
        }
        Ok(median(&samples))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The answer to a request; an error is one.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let message = self.messages.recv_timeout(PATIENCE).context("the server says nothing more")?;
            if message["id"] == id && message["method"].is_null() {
                ensure!(message["error"].is_null(), "{method} failed: {message}");
                return Ok(message["result"].clone());
            }
        }
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let input = self.child.stdin.as_mut().context("its input is piped")?;
        input.write_all(format!("{message}\n").as_bytes())?;
        Ok(input.flush()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let all = tree(self.child.id());
        // Its input ends first: those that notice take with them what they started.
        drop(self.child.stdin.take());
        let ended =
            baton_tests::process::await_some(Duration::from_secs(2), || self.child.try_wait().ok().flatten());
        if ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        for pid in all.into_iter().skip(1).filter(|pid| is_alive(*pid)) {
            kill9(pid);
        }
    }
}
