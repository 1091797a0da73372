//! The tool `debug`: every action on a Python program.

use serde_json::{Value, json};

use super::desk::{Desk, Said};

/// The id of the session that an answer is about.
fn session(said: &Said) -> String {
    said.value["snapshot"]["id"].as_str().unwrap_or_else(|| panic!("no snapshot: {said:#?}")).to_owned()
}

#[tokio::test]
async fn a_program_is_debugged_from_breakpoint_to_end() {
    let desk = Desk::open().await;
    // Before any session.
    let set = desk
        .debug("set_breakpoint", json!({"file": "main.py", "line": 3, "condition": "item == 'bread'"}))
        .await;
    assert_eq!(set.value["breakpoints"][0]["line"], 3, "{set:#?}");
    assert_eq!(set.value["breakpoints"][0]["condition"], "item == 'bread'");
    assert!(set.text.contains("main.py:3, if item == 'bread', not verified yet"), "{}", set.text);

    let launched = desk.debug("launch", json!({"program": "main.py"})).await;
    assert_eq!(launched.value["adapter"], "debugpy", "{launched:#?}");
    assert_eq!(launched.value["state"], "stopped");
    let snapshot = &launched.value["snapshot"];
    assert_eq!((&snapshot["status"], &snapshot["line"]), (&json!("stopped"), &json!(3)));
    assert_eq!(snapshot["frameName"], "price");
    assert_eq!(snapshot["source"]["path"], desk.path("main.py"));
    assert_eq!(snapshot["needsConfigurationDone"], false);
    assert!(launched.text.contains("main.py:3 in price (breakpoint #1)"), "{}", launched.text);
    assert!(launched.text.contains("item = 'bread', quantity = 2, total = 8"), "{}", launched.text);

    let stack = desk.debug("stack_trace", json!({})).await;
    let names: Vec<&str> = stack.value["stackFrames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| frame["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["price", "<module>"]);
    let top = desk.debug("stack_trace", json!({"levels": 1, "thread_id": snapshot["threadId"]})).await;
    assert_eq!(top.value["stackFrames"].as_array().unwrap().len(), 1, "{top:#?}");
    let threads = desk.debug("threads", json!({})).await;
    assert_eq!(threads.value["threads"][0]["stopped"], true, "{threads:#?}");

    let scopes = desk.debug("scopes", json!({})).await;
    let locals = &scopes.value["scopes"][0]["variablesReference"];
    assert!(locals.as_i64().unwrap() > 0, "{scopes:#?}");
    let outer = &stack.value["stackFrames"][1]["id"];
    desk.debug("scopes", json!({"frame_id": outer})).await;
    for arguments in [json!({"scope_id": locals}), json!({"variable_ref": locals, "scope_id": 999})] {
        let variables = desk.debug("variables", arguments).await;
        assert!(variables.text.contains("total: int = 8"), "{}", variables.text);
    }
    let page = desk.debug("variables", json!({"scope_id": locals, "count": 1, "start": 1})).await;
    assert_eq!(page.value["variables"].as_array().unwrap().len(), 1, "{page:#?}");

    let evaluated = desk.debug("evaluate", json!({"expression": "total + 1"})).await;
    assert_eq!(evaluated.value["evaluation"]["result"], "9", "{evaluated:#?}");
    assert_eq!(evaluated.text, "9 (int)");
    let done = desk.debug("evaluate", json!({"expression": "extra = 1000"})).await;
    assert_eq!(
        (&done.value["evaluation"]["result"], done.text.as_str()),
        (&json!(""), "Done; it has no value.")
    );
    let evaluated =
        desk.debug("evaluate", json!({"expression": "bill", "frame_id": outer, "context": "watch"})).await;
    assert_eq!(evaluated.value["evaluation"]["result"], "6");

    let stepped = desk.debug("step_out", json!({})).await;
    assert_eq!((&stepped.value["state"], &stepped.value["timedOut"]), (&json!("stopped"), &json!(false)));
    assert_eq!(stepped.value["snapshot"]["frameName"], "<module>");
    assert_eq!(session(&stepped), session(&launched));

    let removed = desk.debug("remove_breakpoint", json!({"file": "main.py", "line": 3})).await;
    assert_eq!(removed.value["breakpoints"], json!([]));
    let ended = desk.debug("continue", json!({})).await;
    assert_eq!(ended.value["state"], "terminated");
    assert!(ended.text.starts_with("The program ended with exit code 0."), "{}", ended.text);
    assert!(ended.text.contains("bill: 14"), "{}", ended.text);
    assert_eq!(ended.value["snapshot"]["exitCode"], 0, "{ended:#?}");
}

