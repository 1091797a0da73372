//! The official conformance suite against `/mcp`, once for each revision.
//!
//! `expected-failures-*.yml` hold scenarios that need fixture tools a debugger has no business offering;
//! the suite fails on any other failure, and on an entry that no longer fails.

use std::process::Stdio;

use baton_tests::place;
use baton_tests::world::World;

fn conforms(revision: &str) {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let folder = place::root().join("tests/conformance");
    let suite = place::tool("node/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let output = world
        .command(place::node())
        .arg("--import")
        .arg(folder.join("token.mjs"))
        .arg(suite)
        .args(["server", "--url", &world.url(), "--suite", "all", "--spec-version", revision])
        .arg("--expected-failures")
        .arg(folder.join(format!("expected-failures-{revision}.yml")))
        .arg("--output-dir")
        .arg(world.scratch().join("results"))
        .env("MCP_TOKEN", world.token())
        .stderr(Stdio::piped())
        .output()
        .expect("the suite starts");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
}

#[test]
fn conformance_2025_11_25() {
    conforms("2025-11-25");
}

#[test]
fn conformance_2026_07_28() {
    conforms("2026-07-28");
}
