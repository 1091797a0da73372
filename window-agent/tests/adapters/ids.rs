//! Ids of frames, variables and breakpoints are never another's: not another window's, not those of an agent that died,
//! not another session's.

use serde_json::{Value, json};

use crate::programs::shelf;
use crate::standalone::Standalone;

const PYTHON: &str = "def work():\n    owner = ['py']\n    return owner\n\nwork()\n";
const JAVASCRIPT: &str =
    "function work() {\n  const owner = ['js'];\n  return owner;\n}\n\nsetTimeout(work, 100);\n";

/// A folder with a program for each of two debuggers.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("work.py"), PYTHON).unwrap();
    std::fs::write(folder.path().join("work.js"), JAVASCRIPT).unwrap();
    folder
}

fn window(folder: &tempfile::TempDir) -> Standalone {
    Standalone::start(folder.path(), &[("BATON_ADAPTERS", shelf())])
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap()
}

/// What a stopped program gave ids to.
struct Stopped {
    session: Value,
    frame: Value,
    container: Value,
    breakpoint: Value,
}

async fn stopped_in(agent: &Standalone, file: &str) -> Stopped {
    let set = json!({"file_path": file, "line_number": 3});
    let set = agent.call("set_breakpoint", set).await["structuredContent"].clone();
    let launched = json!({"action": "launch", "program": file, "timeout": 60});
    let launched = agent.call("debug", launched).await;
    let snapshot = launched["_meta"]["baton/details"]["snapshot"].clone();
    assert_eq!(snapshot["line"], 3, "{launched}");
    let owner = json!({"action": "evaluate", "expression": "owner", "session": snapshot["id"]});
    let owner = agent.call("debug", owner).await;
    Stopped {
        session: snapshot["id"].clone(),
        frame: snapshot["frameId"].clone(),
        container: owner["_meta"]["baton/details"]["evaluation"]["variablesReference"].clone(),
        breakpoint: set["breakpoint"]["id"].clone(),
    }
}

/// Every call that takes an id of a stop, in every toolset.
fn calls_with(Stopped { frame, container, .. }: &Stopped) -> Vec<(&'static str, Value)> {
    let inside = |field: &str, id: &Value| json!({field: id});
    vec![
        ("debug", json!({"action": "evaluate", "expression": "owner", "frame_id": frame})),
        ("debug", json!({"action": "scopes", "frame_id": frame})),
        ("debug", json!({"action": "variables", "variable_ref": container})),
        ("debug", json!({"action": "variables", "scope_id": container})),
        (
            "debug",
            json!({"action": "custom_request", "command": "scopes", "arguments": inside("frameId", frame)}),
        ),
        (
            "debug",
            json!({"action": "custom_request", "command": "variables",
                "arguments": inside("variablesReference", container)}),
        ),
        ("get_scopes", json!({"frame_id": frame})),
        ("get_variables", json!({"variables_reference": container})),
        ("evaluate_expression", json!({"expression": "owner", "frame_id": frame})),
        ("debug_getVariables", json!({"frameId": frame})),
        ("debug_evaluate", json!({"expression": "owner", "frameId": frame})),
    ]
}

/// The code and the message of a refusal.
fn refusal(answer: &Value) -> (&str, &str) {
    let structure = answer.get("structuredContent").unwrap_or(&answer["_meta"]["baton/details"]);
    assert_eq!(answer["isError"], true, "{answer}");
    (structure["code"].as_str().unwrap(), structure["message"].as_str().unwrap())
}

/// Nothing that `theirs` names is taken by `agent`, and nothing of it changes.
async fn takes_none_of(agent: &Standalone, theirs: &Stopped) {
    for (tool, arguments) in calls_with(theirs) {
        let answer = agent.call(tool, arguments.clone()).await;
        let (code, message) = refusal(&answer);
        assert_eq!(code, "foreign_id", "{tool} {arguments}: {answer}");
        assert!(
            message.ends_with("is of another window, or of an earlier run of this one."),
            "{tool} {arguments}: {message}"
        );
    }
    let remove = json!({"breakpoint_id": theirs.breakpoint});
    let answer = agent.call("remove_breakpoint", remove).await;
    let expected =
        format!("Breakpoint {} is of another window, or of an earlier run of this one.", theirs.breakpoint);
    assert_eq!(refusal(&answer), ("foreign_id", expected.as_str()));
}