#[tokio::test]
async fn a_program_without_breakpoints_stops_at_its_entry_and_is_stepped() {
    let desk = Desk::open().await;
    let launched = desk.debug("launch", json!({"program": "main.py", "timeout": 20})).await;
    assert_eq!(
        (&launched.value["snapshot"]["line"], &launched.value["state"]),
        (&json!(1), &json!("stopped"))
    );
    // Hit counts, conditions and messages work on lines; a message does not stop.
    desk.debug("set_breakpoint", json!({"file": "main.py", "line": 9, "hit_condition": "== 2"})).await;
    let logged = desk
        .debug("set_breakpoint", json!({"file": "main.py", "line": 2, "log_message": "buys {item}"}))
        .await;
    assert!(logged.text.contains("logs \"buys {item}\""), "{}", logged.text);
    let stopped = desk.debug("continue", json!({})).await;
    assert_eq!(stopped.value["snapshot"]["line"], 9, "{stopped:#?}");
    let item = desk.debug("evaluate", json!({"expression": "item"})).await;
    assert_eq!(item.value["evaluation"]["result"], "'bread'", "the second hit");
    let inside = desk.debug("step_in", json!({})).await;
    assert_eq!(
        (&inside.value["snapshot"]["frameName"], &inside.value["snapshot"]["line"]),
        (&json!("price"), &json!(2))
    );
    let over = desk.debug("step_over", json!({})).await;
    assert_eq!(over.value["snapshot"]["line"], 3);
    let output = desk.debug_until("output", json!({}), |said| said.text.contains("bread")).await;
    assert!(output.value["output"].as_str().unwrap().contains("buys apple"), "{output:#?}");
    let sessions = desk.debug("sessions", json!({})).await;
    assert_eq!(sessions.value["sessions"].as_array().unwrap().len(), 1, "{sessions:#?}");
    let ended = desk.debug("terminate", json!({})).await;
    assert_eq!(ended.value["snapshot"]["status"], "terminated", "{ended:#?}");
    let none = desk.debug("terminate", json!({})).await;
    assert_eq!(none.text, "No debug session to terminate.");
}

#[tokio::test]
async fn arguments_environment_and_folder_reach_the_program() {
    let desk = Desk::open().await;
    let launched = desk
        .debug(
            "launch",
            json!({
                "program": "../args.py", "cwd": "src", "args": ["x", "y z"], "env": {"MOOD": "fine"},
                "adapter": "debugpy", "stop_on_entry": false,
            }),
        )
        .await;
    assert_eq!(launched.value["state"], "terminated", "{launched:#?}");
    assert!(launched.text.contains("['x', 'y z'] fine src"), "{}", launched.text);
}

#[tokio::test]
async fn hits_are_those_at_which_the_condition_holds() {
    for (hits, expected) in [("== 3", "4"), ("> 2", "4"), ("% 4", "6"), ("3", "4")] {
        let desk = Desk::open().await;
        let line =
            json!({"file": "count.py", "line": 3, "condition": "i % 2 == 0 # even", "hit_condition": hits});
        desk.debug("set_breakpoint", line).await;
        let launched = desk.debug("launch", json!({"program": "count.py"})).await;
        assert_eq!(launched.value["state"], "stopped", "{hits}: {launched:#?}");
        let evaluated = desk.debug("evaluate", json!({"expression": "i"})).await;
        assert!(evaluated.text.starts_with(expected), "{hits}: {}", evaluated.text);
    }
}

