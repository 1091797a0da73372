//! Configurations that ask a person for something: a window without one asks nobody, and says what is asked for.

use serde_json::{Value, json};

use super::desk::Desk;

/// A desk with a program that prints what it is given, and a configuration that asks for that.
async fn desk() -> Desk {
    let desk = Desk::open().await;
    std::fs::create_dir_all(desk.path(".vscode")).unwrap();
    let launch = json!({
        "configurations": [
            {
                "name": "greet", "type": "debugpy", "request": "launch",
                "program": "${workspaceFolder}/greet.py", "args": ["${input:who}", "${input:how}"],
            },
            {
                "name": "join", "type": "debugpy", "request": "attach",
                "processId": "${command:pickProcess}",
            },
        ],
        "inputs": [
            { "id": "who", "type": "promptString", "description": "Who is greeted?" },
            { "id": "how", "type": "pickString", "options": ["loud", "quiet"], "default": "quiet" },
        ],
    });
    std::fs::write(desk.path(".vscode/launch.json"), launch.to_string()).unwrap();
    std::fs::write(desk.path("greet.py"), "import sys\nprint('greets', sys.argv[1:])\n").unwrap();
    desk
}

fn launch(inputs: &Value) -> Value {
    json!({ "configuration": "greet", "inputs": inputs, "timeout": 60 })
}

#[tokio::test]
async fn what_a_configuration_asks_for_is_said_and_can_be_given() {
    let desk = desk().await;
    let refused = desk.debug_refused("launch", json!({ "configuration": "greet" })).await;
    let asked = "\"greet\" asks a person for who (Who is greeted?), how (one of \"loud\", \"quiet\"; default \"quiet\").";
    assert!(refused.text.contains(asked), "{}", refused.text);
    let advice = "Launch again with `inputs`, for example {\"how\":\"quiet\",\"who\":\"...\"}.";
    assert!(refused.text.contains(advice), "{}", refused.text);
    let refused = desk.debug_refused("launch", launch(&json!({ "who": "Ada" }))).await;
    assert!(refused.text.contains("for how (") && !refused.text.contains("who"), "{}", refused.text);
    let odd = json!({ "who": "${env:HOME}", "how": "loud" });
    let refused = desk.debug_refused("launch", launch(&odd)).await;
    assert!(
        refused.text.contains("The value of the input \"who\" has a variable in it."),
        "{}",
        refused.text
    );
    let sessions = desk.debug("sessions", json!({})).await;
    assert!(sessions.text.contains("No debug sessions."), "{}", sessions.text);
    let ran = desk.debug("launch", launch(&json!({ "who": "Ada L", "how": "loud" }))).await;
    assert!(ran.text.contains("greets ['Ada L', 'loud']"), "{}", ran.text);
}

#[tokio::test]
async fn a_process_that_is_to_be_picked_is_given_by_its_id() {
    let desk = desk().await;
    let refused = desk.debug_refused("launch", json!({ "configuration": "join" })).await;
    assert!(refused.text.contains("\"join\" asks a person for the id of a process."), "{}", refused.text);
    assert!(refused.text.contains("Launch again with `pid`."), "{}", refused.text);
    // One that is not there: the adapter says so, and not that a number is wanted.
    let refused = desk.debug_refused("launch", json!({ "configuration": "join", "pid": 4_194_303 })).await;
    assert!(!refused.text.contains("must be"), "{}", refused.text);
}
