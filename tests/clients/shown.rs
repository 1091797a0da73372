//! What a model is shown, by the clients' own programs: a stand-in of a model makes them call tools and prints what they
//! pass on.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use baton_tests::place;
use baton_tests::world::World;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::configured::claude;

const PROGRAM: &str = "def price(items):
    total = 0
    for item, cost in items:
        total += cost
    return total

print(price([('apple', 3), ('bread', 4)]))
";

/// What a client passed on of one result.
#[derive(Debug, Deserialize)]
struct Shown {
    is_error: bool,
    texts: Vec<String>,
}

/// A stand-in of a model with its calls to make.
struct Model {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u64,
}

impl Model {
    fn start(world: &World, calls: &[(&str, Value)]) -> Self {
        let script: Vec<Value> = calls
            .iter()
            .map(|(tool, input)| json!({ "name": format!("mcp__baton__{tool}"), "input": input }))
            .collect();
        let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/model.mjs");
        let mut node = world.command(place::node());
        node.arg(program).arg(json!(script).to_string()).stdout(Stdio::piped());
        let mut child = node.spawn().expect("node runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let first = lines.next().expect("it says its port").expect("it can be read");
        let first: Value = serde_json::from_str(&first).expect("JSON");
        Self { child, lines, port: first["port"].as_u64().expect("a port") }
    }

    /// What was passed on, once the client has ended.
    fn end(mut self) -> Vec<Shown> {
        self.child.kill().expect("it runs until now");
        self.child.wait().expect("it ends");
        let lines = self.lines.map_while(Result::ok);
        lines.map(|line| serde_json::from_str(&line).expect("a result")).collect()
    }
}

/// What Claude Code shows its model of each of these calls.
fn claude_shows(world: &World, calls: &[(&str, Value)]) -> Vec<Shown> {
    let model = Model::start(world, calls);
    let headers = json!({ "Authorization": format!("Bearer {}", world.token()) });
    let servers =
        json!({ "mcpServers": { "baton": { "type": "http", "url": world.url(), "headers": headers } } });
    let file = world.scratch().join("servers.json");
    std::fs::write(&file, servers.to_string()).expect("a file");
    let output = claude(world)
        .args([
            "-p",
            "go",
            "--strict-mcp-config",
            "--allowedTools",
            "mcp__baton__*",
            "--model",
            "claude-sonnet-4-5",
        ])
        .arg("--mcp-config")
        .arg(&file)
        .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", model.port))
        .env("ANTHROPIC_API_KEY", "none")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("ENABLE_TOOL_SEARCH", "false")
        .stdin(Stdio::null())
        .output()
        .expect("Claude Code starts");
    let shown = model.end();
    assert_eq!(shown.len(), calls.len(), "{output:?} {shown:#?}");
    shown
}

fn n_tokens(shown: &[Shown]) -> usize {
    let texts = shown.iter().flat_map(|shown| &shown.texts);
    // Claude Code's own words stand beside ours, or follow them.
    let ours = texts.map(|text| text.split_once("<system-reminder>").map_or(text.as_str(), |(ours, _)| ours));
    ours.map(|text| tiktoken_rs::cl100k_base_singleton().encode_ordinary(text).len()).sum()
}

/// The canonical task: a breakpoint in a function, start, locals at the stop, steps with locals, one evaluation, run to
/// the end.
#[test]
fn claude_code_shows_the_text_of_debug() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    std::fs::write(world.folder("shop").join("main.py"), PROGRAM).expect("a program");
    let debug = |arguments: Value| ("debug", arguments);
    let calls = [
        debug(json!({ "action": "set_breakpoint", "file": "main.py", "line": 4 })),
        debug(json!({ "action": "launch", "program": "main.py", "timeout": 60 })),
        debug(json!({ "action": "step_over", "count": 3 })),
        debug(json!({ "action": "evaluate", "expression": "total + 38" })),
        debug(json!({ "action": "remove_breakpoint", "file": "main.py", "line": 4 })),
        debug(json!({ "action": "continue", "timeout": 60 })),
    ];
    let shown = claude_shows(&world, &calls);
    println!("debug: {} calls, {} tokens", shown.len(), n_tokens(&shown));
    assert!(shown.iter().all(|shown| !shown.is_error), "{shown:#?}");
    let stop = shown[1].texts.join("\n");
    assert!(
        stop.contains("main.py:4") && stop.contains("item = 'apple'"),
        "the place and the locals: {stop}"
    );
    assert!(!stop.contains("launchedAt"), "no structure in its place: {stop}");
    // The second of the three steps comes to the breakpoint again, which ends them.
    assert!(shown[3].texts.join("\n").contains("41"), "{shown:#?}");
    assert!(shown.len() <= 6, "{shown:#?}");
    assert!(n_tokens(&shown) <= 600, "{} tokens: {shown:#?}", n_tokens(&shown));
}