#[tokio::test]
async fn a_signal_that_ends_a_program_is_named() {
    let desk = Desk::open().await;
    std::fs::write(desk.path("killed.py"), "import os\nos.kill(os.getpid(), 9)\n").unwrap();
    let launched = desk.debug("launch", json!({"program": "killed.py", "stop_on_entry": false})).await;
    let ended = "The program was ended by SIGKILL, or exited with code 247 itself.";
    assert!(launched.text.contains(ended), "{}", launched.text);
}

#[tokio::test]
async fn a_language_that_no_adapter_knows_is_refused() {
    let desk = Desk::open().await;
    std::fs::write(desk.path("package.json"), "{}").unwrap();
    std::fs::write(desk.path("x.lua"), "print(1)\n").unwrap();
    let refused = desk.refused("debug", json!({"action": "launch", "program": "x.lua"})).await;
    assert!(refused.text.starts_with("No debug adapter for .lua files; known are "), "{}", refused.text);
}

#[tokio::test]
async fn of_many_breakpoints_in_a_file_those_nearby_are_listed() {
    let desk = Desk::open().await;
    std::fs::write(desk.path("long.py"), "pass\n".repeat(200)).unwrap();
    let mut longest = 0;
    for line in 1..=200 {
        let set = desk.debug("set_breakpoint", json!({"file": "long.py", "line": line})).await;
        assert!(set.text.contains(&format!("long.py:{line},")), "{}", set.text);
        longest = longest.max(set.text.len());
    }
    assert!(longest < 400, "{longest}");
    let removed = desk.debug("remove_breakpoint", json!({"file": "long.py", "line": 100})).await;
    assert!(
        removed.text.contains("long.py:99,") && removed.text.contains("and 196 more"),
        "{}",
        removed.text
    );
}

#[tokio::test]
async fn a_module_is_launched_as_python_does() {
    let desk = Desk::open().await;
    desk.debug("set_breakpoint", json!({"file": "greet/__main__.py", "line": 2})).await;
    let launched = desk.debug("launch", json!({"module": "greet", "args": ["x"]})).await;
    assert_eq!(launched.value["state"], "stopped", "{launched:#?}");
    let ended = desk.debug("continue", json!({})).await;
    assert!(ended.text.contains("['x'] None"), "{}", ended.text);

    let both = json!({"action": "launch", "module": "greet", "program": "main.py"});
    let both = desk.refused("debug", both).await;
    assert!(both.text.contains("program or module"), "{}", both.text);
    let missing = desk.debug("launch", json!({"module": "gret"})).await;
    assert!(missing.text.contains("No module named gret"), "{}", missing.text);
}

#[tokio::test]
async fn a_running_program_is_paused_and_its_output_told_apart() {
    let desk = Desk::open().await;
    let launched = desk.debug("launch", json!({"program": "wait.py", "stop_on_entry": false})).await;
    assert_eq!((&launched.value["state"], &launched.value["timedOut"]), (&json!("running"), &json!(true)));
    let id = session(&launched);
    let errors = desk
        .debug_until("output", json!({"category": "stderr", "session": id}), |said| said.text.contains("two"))
        .await;
    assert!(!errors.text.contains("one"), "{}", errors.text);
    let all = desk.debug("output", json!({"since": 0, "max_length": 10_000})).await;
    assert!(all.text.contains("[stdout]\none") && all.text.contains("[stderr]\ntwo"), "{}", all.text);
    let newer = desk.debug("output", json!({"since": all.value["outputCursor"]})).await;
    assert_eq!(newer.value["output"], "", "{newer:#?}");

    let running = desk.debug("continue", json!({"timeout": 5})).await;
    assert_eq!((&running.value["state"], &running.value["timedOut"]), (&json!("running"), &json!(true)));
    let paused = desk.debug("pause", json!({})).await;
    assert_eq!(paused.value["snapshot"]["status"], "stopped", "{paused:#?}");
    let again = desk.debug("pause", json!({})).await;
    assert_eq!(again.value["snapshot"]["status"], "stopped", "{again:#?}");
    std::fs::write(desk.path("go"), "").unwrap();
    let ended = desk.debug("continue", json!({})).await;
    assert!(ended.text.contains("went"), "{}", ended.text);
}

