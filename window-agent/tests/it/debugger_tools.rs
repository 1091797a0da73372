//! The toolset `debugger` on a real Python program: whole conversations, as a client sees them.

use std::time::Duration;

use expect_test::{Expect, expect};
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::faces::desk::MAIN;
use crate::support::agent::{self, Agent, Client};

const WAIT: &str = r#"import os, time

while not os.path.exists("go"):
    time.sleep(0.01)
print("went")
"#;

const LAUNCH: &str = r#"{
    // Comments and trailing commas are fine.
    "configurations": [
        {"name": "bill", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/main.py", "console": "internalConsole"},
        {"name": "wait", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/wait.py", "console": "internalConsole"},
        {"name": "this file", "type": "python", "request": "launch", "program": "${file}", "console": "internalConsole"},
        {"name": "gone", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/gone.py", "console": "internalConsole"},
    ],
}"#;

const FILES: &[(&str, &str)] = &[("main.py", MAIN), ("wait.py", WAIT), (".vscode/launch.json", LAUNCH)];

/// A conversation, written down.
struct Transcript<'a> {
    agent: &'a Agent,
    client: Client,
    /// The handle told last.
    session: Option<String>,
    text: String,
}

impl<'a> Transcript<'a> {
    async fn start(agent: &'a Agent) -> Self {
        let client = agent.client(ClientLifecycleMode::Initialize).await;
        Self { agent, client, session: None, text: String::new() }
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = agent::call(&self.client, tool, arguments.clone()).await;
        let answer = result.structured_content.unwrap();
        assert_eq!(result.is_error, Some(answer["status"] == "error"), "{answer}");
        let (mut shown, mut arguments) = (answer.clone(), arguments);
        make_stable(&mut shown);
        make_stable(&mut arguments);
        let id = answer["session_id"].as_str().or_else(|| answer["stop_event_data"]["session_id"].as_str());
        self.session = id.map(str::to_owned).or(self.session.take());
        let text = format!("> {tool} {arguments}\n{shown}\n");
        self.text.push_str(&match &self.session {
            Some(session) => text.replace(session, "SESSION"),
            None => text,
        });
        answer
    }

    async fn end(self, expected: Expect) {
        expected.assert_eq(&self.agent.stable(&self.text));
        self.client.cancel().await.unwrap();
    }
}

/// Replaces what differs from run to run.
fn make_stable(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                match name.as_str() {
                    "timestamp" => {
                        let text = value.as_str().unwrap();
                        assert!(text.len() == 24 && text.ends_with('Z'), "{text} is ISO 8601 in UTC");
                        *value = "TIME".into();
                    }
                    "session_id" => *value = "SESSION".into(),
                    // Somewhere in its loop.
                    "message" => {
                        let text = value.as_str().unwrap();
                        *value = text
                            .replace("wait.py:3", "wait.py:LINE")
                            .replace("wait.py:4", "wait.py:LINE")
                            .into();
                    }
                    // Globals of a module hold addresses.
                    "variables" => value.as_array_mut().unwrap().retain(|variable| {
                        !["special variables", "function variables"]
                            .contains(&variable["name"].as_str().unwrap())
                    }),
                    _ => {}
                }
                make_stable(value);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(make_stable),
        _ => {}
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a conversation and its transcript read better whole")]
async fn a_program_is_debugged_from_breakpoint_to_end() {
    let agent = Agent::start(FILES).await;
    let mut transcript = Transcript::start(&agent).await;
    transcript.call("get_debugger_configurations", json!({})).await;
    transcript
        .call(
            "set_breakpoint",
            json!({"file_path": "main.py", "line_number": 3, "condition": "item == 'bread'"}),
        )
        .await;
    let stop = transcript.call("start_debugging", json!({"configuration_name": "bill"})).await;
    let stop = &stop["stop_event_data"];
    let (thread, frame) = (stop["thread_id"].clone(), stop["call_stack"][0]["frame_id"].clone());
    transcript.call("get_breakpoints", json!({})).await;
    let scopes = transcript.call("get_scopes", json!({"frame_id": frame})).await;
    let locals = scopes["scopes"][0]["variables_reference"].clone();
    transcript.call("get_variables", json!({"variables_reference": locals})).await;
    let prices =
        transcript.call("evaluate_expression", json!({"expression": "PRICES", "frame_id": frame})).await;
    transcript
        .call(
            "get_variables",
            json!({"variables_reference": prices["variables_reference"], "start": 1, "count": 1}),
        )
        .await;
    transcript.call("evaluate_expression", json!({"expression": "nonsense + 1", "frame_id": frame})).await;
    transcript
        .call(
            "step_execution",
            json!({"thread_id": thread, "step_type": "out", "session_id": stop["session_id"]}),
        )
        .await;
    transcript.call("evaluate_expression", json!({"expression": "item", "frame_id": frame})).await;
    transcript
        .call("remove_breakpoint", json!({"location": {"file_path": "main.py", "line_number": 3}}))
        .await;
    transcript.call("continue_debugging", json!({"thread_id": thread})).await;
    transcript.call("continue_debugging", json!({"thread_id": thread})).await;
    let session = stop["session_id"].clone();
    transcript.call("continue_debugging", json!({"thread_id": thread, "session_id": session})).await;
    transcript.call("stop_debugging", json!({})).await;
    transcript.end(expect![[r#"
        > get_debugger_configurations {}
        {"configurations":[{"console":"internalConsole","name":"bill","program":"${workspaceFolder}/main.py","request":"launch","type":"debugpy"},{"console":"internalConsole","name":"wait","program":"${workspaceFolder}/wait.py","request":"launch","type":"debugpy"},{"console":"internalConsole","name":"this file","program":"${file}","request":"launch","type":"python"},{"console":"internalConsole","name":"gone","program":"${workspaceFolder}/gone.py","request":"launch","type":"debugpy"}],"status":"success"}
        > set_breakpoint {"condition":"item == 'bread'","file_path":"main.py","line_number":3}
        {"breakpoint":{"condition":"item == 'bread'","id":1,"line":3,"message":"not verified yet: no debug session has loaded it","source":{"path":"ROOT/main.py"},"timestamp":"TIME","verified":false},"status":"success"}
        > start_debugging {"configuration_name":"bill"}
        {"status":"stopped","stop_event_data":{"all_threads_stopped":true,"call_stack":[{"column_number":1,"file_path":"ROOT/main.py","frame_id":1,"function_name":"price","line_number":3},{"column_number":1,"file_path":"ROOT/main.py","frame_id":2,"function_name":"<module>","line_number":9}],"column":1,"hit_breakpoint_ids":[1],"line":3,"reason":"breakpoint","session_id":"SESSION","source":{"name":"main.py","path":"ROOT/main.py"},"thread_id":1,"timestamp":"TIME","top_frame_variables":{"scope_name":"Locals","variables":[{"name":"item","type":"str","value":"'bread'","variables_reference":0},{"name":"quantity","type":"int","value":"2","variables_reference":0},{"name":"total","type":"int","value":"8","variables_reference":0}]}}}
        > get_breakpoints {}
        {"breakpoints":[{"condition":"item == 'bread'","id":1,"line":3,"source":{"path":"ROOT/main.py"},"verified":true}],"status":"success","timestamp":"TIME"}
        > get_scopes {"frame_id":1}
        {"scopes":[{"expensive":false,"name":"Locals","variables_reference":1},{"expensive":false,"name":"Globals","variables_reference":2}],"status":"success"}
        > get_variables {"variables_reference":1}
        {"status":"success","variables":[{"name":"item","type":"str","value":"'bread'","variables_reference":0},{"name":"quantity","type":"int","value":"2","variables_reference":0},{"name":"total","type":"int","value":"8","variables_reference":0}]}
        > evaluate_expression {"expression":"PRICES","frame_id":1}
        {"result":"{'apple': 3, 'bread': 4}","status":"success","type":"dict","variables_reference":3}
        > get_variables {"count":1,"start":1,"variables_reference":3}
        {"message":"1 more; get them with start 2.","next_start":2,"status":"success","total":3,"variables":[{"evaluate_name":"PRICES['bread']","name":"'bread'","type":"int","value":"4","variables_reference":0}]}
        > evaluate_expression {"expression":"nonsense + 1","frame_id":1}
        {"code":"evaluation_failed","hint":"Check the names in the expression against the frame's variables.","message":"NameError: name 'nonsense' is not defined.","status":"error"}
        > step_execution {"session_id":"SESSION","step_type":"out","thread_id":1}
        {"status":"stopped","stop_event_data":{"all_threads_stopped":true,"call_stack":[{"column_number":1,"file_path":"ROOT/main.py","frame_id":3,"function_name":"<module>","line_number":9}],"column":1,"line":9,"reason":"step","session_id":"SESSION","source":{"name":"main.py","path":"ROOT/main.py"},"thread_id":1,"timestamp":"TIME","top_frame_variables":{"scope_name":"Locals","variables":[{"name":"PRICES","type":"dict","value":"{'apple': 3, 'bread': 4}","variables_reference":4},{"name":"bill","type":"int","value":"6","variables_reference":0},{"name":"item","type":"str","value":"'bread'","variables_reference":0}]}}}
        > evaluate_expression {"expression":"item","frame_id":1}
        {"code":"stale_frame","hint":"Use a frame_id of call_stack in the latest stop_event_data.","message":"Frame 1 is from an earlier stop.","status":"error"}
        > remove_breakpoint {"location":{"file_path":"main.py","line_number":3}}
        {"message":"Removed the breakpoint with ID 1.","removed":[1],"status":"success"}
        > continue_debugging {"thread_id":1}
        {"exit_code":0,"message":"The debug session ended normally.","output":"bill: 14\n","session_id":"SESSION","status":"completed"}
        > continue_debugging {"thread_id":1}
        {"code":"no_session","hint":"Call start_debugging to start one.","message":"No debug session is running.","status":"error"}
        > continue_debugging {"session_id":"SESSION","thread_id":1}
        {"code":"session_ended","hint":"Call start_debugging to start one.","message":"Debug session SESSION has ended with exit code 0.","status":"error"}
        > stop_debugging {}
        {"code":"no_session","hint":"Call start_debugging to start one.","message":"No debug session is running.","status":"error"}
    "#]]).await;
}

#[tokio::test]
async fn a_file_is_named_for_a_configuration_that_wants_one() {
    let agent = Agent::start(FILES).await;
    let mut transcript = Transcript::start(&agent).await;
    transcript.call("start_debugging", json!({"configuration_name": "this file"})).await;
    transcript.call("start_debugging", json!({"configuration_name": "this file", "file": "main.py"})).await;
    transcript.call("start_debugging", json!({"configuration_name": "bill", "no_debug": true})).await;
    let gone = transcript.call("start_debugging", json!({"configuration_name": "gone"})).await;
    assert_eq!(gone["status"], "error");
    assert!(gone["message"].as_str().unwrap().contains("gone.py"));
    transcript
        .text
        .truncate(transcript.text.find("> start_debugging {\"configuration_name\":\"gone\"}").unwrap());
    transcript.end(expect![[r#"
        > start_debugging {"configuration_name":"this file"}
        {"code":"unresolved_variable","hint":"Name the file to debug, or use a configuration with a fixed `program`.","message":"${file} in `program` means the file open in the editor, and this window has none.","status":"error"}
        > start_debugging {"configuration_name":"this file","file":"main.py"}
        {"exit_code":0,"message":"The debug session ended normally.","output":"bill: 14\n","session_id":"SESSION","status":"completed"}
        > start_debugging {"configuration_name":"bill","no_debug":true}
        {"exit_code":0,"message":"The debug session ended normally.","output":"bill: 14\n","session_id":"SESSION","status":"completed"}
    "#]]).await;
}

#[tokio::test]
async fn a_wait_ends_by_timeout_stop_and_cancellation_and_the_program_runs_on() {
    let agent = Agent::start(FILES).await;
    let mut transcript = Transcript::start(&agent).await;
    let started =
        transcript.call("start_debugging", json!({"configuration_name": "wait", "timeout": 4})).await;
    assert_eq!(started["status"], "timeout");

    // A client that goes away: its connection ends, and with it the wait.
    let waiting = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "continue_debugging", "arguments": {"thread_id": 1}}});
    let pin = [("baton-pin", "1")];
    let left = tokio::time::timeout(Duration::from_millis(300), agent.post(&pin, &waiting)).await;
    assert!(left.is_err(), "the program runs, so the wait goes on");

    // The user stops the window: the wait ends, the program does not. Nobody else waits on the thread any more.
    let debugger = agent.window.debugger.clone();
    let wait = transcript.call("continue_debugging", json!({"thread_id": 1}));
    // Until there is a wait to interrupt.
    let interrupt = async {
        loop {
            debugger.interrupt_waits().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let interrupted = tokio::select! {
        interrupted = wait => interrupted,
        () = interrupt => unreachable!("it has no end"),
    };
    assert_eq!(interrupted["status"], "interrupted");

    // Two at once on one thread: the second is told.
    let other = agent.client(ClientLifecycleMode::Initialize).await;
    {
        let go_on = || agent::call(&other, "continue_debugging", json!({"thread_id": 1}));
        let (one, two) = (std::pin::pin!(go_on()), std::pin::pin!(go_on()));
        let (second, rest) = futures_util::future::select(one, two).await.factor_first();
        assert_eq!(second.structured_content.unwrap()["code"], "busy");
        std::fs::write(agent.root.join("go"), "").unwrap();
        let ended = rest.await.structured_content.unwrap();
        assert_eq!((&ended["status"], &ended["output"]), (&json!("completed"), &json!("went\n")));
    }
    other.cancel().await.unwrap();
    transcript.end(expect![[r#"
        > start_debugging {"configuration_name":"wait","timeout":4}
        {"message":"Timed out waiting for the debugger to stop for the first time. The program is still running: continue_debugging waits on, stop_debugging ends it. Threads (running, values are not available):\n1 MainThread:\n  wait.py:LINE in <module>","session_id":"SESSION","status":"timeout"}
        > continue_debugging {"thread_id":1}
        {"message":"The wait for the program to stop again was interrupted. The program was not stopped by it.","session_id":"SESSION","status":"interrupted"}
    "#]]).await;
}

#[tokio::test]
async fn a_client_that_asked_hears_of_a_long_wait() {
    let agent = Agent::start(FILES).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "start_debugging",
        "arguments": {"configuration_name": "wait", "timeout": 2},
        "_meta": {"progressToken": "p"},
    }});
    let answer = agent.post(&[("baton-pin", "1")], &call).await;
    assert_eq!(answer.header("content-type").as_deref(), Some("text/event-stream"));
    let events: Vec<Value> = answer
        .body
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok())
        .collect();
    let [progress, result] = events.as_slice() else { panic!("{}", answer.body) };
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    assert_eq!(result["id"], 7);
    assert_eq!(result["result"]["structuredContent"]["status"], "timeout");
    let quick = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "get_breakpoints", "_meta": {"progressToken": "q"}}});
    let quick = agent.post(&[("baton-pin", "1")], &quick).await;
    assert_eq!(quick.status, 200);
    assert_eq!(quick.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(quick.json()["id"], 8);
    agent.window.debugger.stop_all().await;
    assert!(agent.window.debugger.sessions().is_empty());
}
