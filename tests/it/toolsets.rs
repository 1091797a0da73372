//! The toolsets that are not offered by default, called by an official client: every action and every tool once. The
//! client itself checks each result against the schema it was listed.

use std::time::Duration;

use baton_tests::client::{Client, ClientKind, content_of};
use baton_tests::process::await_some;
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

/// Calls a tool; whether it was refused, its first text, what it says to programs.
fn say(client: &mut Client, tool: &str, arguments: &Value) -> (bool, String, Value) {
    let result = client.try_call(tool, arguments.clone());
    let result = result.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"));
    assert_eq!(result["_meta"]["baton/window"]["name"], "shop", "{result:#}");
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    (result["isError"] == true, text, content_of(&result).clone())
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

/// Starts a program, and waits until it stops: on a busy machine it may run for longer than a launch waits.
fn launch(client: &mut Client, mut arguments: Value) -> (String, Value) {
    arguments["action"] = json!("launch");
    let mut result = client.try_call("debug", arguments).expect("a program is started");
    if content_of(&result)["state"] == "running" {
        let session = content_of(&result)["snapshot"]["id"].clone();
        let go_on = json!({"action": "continue", "session": session, "timeout": 60});
        result = client.try_call("debug", go_on).expect("it goes on");
    }
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    assert_eq!(content_of(&result)["state"], "stopped", "{text}");
    (text, content_of(&result).clone())
}

#[test]
fn every_action_of_debug() {
    let (_world, mut client) = shop("debug");
    assert_eq!(client.list(), ["debug"]);
    debug(&mut client, json!({"file": "main.py", "line": 8}), "set_breakpoint");
    let (text, launched) = launch(&mut client, json!({"program": "main.py"}));
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
    let (text, _) = launch(&mut client, json!({"program": "login.py"}));
    assert!(text.contains("password = [redacted]") && !text.contains("hunter2"), "{text}");
    debug(&mut client, json!({}), "terminate");
    client.close();
}

#[test]
fn debugging_can_be_turned_off() {
    let (world, mut client) = shop("debug,quick,lcp,code");
    debug(&mut client, json!({"file": "main.py", "line": 8}), "set_breakpoint");
    launch(&mut client, json!({"program": "main.py"}));
    world.baton_ok(&["settings", "debug_enabled", "false"]);
    let listed = client.list();
    assert!(listed.contains(&"lcp_get_outline".to_owned()), "{listed:?}");
    let debugs = ["debug", "lcp_debug_step", "lcp_add_breakpoint", "debug_getStatus"];
    assert!(listed.iter().all(|name| !debugs.contains(&name.as_str())), "{listed:?}");
    for (tool, arguments) in [
        ("debug", json!({"action": "launch", "program": "main.py"})),
        ("debug", json!({"action": "stack_trace"})),
        ("lcp_debug_launch", json!({"program": "main.py", "args": []})),
        ("debug_getStatus", json!({})),
    ] {
        let refused = client.try_call(tool, arguments).expect("an answer");
        let told = content_of(&refused);
        assert!(refused["isError"] == true && told["code"] == "debug_disabled", "{tool}: {refused:#}");
        assert!(told["hint"].as_str().is_some_and(|hint| hint.contains("debug_enabled true")), "{told}");
    }
    // What was started can be ended, and code can be read.
    debug(&mut client, json!({}), "terminate");
    done(&mut client, "lcp_get_outline", json!({"file_path": "main.py"}));
    world.baton_ok(&["settings", "debug_enabled", "true"]);
    debug(&mut client, json!({}), "sessions");
    client.close();
}

#[test]
fn a_flood_comes_in_pages_through_the_url() {
    const N_LINES: usize = 100_000;
    let (world, mut client) = shop("debug");
    let text = format!(
        "for n in range({N_LINES}):\n    print('line', n, 'of a flood that is longer than what is kept of it')\nprint('done')\n"
    );
    std::fs::write(world.folder("shop").join("flood.py"), text).expect("a file of the window");
    debug(&mut client, json!({"file": "flood.py", "line": 3}), "set_breakpoint");
    let (text, _) = launch(&mut client, json!({"program": "flood.py"}));
    assert!(text.len() < 8_000, "{} bytes", text.len());
    assert!(text.contains("earlier bytes omitted"), "{text}");
    // What the debugger still has to tell pushes out what was told: between two pages, too.
    let last_line = format!("line {} of", N_LINES - 1);
    let is_all_told = || {
        let (text, _) = debug(&mut client, json!({"max_length": 200}), "output");
        text.contains(&last_line).then_some(())
    };
    assert!(await_some(Duration::from_secs(30), is_all_told).is_some(), "the end of the flood comes");
    // From the beginning, page by page: what is left of it comes once and in order, and the rest is counted.
    let (mut cursor, mut all, mut is_cut) = (0, String::new(), false);
    loop {
        let asked = json!({"since": cursor, "max_length": 200_000});
        let (text, page) = debug(&mut client, asked, "output");
        let output = page["output"].as_str().expect("a text").to_owned();
        is_cut |= text.contains("earlier bytes omitted");
        if output.is_empty() {
            break;
        }
        all.push_str(&output);
        cursor = page["outputCursor"].as_u64().expect("a cursor");
    }
    let number = |line: &str| line.strip_prefix("line ")?.split_once(' ')?.0.parse::<usize>().ok();
    let lines: Vec<usize> = all.lines().filter_map(number).collect();
    assert_eq!(lines.last(), Some(&(N_LINES - 1)));
    assert!(lines.len() > 10_000 && lines.len() < N_LINES, "{}", lines.len());
    assert!(lines.windows(2).all(|pair| pair[0] < pair[1]), "in order, and each once");
    assert!(is_cut, "what fell out is told");
    let (text, ended) = debug(&mut client, json!({}), "continue");
    assert!(text.contains("done"), "{text}");
    assert_eq!(ended["snapshot"]["outputTruncated"], true, "{ended}");
    client.close();
}

#[test]
fn two_windows_and_two_sessions_in_each_are_debugged_at_once() {
    let (world, mut client) = shop("debug");
    let mut world = world;
    world.window("weather");
    world.baton_ok(&["settings", "routing", "any"]);
    let mut sessions = Vec::new();
    for window in ["shop", "weather"] {
        for name in ["one", "two"] {
            let file = format!("{name}.py");
            let text = format!("here = '{window} {name}'\nn = 0\nwhile n < 3:\n    n += 1\nprint(here)\n");
            std::fs::write(world.folder(window).join(&file), text).expect("a file of the window");
            let arguments = json!({"action": "set_breakpoint", "window": window, "file": file, "line": 4});
            client.try_call("debug", arguments).expect("a breakpoint is set");
            let (text, launched) = launch(&mut client, json!({"window": window, "program": file}));
            let snapshot = launched["snapshot"].clone();
            assert_eq!(snapshot["line"], 4, "{text}");
            sessions.push((window, name, snapshot["id"].clone()));
        }
    }
    // Each is reached by its session alone, in any order, and stands where it was left.
    for turn in 1..=3 {
        for (window, name, session) in sessions.iter().rev() {
            let mut ask = |arguments: Value| {
                let answer = client.try_call("debug", arguments).expect("an answer");
                assert_eq!(answer["_meta"]["baton/window"]["name"], *window, "{answer:#}");
                content_of(&answer).clone()
            };
            let value = ask(json!({"action": "evaluate", "session": session, "expression": "(here, n)"}));
            let expected = format!("('{window} {name}', {})", turn - 1);
            assert_eq!(value["evaluation"]["result"], expected, "{value:#}");
            let next = ask(json!({"action": "continue", "session": session}));
            let state = if turn == 3 { "terminated" } else { "stopped" };
            assert_eq!(next["state"], state, "{next:#}");
        }
    }
    client.close();
}
