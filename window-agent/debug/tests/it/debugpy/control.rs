//! Starting, stepping, looking, waiting.

use std::time::Duration;

use baton_agent_debug::types::{Evaluate, Paging, RemoveBreakpoint, Resume, Start, Waited};
use expect_test::expect;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fixtures::{PATIENCE, fixture};
use super::story::{Story, launch, start, wait, wait_for};
use baton_agent_debug::Wait;

#[tokio::test]
async fn a_program_is_stepped_through_to_its_end() {
    let mut story = Story::begin();
    story.set("demo.py", 16).await;
    story.start(launch("demo.py", json!({}))).await;
    story.list().await;
    story.go(Resume::StepInto).await;
    story.evaluate("value * factor").await;
    story.go(Resume::StepOver).await;
    story.go(Resume::StepOut).await;
    story.go(Resume::StepOver).await;
    story.debugger.remove_breakpoint(RemoveBreakpoint::All).await.unwrap();
    story.go(Resume::Continue).await;
    story
        .end(expect![[r#"
            breakpoint 1 demo.py:16 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in main demo.py:16 < <module> demo.py:22
              Locals: number=1, numbers=[1, 2, 3, 4, 5, 6], total=0
            breakpoint 1 demo.py:16 verified
            > StepInto
            stopped session-1 by step in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=1
            value * factor = 10
            > StepOver
            stopped session-1 by step in scale demo.py:7 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, result=10, value=1
            > StepOut
            stopped session-1 by step in main demo.py:16 < <module> demo.py:22
              Locals: number=1, numbers=[1, 2, 3, 4, 5, 6], total=0
            > StepOver
            stopped session-1 by step in main demo.py:13 < <module> demo.py:22
              Locals: number=1, numbers=[1, 2, 3, 4, 5, 6], total=10
            > Continue
            completed session-1 with 0
        "#]])
        .await;
}

#[tokio::test]
async fn an_uncaught_exception_stops_and_tells_its_text() {
    let mut story = Story::begin();
    story.start(launch("fails.py", json!({}))).await;
    story.go(Resume::Continue).await;
    story
        .end(expect![[r#"
            stopped session-1 by exception in divide fails.py:2 < <module> fails.py:6
              text: ZeroDivisionError: division by zero
              Locals: dividend=1, divisor=0
            > Continue
            completed session-1 with 1
        "#]])
        .await;
}

#[tokio::test]
async fn without_debugging_no_breakpoint_is_hit() {
    let mut story = Story::begin();
    story.set("demo.py", 16).await;
    story.start(Start { no_debug: true, ..launch("demo.py", json!({})) }).await;
    story
        .end(expect![[r#"
            breakpoint 1 demo.py:16 not verified (not verified yet: no debug session has loaded it)
            completed session-1 with 0
        "#]])
        .await;
}

#[tokio::test]
async fn stop_on_entry_modules_arguments_and_environment() {
    let mut story = Story::begin();
    let base = json!({"type": "python", "request": "launch", "module": "child", "args": ["5"], "stopOnEntry": true,
        "cwd": fixture(""), "env": {"GREETING": "hello"}, "python": super::fixtures::python()});
    story.start(start("module", base, json!({}))).await;
    story.evaluate("__import__('os').environ['GREETING']").await;
    story.go(Resume::Continue).await;
    story
        .end(expect![[r#"
            stopped session-1 by entry in <module> child.py:1
              Locals: 
            __import__('os').environ['GREETING'] = 'hello'
            > Continue
            stopped session-1 by exception in <module> child.py:6
              text: SystemExit: 3
              Locals: number=5, square=25
        "#]])
        .await;
}

#[tokio::test]
async fn ids_of_an_earlier_stop_are_told_as_stale() {
    let mut story = Story::begin();
    story.set("wide.py", 4).await;
    story.set("demo.py", 6).await;
    story.start(launch("wide.py", json!({}))).await;
    let frame_id = story.stop.as_ref().unwrap().call_stack[0].frame_id;
    let scopes = story.debugger.scopes(frame_id).await.unwrap();
    story.line(&format!("scopes {:?}", scopes.iter().map(|scope| &scope.name).collect::<Vec<_>>()));
    let locals = scopes[0].variables_reference;
    let variables = story.variables(locals, Paging::default()).await;
    let text = variables.iter().find(|variable| variable.name == "text").unwrap();
    story.line(&format!("text is cut to {}", text.value.len()));
    let numbers = variables.iter().find(|variable| variable.name == "numbers").unwrap().variables_reference;
    let page = story.debugger.variables(numbers, Paging { start: Some(10), count: Some(2) }).await.unwrap();
    let names: Vec<String> = page.variables.iter().map(|v| format!("{}={}", v.name, v.value)).collect();
    story.line(&format!("numbers {names:?}"));
    story.go(Resume::StepOver).await;
    for error in [
        story.debugger.scopes(frame_id).await.unwrap_err(),
        story.debugger.variables(locals, Paging::default()).await.unwrap_err(),
        story.debugger.scopes(9999).await.unwrap_err(),
        story.debugger.variables(0, Paging::default()).await.unwrap_err(),
        story
            .debugger
            .evaluate(Evaluate { expression: "1".into(), frame_id, context: None })
            .await
            .unwrap_err(),
    ] {
        story.error(&error);
    }
    story.end(expect![[r#"
        breakpoint 1 wide.py:4 not verified (not verified yet: no debug session has loaded it)
        breakpoint 2 demo.py:6 not verified (not verified yet: no debug session has loaded it)
        stopped session-1 by breakpoint [1] in <module> wide.py:4
          Locals: nested={'a': {'b': [...]}}, numbers=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, text='xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        scopes ["Locals", "Globals"]
        text is cut to 1045
        numbers ["0010=10", "0011=11"]
        > StepOver
        completed session-1 with 0 never hit [2]
        error stale_frame: frame 1 is from an earlier stop
        error stale_reference: variables reference 3 is from an earlier stop
        error no_such_frame: there is no frame 9999
        error no_such_reference: there is no variables reference 0
        error stale_frame: frame 1 is from an earlier stop
    "#]]).await;
}

#[tokio::test]
async fn an_expression_that_fails_says_why() {
    let mut story = Story::begin();
    story.set("demo.py", 16).await;
    story.start(launch("demo.py", json!({}))).await;
    story.evaluate("numbers[99]").await;
    story.evaluate("no_such_name").await;
    story.evaluate("1 +").await;
    story.evaluate("[scale(n, 2) for n in numbers]").await;
    story
        .end(expect![[r#"
        breakpoint 1 demo.py:16 not verified (not verified yet: no debug session has loaded it)
        stopped session-1 by breakpoint [1] in main demo.py:16 < <module> demo.py:22
          Locals: number=1, numbers=[1, 2, 3, 4, 5, 6], total=0
        error evaluation_failed: IndexError: list index out of range
        error evaluation_failed: NameError: name 'no_such_name' is not defined
        error evaluation_failed: SyntaxError: invalid syntax
        [scale(n, 2) for n in numbers] = [2, 4, 6, 8, 10, 12]
    "#]])
        .await;
}

#[tokio::test]
async fn a_wait_that_ends_early_leaves_the_program_running() {
    let mut story = Story::begin();
    story.start_running(launch("endless.py", json!({}))).await;
    let waited = story.debugger.resume(None, 1, Resume::Continue, wait_for(Duration::from_millis(10))).await;
    story.waited(waited);
    // Running: it can be waited for, not stepped.
    story.go_thread(None, 1, Resume::StepOver).await;
    let cancelled = CancellationToken::new();
    let (debugger, wait_on) =
        (story.debugger.clone(), Wait { timeout: PATIENCE, cancelled: cancelled.clone() });
    let mut waiting = Box::pin(debugger.resume(None, 1, Resume::Continue, wait_on));
    // Polled once, its wait is armed: the second call on one thread is refused while the first one waits.
    assert!(futures_util::poll!(&mut waiting).is_pending());
    story.go_thread(None, 1, Resume::Continue).await;
    cancelled.cancel();
    let waited = waiting.await;
    story.waited(waited);
    // A breakpoint in the running program is the next news.
    story.set("endless.py", 7).await;
    let waited = story.debugger.resume(None, 1, Resume::Continue, wait()).await;
    story.line("> Continue");
    if let Ok(Waited::Stopped(stop)) = &waited {
        assert!(stop.top_frame_variables.as_ref().unwrap().variables.iter().any(|v| v.name == "beats"));
        story.stop = Some((**stop).clone());
        story.line(&format!("stopped at line {:?} by {:?}", stop.line, stop.hit_breakpoint_ids));
    }
    let stopped = story.debugger.stop(None).await.unwrap();
    let name = story.session(&stopped);
    story.line(&format!("stopped {name}"));
    let (session, thread_id) = story.here();
    story.go_thread(Some(&session), thread_id, Resume::Continue).await;
    story.go_thread(None, thread_id, Resume::Continue).await;
    story
        .end(expect![[r#"
            interrupted session-1
            timed out session-1
            > StepOver
            error not_stopped: thread 1 is running
            > Continue
            error busy: another call is already waiting on thread 1
            interrupted session-1
            breakpoint 1 endless.py:7 verified
            > Continue
            stopped at line Some(7) by Some([1])
            stopped session-1
            > Continue
            error session_ended: debug session session-1 has ended
            > Continue
            error no_session: no debug session is running
        "#]])
        .await;
}

#[tokio::test]
async fn the_user_ends_every_wait() {
    let mut story = Story::begin();
    let debugger = story.debugger.clone();
    let starting = tokio::spawn(async move { debugger.start(launch("endless.py", json!({})), wait()).await });
    let mut sessions = story.debugger.watch_sessions();
    sessions.wait_for(|sessions| !sessions.is_empty()).await.unwrap();
    story.debugger.interrupt_waits().await;
    let waited = starting.await.unwrap();
    story.waited(waited);
    story
        .end(expect![[r#"
        interrupted session-1
    "#]])
        .await;
}

#[tokio::test]
async fn an_end_nobody_waited_for_is_the_next_answer() {
    let mut story = Story::begin();
    let waited = story.debugger.start(launch("demo.py", json!({})), wait_for(Duration::from_millis(1))).await;
    story.waited(waited);
    let mut sessions = story.debugger.watch_sessions();
    sessions.wait_for(Vec::is_empty).await.unwrap();
    story.go_thread(None, 1, Resume::Continue).await;
    story.go_thread(None, 1, Resume::Continue).await;
    story
        .end(expect![[r#"
            timed out session-1
            > Continue
            completed session-1 with 0
            > Continue
            error no_session: no debug session is running
        "#]])
        .await;
}

#[tokio::test]
async fn threads_are_told_apart() {
    let mut story = Story::begin();
    story.set("threads.py", 9).await;
    story.start(launch("threads.py", json!({}))).await;
    let (session, thread_id) = story.here();
    assert_ne!(thread_id, 1, "the worker stopped");
    story.go_thread(Some(&session), 4711, Resume::StepOver).await;
    story.go(Resume::StepOver).await;
    story.go_thread(Some(&session), 1, Resume::Continue).await;
    story
        .end(expect![[r#"
            breakpoint 1 threads.py:9 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in work threads.py:9
              Locals: 
            > StepOver
            error no_such_thread: there is no thread 4711; threads: 1 (MainThread), 2 (worker)
            > StepOver
            stopped session-1 by step in work threads.py:10
              Locals: mine='worker'
            > Continue
            completed session-1 with 0
        "#]])
        .await;
}

#[tokio::test]
async fn two_programs_at_once() {
    let mut story = Story::begin();
    story.set("demo.py", 6).await;
    story.set("wide.py", 4).await;
    story.start(launch("demo.py", json!({}))).await;
    let (first, thread_id) = story.here();
    story.start(launch("wide.py", json!({}))).await;
    story.go_thread(None, thread_id, Resume::Continue).await;
    story.go_thread(Some(&first), thread_id, Resume::StepOver).await;
    story.end(expect![[r#"
        breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
        breakpoint 2 wide.py:4 not verified (not verified yet: no debug session has loaded it)
        stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
          Locals: factor=10, value=1
        stopped session-2 by breakpoint [2] in <module> wide.py:4
          Locals: nested={'a': {'b': [...]}}, numbers=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, text='xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        > Continue
        completed session-2 with 0 never hit [1]
        > StepOver
        stopped session-1 by step in scale demo.py:7 < main demo.py:16 < <module> demo.py:22
          Locals: factor=10, result=10, value=1
    "#]]).await;
}
