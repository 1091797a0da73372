//! What differs between adapters and must not be told differently: docs/debugging.md has a table of the differences,
//! each with the tests that show it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_agent_debug::Debugger;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{OutputWish, Request, Stdin};
use baton_agent_debug::types::{
    Breakpoint, Evaluate, Phase, RemoveBreakpoint, Resume, SessionId, SetBreakpoint, Start, StopEvent, Waited,
};
use serde_json::{Value, json};

use crate::faults::go_on;
use crate::languages::workspace_root;
use crate::programs::{BOUND, PATIENCE, Program, debugger, processes_with, until_gone, wait_for};

pub(crate) fn at(path: &Path, line: u32) -> SetBreakpoint {
    SetBreakpoint { path: path.to_owned(), line, ..SetBreakpoint::default() }
}

/// Starts a program with a breakpoint in its loop, and waits until it stops there.
pub(crate) async fn start_to_stop(debugger: &Debugger, program: &Program, adapter: &str) -> StopEvent {
    debugger.set_breakpoint(at(&program.source, program.line)).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
    match debugger.start(start, wait_for(PATIENCE)).await {
        Ok(Waited::Stopped(stop)) => *stop,
        other => panic!("{other:?}"),
    }
}

/// The program goes on as if nothing had been asked of it.
pub(crate) async fn step_to_next_line(debugger: &Debugger, stop: &StopEvent) {
    let waited =
        debugger.resume(Some(&stop.session), stop.thread_id, Resume::StepOver, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(next)) = waited else { panic!("{waited:?}") };
    assert_eq!(next.line, stop.line.map(|line| line + 1), "{next:#?}");
}

/// Everything that was printed.
pub(crate) async fn printed(debugger: &Debugger, session: &SessionId) -> String {
    let all = OutputWish {
        session: Some(session.clone()),
        since: Some(0),
        categories: Vec::new(),
        max_bytes: usize::MAX,
    };
    let page = debugger.output(all).await.unwrap();
    page.entries.iter().map(|entry| entry.text.as_str()).collect()
}

/// The real cause is told, wherever the adapter says it: in the answer to the launch, in that to the end of the
/// configuration, in what is printed.
async fn a_start_that_fails_tells_why(adapter: &str) {
    let (program, sign) = Program::broken(adapter);
    let debugger = debugger(&program);
    let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let text = match &waited {
        Err(error @ (DebugError::StartFailed { .. } | DebugError::BadConfiguration { .. })) => {
            error.to_string()
        }
        Ok(Waited::Completed(completed)) => printed(&debugger, &completed.session).await,
        // For JavaScript a program that does not parse is an exception of the loader.
        Ok(Waited::Stopped(stop)) => {
            debugger.stop_all().await;
            stop.text.clone().unwrap_or_default()
        }
        other => panic!("{other:?}"),
    };
    assert!(text.contains(sign), "{text}");
    let needle = program.needle();
    let gone = async {
        while !processes_with(&needle, "cmdline").is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, gone).await.is_ok(), "{:?}", processes_with(&needle, "cmdline"));
    assert_eq!(debugger.sessions(), []);
}

/// A breakpoint stops where it is said to be, or is told as never hit; it is never just somewhere else.
async fn a_breakpoint_without_code_is_told(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let other = program
        .source
        .with_file_name(format!("other.{}", program.source.extension().unwrap().to_string_lossy()));
    std::fs::write(&other, "\n\n\n").unwrap();
    let comment = debugger.set_breakpoint(at(&program.source, program.comment)).await.unwrap().id;
    let elsewhere = debugger.set_breakpoint(at(&other, 2)).await.unwrap().id;
    let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
    let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
    let mut n_stops = 0;
    while let Ok(Waited::Stopped(stop)) = &waited {
        n_stops += 1;
        assert!(n_stops < 4, "{stop:?}");
        assert_eq!(stop.hit_breakpoint_ids.as_deref(), Some([comment].as_slice()), "{stop:?}");
        let all = debugger.breakpoints().await;
        let hit: &Breakpoint = all.iter().find(|breakpoint| breakpoint.id == comment).unwrap();
        let line = hit.actual_line.unwrap_or(hit.line);
        assert_eq!(stop.line, Some(i64::from(line)), "{hit:?}");
        if line != hit.line {
            let told = hit.message.as_deref().unwrap_or_default();
            assert!(told.contains(&line.to_string()), "it moved, and that is told: {hit:?}");
        }
        let (session, thread_id) = (stop.session.clone(), stop.thread_id);
        waited = debugger.resume(Some(&session), thread_id, Resume::Continue, wait_for(PATIENCE)).await;
    }
    let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
    let missed: Vec<i64> = completed.never_hit.iter().map(|breakpoint| breakpoint.id).collect();
    let expected = if n_stops == 0 { vec![comment, elsewhere] } else { vec![elsewhere] };
    assert_eq!(missed, expected, "{completed:?}");
    assert!(completed.never_hit.iter().all(|breakpoint| breakpoint.message.is_some()), "{completed:?}");
    assert_eq!(
        printed(&debugger, &completed.session).await,
        "done\n",
        "the debugger's own words are no output"
    );
}

