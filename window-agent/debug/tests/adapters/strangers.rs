//! While a session is stopped, and while it starts, another user of the machine reaches nothing of it; and who waits
//! where an adapter is about to be reached hears nothing.

use std::io::Read as _;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use baton_agent_debug::adapters::wish::{Attach, Launch, Wish};
use baton_agent_debug::types::{SetBreakpoint, StopEvent, Waited};
use baton_agent_debug::{Debugger, DebuggerOptions};
use tokio::sync::{Mutex, MutexGuard};

use crate::programs::{
    PATIENCE, Program, debugger, each_adapter, of_session, processes_with, until_gone, wait_for,
};
use crate::scenario::shelf;
use crate::stranger::{Sockets, as_stranger, family};

/// A program that runs another one in a worker, and a third one as a child; each loops.
const FAMILY: &str = r#"const { fork } = require("node:child_process");
const { Worker, isMainThread } = require("node:worker_threads");
let turns = 0;
const clock = new Int32Array(new SharedArrayBuffer(4));
if (isMainThread && process.argv[2] === "loop") {
  new Worker(__filename, { argv: ["worker"] });
  fork(__filename, ["child"]);
} else {
  for (;;) {
    turns++;
    Atomics.wait(clock, 0, 0, 1);
  }
}
"#;

/// One at a time: a stranger who hurries tries what this process opens.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// Starts the program, which stops in its loop.
async fn stopped(debugger: &Debugger, program: &Program, adapter: &str) -> StopEvent {
    let wish = SetBreakpoint { path: program.source.clone(), line: program.line, ..SetBreakpoint::default() };
    debugger.set_breakpoint(wish).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    *stop
}

async fn a_stranger_reaches_nothing(adapter: &str) {
    let program = Program::of(adapter);
    nothing_is_reached(adapter, &program, debugger(&program)).await;
}

async fn nothing_is_reached(adapter: &str, program: &Program, debugger: Debugger) {
    let _turn = turn().await;
    let stop = stopped(&debugger, program, adapter).await;
    attack(&debugger, program).await;
    debugger.stop_all().await;
    until_gone(program, &stop.session).await;
}

/// Tries everything on all sockets of the sessions that there are.
async fn attack(debugger: &Debugger, program: &Program) {
    let mut pids = processes_with(&program.needle(), "cmdline");
    for status in debugger.statuses().await {
        let (adapters, others) = of_session(&status.id);
        pids.extend(adapters.into_iter().chain(others));
    }
    pids.remove(&i32::try_from(std::process::id()).unwrap());
    assert!(pids.len() >= 2, "an adapter and a program: {pids:?}");
    let sockets = Sockets::of(&pids);
    println!("{sockets:?}");
    let folder = tempfile::tempdir().unwrap();
    sockets.attack(&folder.path().join("marker"));
}

async fn a_stranger_who_hurries_reaches_nothing(adapter: &str) {
    let program = Program::of(adapter);
    nothing_is_reached_in_a_hurry(adapter, &program, debugger(&program)).await;
}

/// The start succeeds although each port is tried as soon as it opens.
async fn nothing_is_reached_in_a_hurry(adapter: &str, program: &Program, debugger: Debugger) {
    let _turn = turn().await;
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let is_over = Arc::new(AtomicBool::new(false));
    let (ready, is_ready) = mpsc::channel();
    let seen_as_over = is_over.clone();
    let over = Over(is_over);
    let hurry = std::thread::spawn(move || {
        let mut known = Sockets::listening();
        ready.send(()).unwrap();
        let mut n_tried = 0;
        std::thread::scope(|scope| {
            while !seen_as_over.load(Ordering::Relaxed) {
                let new = Sockets::listening().since(&known);
                if new.ports.is_empty() {
                    continue;
                }
                known.ports.extend(&new.ports);
                let new = Sockets::of(&family()).among(&new);
                n_tried += new.ports.len();
                let marker = &marker;
                scope.spawn(move || new.attack(marker));
            }
        });
        n_tried
    });
    is_ready.recv().unwrap();
    let stop = stopped(&debugger, program, adapter).await;
    drop(over);
    println!("{adapter}: {} ports were tried", hurry.join().unwrap());
    debugger.stop_all().await;
    until_gone(program, &stop.session).await;
}

/// Ends the stranger's hurry, also when the session did not start.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

