//! Bad input through an official client: one clear sentence each, the right code, and nothing is lost.

use std::path::PathBuf;

use baton_tests::client::{Client, ClientKind, content_of};
use baton_tests::story::{configurations, debug_to_stop, step};
use baton_tests::world::World;
use serde_json::{Value, json};

struct Bench {
    client: Client,
    folder: PathBuf,
    world: World,
}

impl Bench {
    fn new() -> Self {
        let mut world = World::new();
        world.window("shop");
        world.await_live("shop");
        Self { client: world.client(ClientKind::Python1), folder: world.folder("shop"), world }
    }

    /// A call that must fail with this code (any, when empty), a sentence that names `named`, and a hint.
    fn refused(&mut self, code: &str, named: &str, tool: &str, arguments: Value) -> Value {
        let result = self.client.try_call(tool, arguments.clone());
        let result = result.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"));
        let content = content_of(&result).clone();
        assert_eq!(result["isError"], true, "{tool} {arguments}: {content:#}");
        assert_eq!(content["status"], "error", "{tool} {arguments}: {content:#}");
        let message = content["message"].as_str().unwrap_or_default();
        let hint = content["hint"].as_str().unwrap_or_default();
        assert!(!message.is_empty() && !hint.is_empty(), "{tool} {arguments}: {content:#}");
        assert!(
            format!("{message} {hint}").contains(named),
            "{tool} {arguments} does not name {named}: {content:#}"
        );
        if !code.is_empty() {
            assert_eq!(content["code"], code, "{tool} {arguments}: {content:#}");
        }
        content
    }

    /// The window still works.
    fn assert_healthy(&mut self) {
        self.client.expect("success", "get_breakpoints", json!({}));
        assert!(self.world.status().is_some());
    }
}

#[test]
fn unknown_tools_and_wrong_arguments() {
    let mut bench = Bench::new();
    match bench.client.try_call("no_such_tool", json!({})) {
        Ok(result) => assert!(result["isError"] == true && result.to_string().contains("no_such_tool")),
        Err(error) => assert!(error.contains("no_such_tool"), "{error}"),
    }
    let cases = [
        ("file_path", "set_breakpoint", json!({ "line_number": 8 })),
        ("line_number", "set_breakpoint", json!({ "file_path": "main.py" })),
        ("line_number", "set_breakpoint", json!({ "file_path": "main.py", "line_number": "eight" })),
        ("line_number", "set_breakpoint", json!({ "file_path": "main.py", "line_number": 1.5 })),
        ("line_number", "set_breakpoint", json!({ "file_path": "main.py", "line_number": null })),
        ("file_path", "set_breakpoint", json!({ "file_path": ["main.py"], "line_number": 8 })),
        ("configuration_name", "start_debugging", json!({})),
        ("no_debug", "start_debugging", json!({ "configuration_name": "bill", "no_debug": "yes" })),
        ("timeout", "start_debugging", json!({ "configuration_name": "bill", "timeout": 0 })),
        ("timeout", "start_debugging", json!({ "configuration_name": "bill", "timeout": 301 })),
        ("thread_id", "continue_debugging", json!({})),
        ("step_type", "step_execution", json!({ "thread_id": 1 })),
        ("step_type", "step_execution", json!({ "thread_id": 1, "step_type": "sideways" })),
        ("frame_id", "get_scopes", json!({})),
        ("variables_reference", "get_variables", json!({ "variables_reference": "x" })),
        ("expression", "evaluate_expression", json!({ "frame_id": 1 })),
        ("breakpoint_id", "remove_breakpoint", json!({})),
        ("clear_all", "remove_breakpoint", json!({ "clear_all": false })),
        ("breakpoint_id", "remove_breakpoint", json!({ "breakpoint_id": 1, "clear_all": true })),
    ];
    for (named, tool, arguments) in cases {
        bench.refused("", named, tool, arguments);
    }
    bench.assert_healthy();
    bench.client.close();
}

#[test]
fn places_that_are_not_there() {
    let mut bench = Bench::new();
    bench.refused("", "gone.py", "set_breakpoint", json!({ "file_path": "gone.py", "line_number": 1 }));
    bench.refused(
        "",
        "/nowhere/x.py",
        "set_breakpoint",
        json!({ "file_path": "/nowhere/x.py", "line_number": 1 }),
    );
    for line in [-1_i64, 0, 23, 9_999, i64::MAX] {
        bench.refused("", "", "set_breakpoint", json!({ "file_path": "main.py", "line_number": line }));
    }
    bench.refused("", "99", "remove_breakpoint", json!({ "breakpoint_id": 99 }));
    let location = json!({ "file_path": "main.py", "line_number": 7 });
    bench.refused("", "", "remove_breakpoint", json!({ "location": location }));
    let content = bench.client.expect("success", "get_breakpoints", json!({}));
    assert_eq!(content["breakpoints"], json!([]), "a refused breakpoint is not kept");
    bench.client.close();
}

