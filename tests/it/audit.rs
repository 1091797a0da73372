//! What is written down of calls (T18), and what never is (T20): on real processes, in all their logs.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use baton_link::home::Home;
use baton_proto::discovery::Role;
use baton_tests::client::ClientKind;
use baton_tests::process::{self, await_some, of_home};
use baton_tests::raw::Request;
use baton_tests::world::{PATIENCE, WindowOptions, World, find};
use serde_json::{Value, json};

/// What no log may hold: it stands in call bodies, in a program's environment and in files.
pub(super) const CANARY: &str = "canary7f3e9b";

/// Every tool with whether it only reads, as the agent itself defines them.
fn tools(world: &World) -> Vec<(String, bool)> {
    let printed = world.command(baton_tests::place::program("baton-agent")).arg("--print-catalogue").output();
    let all: Vec<Value> =
        serde_json::from_slice(&printed.expect("the agent starts").stdout).expect("the catalogue is JSON");
    let of = |one: &Value| {
        let tool = &one["tool"];
        let name = tool["name"].as_str().expect("a tool has a name").to_owned();
        (name, tool["annotations"]["readOnlyHint"] == true)
    };
    all.iter().map(of).collect()
}

fn call(world: &World, token: &str, tool: &str, arguments: &Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let answer = Request::post(world.port(), "/mcp", token, body.to_string()).send(world.port());
    assert_eq!(answer.status, 200, "{tool}: {answer:?}");
    answer.body
}

/// The lines that `baton logs --audit` prints and that name the tool.
fn audit_lines(world: &World, tool: &str) -> Vec<String> {
    let printed = world.baton_ok(&["logs", "--audit", "-n", "100000"]);
    let named = format!(" baton_audit: tool={tool} window=");
    // The first word is its time.
    let is_of = |line: &&str| line.find(&named).is_some_and(|at| at < 40);
    printed.lines().filter(is_of).map(str::to_owned).collect()
}

#[test]
fn t18_each_call_that_changes_or_runs_something_is_one_line_and_others_are_none() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let token = world.token();
    let forged = "x.py\n2026-01-01T00:00:00.000000Z  INFO audit: tool=forged \r\u{1b}[2K";
    let tools = tools(&world);
    assert!(tools.iter().filter(|(_, reads)| !reads).count() > 20, "{tools:?}");
    for (tool, _) in &tools {
        let arguments = json!({ "file_path": forged, "expression": CANARY, "session_id": forged });
        call(&world, &token, tool, &arguments);
    }
    call(&world, &token, "activate_window", &json!({ "window": forged }));
    call(&world, &token, "list_windows", &json!({}));
    for (tool, reads) in &tools {
        let lines = audit_lines(&world, tool);
        assert_eq!(lines.len(), usize::from(!reads), "{tool}: {lines:#?}");
        assert!(lines.iter().all(|line| line.contains("error:")), "{lines:#?}");
    }
    assert_eq!(audit_lines(&world, "activate_window").len(), 1);
    assert_eq!(audit_lines(&world, "list_windows").len(), 0);
    assert_eq!(audit_lines(&world, "forged").len(), 0, "no newline gets into a line");
    let all = world.baton_ok(&["logs", "--audit", "-n", "100000"]);
    assert_eq!(all.lines().count(), tools.iter().filter(|(_, reads)| !reads).count() + 1, "{all}");
    assert!(!all.contains(CANARY) && !all.contains(&token) && !all.contains('\u{1b}'), "{all}");
}