/// Setting what is set already takes nothing away, and removing everything does.
async fn setting_again_changes_nothing_and_removing_all_removes_all(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    let again = debugger.set_breakpoint(at(&program.source, program.line)).await.unwrap();
    assert!(again.verified, "{again:?}");
    let session = Some(&stop.session);
    let waited = debugger.resume(session, stop.thread_id, Resume::Continue, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    assert_eq!(stop.hit_breakpoint_ids, Some(vec![again.id]));
    debugger.remove_breakpoint(RemoveBreakpoint::All).await.unwrap();
    assert_eq!(debugger.breakpoints().await, []);
    go_on(&debugger, &stop.session).await;
    let status = debugger.status(Some(&stop.session)).await.unwrap();
    assert_eq!((status.phase, status.last_stop.is_none()), (Phase::Running, true), "no stop is left in it");
    debugger.stop_all().await;
    until_gone(&program, &stop.session).await;
}

/// Some adapters answer about a moment long gone, others never.
async fn a_running_program_tells_nothing_old(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    debugger.remove_breakpoint(RemoveBreakpoint::All).await.unwrap();
    let session = Some(&stop.session);
    go_on(&debugger, &stop.session).await;
    let begun = std::time::Instant::now();
    let frame_id = stop.call_stack[0].frame_id;
    let stack = debugger.stack_trace(session, Some(stop.thread_id), 0, 5).await;
    match &stack {
        // It tells where the thread is now, and no ids to ask with.
        Ok(stack) if adapter == "debugpy" => {
            assert!(stack.is_running && stack.frames.iter().all(|frame| frame.frame_id == 0), "{stack:?}");
            assert!(stack.frames[0].line_number >= i64::from(program.line) - 1, "{stack:?}");
        }
        stack => assert!(matches!(stack, Err(DebugError::NotStopped { .. })), "{stack:?}"),
    }
    let scopes = debugger.scopes(frame_id).await;
    assert!(matches!(scopes, Err(DebugError::StaleFrame { .. })), "{scopes:?}");
    let evaluate = Evaluate { expression: "turns".to_owned(), frame_id, context: None };
    let value = debugger.evaluate(evaluate).await;
    assert!(matches!(value, Err(DebugError::StaleFrame { .. })), "{value:?}");
    let stepped = debugger.resume(session, stop.thread_id, Resume::StepOver, wait_for(BOUND)).await;
    assert!(matches!(stepped, Err(DebugError::NotStopped { .. })), "{stepped:?}");
    assert!(begun.elapsed() < BOUND);
    // gdb answers nothing about threads while they run.
    if let Ok(threads) = tokio::time::timeout(BOUND, debugger.threads(session)).await {
        assert!(threads.iter().flatten().all(|thread| !thread.is_stopped), "{threads:?}");
    }
    let status = debugger.status(session).await.unwrap();
    assert_eq!((status.phase, status.last_stop.is_none()), (Phase::Running, true));
    debugger.stop_all().await;
    until_gone(&program, &stop.session).await;
}

/// Debuggers are talkative, and their words are not the program's.
async fn nothing_is_printed_but_the_programs_words(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
    assert_eq!(completed.output.text, "done\n");
    assert_eq!(printed(&debugger, &completed.session).await, "done\n");
    assert!(matches!(completed.exit_code, Some(0) | None), "{completed:?}");
}

/// What is set is seen by the program, wherever the adapter keeps the variable.
async fn a_variable_is_set(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    let frame_id = stop.call_stack[0].frame_id;
    let holds =
        |page: &[baton_agent_debug::types::Variable]| page.iter().any(|variable| variable.name == "turns");
    let mut reference = None;
    for scope in debugger.scopes(frame_id).await.unwrap() {
        let page = debugger.variables(scope.variables_reference, Default::default()).await.unwrap();
        if holds(&page.variables) {
            reference = Some(scope.variables_reference);
            break;
        }
    }
    let arguments = json!({"variablesReference": reference.unwrap(), "name": "turns", "value": "4200"});
    let Value::Object(arguments) = arguments else { unreachable!() };
    let request = Request {
        session: Some(stop.session.clone()),
        command: "setVariable".to_owned(),
        arguments,
        gate: Some(baton_agent_debug::types::control::gates::SET_VARIABLE),
        timeout: None,
    };
    debugger.request(request).await.unwrap();
    let evaluate = |expression: &str, frame_id| {
        debugger.evaluate(Evaluate { expression: expression.to_owned(), frame_id, context: None })
    };
    assert_eq!(evaluate("turns", frame_id).await.unwrap().result, "4200");
    evaluate("turns = 4300", frame_id).await.unwrap();
    assert_eq!(evaluate("turns", frame_id).await.unwrap().result, "4300", "by an expression");
    let session = Some(&stop.session);
    let waited = debugger.resume(session, stop.thread_id, Resume::Continue, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    let now = evaluate("turns", stop.call_stack[0].frame_id).await.unwrap().result;
    assert_eq!(now, "4301", "the program goes on from there");
    debugger.stop_all().await;
    until_gone(&program, &stop.session).await;
}

/// Two programs in one engine do not disturb each other.
async fn two_sessions_are_told_apart(adapter: &str) {
    let (one, two) = (Program::of(adapter), Program::of(adapter));
    let debugger = debugger(&one);
    let first = start_to_stop(&debugger, &one, adapter).await;
    let second = start_to_stop(&debugger, &two, adapter).await;
    assert_ne!(first.session, second.session);
    let step = |stop: StopEvent| {
        let debugger = debugger.clone();
        async move {
            let waited = debugger
                .resume(Some(&stop.session), stop.thread_id, Resume::StepOver, wait_for(PATIENCE))
                .await;
            let Ok(Waited::Stopped(next)) = waited else { panic!("{waited:?}") };
            assert_eq!(next.session, stop.session);
            next
        }
    };
    let (a, b) = tokio::join!(step(first.clone()), step(second.clone()));
    let source = |stop: &StopEvent| PathBuf::from(&stop.source.as_ref().unwrap().path);
    assert_eq!((source(&a), source(&b)), (one.source.clone(), two.source.clone()));
    debugger.stop(Some(&first.session)).await.unwrap();
    until_gone(&one, &first.session).await;
    let ended = debugger.resume(Some(&first.session), 1, Resume::Continue, wait_for(BOUND)).await;
    assert!(matches!(ended, Err(DebugError::SessionEnded { .. })), "{ended:?}");
    step(*b).await;
    debugger.stop_all().await;
    until_gone(&two, &second.session).await;
}

/// js-debug starts each process of a program as a session of its own, and those can have more.
#[tokio::test]
async fn a_child_of_a_child_stops_at_its_breakpoint() {
    const TEXT: &str = r#"const depth = Number(process.argv[2]);
if (depth > 0) require("child_process").fork(__filename, [String(depth - 1)]);
else {
  console.log("deep");
}
"#;
    let program = Program::new("family.js", TEXT, r#"console.log("deep");"#);
    let debugger = debugger(&program);
    debugger.set_breakpoint(at(&program.source, program.line)).await.unwrap();
    let start = debugger.configure(&program.start("js-debug", "2", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    assert_eq!(stop.line, Some(i64::from(program.line)));
    let sessions = debugger.sessions();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
    let parent = |id: &SessionId| sessions.iter().find(|known| known.id == *id).unwrap().parent.clone();
    let middle = parent(&stop.session).unwrap();
    assert!(parent(&middle).is_some(), "{sessions:?}");
    debugger.stop(Some(&stop.session)).await.unwrap();
    until_gone(&program, &stop.session).await;
    assert_eq!(debugger.sessions(), []);
}

/// js-debug's own words are the middle of its stack.
#[tokio::test]
async fn a_start_of_javascript_that_fails_tells_its_reason() {
    let program = Program::new("never.js", "", "");
    let debugger = debugger(&program);
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let attach = json!({"type": "node", "request": "attach", "port": free, "address": "127.0.0.1"});
    let launch =
        json!({"type": "node", "request": "launch", "program": program.path, "runtimeExecutable": "nodez"});
    for (configuration, reason) in [(attach, "nothing to attach to at 127.0.0.1"), (launch, "nodez")] {
        let Value::Object(configuration) = configuration else { unreachable!() };
        let start = Start { configuration, name: "js".to_owned(), ..Start::default() };
        let error = debugger.start(start, wait_for(BOUND)).await.unwrap_err().to_string();
        assert!(error.contains(reason) && !error.contains("at async"), "{error}");
        assert!(error.len() < 400, "{error}");
    }
}

/// An adapter tells the end of a program before it has read what the program printed last: on a busy machine, often.
#[tokio::test]
async fn the_last_words_of_javascript_are_told_with_its_end() {
    const TEXT: &str = r#"for (let n = 0; n < 300; n++) console.log(`line ${n}`);
console.log("the end");
"#;
    let is_over = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || while !is_over.load(Ordering::Relaxed) {})
        })
        .collect();
    let runs = (0..4).map(async |_| {
        let program = Program::new("talks.js", TEXT, "");
        let debugger = debugger(&program);
        let start = debugger.configure(&program.start("js-debug", "", false)).await.unwrap();
        let waited = debugger.start(start, wait_for(PATIENCE)).await;
        let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
        let text = completed.output.text;
        (text.ends_with("the end\n"), text.matches("line").count())
    });
    let ended = futures_util::future::join_all(runs).await;
    is_over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(ended, [(true, 300); 4]);
}

/// js-debug tells the end without the code, whatever the program prints of it.
#[tokio::test]
async fn the_exit_code_of_javascript_is_told() {
    for (source, exit_code, note) in [
        ("console.log('program exited: 9');\n", Some(0), None),
        ("process.exit(3);\n", Some(3), None),
        ("throw new Error('of the shop');\n", Some(1), None),
        ("process.kill(process.pid, 'SIGKILL');\nsetTimeout(() => {}, 60000);\n", Some(247), Some("SIGKILL")),
    ] {
        let program = Program::new("program.js", source, "");
        let debugger = debugger(&program);
        let start = debugger.configure(&program.start("js-debug", "", false)).await.unwrap();
        let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
        if let Ok(Waited::Stopped(stop)) = &waited {
            let (session, thread_id) = (stop.session.clone(), stop.thread_id);
            waited = debugger.resume(Some(&session), thread_id, Resume::Continue, wait_for(PATIENCE)).await;
        }
        let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
        assert_eq!(completed.exit_code, exit_code, "{source}: {completed:?}");
        let told = completed.note.clone().unwrap_or_default();
        assert!(note.map_or(told.is_empty(), |note| told.contains(note)), "{source}: {completed:?}");
        assert_eq!(
            completed.output.text.matches("program exited: ").count(),
            source.matches("program exited: ").count()
        );
    }
}

/// js-debug takes the first of condition, log message and hit condition, and forgets the others.
#[tokio::test]
async fn all_of_a_breakpoint_counts_in_javascript() {
    const SOURCE: &str = "for (let i = 0; i < 10; i++) {\n  const even = i % 2 === 0;\n  const n = { i };\n  void n;\n}\nconsole.log(\"end\");\n";
    let program = Program::new("program.js", SOURCE, "");
    let debugger = debugger(&program);
    let text = |text: &str| Some(text.to_owned());
    let logged = SetBreakpoint {
        condition: text("even"),
        hit_condition: text(">= 3"),
        log_message: text("even: {i} in {({ i })}, {nobody}, 100%"),
        ..at(&program.source, 3)
    };
    let counted = SetBreakpoint {
        condition: text("even // of all"),
        hit_condition: text("% 2"),
        ..at(&program.source, 4)
    };
    debugger.set_breakpoint(logged).await.unwrap();
    debugger.set_breakpoint(counted).await.unwrap();
    let start = debugger.configure(&program.start("js-debug", "", false)).await.unwrap();
    let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
    let mut stops = Vec::new();
    while let Ok(Waited::Stopped(stop)) = &waited {
        let frame_id = stop.call_stack[0].frame_id;
        let wish = Evaluate { expression: "i".to_owned(), frame_id, context: None };
        stops.push((stop.line, debugger.evaluate(wish).await.unwrap().result));
        let (session, thread) = (stop.session.clone(), stop.thread_id);
        waited = debugger.resume(Some(&session), thread, Resume::Continue, wait_for(PATIENCE)).await;
    }
    assert_eq!(stops, [(Some(4), "2".to_owned()), (Some(4), "6".to_owned())], "{waited:?}");
    let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
    let all = printed(&debugger, &completed.session).await;
    let lines: Vec<&str> = all.lines().filter(|line| line.starts_with("even")).collect();
    let line = |i: u32| format!("even: {i} in {{ i: {i} }}, 'ReferenceError: nobody is not defined', 100%");
    assert_eq!(lines, [line(4), line(6), line(8)], "{all}");
}

/// What a step ends at was reached, whether the adapter calls that a step or a breakpoint.
#[tokio::test]
async fn a_breakpoint_that_a_step_ends_at_is_not_told_as_never_hit() {
    const C: &str = "#include <stdio.h>\nint main(void) {\n  int n = 1;\n  n = n + 1;\n  return n - 2;\n}\n";
    const PYTHON: &str = "def run():\n    n = 1\n    n = n + 1\n    return n\nrun()\n";
    const GO: &str = "package main\n\nfunc main() {\n\tn := 1\n\tn = n + 1\n\tprintln(n)\n}\n";
    let go = Program::of("delve");
    std::fs::write(&go.source, GO).unwrap();
    for (adapter, program, line) in [
        ("delve", &go, 4),
        ("debugpy", &Program::new("program.py", PYTHON, ""), 2),
        ("js-debug", &Program::new("program.js", "let n = 1;\nn = n + 1;\nn = n - 2;\n", ""), 1),
        ("gdb", &Program::compiled(C, "", &[]), 3),
        ("lldb-dap", &Program::compiled(C, "", &[]), 3),
    ] {
        let debugger = debugger(program);
        for line in [line, line + 1] {
            debugger.set_breakpoint(at(&program.source, line)).await.unwrap();
        }
        let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
        let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
        let mut lines = Vec::new();
        while let Ok(Waited::Stopped(stop)) = &waited {
            lines.extend(stop.line);
            let how = if lines.len() == 1 { Resume::StepOver } else { Resume::Continue };
            let (session, thread_id) = (stop.session.clone(), stop.thread_id);
            waited = debugger.resume(Some(&session), thread_id, how, wait_for(PATIENCE)).await;
        }
        // lldb stops there once more.
        lines.dedup();
        assert_eq!(lines, [i64::from(line), i64::from(line + 1)], "{adapter}: {waited:?}");
        let Ok(Waited::Completed(completed)) = waited else { panic!("{adapter}: {waited:?}") };
        assert_eq!(completed.never_hit, [], "{adapter}");
    }
}

/// Lines without code move to the next that has some, where several breakpoints can meet. codelldb tells one of them.
#[tokio::test]
async fn a_condition_at_the_place_of_another_breakpoint_is_not_told_as_never_hit() {
    const C: &str = "\
static int sell(int n) {
  if (n == n) {
    return n;
  }
  n = n + 1;
  n = n + 2;
  return n + 3;
}
int main(void) {
  return sell(1) - 1;
}
";
    for adapter in ["gdb", "lldb-dap", "codelldb"] {
        let program = Program::compiled(C, "", &[]);
        let debugger = debugger(&program);
        let conditional = SetBreakpoint { condition: Some("n > 0".to_owned()), ..at(&program.source, 6) };
        debugger.set_breakpoint(at(&program.source, 5)).await.unwrap();
        debugger.set_breakpoint(conditional).await.unwrap();
        let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
        let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
        while let Ok(Waited::Stopped(stop)) = &waited {
            assert_eq!(stop.line, Some(8), "{adapter}");
            let (session, thread_id) = (stop.session.clone(), stop.thread_id);
            waited = debugger.resume(Some(&session), thread_id, Resume::Continue, wait_for(PATIENCE)).await;
        }
        let Ok(Waited::Completed(completed)) = waited else { panic!("{adapter}: {waited:?}") };
        assert_eq!(completed.never_hit, [], "{adapter}");
    }
}

/// What node does under `console.log` starts things that go on later, and a step that follows those is lost: only what
/// the program itself starts is followed.
#[tokio::test]
async fn a_step_into_what_prints_comes_back() {
    const SOURCE: &str = "\
const { EventEmitter } = require('node:events');
const shop = new EventEmitter();
shop.on('sold', (n) => {
    shop.n = n;
});
function sell(n) {
    console.log(n);
    process.stdout.write('sold\\n');
    console.error(n);
    shop.emit('sold', n);
    setTimeout(() => {
        shop.n = 0;
    }, 1);
}
sell(1);
";
    let program = Program::new("program.js", SOURCE, "console.log(n);");
    let debugger = debugger(&program);
    debugger.set_breakpoint(at(&program.source, program.line)).await.unwrap();
    let start = debugger.configure(&program.start("js-debug", "", false)).await.unwrap();
    let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
    let mut lines = Vec::new();
    while let Ok(Waited::Stopped(stop)) = &waited
        && stop.line != Some(12)
    {
        lines.extend(stop.line);
        let (session, thread_id) = (stop.session.clone(), stop.thread_id);
        waited = debugger.resume(Some(&session), thread_id, Resume::StepInto, wait_for(PATIENCE)).await;
    }
    // On its way into a call a step can stop at parts of the line.
    lines.dedup();
    assert_eq!(lines, [7, 8, 9, 10, 4, 5, 11], "{waited:?}");
    assert!(matches!(waited, Ok(Waited::Stopped(_))), "into what is called later: {waited:?}");
    debugger.stop_all().await;
}

/// Such a line counts as reached once, or once a turn: both are true, and neither hangs.
#[tokio::test]
async fn a_loop_on_one_line_comes_to_its_end() {
    const C: &str = "#include <stdio.h>\nint main(void) {\n  long sum = 0;\n  for (int n = 0; n < 5; n++) sum += n;\n  return (int)sum;\n}\n";
    const JAVASCRIPT: &str = "let sum = 0;\nfor (let n = 0; n < 5; n++) sum += n;\nconsole.log(sum);\n";
    for (adapter, program) in [
        ("gdb", Program::compiled(C, "for (int n = 0; n < 5; n++) sum += n;", &[])),
        ("js-debug", Program::new("line.js", JAVASCRIPT, "for (let n = 0; n < 5; n++) sum += n;")),
    ] {
        let debugger = debugger(&program);
        debugger.set_breakpoint(at(&program.source, program.line)).await.unwrap();
        let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
        let mut waited = debugger.start(start, wait_for(PATIENCE)).await;
        let mut n_stops = 0;
        while let Ok(Waited::Stopped(stop)) = &waited {
            n_stops += 1;
            assert_eq!(stop.line, Some(i64::from(program.line)));
            let (session, thread_id) = (stop.session.clone(), stop.thread_id);
            waited = debugger.resume(Some(&session), thread_id, Resume::Continue, wait_for(PATIENCE)).await;
        }
        assert!(matches!(waited, Ok(Waited::Completed(_))), "{waited:?}");
        assert!((1..=6).contains(&n_stops), "{adapter}: {n_stops}");
    }
}

/// delve does both only where it is told to. The program prints whether it was done.
#[tokio::test]
async fn an_expression_of_go_calls_and_assigns() {
    const GO: &str = r#"package main

import "fmt"

type Cart struct {
	Items []int
	Owner string
}

func (c *Cart) Total() int {
	sum := 0
	for _, item := range c.Items {
		sum += item
	}
	return sum
}

func main() {
	cart, turns := &Cart{[]int{3, 4}, "ann"}, 1
	fmt.Println(turns, cart, cart.Total())
}
"#;
    let program = Program { line: 20, ..Program::of("delve") };
    std::fs::write(&program.source, GO).unwrap();
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "delve").await;
    let evaluate = |expression: &str| {
        let frame_id = stop.call_stack[0].frame_id;
        debugger.evaluate(Evaluate { expression: expression.to_owned(), frame_id, context: None })
    };
    for (expression, value) in [
        ("turns = 5", ""),
        ("cart.Items[1] = turns * 8", ""),
        (r#"cart.Owner = "bob""#, ""),
        ("cart.Total()", "43"),
        ("cart.Total() == 43", "true"),
        ("turns == 5", "true"),
    ] {
        assert_eq!(evaluate(expression).await.unwrap().result, value, "{expression}");
    }
    for (wrong, why) in [("nobody = 1", "nobody"), ("turns = nobody", "nobody"), ("cart.Sum()", "Sum")] {
        let refused = evaluate(wrong).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{wrong}: {refused}");
    }
    let session = Some(&stop.session);
    let waited = debugger.resume(session, stop.thread_id, Resume::Continue, wait_for(PATIENCE)).await;
    let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
    assert_eq!(completed.output.text, "5 &{[3 40] bob} 43\n");
}

/// Where a debugger does not run over breakpoints in what an expression calls, who asks hears where the program is.
#[tokio::test]
async fn a_breakpoint_in_what_an_expression_calls_is_told() {
    const C: &str =
        "int half(int n) {\n  return n / 2;\n}\nint main(void) {\n  int n = 8;\n  return half(n) - 4;\n}\n";
    const GO: &str = "package main\n\n//go:noinline\nfunc half(n int) int {\n\treturn n / 2\n}\n\nfunc main() {\n\tn := 8\n\tprintln(half(n))\n}\n";
    let go = Program { line: 10, ..Program::of("delve") };
    std::fs::write(&go.source, GO).unwrap();
    let c = Program { line: 6, ..Program::compiled(C, "", &[]) };
    for (adapter, program, inside) in [("delve", &go, 5), ("gdb", &c, 2)] {
        let debugger = debugger(program);
        let stop = start_to_stop(&debugger, program, adapter).await;
        debugger.set_breakpoint(at(&program.source, inside)).await.unwrap();
        let frame_id = stop.call_stack[0].frame_id;
        let evaluate = Evaluate { expression: "half(20)".to_owned(), frame_id, context: None };
        let told = debugger.evaluate(evaluate).await.unwrap_err().to_string();
        assert!(told.contains("stopped in a function that the expression calls"), "{adapter}: {told}");
        // Who goes on hears of that stop first.
        let session = Some(&stop.session);
        let waited = debugger.resume(session, stop.thread_id, Resume::Continue, wait_for(PATIENCE)).await;
        let Ok(Waited::Stopped(stop)) = waited else { panic!("{adapter}: {waited:?}") };
        assert_eq!(stop.line, Some(i64::from(inside)), "{adapter}");
        let mut locals = stop.top_frame_variables.iter().flat_map(|scope| &scope.variables);
        assert!(locals.any(|local| (&*local.name, &*local.value) == ("n", "20")), "{adapter}: {stop:?}");
        debugger.stop_all().await;
        until_gone(program, &stop.session).await;
    }
}

/// delve does neither where it is asked to watch.
#[tokio::test]
async fn an_expression_that_would_change_something_is_refused() {
    let program = Program::of("delve");
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "delve").await;
    let evaluate = |expression: &str| Evaluate {
        expression: expression.to_owned(),
        frame_id: stop.call_stack[0].frame_id,
        context: Some("watch".to_owned()),
    };
    let before = debugger.evaluate(evaluate("turns")).await.unwrap().result;
    for changing in ["fmt.Sprint(turns)", "turns = 5"] {
        let refused = debugger.evaluate(evaluate(changing)).await.unwrap_err();
        assert!(matches!(refused, DebugError::EvaluationFailed { .. }), "{refused:?}");
        assert!(!refused.to_string().trim().is_empty());
    }
    assert_eq!(debugger.evaluate(evaluate("turns")).await.unwrap().result, before, "the session is intact");
    debugger.stop_all().await;
    until_gone(&program, &stop.session).await;
}

