//! Programs that run already are joined, by process id and by port, looked at, and left as they were.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use baton_agent_debug::Debugger;
use baton_agent_debug::adapters::wish::{Attach, Wish};
use baton_agent_debug::types::{Evaluate, RemoveBreakpoint, Resume, SetBreakpoint, Waited};

use crate::programs::{BOUND, PATIENCE, Program, debugger, wait_for};

/// A program that was started by somebody else.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// The port in the first line that holds `before`, of what it prints where it tells its port.
    pub(crate) fn port(&mut self, before: &str, is_stderr: bool) -> u16 {
        let pipe: Box<dyn std::io::Read + Send> = if is_stderr {
            Box::new(self.0.stderr.take().unwrap())
        } else {
            Box::new(self.0.stdout.take().unwrap())
        };
        let mut lines = BufReader::new(pipe).lines();
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains(before));
        // It may go on printing.
        std::thread::spawn(move || lines.for_each(drop));
        let line = line.expect("it tells its port");
        let rest = line.rsplit_once(before).unwrap().1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("{line}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Attaches, stops at a breakpoint that is set afterwards, evaluates, and lets go: the program lives on.
async fn join(debugger: &Debugger, program: &Program, wish: Attach, running: &mut Running) {
    let start = debugger.configure(&Wish::Attach(wish)).await.unwrap();
    let line = SetBreakpoint { path: program.source.clone(), line: program.line, ..SetBreakpoint::default() };
    debugger.set_breakpoint(line).await.unwrap();
    let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
    // Some stop where they come in.
    for _ in 0..3 {
        let Ok(Waited::Stopped(stop)) = &waited else { break };
        if stop.line == Some(i64::from(program.line)) {
            break;
        }
        let (session, thread_id) = (stop.session.clone(), stop.thread_id);
        waited = debugger.resume(Some(&session), thread_id, Resume::Continue, wait_for(PATIENCE)).await;
    }
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    assert_eq!(stop.line, Some(i64::from(program.line)), "{stop:?}");
    let evaluate =
        Evaluate { expression: "turns + 1".to_owned(), frame_id: stop.call_stack[0].frame_id, context: None };
    let value = debugger.evaluate(evaluate).await.unwrap().result;
    assert!(value.parse::<i64>().is_ok_and(|turns| turns > 0), "{value}");
    tokio::time::timeout(BOUND, debugger.stop(Some(&stop.session))).await.unwrap().unwrap();
    assert!(running.0.try_wait().unwrap().is_none(), "it lives on");
    assert_eq!(debugger.sessions(), []);
}

/// Waits for the file that a program makes once it turns.
fn await_turning(program: &Program) -> String {
    program.folder.path().join("turning").display().to_string()
}

async fn by_process_id(adapter: &str) {
    let mut program = Program::of(adapter);
    if adapter == "delve" {
        let built = program.source.with_file_name("built");
        let mut build = Command::new("go");
        build.args(["build", "-gcflags=all=-N -l", "-o"]).arg(&built).arg(".");
        assert!(build.current_dir(program.folder.path()).status().unwrap().success());
        program.path = built;
    }
    let debugger = debugger(&program);
    let turning = await_turning(&program);
    let mut command = match adapter {
        "debugpy" => Command::new("python3"),
        "js-debug" => Command::new("node"),
        _ => Command::new(&program.path),
    };
    match adapter {
        "debugpy" => drop(command.arg(&program.path)),
        // Without it the port would be the same for all programs of the machine.
        "js-debug" => drop(command.arg("--inspect-port=127.0.0.1:0").arg(&program.path)),
        _ => {}
    }
    let mut running = Running::start(command.args(["loop", &turning]));
    while !std::path::Path::new(&turning).exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let wish = Attach {
        adapter: Some(adapter.to_owned()),
        pid: Some(running.0.id()),
        cwd: Some(program.source.parent().unwrap().to_owned()),
        ..Attach::default()
    };
    join(&debugger, &program, wish, &mut running).await;
}

#[tokio::test]
async fn gdb_by_process_id() {
    by_process_id("gdb").await;
}

#[tokio::test]
async fn lldb_dap_by_process_id() {
    by_process_id("lldb-dap").await;
}

#[tokio::test]
async fn codelldb_by_process_id() {
    by_process_id("codelldb").await;
}

#[tokio::test]
async fn delve_by_process_id() {
    by_process_id("delve").await;
}

/// gdb brings debugpy into the program.
#[tokio::test]
async fn debugpy_by_process_id() {
    by_process_id("debugpy").await;
}

/// A signal makes node listen for its debugger.
#[tokio::test]
async fn js_debug_by_process_id() {
    by_process_id("js-debug").await;
}

/// No adapter is named: who listens says which it is.
async fn by_port(kind: &str, program: &Program, running: &mut Running, port: u16) {
    let debugger = debugger(program);
    let wish = Attach { port: Some(port), ..Attach::default() };
    let start = debugger.configure(&Wish::Attach(wish.clone())).await.unwrap();
    assert_eq!(start.configuration["type"], kind);
    join(&debugger, program, wish, running).await;
}

#[tokio::test]
async fn js_debug_by_port() {
    let program = Program::of("js-debug");
    let mut command = Command::new("node");
    let mut running = Running::start(command.arg("--inspect=127.0.0.1:0").arg(&program.path).arg("loop"));
    let port = running.port("ws://127.0.0.1:", true);
    by_port("pwa-node", &program, &mut running, port).await;
}

/// What runs already is stepped into as what was started is, and a step out of it ends, in node's own code.
#[tokio::test]
async fn js_debug_steps_into_what_prints_and_out_of_the_program() {
    const SOURCE: &str = "let turns = 0;\nfunction turn() {\n  turns++;\n  console.log(turns);\n  turns += 0;\n}\nsetInterval(turn, 20);\n";
    let program = Program::new("program.js", SOURCE, "console.log(turns);");
    let mut running = Running::start(Command::new("node").arg("--inspect=127.0.0.1:0").arg(&program.path));
    let port = running.port("ws://127.0.0.1:", true);
    let debugger = debugger(&program);
    let wish = Attach { adapter: Some("js-debug".to_owned()), port: Some(port), ..Attach::default() };
    let start = debugger.configure(&Wish::Attach(wish)).await.unwrap();
    let line = SetBreakpoint { path: program.source.clone(), line: program.line, ..SetBreakpoint::default() };
    debugger.set_breakpoint(line).await.unwrap();
    let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
    debugger.remove_breakpoint(RemoveBreakpoint::All).await.unwrap();
    let mut lines = Vec::new();
    for how in [Resume::StepInto, Resume::StepOut] {
        let Ok(Waited::Stopped(stop)) = &waited else { panic!("{waited:?}") };
        lines.extend(stop.line);
        let (session, thread_id) = (stop.session.clone(), stop.thread_id);
        waited = debugger.resume(Some(&session), thread_id, how, wait_for(PATIENCE)).await;
    }
    assert_eq!(lines, [4, 5]);
    let Ok(Waited::Stopped(stop)) = &waited else { panic!("{waited:?}") };
    assert!(stop.call_stack[0].file_path.contains("node_internals"), "{stop:?}");
    debugger.stop_all().await;
}

#[tokio::test]
async fn delve_by_port() {
    let program = Program::of("delve");
    let mut command = Command::new("dlv");
    command.args(["debug", "--headless", "--listen=127.0.0.1:0", "--accept-multiclient"]);
    let mut running =
        Running::start(command.args([".", "--", "loop"]).current_dir(program.source.parent().unwrap()));
    let port = running.port("listening at: 127.0.0.1:", false);
    by_port("go", &program, &mut running, port).await;
}

#[tokio::test]
async fn java_by_port() {
    let program = Program::of("java");
    let mut command = Command::new("java");
    let agent = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0";
    command.args([agent, "-cp"]).arg(program.source.with_file_name("out")).args(["Program", "loop"]);
    let mut running = Running::start(&mut command);
    let port = running.port("dt_socket at address: ", false);
    by_port("java", &program, &mut running, port).await;
}
