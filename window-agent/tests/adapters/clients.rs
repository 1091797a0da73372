//! Several clients debug in one window: a call that names no session is about the client's own, and an answer says
//! whose it is.

use serde_json::{Value, json};

use crate::programs::shelf;
use crate::standalone::Standalone;

const CLIENTS: [&str; 4] = ["ann", "bob", "cid", "dee"];

/// Where a client's program is stopped, by its own variable.
fn program(client: &str) -> String {
    format!("def work():\n    owner = \"{client}\"\n    return owner\n\nfor n in range(100):\n    work()\n")
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap()
}

async fn window() -> (tempfile::TempDir, Standalone) {
    let folder = tempfile::tempdir().unwrap();
    for client in CLIENTS {
        std::fs::write(folder.path().join(format!("{client}.py")), program(client)).unwrap();
    }
    let agent = Standalone::start(folder.path(), &[("BATON_ADAPTERS", shelf())]);
    (folder, agent)
}

async fn launch(agent: &Standalone, client: &str) -> String {
    let file = format!("{client}.py");
    let breakpoint = json!({"action": "set_breakpoint", "file": file, "line": 3});
    agent.call_as(client, "debug", breakpoint).await;
    let launched = json!({"action": "launch", "program": file, "timeout": 60});
    let launched = agent.call_as(client, "debug", launched).await;
    assert!(text(&launched).contains(&format!("{file}:3")), "{launched}");
    launched["_meta"]["baton/details"]["snapshot"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_client_means_its_own_session() {
    let (_folder, agent) = window().await;
    let mut sessions = Vec::new();
    for client in CLIENTS {
        sessions.push(launch(&agent, client).await);
    }
    let evaluate = json!({"action": "evaluate", "expression": "owner"});
    for (client, session) in CLIENTS.iter().zip(&sessions) {
        for (tool, arguments, own) in [
            ("debug", evaluate.clone(), format!("'{client}'")),
            ("debug", json!({"action": "stack_trace"}), format!("{client}.py:3")),
            ("debug", json!({"action": "continue"}), format!("{client}.py:3")),
            ("debug", json!({"action": "step_over"}), format!("{client}.py:")),
        ] {
            let answer = agent.call_as(client, tool, arguments.clone()).await;
            assert!(text(&answer).contains(&own), "{client} {arguments}: {answer}");
            assert!(text(&answer).contains(session.as_str()), "{client} {arguments}: {answer}");
        }
    }
    for (client, session) in CLIENTS.iter().zip(&sessions) {
        let status = agent.call_as(client, "debug_getStatus", json!({})).await["structuredContent"].clone();
        assert!(status["file"].as_str().unwrap().ends_with(&format!("{client}.py")), "{client}: {status}");
        assert_eq!(status["sessionId"], session.as_str(), "{client}: {status}");
        let over = json!({"thread_id": 1, "step_type": "over"});
        let stepped = agent.call_as(client, "step_execution", over).await["structuredContent"].clone();
        assert_eq!(stepped["stop_event_data"]["session_id"], session.as_str(), "{client}: {stepped}");
    }
}

#[tokio::test]
async fn a_client_without_a_session_is_asked_which() {
    let (_folder, agent) = window().await;
    let anns = launch(&agent, "ann").await;
    let asked = json!({"action": "evaluate", "expression": "owner"});
    let refused = agent.call_as("bob", "debug", asked.clone()).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains(&format!("{anns} (ann.py)")), "{refused}");
    for tool in ["debug_continue", "debug_stop", "stop_debugging", "debug_getStackTrace"] {
        let refused = agent.call_as("bob", tool, json!({})).await["structuredContent"].clone();
        assert_eq!(refused["code"], "which_session", "{tool}: {refused}");
    }
    // Who names it means it that once.
    let named = json!({"action": "evaluate", "expression": "owner", "session": anns});
    assert!(text(&agent.call_as("bob", "debug", named).await).contains("'ann'"));
    let refused = agent.call_as("bob", "debug", asked.clone()).await;
    assert_eq!(refused["isError"], true, "{refused}");
    let bobs = launch(&agent, "bob").await;
    assert!(text(&agent.call_as("bob", "debug", asked.clone()).await).contains("'bob'"));
    assert!(text(&agent.call_as("ann", "debug", asked.clone()).await).contains("'ann'"));
    // What one's program told at its end is not another's to hear.
    agent.call_as("bob", "debug", json!({"action": "terminate"})).await;
    let output = agent.call_as("ann", "debug", json!({"action": "sessions"})).await;
    assert!(text(&output).contains(&format!("Session {bobs} (debugpy), bob.py: terminated")), "{output}");
    let after = agent.call_as("bob", "debug", asked).await;
    assert!(text(&after).contains(&bobs) && after["isError"] == true, "{after}");
}

#[tokio::test]
async fn clearing_all_breakpoints_takes_ones_own() {
    let (_folder, agent) = window().await;
    let set = async |client: &str, file: &str, condition: &str| {
        let wish = json!({"file_path": file, "line_number": 3, "condition": condition});
        let set = agent.call_as(client, "set_breakpoint", wish).await["structuredContent"].clone();
        set["breakpoint"]["id"].clone()
    };
    let function = json!({"action": "set_breakpoint", "function": "work"});
    let set_on_function = agent.call_as("ann", "debug", function).await;
    let on_function = &set_on_function["_meta"]["baton/details"]["functionBreakpoints"][0]["id"];
    let anns = set("ann", "ann.py", "n > 3").await;
    set("bob", "bob.py", "").await;
    let bobs = set("bob", "ann.py", "n > 4").await;
    assert_ne!(anns, bobs, "each has its own at that place");
    let listed = agent.call_as("bob", "get_breakpoints", json!({})).await["structuredContent"].clone();
    let listed = listed["breakpoints"].as_array().unwrap();
    let of_ann = listed.iter().find(|known| known["id"] == anns).unwrap();
    assert_eq!(of_ann["condition"], "n > 3", "{of_ann}");
    assert_eq!(of_ann["message"], "another client's: it stops that client's programs only");

    let clear = json!({"clear_all": true});
    let cleared = agent.call_as("bob", "remove_breakpoint", clear.clone()).await["structuredContent"].clone();
    let left = format!(
        "Removed all breakpoints of this client (2). Left alone: {anns} (another client's, at ann.py:3), \
         {on_function} (another client's, on function work). Remove one by its ID."
    );
    assert_eq!(cleared["message"], left);
    // One on a function has an ID too.
    let one = agent.call_as("bob", "remove_breakpoint", json!({"breakpoint_id": on_function})).await;
    assert_eq!(one["structuredContent"]["removed"], json!([on_function]), "{one}");
    let cleared = agent.call_as("ann", "remove_breakpoint", clear.clone()).await["structuredContent"].clone();
    assert_eq!(cleared["message"], "Removed all breakpoints (1).");
    // Of many, some are named.
    for line in 1..=6 {
        agent.call_as("ann", "set_breakpoint", json!({"file_path": "ann.py", "line_number": line})).await;
        let function = json!({"action": "set_breakpoint", "function": format!("work_{line}")});
        agent.call_as("ann", "debug", function).await;
    }
    let cleared = agent.call_as("bob", "remove_breakpoint", clear).await["structuredContent"].clone();
    let message = cleared["message"].as_str().unwrap();
    assert!(message.ends_with("on function work_4), and 2 more. Remove one by its ID."), "{message}");
}

#[tokio::test]
async fn a_file_is_not_told_as_changed_for_another_clients_program() {
    let (folder, agent) = window().await;
    launch(&agent, "ann").await;
    std::fs::write(folder.path().join("bob.py"), program("bob, once more")).unwrap();
    let breakpoint = json!({"action": "set_breakpoint", "file": "bob.py", "line": 3});
    let set = agent.call_as("bob", "debug", breakpoint.clone()).await;
    assert!(!text(&set).contains("changed since"), "{set}");
    // Of ann's that may be.
    let set = agent.call_as("ann", "debug", breakpoint).await;
    assert!(text(&set).contains("bob.py changed since the program started"), "{set}");
}

/// A program in each of two languages that comes to each line of a function again and again.
const LOOPS: [(&str, &str); 2] = [
    (
        "loop.py",
        "def work(n):\n    first = n\n    second = n\n    return first + second\n\nfor n in range(100):\n    work(n)\n",
    ),
    (
        "loop.js",
        "function work(n) {\n  const first = n;\n  const second = n;\n  return first + second;\n}\n\nfor (let n = 0; n < 100; n++) work(n);\n",
    ),
];

#[tokio::test]
async fn a_breakpoint_of_another_client_neither_stops_nor_changes_ones_own_run() {
    for (file, source) in LOOPS {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), source).unwrap();
        let agent = Standalone::start(folder.path(), &[("BATON_ADAPTERS", shelf())]);
        let call = async |client: &str, arguments: Value| {
            let answer = agent.call_as(client, "debug", arguments.clone()).await;
            assert_ne!(answer["isError"], true, "{client} {arguments}: {answer}");
            (text(&answer).to_owned(), answer["_meta"]["baton/details"].clone())
        };
        let at = |line: u32, condition: &str| json!({"action": "set_breakpoint", "file": file, "line": line, "condition": condition});
        // Before the start, at a line of one's own and at the same line.
        call("bob", at(2, "")).await;
        call("bob", at(3, "")).await;
        call("ann", at(3, "n % 2 == 1")).await;
        let launch = json!({"action": "launch", "program": file, "timeout": 60});
        let (told, launched) = call("ann", launch.clone()).await;
        assert_eq!(launched["snapshot"]["line"], 3, "{told}");
        let value = async |client: &str| {
            let asked = json!({"action": "evaluate", "expression": "n"});
            call(client, asked).await.1["evaluation"]["result"].as_str().unwrap().to_owned()
        };
        assert_eq!(value("ann").await, "1");
        // While it is stopped, and in what concerns all lines.
        call("bob", at(4, "")).await;
        let raised = json!({"filters": ["raised"]});
        let choose =
            json!({"action": "custom_request", "command": "setExceptionBreakpoints", "arguments": raised});
        call("bob", choose).await;
        for expected in ["3", "5"] {
            let (told, stopped) = call("ann", json!({"action": "continue"})).await;
            assert_eq!(stopped["snapshot"]["line"], 3, "{told}");
            assert_eq!(value("ann").await, expected);
        }
        // What bob takes away there is his own.
        call("bob", json!({"action": "remove_breakpoint", "file": file, "line": 3})).await;
        let again = json!({"action": "remove_breakpoint", "file": file, "line": 3});
        let refused = agent.call_as("bob", "debug", again).await;
        assert_eq!(refused["_meta"]["baton/details"]["code"], "no_such_breakpoint", "{refused}");
        let (told, stopped) = call("ann", json!({"action": "continue"})).await;
        assert_eq!((&stopped["snapshot"]["line"], value("ann").await.as_str()), (&json!(3), "7"), "{told}");
        // His own program stops at his.
        let (told, launched) = call("bob", launch).await;
        assert_eq!(launched["snapshot"]["line"], 2, "{told}");
        let (told, stopped) = call("bob", json!({"action": "continue"})).await;
        assert_eq!(stopped["snapshot"]["line"], 4, "{told}");
    }
}