/// Nobody can see from outside that a program waits for input, so it is said.
async fn a_program_that_waits_for_input_is_told(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let start = debugger.configure(&program.start(adapter, "read", false)).await.unwrap();
    let mut waited = debugger.start(start, wait_for(Duration::from_secs(2))).await;
    // Until it has come to where it reads, it does not wait for input.
    let begun = std::time::Instant::now();
    while let Ok(Waited::TimedOut { session, waits_for_input: false, .. }) = &waited {
        assert!(begun.elapsed() < PATIENCE, "it is never told");
        let session = session.clone();
        waited = debugger.wait_stop(Some(&session), wait_for(Duration::from_millis(500))).await;
    }
    // Others give it an end of input at once, which is an answer too.
    match waited {
        Ok(Waited::TimedOut { session, waits_for_input: true, .. }) => {
            debugger.stop(Some(&session)).await.unwrap();
            until_gone(&program, &session).await;
        }
        Ok(Waited::Completed(completed)) => {
            let text = printed(&debugger, &completed.session).await;
            assert!(text.ends_with("done\n"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    // One that is busy does not wait for anything.
    let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(Duration::from_secs(3))).await;
    assert!(matches!(waited, Ok(Waited::TimedOut { waits_for_input: false, .. })), "{waited:?}");
    debugger.stop_all().await;
}

/// A path that leads somewhere over a link is the same place, and another spelling of it is none.
async fn a_file_is_known_by_its_real_path(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let name = program.source.file_name().unwrap().to_string_lossy().to_uppercase();
    let wrong = program.source.with_file_name(name);
    let error = debugger.set_breakpoint(at(&wrong, 1)).await.unwrap_err();
    assert!(matches!(error, DebugError::FileNotFound { .. }), "{error:?}");
    let beside = tempfile::tempdir().unwrap();
    let link = beside.path().join("link");
    std::os::unix::fs::symlink(program.source.parent().unwrap(), &link).unwrap();
    let over_link = link.join(program.source.file_name().unwrap());
    debugger.set_breakpoint(at(&std::fs::canonicalize(over_link).unwrap(), program.line)).await.unwrap();
    let linked = link.join(program.path.file_name().unwrap());
    let wish = baton_agent_debug::adapters::wish::Wish::Launch(baton_agent_debug::adapters::wish::Launch {
        adapter: Some(adapter.to_owned()),
        program: std::fs::canonicalize(linked).unwrap(),
        args: vec!["loop".to_owned()],
        ..Default::default()
    });
    let waited = debugger.start(debugger.configure(&wish).await.unwrap(), wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    assert_eq!(stop.source.unwrap().path, program.source.display().to_string());
    debugger.stop_all().await;
}

/// Also where what starts the program in its terminal empties that first, as lldb-dap's does.
async fn a_program_reads_what_its_start_gave_it(adapter: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let start = debugger.configure(&program.start(adapter, "read", true)).await.unwrap();
    let stdin = Some(Stdin { text: "Ada".to_owned(), is_last: true });
    let waited = debugger.start(Start { stdin, ..start }, wait_for(PATIENCE)).await;
    let Ok(Waited::Completed(completed)) = waited else { panic!("{waited:?}") };
    let printed = printed(&debugger, &completed.session).await;
    assert!(printed.contains("got Ada"), "{printed}");
    assert!(!printed.contains("Debugger listening on"), "{printed}");
}

/// Tests of every difference for an adapter.
macro_rules! quirks {
    ($($module:ident: $adapter:literal, $($quirk:ident)*;)*) => {
        $(mod $module {
            $(#[tokio::test]
            async fn $quirk() {
                super::$quirk($adapter).await;
            })*
        })*
    };
}

quirks! {
    debugpy: "debugpy", a_program_reads_what_its_start_gave_it a_program_that_waits_for_input_is_told a_start_that_fails_tells_why a_breakpoint_without_code_is_told setting_again_changes_nothing_and_removing_all_removes_all a_running_program_tells_nothing_old nothing_is_printed_but_the_programs_words a_variable_is_set two_sessions_are_told_apart;
    gdb: "gdb", a_program_that_waits_for_input_is_told a_start_that_fails_tells_why a_breakpoint_without_code_is_told setting_again_changes_nothing_and_removing_all_removes_all a_running_program_tells_nothing_old nothing_is_printed_but_the_programs_words a_variable_is_set two_sessions_are_told_apart;
    lldb_dap: "lldb-dap", a_program_reads_what_its_start_gave_it a_program_that_waits_for_input_is_told a_start_that_fails_tells_why a_breakpoint_without_code_is_told setting_again_changes_nothing_and_removing_all_removes_all a_running_program_tells_nothing_old nothing_is_printed_but_the_programs_words a_variable_is_set two_sessions_are_told_apart;
    codelldb: "codelldb", a_program_that_waits_for_input_is_told a_start_that_fails_tells_why a_breakpoint_without_code_is_told setting_again_changes_nothing_and_removing_all_removes_all a_running_program_tells_nothing_old nothing_is_printed_but_the_programs_words a_variable_is_set two_sessions_are_told_apart;
    js_debug: "js-debug", a_program_reads_what_its_start_gave_it a_start_that_fails_tells_why a_breakpoint_without_code_is_told setting_again_changes_nothing_and_removing_all_removes_all a_running_program_tells_nothing_old nothing_is_printed_but_the_programs_words a_variable_is_set two_sessions_are_told_apart a_file_is_known_by_its_real_path;
    delve: "delve", a_program_that_waits_for_input_is_told a_start_that_fails_tells_why a_breakpoint_without_code_is_told setting_again_changes_nothing_and_removing_all_removes_all a_running_program_tells_nothing_old nothing_is_printed_but_the_programs_words a_variable_is_set two_sessions_are_told_apart a_file_is_known_by_its_real_path;
    java: "java", a_start_that_fails_tells_why a_breakpoint_without_code_is_told setting_again_changes_nothing_and_removing_all_removes_all a_running_program_tells_nothing_old nothing_is_printed_but_the_programs_words;
    bash_dap: "bash-dap", a_start_that_fails_tells_why a_breakpoint_without_code_is_told nothing_is_printed_but_the_programs_words two_sessions_are_told_apart;
}

/// The document's table of differences names tests, and each of them is there.
#[test]
fn every_difference_in_the_document_has_its_tests() {
    let root = workspace_root();
    let document = std::fs::read_to_string(root.join("docs/debugging.md")).unwrap();
    let (_, rest) =
        document.split_once("## What differs, and its tests\n").expect("the document has a table");
    let table = rest.split("\n## ").next().unwrap_or_default();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let mut tests = String::new();
    for folder in ["window-agent", "tests/it"] {
        read_sources(&root.join(folder), &mut tests);
    }
    for (n, row) in rows.iter().enumerate() {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let named: Vec<&str> = cells.last().unwrap().split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test is named: {row}");
        for name in named {
            let is_there =
                tests.contains(&format!("fn {name}(")) || tests.contains(&format!("    {name}: \""));
            assert!(is_there, "there is no test {name}: {row}");
        }
        assert_eq!(cells[0], (n + 1).to_string(), "rows are numbered");
    }
    assert_eq!(rows.len(), 55, "46 differences and 9 hard cases");
}

fn read_sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}
