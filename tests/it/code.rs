//! Reading code through the stable URL: official clients, two windows with the same file names, a killed agent.

use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::signal;
use baton_tests::world::{WindowOptions, World, find, live_name};
use rustix::process::Signal;
use serde_json::{Value, json};

const TOOLS: [&str; 10] = [
    "lcp_apply_edit",
    "lcp_code_action",
    "lcp_complete",
    "lcp_find_references",
    "lcp_get_diagnostics",
    "lcp_get_outline",
    "lcp_navigate",
    "lcp_read_symbol",
    "lcp_rename",
    "lcp_undo",
];

/// Two windows, each with a `shop.py` of its own.
fn two_shops() -> World {
    let servers = place::tool("servers");
    let mut world = World::new().with_env("BATON_SERVERS", servers.to_str().expect("a path in UTF-8"));
    for name in ["left", "right"] {
        let folder = world.folder(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(
            folder.join("shop.py"),
            format!("def {name}(item):\n    return item\n\n\n{name}(missing)\n"),
        )
        .expect("a file");
        world.window_with(name, WindowOptions { folder: Some(folder), ..WindowOptions::default() });
        world.await_live("left");
    }
    world
}

fn outline(client: &mut Client) -> Value {
    client.call("lcp_get_outline", json!({"file_path": "shop.py", "format": "lines", "timeout": 60}))["data"]
        .clone()
}

fn each_window_answers_for_its_own_files(kind: ClientKind) {
    let world = two_shops();
    let mut client = Client::connect(&world, kind, &format!("{}?toolsets=code,refactor", world.url()));
    let mut names = client.list();
    names.sort();
    assert_eq!(names, TOOLS);
    assert_eq!(outline(&mut client), "1-2 function left");
    let read =
        client.call("lcp_read_symbol", json!({"file_path": "shop", "symbol_name": "lef", "timeout": 60}));
    assert_eq!(read["data"], "def left(item):\n    return item", "{read:#}");
    let found = client.call(
        "lcp_find_references",
        json!({"symbol_name": "left", "context_file": "shop.py", "timeout": 60}),
    );
    assert_eq!(found["total"], 2, "{found:#}");
    let problems = client.call("lcp_get_diagnostics", json!({"timeout": 60}));
    assert_eq!(problems["data"][0]["line"], 5, "{problems:#}");

    world.take("right");
    assert_eq!(outline(&mut client), "1-2 function right");
    let other = world.folder("left").join("shop.py");
    let outside = client.call("lcp_get_outline", json!({"file_path": other}));
    assert_eq!(outside["code"], "outside_window", "{outside:#}");
    let message = outside["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("The window \"left\" has it."), "{outside:#}");
    what_the_hint_says_works(&world, kind, &mut client, &outside, &other);

    // A server goes with its agent, however that ends.
    let killed = world.agent_pid("right");
    signal(killed, Signal::KILL);
    world.await_status("another agent is live", |status| {
        live_name(status) == Some("right") && find(status, "right").is_some_and(|window| window.pid != killed)
    });
    assert_eq!(outline(&mut client), "1-2 function right");
    client.close();
}

/// First the window's own URL; with the setting that allows it the argument `window`.
fn what_the_hint_says_works(
    world: &World,
    kind: ClientKind,
    client: &mut Client,
    outside: &Value,
    file: &std::path::Path,
) {
    let hint = outside["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("activate_window") && !hint.contains("argument window"), "{hint}");
    let url = hint.rsplit(' ').next().expect("a word").trim_end_matches('.');
    let mut pinned = Client::connect(world, kind, &format!("{url}?toolsets=code"));
    assert_eq!(outline(&mut pinned), "1-2 function left");
    pinned.close();

    world.baton_ok(&["settings", "routing", "any"]);
    let outside = client.call("lcp_get_outline", json!({"file_path": file}));
    assert_eq!(outside["hint"], "Name \"left\" in the argument window.", "{outside:#}");
    let arguments = json!({"file_path": file, "format": "lines", "window": "left", "timeout": 60});
    assert_eq!(client.call("lcp_get_outline", arguments)["data"], "1-2 function left");
    world.baton_ok(&["settings", "routing", "live"]);
}

#[test]
fn each_window_answers_a_client_without_sessions() {
    each_window_answers_for_its_own_files(ClientKind::Python2);
}

#[test]
fn each_window_answers_a_client_with_a_session() {
    each_window_answers_for_its_own_files(ClientKind::Sdk1);
}

/// A hook of git and a configuration of VS Code name programs that are run without another word.
#[test]
fn what_git_and_vs_code_keep_is_changed_only_when_the_user_allows_it() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let shop = world.folder("shop");
    let git = [".git/hooks/pre-commit", ".git/config"].map(|file| shop.join(file));
    for file in &git {
        std::fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a folder is made");
        std::fs::write(file, "[core]\n").expect("a file is written");
    }
    let launch = shop.join(".vscode/launch.json");
    let mut client = world.client(ClientKind::Sdk1);
    let mut edit = |file: &std::path::Path| {
        let edits = json!([{"start_line": 1, "end_line": 1, "new_text": "changed"}]);
        client.call("lcp_apply_edit", json!({"file_path": file, "edits": edits}))
    };
    for file in git.iter().chain([&launch]) {
        let before = std::fs::read(file).expect("it is there");
        let refused = edit(file);
        assert_eq!(refused["code"], "protected_path", "{refused:#}");
        assert_eq!(std::fs::read(file).expect("it is there"), before);
    }
    assert_eq!(edit(&shop.join("main.py"))["success"], true);
    world.baton_ok(&["settings", "allow_protected", "true"]);
    let is_allowed = || (edit(&launch)["success"] == true).then_some(());
    baton_tests::process::await_some(baton_tests::world::PATIENCE, is_allowed)
        .expect("the window hears of it");
    assert!(std::fs::read_to_string(&launch).expect("it is there").starts_with("changed"));
}
