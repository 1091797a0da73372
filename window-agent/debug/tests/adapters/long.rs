//! Expressions that take long, for ever or that end the program: whoever asked is told, and the program is still at the
//! same place.

use std::time::Duration;

use baton_agent_debug::Debugger;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::{Evaluate, Evaluated, Phase, Resume, StopEvent, Waited};

use crate::programs::{BOUND, Program, debugger, wait_for};
use crate::quirks::{printed, start_to_stop, step_to_next_line};

const C: &str = r#"#include <unistd.h>
int spin(int n) { while (n-- > 0) usleep(10000); return 7; }
int crash(long place) { return *(int *)place; }
int main(void) {
  int turns = 1;
  turns++;
  turns++;
  return turns + spin(0);
}
"#;
const PYTHON: &str = r#"import threading, time
lock = threading.Lock()
def spin(n):
    for _ in range(n): time.sleep(0.01)
    return 7
turns = 1
turns += 1
turns += 1
"#;
const JAVASCRIPT: &str = r#"const clock = new Int32Array(new SharedArrayBuffer(4));
function spin(n) { while (n-- > 0) Atomics.wait(clock, 0, 0, 10); return 7; }
let turns = 1;
turns++;
console.log(turns, spin(0));
"#;
const GO: &str = r#"package main

import (
	"fmt"
	"time"
)

func spin(n int) int {
	time.Sleep(time.Duration(n) * 10 * time.Millisecond)
	return 7
}

func main() {
	turns := 1
	turns++
	fmt.Println(turns, spin(0))
}
"#;
const JAVA: &str = r#"public class Program {
  static int spin(int n) throws Exception {
    Thread.sleep(n * 10);
    return 7;
  }
  public static void main(String[] args) throws Exception {
    int turns = 1;
    turns++;
    System.out.println(turns + spin(0));
  }
}
"#;

/// What their classes say of them takes long; what else hears Ctrl+C must not hear of its end.
const TEXTS: &str = r#"import asyncio, signal, time
class Slow:
    def __repr__(self): time.sleep(1000)
class Busy:
    def __repr__(self):
        while True: pass
class Fine:
    def __repr__(self): return "Fine!"
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: print("interrupted"))
    slow, busy, fine, turns = [Slow(), 2], Busy(), Fine(), 1
    turns += 1
    turns += 1
    await asyncio.sleep(0.1)
    print(turns)
asyncio.run(main())
"#;

const LIMIT: Duration = Duration::from_secs(1);
/// In hundredths of a second.
const FOR_EVER: &str = "spin(1000000)";
const LONGER: &str = "spin(400)";

fn program(adapter: &str) -> Program {
    match adapter {
        "debugpy" => Program::built("program.py", PYTHON, "turns += 1"),
        "js-debug" => Program::built("program.js", JAVASCRIPT, "turns++;"),
        "delve" => Program::built("program.go", GO, "turns++"),
        "java" => Program::built("Program.java", JAVA, "turns++;"),
        _ => Program::built("program.c", C, "turns++;"),
    }
}

async fn evaluate(debugger: &Debugger, stop: &StopEvent, expression: &str) -> Result<Evaluated, DebugError> {
    let frame_id = stop.call_stack[0].frame_id;
    let wish = Evaluate { expression: expression.to_owned(), frame_id, context: None };
    debugger.evaluate_within(wish, Some(LIMIT)).await
}

async fn is_at_the_same_place(debugger: &Debugger, stop: &StopEvent) {
    for (expression, expected) in [("turns", "1"), ("spin(1)", "7")] {
        let value = evaluate(debugger, stop, expression).await.map(|evaluated| evaluated.result);
        assert_eq!((expression, value), (expression, Ok(expected.to_owned())));
    }
    step_to_next_line(debugger, stop).await;
}

/// The ones that can be interrupted.
async fn is_interrupted(adapter: &str, expressions: &[&str]) {
    let program = program(adapter);
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    for expression in expressions {
        let ended = evaluate(&debugger, &stop, expression).await;
        assert_eq!(ended.map(drop), Err(DebugError::Interrupted { seconds: 1 }), "{expression}");
    }
    is_at_the_same_place(&debugger, &stop).await;
    assert_eq!(printed(&debugger, &stop.session).await, "", "no advice about settings of the debugger");
    debugger.stop_all().await;
}

