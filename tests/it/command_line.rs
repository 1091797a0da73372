//! What scripts depend on: `status --json`, exit codes, client configurations that can be taken back.

use std::path::Path;

use baton_tests::client::ClientKind;
use baton_tests::place;
use baton_tests::story::debug_to_stop;
use baton_tests::world::World;
use serde_json::{Value, json};

fn status_json(world: &World) -> (i32, Value) {
    let printed = world.baton(&["status", "--json"]);
    (printed.code, serde_json::from_str(&printed.out).expect("JSON"))
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

const STATUS_KEYS: [&str; 10] =
    ["awaiting", "generation", "live", "pid", "port", "running", "term", "url", "version", "windows"];

#[test]
fn status_of_nothing() {
    let world = World::new();
    let (code, status) = status_json(&world);
    assert_eq!(code, 3);
    assert_eq!(status["running"], false);
    assert_eq!(keys(&status), STATUS_KEYS);
    assert_eq!(status["windows"], json!([]));
    assert!(!world.home().join("coordinator.lock").exists(), "looking starts nothing");
}

#[test]
fn status_says_what_it_promises() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let mut client = world.client(ClientKind::Python1);
    let folder = world.folder("shop");
    let stopped = debug_to_stop(&mut client, "shop", &folder, |_| ());
    world.await_status("the session is reported", |status| {
        status.windows.iter().any(|window| !window.debug_sessions.is_empty())
    });
    let (code, status) = status_json(&world);
    assert_eq!(code, 0);
    assert_eq!(keys(&status), STATUS_KEYS);
    assert_eq!(status["running"], true);
    assert_eq!(status["url"], world.url());
    assert_eq!(status["port"], world.port());
    assert_eq!(status["awaiting"], Value::Null);
    assert_eq!(status["term"][0], status["generation"]);
    assert!(status["version"].is_string() && status["pid"].is_u64());
    let windows = status["windows"].as_array().expect("a list");
    assert_eq!(windows.len(), 2);
    for window in windows {
        assert_eq!(
            keys(window),
            [
                "auto_start",
                "debug_sessions",
                "folders",
                "id",
                "kind",
                "last_focus",
                "name",
                "pid",
                "responsive",
                "state"
            ]
        );
        assert_eq!((&window["kind"], &window["responsive"]), (&json!("headless"), &json!(true)));
    }
    let shop = windows.iter().find(|window| window["name"] == "shop").expect("it is there");
    assert_eq!(shop["id"], status["live"]);
    assert_eq!(shop["state"], "live");
    assert_eq!(shop["folders"], json!([folder]));
    assert_eq!(shop["debug_sessions"], json!([stopped["session_id"]]));
    client.close();
}

#[test]
fn exit_codes_and_sentences() {
    let world = World::new();
    let printed = world.baton(&["frobnicate"]);
    assert_ne!(printed.code, 0);
    assert!(!printed.err.is_empty() && printed.out.is_empty(), "{printed:?}");
    world.baton_ok(&["up"]);
    let printed = world.baton(&["take", "nowhere"]);
    assert_ne!(printed.code, 0);
    assert!(printed.err.contains("nowhere"), "{printed:?}");
    let starts: Vec<_> =
        printed.err.lines().filter_map(|line| line.split_once(": ").map(|pair| pair.0)).collect();
    assert_eq!(starts, ["error", "hint"], "what went wrong, and what to try: {printed:?}");
    let url = world.baton_ok(&["up"]);
    assert!(url.contains(&world.url()), "up prints the URL: {url}");
    world.baton_ok(&["down"]);
    assert_eq!(world.baton(&["status"]).code, 3);
    world.baton_ok(&["down"]);
}

#[test]
fn configurations_are_printed_for_every_client() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let token = world.token();
    for client in place::CLIENTS {
        let stdio = world.baton_ok(&["config", client, "--stdio"]);
        assert!(
            stdio.contains("stdio") && !stdio.contains(&token),
            "{client}: no secret over stdio: {stdio}"
        );
        let http = world.baton(&["config", client, "--http"]);
        if http.code == 0 {
            assert!(http.out.contains(&world.url()), "{client}: {}", http.out);
            assert!(http.out.contains(&token), "{client}: {}", http.out);
        } else {
            assert_eq!(client, "claude-desktop", "{client}: {}", http.err);
        }
    }
}

fn files_under(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder can be read").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if entry.path().is_file() {
                let bytes = std::fs::read(entry.path()).expect("the file can be read");
                found.push((entry.path().display().to_string(), bytes));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn written_configurations_are_taken_back_byte_for_byte() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let home = world.scratch().join("user");
    for client in place::CLIENTS {
        // From nothing.
        let empty = files_under(&home);
        world.baton_ok(&["config", client, "--write"]);
        let written = files_under(&home);
        assert_eq!(written.len(), empty.len() + 1, "{client} wrote one file");
        let (path, bytes) = written.iter().find(|file| !empty.contains(file)).expect("the new file").clone();
        assert!(String::from_utf8_lossy(&bytes).contains("baton"), "{client}");
        world.baton_ok(&["config", client, "--write"]);
        assert_eq!(files_under(&home), written, "{client}: writing twice changes nothing");
        world.baton_ok(&["config", client, "--remove"]);
        assert_eq!(files_under(&home), empty, "{client}: what was made is gone");
        // Into a file with settings of the user's own.
        let own = if path.ends_with(".toml") {
            "# mine\nmodel = \"x\"   # keep\n\n[mcp_servers.other]\ncommand = 'c'\n"
        } else {
            "{\n\t\"mine\": [1,  2],\n\t\"mcpServers\": {\"other\": {\"command\": \"c\"}}\n}\n"
        };
        let folder = Path::new(&path).parent().expect("a file lies in a folder");
        std::fs::create_dir_all(folder).expect("the user makes folders");
        std::fs::write(&path, own).expect("the user writes");
        world.baton_ok(&["config", client, "--write"]);
        let merged = std::fs::read_to_string(&path).expect("the file is there");
        assert!(merged.contains("baton") && merged.contains("other"), "{client}: {merged}");
        world.baton_ok(&["config", client, "--remove"]);
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), Some(own), "{client}");
        // A broken file is left alone.
        std::fs::write(&path, "{ \"broken\": [ = ").expect("the user writes");
        let printed = world.baton(&["config", client, "--write"]);
        assert_ne!(printed.code, 0, "{client}: {printed:?}");
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), Some("{ \"broken\": [ = "), "{client}");
        std::fs::remove_file(&path).expect("the file is there");
    }
}

#[test]
fn no_token_is_in_logs_arguments_or_discovery() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut client = world.client(ClientKind::Python1);
    client.expect("success", "get_breakpoints", json!({}));
    let token = world.token();
    let lines: String =
        baton_tests::process::of_home(&world.home()).into_iter().map(|(_, line)| line).collect();
    assert!(!lines.contains(&token), "in an argument");
    for (path, bytes) in files_under(&world.home()) {
        if !path.ends_with("/secret") {
            assert!(!String::from_utf8_lossy(&bytes).contains(&token), "in {path}");
        }
    }
    assert!(!world.logs().contains(&token), "in a log");
    client.close();
}
