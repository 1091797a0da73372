//! What a debugger must survive, with every adapter: endless programs, floods of output, the death of the program, of
//! the adapter and of the engine. Each is answered within the fault matrix's bound, and nothing is left behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use baton_window_agent::debug::adapters::wish::{Launch, Wish};
use baton_window_agent::debug::error::DebugError;
use baton_window_agent::debug::types::control::{OutputWish, Status, Stdin};
use baton_window_agent::debug::types::{
    Phase, Resume, SessionId, SessionSummary, SetBreakpoint, Wait, Waited,
};
use baton_window_agent::debug::{Debugger, DebuggerOptions};
use tokio_util::sync::CancellationToken;

/// The bound of the fault matrix, with room for a busy machine.
const BOUND: Duration = Duration::from_secs(5);
/// A start may have to compile, and to load a Java or a cold disk.
const PATIENCE: Duration = Duration::from_secs(60);

/// One source does everything, by its first argument: `loop`, `flood`, `read`.
const C: &str = r#"#include <stdio.h>
#include <string.h>
#include <unistd.h>
volatile long turns;
int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "flood")) for (int n = 0; n < 100000; n++) printf("line %05d of a flood of output\n", n);
  if (!strcmp(what, "read")) { char text[64]; if (fgets(text, 64, stdin)) printf("got %s", text); }
  while (!strcmp(what, "loop")) {
    turns++;
    usleep(1000);
  }
  puts("done");
  return 0;
}
"#;
const JAVASCRIPT: &str = r#"const what = process.argv[2];
let turns = 0;
const clock = new Int32Array(new SharedArrayBuffer(4));
// A pause in node's own code would step on until it is in the program's.
while (what === "loop") {
  turns++;
  Atomics.wait(clock, 0, 0, 1);
}
if (what === "flood") for (let n = 0; n < 100000; n++) console.log(`line ${n} of a flood of output`);
if (what === "read") process.stdin.once("data", (text) => { console.log("got " + text); process.exit(0); });
else console.log("done");
"#;
const GO: &str = r#"package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	turns := 0
	if os.Args[1] == "flood" {
		for n := 0; n < 100000; n++ {
			fmt.Printf("line %05d of a flood of output\n", n)
		}
	}
	for os.Args[1] == "loop" {
		turns++
		time.Sleep(time.Millisecond)
	}
	fmt.Println("done", turns)
}
"#;
const BASH: &str = r#"what=$1
turns=0
if [ "$what" = flood ]; then seq -f 'line %g of a flood of output' 100000; fi
while [ "$what" = loop ]; do
  turns=$((turns + 1))
  sleep 0.01
done
echo done
"#;

/// A program in a folder of its own, which its processes are known by.
struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
    source: PathBuf,
    /// A line of the endless loop.
    line: u32,
}

impl Program {
    fn new(name: &str, text: &str, looping: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("baton-faults-").tempdir().unwrap();
        let source = std::fs::canonicalize(folder.path()).unwrap().join(name);
        std::fs::write(&source, text).unwrap();
        let line = text.lines().position(|line| line.trim() == looping).unwrap() + 1;
        Self { folder, path: source.clone(), source, line: u32::try_from(line).unwrap() }
    }

    fn of(adapter: &str) -> Self {
        match adapter {
            "js-debug" => Self::new("program.js", JAVASCRIPT, "turns++;"),
            "delve" => {
                let program = Self::new("program.go", GO, "turns++");
                std::fs::write(program.folder.path().join("go.mod"), "module program\n\ngo 1.19\n").unwrap();
                program
            }
            "bash-dap" => Self::new("program.sh", BASH, "turns=$((turns + 1))"),
            _ => {
                let mut program = Self::new("program.c", C, "turns++;");
                program.path = program.source.with_extension("");
                let mut build = Command::new("cc");
                build.args(["-g", "-O0", "-o"]).arg(&program.path).arg(&program.source);
                assert!(build.status().unwrap().success());
                program
            }
        }
    }

    fn start(&self, adapter: &str, what: &str, terminal: bool) -> Wish {
        Wish::Launch(Launch {
            adapter: Some(adapter.to_owned()),
            program: self.path.clone(),
            args: vec![what.to_owned()],
            terminal,
            ..Launch::default()
        })
    }

    fn needle(&self) -> String {
        self.folder.path().file_name().unwrap().to_string_lossy().into_owned()
    }
}

fn debugger(program: &Program) -> Debugger {
    let adapters = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(".cache/adapters");
    assert!(adapters.exists(), "there is no {}: `cargo xtask test adapters` fills it", adapters.display());
    let mut options = DebuggerOptions::from_env(vec![program.source.parent().unwrap().to_owned()]);
    options.shelf.folder = Some(adapters);
    Debugger::spawn(options)
}

