//! Programs with eight threads: all are listed, and what is said of each is how it is.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_agent_debug::Debugger;
use baton_agent_debug::types::{Evaluate, RemoveBreakpoint, Resume, SetBreakpoint, StopEvent, Waited};

use crate::programs::{PATIENCE, Program, debugger, until_gone, wait_for};
use crate::quirks::{at, start_to_stop};

/// Threads of the program besides its first one.
const N_THREADS: usize = 8;
/// How long counters are watched.
const WATCHED: Duration = Duration::from_millis(60);

const C: &str = r#"#include <pthread.h>
#include <unistd.h>
volatile long turns[8];
pthread_barrier_t all;
void *work(void *given) {
  long own = (long)given;
  pthread_barrier_wait(&all);
  while (1) {
    turns[own]++;
    usleep(1000);
  }
}
int main(void) {
  pthread_t threads[8];
  pthread_barrier_init(&all, 0, 9);
  for (long n = 0; n < 8; n++) pthread_create(&threads[n], 0, work, (void *)n);
  pthread_barrier_wait(&all);
  pthread_join(threads[0], 0);
}
"#;
const PYTHON: &str = r#"import threading, time
turns = [0] * 8
all_there = threading.Barrier(9)
def work(own):
    all_there.wait()
    while True:
        turns[own] += 1
        time.sleep(0.001)
for n in range(8):
    threading.Thread(target=work, args=(n,), name=f"worker {n}").start()
all_there.wait()
while True:
    time.sleep(1)
"#;

/// What the threads have counted, by their numbers.
async fn counters(debugger: &Debugger, frame_id: i64) -> BTreeMap<usize, String> {
    let mut all = BTreeMap::new();
    for own in 0..N_THREADS {
        let evaluate = Evaluate { expression: format!("turns[{own}]"), frame_id, context: None };
        all.insert(own, debugger.evaluate(evaluate).await.unwrap().result);
    }
    all
}

/// Looks at a stop: every thread is listed, and those that are said to be stopped do not count.
async fn look(debugger: &Debugger, stop: &StopEvent) {
    let threads = debugger.threads(Some(&stop.session)).await.unwrap();
    assert!(threads.len() > N_THREADS, "{threads:?} {stop:?}");
    let own = threads.iter().find(|thread| thread.id == stop.thread_id);
    assert!(own.is_some_and(|thread| thread.is_stopped), "{threads:?}");
    let n_stopped = threads.iter().filter(|thread| thread.is_stopped).count();
    let frame_id = stop.call_stack[0].frame_id;
    let before = counters(debugger, frame_id).await;
    tokio::time::sleep(WATCHED).await;
    let after = counters(debugger, frame_id).await;
    if n_stopped == threads.len() {
        assert_eq!(before, after, "a thread that is said to be stopped goes on");
    } else {
        let n_going = before.iter().filter(|(own, count)| after[*own] != **count).count();
        assert_eq!(n_going, threads.len() - n_stopped - 1, "{threads:?} {before:?} {after:?}");
    }
}

