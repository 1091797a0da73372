//! Reading code through the stable URL: official clients, two windows with the same file names, a killed agent.

use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::signal;
use baton_tests::world::{WindowOptions, World, find, live_name};
use rustix::process::Signal;
use serde_json::{Value, json};

const TOOLS: [&str; 9] = [
    "lcp_apply_edit",
    "lcp_code_action",
    "lcp_complete",
    "lcp_find_references",
    "lcp_get_diagnostics",
    "lcp_get_outline",
    "lcp_navigate",
    "lcp_read_symbol",
    "lcp_rename",
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