fn wait_for(timeout: Duration) -> Wait {
    Wait { timeout, cancelled: CancellationToken::new() }
}

/// Starts a program that does not stop, and gives its session once it runs.
async fn start_running(debugger: &Debugger, wish: &Wish) -> SessionId {
    let start = debugger.configure(wish).unwrap();
    let starter = debugger.clone();
    let starting = tokio::spawn(async move { starter.start(start, wait_for(PATIENCE)).await });
    let mut sessions = debugger.watch_sessions();
    let is_running = |session: &SessionSummary| session.phase == Phase::Running;
    let begun = sessions.wait_for(|sessions| sessions.iter().any(is_running));
    let session = tokio::time::timeout(PATIENCE, begun).await.unwrap().unwrap()[0].id.clone();
    if wish_is_for(wish, "bash-dap") {
        // It takes a pause, and does nothing.
        debugger.interrupt_waits().await;
        let _ = starting.await.unwrap();
        return session;
    }
    // It prints nothing; that it turns is known once it can be paused.
    let paused = debugger.pause(Some(&session), None, wait_for(PATIENCE)).await;
    let _ = starting.await.unwrap();
    let Ok(Waited::Stopped(stop)) = paused else { panic!("{paused:?}") };
    // While it is being loaded, codelldb stops at a breakpoint of its own.
    assert!(matches!(stop.reason.as_str(), "pause" | "breakpoint"), "{}", stop.reason);
    stop.session
}

fn wish_is_for(wish: &Wish, adapter: &str) -> bool {
    matches!(wish, Wish::Launch(launch) if launch.adapter.as_deref() == Some(adapter))
}

/// Lets it go on, and does not wait.
async fn go_on(debugger: &Debugger, session: &SessionId) {
    let status = debugger.status(Some(session)).await.unwrap();
    let thread_id = status.last_stop.map_or(1, |stop| stop.thread_id);
    let waited = debugger
        .resume(Some(session), thread_id, Resume::Continue, wait_for(Duration::from_millis(100)))
        .await;
    assert!(matches!(waited, Ok(Waited::TimedOut { .. })), "{waited:?}");
}

/// Living processes whose environment or command line holds `needle`.
fn processes_with(needle: &str, file: &str) -> BTreeSet<i32> {
    let is_living = |process: &Path| {
        let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X'])
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let bytes = std::fs::read(process.path().join(file)).ok()?;
            (String::from_utf8_lossy(&bytes).contains(needle) && is_living(&process.path())).then_some(pid)
        })
        .collect()
}

/// Those of a session: what was started directly first.
fn of_session(session: &SessionId) -> (Vec<i32>, Vec<i32>) {
    let marked = processes_with(&format!("BATON_DEBUG_SESSION={session}-"), "environ");
    let own = std::process::id().to_string();
    let is_direct = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(1) == Some(own.as_str())
    };
    marked.into_iter().partition(is_direct)
}

fn kill(pids: impl IntoIterator<Item = i32>) {
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

async fn until_gone(program: &Program, session: &SessionId) {
    let needle = program.needle();
    let left = || (processes_with(&needle, "cmdline"), of_session(session));
    let gone = async {
        while left() != (BTreeSet::new(), (Vec::new(), Vec::new())) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, gone).await.is_ok(), "still alive: {:?}", left());
}

async fn an_endless_program(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let session = start_running(&debugger, &program.start(adapter, "loop", false)).await;
    go_on(&debugger, &session).await;
    // A breakpoint set in its loop stops it.
    let wish = SetBreakpoint { path: program.source.clone(), line: program.line, ..SetBreakpoint::default() };
    let set = debugger.set_breakpoint(wish).await.unwrap();
    let waited =
        tokio::time::timeout(BOUND, debugger.wait_stop(Some(&session), wait_for(BOUND))).await.unwrap();
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    assert_eq!((stop.reason.as_str(), stop.hit_breakpoint_ids), ("breakpoint", Some(vec![set.id])));
    let stopped = tokio::time::timeout(BOUND, debugger.stop(Some(&session))).await.unwrap();
    assert_eq!(stopped.unwrap(), session);
    until_gone(&program, &session).await;
}

