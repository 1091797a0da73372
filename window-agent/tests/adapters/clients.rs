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
    // Who names it means it from then on.
    let named = json!({"action": "evaluate", "expression": "owner", "session": anns});
    assert!(text(&agent.call_as("bob", "debug", named).await).contains("'ann'"));
    assert!(text(&agent.call_as("bob", "debug", asked.clone()).await).contains("'ann'"));
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
        set["breakpoint"]["message"].as_str().unwrap().to_owned()
    };
    let function = json!({"action": "set_breakpoint", "function": "work"});
    let set_on_function = agent.call_as("ann", "debug", function).await;
    let on_function = &set_on_function["_meta"]["baton/details"]["functionBreakpoints"][0]["id"];
    set("ann", "ann.py", "n > 3").await;
    set("bob", "bob.py", "").await;
    let told = set("bob", "ann.py", "n > 4").await;
    assert!(told.starts_with("replaced another client's condition `n > 3`"), "{told}");

    let clear = json!({"clear_all": true});
    let cleared = agent.call_as("bob", "remove_breakpoint", clear.clone()).await["structuredContent"].clone();
    let on_line = on_function.as_i64().unwrap() + 1;
    let left = format!(
        "Removed all breakpoints of this client (1). Left alone: {on_line} (another client's, at ann.py:3), \
         {on_function} (another client's, on function work). Remove one by its ID."
    );
    assert_eq!(cleared["message"], left);
    // One on a function has an ID too.
    let one = agent.call_as("bob", "remove_breakpoint", json!({"breakpoint_id": on_function})).await;
    assert_eq!(one["structuredContent"]["removed"], json!([on_function]), "{one}");
    let cleared = agent.call_as("ann", "remove_breakpoint", clear).await["structuredContent"].clone();
    assert_eq!(cleared["message"], "Removed all breakpoints (1).");
}
