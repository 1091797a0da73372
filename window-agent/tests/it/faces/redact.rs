//! The setting `redact`, and results that are small unless more is asked for, in every toolset.

use baton_proto::control::Settings;
use serde_json::{Value, json};

use super::desk::Desk;

/// Runs to the last line of `secrets.py`.
async fn at_the_end(desk: &Desk) -> Value {
    desk.call("set_breakpoint", json!({"file_path": "secrets.py", "line_number": 5})).await;
    let stopped = desk.call("start_debugging", json!({"configuration_name": "secrets"})).await;
    stopped.value["stop_event_data"].clone()
}

#[tokio::test]
async fn secrets_are_hidden_on_request() {
    let desk = Desk::open().await;
    desk.agent.window.take_settings(&Settings { redact: true, ..Settings::default() });
    let event = at_the_end(&desk).await;
    let frame = &event["call_stack"][0]["frame_id"];
    let mut told = vec![event.to_string()];
    let scopes = desk.call("get_scopes", json!({"frame_id": frame})).await;
    let locals = &scopes.value["scopes"][0]["variables_reference"];
    for (tool, arguments) in [
        ("get_variables", json!({"variables_reference": locals})),
        ("evaluate_expression", json!({"expression": "password", "frame_id": frame})),
        ("evaluate_expression", json!({"expression": "login", "frame_id": frame})),
        ("debug", json!({"action": "variables", "scope_id": locals})),
        ("debug", json!({"action": "evaluate", "expression": "login['token']"})),
        ("debug", json!({"action": "sessions"})),
        ("debug_getVariables", json!({})),
        ("debug_evaluate", json!({"expression": "str(login)"})),
    ] {
        told.push(format!("{tool}: {}", desk.call(tool, arguments).await.value));
    }
    for text in told {
        assert!(!text.contains("hunter2") && !text.contains("abc123"), "{text}");
    }
    let plain =
        desk.call("evaluate_expression", json!({"expression": "len(items)", "frame_id": frame})).await;
    assert_eq!(plain.value["result"], "1000", "what is no secret is told");
}

#[tokio::test]
async fn without_the_setting_everything_is_told() {
    let desk = Desk::open().await;
    let event = at_the_end(&desk).await;
    assert!(event.to_string().contains("hunter2"), "{event:#}");
}

#[tokio::test]
async fn results_are_small_unless_more_is_asked_for() {
    let desk = Desk::open().await;
    let event = at_the_end(&desk).await;
    let frame = &event["call_stack"][0]["frame_id"];
    assert!(event.to_string().len() < 4_000, "{event:#}");
    let length = |value: &Value| value["result"].as_str().unwrap().chars().count();
    let plain = |more: Value| {
        let mut arguments = json!({"expression": "plain", "frame_id": frame});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let cut = desk.call("evaluate_expression", plain(json!({}))).await;
    assert_eq!(length(&cut.value), 4_096 + 3);
    assert!(
        cut.value["message"].as_str().unwrap().contains("max_length gives more"),
        "{}",
        cut.value["message"]
    );
    let whole = desk.call("evaluate_expression", plain(json!({"max_length": 20_000}))).await;
    assert_eq!(length(&whole.value), 10_002);
    let members = desk.call("evaluate_expression", json!({"expression": "items", "frame_id": frame})).await;
    let reference = &members.value["variables_reference"];
    let page = desk.call("get_variables", json!({"variables_reference": reference})).await;
    assert!(page.value["variables"].as_array().unwrap().len() <= 100);
    let scopes = desk.call("get_scopes", json!({"frame_id": frame})).await;
    let locals = &scopes.value["scopes"][0]["variables_reference"];
    for (max_length, expected) in [(None, 256), (Some(1_000), 1_000)] {
        let mut arguments = json!({"variables_reference": locals});
        if let Some(max_length) = max_length {
            arguments["max_length"] = json!(max_length);
        }
        let variables = desk.call("get_variables", arguments).await;
        let variables = variables.value["variables"].as_array().unwrap();
        let plain = variables.iter().find(|variable| variable["name"] == "plain").unwrap();
        assert_eq!(plain["value"].as_str().unwrap().chars().count(), expected + 3);
    }
    let said = desk.debug("evaluate", json!({"expression": "plain", "max_length": 10})).await;
    assert!(said.text.starts_with("'xxxxxxxxx...") && said.text.contains("Cut from 10002"), "{}", said.text);
}
