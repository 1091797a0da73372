//! `baton doctor`: each check is provoked.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use baton_tests::process::signal;
use baton_tests::world::World;
use rustix::process::Signal;
use serde_json::{Value, json};

/// What it finds, and its exit code.
fn examine(world: &World) -> (i32, Vec<Value>) {
    let printed = world.baton(&["doctor", "--json"]);
    let found: Value = serde_json::from_str(&printed.out).unwrap_or_else(|_| panic!("{printed:?}"));
    (printed.code, found.as_array().expect("a list").clone())
}

/// The first finding of this check that is no `ok`.
fn trouble<'a>(found: &'a [Value], check: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let finding = found.iter().find(|finding| finding["check"] == check && finding["level"] != "ok")?;
    let text = |key: &str| finding[key].as_str().unwrap_or_default();
    Some((text("level"), text("message"), text("hint")))
}

#[test]
fn nothing_runs_and_nothing_is_started() {
    let world = World::new();
    let (code, found) = examine(&world);
    assert_eq!(code, 0, "warnings are no failure: {found:#?}");
    let (level, message, hint) = trouble(&found, "coordinator").expect("it does not run");
    assert_eq!((level, message), ("warning", "the coordinator is not running"), "{hint}");
    assert!(hint.contains("`baton up`"), "{hint}");
    assert_eq!(trouble(&found, "client").expect("none").1, "no AI client is configured");
    assert!(!world.home().join("coordinator.lock").exists(), "looking starts nothing");
}

#[test]
fn all_is_well_and_each_trouble_is_named() {
    let mut world = World::new();
    world.baton_ok(&["up"]);
    let (_, found) = examine(&world);
    assert_eq!(trouble(&found, "window").expect("none").1, "no window is open");
    world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["config", "claude-code", "--write"]);
    world.baton_ok(&["config", "codex", "--write"]);
    world.baton_ok(&["config", "gemini", "--stdio", "--write"]);
    let (code, found) = examine(&world);
    let troubles: Vec<&Value> = found.iter().filter(|finding| finding["level"] != "ok").collect();
    assert!(code == 0 && troubles.is_empty(), "{found:#?}");
    assert!(found.iter().filter(|finding| finding["check"] == "client").count() == 3, "{found:#?}");

    for check in ["debug adapter", "language server"] {
        let names = found.iter().find(|finding| finding["check"] == check).expect("a window has no editor");
        assert!(names["message"].as_str().is_some_and(|names| !names.is_empty()), "{names}");
    }
    world.baton_ok(&["log-level", "debug"]);
    let (_, found) = examine(&world);
    assert_eq!(trouble(&found, "coordinator").expect("it is loud").1, "everybody logs at `debug`");
    world.baton_ok(&["log-level", "default"]);

    let before = world.token();
    world.baton_ok(&["token", "--rotate"]);
    let (code, found) = examine(&world);
    let (level, message, hint) = trouble(&found, "client").expect("its token is old");
    assert_eq!((code, level), (1, "error"));
    assert_eq!(message, "claude-code has a token that is no longer valid");
    assert_eq!(hint, "run `baton config claude-code --write`");
    let printed = world.baton(&["doctor"]);
    assert!(printed.out.contains("error    client          codex has a token"), "{}", printed.out);
    for token in [&before, &world.token()] {
        assert!(
            !printed.out.contains(token.as_str()) && !printed.err.contains(token.as_str()),
            "a token is shown"
        );
    }

    world.baton_ok(&["config", "claude-code", "--write"]);
    world.baton_ok(&["config", "codex", "--remove"]);
    let file = world.scratch().join("user/.claude.json");
    let text = std::fs::read_to_string(&file).expect("it was written");
    let moved = text.replace(&format!(":{}/", world.port()), ":1/");
    assert_ne!(text, moved);
    std::fs::write(&file, moved).expect("it is ours");
    let (code, found) = examine(&world);
    assert_eq!(code, 1);
    assert!(trouble(&found, "client").expect("an old port").1.contains("but Baton is at"), "{found:#?}");
    std::fs::write(&file, "{ \"mcpServers\": ").expect("it is ours");
    let (_, found) = examine(&world);
    assert!(trouble(&found, "client").expect("it is broken").1.contains(".claude.json"), "{found:#?}");
    std::fs::write(&file, json!({"mcpServers": {"baton": {"command": "/nowhere/baton"}}}).to_string())
        .expect("ours");
    let (_, found) = examine(&world);
    let message = trouble(&found, "client").expect("no program").1;
    assert_eq!(message, "claude-code runs /nowhere/baton, which does not exist");
}

#[test]
fn a_window_that_hangs_and_a_coordinator_that_hangs() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["stop", "shop"]);
    let (_, found) = examine(&world);
    assert_eq!(trouble(&found, "window").expect("it is off").1, "no window is live");
    let agent = world.agent_pid("shop");
    signal(agent, Signal::STOP);
    world
        .await_status("it does not respond", |status| status.windows.iter().any(|window| !window.responsive));
    let (code, found) = examine(&world);
    signal(agent, Signal::CONT);
    assert_eq!((code, trouble(&found, "window").expect("it hangs").1), (1, "shop does not respond"));
    let coordinator = world.status().expect("it runs").pid;
    signal(coordinator, Signal::STOP);
    let (code, found) = examine(&world);
    signal(coordinator, Signal::CONT);
    let (level, message, hint) = trouble(&found, "coordinator").expect("it hangs");
    assert_eq!((code, level), (1, "error"), "{message}");
    assert!(message.contains("is not responding") && hint.contains("`baton up`"), "{message}: {hint}");
}

#[test]
fn a_folder_that_cannot_be_trusted_is_all_that_is_said() {
    let world = World::new();
    world.baton_ok(&["up"]);
    world.baton_ok(&["down"]);
    std::fs::set_permissions(world.home(), Permissions::from_mode(0o777)).expect("it is ours");
    let (code, found) = examine(&world);
    std::fs::set_permissions(world.home(), Permissions::from_mode(0o700)).expect("it is ours");
    assert_eq!((code, found.len()), (1, 1), "{found:#?}");
    assert_eq!(found[0]["check"], "state folder");
}
