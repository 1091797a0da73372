//! The toolsets that are not offered by default, called by an official client: every action and every tool once. The
//! client itself checks each result against the schema it was listed.

use baton_tests::client::{Client, ClientKind};
use baton_tests::world::World;
use serde_json::{Value, json};

/// A window on the shop, and a client that was offered these toolsets.
fn shop(toolsets: &str) -> (World, Client) {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let url = format!("{}?toolsets={toolsets}", world.url());
    let client = Client::connect(&world, ClientKind::Python1, &url);
    (world, client)
}

/// Calls a tool; whether it was refused, its first text, its `structuredContent`.
fn say(client: &mut Client, tool: &str, arguments: &Value) -> (bool, String, Value) {
    let result = client.try_call(tool, arguments.clone());
    let result = result.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"));
    assert_eq!(result["_meta"]["baton/window"]["name"], "shop", "{result:#}");
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (result["isError"] == true, text, result["structuredContent"].clone())
}

fn done(client: &mut Client, tool: &str, arguments: Value) -> (String, Value) {
    let (is_error, text, value) = say(client, tool, &arguments);
    assert!(!is_error, "{tool} {arguments}: {text}");
    (text, value)
}

fn debug(client: &mut Client, mut arguments: Value, action: &str) -> (String, Value) {
    arguments["action"] = json!(action);
    done(client, "debug", arguments)
}

#[test]
fn every_action_of_debug() {
    let (_world, mut client) = shop("debug");
    assert_eq!(client.list(), ["debug"]);
    debug(&mut client, json!({"file": "main.py", "line": 8}), "set_breakpoint");
    let (text, launched) = debug(&mut client, json!({"program": "main.py"}), "launch");
    assert!(text.contains("main.py:8 in price"), "{text}");
    let session = launched["snapshot"]["id"].clone();
    for action in ["step_over", "step_out", "continue", "step_in", "pause", "threads", "stack_trace"] {
        debug(&mut client, json!({"session": session}), action);
    }
    let (_, scopes) = debug(&mut client, json!({}), "scopes");
    let reference = scopes["scopes"][0]["variablesReference"].clone();
    let (text, _) = debug(&mut client, json!({"scope_id": reference}), "variables");
    assert!(text.contains("unit"), "{text}");
    let (text, _) = debug(&mut client, json!({"expression": "item"}), "evaluate");
    assert!(text.starts_with("'bread'"), "{text}");
    for action in ["modules", "output", "sessions"] {
        debug(&mut client, json!({}), action);
    }
    debug(&mut client, json!({"command": "threads", "arguments": {}}), "custom_request");
    // What this adapter cannot do is an answer too.
    for (action, arguments) in [
        ("set_instruction_breakpoint", json!({"instruction_reference": "0x0"})),
        ("data_breakpoint_info", json!({"name": "item"})),
        ("set_data_breakpoint", json!({"data_id": "x"})),
        ("disassemble", json!({"instruction_count": 1})),
        ("read_memory", json!({"memory_reference": "0x0", "count": 1})),
        ("write_memory", json!({"memory_reference": "0x0", "data": "AA=="})),
        ("loaded_sources", json!({})),
        ("remove_instruction_breakpoint", json!({"instruction_reference": "0x0"})),
        ("remove_data_breakpoint", json!({"data_id": "x"})),
        ("attach", json!({})),
    ] {
        let mut arguments = arguments;
        arguments["action"] = json!(action);
        let (is_error, text, value) = say(&mut client, "debug", &arguments);
        assert!(is_error && !text.is_empty(), "{action}: {text}");
        assert_eq!((&value["action"], &value["success"]), (&json!(action), &json!(false)));
    }
    debug(&mut client, json!({"file": "main.py", "line": 8}), "remove_breakpoint");
    debug(&mut client, json!({}), "terminate");
    client.close();
}

#[test]
fn every_tool_of_quick() {
    let (_world, mut client) = shop("quick");
    assert_eq!(client.list().len(), 14);
    done(&mut client, "debug_setBreakpoint", json!({"file": "main.py", "line": 8}));
    let (_, started) = done(&mut client, "debug_start", json!({"file": "main.py"}));
    assert_eq!(started["status"], "stopped");
    let (_, status) = done(&mut client, "debug_getStatus", json!({}));
    assert_eq!((&status["line"], &status["paused"]), (&json!(8), &json!(true)));
    for tool in ["debug_listBreakpoints", "debug_getStackTrace", "debug_getVariables"] {
        let (text, value) = done(&mut client, tool, json!({}));
        let list: Value = serde_json::from_str(&text).expect("the text is the list");
        assert_eq!(value["result"], list);
        assert!(list.as_array().is_some_and(|list| !list.is_empty()), "{tool}: {text}");
    }
    let (_, evaluated) = done(&mut client, "debug_evaluate", json!({"expression": "unit * quantity"}));
    assert_eq!(evaluated, json!({"result": "6", "type": "int"}));
    for tool in ["debug_stepOver", "debug_stepOut", "debug_continue", "debug_stepInto", "debug_pause"] {
        done(&mut client, tool, json!({}));
    }
    done(&mut client, "debug_removeBreakpoint", json!({"file": "main.py", "line": 8}));
    done(&mut client, "debug_stop", json!({}));
    client.close();
}

#[test]
fn every_debugging_tool_of_lcp() {
    let (world, mut client) = shop("lcp");
    assert_eq!(client.list().len(), 6);
    let (_, added) = done(&mut client, "lcp_add_breakpoint", json!({"file": "main.py", "line": 8}));
    let (_, launched) = done(&mut client, "lcp_debug_launch", json!({"program": "main.py"}));
    let id = launched["data"]["session_id"].clone();
    let step = |action: &str| json!({"session_id": id, "action": action});
    let (_, stopped) = done(&mut client, "lcp_debug_step", step("continue"));
    assert_eq!(
        (&stopped["data"]["current_line"], &stopped["data"]["reason"]),
        (&json!(8), &json!("breakpoint"))
    );
    // The UUID names the session's window: another one is live now.
    let mut world = world;
    world.window("weather");
    world.take("weather");
    world.baton_ok(&["settings", "routing", "any"]);
    let evaluate = json!({"session_id": id, "expression": "unit"});
    let (_, evaluated) = done(&mut client, "lcp_debug_evaluate", evaluate);
    assert_eq!(evaluated["data"]["value"], "3");
    world.take("shop");
    done(&mut client, "lcp_remove_breakpoint", json!({"breakpoint_id": added["data"]["breakpoint_id"]}));
    let (_, stopped) = done(&mut client, "lcp_debug_stop", json!({"session_id": id}));
    assert_eq!(stopped["data"]["message"], "Debug session stopped");
    client.close();
}

#[test]
fn secrets_are_hidden_once_the_setting_is_on() {
    let (world, mut client) = shop("debug");
    world.baton_ok(&["settings", "redact", "true"]);
    std::fs::write(world.folder("shop").join("login.py"), "password = 'hunter2'\nprint('end')\n")
        .expect("a file of the window");
    debug(&mut client, json!({"file": "login.py", "line": 2}), "set_breakpoint");
    let (text, _) = debug(&mut client, json!({"program": "login.py"}), "launch");
    assert!(text.contains("password = [redacted]") && !text.contains("hunter2"), "{text}");
    debug(&mut client, json!({}), "terminate");
    client.close();
}