#[tokio::test]
async fn an_expression_that_takes_too_long_is_interrupted_under_debugpy() {
    let deadlock = "lock.acquire() and lock.acquire()";
    is_interrupted("debugpy", &[FOR_EVER, deadlock, "sum(1 for _ in iter(int, 1))"]).await;
}

#[tokio::test]
async fn an_expression_that_takes_too_long_is_interrupted_under_gdb() {
    is_interrupted("gdb", &[FOR_EVER, FOR_EVER]).await;
}

#[tokio::test]
async fn an_expression_that_takes_too_long_is_interrupted_under_js_debug() {
    is_interrupted("js-debug", &["for (;;);", FOR_EVER, "Atomics.wait(clock, 0, 0)"]).await;
}

/// Nobody waits for it any more.
async fn is_interrupted_for_the_next(adapter: &str) {
    let program = program(adapter);
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    let given_up = tokio::time::timeout(LIMIT / 4, evaluate(&debugger, &stop, FOR_EVER)).await;
    given_up.expect_err("the caller goes");
    until_free(&debugger, &stop, FOR_EVER).await;
    is_at_the_same_place(&debugger, &stop).await;
    debugger.stop_all().await;
}

#[tokio::test]
async fn an_expression_whose_caller_went_is_interrupted_under_debugpy() {
    is_interrupted_for_the_next("debugpy").await;
}

#[tokio::test]
async fn an_expression_whose_caller_went_is_interrupted_under_gdb() {
    is_interrupted_for_the_next("gdb").await;
}

