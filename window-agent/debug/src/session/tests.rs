//! Conversations in golden form: what an adapter says goes in, what the session does and tells comes out. The
//! messages are debugpy's, recorded and shortened; the other orders are those of other adapters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::adapter::Adapter;
use crate::breakpoints::{Wanted, WantedAll};
use crate::dap::Incoming;
use crate::session::motion::Motion;
use crate::session::plan::{Link, StartKind};
use crate::session::{Ending, Input, Output, Session};
use crate::types::control::ResumeWish;
use crate::types::{Resume, SetBreakpoint, Start};
use crate::{DebuggerOptions, adapters};

mod losses;

const INITIALIZE: &str = r#"ok 1 {"supportsConfigurationDoneRequest": true, "supportsExceptionInfoRequest": true,
    "exceptionBreakpointFilters": [{"filter": "raised", "default": false}, {"filter": "uncaught", "default": true}]}"#;
const STOPPED: &str = r#"event stopped {"reason": "breakpoint", "threadId": 1, "allThreadsStopped": true, "hitBreakpointIds": [0]}"#;

/// Feeds lines to a session with one breakpoint (our id 7) and compares what comes out.
///
/// `ok SEQ BODY`, `no SEQ MESSAGE`: an answer. `event NAME BODY`. `request NAME BODY`. `continue THREAD`. `stop`.
/// `set`: the breakpoint is gone. `ask NAME`. `closed HOW`. `after MS`: time passes.
fn check(no_debug: bool, lines: &[&str], expected: Expect) {
    let mut driver = Driver::new(no_debug);
    driver.input(Input::Connected);
    for line in lines {
        driver.text.push_str(&format!("{:.60}\n", line.split('\n').next().unwrap_or_default()));
        driver.line(line);
    }
    expected.assert_eq(&driver.text);
}

fn resume(thread_id: i64, how: Resume) -> Input {
    Input::Resume { thread_id, how: Motion::new(&ResumeWish::new(None, None, how), None) }
}

struct Driver {
    session: Session,
    now: Instant,
    text: String,
}

impl Driver {
    fn new(no_debug: bool) -> Self {
        Self::with_adapter(no_debug, Link::Spawned)
    }

    fn with_adapter(no_debug: bool, link: Link) -> Self {
        let configuration = json!({"type": "debugpy", "request": "attach", "connect": {"port": 1}});
        let configuration = configuration.as_object().cloned().unwrap();
        let start = Start { configuration, no_debug, ..Start::default() };
        let mut plan = adapters::plan(&start, &DebuggerOptions::default()).unwrap().session;
        plan.kind = StartKind::Launch;
        plan.arguments = json!({"program": "a.py"});
        plan.no_debug = no_debug;
        let wish = SetBreakpoint { path: PathBuf::from("/a.py"), line: 3, ..SetBreakpoint::default() };
        let wanted = BTreeMap::from([(PathBuf::from("/a.py"), vec![Wanted { id: 7, wish }])]);
        let wanted = WantedAll { lines: wanted, triggers: BTreeMap::new() };
        let mut session = Session::new(&plan, link, wanted, vec![PathBuf::from("/w")]);
        // Pages of Python.
        session.tuning.fill("tuning");
        Self { session, now: Instant::now(), text: String::new() }
    }

    fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (name, body) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let body = || serde_json::from_str::<Value>(body).unwrap();
        let seq = || name.parse::<i64>().unwrap();
        let message = |value: Value| Input::Message(Incoming::parse(value.to_string().as_bytes()).unwrap());
        let input = match word {
            "ok" => {
                message(json!({"type": "response", "request_seq": seq(), "success": true, "body": body()}))
            }
            "no" => message(json!({"type": "response", "request_seq": seq(), "success": false,
                "message": rest.split_once(' ').unwrap().1})),
            "event" => message(json!({"type": "event", "event": name, "body": body()})),
            "request" => message(json!({"type": "request", "seq": 70, "command": name, "arguments": body()})),
            "continue" => resume(seq(), Resume::Continue),
            "next" => resume(seq(), Resume::StepOver),
            "pause" => Input::Pause { thread_id: seq() },
            "stop" => Input::Stop,
            "set" => Input::SetBreakpoints { ticket: 1, path: PathBuf::from("/a.py"), wanted: Vec::new() },
            "ask" => Input::Request { ticket: 2, command: "threads".into(), arguments: json!({}) },
            "closed" => Input::Closed { how: rest.to_owned() },
            "after" => {
                self.now += Duration::from_millis(rest.parse().unwrap());
                self.session.handle_timeout(self.now);
                return self.drain();
            }
            other => panic!("{other}"),
        };
        self.input(input);
    }

    fn input(&mut self, input: Input) {
        self.session.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.poll_output() {
            let line = match output {
                Output::Send(message) if message["type"] == "request" => {
                    let arguments = message["arguments"].to_string();
                    let arguments = if message["command"] == "initialize" { "" } else { &arguments };
                    format!("{} {} {arguments}", message["seq"], message["command"].as_str().unwrap())
                }
                Output::Send(message) => format!("reply {message}"),
                Output::Answer { ticket, result } => format!("answer {ticket}: {result:?}"),
                Output::Bound { id, binding } => {
                    format!("bound {id} verified {} line {:?}", binding.verified, binding.line)
                }
                Output::Stopped(captured) => format!(
                    "STOPPED thread {} hit {:?} frames {} variables {} exception {}",
                    captured.thread_id,
                    captured.hit,
                    captured.stack.stack_frames.len(),
                    captured
                        .scopes
                        .iter()
                        .filter_map(|(_, body)| Some(&body.as_ref()?.variables))
                        .flatten()
                        .count(),
                    json!(captured.exception.exception_id),
                ),
                Output::Ended(end) => {
                    let how = match end.how {
                        Ending::Plain => "plain".to_owned(),
                        Ending::Asked => "asked".to_owned(),
                        Ending::NotStarted(message) => format!("not started: {message}"),
                        Ending::Lost(how) => format!("lost: {how}"),
                    };
                    let signal = end.signal.map(|signal| format!(" ({signal})")).unwrap_or_default();
                    format!("ENDED {:?} {how}{signal}", end.exit_code)
                }
                other => format!("{other:?}"),
            };
            self.text.push_str(&format!("    {}\n", line.trim_end()));
        }
    }
}