async fn eight_threads(adapter: &str) {
    let (program, condition) = if adapter == "debugpy" {
        (Program::new("threads.py", PYTHON, "turns[own] += 1"), "own == 3 and turns[3] > 5")
    } else {
        (Program::compiled(C, "turns[own]++;", &["-pthread"]), "own == 3 && turns[3] > 5")
    };
    let debugger = debugger(&program);
    let wish = SetBreakpoint {
        path: program.source.clone(),
        line: program.line,
        condition: Some(condition.to_owned()),
        ..SetBreakpoint::default()
    };
    debugger.set_breakpoint(wish.clone()).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    look(&debugger, &stop).await;
    assert_eq!(stop.output.text, "", "the program printed nothing, and the condition is understood");
    if adapter != "codelldb" {
        // It can name another thread that came there at the same time.
        let frame_id = stop.call_stack[0].frame_id;
        let own = Evaluate { expression: "own".to_owned(), frame_id, context: None };
        assert_eq!(debugger.evaluate(own).await.unwrap().result, "3", "the condition holds");
    }
    let session = stop.session.clone();
    if !matches!(adapter, "gdb" | "debugpy") {
        // LLDB ends the step when another thread comes to the line, whatever the condition says there.
        debugger.stop_all().await;
        return until_gone(&program, &session).await;
    }
    // The step stays in its thread; the others are as it is said of them.
    let waited = debugger.resume(Some(&session), stop.thread_id, Resume::StepOver, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stepped)) = waited else { panic!("{waited:?}") };
    assert_eq!((stepped.thread_id, stepped.reason.as_str()), (stop.thread_id, "step"));
    assert_eq!(stepped.line, Some(i64::from(program.line) + 1));
    look(&debugger, &stepped).await;
    if adapter == "debugpy" {
        // Threads that are in the middle of a function do not always hear of a breakpoint that is set in it.
        debugger.stop_all().await;
        return until_gone(&program, &session).await;
    }
    // Another thread that runs into a breakpoint is told as that one.
    debugger.remove_breakpoint(RemoveBreakpoint::All).await.unwrap();
    let wish = SetBreakpoint { condition: Some(condition.replace('3', "5")), ..wish };
    let other = debugger.set_breakpoint(wish).await.unwrap();
    let waited =
        debugger.resume(Some(&session), stepped.thread_id, Resume::Continue, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    assert_eq!((stop.reason.as_str(), stop.hit_breakpoint_ids.clone()), ("breakpoint", Some(vec![other.id])));
    assert_ne!(stop.thread_id, stepped.thread_id);
    look(&debugger, &stop).await;
    debugger.stop_all().await;
    until_gone(&program, &session).await;
}

/// delve takes one step at a time: who steps beside one that was interrupted hears what to do.
#[tokio::test]
async fn a_step_beside_an_interrupted_one_is_refused_in_words() {
    const GO: &str = "package main

func work(done chan int) {
	n := 1
	n++
	done <- n
}

func main() {
	done := make(chan int)
	go work(done); <-done
	println(\"end\")
}
";
    let program = Program { line: 11, ..Program::of("delve") };
    std::fs::write(&program.source, GO).unwrap();
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "delve").await;
    let inside = debugger.set_breakpoint(at(&program.source, 4)).await.unwrap();
    let go_on = async |thread_id: i64, how: Resume| {
        let waited = debugger.resume(Some(&stop.session), thread_id, how, wait_for(PATIENCE)).await;
        let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
        stop
    };
    let other = go_on(stop.thread_id, Resume::StepOver).await;
    assert_eq!((other.line, &other.hit_breakpoint_ids), (Some(4), &Some(vec![inside.id])));
    assert_ne!(other.thread_id, stop.thread_id);
    let refused = go_on(other.thread_id, Resume::StepOver).await;
    assert_eq!(
        (refused.line, refused.thread_id, refused.reason.as_str()),
        (Some(4), other.thread_id, "refused")
    );
    assert!(refused.text.is_some_and(|text| text.starts_with("Not stepped: a breakpoint interrupted")));
    assert_eq!(refused.call_stack[0].function_name, "main.work", "it can be looked at as before");
    let stepped = go_on(other.thread_id, Resume::Continue).await;
    assert_eq!(
        (stepped.line, stepped.thread_id, stepped.reason.as_str()),
        (Some(12), stop.thread_id, "step")
    );
    debugger.stop_all().await;
}

/// A test for each adapter.
macro_rules! threads {
    ($($module:ident: $adapter:literal;)*) => {
        $(#[tokio::test]
        async fn $module() {
            eight_threads($adapter).await;
        })*
    };
}

threads! {
    debugpy: "debugpy";
    gdb: "gdb";
    lldb_dap: "lldb-dap";
    codelldb: "codelldb";
}