async fn until_free(debugger: &Debugger, stop: &StopEvent, late: &str) {
    let busy = DebugError::Evaluating { expression: late.to_owned() };
    let is_over = async {
        while evaluate(debugger, stop, "turns").await.map(drop) == Err(busy.clone()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(BOUND, is_over).await.expect("it ends");
}

/// The ones that cannot: until it ends nothing else is asked, and the caller hears why.
async fn is_waited_for(adapter: &str) {
    let program = program(adapter);
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    let late = evaluate(&debugger, &stop, LONGER).await;
    assert_eq!(late.map(drop), Err(DebugError::NoAnswer { command: "evaluate".to_owned(), seconds: 1 }));
    let busy = DebugError::Evaluating { expression: LONGER.to_owned() };
    assert_eq!(evaluate(&debugger, &stop, "turns").await.map(drop), Err(busy.clone()));
    assert_eq!(debugger.scopes(stop.call_stack[0].frame_id).await.map(drop), Err(busy.clone()));
    let session = Some(&stop.session);
    for how in [Resume::StepOver, Resume::Continue] {
        let moved = debugger.resume(session, stop.thread_id, how, wait_for(BOUND)).await;
        assert_eq!(moved.map(drop), Err(busy.clone()), "{how:?}");
    }
    let paused = debugger.pause(session, None, wait_for(BOUND)).await;
    assert_eq!(paused.map(drop), Err(busy.clone()));
    until_free(&debugger, &stop, LONGER).await;
    is_at_the_same_place(&debugger, &stop).await;
    debugger.stop_all().await;
}

#[tokio::test]
async fn an_expression_that_takes_long_is_waited_for_under_delve() {
    is_waited_for("delve").await;
}

#[tokio::test]
async fn an_expression_that_takes_long_is_waited_for_under_java() {
    is_waited_for("java").await;
}

async fn fails(adapter: &str, expression: &str, expected: &str) {
    let program = program(adapter);
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    let failed = evaluate(&debugger, &stop, expression).await;
    assert_eq!(failed.map(drop), Err(DebugError::EvaluationFailed { message: expected.to_owned() }));
    is_at_the_same_place(&debugger, &stop).await;
    assert_eq!(printed(&debugger, &stop.session).await, "");
    debugger.stop_all().await;
}

#[tokio::test]
async fn an_expression_that_ends_the_interpreter_fails() {
    fails("debugpy", "exit(3)", "SystemExit: 3").await;
    fails("debugpy", "raise SystemExit(4)", "SystemExit: 4").await;
}

#[tokio::test]
async fn an_expression_that_ends_the_program_is_told() {
    // Which of them is a matter of what an adapter tells first.
    let told = [
        "The program ended while the expression was evaluated.",
        "The debugger refused the expression without a reason; the program may have ended.",
        "the session has ended",
    ];
    for (adapter, expression) in [
        ("debugpy", "__import__('os')._exit(3)"),
        ("js-debug", "process.exit(3)"),
        ("gdb", "(void)_exit(3)"),
        ("lldb-dap", "(void)_exit(3)"),
        ("codelldb", "(void)_exit(3)"),
    ] {
        let program = program(adapter);
        let debugger = debugger(&program);
        let stop = start_to_stop(&debugger, &program, adapter).await;
        let Err(DebugError::EvaluationFailed { message }) = evaluate(&debugger, &stop, expression).await
        else {
            panic!("{adapter}: it has a value");
        };
        assert!(told.contains(&message.as_str()), "{adapter}: {message}");
        let is_over = async {
            while debugger.status(Some(&stop.session)).await.unwrap().phase != Phase::Terminated {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(BOUND, is_over).await.expect("it ends");
        assert_eq!(debugger.status(Some(&stop.session)).await.unwrap().exit_code, Some(3), "{adapter}");
        debugger.stop_all().await;
    }
}

#[tokio::test]
async fn an_expression_that_is_broken_off_says_so() {
    for (adapter, expression) in [("debugpy", FOR_EVER), ("js-debug", FOR_EVER), ("gdb", FOR_EVER)] {
        let program = program(adapter);
        let debugger = debugger(&program);
        let stop = start_to_stop(&debugger, &program, adapter).await;
        let (value, stopped) =
            tokio::join!(evaluate(&debugger, &stop, expression), debugger.stop(Some(&stop.session)));
        assert_eq!(stopped.as_ref(), Ok(&stop.session), "{adapter}");
        let over = DebugError::EvaluationFailed { message: "the session has ended".to_owned() };
        assert_eq!(value.map(drop), Err(over), "{adapter}");
        debugger.stop_all().await;
    }
}

#[tokio::test]
async fn what_lldb_does_not_wait_for_is_told() {
    let expected = "A function that the expression calls took longer than lldb waits, half a second, and was abandoned; the \
        program is still at the same place.";
    fails("lldb-dap", "spin(100)", expected).await;
    fails("codelldb", "spin(100)", expected).await;
}

#[tokio::test]
async fn a_function_that_crashes_in_an_expression_is_abandoned() {
    let expected = "A function that the expression calls received SIGSEGV and was abandoned; the program is still at the \
        same place.";
    for adapter in ["gdb", "lldb-dap", "codelldb"] {
        fails(adapter, "crash(16)", expected).await;
    }
}

#[tokio::test]
async fn a_text_that_takes_long_costs_nobody_else_anything_under_debugpy() {
    let program = Program::built("program.py", TEXTS, "turns += 1");
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "debugpy").await;
    let variables = &stop.top_frame_variables.as_ref().expect("the variables are told").variables;
    let value = |name| variables.iter().find(|known| known.name == name).map(|known| known.value.as_str());
    assert_eq!(value("slow"), Some("[<Slow: its __repr__ takes longer than 1 s>, 2]"), "{variables:#?}");
    assert_eq!(value("busy"), Some("<Busy: its __repr__ takes longer than 1 s>"));
    assert_eq!((value("fine"), value("turns")), (Some("Fine!"), Some("1")));
    let ended = evaluate(&debugger, &stop, "time.sleep(1000)").await;
    assert_eq!(ended.map(drop), Err(DebugError::Interrupted { seconds: 1 }));
    // Nothing of it was asked once more, or stopped once more.
    step_to_next_line(&debugger, &stop).await;
    let ended = debugger.resume(Some(&stop.session), stop.thread_id, Resume::Continue, wait_for(BOUND)).await;
    let Ok(Waited::Completed(end)) = ended else { panic!("{ended:?}") };
    assert_eq!((end.exit_code, end.output.text.as_str()), (Some(0), "3\n"));
    debugger.stop_all().await;
}
