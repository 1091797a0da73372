//! `config.toml`: in force as soon as it is saved, and what is wrong with it is said.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use baton_tests::place;
use baton_tests::process::{await_some, kill9};
use baton_tests::raw::Request;
use baton_tests::user::set_mode;
use baton_tests::world::World;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(10);

fn setting(world: &World, name: &str) -> Value {
    serde_json::from_str(&world.baton_ok(&["settings", name])).expect("JSON")
}

fn await_setting(world: &World, name: &str, wanted: &Value) {
    let is_so = await_some(PATIENCE, || (setting(world, name) == *wanted).then_some(()));
    assert!(is_so.is_some(), "{name} is {}, not {wanted}", setting(world, name));
}

fn await_warning(world: &World, wanted: &str) {
    world.await_status(wanted, |status| status.warnings.iter().any(|warning| warning.contains(wanted)));
}

#[test]
fn what_the_file_says_is_in_force_as_soon_as_it_is_saved_and_what_is_wrong_changes_nothing() {
    let world = World::new();
    let file = world.home().join("config.toml");
    world.baton_ok(&["up"]);
    world.baton_ok(&["settings", "hold_calls_ms", "5000"]);
    let written = std::fs::read_to_string(&file).expect("it was made");
    assert!(
        written.contains("#:schema ./config.schema.json") && written.ends_with("hold_calls_ms = 5000\n"),
        "{written}"
    );
    let schema = std::fs::read_to_string(world.home().join("config.schema.json")).expect("it was made");
    assert_eq!(schema.trim(), world.baton_ok(&["settings", "--schema"]));
    assert_eq!(world.baton_ok(&["settings", "--path"]), file.to_str().expect("a plain path"));

    std::fs::write(&file, "# mine\nhold_calls_ms = 300 # short\nrouting = \"any\"\n").expect("ours");
    await_setting(&world, "hold_calls_ms", &300.into());
    await_setting(&world, "routing", &"any".into());
    world.baton_ok(&["settings", "redact", "true"]);
    let written = std::fs::read_to_string(&file).expect("ours");
    assert_eq!(written, "# mine\nhold_calls_ms = 300 # short\nrouting = \"any\"\nredact = true\n");

    std::fs::write(&file, "hold_calls_ms = 300\nredcat = true\n").expect("ours");
    await_warning(&world, "config.toml: line 2, column 1: unknown setting 'redcat'; did you mean 'redact'?");
    assert_eq!((setting(&world, "redact"), setting(&world, "routing")), (true.into(), "any".into()));
    let refused = world.baton(&["settings", "redact", "false"]);
    assert!(refused.code == 1 && refused.err.contains("line 2, column 1"), "{refused:?}");
    // Also over an end that nobody sees coming.
    kill9(world.coordinator_pid());
    world.baton_ok(&["up"]);
    assert_eq!(setting(&world, "routing"), "any");
    await_warning(&world, "redcat");

    std::fs::write(&file, "redact = true\n").expect("ours");
    await_setting(&world, "routing", &"live".into());
    world.await_status("no warning", |status| status.warnings.is_empty());
    std::fs::remove_file(&file).expect("ours");
    await_setting(&world, "redact", &false.into());
    world.baton_ok(&["down"]);
    std::fs::write(&file, "log_format = \"json\"\n").expect("ours");
    let stored: Value = serde_json::from_str(&world.baton_ok(&["settings"])).expect("JSON");
    assert_eq!(stored["log_format"], "json", "without a coordinator");
    world.baton_ok(&["up"]);
    assert_eq!(setting(&world, "log_format"), "json");
}