#[tokio::test]
async fn functions_stop_programs_too() {
    let desk = Desk::open().await;
    let set =
        desk.debug("set_breakpoint", json!({"function": "price", "condition": "item == 'bread'"})).await;
    assert_eq!(set.value["functionBreakpoints"][0]["name"], "price", "{set:#?}");
    let launched = desk.debug("launch", json!({"program": "main.py"})).await;
    assert_eq!(launched.value["snapshot"]["frameName"], "price", "{launched:#?}");
    let removed = desk.debug("remove_breakpoint", json!({"function": "price"})).await;
    assert_eq!(removed.value["functionBreakpoints"], json!([]));
    assert!(removed.text.contains("No function breakpoints are left."), "{}", removed.text);
    let ended = desk.debug("continue", json!({})).await;
    assert_eq!(ended.value["state"], "terminated");
}

#[tokio::test]
async fn modules_come_in_pages_and_requests_of_any_kind_pass() {
    let desk = Desk::open().await;
    desk.debug("launch", json!({"program": "main.py"})).await;
    let modules = desk.debug("modules", json!({})).await;
    let all = modules.value["modules"].as_array().unwrap().clone();
    assert!(!all.is_empty(), "{modules:#?}");
    let page = desk.debug("modules", json!({"start_module": 0, "module_count": 1})).await;
    assert_eq!(page.value["modules"].as_array().unwrap().len(), 1, "{page:#?}");
    let top = &desk.debug("stack_trace", json!({})).await.value["stackFrames"][0]["id"].clone();
    let custom = desk
        .debug(
            "custom_request",
            json!({"command": "completions", "arguments": {"frameId": top, "text": "pri", "column": 4}}),
        )
        .await;
    let labels: Vec<&Value> = custom.value["customBody"]["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| &target["label"])
        .collect();
    assert!(labels.contains(&&json!("print")), "{custom:#?}");
}

#[tokio::test]
async fn two_sessions_run_side_by_side() {
    let desk = Desk::open().await;
    let first = session(&desk.debug("launch", json!({"program": "main.py"})).await);
    let second = session(&desk.debug("launch", json!({"program": "crash.py"})).await);
    assert_ne!(first, second);
    let stepped = desk.debug("step_over", json!({"session": first})).await;
    assert_eq!(session(&stepped), first);
    let evaluated = desk.debug("evaluate", json!({"expression": "__file__", "session": first})).await;
    assert!(evaluated.text.contains("main.py"), "{}", evaluated.text);
    desk.debug("terminate", json!({"session": first})).await;
    let rest = desk.debug("evaluate", json!({"expression": "__file__"})).await;
    assert!(rest.text.contains("crash.py"), "{}", rest.text);
}

#[tokio::test]
async fn an_end_says_which_breakpoints_were_never_hit() {
    let desk = Desk::open().await;
    desk.debug("set_breakpoint", json!({"file": "main.py", "line": 3, "condition": "total > 100"})).await;
    let launched = desk.debug("launch", json!({"program": "main.py"})).await;
    assert_eq!(launched.value["state"], "terminated");
    assert!(
        launched.text.contains("Breakpoint 1 (main.py:3) was never hit: line 3 was never reached while"),
        "{}",
        launched.text
    );
    assert_eq!(launched.value["breakpointsNotHit"][0]["line"], 3);

    desk.debug("remove_breakpoint", json!({"file": "main.py", "line": 3})).await;
    desk.debug("set_breakpoint", json!({"function": "nobody_calls_this"})).await;
    desk.debug("set_breakpoint", json!({"function": "price"})).await;
    let launched = desk.debug("launch", json!({"program": "main.py", "stop_on_entry": false})).await;
    assert_eq!(launched.value["state"], "stopped", "{launched:#?}");
    desk.debug("remove_breakpoint", json!({"function": "price"})).await;
    let ended = desk.debug("continue", json!({})).await;
    assert!(ended.text.contains("on function nobody_calls_this was never hit"), "{}", ended.text);
    assert_eq!(ended.value["breakpointsNotHit"].as_array().unwrap().len(), 1, "{ended:#?}");
}

#[tokio::test]
async fn a_breakpoint_left_from_other_work_is_explained_once() {
    let desk = Desk::open().await;
    std::fs::write(desk.path("other.py"), "print(1)\n").unwrap();
    desk.debug("set_breakpoint", json!({"file": "main.py", "line": 3})).await;
    let ended =
        async || desk.debug("launch", json!({"program": "other.py", "stop_on_entry": false})).await.text;
    let [first, second] = [ended().await, ended().await];
    assert!(first.contains("Breakpoint 1 (main.py:3) was never hit: line 3 was never reached."), "{first}");
    assert!(second.contains("As before, not hit: main.py:3."), "{second}");
    assert!(!second.contains("was never reached"), "{second}");
    // Of the program's own file it is told again, and so is another reason.
    desk.debug("set_breakpoint", json!({"file": "main.py", "line": 3, "condition": "total > 100"})).await;
    let [own, again] = ["main.py"; 2]
        .map(|program| desk.debug("launch", json!({"program": program, "stop_on_entry": false})));
    for text in [own.await.text, again.await.text] {
        assert!(text.contains("line 3 was never reached while"), "{text}");
    }
}

const ASKS: &str = "name = input('name? ')\nage = input('age? ')\nprint('hi', name, age)\n";

#[tokio::test]
async fn a_program_is_given_what_it_reads() {
    let desk = Desk::open().await;
    std::fs::write(desk.path("asks.py"), ASKS).unwrap();
    desk.debug("set_breakpoint", json!({"file": "asks.py", "line": 3})).await;
    let at_once = desk.debug("launch", json!({"program": "asks.py", "stdin": "Ada\n36"})).await;
    assert!(at_once.text.contains("age = '36'") && at_once.text.contains("name = 'Ada'"), "{}", at_once.text);
    let ended = desk.debug("continue", json!({})).await;
    assert!(ended.text.contains("hi Ada 36"), "{}", ended.text);
    assert_eq!(ended.value["state"], "terminated");

    let asks = desk.debug("launch", json!({"program": "asks.py", "stdin": "", "timeout": 5})).await;
    assert!(asks.text.contains("waiting on stdin: continue with `stdin`"), "{}", asks.text);
    let stopped = desk.debug("continue", json!({"stdin": "Bob\n7\n"})).await;
    assert!(stopped.text.contains("age = '7'"), "{}", stopped.text);
    desk.debug("terminate", json!({})).await;

    let deaf = desk.debug("launch", json!({"program": "main.py", "stop_on_entry": true})).await;
    assert_eq!(deaf.value["state"], "stopped", "{deaf:#?}");
    let refused = desk.debug_refused("continue", json!({"stdin": "x"})).await;
    assert!(refused.text.contains("no terminal to type into"), "{}", refused.text);
}

#[tokio::test]
async fn a_file_that_changed_since_the_program_started_is_told() {
    let desk = Desk::open().await;
    let note = "main.py changed since the program started";
    let launched = desk.debug("launch", json!({"program": "main.py"})).await;
    assert!(!launched.text.contains(note), "{}", launched.text);
    let set = desk.debug("set_breakpoint", json!({"file": "main.py", "line": 3})).await;
    assert!(!set.text.contains(note), "{}", set.text);
    let path = desk.path("main.py");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("# A line more.\n{text}")).unwrap();
    let set = desk.debug("set_breakpoint", json!({"file": "main.py", "line": 4})).await;
    assert!(set.text.contains(note), "{}", set.text);
    let stopped = desk.debug("continue", json!({})).await;
    assert!(stopped.text.contains(note), "{}", stopped.text);
    // A program that starts now has the new text, and one in another language never had it.
    let again = desk.debug("launch", json!({"program": "main.py"})).await;
    assert!(!again.text.contains("changed since"), "{}", again.text);
    std::fs::write(desk.path("later.go"), "package main\n").unwrap();
    let set = desk.debug("set_breakpoint", json!({"file": "later.go", "line": 1})).await;
    assert!(!set.text.contains("later.go changed since"), "{}", set.text);
}

