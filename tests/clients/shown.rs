//! What a model is shown, by the clients' own programs: a stand-in of a model makes them call tools and prints what they
//! pass on.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use baton_tests::place;
use baton_tests::process::command;
use baton_tests::world::{WindowOptions, World};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::configured::{claude, codex, gemini};

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
        let script: Vec<Value> =
            calls.iter().map(|(tool, input)| json!({ "name": tool, "input": input })).collect();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/model.mjs");
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

/// What Claude Code shows its model of each of these calls, when it is configured by URL.
fn claude_shows(world: &World, calls: &[(&str, Value)]) -> Vec<Shown> {
    let headers = json!({ "Authorization": format!("Bearer {}", world.token()) });
    claude_in(
        world,
        world.scratch(),
        json!({ "type": "http", "url": world.url(), "headers": headers }),
        calls,
    )
}

/// The same when it is started in `folder`, with this server.
fn claude_in(world: &World, folder: &Path, server: Value, calls: &[(&str, Value)]) -> Vec<Shown> {
    let model = Model::start(world, calls);
    let file = world.scratch().join("servers.json");
    std::fs::write(&file, json!({ "mcpServers": { "baton": server } }).to_string()).expect("a file");
    let output = claude(world)
        .current_dir(folder)
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

/// What Codex shows its model, with the configuration that we wrote.
fn codex_shows(world: &World, calls: &[(&str, Value)]) -> Vec<Shown> {
    world.baton_ok(&["config", "codex", "--http", "--write"]);
    let model = Model::start(world, calls);
    let provider = format!(
        "model_providers.standin={{name=\"standin\",base_url=\"http://127.0.0.1:{}/v1\",wire_api=\"responses\"}}",
        model.port
    );
    let output = codex(world)
        .args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5"])
        .args(["-c", "model_provider=\"standin\"", "-c", &provider, "go"])
        .stdin(Stdio::null())
        .output()
        .expect("Codex starts");
    let shown = model.end();
    assert_eq!(shown.len(), calls.len(), "{output:?} {shown:#?}");
    shown
}

/// What Gemini CLI shows its model, with the configuration that we wrote.
fn gemini_shows(world: &World, calls: &[(&str, Value)]) -> Vec<Shown> {
    world.baton_ok(&["config", "gemini", "--http", "--write"]);
    let file = world.scratch().join("user/.gemini/settings.json");
    let settings = std::fs::read_to_string(&file).expect("we wrote it");
    let mut settings: Value = serde_json::from_str(&settings).expect("JSON");
    settings["security"] = json!({ "auth": { "selectedType": "gemini-api-key" } });
    std::fs::write(&file, settings.to_string()).expect("the user has a key");
    let model = Model::start(world, calls);
    let output = gemini(world)
        .args(["-m", "gemini-2.5-flash", "-y", "-p", "go"])
        .env("GEMINI_API_KEY", "none")
        .env("GOOGLE_GEMINI_BASE_URL", format!("http://127.0.0.1:{}", model.port))
        .stdin(Stdio::null())
        .output()
        .expect("Gemini CLI starts");
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

/// What a client shows its model of these calls.
type Shows = fn(&World, &[(&str, Value)]) -> Vec<Shown>;

/// The canonical task: a breakpoint in a function, start, locals at the stop, steps with locals, one evaluation, run to
/// the end. What a client shows its model of it says all, and costs little.
fn the_canonical_task_is_shown(shows: Shows) -> String {
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
    let shown = shows(&world, &calls);
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
    format!("{} calls, {} tokens", shown.len(), n_tokens(&shown))
}

#[test]
fn claude_code_shows_the_text_of_debug() {
    println!("Claude Code: {}", the_canonical_task_is_shown(claude_shows));
}

#[test]
fn codex_shows_the_text_of_debug() {
    println!("Codex: {}", the_canonical_task_is_shown(codex_shows));
}

#[test]
fn gemini_cli_shows_the_text_of_debug() {
    println!("Gemini CLI: {}", the_canonical_task_is_shown(gemini_shows));
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = command("git");
    git.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
    let output = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Where Claude Code makes worktrees of its own: inside of the folder that a window shows.
#[test]
fn claude_code_in_a_worktree_of_its_own_is_answered_by_that_or_by_an_error() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["settings", "toolsets", "debug,code,refactor"]);
    let shop = world.folder("shop");
    let worktree = shop.join(".claude/worktrees/fix");
    git(&shop, &["init", "-q"]);
    git(&shop, &["add", "-A"]);
    git(&shop, &["commit", "-q", "-m", "all"]);
    git(&shop, &["worktree", "add", "-q", ".claude/worktrees/fix"]);
    let environment = json!({ "BATON_HOME": world.home(), "BATON_PORT": world.port().to_string() });
    let server = || json!({ "command": place::program("baton"), "args": ["stdio"], "env": environment });
    let edit = json!({ "file_path": "main.py", "edits": [{ "start_line": 1, "end_line": 1, "new_text": "# mine" }] });
    let calls = [
        ("debug", json!({ "action": "sessions" })),
        ("lcp_apply_edit", edit.clone()),
        ("debug", json!({ "action": "launch", "program": "main.py" })),
    ];
    let before = std::fs::read_to_string(shop.join("main.py")).expect("a program");
    for shown in claude_in(&world, &worktree, server(), &calls) {
        let text = shown.texts.join("\n");
        assert!(shown.is_error && text.contains("No window is open on"), "{text}");
        assert!(text.contains("baton window"), "what to do: {text}");
    }
    let in_worktree = |file: &str| std::fs::read_to_string(worktree.join(file)).expect("a program");
    assert_eq!(in_worktree("main.py"), before);

    world.window_with("fix", WindowOptions { folder: Some(worktree.clone()), ..WindowOptions::default() });
    let shown = claude_in(&world, &worktree, server(), &calls);
    for shown in &shown {
        let text = shown.texts.join("\n");
        let labels = ["[fix] ", "\"in_window\":\"fix\","];
        let label = labels.into_iter().find(|label| text.contains(label)).filter(|_| !shown.is_error);
        let label = label.unwrap_or_else(|| panic!("no label: {text}"));
        let n_tokens = tiktoken_rs::cl100k_base_singleton().encode_ordinary(label).len();
        println!("{label}: {n_tokens} tokens");
        assert!(n_tokens <= 6, "{n_tokens} tokens: {label}");
    }
    assert!(in_worktree("main.py").starts_with("# mine\n"), "{shown:#?}");
    assert_eq!(std::fs::read_to_string(shop.join("main.py")).expect("a program"), before);
}
