//! The toolset `quick`: its 14 tools with exactly the documented results.

use serde_json::{Value, json};

use super::desk::{Desk, Said};

/// The documented list is the text, and the object's `result`.
fn list(said: &Said) -> Vec<Value> {
    let list: Vec<Value> = serde_json::from_str(&said.text).unwrap();
    assert_eq!(said.value["result"], json!(list));
    list
}

/// The fields of an answer, beside `message`.
fn fields(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).filter(|name| *name != "message").collect()
}

#[tokio::test]
async fn a_file_is_debugged_without_any_configuration() {
    let desk = Desk::open().await;
    let set = desk
        .call("debug_setBreakpoint", json!({"file": "main.py", "line": 3, "condition": "item == 'bread'"}))
        .await;
    assert_eq!(set.value["id"], 1);
    assert_eq!(set.value["verified"], false, "nobody can know before a session");
    let listed = list(&desk.call("debug_listBreakpoints", json!({})).await);
    let expected =
        json!({"file": desk.path("main.py"), "line": 3, "condition": "item == 'bread'", "verified": false});
    assert_eq!(listed, [expected]);

    let started = desk.call("debug_start", json!({"file": "main.py"})).await;
    assert_eq!(started.value["status"], "stopped", "{started:#?}");
    assert_eq!(fields(&started.value), ["sessionId", "status"]);
    let status = desk.call("debug_getStatus", json!({})).await;
    let expected =
        json!({"active": true, "file": desk.path("main.py"), "line": 3, "function": "price", "paused": true});
    assert_eq!(status.value, expected);
    assert_eq!(list(&desk.call("debug_listBreakpoints", json!({})).await)[0]["verified"], true);

    let stack = list(&desk.call("debug_getStackTrace", json!({})).await);
    assert_eq!(fields(&stack[0]), ["file", "frameId", "line", "name"]);
    assert_eq!((&stack[0]["name"], &stack[1]["name"]), (&json!("price"), &json!("<module>")));
    let locals = list(&desk.call("debug_getVariables", json!({})).await);
    assert!(locals.contains(&json!({"name": "total", "value": "8", "type": "int"})), "{locals:#?}");
    let globals = list(&desk.call("debug_getVariables", json!({"scope": "global"})).await);
    assert!(globals.iter().any(|variable| variable["name"] == "PRICES"), "{globals:#?}");
    assert!(!globals.iter().any(|variable| variable["name"] == "total"), "{globals:#?}");
    let all = desk.call("debug_getVariables", json!({"scope": "all", "frameId": stack[1]["frameId"]})).await;
    assert!(list(&all).iter().any(|variable| variable["name"] == "bill"));

    let evaluated = desk.call("debug_evaluate", json!({"expression": "total * 2"})).await;
    assert_eq!(evaluated.value, json!({"result": "16", "type": "int"}));
    let outer = json!({"expression": "bill", "frameId": stack[1]["frameId"]});
    assert_eq!(desk.call("debug_evaluate", outer).await.value["result"], "6");

    let out = desk.call("debug_stepOut", json!({})).await;
    assert_eq!((&out.value["line"], &out.value["file"]), (&json!(9), &json!(desk.path("main.py"))));
    let removed = desk.call("debug_removeBreakpoint", json!({"file": "main.py", "line": 3})).await;
    assert_eq!(removed.value, json!({"status": "removed"}));
    let ended = desk.call("debug_continue", json!({})).await;
    assert_eq!(ended.value["stopped"], false);
    let reason = ended.value["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("The program ended with exit code 0.") && reason.contains("bill: 14"),
        "{reason}"
    );
    let status = desk.call("debug_getStatus", json!({})).await;
    assert_eq!((&status.value["active"], &status.value["paused"]), (&json!(false), &json!(false)));
}

#[tokio::test]
async fn a_program_is_entered_and_stepped() {
    let desk = Desk::open().await;
    let started =
        desk.call("debug_start", json!({"file": "main.py", "type": "python", "stopOnEntry": true})).await;
    assert_eq!(started.value["status"], "stopped");
    assert_eq!(desk.call("debug_getStatus", json!({})).await.value["line"], 1);
    let over = desk.call("debug_stepOver", json!({})).await;
    assert_eq!(over.value["line"], 6, "{over:#?}");
    desk.call("debug_setBreakpoint", json!({"file": "main.py", "line": 9})).await;
    let stopped = desk.call("debug_continue", json!({})).await;
    assert_eq!(
        (&stopped.value["stopped"], &stopped.value["reason"], &stopped.value["line"]),
        (&json!(true), &json!("breakpoint"), &json!(9))
    );
    let into = desk.call("debug_stepInto", json!({})).await;
    assert_eq!(into.value["line"], 2);
    let ended = desk.call("debug_stop", json!({})).await;
    assert_eq!(ended.value, json!({"status": "terminated"}));
}

