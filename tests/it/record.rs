//! `baton record` and `baton replay`: what was called and answered stands in a file of the user's own, without secrets,
//! and the same calls tell the same truth of the same program, and another one of another.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::await_some;
use baton_tests::raw::Request;
use baton_tests::world::{World, space_again, space_for};
use serde_json::{Value, json};

const PROGRAM: &str = "import os\ntotal = 0\nfor n in [1, 2, 3]:\n    total += n\nprint(total)\n";
const PATIENCE: Duration = Duration::from_secs(30);
/// Must be in no record.
const CANARY: &str = "canary-4711";

fn debug(client: &mut Client, arguments: Value) -> String {
    let answer = client.try_call("debug", arguments).expect("an answer");
    let parts = answer["content"].as_array().expect("an answer has content").iter();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn lines(path: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a record");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// A record of a short debug session in `shop`.
fn recorded(world: &mut World) -> PathBuf {
    world.window("shop");
    world.await_live("shop");
    fs::write(world.folder("shop").join("sum.py"), PROGRAM).expect("a file");
    let begun = world.baton_ok(&["record", "start", "sums"]);
    let path = PathBuf::from(begun.trim().strip_prefix("Recording to ").expect(&begun));
    let again = world.baton(&["record", "start"]);
    assert!(again.code == 1 && again.err.contains("a record is running already"), "{again:?}");
    let mut client = Client::connect(world, ClientKind::Python1, &world.url());
    debug(&mut client, json!({"action": "set_breakpoint", "file": "sum.py", "line": 5}));
    let stopped = debug(&mut client, json!({"action": "launch", "program": "sum.py", "timeout": 60}));
    assert!(stopped.contains("total = 6"), "{stopped}");
    debug(&mut client, json!({"action": "evaluate", "expression": "total * 2", "window": "shop"}));
    debug(&mut client, json!({"action": "evaluate", "expression": format!("dict(api_key='{CANARY}')")}));
    debug(&mut client, json!({"action": "continue", "timeout": 60}));
    client.close();
    world.window("weather");
    world.take("weather");
    world.await_live("weather");
    let status = world.baton(&["status"]);
    assert!(status.err.contains("all calls are being recorded"), "{status:?}");
    let ended = world.baton_ok(&["record", "stop"]);
    assert!(ended.starts_with("Recorded 5 calls ("), "{ended}");
    path
}

#[test]
fn what_was_called_is_recorded_without_secrets_and_can_be_called_again() {
    let mut world = World::new();
    let path = recorded(&mut world);
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).expect("a record");
    assert!(!text.contains(CANARY) && !text.contains(&world.token()), "a secret is in the record");
    let lines = lines(&path);
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let calls = of("call");
    assert_eq!(calls.len(), 5);
    assert_eq!(calls[2]["arguments"]["expression"], "total * 2");
    assert_eq!(calls[3]["arguments"]["expression"], "dict(api_key=[redacted])");
    assert!(calls[2]["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("12")));
    assert!(calls.iter().all(|call| call["window"] == of("window")[0]["id"]), "{calls:?}");
    let live = of("live").into_iter().map(|line| line["rule"].clone()).collect::<Vec<_>>();
    assert_eq!(live.last(), Some(&json!("R4")), "{live:?}");
    let read = world.baton_ok(&["record", "export", "sums"]);
    assert!(read.starts_with("# Record sums\n") && read.contains("total = 6"), "{read}");
    assert!(
        world.baton_ok(&["record", "export", "sums", "--format", "jsonl"]) == text.trim_end(),
        "it is as it was"
    );
    let listed = world.baton_ok(&["record", "list"]);
    assert!(listed.contains("sums  5 calls") && !listed.contains("running"), "{listed}");
    let status = world.baton(&["status"]);
    assert!(!status.err.contains("are being recorded"), "{status:?}");

    let same = world.baton(&["replay", "sums", "--window", "shop"]);
    assert_eq!(same.code, 0, "{same:?}");
    assert!(same.out.contains("5 calls: 4 same, 0 different, 1 skipped"), "{same:?}");
    let nobody = world.baton(&["replay", "sums", "--window", "nobody"]);
    assert!(nobody.code == 1 && nobody.err.contains("no window matches \"nobody\""), "{nobody:?}");
    // In another folder, and a program with another result.
    fs::write(world.folder("weather").join("sum.py"), PROGRAM.replace("3]", "4]")).expect("a file");
    let other = world.baton(&["replay", "sums", "--window", "weather"]);
    assert_eq!(other.code, 1, "{other:?}");
    for told in ["then", "now", "total = 6", "total = 7", "12", "14"] {
        assert!(other.out.contains(told), "{told} is not in {other:?}");
    }
    assert!(
        !other.out.contains(&world.folder("shop").display().to_string()),
        "a path is no difference: {other:?}"
    );
}

#[test]
fn a_change_that_was_previewed_is_previewed_and_made_again() {
    let servers = place::tool("servers");
    let mut world = World::new().with_env("BATON_SERVERS", servers.to_str().expect("a plain path"));
    let files = [
        ("scales.py", "def weigh(item):\n    return item\n"),
        ("weighed.py", "from scales import weigh\n\nprint(weigh(2))\n"),
    ];
    for window in ["shop", "weather"] {
        world.window(window);
        for (file, text) in files {
            fs::write(world.folder(window).join(file), text).expect("a file");
        }
    }
    world.await_live("shop");
    world.baton_ok(&["record", "start", "rename"]);
    let url = format!("{}?toolsets=refactor", world.url());
    let mut client = Client::connect(&world, ClientKind::Python1, &url);
    let rename = |apply: Option<&str>| json!({"symbol_name": "weigh", "context_file": "scales.py", "new_name": "heft", "apply": apply, "timeout": 60});
    let preview = client.call("lcp_rename", rename(None));
    let made = client.call("lcp_rename", rename(preview["token"].as_str()));
    assert_eq!(made["applied"], true, "{made:#}");
    client.close();
    world.baton_ok(&["record", "stop"]);
    let again = world.baton(&["replay", "rename", "--window", "weather"]);
    assert!(again.code == 0 && again.out.contains("2 calls: 2 same, 0 different"), "{again:?}");
    for (file, _) in files {
        let read = |window| fs::read_to_string(world.folder(window).join(file)).expect("a file");
        assert!(
            read("weather") == read("shop") && read("shop").contains("heft"),
            "{file}: {}",
            read("weather")
        );
    }
}

#[test]
fn f17_a_record_that_the_disk_has_no_room_for_ends_and_calls_go_on() {
    let mut world = World::new();
    world.baton_ok(&["up"]);
    world.baton_ok(&["down"]);
    let up = world.baton_without_space(&["up"]).output().expect("baton starts");
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let coordinator = world.coordinator_pid();
    space_again(coordinator);
    world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["record", "start", "short"]);
    space_for(coordinator, 2_000);
    let (port, token) = (world.port(), world.token());
    let told = || {
        assert_eq!(Request::call(port, &token, "get_breakpoints").send(port).status, 200);
        Some(world.baton(&["status"]).err).filter(|told| !told.contains("are being recorded"))
    };
    let told = await_some(PATIENCE, told).expect("the record ends");
    assert!(told.contains("the record short ended: it cannot be written"), "{told}");
    let ended = world.baton(&["record", "stop"]);
    assert!(
        ended.code == 0 && ended.err.contains("the record ended earlier: it cannot be written"),
        "{ended:?}"
    );
    assert!(
        world.baton_ok(&["record", "export", "short"]).contains("get_breakpoints"),
        "what was written is there"
    );
    space_again(coordinator);
    world.baton_ok(&["record", "start", "long"]);
    assert_eq!(Request::call(port, &token, "get_breakpoints").send(port).status, 200);
    assert!(world.baton_ok(&["record", "stop"]).starts_with("Recorded 1 call ("));
}

#[test]
fn events_are_kept_byte_by_byte_when_the_user_wants_it() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let before = world.baton(&["raw-sse"]);
    assert!(before.code == 0 && before.err.contains("No events are being kept"), "{before:?}");
    let earlier = Client::connect(&world, ClientKind::Python1, &world.url());
    assert_eq!(world.baton_ok(&["raw-sse", "on"]), "Events are being kept");
    let client = Client::connect(&world, ClientKind::Python1, &world.url());
    // Their streams hear of a handover.
    world.window("weather");
    world.take("weather");
    let changed = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}";
    let is_told = || Some(world.baton_ok(&["raw-sse"])).filter(|told| told.matches(changed).count() >= 2);
    let printed = await_some(PATIENCE, is_told).expect("both streams heard of the handover");
    assert!(printed.contains(": open") && printed.contains(" to mcp\n"), "{printed}");
    assert_eq!(world.baton_ok(&["raw-sse", "--client", "nobody"]), "");
    let json = world.baton_ok(&["raw-sse", "--json"]);
    let texts =
        json.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON")["text"].clone());
    assert!(texts.collect::<Vec<_>>().contains(&json!(changed)), "{json}");
    earlier.close();
    client.close();
    assert_eq!(world.baton_ok(&["raw-sse", "off"]), "No events are being kept");
}

#[test]
fn a_record_that_is_not_there_or_is_none_is_a_sentence() {
    let mut world = World::new();
    world.window("shop");
    for (arguments, told) in [
        (&["record", "stop"][..], "no record is running"),
        (&["record", "export"], "there are no records"),
        (&["replay", "nothing"], "there is no record named \"nothing\""),
        (&["record", "start", "a/b"], "a record's name has letters"),
    ] {
        let printed = world.baton(arguments);
        assert!(printed.code == 1 && printed.err.contains(told), "{arguments:?}: {printed:?}");
    }
    let other = world.scratch().join("other.jsonl");
    fs::write(&other, "{}\n").expect("a file");
    let printed = world.baton(&["replay", other.to_str().expect("a plain path")]);
    assert!(printed.code == 1 && printed.err.contains("is not a record of Baton"), "{printed:?}");
    let full = world.baton_ok(&["record", "list"]);
    assert!(full.contains("No records."), "{full}");
}
