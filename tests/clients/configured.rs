//! AI clients' own programs read what `baton config` writes or prints for them, and connect.

use std::path::Path;
use std::process::Command;

use baton_tests::place;
use baton_tests::world::World;
use serde_json::Value;

/// A client's own program, from its npm package, with the home folder of this world.
fn program(world: &World, path: &str, folder: &Path) -> Command {
    let mut program = world.command(place::node());
    program.arg(place::tool(path)).current_dir(folder);
    program.env("DISABLE_AUTOUPDATER", "1").env("NO_COLOR", "1");
    program
}

/// What it prints, both ways.
fn printed(program: &mut Command) -> String {
    let output = program.output().expect("the client starts");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub(crate) fn claude(world: &World) -> Command {
    let mut claude = world.command(place::tool("node/node_modules/.bin/claude"));
    claude.env("DISABLE_AUTOUPDATER", "1").current_dir(world.scratch());
    claude
}

pub(crate) fn codex(world: &World) -> Command {
    program(world, "clis/node_modules/@openai/codex/bin/codex.js", world.scratch())
}

/// In a folder that its user trusts.
pub(crate) fn gemini(world: &World) -> Command {
    let folder = world.folder("shop");
    let trusted = serde_json::json!({ folder.to_string_lossy(): "TRUST_FOLDER" });
    let list = world.scratch().join("user/.gemini/trustedFolders.json");
    std::fs::write(list, trusted.to_string()).expect("the user trusts the folder");
    program(world, "clis/node_modules/@google/gemini-cli/bundle/gemini.js", &folder)
}

fn a_world_with_a_window() -> World {
    let mut world = World::new();
    world.window("shop");
    world
}

/// Claude Code reads the configuration we wrote and connects.
fn claude_connects(how: &str) {
    let world = a_world_with_a_window();
    world.baton_ok(&["config", "claude-code", how, "--write"]);
    let text = printed(claude(&world).args(["mcp", "list"]));
    assert!(text.contains("baton") && text.contains("Connected"), "{text}");
}

#[test]
fn claude_code_over_http() {
    claude_connects("--http");
}

#[test]
fn claude_code_over_the_bridge() {
    claude_connects("--stdio");
}

/// Claude Code takes the copied text by its own command.
#[test]
fn claude_code_adds_the_copied_configuration() {
    let world = a_world_with_a_window();
    for how in ["--http", "--stdio"] {
        let copied: Value = serde_json::from_str(&world.baton_ok(&["config", "claude-code", how]))
            .expect("the copied text is JSON");
        let entry = copied["mcpServers"]["baton"].to_string();
        let text = printed(claude(&world).args(["mcp", "add-json", "--scope", "user", "baton", &entry]));
        assert!(text.contains("Added"), "{text}");
        let text = printed(claude(&world).args(["mcp", "list"]));
        assert!(text.contains("baton") && text.contains("Connected"), "{how}: {text}");
        printed(claude(&world).args(["mcp", "remove", "--scope", "user", "baton"]));
    }
}

/// Codex reads the configuration we wrote; its list does not connect.
#[test]
fn codex_reads_its_configuration() {
    let world = a_world_with_a_window();
    let codex = |arguments: &[&str]| {
        let output = codex(&world).args(arguments).output().expect("codex starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("codex prints JSON")
    };
    world.baton_ok(&["config", "codex", "--http", "--write"]);
    let list = codex(&["mcp", "list", "--json"]);
    let transport = &list[0]["transport"];
    assert_eq!(list[0]["name"], "baton", "{list:#}");
    assert_eq!(list[0]["enabled"], true, "{list:#}");
    assert_eq!(transport["type"], "streamable_http", "{list:#}");
    assert_eq!(transport["url"], world.url(), "{list:#}");
    let bearer = format!("Bearer {}", world.token());
    assert_eq!(transport["http_headers"]["Authorization"], bearer, "{list:#}");

    world.baton_ok(&["config", "codex", "--stdio", "--write"]);
    let list = codex(&["mcp", "list", "--json"]);
    let transport = &list[0]["transport"];
    assert_eq!(transport["type"], "stdio", "{list:#}");
    assert_eq!(transport["args"], serde_json::json!(["stdio"]), "{list:#}");
    let command = transport["command"].as_str().expect("a command");
    assert!(Path::new(command).is_file(), "{list:#}");
}

/// Gemini CLI reads the configuration we wrote and connects, in a folder that its user trusts.
fn gemini_connects(how: &str) {
    let world = a_world_with_a_window();
    world.baton_ok(&["config", "gemini", how, "--write"]);
    let text = printed(gemini(&world).args(["mcp", "list"]));
    assert!(text.contains("baton") && text.contains("Connected"), "{text}");
}

#[test]
fn gemini_over_http() {
    gemini_connects("--http");
}

#[test]
fn gemini_over_the_bridge() {
    gemini_connects("--stdio");
}