#[test]
fn launch_json_broken_missing_or_without_the_name() {
    let mut bench = Bench::new();
    let content = bench.refused("", "nothing", "start_debugging", json!({ "configuration_name": "nothing" }));
    assert!(content.to_string().contains("bill"), "the names there are: {content:#}");
    bench.refused("", "gone.py", "start_debugging", json!({ "configuration_name": "gone" }));
    let file = bench.folder.join(".vscode/launch.json");
    let good = std::fs::read(&file).expect("the fixture is there");
    std::fs::write(&file, "{\n  \"configurations\": [ { \"name\": \"bill\", \n").expect("it can be written");
    bench.refused("", "launch.json", "get_debugger_configurations", json!({}));
    bench.refused("", "launch.json", "start_debugging", json!({ "configuration_name": "bill" }));
    std::fs::remove_file(&file).expect("it can be removed");
    bench.refused("", "launch.json", "get_debugger_configurations", json!({}));
    std::fs::write(&file, good).expect("it can be written");
    assert_eq!(configurations(&mut bench.client)[0], "bill", "a mended file is read again");
    bench.assert_healthy();
    bench.client.close();
}

#[test]
fn conditions_that_do_not_parse() {
    let mut bench = Bench::new();
    let at = |condition: &str| json!({ "file_path": "main.py", "line_number": 8, "condition": condition });
    let hits =
        |condition: &str| json!({ "file_path": "main.py", "line_number": 8, "hit_condition": condition });
    bench.refused("", "often", "set_breakpoint", hits("often"));
    let result = bench.client.try_call("set_breakpoint", at("((")).expect("an answer");
    let content = content_of(&result);
    if content["status"] == "success" {
        // It may also be told when it is met; it is told.
        let arguments = json!({ "configuration_name": "bill" });
        let answer = bench.client.try_call("start_debugging", arguments).expect("an answer").to_string();
        assert!(answer.contains("(("), "the broken condition is not told: {answer}");
    } else {
        assert!(content.to_string().contains("(("), "{content:#}");
    }
    bench.client.close();
}

#[test]
fn what_belongs_to_an_earlier_stop_or_session() {
    let mut bench = Bench::new();
    bench.refused("", "", "continue_debugging", json!({ "thread_id": 1 }));
    bench.refused("", "", "stop_debugging", json!({}));
    bench.refused("", "", "evaluate_expression", json!({ "expression": "1", "frame_id": 1 }));
    let folder = bench.folder.clone();
    let stopped = debug_to_stop(&mut bench.client, "shop", &folder, |_| ());
    let old_frame = stopped["call_stack"][0]["frame_id"].clone();
    let stepped = step(&mut bench.client, &stopped);
    bench.refused("stale_frame", "stop", "get_scopes", json!({ "frame_id": old_frame }));
    bench.refused(
        "stale_frame",
        "",
        "evaluate_expression",
        json!({ "expression": "1", "frame_id": old_frame }),
    );
    let frame = stepped["call_stack"][0]["frame_id"].clone();
    let broken = json!({ "expression": "1 +", "frame_id": frame });
    bench.refused("", "", "evaluate_expression", broken);
    bench.refused("", "", "get_variables", json!({ "variables_reference": 123_456 }));
    bench.refused("", "", "continue_debugging", json!({ "thread_id": 987 }));
    bench.refused(
        "",
        "",
        "continue_debugging",
        json!({ "thread_id": stepped["thread_id"], "session_id": "none" }),
    );
    let (thread, session) = (&stepped["thread_id"], &stepped["session_id"]);
    bench.client.expect("success", "remove_breakpoint", json!({ "clear_all": true }));
    let resume = json!({ "thread_id": thread, "session_id": session });
    bench.client.expect("completed", "continue_debugging", resume.clone());
    bench.refused("", "", "continue_debugging", resume);
    bench.refused("", "", "get_scopes", json!({ "frame_id": frame }));
    bench.assert_healthy();
    bench.client.close();
}

#[test]
fn two_calls_at_once_on_one_thread() {
    let mut bench = Bench::new();
    let place = json!({ "file_path": "wait.py", "line_number": 10 });
    bench.client.expect("success", "set_breakpoint", place);
    let started = bench.client.expect("stopped", "start_debugging", json!({ "configuration_name": "wait" }));
    let thread = started["stop_event_data"]["thread_id"].clone();
    let first = bench.client.send_call("continue_debugging", json!({ "thread_id": thread }));
    let second = bench.client.send_call("continue_debugging", json!({ "thread_id": thread }));
    // Which of the two comes first is not ours to say; one waits, the other is told so at once.
    let told = bench.refused("busy", "", "continue_debugging", json!({ "thread_id": thread }));
    assert!(told["hint"].is_string());
    std::fs::write(bench.folder.join("go"), "").expect("the folder is there");
    let answers = [first, second].map(|call| bench.client.wait(call).expect("an answer"));
    let status = |answer: &Value| content_of(answer)["status"].as_str().unwrap_or_default().to_owned();
    let mut statuses = answers.each_ref().map(status);
    statuses.sort();
    assert_eq!(statuses, ["completed", "error"], "{answers:#?}");
    bench.assert_healthy();
    bench.client.close();
}

#[test]
fn a_crash_at_once_is_a_stop_with_its_exception() {
    let mut bench = Bench::new();
    let started = bench.client.expect("stopped", "start_debugging", json!({ "configuration_name": "crash" }));
    let event = &started["stop_event_data"];
    assert_eq!(event["reason"], "exception", "{event:#}");
    assert!(event["text"].as_str().is_some_and(|text| text.contains("ZeroDivisionError")), "{event:#}");
    bench.client.expect("success", "stop_debugging", json!({}));
    bench.assert_healthy();
    bench.client.close();
}
