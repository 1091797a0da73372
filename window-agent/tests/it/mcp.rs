//! The MCP server of the agent, spoken to by the official client and, where no client would, byte by byte.

use std::time::{Duration, Instant};

use baton_agent_tools::CATALOGUE;
use baton_agent_tools::definition::Definition;
use baton_proto::control::Settings;
use baton_proto::edge::REFUSED_HEADER;
use baton_proto::ids::Term;
use expect_test::{Expect, expect};
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::support::agent::{self, Agent};

const OLD: ClientLifecycleMode = ClientLifecycleMode::Initialize;

fn new() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

#[tokio::test]
async fn both_eras_see_the_same_tools_and_every_result_names_the_window() {
    let agent = Agent::start(&[]).await;
    for lifecycle in [OLD, new()] {
        let client = agent.client(lifecycle).await;
        let tools = client.list_all_tools().await.unwrap();
        let default = Settings::default().toolsets;
        let is_offered =
            |definition: &&Definition| default.iter().any(|toolset| toolset == definition.toolset);
        let offered = CATALOGUE.definitions().iter().filter(is_offered);
        let defined: Vec<_> = offered.map(|definition| definition.tool().clone()).collect();
        assert_eq!(tools, defined);

        for (tool, arguments, is_error) in [
            ("get_breakpoints", json!({}), false),
            ("get_scopes", json!({"frame_id": 9}), true),
            ("nope", json!({}), true),
        ] {
            let result = agent::call(&client, tool, arguments).await;
            assert_eq!(result.is_error, Some(is_error), "{tool}");
            let structured = result.structured_content.unwrap();
            let text = &result.content[0].as_text().unwrap().text;
            assert_eq!(*text, structured.to_string(), "the text is the same JSON, minified");
            let window = &result.meta.unwrap().0["baton/window"];
            assert_eq!(*window, json!({"id": "w-test", "name": "test", "term": null}));
        }
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn only_the_coordinator_gets_in() {
    let agent = Agent::start(&[]).await;
    let body = call("get_breakpoints", json!({})).to_string();
    let host = format!("127.0.0.1:{}", agent.port);
    let token = format!("Bearer {}", agent.token);
    let wrong = format!("Bearer {}0", &agent.token[..63]);
    let long = format!("Bearer {}0", agent.token);
    let good = [("host", host.as_str()), ("authorization", token.as_str()), ("baton-pin", "1")];
    let with = |name: &'static str, value: &'static str| {
        let mut headers = good.to_vec();
        headers.push((name, value));
        headers
    };
    let cases = [
        ("as it should be", "POST", "/mcp", good.to_vec()),
        ("no token", "POST", "/mcp", vec![good[0], good[2]]),
        ("wrong token", "POST", "/mcp", vec![good[0], ("authorization", &wrong), good[2]]),
        ("longer token", "POST", "/mcp", vec![good[0], ("authorization", &long), good[2]]),
        ("token twice", "POST", "/mcp", vec![good[0], good[1], good[1], good[2]]),
        ("other host", "POST", "/mcp", vec![("host", "evil.example"), good[1], good[2]]),
        ("host without port", "POST", "/mcp", vec![("host", "127.0.0.1"), good[1], good[2]]),
        ("a browser", "POST", "/mcp", with("origin", "http://localhost:3000")),
        ("other path", "POST", "/other", good.to_vec()),
        ("get", "GET", "/mcp", good.to_vec()),
        ("neither term nor pin", "POST", "/mcp", good[..2].to_vec()),
        ("no term", "POST", "/mcp", with("baton-term", "x")),
        ("text", "POST", "/mcp", with("content-type", "text/plain")),
    ];
    let mut lines = String::new();
    for (what, method, path, headers) in cases {
        let answer = agent.raw(method, path, &headers, body.as_bytes()).await;
        lines.push_str(&format!("{what}: {}\n", answer.status));
    }
    expect![[r#"
        as it should be: 200
        no token: 401
        wrong token: 401
        longer token: 401
        token twice: 401
        other host: 403
        host without port: 403
        a browser: 403
        other path: 404
        get: 405
        neither term nor pin: 400
        no term: 400
        text: 415
    "#]]
    .assert_eq(&lines);
}

#[tokio::test]
async fn a_call_of_an_old_term_or_in_a_lost_window_is_refused_unrun() {
    let agent = Agent::start(&[("a.py", "x = 1\n")]).await;
    let set = call("set_breakpoint", json!({"file_path": "a.py", "line_number": 1}));
    let term = |generation, seq| Term { generation, seq };
    agent.window.fence().handle_acknowledgement(Instant::now());
    agent.window.fence().handle_grant(term(2, 5));

    let refused = agent.post(&[("baton-term", "2.4")], &set).await;
    assert_eq!((refused.status, refused.header(REFUSED_HEADER).as_deref()), (409, Some("stale-term")));
    let accepted = agent.post(&[("baton-term", "2.5")], &set).await;
    assert_eq!(accepted.status, 200);
    assert_eq!(accepted.json()["result"]["_meta"]["baton/window"]["term"], json!([2, 5]));
    let overtaking = agent.post(&[("baton-term", "2.7")], &set).await;
    assert_eq!(overtaking.json()["result"]["_meta"]["baton/window"]["term"], json!([2, 7]));

    // The call overtook its own notice and the one that ends the term before it.
    agent.window.fence().handle_revocation(false);
    assert_eq!(agent.post(&[("baton-term", "2.7")], &set).await.status, 200);
    agent.window.fence().handle_grant(term(2, 7));
    agent.window.fence().handle_revocation(false);
    let over = agent.post(&[("baton-term", "2.7")], &set).await;
    assert_eq!((over.status, over.header(REFUSED_HEADER).as_deref()), (409, Some("stale-term")));

    let lost = Agent::start(&[]).await;
    let fenced = lost.post(&[("baton-term", "9.9")], &set).await;
    assert_eq!((fenced.status, fenced.header(REFUSED_HEADER).as_deref()), (409, Some("fenced")));
    let pinned = lost.post(&[("baton-pin", "1")], &call("get_breakpoints", json!({}))).await;
    assert_eq!(pinned.status, 200, "a call that names its window needs no term");
    assert_eq!(pinned.json()["result"]["structuredContent"]["breakpoints"], json!([]));
}

#[tokio::test]
async fn sizes_and_depths_are_bounded_and_nothing_is_lost() {
    let agent = Agent::start(&[]).await;
    let pin = [("baton-pin", "1")];
    let padded = |len: usize| {
        let mut body = call("get_breakpoints", json!({})).to_string().into_bytes();
        body.resize(len, b' ');
        body
    };
    const LIMIT: usize = 16 * 1024 * 1024;
    assert_eq!(agent.post_bytes(&pin, &padded(LIMIT)).await.status, 200);
    assert_eq!(agent.post_bytes(&pin, &padded(LIMIT + 1)).await.status, 413);

    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get_breakpoints","arguments":{}}}}}"#,
        "[".repeat(1_000_000)
    );
    let refused = agent.post_bytes(&pin, deep.as_bytes()).await.json();
    assert_eq!(refused["error"]["message"], "the message is nested too deeply (limit 64 levels)");

    let members = |n: usize| {
        let members: String = (0..n).map(|n| format!(r#""a{n}":{n},"#)).collect();
        format!(
            r#"{{"jsonrpc":"2.0","id":"m","method":"tools/call","params":{{"name":"get_breakpoints","arguments":{{{members}"z":0}}}}}}"#
        )
    };
    let refused = agent.post_bytes(&pin, members(10_000).as_bytes()).await.json();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("m"), &json!(-32_602)), "{refused}");
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("too many values (limit 10000)"),
        "{refused}"
    );
    let answered = agent.post_bytes(&pin, members(9_000).as_bytes()).await.json();
    let message = answered["result"]["structuredContent"]["message"].as_str().unwrap();
    assert!(message.ends_with("and 8998 more."), "{message}");
    assert!(agent.post_bytes(&pin, b"not json").await.status >= 400);
    assert!(agent.post_bytes(&pin, b"").await.status >= 400);
    assert_eq!(agent.post(&pin, &call("get_breakpoints", json!({}))).await.status, 200);
}

#[tokio::test]
async fn short_calls_do_not_wait_for_long_ones() {
    let agent = Agent::start(&[]).await;
    let pin = [("baton-pin", "1")];
    let text = r"\u00e4".repeat(2_000_000);
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"evaluate_expression","arguments":{{"frame_id":1,"expression":"{text}"}}}}}}"#
    );
    let short = call("get_breakpoints", json!({})).to_string();
    let mut long = Box::pin(agent.post_bytes(&pin, long.as_bytes()));
    let (mut n_short, since) = (0, Instant::now());
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut long => break answer,
            answer = agent.post_bytes(&pin, short.as_bytes()) => {
                assert_eq!(answer.status, 200);
                n_short += 1;
            }
        }
    };
    assert_eq!(answer.json()["result"]["structuredContent"]["code"], "no_such_frame");
    assert!(n_short > 0, "nothing was answered in {:?}", since.elapsed());
}