#[test]
fn t18_a_line_says_who_did_what_to_what_and_what_came_of_it() {
    let mut world = World::new().with_env("BATON_LOG", "error");
    world.window("shop");
    let live = world.await_live("shop");
    let mut client = world.client(ClientKind::Python1);
    client.expect("success", "set_breakpoint", json!({ "file_path": "main.py", "line_number": 8 }));
    let started = client.expect("stopped", "start_debugging", json!({ "configuration_name": "bill" }));
    let event = &started["stop_event_data"];
    let frame = event["call_stack"][0]["frame_id"].clone();
    let expression = format!("'{CANARY}' * 2");
    client.expect("success", "evaluate_expression", json!({ "frame_id": frame, "expression": expression }));
    client.expect("success", "get_breakpoints", json!({}));
    let edit =
        json!({ "file_path": "wait.py", "edits": [{ "start_line": 1, "end_line": 0, "new_text": CANARY }] });
    client.call("lcp_apply_edit", edit);
    client.expect("success", "stop_debugging", json!({}));
    client.close();
    let printed = world.baton_ok(&["logs", "--audit"]);
    let lines: Vec<&str> = printed.lines().collect();
    let has = |line: &str, parts: &[&str]| {
        for part in parts {
            assert!(line.contains(part), "{part} is not in {line}\n{printed}");
        }
    };
    let window = format!("window={}", live.live.expect("a window is live"));
    assert_eq!(lines.len(), 5, "also where the filter wants errors alone:\n{printed}");
    has(
        lines[0],
        &[&window, "tool=set_breakpoint", r#"file_path="main.py""#, "line_number=8", "outcome=success"],
    );
    has(lines[1], &["tool=start_debugging", r#"configuration_name="bill""#, "outcome=stopped", "ms="]);
    has(lines[2], &["tool=evaluate_expression", "expression=18 characters #", "outcome=success"]);
    has(lines[3], &["tool=lcp_apply_edit", r#"file_path="wait.py""#, "edits=[1]", r#"file="wait.py""#]);
    has(lines[4], &["tool=stop_debugging", "outcome=success"]);
    for line in lines {
        assert!(line.contains("client=\"") && !line.contains("client=\"\""), "the client's name: {line}");
        assert!(!line.contains(CANARY), "{line}");
    }
}

/// What must not be found, with what it is called.
pub(super) fn secrets(world: &World, client_tokens: &[String]) -> Vec<(String, Vec<u8>)> {
    let bytes = std::fs::read(world.home().join("secret")).expect("the secret is there");
    let home = Home::open(world.home()).expect("the folder is ours");
    let secret = home.secret().expect("it can be read");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut all = vec![
        ("the secret".to_owned(), bytes.clone()),
        ("the secret in hex".to_owned(), hex.clone().into_bytes()),
        ("the secret in HEX".to_owned(), hex.to_uppercase().into_bytes()),
        ("the secret in base64".to_owned(), STANDARD.encode(&bytes).into_bytes()),
        ("the secret in base64 for URLs".to_owned(), URL_SAFE_NO_PAD.encode(&bytes).into_bytes()),
        ("the member's token".to_owned(), secret.token(Role::Member).expose().as_bytes().to_vec()),
        ("the token of figures".to_owned(), secret.token(Role::Metrics).expose().as_bytes().to_vec()),
    ];
    for (idx, token) in client_tokens.iter().enumerate() {
        all.push((format!("client token {idx}"), token.clone().into_bytes()));
    }
    for window in world.status().expect("it runs").windows {
        for incarnation in [None, Some(world.incarnation(&window.id))] {
            let token = secret.window_token(&window.id, incarnation).expose().as_bytes().to_vec();
            all.push((format!("the token of {}", window.name), token));
        }
    }
    all
}

pub(super) fn holds(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

/// Every file that was written for people or programs to read, outside the projects.
fn files(world: &World) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![world.home(), world.home().join("logs"), world.scratch().to_path_buf()];
    folders.push(world.home().join("windows"));
    for folder in folders {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name() != "secret" && entry.path().is_file() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                found.push((entry.path().display().to_string(), bytes));
            }
        }
    }
    found
}

/// A project whose files and launch configuration hold the canary.
pub(super) fn write_project(folder: &Path) {
    std::fs::create_dir_all(folder.join(".vscode")).expect("a temporary folder");
    let program =
        format!("import os\nsecret = '{CANARY}'\nprint(secret, os.environ['CANARY'])\nx = 1\ny = x + 1\n");
    std::fs::write(folder.join("main.py"), program).expect("a temporary file");
    let launch = json!({ "version": "0.2.0", "configurations": [
        { "name": "main", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/main.py",
          "env": { "CANARY": format!("env-{CANARY}") }, "args": [format!("arg-{CANARY}")] },
        { "name": "gone", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/gone.py",
          "env": { "CANARY": format!("env-{CANARY}") } },
    ]});
    std::fs::write(folder.join(".vscode/launch.json"), launch.to_string()).expect("a temporary file");
}

/// Calls that hold the canary wherever a call may hold something, right and wrong ones.
pub(super) fn make_calls(world: &World, token: &str) {
    let mut client = world.client(ClientKind::Python1);
    let condition = format!("secret == '{CANARY}'");
    let at = |line: u32| json!({ "file_path": "main.py", "line_number": line, "condition": condition });
    client.expect("success", "set_breakpoint", at(4));
    let started = client.expect("stopped", "start_debugging", json!({ "configuration_name": "main" }));
    let frame = started["stop_event_data"]["call_stack"][0]["frame_id"].clone();
    assert!(client.call("get_variables", json!({ "variables_reference": 1 })).is_object());
    let evaluate = |text: String| json!({ "frame_id": frame, "expression": text });
    client.expect("success", "evaluate_expression", evaluate(format!("secret + '{CANARY}'")));
    client.expect("error", "evaluate_expression", evaluate(format!("{CANARY} +")));
    client.expect("error", "start_debugging", json!({ "configuration_name": "gone" }));
    let edit = |old: &str| json!({ "file_path": "main.py", "edits": [{ "old_text": old, "new_text": format!("y = '{CANARY}'\n") }] });
    client.call("lcp_apply_edit", edit("y = x + 1\n"));
    client.call("lcp_apply_edit", edit(CANARY));
    client.call("lcp_get_outline", json!({ "file_path": "main.py" }));
    client.call("lcp_read_symbol", json!({ "file_path": "main.py", "symbol_name": "secret" }));
    client.expect("success", "stop_debugging", json!({}));
    client.close();
    call(world, token, "evaluate_expression", &json!({ "expression": [CANARY] }));
    let broken = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"a":"{CANARY}""#);
    assert_eq!(Request::post(world.port(), "/mcp", token, broken).send(world.port()).status, 400);
    let wrong = Request::post(world.port(), "/mcp", &format!("{token}x"), "{}").send(world.port());
    assert_eq!(wrong.status, 401);
}

#[test]
fn t20_no_secret_and_no_content_is_in_any_log_file_output_or_process() {
    let mut world = World::new().with_env("BATON_LOG", "trace");
    let folder = world.scratch().join("projects/canary");
    write_project(&folder);
    world.window_with("canary", WindowOptions { folder: Some(folder), ..WindowOptions::default() });
    world.await_live("canary");
    let first = world.token();
    make_calls(&world, &first);
    // Restarts, a crash, a new token: each logs something of its own.
    world.baton_ok(&["restart", "canary"]);
    world.await_live("canary");
    process::kill9(world.coordinator_pid());
    world.await_live("canary");
    world.baton_ok(&["token", "--rotate"]);
    let second = world.token();
    assert_ne!(first, second);
    make_calls(&world, &second);
    process::kill9(world.agent_pid("canary"));
    let back = await_some(PATIENCE, || {
        let status = world.status()?;
        status.live.is_some().then_some(status)
    });
    assert!(find(&back.expect("the window comes back"), "canary").is_some());

    let secrets = secrets(&world, &[first, second]);
    let canary = ("the canary".to_owned(), CANARY.as_bytes().to_vec());
    let mut searched = files(&world);
    let n_logs = searched.iter().filter(|(name, _)| name.ends_with(".log")).count();
    assert!(n_logs >= 3, "of the coordinator, the agent and the window's supervisor: {n_logs}");
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["windows"],
        &["logs", "-n", "100000"],
        &["logs", "--agents", "-n", "100000"],
        &["logs", "--audit", "-n", "100000"],
    ] {
        let printed = world.baton(arguments);
        searched.push((format!("baton {arguments:?}"), (printed.out + &printed.err).into_bytes()));
    }
    for (pid, line) in of_home(&world.home()) {
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            searched.push((format!("{file} of {line}"), bytes));
        }
    }
    let mut leaks = Vec::new();
    for (place, bytes) in &searched {
        for (what, pattern) in secrets.iter().chain([&canary]) {
            if holds(bytes, pattern) {
                let text = String::from_utf8_lossy(bytes);
                let line = text.lines().find(|line| holds(line.as_bytes(), pattern)).unwrap_or_default();
                leaks.push(format!("{what} is in {place}: {}", line.chars().take(300).collect::<String>()));
            }
        }
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
}
