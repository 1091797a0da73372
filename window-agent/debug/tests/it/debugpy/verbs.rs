//! Triggers, pausing, restarting, threads, requests of any kind, output, input, limits.

use std::time::{Duration, Instant};

use baton_agent_debug::types::control::{Category, Limits, OutputWish, Request, ResumeWish, Stdin, gates};
use baton_agent_debug::types::triggers::{Access, RemoveTriggers, SetTrigger, Trigger, TriggerKind};
use baton_agent_debug::types::{Phase, Resume, SessionId, StopEvent, Waited};
use baton_agent_debug::{Debugger, DebuggerOptions};
use expect_test::expect;
use serde_json::{Value, json};

use super::fixtures::until_gone;
use super::story::{Story, launch, options, wait, wait_for};

impl Story {
    async fn trigger(&mut self, trigger: Trigger, condition: Option<&str>) {
        let wish =
            SetTrigger { trigger, condition: condition.map(str::to_owned), hit_condition: None, owner: None };
        match self.debugger.set_trigger(None, wish).await {
            Ok(known) => self.line(&format!(
                "trigger {} {} verified {} {:?}",
                known.id,
                known.trigger.describe(),
                known.verified,
                known.message
            )),
            Err(error) => self.error(&error),
        }
    }

    async fn request(&mut self, command: &str, arguments: Value) -> Value {
        let arguments = arguments.as_object().cloned().unwrap();
        let request =
            Request { session: None, command: command.to_owned(), arguments, gate: None, timeout: None };
        match self.debugger.request(request).await {
            Ok(body) => body,
            Err(error) => {
                self.error(&error);
                Value::Null
            }
        }
    }

    fn frame_id(&self) -> i64 {
        self.stop.as_ref().unwrap().call_stack[0].frame_id
    }
}

fn function(name: &str) -> Trigger {
    Trigger::Function { name: name.to_owned() }
}

fn exception(filter: &str) -> Trigger {
    Trigger::Exception { filter: filter.to_owned() }
}

fn stopped(waited: Waited) -> StopEvent {
    match waited {
        Waited::Stopped(stop) => *stop,
        other => panic!("{other:?}"),
    }
}

async fn page(debugger: &Debugger, session: Option<&SessionId>, since: Option<u64>) -> (String, u64) {
    let wish = OutputWish {
        session: session.cloned(),
        since,
        categories: vec![Category::Stdout],
        max_bytes: 65_536,
    };
    let page = debugger.output(wish).await.unwrap();
    (page.entries.into_iter().map(|entry| entry.text).collect(), page.next)
}

