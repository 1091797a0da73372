//! What belongs to one window is never another's: its files in every debugging tool, and the ids that it gave out.

use std::path::PathBuf;

use baton_tests::client::{Client, ClientKind, content_of};
use baton_tests::world::{WindowOptions, World};
use serde_json::{Value, json};

const TOOLSETS: &str = "debugger,debug,quick,lcp,code,windows";
const LAUNCH: &str = r#"{"configurations": [
    {"name": "this file", "type": "debugpy", "request": "launch", "program": "${file}", "console": "internalConsole"},
    {"name": "elsewhere", "type": "debugpy", "request": "launch", "program": "TOOL", "console": "internalConsole"}
]}"#;

/// Two windows, `shop` live, and a program that is in neither; `shop`'s launch.json names it.
fn two_windows() -> (World, Client, PathBuf) {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let tool = world.scratch().canonicalize().expect("a folder").join("tool.py");
    std::fs::write(&tool, "n = 1\nn += 1\nprint(n)\n").expect("a file");
    let launch = LAUNCH.replace("TOOL", &tool.display().to_string());
    std::fs::write(world.folder("shop").join(".vscode/launch.json"), launch).expect("a file");
    let client =
        Client::connect(&world, ClientKind::Python1, &format!("{}?toolsets={TOOLSETS}", world.url()));
    (world, client, tool)
}

fn ask(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let answer = client.try_call(tool, arguments.clone());
    answer.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"))
}

fn done(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let answer = ask(client, tool, &arguments);
    assert_ne!(answer["isError"], true, "{tool} {arguments}: {answer:#}");
    content_of(&answer).clone()
}

fn refused(client: &mut Client, code: &str, tool: &str, arguments: Value) -> Value {
    let answer = ask(client, tool, &arguments);
    assert_eq!(answer["isError"], true, "{tool} {arguments}: {answer:#}");
    let content = content_of(&answer).clone();
    assert_eq!(content["code"], code, "{tool} {arguments}: {content:#}");
    content
}

/// Every call of a debugging tool that takes a file, about this one.
fn calls_about(file: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("debug", json!({"action": "set_breakpoint", "file": file, "line": 9})),
        ("debug", json!({"action": "remove_breakpoint", "file": file, "line": 9})),
        ("debug", json!({"action": "launch", "program": file})),
        ("debug", json!({"action": "launch", "configuration": "this file", "file": file})),
        ("set_breakpoint", json!({"file_path": file, "line_number": 9})),
        ("remove_breakpoint", json!({"location": {"file_path": file, "line_number": 9}})),
        ("start_debugging", json!({"configuration_name": "this file", "file": file})),
        ("debug_setBreakpoint", json!({"file": file, "line": 9})),
        ("debug_removeBreakpoint", json!({"file": file, "line": 9})),
        ("debug_start", json!({"file": file})),
        ("lcp_add_breakpoint", json!({"file": file, "line": 9})),
        ("lcp_debug_launch", json!({"program": file})),
    ]
}