#[tokio::test]
async fn a_breakpoint_in_a_file_that_was_deleted_is_removed() {
    let desk = Desk::open().await;
    for line in 2..=4 {
        desk.debug("set_breakpoint", json!({"file": "main.py", "line": line})).await;
    }
    std::fs::remove_file(desk.path("main.py")).unwrap();
    let removed = desk.debug("remove_breakpoint", json!({"file": "main.py", "line": 2})).await;
    assert_eq!(removed.value["breakpoints"].as_array().unwrap().len(), 2, "{removed:#?}");
    desk.call("debug_removeBreakpoint", json!({"file": "main.py", "line": 3})).await;
    let location = json!({"file_path": desk.path("main.py"), "line_number": 4});
    desk.call("remove_breakpoint", json!({"location": location})).await;
    let refused = desk.debug_refused("remove_breakpoint", json!({"file": "main.py", "line": 2})).await;
    assert!(refused.text.starts_with("There is no file \"main.py\" in this window."), "{}", refused.text);
}

#[tokio::test]
async fn an_exception_that_nobody_catches_is_told() {
    let desk = Desk::open().await;
    let launched = desk.debug("launch", json!({"program": "crash.py", "stop_on_entry": false})).await;
    assert_eq!(launched.value["snapshot"]["stopReason"], "exception", "{launched:#?}");
    assert!(launched.text.contains("division by zero"), "{}", launched.text);
}

