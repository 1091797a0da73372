//! `baton adapters` as people run it: a list, an installation into a fresh home, a check, and what is said when it
//! cannot be done.

use baton_tests::world::World;
use serde_json::Value;

/// A world in which no adapter is installed.
fn world() -> World {
    World::new().with_env("BATON_ADAPTERS", "")
}

fn listed(world: &World, name: &str) -> Value {
    let text = world.baton_ok(&["adapters", "list", "--json"]);
    let all: Vec<Value> = serde_json::from_str(&text).expect("a list");
    all.into_iter().find(|adapter| adapter["name"] == name).expect("it is listed")
}

#[test]
fn an_adapter_is_installed_into_a_fresh_home_and_checked() {
    let world = world();
    let before = listed(&world, "bash-dap");
    assert_eq!(before["state"], "missing", "{before:#}");
    assert_eq!(before["install"], "Run `baton adapters install bash-dap`.");
    let printed = world.baton(&["adapters", "install", "bash-dap"]);
    assert_eq!(printed.code, 0, "{}{}", printed.out, printed.err);
    assert_eq!(printed.out.trim(), "bash-dap 0.3 is installed");
    // What happens meanwhile goes to the other stream.
    for step in ["installing bash-dap==0.3 from PyPI", "creating a Python environment"] {
        assert!(printed.err.contains(step), "{}", printed.err);
    }
    let after = listed(&world, "bash-dap");
    assert_eq!((&after["state"], &after["version"]), (&"installed".into(), &"0.3".into()), "{after:#}");
    let path = after["path"].as_str().expect("a path");
    assert!(path.starts_with(&world.home().display().to_string()), "{path}");
    let again = world.baton(&["adapters", "install", "bash-dap"]);
    assert_eq!((again.code, again.out.as_str()), (0, ""), "{}", again.err);
    assert!(again.err.contains("bash-dap 0.3 is already installed"), "{}", again.err);
    let checked = world.baton_ok(&["adapters", "check", "bash-dap"]);
    assert!(checked.starts_with("bash-dap: ok, "), "{checked}");
    assert!(world.baton_ok(&["adapters", "list"]).contains("0.3 (installed)"));

    // What an older Baton installed is replaced.
    let facts = world.home().join("adapters/bash-dap/installed.json");
    let older = std::fs::read_to_string(&facts).expect("it is installed").replace("0.3", "0.2");
    std::fs::write(&facts, older).expect("a state folder");
    let replaced = world.baton(&["adapters", "install", "bash-dap"]);
    assert_eq!((replaced.code, replaced.out.trim()), (0, "bash-dap 0.3 is installed"), "{}", replaced.err);
    assert!(replaced.err.contains("replacing bash-dap 0.2 with 0.3"), "{}", replaced.err);
}

#[test]
fn what_cannot_be_installed_is_said_in_a_sentence() {
    // Nobody listens there.
    let world = world().with_env("PIP_INDEX_URL", "http://127.0.0.1:9/simple").with_env("PIP_RETRIES", "0");
    let printed = world.baton(&["adapters", "install", "bash-dap"]);
    assert_eq!((printed.code, printed.out.as_str()), (1, ""), "{}", printed.err);
    let told = printed.err.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(told.starts_with("error: cannot install bash-dap: "), "{}", printed.err);
    assert_eq!(listed(&world, "bash-dap")["state"], "missing", "nothing half is left");

    let unknown = world.baton(&["adapters", "install", "bash-dop"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (64, ""), "{}", unknown.err);
    assert!(unknown.err.contains("hint: did you mean bash-dap?"), "{}", unknown.err);
    let unknown = world.baton(&["adapters", "check", "cobol"]);
    assert_eq!(unknown.code, 64, "{}", unknown.err);
    assert!(unknown.err.contains("hint: available adapters: debugpy, "), "{}", unknown.err);
    let senseless = world.baton(&["adapters", "instal"]);
    assert_eq!(senseless.code, 64, "{}", senseless.err);
}