async fn the_death_of_the_adapter(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let wish = SetBreakpoint { path: program.source.clone(), line: program.line, ..SetBreakpoint::default() };
    debugger.set_breakpoint(wish).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "loop", false)).unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    let (adapters, _) = of_session(&stop.session);
    assert!(!adapters.is_empty());
    let waiter = debugger.clone();
    let (session, thread_id) = (stop.session.clone(), stop.thread_id);
    debugger.remove_breakpoint(baton_window_agent::debug::types::RemoveBreakpoint::All).await.unwrap();
    let waiting = tokio::spawn(async move {
        waiter.resume(Some(&session), thread_id, Resume::Continue, wait_for(PATIENCE)).await
    });
    let mut sessions = debugger.watch_sessions();
    let is_running = |session: &SessionSummary| session.phase == Phase::Running;
    sessions.wait_for(|sessions| sessions.iter().all(is_running)).await.unwrap();
    kill(adapters);
    let ended = tokio::time::timeout(BOUND, waiting).await.unwrap().unwrap();
    let Err(error @ DebugError::AdapterDied { .. }) = &ended else { panic!("{ended:?}") };
    assert!(error.to_string().contains("was killed by signal 9"), "{error}");
    until_gone(&program, &stop.session).await;
    let wish = SetBreakpoint { path: program.source.clone(), line: program.line, ..SetBreakpoint::default() };
    debugger.set_breakpoint(wish).await.unwrap();
    // The next start has its breakpoints.
    let start = debugger.configure(&program.start(adapter, "loop", false)).unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    assert_eq!(stop.reason, "breakpoint");
    debugger.stop_all().await;
    until_gone(&program, &stop.session).await;
}

async fn the_death_of_the_program(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let session = start_running(&debugger, &program.start(adapter, "loop", false)).await;
    go_on(&debugger, &session).await;
    let (adapters, others) = of_session(&session);
    // The program is what nobody but the adapter, or a helper of it, has started; its children may be among them.
    let of_program = processes_with(&program.needle(), "cmdline");
    let doomed: Vec<i32> = if matches!(adapter, "delve" | "js-debug") {
        others
    } else {
        of_program.into_iter().filter(|pid| !adapters.contains(pid)).collect()
    };
    assert!(!doomed.is_empty());
    kill(doomed);
    let waited =
        tokio::time::timeout(BOUND, debugger.wait_stop(Some(&session), wait_for(PATIENCE))).await.unwrap();
    // gdb and lldb may stop at the signal first.
    let ended = match waited {
        Ok(Waited::Stopped(stop)) => {
            let resumed = debugger.resume(Some(&session), stop.thread_id, Resume::Continue, wait_for(BOUND));
            tokio::time::timeout(BOUND, resumed).await.unwrap()
        }
        other => other,
    };
    assert!(
        matches!(
            ended,
            Ok(Waited::Completed(_)) | Err(DebugError::AdapterDied { .. } | DebugError::NoSession)
        ),
        "{ended:?}"
    );
    until_gone(&program, &session).await;
}

async fn the_end_of_the_engine(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let session = start_running(&debugger, &program.start(adapter, "loop", false)).await;
    go_on(&debugger, &session).await;
    drop(debugger);
    until_gone(&program, &session).await;
}

async fn a_flood_of_output(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let start = debugger.configure(&program.start(adapter, "flood", false)).unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
    assert!(completed.output.text.contains("done"), "{:?}", completed.output.text);
    assert!(completed.output.text.len() <= 4096);
    assert!(completed.output.omitted_bytes > 2_000_000, "{}", completed.output.omitted_bytes);
    let all = OutputWish {
        session: Some(completed.session.clone()),
        since: Some(0),
        categories: Vec::new(),
        max_bytes: usize::MAX,
    };
    let page = debugger.output(all).await.unwrap();
    let n_bytes: usize = page.entries.iter().map(|entry| entry.text.len()).sum();
    assert!(n_bytes <= 1024 * 1024 && page.dropped_bytes > 0, "{n_bytes}");
    until_gone(&program, &completed.session).await;
}

async fn a_program_that_reads(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let start = debugger.configure(&program.start(adapter, "read", true)).unwrap();
    let starter = debugger.clone();
    let starting = tokio::spawn(async move { starter.start(start, wait_for(PATIENCE)).await });
    let has_terminal = async {
        // What is typed before the program runs, the terminal may forget.
        let is_ready = |status: &Status| status.has_terminal && status.phase == Phase::Running;
        while !debugger.statuses().await.iter().any(is_ready) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, has_terminal).await.unwrap();
    debugger.write_stdin(None, Stdin { text: "Ada\n".to_owned(), is_last: false }).await.unwrap();
    let waited = starting.await.unwrap();
    let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
    assert!(completed.output.text.contains("got Ada"), "{:?}", completed.output.text);
    assert_eq!(completed.exit_code, Some(0));
    until_gone(&program, &completed.session).await;
}

/// Tests of every fault for an adapter.
macro_rules! faults {
    ($($module:ident: $adapter:literal, $($fault:ident)*;)*) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $fault() {
                super::$fault($adapter).await;
            })*
        })*
    };
}

faults! {
    gdb: "gdb", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output;
    lldb_dap: "lldb-dap", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output a_program_that_reads;
    codelldb: "codelldb", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output;
    js_debug: "js-debug", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output a_program_that_reads;
    delve: "delve", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output;
    bash_dap: "bash-dap", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output;
}