#[test]
fn the_names_of_another_tool_are_understood() {
    let world = World::new();
    world.baton_ok(&["settings", "--path"]);
    std::fs::write(world.home().join("lcp.config.json"), r#"{ "hold_calls_ms": 250 }"#).expect("ours");
    let scratch = world.scratch().join("scratch");
    let port = world.port().to_string();
    let names = [
        ("LCP_PORT", port.as_str()),
        ("LCP_LOG_LEVEL", "error"),
        ("LCP_TMP_DIR", scratch.to_str().expect("plain")),
    ];
    let mut up = world.baton_command(&["up"]);
    up.env_remove("BATON_PORT").env_remove("BATON_LOG").envs(names);
    let output = up.output().expect("baton starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(&format!(":{port}/mcp")), "{output:?}");
    assert_eq!(setting(&world, "hold_calls_ms"), 250);
    assert!(!world.logs().contains("is ready"), "{}", world.logs());
    let mut wrong = world.baton_command(&["serve"]);
    world.baton_ok(&["down"]);
    let output = wrong.env_remove("BATON_PORT").env("LCP_PORT", "eighty").output().expect("baton starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("LCP_PORT is 'eighty': a port must be a number"), "{said}");
}

#[test]
fn a_program_that_the_settings_name_is_the_one_that_runs() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let (own, ran) = (world.scratch().join("own-ty"), world.scratch().join("ran"));
    let ty = place::tool("servers/ty/bin/ty");
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\nexec {} \"$@\"\n", ran.display(), ty.display());
    std::fs::write(&own, script).expect("ours");
    let named = |path: &str| world.baton(&["settings", "programs", path]);
    let own_path = format!("ty={}", own.display());
    let closed = named("pyrihgt=/bin/true");
    assert!(closed.code == 64 && closed.err.contains("'pyrihgt'; did you mean 'pyright'?"), "{closed:?}");
    let closed = named("ty=bin/ty");
    assert!(
        closed.err.contains("/bin/ty, the program of ty, does not exist"),
        "from where we are: {closed:?}"
    );
    let closed = named("ty=/no/such");
    assert!(closed.err.contains("/no/such, the program of ty, does not exist"), "{closed:?}");
    set_mode(&own, 0o755);
    assert_eq!(named(&own_path).code, 0);
    let listed = world.baton_ok(&["servers", "list", "--json"]);
    assert!(listed.contains(own.to_str().expect("plain")), "{listed}");
    let outline = || {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "lcp_get_outline", "arguments": { "file_path": "main.py" } } });
        let request = Request::post(world.port(), "/mcp", &world.token(), call.to_string());
        request.with("MCP-Protocol-Version", "2025-11-25").send(world.port())
    };
    let answer = outline();
    assert!(answer.body.contains("price"), "{answer:?}");
    let ran = std::fs::read_to_string(&ran).expect("it ran");
    assert_eq!(ran.lines().last(), Some("server"), "after it was asked for its version: {ran}");

    // Gone in the meantime: doctor says so, and it can be taken out again.
    std::fs::remove_file(&own).expect("ours");
    let doctor = world.baton(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.contains("the program of ty, does not exist"), "{doctor:?}");
    let config = std::fs::read_to_string(world.baton_ok(&["settings", "--path"])).expect("it is there");
    assert!(config.contains("[programs]\nty = "), "{config}");
    assert_eq!(named("ty=").code, 0);
    assert_eq!(setting(&world, "programs"), json!({}));
}

#[test]
fn settings_that_are_changed_at_once_are_all_kept() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let changes = [
        ("routing", "any"),
        ("redact", "true"),
        ("hold_calls_ms", "1234"),
        ("log_mb", "77"),
        ("session_processes", "99"),
        ("ai_handover", "never"),
    ];
    std::thread::scope(|scope| {
        for (name, value) in changes {
            let world = &world;
            scope.spawn(move || world.baton_ok(&["settings", name, value]));
        }
    });
    let file = std::fs::read_to_string(world.baton_ok(&["settings", "--path"]).trim()).expect("it is there");
    for (name, value) in changes {
        assert_eq!(world.baton_ok(&["settings", name]).trim().trim_matches('"'), value, "{file}");
        assert!(file.contains(&format!("\n{name} = ")), "{file}");
    }
}

#[test]
fn errors_are_told_to_whom_the_settings_name() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let wrong = world.baton(&["settings", "error_dsn", "errors.example"]);
    assert!(wrong.code != 0 && wrong.err.contains("https://KEY@HOST/PROJECT"), "{wrong:?}");
    let receiver = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = receiver.local_addr().expect("an address").port();
    world.baton_ok(&["settings", "error_dsn", &format!("http://key@127.0.0.1:{port}/7")]);
    let (mut stream, _) = receiver.accept().expect("somebody comes");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
    let (mut told, mut buffer) = (String::new(), [0; 4096]);
    while !told.contains("errors of Baton are told here from now on") {
        let n_read = stream.read(&mut buffer).expect("more comes");
        assert!(n_read > 0, "{told}");
        told.push_str(&String::from_utf8_lossy(&buffer[..n_read]));
    }
    assert!(told.starts_with("POST /api/7/envelope/ HTTP/1.1") && told.contains("sentry_key=key"), "{told}");
    assert!(told.contains("\"environment\":\"coordinator\""), "{told}");
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").expect("it listens");
    world.baton_ok(&["settings", "error_dsn", ""]);
    assert_eq!(setting(&world, "error_dsn"), "");
}
