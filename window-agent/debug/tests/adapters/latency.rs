//! Node's inspector does not hold its messages back: not of a program, its child, or one that was attached to.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_agent_debug::adapters::wish::{Attach, Launch, Wish};
use baton_agent_debug::types::control::ResumeWish;
use baton_agent_debug::types::{Resume, SetBreakpoint, StopEvent, Waited};
use baton_agent_debug::{Debugger, Wait};
use tokio_util::sync::CancellationToken;

use crate::scenario::options;

/// A busy machine may start a program slowly.
const PATIENCE: Duration = Duration::from_secs(60);
/// Steps of which the quickest counts: others may have to share the machine.
const N_STEPS: usize = 40;
/// A step with its stack and variables is answered in several messages. Held back they take at least 40 ms each, and
/// 90 or more together; otherwise some 10.
const BOUND: Duration = Duration::from_millis(60);

const PROGRAM: &str = r#"const { fork } = require("node:child_process");
let total = 0;
function turn(number) {
  total += number;
  total ^= 1;
}
if (process.argv[2] === "parent") fork(__filename, ["child"]);
else setInterval(() => { for (let n = 0; n < 1000; n++) turn(n); }, 10);
"#;

fn program(folder: &Path) -> PathBuf {
    let path = folder.canonicalize().unwrap().join("program.js");
    std::fs::write(&path, PROGRAM).unwrap();
    path
}

fn wait() -> Wait {
    Wait { timeout: PATIENCE, cancelled: CancellationToken::new() }
}

/// Starts what is wished, and steps until a step was quick.
async fn steps_are_quick(debugger: &Debugger, program: &Path, wish: Wish) {
    let breakpoint = SetBreakpoint { path: program.to_owned(), line: 4, ..SetBreakpoint::default() };
    debugger.set_breakpoint(breakpoint).await.unwrap();
    let start = debugger.configure(&wish).await.unwrap();
    let mut stop = stopped(debugger.start(start, wait()).await.unwrap());
    let mut quickest = Duration::MAX;
    for _ in 0..N_STEPS {
        let wish = ResumeWish::new(Some(stop.session.clone()), Some(stop.thread_id), Resume::StepOver);
        let begun = Instant::now();
        stop = stopped(debugger.resume_as(wish, wait()).await.unwrap());
        quickest = quickest.min(begun.elapsed());
        assert!(!stop.call_stack.is_empty() && stop.top_frame_variables.is_some(), "{stop:?}");
    }
    debugger.stop_all().await;
    assert!(quickest < BOUND, "the quickest of {N_STEPS} steps took {quickest:?}");
}

fn stopped(waited: Waited) -> StopEvent {
    match waited {
        Waited::Stopped(stop) => *stop,
        other => panic!("it did not stop: {other:?}"),
    }
}

fn launch(program: &Path, args: &[&str]) -> Wish {
    Wish::Launch(Launch {
        program: program.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        ..Launch::default()
    })
}

#[tokio::test]
async fn a_step_of_javascript_waits_for_no_acknowledgement() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let debugger = Debugger::spawn(options(folder.path()));
    steps_are_quick(&debugger, &program, launch(&program, &[])).await;
}

#[tokio::test]
async fn nor_does_one_of_a_child_process() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let debugger = Debugger::spawn(options(folder.path()));
    steps_are_quick(&debugger, &program, launch(&program, &["parent"])).await;
}

#[tokio::test]
async fn nor_one_of_a_program_that_was_attached_to() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path());
    let mut node = Command::new("node")
        .args(["--inspect=127.0.0.1:0".as_ref(), program.as_os_str()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let port = announced_port(&mut node);
    let debugger = Debugger::spawn(options(folder.path()));
    let attach = Attach { port: Some(port), adapter: Some("js-debug".to_owned()), ..Attach::default() };
    steps_are_quick(&debugger, &program, Wish::Attach(attach)).await;
    node.kill().unwrap();
    node.wait().unwrap();
}

/// `Debugger listening on ws://127.0.0.1:38815/004e42aa-...`
fn announced_port(node: &mut std::process::Child) -> u16 {
    use std::io::BufRead;
    let mut lines = std::io::BufReader::new(node.stderr.take().unwrap()).lines();
    let line = lines.find_map(|line| line.ok().filter(|line| line.contains("ws://"))).unwrap();
    // What it says later must not block it.
    std::thread::spawn(move || lines.for_each(drop));
    let (_, rest) = line.split_once("ws://127.0.0.1:").unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}