#[tokio::test]
async fn an_id_of_another_window_or_of_an_agent_that_died_is_refused_by_name() {
    let (here, there) = (folder(), folder());
    let (mut one, other) = (window(&here), window(&there));
    let (mine, theirs) = tokio::join!(stopped_in(&one, "work.py"), stopped_in(&other, "work.py"));
    takes_none_of(&one, &theirs).await;
    takes_none_of(&other, &mine).await;
    for (agent, known) in [(&one, &mine), (&other, &theirs)] {
        for (tool, arguments) in calls_with(known) {
            let answer = agent.call(tool, arguments.clone()).await;
            assert_ne!(answer["isError"], true, "{tool} {arguments}: {answer}");
        }
    }
    // A breakpoint of the toolset lcp says by itself whose it is.
    let set = json!({"file": "work.py", "line": 2});
    let set = other.call("lcp_add_breakpoint", set).await["structuredContent"]["data"].clone();
    let remove = json!({"breakpoint_id": set["breakpoint_id"]});
    let refused = one.call("lcp_remove_breakpoint", remove.clone()).await;
    assert_eq!(refusal(&refused).0, "foreign_id", "{refused}");
    let removed = other.call("lcp_remove_breakpoint", remove).await;
    assert_eq!(removed["structuredContent"]["data"]["remaining_breakpoints"], 1, "{removed}");

    one.kill();
    let one = window(&here);
    let again = stopped_in(&one, "work.py").await;
    takes_none_of(&one, &mine).await;
    let removed = one.call("remove_breakpoint", json!({"breakpoint_id": again.breakpoint})).await;
    assert_eq!(removed["structuredContent"]["removed"], json!([again.breakpoint]), "{removed}");
}

#[tokio::test]
async fn an_id_of_one_session_is_refused_for_another() {
    let folder = folder();
    let agent = window(&folder);
    let python = stopped_in(&agent, "work.py").await;
    let node = stopped_in(&agent, "work.js").await;
    for (named, known) in [(&python, &node), (&node, &python)] {
        let (named, owner) = (named.session.as_str().unwrap(), known.session.as_str().unwrap());
        for (tool, mut arguments) in calls_with(known) {
            let field = match tool {
                "debug" => "session",
                tool if tool.starts_with("debug_") => "sessionId",
                // These tools take no session: the id alone says which.
                _ => continue,
            };
            arguments[field] = json!(named);
            let answer = agent.call(tool, arguments.clone()).await;
            let (code, message) = refusal(&answer);
            assert_eq!(code, "foreign_id", "{tool} {arguments}: {answer}");
            let expected = format!("is of debug session {owner}, not of {named}.");
            assert!(message.ends_with(&expected), "{tool} {arguments}: {message}");
            arguments[field] = json!(owner);
            let answer = agent.call(tool, arguments.clone()).await;
            assert_ne!(answer["isError"], true, "{tool} {arguments}: {answer}");
        }
    }
    // An id alone names its session, also where another one is the client's last.
    for (known, value) in [(&python, "'py'"), (&node, "'js'"), (&python, "'py'")] {
        let asked = json!({"action": "evaluate", "expression": "owner[0]", "frame_id": known.frame});
        let answer = agent.call("debug", asked).await;
        assert!(text(&answer).contains(value), "{answer}");
        assert_eq!(answer["_meta"]["baton/details"]["snapshot"]["id"], known.session, "{answer}");
    }
    // With a frame beside it, a call that takes none still means the client's own session.
    let step = json!({"action": "step_over", "frame_id": python.frame});
    let stranger = agent.call_as("a stranger", "debug", step).await;
    assert_eq!(refusal(&stranger).0, "which_session", "{stranger}");
    let answer =
        agent.call("evaluate_expression", json!({"expression": "owner[0]", "frame_id": python.frame}));
    assert_eq!(answer.await["structuredContent"]["result"], "'py'");
}
