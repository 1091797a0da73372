//! The main job as one scenario: what a client does with a window, for tests and the demo alike.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::Client;

/// The 11 tools of the toolset `debugger`.
pub const DEBUGGER_TOOLS: [&str; 11] = [
    "get_debugger_configurations",
    "set_breakpoint",
    "remove_breakpoint",
    "get_breakpoints",
    "start_debugging",
    "continue_debugging",
    "step_execution",
    "get_scopes",
    "get_variables",
    "evaluate_expression",
    "stop_debugging",
];

/// Where a fixture project is stopped at and what is seen there.
pub struct Stop {
    /// Name in launch.json.
    pub configuration: &'static str,
    /// Line of `main.py`.
    pub line: u64,
    /// A local variable with its value at that line.
    pub local: (&'static str, &'static str),
    /// An expression with its value at that line.
    pub expression: (&'static str, &'static str),
}

/// The stop in a fixture project.
pub fn stop_of(project: &str) -> Stop {
    match project {
        "shop" => Stop {
            configuration: "bill",
            line: 8,
            local: ("unit", "3"),
            expression: ("unit * quantity", "6"),
        },
        "weather" => Stop {
            configuration: "warmest",
            line: 9,
            local: ("day", "'mon'"),
            expression: ("degrees + 1", "12.5"),
        },
        "robots" => Stop { configuration: "walk", line: 10, local: ("dy", "1"), expression: ("y + dy", "1") },
        other => panic!("no stop is written down for {other}"),
    }
}

/// Sets a breakpoint, starts the program and looks around at the stop; the stop event.
///
/// `say` hears each step: the demo prints them.
pub fn debug_to_stop(client: &mut Client, project: &str, folder: &Path, mut say: impl FnMut(&str)) -> Value {
    let stop = stop_of(project);
    let file = folder.join("main.py");
    let set = client.expect(
        "success",
        "set_breakpoint",
        json!({ "file_path": "main.py", "line_number": stop.line }),
    );
    let breakpoint = &set["breakpoint"];
    assert_eq!(breakpoint["source"]["path"], file.to_str().expect("a path of text"), "{breakpoint}");
    say(&format!("breakpoint {} in {project}/main.py:{}", breakpoint["id"], stop.line));

    let started =
        client.expect("stopped", "start_debugging", json!({ "configuration_name": stop.configuration }));
    let event = started["stop_event_data"].clone();
    assert_eq!(event["reason"], "breakpoint", "{event:#}");
    assert_eq!(event["line"], stop.line, "{event:#}");
    assert_eq!(event["hit_breakpoint_ids"], json!([breakpoint["id"]]), "{event:#}");
    let locals = &event["top_frame_variables"]["variables"];
    assert_eq!(variable(locals, stop.local.0)["value"], stop.local.1, "{event:#}");
    say(&format!("stopped at line {}; {} = {}", stop.line, stop.local.0, stop.local.1));

    let frame = event["call_stack"][0]["frame_id"].clone();
    let scopes = client.expect("success", "get_scopes", json!({ "frame_id": frame }));
    let reference = scopes["scopes"][0]["variables_reference"].clone();
    let variables = client.expect("success", "get_variables", json!({ "variables_reference": reference }));
    assert_eq!(variable(&variables["variables"], stop.local.0)["value"], stop.local.1, "{variables:#}");
    say(&format!("{} variables read", variables["variables"].as_array().map_or(0, Vec::len)));

    let (expression, value) = stop.expression;
    let evaluated = client.expect(
        "success",
        "evaluate_expression",
        json!({ "expression": expression, "frame_id": frame, "context": "watch" }),
    );
    assert_eq!(evaluated["result"], value, "{evaluated:#}");
    say(&format!("{expression} is {value}"));
    event
}

/// One step over from a stop; the next stop event.
pub fn step(client: &mut Client, event: &Value) -> Value {
    let arguments =
        json!({ "thread_id": event["thread_id"], "session_id": event["session_id"], "step_type": "over" });
    let stepped = client.expect("stopped", "step_execution", arguments);
    let next = stepped["stop_event_data"].clone();
    assert_eq!(next["reason"], "step", "{next:#}");
    assert_ne!(next["line"], event["line"], "{next:#}");
    next
}

/// Removes all breakpoints and runs the program to its end.
pub fn finish(client: &mut Client, event: &Value) {
    client.expect("success", "remove_breakpoint", json!({ "clear_all": true }));
    let arguments = json!({ "thread_id": event["thread_id"], "session_id": event["session_id"] });
    client.expect("completed", "continue_debugging", arguments);
}

/// Names of the configurations of the window that answers: they tell the fixture projects apart.
pub fn configurations(client: &mut Client) -> Vec<String> {
    let content = client.expect("success", "get_debugger_configurations", json!({}));
    let all = content["configurations"].as_array().cloned().unwrap_or_default();
    all.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect()
}

/// The variable of that name.
pub fn variable<'a>(variables: &'a Value, name: &str) -> &'a Value {
    let found = variables.as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
    found.unwrap_or_else(|| panic!("no variable {name} in {variables:#}"))
}