#[test]
fn debugpy_from_launch_to_end() {
    let lines = [
        INITIALIZE,
        "event initialized",
        r#"ok 3 {"breakpoints": [{"id": 0, "verified": true, "line": 3}]}"#,
        "ok 4",
        "ok 5",
        "ok 6",
        "ok 2",
        STOPPED,
        r#"ok 7 {"stackFrames": [{"id": 2}, {"id": 3}]}"#,
        "ok 8",
        r#"ok 9 {"scopes": [{"name": "Huge", "expensive": true, "variablesReference": 4}, {"name": "Locals", "variablesReference": 5}]}"#,
        r#"ok 10 {"variables": [{"name": "x"}]}"#,
        "continue 1",
        "ok 11",
        "event continued",
        "after 100",
        r#"event exited {"exitCode": 3}"#,
        "event terminated",
        "event stopped",
    ];
    check(
        false,
        &lines,
        expect![[r#"
                1 initialize
            ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
                2 launch {"program":"a.py"}
            event initialized
                3 setBreakpoints {"breakpoints":[{"line":3}],"lines":[3],"source":{"name":"a.py","path":"/a.py"},"sourceModified":false}
                4 setDebuggerProperty {"skipPrintBreakpointException":[],"skipSuspendOnBreakpointException":[]}
                5 setExceptionBreakpoints {"filters":["uncaught"]}
            ok 3 {"breakpoints": [{"id": 0, "verified": true, "line": 3}
                bound 7 verified true line Some(3)
            ok 4
            ok 5
                6 configurationDone {}
            ok 6
            ok 2
            event stopped {"reason": "breakpoint", "threadId": 1, "allTh
                7 stackTrace {"levels":20,"startFrame":0,"threadId":1}
            ok 7 {"stackFrames": [{"id": 2}, {"id": 3}]}
                8 evaluate {"context":"watch","expression":"tuning","frameId":2}
                9 scopes {"frameId":2}
            ok 8
            ok 9 {"scopes": [{"name": "Huge", "expensive": true, "variab
                10 variables {"variablesReference":5}
            ok 10 {"variables": [{"name": "x"}]}
                STOPPED thread 1 hit Some([7]) frames 2 variables 1 exception null
            continue 1
                11 continue {"threadId":1}
            ok 11
                Resumed { thread_id: None }
            event continued
            after 100
            event exited {"exitCode": 3}
            event terminated
                12 disconnect {"restart":false,"terminateDebuggee":true}
                ENDED Some(3) plain
            event stopped
        "#]],
    );
}

#[test]
fn other_orders_of_the_handshake() {
    // The answer to the launch first, `initialized` after it, and once more.
    check(
        false,
        &[
            INITIALIZE,
            "ok 2",
            "event initialized",
            "event initialized",
            r#"ok 3 {"breakpoints": []}"#,
            "ok 4",
            "ok 5",
        ],
        expect![[r#"
                1 initialize
            ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
                2 launch {"program":"a.py"}
            ok 2
            event initialized
                3 setBreakpoints {"breakpoints":[{"line":3}],"lines":[3],"source":{"name":"a.py","path":"/a.py"},"sourceModified":false}
                4 setDebuggerProperty {"skipPrintBreakpointException":[],"skipSuspendOnBreakpointException":[]}
                5 setExceptionBreakpoints {"filters":["uncaught"]}
            event initialized
            ok 3 {"breakpoints": []}
            ok 4
            ok 5
                6 configurationDone {}
        "#]],
    );
    // Without debugging there may be no configuration at all.
    check(
        true,
        &[INITIALIZE, "ok 2", "after 100", r#"event exited {"exitCode": 0}"#, "event terminated"],
        expect![[r#"
                1 initialize
            ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
                2 launch {"program":"a.py"}
            ok 2
            after 100
            event exited {"exitCode": 0}
            event terminated
                3 disconnect {"restart":false,"terminateDebuggee":true}
                ENDED Some(0) plain
        "#]],
    );
}

#[test]
fn starts_that_fail_tell_the_real_cause() {
    check(
        false,
        &["no 1 wrong version"],
        expect![[r#"
            1 initialize
        no 1 wrong version
            2 disconnect {"restart":false,"terminateDebuggee":true}
            ENDED None not started: wrong version
    "#]],
    );
    check(
        false,
        &[INITIALIZE, "no 2 no such program"],
        expect![[r#"
            1 initialize
        ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
            2 launch {"program":"a.py"}
        no 2 no such program
            3 disconnect {"restart":false,"terminateDebuggee":true}
            ENDED None not started: no such program
    "#]],
    );
    let injection = r#"event output {"category": "stderr", "output": "Code injection into PID=1 failed"}"#;
    check(
        false,
        &[INITIALIZE, injection, "after 200"],
        expect![[r#"
                1 initialize
            ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
                2 launch {"program":"a.py"}
            event output {"category": "stderr", "output": "Code injectio
                Printed(Stderr, "Code injection into PID=1 failed")
            after 200
                3 disconnect {"restart":false,"terminateDebuggee":true}
                ENDED None not started: `launch` failed
        "#]],
    );
    check(
        false,
        &[INITIALIZE, "event terminated"],
        expect![[r#"
            1 initialize
        ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
            2 launch {"program":"a.py"}
        event terminated
            3 disconnect {"restart":false,"terminateDebuggee":true}
            ENDED None not started: the debug adapter gave up before the program began
    "#]],
    );
    check(
        false,
        &[INITIALIZE, "closed exited with code 1"],
        expect![[r#"
            1 initialize
        ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
            2 launch {"program":"a.py"}
        closed exited with code 1
            3 disconnect {"restart":false,"terminateDebuggee":true}
            ENDED None not started: the debug adapter exited with code 1
    "#]],
    );
}

#[test]
fn a_start_that_fails_once_configured_tells_the_real_cause() {
    let configured =
        [INITIALIZE, "event initialized", "ok 3", "ok 4", "ok 5", "no 6 expected a stopped process"];
    check(
        false,
        &[&configured[..], &["no 2 no such program"]].concat(),
        expect![[r#"
                1 initialize
            ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
                2 launch {"program":"a.py"}
            event initialized
                3 setBreakpoints {"breakpoints":[{"line":3}],"lines":[3],"source":{"name":"a.py","path":"/a.py"},"sourceModified":false}
                4 setDebuggerProperty {"skipPrintBreakpointException":[],"skipSuspendOnBreakpointException":[]}
                5 setExceptionBreakpoints {"filters":["uncaught"]}
            ok 3
                bound 7 verified true line None
            ok 4
            ok 5
                6 configurationDone {}
            no 6 expected a stopped process
            no 2 no such program
                7 disconnect {"restart":false,"terminateDebuggee":true}
                ENDED None not started: no such program
        "#]],
    );
    check(
        false,
        &[&configured[..], &["after 200"]].concat(),
        expect![[r#"
                1 initialize
            ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
                2 launch {"program":"a.py"}
            event initialized
                3 setBreakpoints {"breakpoints":[{"line":3}],"lines":[3],"source":{"name":"a.py","path":"/a.py"},"sourceModified":false}
                4 setDebuggerProperty {"skipPrintBreakpointException":[],"skipSuspendOnBreakpointException":[]}
                5 setExceptionBreakpoints {"filters":["uncaught"]}
            ok 3
                bound 7 verified true line None
            ok 4
            ok 5
                6 configurationDone {}
            no 6 expected a stopped process
            after 200
                7 disconnect {"restart":false,"terminateDebuggee":true}
                ENDED None not started: expected a stopped process
        "#]],
    );
}

/// The lines up to a stop that was told.
fn to_stop() -> Vec<&'static str> {
    let breakpoints = r#"ok 3 {"breakpoints": [{"id": 0, "verified": true, "line": 3}]}"#;
    vec![INITIALIZE, "event initialized", breakpoints, "ok 4", "ok 5", "ok 6", "ok 2", STOPPED, "ok 7"]
}

/// Only what follows the lines of [`to_stop`] is compared.
fn check_after_stop(lines: &[&str], expected: Expect) {
    let mut driver = Driver::new(false);
    driver.input(Input::Connected);
    to_stop().into_iter().for_each(|line| driver.line(line));
    driver.text.clear();
    for line in lines {
        driver.text.push_str(&format!("{line:.60}\n"));
        driver.line(line);
    }
    expected.assert_eq(&driver.text);
}

#[test]
fn a_late_continued_does_not_undo_a_newer_stop() {
    check_after_stop(
        &["continue 1", STOPPED, "ok 8", "ok 9", "event continued", "ask threads"],
        expect![[r#"
            continue 1
                8 continue {"threadId":1}
            event stopped {"reason": "breakpoint", "threadId": 1, "allTh
                Resumed { thread_id: None }
                9 stackTrace {"levels":20,"startFrame":0,"threadId":1}
            ok 8
            ok 9
                STOPPED thread 1 hit Some([7]) frames 0 variables 0 exception null
            event continued
            ask threads
                10 threads {}
        "#]],
    );
    // One that nobody owes means that somebody else let it go on.
    check_after_stop(
        &["continue 1", "event continued", STOPPED, "ok 9", "event continued"],
        expect![[r#"
            continue 1
                8 continue {"threadId":1}
            event continued
            event stopped {"reason": "breakpoint", "threadId": 1, "allTh
                Resumed { thread_id: None }
                9 stackTrace {"levels":20,"startFrame":0,"threadId":1}
            ok 9
                STOPPED thread 1 hit Some([7]) frames 0 variables 0 exception null
            event continued
                Resumed { thread_id: None }
        "#]],
    );
}

#[test]
fn a_refused_resume_leaves_the_program_stopped() {
    check_after_stop(
        &["continue 1", "no 8 not now", "continue 1", "ok 9"],
        expect![[r#"
            continue 1
                8 continue {"threadId":1}
            no 8 not now
                ResumeRefused { thread_id: 1, message: "not now" }
            continue 1
                9 continue {"threadId":1}
            ok 9
                Resumed { thread_id: None }
        "#]],
    );
}

#[test]
fn a_question_that_a_resume_overtakes_is_given_up_in_time() {
    check_after_stop(
        &["ask threads", "continue 1", "ok 9", "after 3999", "after 1", "ok 8"],
        expect![[r#"
            ask threads
                8 threads {}
            continue 1
                9 continue {"threadId":1}
            ok 9
                Resumed { thread_id: None }
            after 3999
            after 1
                answer 2: Err("the program went on before this was answered")
            ok 8
        "#]],
    );
    // In time, or about a program that did not go on after all, it is answered.
    check_after_stop(
        &["ask threads", "continue 1", "ok 8", "after 4000"],
        expect![[r#"
            ask threads
                8 threads {}
            continue 1
                9 continue {"threadId":1}
            ok 8
                answer 2: Ok(Object {})
            after 4000
        "#]],
    );
    check_after_stop(
        &["ask threads", "continue 1", "no 9 not now", "after 4000", "ok 8"],
        expect![[r#"
            ask threads
                8 threads {}
            continue 1
                9 continue {"threadId":1}
            no 9 not now
                ResumeRefused { thread_id: 1, message: "not now" }
            after 4000
            ok 8
                answer 2: Ok(Object {})
        "#]],
    );
}

#[test]
fn exceptions_are_asked_for_and_slow_answers_are_not_waited_for() {
    let stopped = r#"event stopped {"reason": "exception", "threadId": 1}"#;
    check_after_stop(
        &["continue 1", "ok 8", stopped, "ok 9", r#"ok 10 {"exceptionId": "E"}"#],
        expect![[r#"
            continue 1
                8 continue {"threadId":1}
            ok 8
                Resumed { thread_id: None }
            event stopped {"reason": "exception", "threadId": 1}
                9 stackTrace {"levels":20,"startFrame":0,"threadId":1}
                10 exceptionInfo {"threadId":1}
            ok 9
            ok 10 {"exceptionId": "E"}
                STOPPED thread 1 hit None frames 0 variables 0 exception "E"
        "#]],
    );
    check_after_stop(
        &["continue 1", "ok 8", stopped, "after 4000", "after 2000"],
        expect![[r#"
            continue 1
                8 continue {"threadId":1}
            ok 8
                Resumed { thread_id: None }
            event stopped {"reason": "exception", "threadId": 1}
                9 stackTrace {"levels":20,"startFrame":0,"threadId":1}
                10 exceptionInfo {"threadId":1}
            after 4000
            after 2000
                STOPPED thread 1 hit None frames 0 variables 0 exception null
        "#]],
    );
}

#[test]
fn every_end_is_an_end() {
    check_after_stop(
        &["stop", "ask threads", "ok 8"],
        expect![[r#"
        stop
            8 disconnect {"restart":false,"terminateDebuggee":true}
        ask threads
            9 threads {}
        ok 8
            answer 2: Err("the session has ended")
            ENDED None asked
    "#]],
    );
    // Of what is broken off an adapter tells how that looks from inside.
    check_after_stop(
        &["ask threads", "stop", "no 8 No more messages", "ok 9"],
        expect![[r#"
        ask threads
            8 threads {}
        stop
            9 disconnect {"restart":false,"terminateDebuggee":true}
        no 8 No more messages
            answer 2: Err("the session has ended")
        ok 9
            ENDED None asked
    "#]],
    );
    check_after_stop(
        &["stop", "after 1000"],
        expect![[r#"
        stop
            8 disconnect {"restart":false,"terminateDebuggee":true}
        after 1000
            ENDED None asked
    "#]],
    );
    check_after_stop(
        &["continue 1", "ask threads", "closed was killed by signal 9", "ask threads"],
        expect![[r#"
            continue 1
                8 continue {"threadId":1}
            ask threads
                9 threads {}
            closed was killed by signal 9
                answer 2: Err("the session has ended")
                ENDED None lost: was killed by signal 9
            ask threads
                answer 2: Err("the session has ended")
        "#]],
    );
    check_after_stop(
        &["continue 1", "event terminated", "after 200"],
        expect![[r#"
        continue 1
            8 continue {"threadId":1}
        event terminated
        after 200
            9 disconnect {"restart":false,"terminateDebuggee":true}
            ENDED None plain
    "#]],
    );
    check_after_stop(
        &["continue 1", r#"event exited {"exitCode": 0}"#, "after 3000"],
        expect![[r#"
        continue 1
            8 continue {"threadId":1}
        event exited {"exitCode": 0}
        after 3000
            9 disconnect {"restart":false,"terminateDebuggee":true}
            ENDED Some(0) plain
    "#]],
    );
}

#[test]
fn wishes_of_the_adapter_are_passed_on_or_refused() {
    let child = r#"request startDebugging {"request": "attach", "configuration": {"name": "child"}}"#;
    check_after_stop(
        &[child, "request runInTerminal", "request dance", "set", "ok 9"],
        expect![[r#"
        request startDebugging {"request": "attach", "configuration"
            StartChild { request_seq: 70, request: "attach", configuration: Object {"name": String("child")} }
        request runInTerminal
            RunInTerminal { request_seq: 70, arguments: Object {} }
        request dance
            reply {"command":"dance","message":"not supported","request_seq":70,"seq":8,"success":false,"type":"response"}
        set
            9 setBreakpoints {"breakpoints":[],"lines":[],"source":{"name":"a.py","path":"/a.py"},"sourceModified":false}
        ok 9
            answer 1: Ok(Null)
    "#]],
    );
}

#[test]
fn an_adapter_that_was_attached_to_starts_nothing_in_a_terminal() {
    let mut driver = Driver::with_adapter(false, Link::Connected);
    driver.input(Input::Connected);
    driver.text.push_str("request runInTerminal\n");
    driver.line(r#"request runInTerminal {"args": ["touch", "/tmp/here"]}"#);
    expect![[r#"
            1 initialize
        request runInTerminal
            reply {"command":"runInTerminal","message":"not by an adapter that was attached to","request_seq":70,"seq":2,"success":false,"type":"response"}
    "#]].assert_eq(&driver.text);
}

/// All orders of `items`.
fn orders<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    let Some((first, rest)) = items.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for order in orders(rest) {
        for at in 0..=order.len() {
            let mut longer = order.clone();
            longer.insert(at, first.clone());
            all.push(longer);
        }
    }
    all
}

/// Plays `lines` after a handshake, and gives the transcript.
fn play(handshake: &[&str], lines: &[&str]) -> (Driver, String) {
    let mut driver = Driver::new(false);
    driver.input(Input::Connected);
    for line in handshake.iter().chain(lines) {
        driver.line(line);
    }
    let text = std::mem::take(&mut driver.text);
    (driver, text)
}

#[test]
fn every_order_of_a_handshake_configures_once() {
    let lines = ["ok 2", "event initialized", "event initialized", "ok 3", "ok 4", "ok 5"];
    for order in orders(&lines) {
        // Nobody answers what was not asked.
        let position = |line: &str| order.iter().position(|known| *known == line).unwrap();
        if ["ok 3", "ok 4", "ok 5"].iter().any(|line| position(line) < position("event initialized")) {
            continue;
        }
        let (mut driver, text) = play(&[INITIALIZE], &order);
        assert_eq!(text.matches("configurationDone").count(), 1, "{order:?}\n{text}");
        assert_eq!(text.matches("setBreakpoints").count(), 1, "{order:?}\n{text}");
        assert!(!text.contains("ENDED"), "{order:?}\n{text}");
        driver.line("stop");
        driver.line("after 5000");
        assert!(driver.text.ends_with("ENDED None asked\n"), "{order:?}\n{}", driver.text);
    }
}

#[test]
fn every_order_of_an_end_ends_once() {
    let handshake = [INITIALIZE, "event initialized", "ok 3", "ok 4", "ok 5", "ok 6", "ok 2"];
    let lines = [
        STOPPED,
        r#"event exited {"exitCode": 3}"#,
        "event terminated",
        "closed gone",
        "stop",
        "event continued",
    ];
    for order in orders(&lines) {
        let (mut driver, text) = play(&handshake, &order);
        driver.line("after 5000");
        driver.line("after 5000");
        driver.line(STOPPED);
        driver.line("set");
        let all = text + &driver.text;
        assert_eq!(all.matches("ENDED").count(), 1, "{order:?}\n{all}");
        assert!(all.ends_with("answer 1: Err(\"the session has ended\")\n"), "{order:?}\n{all}");
        let position = |line: &str| order.iter().position(|known| *known == line).unwrap();
        // What is told before the connection goes is told with the end.
        let exited = position(lines[1]);
        if exited < position("closed gone")
            && exited < position("event terminated")
            && exited < position("stop")
        {
            assert!(all.contains("ENDED Some(3)"), "{order:?}\n{all}");
        }
    }
}

#[test]
fn every_order_of_a_stop_and_a_resume_leaves_one_truth() {
    let handshake =
        [INITIALIZE, "event initialized", "ok 3", "ok 4", "ok 5", "ok 6", "ok 2", STOPPED, "no 7 gone"];
    let stop = r#"event stopped {"reason": "step", "threadId": 1, "allThreadsStopped": true}"#;
    for order in orders(&["ok 8", "event continued", stop]) {
        let (mut driver, _) = play(&handshake, &[]);
        driver.line("next 1");
        for line in &order {
            driver.line(line);
        }
        // However late they come, the answer and `continued` belong to the step that is over.
        assert_eq!(driver.session.phase(), crate::types::Phase::Stopped, "{order:?}\n{}", driver.text);
        assert_eq!(driver.text.matches("Resumed").count(), 1, "{order:?}\n{}", driver.text);
        assert_eq!(driver.session.is_stopped(1), Some(true));
    }
}

#[test]
fn threads_that_stop_one_by_one_go_on_one_by_one() {
    let one = |thread: i64| format!(r#"event stopped {{"reason": "breakpoint", "threadId": {thread}}}"#);
    let handshake = [INITIALIZE, "event initialized", "ok 3", "ok 4", "ok 5", "ok 6", "ok 2"];
    let (mut driver, _) = play(&handshake, &[&one(1), &one(2), "next 1", "ok 9"]);
    assert_eq!(driver.session.phase(), crate::types::Phase::Stopped);
    assert_eq!((driver.session.is_stopped(1), driver.session.is_stopped(2)), (None, Some(true)));
    driver.line("continue 2");
    assert_eq!(driver.session.phase(), crate::types::Phase::Running);
    driver.line(&one(1));
    assert_eq!((driver.session.is_stopped(1), driver.session.is_stopped(2)), (Some(true), None));
}

#[test]
fn a_thread_left_behind_by_a_step_can_be_let_go() {
    let handshake = [INITIALIZE, "event initialized", "ok 3", "ok 4", "ok 5", "ok 6", "ok 2", STOPPED];
    let (mut driver, _) = play(&handshake, &["next 5", "ok 8"]);
    assert_eq!(driver.session.left_behind(), Some(1));
    driver.line("continue 1");
    assert_eq!(driver.session.left_behind(), None);
    assert!(driver.text.contains(r#"continue {"threadId":1}"#), "{}", driver.text);
}

#[test]
fn reasons_are_read_in_the_light_of_what_was_asked() {
    let handshake = [INITIALIZE, "event initialized", "ok 3", "ok 4", "ok 5", "ok 6", "ok 2"];
    let reason = |asked: &[&str], stop: &str| {
        let (mut driver, _) = play(&handshake, asked);
        driver.line(stop);
        let Some(capture) = driver.session.captures.pop() else { panic!("no stop") };
        capture.into_captured(&BTreeMap::new(), &Adapter::editor()).event.reason.unwrap()
    };
    let sigstop = r#"event stopped {"reason": "exception", "text": "signal SIGSTOP", "threadId": 1}"#;
    assert_eq!(reason(&["pause 1"], sigstop), "pause");
    assert_eq!(reason(&[], sigstop), "exception");
    let crash = r#"event stopped {"reason": "exception", "description": "signal SIGSEGV: x", "threadId": 1}"#;
    assert_eq!(reason(&["pause 1"], crash), "exception");
    let ours = r#"event stopped {"reason": "breakpoint", "threadId": 1, "hitBreakpointIds": [0]}"#;
    assert_eq!(reason(&["pause 1"], ours), "breakpoint");
}

#[test]
fn a_program_that_a_signal_ended_has_no_code_of_0() {
    let handshake = [INITIALIZE, "event initialized", "ok 3", "ok 4", "ok 5", "ok 6", "ok 2"];
    let crash = r#"event stopped {"reason": "signal", "threadId": 1}"#;
    let end = [r#"event exited {"exitCode": 0}"#, "event terminated"];
    // gdb does not name the signal; asked for its number, it tells it.
    let look = [crash, r#"ok 8 {"result": "11"}"#, r#"ok 7 {"stackFrames": []}"#];
    let lines = [look[0], look[1], look[2], "continue 1", "after 100", end[0], end[1]];
    let (_, text) = play(&handshake, &lines);
    assert!(text.contains("evaluate") && text.contains("ENDED None plain (SIGSEGV)"), "{text}");
}