#[tokio::test]
async fn a_running_program_is_paused_and_its_status_is_true() {
    let desk = Desk::open().await;
    // The answer of a program that never stops comes when the wait ends; meanwhile it can be paused.
    let start = desk.call("debug_start", json!({"file": "endless.py"}));
    let pause = async {
        loop {
            let status = desk.call("debug_getStatus", json!({})).await;
            if status.value["active"] == true {
                assert_eq!((&status.value["paused"], &status.value["line"]), (&json!(false), &Value::Null));
                assert_eq!(status.value["file"], desk.path("endless.py"));
                let paused = desk.call("debug_pause", json!({})).await;
                if paused.value["line"].is_i64() {
                    break paused;
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let (started, paused) = tokio::join!(start, pause);
    assert_eq!(started.value["status"], "stopped", "{started:#?}");
    assert!(matches!(paused.value["line"].as_i64(), Some(0..=3)), "{paused:#?}");
    assert_eq!(desk.call("debug_getStatus", json!({})).await.value["paused"], true);
}

#[tokio::test]
async fn a_server_that_is_started_says_what_it_printed() {
    const SERVER: &str = "import http.server\nhere = http.server.HTTPServer(('127.0.0.1', 0), None)\nprint('serves', flush=True)\nhere.serve_forever()\n";
    let desk = Desk::open().await;
    std::fs::write(desk.path("server.py"), SERVER).unwrap();
    let started = desk.call("debug_start", json!({"file": "server.py"})).await;
    assert_eq!(started.value["status"], "running", "{started:#?}");
    let message = "The program is still running: debug_pause stops it. Printed: serves";
    assert_eq!(started.value["message"], message);
    assert_eq!(desk.call("debug_stop", json!({})).await.value["status"], "terminated");
}

#[tokio::test]
async fn a_program_that_ends_tells_why() {
    let desk = Desk::open().await;
    desk.call("debug_setBreakpoint", json!({"file": "main.py", "line": 3, "condition": "total > 100"})).await;
    let started = desk.call("debug_start", json!({"file": "main.py"})).await;
    assert_eq!(started.value["status"], "terminated");
    let message = started.value["message"].as_str().unwrap();
    assert!(message.contains("Breakpoint 1 (main.py:3) was never hit"), "{message}");
    let started = desk.call("debug_start", json!({"file": "crash.py"})).await;
    assert_eq!(started.value["status"], "stopped", "at the exception: {started:#?}");
    let stepped = desk.call("debug_stepOver", json!({})).await;
    assert_eq!(
        (&stepped.value["line"], &stepped.value["file"]),
        (&Value::Null, &Value::Null),
        "{stepped:#?}"
    );
    assert!(stepped.value["message"].as_str().unwrap().contains("exit code 1"), "{stepped:#?}");
}

#[tokio::test]
async fn bad_input_is_told() {
    let desk = Desk::open().await;
    for tool in [
        "debug_stop",
        "debug_continue",
        "debug_stepOver",
        "debug_pause",
        "debug_getStackTrace",
        "debug_getVariables",
    ] {
        let said = desk.refused(tool, json!({})).await;
        assert_eq!(said.value["code"], "no_session", "{tool}: {said:#?}");
        assert!(said.value["hint"].as_str().unwrap().contains("debug_start"), "{tool}: {said:#?}");
    }
    for (tool, arguments, sentence) in [
        ("debug_start", json!({}), "\"file\" is missing"),
        ("debug_start", json!({"file": "gone.py"}), "There is no file"),
        ("debug_start", json!({"file": "twin.py"}), "could be any of 2 files"),
        ("debug_start", json!({"file": "main.py", "type": "cobol"}), "cobol"),
        (
            "debug_start",
            json!({"file": "main.py", "stopOnEntry": "yes"}),
            "\"stopOnEntry\" must be true or false",
        ),
        ("debug_setBreakpoint", json!({"file": "main.py", "line": 0}), "\"line\" must be an integer from 1"),
        ("debug_setBreakpoint", json!({"file": "main.py", "line": 99}), "has 10 lines"),
        ("debug_removeBreakpoint", json!({"file": "main.py", "line": 3}), "There is no breakpoint"),
        ("debug_getVariables", json!({"scope": "outer"}), "\"scope\" must be one of"),
        ("debug_evaluate", json!({"expression": ""}), "\"expression\" must be a non-empty string"),
        ("debug_stop", json!({"force": true}), "unknown argument \"force\""),
    ] {
        let said = desk.refused(tool, arguments.clone()).await;
        assert!(said.value["message"].as_str().unwrap().contains(sentence), "{tool} {arguments}: {said:#?}");
    }
}