#[test]
fn a_file_of_another_window_is_refused_by_every_debugging_tool() {
    let (world, mut client, _) = two_windows();
    let folder = world.folder("weather").display().to_string();
    let theirs = format!("{folder}/main.py");
    let mut calls = calls_about(&theirs);
    calls.extend(calls_about("../weather/main.py"));
    calls.extend(calls_about(&format!("file://localhost{theirs}")));
    let debug = |arguments: Value| ("debug", arguments);
    calls.extend([
        debug(json!({"action": "launch", "program": "main.py", "cwd": folder})),
        debug(json!({"action": "launch", "program": "main.py", "arguments": {"cwd": folder}})),
        debug(json!({"action": "launch", "program": "main.py", "arguments": {"program": theirs}})),
    ]);
    for (tool, arguments) in calls {
        let content = refused(&mut client, "outside_window", tool, arguments.clone());
        let message = content["message"].as_str().unwrap_or_default();
        assert!(message.ends_with("The window \"weather\" has it."), "{tool} {arguments}: {message}");
        let hint = content["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("activate_window"), "{tool} {arguments}: {hint}");
    }
    // Nothing of it was done.
    assert_eq!(done(&mut client, "get_breakpoints", json!({}))["breakpoints"], json!([]));
    assert_eq!(done(&mut client, "debug", json!({"action": "sessions"}))["sessions"], json!([]));

    world.baton_ok(&["settings", "routing", "any"]);
    for (tool, mut arguments) in calls_about(&theirs).into_iter().filter(|(tool, _)| tool.contains("set")) {
        let content = refused(&mut client, "outside_window", tool, arguments.clone());
        assert_eq!(content["hint"], "Name \"weather\" in the argument window.", "{content:#}");
        arguments["window"] = json!("weather");
        done(&mut client, tool, arguments);
    }
    client.close();
}

#[test]
fn a_file_of_no_window_is_everybodys_and_one_of_another_machine_nobodys() {
    let (world, mut client, tool) = two_windows();
    let set = json!({"action": "set_breakpoint", "file": tool, "line": 3});
    done(&mut client, "debug", set.clone());
    for start in [
        json!({"action": "launch", "program": tool, "timeout": 60}),
        json!({"action": "launch", "configuration": "elsewhere", "timeout": 60}),
        json!({"action": "launch", "configuration": "this file", "file": tool, "timeout": 60}),
    ] {
        let started = done(&mut client, "debug", start);
        assert_eq!(started["snapshot"]["line"], 3, "{started:#}");
        done(&mut client, "debug", json!({"action": "terminate"}));
    }
    done(&mut client, "debug", json!({"action": "remove_breakpoint", "file": tool, "line": 3}));

    let own = world.folder("shop").join("main.py").display().to_string();
    for address in [format!("file://otherhost{own}"), format!("vscode-remote://ssh-remote%2Bbox{own}")] {
        let mut calls = calls_about(&address);
        calls.push(("lcp_get_outline", json!({"file_path": address})));
        calls.push(("debug", json!({"action": "launch", "program": "main.py", "cwd": address})));
        for (tool, arguments) in calls {
            let content = refused(&mut client, "invalid_path", tool, arguments);
            let message = content["message"].as_str().unwrap_or_default();
            assert!(message.contains("not of this window's machine"), "{message}");
        }
    }
    assert_eq!(done(&mut client, "get_breakpoints", json!({}))["breakpoints"], json!([]));
    client.close();
}

#[test]
fn the_window_whose_folder_is_nearest_has_a_file() {
    let mut world = World::new();
    let inner = world.folder("shop").join("inner");
    world.window("shop");
    world.await_live("shop");
    std::fs::create_dir(&inner).expect("a folder");
    std::fs::write(inner.join("part.py"), "n = 1\nprint(n)\n").expect("a file");
    let mut client =
        Client::connect(&world, ClientKind::Python1, &format!("{}?toolsets={TOOLSETS}", world.url()));
    let set = json!({"action": "set_breakpoint", "file": "inner/part.py", "line": 1});
    done(&mut client, "debug", set.clone());
    world.window_with("inner", WindowOptions { folder: Some(inner), ..WindowOptions::default() });
    let content = refused(&mut client, "outside_window", "debug", set);
    assert!(content["message"].as_str().is_some_and(|message| message.contains("\"inner\"")), "{content:#}");
    // What was set before can still be removed.
    let remove = json!({"action": "remove_breakpoint", "file": "inner/part.py", "line": 1});
    done(&mut client, "debug", remove.clone());
    refused(&mut client, "outside_window", "debug", remove);
    // What is the outer one's stays its own, and is not the inner one's.
    done(&mut client, "debug", json!({"action": "set_breakpoint", "file": "main.py", "line": 8}));
    world.take("inner");
    done(&mut client, "get_breakpoints", json!({}));
    done(&mut client, "debug", json!({"action": "set_breakpoint", "file": "part.py", "line": 2}));
    let outer = world.folder("shop").join("main.py");
    let content =
        refused(&mut client, "outside_window", "debug_setBreakpoint", json!({"file": outer, "line": 8}));
    assert!(content["message"].as_str().is_some_and(|message| message.contains("\"shop\"")), "{content:#}");
    client.close();
}

#[test]
fn an_id_of_the_window_that_was_live_before_is_refused_by_name() {
    let (world, mut client, tool) = two_windows();
    let stop = |client: &mut Client| {
        let set = json!({"file_path": tool, "line_number": 3});
        let set = done(client, "set_breakpoint", set)["breakpoint"]["id"].clone();
        let started = json!({"action": "launch", "program": tool, "timeout": 60});
        let started = done(client, "debug", started);
        (set, started["snapshot"]["frameId"].clone())
    };
    let (old_breakpoint, old_frame) = stop(&mut client);
    world.take("weather");
    done(&mut client, "get_breakpoints", json!({}));
    let (breakpoint, frame) = stop(&mut client);
    let evaluate = |frame: &Value| json!({"expression": "n", "frame_id": frame});
    let content = refused(&mut client, "foreign_id", "evaluate_expression", evaluate(&old_frame));
    let expected = format!("Frame {old_frame} is of another window, or of an earlier run of this one.");
    assert_eq!(content["message"], expected.as_str());
    let content =
        refused(&mut client, "foreign_id", "remove_breakpoint", json!({"breakpoint_id": old_breakpoint}));
    let expected =
        format!("Breakpoint {old_breakpoint} is of another window, or of an earlier run of this one.");
    assert_eq!(content["message"], expected.as_str());
    assert_eq!(done(&mut client, "evaluate_expression", evaluate(&frame))["result"], "2");
    done(&mut client, "remove_breakpoint", json!({"breakpoint_id": breakpoint}));
    // The first window still knows its own.
    world.take("shop");
    done(&mut client, "get_breakpoints", json!({}));
    assert_eq!(done(&mut client, "evaluate_expression", evaluate(&old_frame))["result"], "2");
    refused(&mut client, "foreign_id", "evaluate_expression", evaluate(&frame));
    client.close();
}