#[tokio::test]
async fn a_port_is_attached_to() {
    let desk = Desk::open().await;
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut listening = std::process::Command::new(crate::support::agent::python())
        .args(["-Xfrozen_modules=off", "-m", "debugpy", "--listen", &port.to_string(), "--wait-for-client"])
        .arg(desk.path("main.py"))
        .current_dir(&desk.agent.root)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    desk.debug("set_breakpoint", json!({"file": "main.py", "line": 10})).await;
    // It takes one connection, so that trying whether it listens would be the end of it.
    let is_listening = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().any(|line| line.contains(&format!("0100007F:{port:04X} 00000000:0000 0A")))
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !is_listening() {
        assert!(std::time::Instant::now() < deadline, "debugpy does not listen");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let attached = desk.debug("attach", json!({"port": port, "host": "127.0.0.1"})).await;
    assert_eq!(attached.value["adapter"], "debugpy", "{attached:#?}");
    assert_eq!(attached.value["snapshot"]["line"], 10);
    let left = desk.debug("terminate", json!({})).await;
    assert!(
        left.text.starts_with(&format!("Detached from process {}; it keeps running.", listening.id())),
        "{left:#?}"
    );
    assert!(listening.wait().unwrap().success(), "it came to its end");
}

#[tokio::test]
async fn requests_that_let_the_program_go_on_wait_for_its_stop() {
    let desk = Desk::open().await;
    let request = |command: &str, arguments: Value| {
        let arguments = json!({"command": command, "arguments": arguments});
        let desk = &desk;
        async move { desk.debug("custom_request", arguments).await }
    };
    let chosen = request("setExceptionBreakpoints", json!({"filters": ["raised"]})).await;
    assert_eq!(chosen.value["exceptionBreakpoints"][0]["verified"], false, "{chosen:#?}");
    let launched = desk.debug("launch", json!({"program": "crash.py", "stop_on_entry": false})).await;
    assert_eq!(launched.value["snapshot"]["stopReason"], "exception", "{launched:#?}");
    let none = request("setExceptionBreakpoints", json!({"filters": []})).await;
    assert_eq!(none.value["exceptionBreakpoints"], json!([]), "{none:#?}");
    let ended = desk.debug("continue", json!({})).await;
    assert_eq!(ended.value["state"], "terminated", "nobody stops it any more: {ended:#?}");
    let reset = request("setExceptionBreakpoints", json!({})).await;
    assert!(reset.text.starts_with("Each debug adapter chooses its exceptions"), "{}", reset.text);

    let launched = desk.debug("launch", json!({"program": "main.py", "stop_on_entry": true})).await;
    let begun = &launched.value["snapshot"];
    let thread = json!({"threadId": begun["threadId"]});
    let next = request("next", thread.clone()).await;
    assert_eq!(next.value["state"], "stopped", "{next:#?}");
    assert_eq!(next.value["customBody"], json!({}));
    assert_ne!(next.value["snapshot"]["line"], begun["line"], "{next:#?}");
    let place = json!({"source": {"path": desk.path("main.py")}, "line": begun["line"]});
    let targets = request("gotoTargets", place).await;
    let target = &targets.value["customBody"]["targets"][0]["id"];
    let jumped = request("goto", json!({"threadId": begun["threadId"], "targetId": target})).await;
    assert_eq!(jumped.value["snapshot"]["line"], begun["line"], "{jumped:#?}");
    let again = request("restart", json!({})).await;
    assert_eq!(again.value["snapshot"]["id"], begun["id"], "{again:#?}");
    assert_eq!(again.value["snapshot"]["line"], begun["line"]);
    let ended = request("disconnect", json!({})).await;
    assert_eq!(ended.value["snapshot"]["status"], "terminated", "{ended:#?}");
}

#[tokio::test]
async fn clearing_all_breakpoints_takes_those_on_functions_too() {
    let desk = Desk::open().await;
    desk.debug("set_breakpoint", json!({"function": "price"})).await;
    let cleared = desk.call("remove_breakpoint", json!({"clear_all": true})).await;
    assert_eq!(cleared.value["message"], "Removed all breakpoints (1).", "{cleared:#?}");
    assert_eq!(cleared.value["removed"].as_array().map(Vec::len), Some(1), "{cleared:#?}");
    let cleared = desk.call("remove_breakpoint", json!({"clear_all": true})).await;
    assert_eq!(cleared.value["message"], "There were no breakpoints.", "{cleared:#?}");
}

/// Library code can be stepped into by whoever asks for it, and by nobody else.
#[tokio::test]
async fn library_code_is_within_reach_of_just_my_code() {
    let desk = Desk::open().await;
    std::fs::write(desk.path("dump.py"), "import json\ntext = json.dumps([1])\nprint(text)\n").unwrap();
    desk.debug("set_breakpoint", json!({"file": "dump.py", "line": 2})).await;
    for (options, expected) in [
        (json!({}), "dump.py"),
        (json!({"justMyCode": true}), "dump.py"),
        (json!({"justMyCode": false}), "json/__init__.py"),
    ] {
        desk.debug("launch", json!({"program": "dump.py", "arguments": options})).await;
        let stepped = desk.debug("step_in", json!({})).await;
        assert!(stepped.text.contains(expected), "{options}: {}", stepped.text);
        assert_eq!(stepped.text.contains("json/__init__.py"), expected != "dump.py", "{}", stepped.text);
        desk.debug("terminate", json!({})).await;
    }
}

#[tokio::test]
async fn all_breakpoints_of_a_file_are_removed_at_once() {
    let desk = Desk::open().await;
    for (file, line) in [("main.py", 2), ("main.py", 9), ("count.py", 3)] {
        desk.debug("set_breakpoint", json!({"file": file, "line": line})).await;
    }
    let removed = desk.debug("remove_breakpoint", json!({"file": "main.py"})).await;
    assert_eq!(removed.value["breakpoints"], json!([]));
    assert_eq!(removed.text, "2 breakpoints removed. No breakpoints are left in this file.");
    let again = desk.debug("remove_breakpoint", json!({"file": "main.py"})).await;
    assert!(again.text.starts_with("No breakpoint of yours was there. "), "{}", again.text);
    let launched = desk.debug("launch", json!({"program": "count.py"})).await;
    assert_eq!(launched.value["snapshot"]["line"], 3, "{launched:#?}");
}