#[tokio::test]
async fn functions_and_exceptions_stop_a_program() {
    let mut story = Story::begin();
    story.trigger(function("scale"), None).await;
    story.trigger(exception("raised"), None).await;
    story.trigger(exception("no_such_filter"), None).await;
    story.start(launch("demo.py", json!({}))).await;
    story.trigger(function("main"), None).await;
    let data = Trigger::Data { data_id: "x".to_owned(), access: Some(Access::Write) };
    story.trigger(data, None).await;
    story.trigger(Trigger::Instruction { reference: "0x1".to_owned(), offset: 0 }, None).await;
    story.trigger(function(" "), None).await;
    let listed = story.debugger.triggers().await;
    story.line(&format!("{:?}", listed.iter().map(|known| (known.id, known.verified)).collect::<Vec<_>>()));
    let removed = story.debugger.remove_triggers(RemoveTriggers::Kind(TriggerKind::Function)).await.unwrap();
    story.line(&format!("removed {:?}", removed.iter().map(|known| known.id).collect::<Vec<_>>()));
    let missing = story.debugger.remove_triggers(RemoveTriggers::Id(1)).await;
    story.error(&missing.unwrap_err());
    story.go(Resume::Continue).await;
    // Where it is raised, not only where nobody catches it.
    story.start(launch("fails.py", json!({}))).await;
    story.debugger.set_exception_filters(None, Some(Vec::new())).await.unwrap();
    story.go(Resume::Continue).await;
    story.start(launch("fails.py", json!({}))).await;
    story.debugger.set_exception_filters(None, None).await.unwrap();
    story.start(launch("fails.py", json!({}))).await;
    story.end(expect![[r#"
        trigger 1 on function scale verified false Some("not verified yet: no debug session has taken it")
        trigger 2 on exceptions of the filter raised verified false Some("not verified yet: no debug session has taken it")
        trigger 3 on exceptions of the filter no_such_filter verified false Some("not verified yet: no debug session has taken it")
        stopped session-1 by function breakpoint [1] in scale demo.py:5 < main demo.py:16 < <module> demo.py:22
          Locals: factor=10, value=1
        trigger 4 on function main verified true None
        error unsupported: the debug adapter debugpy does not support data breakpoints
        error unsupported: the debug adapter debugpy does not support instruction breakpoints
        error no_place: the function name of the breakpoint is missing
        [(1, true), (2, true), (3, false), (4, true)]
        removed [1, 4]
        error no_such_breakpoint: there is no breakpoint with id 1
        > Continue
        completed session-1 with 0
        stopped session-2 by exception in divide fails.py:2 < <module> fails.py:6
          text: ZeroDivisionError: division by zero
          Locals: dividend=1, divisor=0
        > Continue
        completed session-2 with 1
        completed session-3 with 1
        stopped session-4 by exception in divide fails.py:2 < <module> fails.py:6
          text: ZeroDivisionError: division by zero
          Locals: dividend=1, divisor=0
    "#]]).await;
}

#[tokio::test]
async fn an_endless_program_is_paused_looked_at_and_begun_again() {
    let mut story = Story::begin();
    story.start_running(launch("endless.py", json!({}))).await;
    let status = story.debugger.status(None).await.unwrap();
    assert_eq!(
        (status.phase, status.adapter.as_str(), status.is_attached),
        (Phase::Running, "debugpy", false)
    );
    assert!(status.last_stop.is_none(), "{status:?}");
    let stop = stopped(story.debugger.pause(None, None, wait()).await.unwrap());
    assert_eq!(stop.reason, "pause");
    let same = stopped(story.debugger.pause(None, None, wait()).await.unwrap());
    assert_eq!(same.call_stack, stop.call_stack);
    let same = stopped(story.debugger.wait_stop(Some(&stop.session), wait()).await.unwrap());
    assert_eq!(same.call_stack, stop.call_stack);
    let threads = story.debugger.threads(None).await.unwrap();
    assert_eq!(threads.iter().map(|thread| (thread.id, thread.is_stopped)).collect::<Vec<_>>(), [(1, true)]);
    let trace = story.debugger.stack_trace(None, None, 0, 1).await.unwrap();
    assert_eq!(trace.frames, stop.call_stack[..1]);
    let status = story.debugger.status(None).await.unwrap();
    assert_eq!(status.last_stop.unwrap().call_stack, stop.call_stack);
    assert!(status.pid.is_some());

    // A wait without a resume hears of the pause that another call asked for.
    let running = story.debugger.resume(None, 1, Resume::Continue, wait_for(Duration::from_millis(50))).await;
    assert!(matches!(running, Ok(Waited::TimedOut { .. })), "{running:?}");
    assert!(story.debugger.stack_trace(None, None, 0, 1).await.unwrap().is_running);
    let debugger = story.debugger.clone();
    let waiting = tokio::spawn(async move { debugger.wait_stop(None, wait()).await });
    stopped(story.debugger.pause(None, Some(1), wait()).await.unwrap());
    assert_eq!(stopped(waiting.await.unwrap().unwrap()).reason, "pause");

    story.set("endless.py", 6).await;
    let again = stopped(story.debugger.restart(None, wait()).await.unwrap());
    assert_eq!((&again.session, again.reason.as_str()), (&stop.session, "breakpoint"));
    assert_eq!(story.debugger.sessions().len(), 1);
    // What a program writes comes on a way of its own, and may be later than the stop.
    let (mut text, mut next) = page(&story.debugger, None, Some(0)).await;
    let deadline = Instant::now() + wait().timeout;
    while text.is_empty() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
        (text, next) = page(&story.debugger, None, Some(0)).await;
    }
    assert_eq!(text, "looping\n");
    assert_eq!(page(&story.debugger, None, Some(next)).await, (String::new(), next));
    story.debugger.stop(None).await.unwrap();
    until_gone("endless.py").await;
    let status = story.debugger.status(Some(&stop.session)).await.unwrap();
    assert_eq!(status.phase, Phase::Terminated);
    assert_eq!(status.end.as_deref(), Some("the debug session was stopped"));
    assert_eq!(page(&story.debugger, Some(&stop.session), None).await.0, "looping\n");
    assert_eq!(story.debugger.pause(None, None, wait()).await.unwrap_err().kind().to_string(), "no_session");
    // What has ended begins again, too.
    let again = stopped(story.debugger.restart(None, wait()).await.unwrap());
    assert_eq!((&again.session, again.reason.as_str()), (&stop.session, "breakpoint"));
    story.debugger.stop(None).await.unwrap();
    let other = SessionId("other".to_owned());
    let unknown = story.debugger.restart(Some(&other), wait()).await.unwrap_err();
    assert_eq!(unknown.kind().to_string(), "no_such_session");
}

#[tokio::test]
async fn a_program_in_a_terminal_is_typed_to() {
    let mut story = Story::begin();
    story.start_running(launch("asks.py", json!({"console": "integratedTerminal"}))).await;
    let mut status = story.debugger.status(None).await.unwrap();
    while !status.has_terminal {
        tokio::task::yield_now().await;
        status = story.debugger.status(None).await.unwrap();
    }
    let stdin = Stdin { text: "Ada\n".to_owned(), is_last: false };
    story.debugger.write_stdin(None, stdin.clone()).await.unwrap();
    let ended = story.debugger.wait_stop(Some(&status.id), wait()).await;
    let Ok(Waited::Completed(completed)) = ended else { panic!("{ended:?}") };
    assert_eq!(completed.exit_code, Some(0));
    let (text, _) = page(&story.debugger, Some(&status.id), Some(0)).await;
    assert!(text.ends_with("got Ada\n"), "{text:?}");
    let late = story.debugger.write_stdin(Some(&status.id), stdin.clone()).await.unwrap_err();
    assert_eq!(late.kind().to_string(), "session_ended");

    story.start_running(launch("endless.py", json!({}))).await;
    assert_eq!(story.debugger.write_stdin(None, stdin).await.unwrap_err().kind().to_string(), "no_terminal");
    story.debugger.stop_all().await;
}

#[tokio::test]
async fn requests_of_any_kind_take_and_give_our_ids() {
    let mut story = Story::begin();
    story.set("demo.py", 6).await;
    story.start(launch("demo.py", json!({}))).await;
    let frame_id = story.frame_id();
    let scopes = story.request("scopes", json!({"frameId": frame_id})).await;
    let locals = scopes["scopes"][0]["variablesReference"].clone();
    let set = json!({"variablesReference": locals, "name": "value", "value": "41"});
    let answer = story.request("setVariable", set).await;
    story.line(&format!("set {}", answer["value"]));
    story.evaluate("value + 1").await;
    let answer = story
        .request("setExpression", json!({"frameId": frame_id, "expression": "factor", "value": "2"}))
        .await;
    story.line(&format!("set {}", answer["value"]));
    let completions = json!({"frameId": frame_id, "text": "fact", "column": 5});
    let answer = story.request("completions", completions).await;
    story.line(&format!("completes to {}", answer["targets"][0]["label"]));
    story.request("scopes", json!({"frameId": 4711})).await;
    story.request("continue", json!({"threadId": 1})).await;
    story.request("noSuchRequest", json!({})).await;
    let gated = Request {
        session: None,
        command: "readMemory".to_owned(),
        arguments: serde_json::Map::new(),
        gate: Some(gates::READ_MEMORY),
        timeout: None,
    };
    let refused = story.debugger.request(gated).await.unwrap_err();
    story.error(&refused);
    let stale = locals.clone();
    story.go(Resume::StepOver).await;
    story.request("variables", json!({"variablesReference": stale})).await;
    story.go(Resume::StepBack).await;
    story.end(expect![[r#"
        breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
        stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
          Locals: factor=10, value=1
        set "41"
        value + 1 = 42
        set "2"
        completes to "factor"
        error no_such_frame: there is no frame 4711
        error not_a_request: `continue` cannot be sent as a custom request
        error adapter_refused: the debug adapter refused `noSuchRequest`: Unable to create message from dict: {'seq': 20, 'type': 'request', 'command': 'noSuchRequest'}. noSuchRequest not in ['attach', 'breakpointLocations', 'cancel', 'completions', 'configurationDone', 'continue', 'dataBreakpointInfo', 'disassemble', 'disconnect', 'evaluate', 'exceptionInfo', 'goto', 'gotoTargets', 'initialize', 'launch', 'loadedSources', 'modules', 'next', 'pause', 'pydevdAuthorize', 'pydevdSystemInfo', 'readMemory', 'restart', 'restartFrame', 'reverseContinue', 'runInTerminal', 'sc... (369 bytes more)
        error unsupported: the debug adapter debugpy does not support memory reads
        > StepOver
        stopped session-1 by step in scale demo.py:7 < main demo.py:16 < <module> demo.py:22
          Locals: factor=2, result=82, value=41
        error stale_reference: variables reference 1 is from an earlier stop
        > StepBack
        error unsupported: the debug adapter debugpy does not support stepping back
    "#]]).await;
}

#[tokio::test]
async fn a_jump_and_a_step_into_one_of_several_calls() {
    let mut story = Story::begin();
    story.set("demo.py", 16).await;
    story.start(launch("demo.py", json!({}))).await;
    let frame_id = story.frame_id();
    let targets = story.request("stepInTargets", json!({"frameId": frame_id})).await;
    story.line(&format!("into {}", targets["targets"][0]["label"]));
    let mut wish = ResumeWish::new(None, None, Resume::StepInto);
    wish.target_id = targets["targets"][0]["id"].as_i64();
    let waited = story.debugger.resume_as(wish, wait()).await;
    story.waited(waited);
    let source = json!({"path": super::fixtures::fixture("demo.py")});
    let targets = story.request("gotoTargets", json!({"source": source, "line": 7})).await;
    let target_id = targets["targets"][0]["id"].as_i64().unwrap();
    let waited =
        story.debugger.resume_as(ResumeWish::new(None, None, Resume::Goto { target_id }), wait()).await;
    story.waited(waited);
    story
        .end(expect![[r#"
        breakpoint 1 demo.py:16 not verified (not verified yet: no debug session has loaded it)
        stopped session-1 by breakpoint [1] in main demo.py:16 < <module> demo.py:22
          Locals: number=1, numbers=[1, 2, 3, 4, 5, 6], total=0
        into "scale(number, 10)"
        stopped session-1 by step in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
          Locals: factor=10, value=1
        stopped session-1 by goto in scale demo.py:7 < main demo.py:16 < <module> demo.py:22
          Locals: factor=10, value=1
    "#]])
        .await;
}

#[tokio::test]
async fn stepping_a_thread_that_waits_for_the_stopped_one_freezes_nothing() {
    let mut story = Story::begin();
    story.set("threads.py", 9).await;
    story.start(launch("threads.py", json!({}))).await;
    let (session, worker) = story.here();
    let step = ResumeWish::new(Some(session.clone()), Some(1), Resume::StepOver);
    let waited = story.debugger.resume_as(step, wait_for(Duration::from_millis(500))).await;
    story.waited(waited);
    story.go_thread(Some(&session), worker, Resume::Continue).await;
    story
        .end(expect![[r#"
        breakpoint 1 threads.py:9 not verified (not verified yet: no debug session has loaded it)
        stopped session-1 by breakpoint [1] in work threads.py:9
          Locals: 
        timed out session-1
        > Continue
        completed session-1 with 0
    "#]])
        .await;
}

#[tokio::test]
async fn an_expression_may_run_as_long_as_the_user_lets_it() {
    let mut story = Story::with(options());
    story.debugger.limit(Limits { expression: Some(Duration::from_secs(1)), ..Limits::default() });
    story.set("demo.py", 6).await;
    story.start(launch("demo.py", json!({}))).await;
    story.evaluate("value * factor").await;
    story.evaluate("__import__('time').sleep(3)").await;
    story.debugger.limit(Limits::default());
    story.evaluate("__import__('time').sleep(1.5)").await;
    story
        .end(expect![[r#"
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=1
            value * factor = 10
            error evaluation_failed: the expression did not end within 1 s and was interrupted
            __import__('time').sleep(1.5) = 
        "#]])
        .await;
}

#[tokio::test]
async fn sessions_are_limited_and_end_when_nobody_uses_them() {
    let limits = Limits { idle: Some(Duration::from_millis(700)), ..Limits::default() };
    let options = DebuggerOptions { max_sessions: Some(1), limits, ..options() };
    let mut story = Story::with(options);
    story.set("demo.py", 6).await;
    story.start(launch("demo.py", json!({}))).await;
    story.start(launch("demo.py", json!({}))).await;
    let (session, _) = story.here();
    let mut sessions = story.debugger.watch_sessions();
    sessions.wait_for(Vec::is_empty).await.unwrap();
    let status = story.debugger.status(Some(&session)).await.unwrap();
    story.line(&status.end.unwrap());
    story
        .end(expect![[r#"
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=1
            error too_many_sessions: too many debug sessions (limit 1)
            the debug session was ended: nobody used it for 0.7 s
        "#]])
        .await;
}
