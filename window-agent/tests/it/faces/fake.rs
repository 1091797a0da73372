//! The tool `debug` with an adapter that behaves as no real one does on demand: the documented errors of the transport.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::desk::{Desk, Said};

/// How the adapter can behave; see `fake_adapter.py`.
const PROGRAMS: [&str; 7] =
    ["threads", "mute", "uninitialized", "dies", "complains", "pointerless", "stackless"];

/// A desk whose window has the adapter, and programs for it.
async fn desk() -> Desk {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faces/fake_adapter.py");
    let table = json!({"adapters": [{
        "name": "fake", "types": ["fake"], "languages": ["Fake"], "extensions": ["fake"],
        "commands": [["python3", "-I", script]], "transport": "stdio",
        "tells_exit_code": false, "stop_on_entry": {"stopOnEntry": true},
    }]});
    let desk = Desk::open_with(move |options| {
        let config = options.folders[0].join("adapters.json");
        std::fs::write(&config, table.to_string()).unwrap();
        options.shelf.config = Some(config);
    });
    let desk = desk.await;
    for name in PROGRAMS {
        std::fs::write(desk.path(&format!("{name}.fake")), "one line\n").unwrap();
    }
    desk
}

async fn launch(desk: &Desk, name: &str) -> Said {
    desk.debug("launch", json!({"program": format!("{name}.fake"), "stop_on_entry": true})).await
}

#[tokio::test]
async fn a_request_that_is_never_answered_times_out() {
    let desk = desk().await;
    launch(&desk, "mute").await;
    let begun = Instant::now();
    let said = desk.debug_refused("scopes", json!({})).await;
    assert!(said.text.starts_with("DAP request scopes timed out after 10000ms"), "{}", said.text);
    let said = desk.debug_refused("evaluate", json!({"expression": "1", "timeout": 5})).await;
    assert!(said.text.starts_with("DAP request evaluate timed out after 5000ms"), "{}", said.text);
    assert!(begun.elapsed() >= Duration::from_secs(15), "each had its time");
    let said = desk.debug_refused("step_over", json!({})).await;
    assert!(
        said.text.starts_with("`1` is still being evaluated, and the debugger does nothing"),
        "{}",
        said.text
    );
    // The session is intact.
    assert!(desk.debug("threads", json!({})).await.text.contains("1 main"));
    assert_eq!(desk.debug("terminate", json!({})).await.value["snapshot"]["status"], "terminated");
}

#[tokio::test]
async fn an_event_that_never_comes_times_out() {
    let desk = desk().await;
    let said = desk.debug_refused("launch", json!({"program": "uninitialized.fake", "timeout": 6})).await;
    assert!(said.text.starts_with("DAP event initialized timed out after 6000ms"), "{}", said.text);
    // Nothing is left of it.
    let none = desk.debug("terminate", json!({})).await;
    assert_eq!(none.text, "No debug session to terminate.");
}

#[tokio::test]
async fn an_adapter_without_threads_is_told() {
    let desk = desk().await;
    let running = desk.debug("launch", json!({"program": "threads.fake", "stop_on_entry": false})).await;
    assert_eq!(running.value["state"], "running");
    let said = desk.debug_refused("threads", json!({})).await;
    assert_eq!(said.text, "Debugger reported no threads.");
    let said = desk.debug_refused("pause", json!({"timeout": 5})).await;
    assert_eq!(said.text, "Debugger reported no threads.");
}

#[tokio::test]
async fn an_adapter_that_dies_tells_its_code_and_its_last_words() {
    let desk = desk().await;
    for (name, sentence) in [
        ("dies", "DAP adapter exited unexpectedly (code 3)"),
        ("complains", "DAP adapter exited (code 3): the disk is full"),
    ] {
        let launched = launch(&desk, name).await;
        let session = launched.value["snapshot"]["id"].clone();
        desk.debug_refused("evaluate", json!({"expression": "1"})).await;
        let said = desk.debug_refused("continue", json!({"session": session, "timeout": 20})).await;
        assert!(said.text.starts_with(sentence), "{}", said.text);
        let said = desk.debug_refused("step_over", json!({"session": session})).await;
        assert!(said.text.starts_with("DAP adapter fake is not running"), "{}", said.text);
    }
}

#[tokio::test]
async fn without_an_instruction_pointer_an_address_is_needed() {
    let desk = desk().await;
    launch(&desk, "pointerless").await;
    let said = desk.debug_refused("disassemble", json!({"instruction_count": 4})).await;
    let sentence = "disassemble requires memory_reference unless the current stop location has an instruction pointer reference";
    assert!(said.text.starts_with(sentence), "{}", said.text);
}

#[tokio::test]
async fn a_stop_without_a_stack_has_no_frame() {
    let desk = desk().await;
    launch(&desk, "stackless").await;
    let said = desk.debug_refused("scopes", json!({})).await;
    assert_eq!(said.text, "No active stack frame. Run stack_trace first or supply frame_id.");
}

#[tokio::test]
async fn one_session_more_than_may_be_is_refused() {
    let desk = Desk::open_with(|options| options.max_sessions = Some(1)).await;
    let first = desk.debug("launch", json!({"program": "main.py", "stop_on_entry": true})).await;
    let id = first.value["snapshot"]["id"].as_str().unwrap();
    let said = desk.debug_refused("launch", json!({"program": "main.py"})).await;
    let sentence = format!("Debug session {id} is still active. Terminate it before launching another.");
    assert!(said.text.starts_with(&sentence), "{}", said.text);
    desk.debug("terminate", json!({})).await;
    desk.debug("launch", json!({"program": "main.py", "stop_on_entry": true})).await;
}
