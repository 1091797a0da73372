//! What takes too much, or is used by nobody, is ended, and its client is told why.

use std::time::Duration;

use baton_proto::control::Status;
use baton_tests::client::{Client, ClientKind};
use baton_tests::process::await_some;
use baton_tests::world::World;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// A live window with one program, and a client that debugs.
fn window_with(program: &str) -> (World, Client) {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    std::fs::write(world.folder("shop").join("greedy.py"), program).expect("a file");
    let client = Client::connect(&world, ClientKind::Python1, &world.url());
    (world, client)
}

/// What the model reads of an answer.
fn debug(client: &mut Client, arguments: Value) -> String {
    let answer = client.try_call("debug", arguments).expect("an answer");
    let parts = answer["content"].as_array().expect("an answer has content").iter();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn launch(client: &mut Client) -> String {
    debug(client, json!({"action": "launch", "program": "greedy.py", "timeout": 60}))
}

fn await_no_session(world: &World) {
    let has_none = |status: &Status| status.windows.iter().all(|window| window.debug_sessions.is_empty());
    world.await_status("no session", has_none);
}

#[test]
fn a_program_that_takes_too_much_memory_is_ended_and_its_client_is_told() {
    let (world, mut client) =
        window_with("import time\nheld = b'x' * (400 << 20)\nprint('holds')\ntime.sleep(600)\n");
    // Without a limit of one's own it may.
    launch(&mut client);
    let running = debug(&mut client, json!({"action": "continue", "timeout": 5}));
    assert!(running.contains("running"), "{running}");
    world.baton_ok(&["settings", "session_memory_mb", "300"]);
    let ended = debug(&mut client, json!({"action": "continue", "timeout": 60}));
    let (before, after) =
        ended.split_once(" MB of memory (limit 300 MB, setting session_memory_mb)").expect(&ended);
    assert!(before.contains("The debug session was ended: its program took "), "{ended}{after}");
    let taken: u64 = before.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number");
    assert!((400..800).contains(&taken), "{ended}");
    await_no_session(&world);
    client.close();
}

#[test]
fn a_program_that_starts_too_many_processes_is_warned_of_and_then_ended() {
    let (world, mut client) = window_with(
        "import subprocess\n\
         all = [subprocess.Popen(['sleep', '600']) for _ in range(85)]\n\
         here = len(all)\n\
         all += [subprocess.Popen(['sleep', '600']) for _ in range(40)]\n\
         all[0].wait()\n",
    );
    world.baton_ok(&["settings", "session_processes", "100"]);
    debug(&mut client, json!({"action": "set_breakpoint", "file": "greedy.py", "line": 3}));
    let stopped = launch(&mut client);
    assert!(stopped.contains("greedy.py:3"), "{stopped}");
    let warning = "processes, and is ended when it takes more than 100 (setting session_processes)";
    let is_told = || Some(debug(&mut client, json!({"action": "threads"}))).filter(|it| it.contains(warning));
    assert!(await_some(PATIENCE, is_told).is_some(), "nothing was said");
    let again = debug(&mut client, json!({"action": "threads"}));
    assert!(!again.contains(warning), "it is said once: {again}");
    let ended = debug(&mut client, json!({"action": "continue", "timeout": 60}));
    assert!(ended.contains("processes (limit 100, setting session_processes)"), "{ended}");
    await_no_session(&world);
    client.close();
}

#[test]
fn a_session_that_no_call_uses_is_ended_after_the_time_that_was_set() {
    let (world, mut client) = window_with("n = 1\nn += 1\n");
    debug(&mut client, json!({"action": "set_breakpoint", "file": "greedy.py", "line": 2}));
    let stopped = launch(&mut client);
    assert!(stopped.contains("greedy.py:2"), "{stopped}");
    world.baton_ok(&["settings", "session_idle_s", "1"]);
    await_no_session(&world);
    let told = debug(&mut client, json!({"action": "continue", "timeout": 5}));
    assert!(told.contains("nobody used it for 1 s"), "{told}");
    client.close();
}