#[tokio::test]
async fn a_stranger_who_says_nothing_is_cut_off_and_a_known_caller_is_not() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let agent = Agent::start(&[]).await;
    let connect = || tokio::net::TcpStream::connect(("127.0.0.1", agent.port));
    let mut stranger = connect().await.unwrap();
    stranger.write_all(b"POST /mcp HTTP/1.1\r\nHost: ").await.unwrap();
    let mut known = connect().await.unwrap();
    let request = agent.request(
        "POST",
        "/mcp",
        &agent.headers(&[("baton-pin", "1")]),
        call("get_breakpoints", json!({})).to_string().as_bytes(),
    );
    known.write_all(&request).await.unwrap();
    let mut buffer = vec![0; 64 * 1024];
    assert!(known.read(&mut buffer).await.unwrap() > 0);

    let since = Instant::now();
    let closed = tokio::time::timeout(Duration::from_secs(10), stranger.read(&mut buffer)).await;
    assert_eq!(closed.expect("the stranger is cut off").unwrap_or(0), 0);
    assert!(since.elapsed() > Duration::from_secs(4));
    known.write_all(&request).await.unwrap();
    assert!(known.read(&mut buffer).await.unwrap() > 0, "the known caller's connection was kept");
}

async fn check_errors(agent: &Agent, calls: &[(&str, Value)], expected: Expect) {
    let client = agent.client(OLD).await;
    let mut lines = String::new();
    for (tool, arguments) in calls {
        let result = agent::call(&client, tool, arguments.clone()).await;
        let answer = result.structured_content.unwrap();
        assert_eq!(result.is_error, Some(true), "{tool} {arguments}: {answer}");
        assert_eq!(answer["status"], "error");
        let hint = answer["hint"].as_str().unwrap_or_else(|| panic!("{answer} says what to try"));
        assert!(!hint.is_empty());
        lines.push_str(&format!(
            "{}: {}\n",
            answer["code"].as_str().unwrap(),
            answer["message"].as_str().unwrap()
        ));
    }
    expected.assert_eq(&agent.stable(&lines));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn bad_input_gets_one_clear_sentence() {
    let agent = Agent::start(&[("a.py", "x = 1\ny = 2\n"), ("b/c.py", ""), ("d/c.py", "")]).await;
    let at = |file: &str, line: i64| json!({"file_path": file, "line_number": line});
    check_errors(
        &agent,
        &[
            ("set_breakpont", json!({})),
            ("set_breakpoint", json!({})),
            ("set_breakpoint", json!({"file_path": 3, "line_number": true})),
            ("set_breakpoint", json!({"file_path": "a.py", "line_number": 1, "colour": "red"})),
            ("set_breakpoint", at("nothing.py", 1)),
            ("set_breakpoint", at("c.py", 1)),
            ("set_breakpoint", at("b", 1)),
            ("set_breakpoint", at("a.py", 0)),
            ("set_breakpoint", at("a.py", 3)),
            ("set_breakpoint", json!({"file_path": "a.py", "line_number": 1, "hit_condition": "often"})),
            ("set_breakpoint", json!({"file_path": "a.py", "line_number": 1, "condition": "x ="})),
            ("remove_breakpoint", json!({})),
            ("remove_breakpoint", json!({"breakpoint_id": 1, "clear_all": true})),
            ("remove_breakpoint", json!({"clear_all": false})),
            ("remove_breakpoint", json!({"breakpoint_id": 99})),
            ("remove_breakpoint", json!({"location": at("a.py", 1)})),
            ("get_debugger_configurations", json!({})),
            ("start_debugging", json!({"configuration_name": "x"})),
            ("continue_debugging", json!({"thread_id": 1})),
            ("continue_debugging", json!({"thread_id": 1, "session_id": "no"})),
            ("step_execution", json!({"thread_id": 1, "step_type": "back"})),
            ("step_execution", json!({"thread_id": 1, "step_type": "over", "timeout": 0})),
            ("get_scopes", json!({"frame_id": 7})),
            ("get_variables", json!({"variables_reference": 7})),
            ("get_variables", json!({"variables_reference": 0})),
            ("evaluate_expression", json!({"expression": "x", "frame_id": 7})),
            ("evaluate_expression", json!({"expression": "x", "frame_id": 7, "context": "print"})),
            ("stop_debugging", json!({})),
            ("stop_debugging", json!({"session_id": "no"})),
        ],
        expect![[r#"
            unknown_tool: There is no tool named "set_breakpont".
            invalid_arguments: set_breakpoint: "file_path" is missing, it must be a non-empty string; "line_number" is missing, it must be an integer from 1 to 2147483647.
            invalid_arguments: set_breakpoint: "file_path" must be a non-empty string, got 3; "line_number" must be an integer from 1 to 2147483647, got true.
            invalid_arguments: set_breakpoint: unknown argument "colour".
            file_not_found: There is no file "nothing.py" in this window.
            ambiguous_path: "c.py" could be any of 2 files.
            not_a_file: "b" is a folder, not a file.
            invalid_arguments: set_breakpoint: "line_number" must be an integer from 1 to 2147483647, got 0.
            line_outside_file: ROOT/a.py has 2 lines; there is no line 3.
            bad_hit_condition: The hit condition `often` is not valid.
            bad_condition: The condition `x =` does not parse: invalid syntax.
            invalid_arguments: remove_breakpoint: give exactly one of "breakpoint_id", "location" and "clear_all".
            invalid_arguments: remove_breakpoint: give exactly one of "breakpoint_id", "location" and "clear_all".
            invalid_arguments: remove_breakpoint: "clear_all" must be true, got false.
            no_such_breakpoint: There is no breakpoint with id 99.
            no_such_breakpoint: There is no breakpoint on line 1 of ROOT/a.py.
            launch_json_missing: There is no ROOT/.vscode/launch.json.
            launch_json_missing: There is no ROOT/.vscode/launch.json.
            no_session: No debug session is running.
            no_such_session: There is no debug session no.
            invalid_arguments: step_execution: "step_type" must be one of "over", "into", "out", got the string "back".
            invalid_arguments: step_execution: "timeout" must be a number from 1 to 300, got 0.
            no_such_frame: There is no frame 7.
            no_such_reference: There is no variables reference 7.
            invalid_arguments: get_variables: "variables_reference" must be an integer of at least 1, got 0.
            no_such_frame: There is no frame 7.
            invalid_arguments: evaluate_expression: "context" must be one of "watch", "repl", "hover", "clipboard", got the string "print".
            no_session: No debug session is running.
            no_such_session: There is no debug session no.
        "#]],
    )
    .await;
}
