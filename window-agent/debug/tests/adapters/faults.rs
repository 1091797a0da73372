//! What a debugger must survive, with every adapter: endless programs, floods of output, the death of the program, of
//! the adapter and of the engine. Each is answered within the fault matrix's bound, and nothing is left behind.

use std::time::Duration;

use baton_agent_debug::Debugger;
use baton_agent_debug::adapters::wish::Wish;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{OutputWish, Status, Stdin};
use baton_agent_debug::types::{Phase, Resume, SessionId, SessionSummary, SetBreakpoint, Waited};

use crate::programs::{
    BOUND, PATIENCE, Program, debugger, kill, of_session, processes_with, until_gone, wait_for,
};

/// Starts a program that does not stop, and gives its session once it runs.
pub(crate) async fn start_running(debugger: &Debugger, wish: &Wish) -> SessionId {
    let start = debugger.configure(wish).await.unwrap();
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
pub(crate) async fn go_on(debugger: &Debugger, session: &SessionId) {
    let status = debugger.status(Some(session)).await.unwrap();
    let thread_id = status.last_stop.map_or(1, |stop| stop.thread_id);
    let waited = debugger
        .resume(Some(session), thread_id, Resume::Continue, wait_for(Duration::from_millis(100)))
        .await;
    assert!(matches!(waited, Ok(Waited::TimedOut { .. })), "{waited:?}");
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
    let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    let (adapters, _) = of_session(&stop.session);
    assert!(!adapters.is_empty());
    let waiter = debugger.clone();
    let (session, thread_id) = (stop.session.clone(), stop.thread_id);
    debugger.remove_breakpoint(baton_agent_debug::types::RemoveBreakpoint::All).await.unwrap();
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
    let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
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
    let told = match adapter {
        "gdb" | "delve" => Some("the program was ended by SIGKILL"),
        "lldb-dap" | "codelldb" => Some("the program was ended by SIGKILL, or exited with code 9 itself"),
        _ => None,
    };
    if let (Some(told), Ok(Waited::Completed(end))) = (told, &ended) {
        assert_eq!(end.note.as_deref(), Some(told), "{end:?}");
    }
    until_gone(&program, &session).await;
}

const SIGNALED: &str = "#include <signal.h>
#include <stdlib.h>
static void handle(int number) { (void)number; }
int main(int argc, char **argv) {
  signal(SIGUSR1, handle);
  raise(atoi(argv[argc - 1]));
  return 3;
}
";

async fn what_ended_a_program_is_told(adapter: &str) {
    let program = Program::built("program.c", SIGNALED, "return 3;");
    let is_gdb = adapter == "gdb";
    let killed = "the program was ended by SIGKILL";
    let killed = if is_gdb { killed.to_owned() } else { format!("{killed}, or exited with code 9 itself") };
    for (number, expected) in [
        ("9", (killed.as_str(), (!is_gdb).then_some(9))),
        ("15", ("the program was ended by SIGTERM", (!is_gdb).then_some(15))),
        // It handles this one.
        ("10", ("", Some(3))),
    ] {
        let debugger = debugger(&program);
        let start = debugger.configure(&program.start(adapter, number, false)).await.unwrap();
        let mut waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
        if let Waited::Stopped(stop) = &waited {
            assert_ne!(number, "9", "{stop:?}");
            let resumed =
                debugger.resume(Some(&stop.session), stop.thread_id, Resume::Continue, wait_for(PATIENCE));
            waited = resumed.await.unwrap();
        }
        let Waited::Completed(end) = waited else { panic!("{waited:?}") };
        assert_eq!((end.note.as_deref().unwrap_or_default(), end.exit_code), expected, "{number}: {end:?}");
    }
}

#[tokio::test]
async fn what_ended_a_program_is_told_under_gdb() {
    what_ended_a_program_is_told("gdb").await;
}

#[tokio::test]
async fn what_ended_a_program_is_told_under_lldb_dap() {
    what_ended_a_program_is_told("lldb-dap").await;
}

#[tokio::test]
async fn what_ended_a_program_is_told_under_codelldb() {
    what_ended_a_program_is_told("codelldb").await;
}

const SIGNALED_GO: &str = r#"package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGUSR1)
	number, _ := strconv.Atoi(os.Args[1])
	syscall.Kill(os.Getpid(), syscall.Signal(number))
	<-heard
	os.Exit(3)
}
"#;

#[tokio::test]
async fn what_ended_a_program_is_told_under_delve() {
    let program = Program::built("program.go", SIGNALED_GO, "<-heard");
    for (number, expected) in [
        ("9", ("the program was ended by SIGKILL", None)),
        ("15", ("the program was ended by SIGTERM", None)),
        // It handles this one.
        ("10", ("", Some(3))),
    ] {
        let debugger = debugger(&program);
        let start = debugger.configure(&program.start("delve", number, false)).await.unwrap();
        let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
        let Waited::Completed(end) = waited else { panic!("{waited:?}") };
        assert_eq!((end.note.as_deref().unwrap_or_default(), end.exit_code), expected, "{number}: {end:?}");
    }
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
    let start = debugger.configure(&program.start(adapter, "flood", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
    // What does not fit into codelldb's queue, it throws away: any of it, and the end.
    let n_least = if adapter == "codelldb" { 200_000 } else { 2_000_000 };
    assert!(adapter == "codelldb" || completed.output.text.contains("done"), "{:?}", completed.output.text);
    assert!(completed.output.text.len() <= 4096);
    assert!(completed.output.omitted_bytes > n_least, "{}", completed.output.omitted_bytes);
    assert_eq!(completed.exit_code.filter(|_| adapter == "codelldb").unwrap_or(0), 0);
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
    let start = debugger.configure(&program.start(adapter, "read", true)).await.unwrap();
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
    bash_dap: "bash-dap", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output a_program_that_reads;
    java: "java", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output;
    debugpy: "debugpy", an_endless_program the_death_of_the_adapter the_death_of_the_program the_end_of_the_engine a_flood_of_output a_program_that_reads;
}