each_adapter!([a_stranger_reaches_nothing a_stranger_who_hurries_reaches_nothing]);

#[tokio::test]
async fn a_stranger_reaches_no_worker_and_no_child_of_javascript() {
    let program = Program::new("family.js", FAMILY, "turns++;");
    nothing_is_reached("js-debug", &program, debugger(&program)).await;
}

/// An adapter of the user's own: a real one, behind a socket.
const BRIDGE: &str = r#"import socket, subprocess, sys
kind, where, adapter = sys.argv[1:]
if kind == "unix":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen()
    stream, _ = listener.accept()
else:
    stream = socket.create_connection(("127.0.0.1", int(where)))
subprocess.call([adapter], stdin=stream, stdout=stream)
"#;

fn bridged(program: &Program, transport: &str) -> Debugger {
    let adapter = shelf().folder_of("lldb-dap").unwrap().join("bin/lldb-dap");
    let place = if transport == "unix" { "{socket}" } else { "{port}" };
    let table = serde_json::json!({"adapters": [{
        "name": "bridged", "types": ["bridged"], "executables": true, "extensions": ["c"],
        "commands": [["python3", "-c", BRIDGE, transport, place, adapter]],
        "transport": transport, "first_threads_are_old": true, "tells_exit_code": true,
    }]});
    with_table(program, &table.to_string())
}

#[tokio::test]
async fn a_stranger_reaches_nothing_of_an_adapter_of_the_users_own() {
    for transport in ["unix", "tcp_back"] {
        let program = Program::of("bridged");
        nothing_is_reached("bridged", &program, bridged(&program, transport)).await;
        nothing_is_reached_in_a_hurry("bridged", &program, bridged(&program, transport)).await;
    }
}

/// A stranger listens; gives what `start` fails with, and what the stranger heard.
async fn squatted(start: impl AsyncFnOnce(u16) -> String) -> (String, Vec<u8>) {
    let (port, is_bound) = mpsc::channel();
    let squatter = std::thread::spawn(move || {
        as_stranger(|| {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            port.send(listener.local_addr().unwrap().port()).unwrap();
            let mut heard = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut heard).unwrap();
            heard
        })
    });
    let message = start(is_bound.recv().unwrap()).await;
    (message, squatter.join().unwrap())
}

fn with_table(program: &Program, table: &str) -> Debugger {
    let config = program.source.with_file_name("adapters.json");
    std::fs::write(&config, table).unwrap();
    let mut options = DebuggerOptions::from_env(vec![program.source.parent().unwrap().to_owned()]);
    options.shelf = baton_agent_debug::Shelf { config: Some(config), ..shelf() };
    Debugger::spawn(options)
}

async fn failure(debugger: &Debugger, wish: Wish) -> String {
    let start = debugger.configure(&wish).await.unwrap();
    debugger.start(start, wait_for(PATIENCE)).await.unwrap_err().to_string()
}

#[tokio::test]
async fn who_took_the_port_of_an_adapter_hears_nothing() {
    let _turn = turn().await;
    let (message, heard) = squatted(async |port| {
        let program = Program::new("program.sq", "", "");
        let script = format!("echo 'listening at 127.0.0.1:{port} '; exec sleep 60");
        let table = serde_json::json!({"adapters": [{
            "name": "squatted", "types": ["squatted"], "extensions": ["sq"],
            "commands": [["/bin/sh", "-c", script]],
            "transport": {"tcp_announced": "listening at 127.0.0.1:"},
        }]});
        let debugger = with_table(&program, &table.to_string());
        failure(&debugger, Wish::Launch(Launch { program: program.path.clone(), ..Launch::default() })).await
    })
    .await;
    assert!(message.contains("run by another user (65534)"), "{message}");
    assert_eq!(heard, b"");
}

#[tokio::test]
async fn who_took_the_port_of_a_program_hears_nothing() {
    let _turn = turn().await;
    for adapter in ["debugpy", "js-debug"] {
        let (message, heard) = squatted(async |port| {
            let program = Program::new("program.js", "", "");
            let attach = Attach { port: Some(port), adapter: Some(adapter.to_owned()), ..Attach::default() };
            failure(&debugger(&program), Wish::Attach(attach)).await
        })
        .await;
        assert!(message.contains("run by another user (65534)"), "{message}");
        assert_eq!(heard, b"", "{adapter}");
    }
}
