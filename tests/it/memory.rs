//! `baton memory`: what a program takes is its window's, and as much as the system says.

use baton_tests::client::{Client, ClientKind};
use baton_tests::process::rss_kib;
use baton_tests::world::World;
use serde_json::{Value, json};

#[test]
fn a_program_s_memory_is_its_window_s() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let program = "held = b'x' * (64 << 20)\nn = 1\nn = 2\n";
    std::fs::write(world.folder("shop").join("greedy.py"), program).expect("a file");
    let mut client = Client::connect(&world, ClientKind::Python1, &world.url());
    for arguments in [
        json!({"action": "set_breakpoint", "file": "greedy.py", "line": 3}),
        json!({"action": "launch", "program": "greedy.py", "timeout": 60}),
    ] {
        client.try_call("debug", arguments).expect("an answer");
    }
    let told: Value = serde_json::from_str(&world.baton_ok(&["memory", "--json"])).expect("JSON");
    let of = |window: &Value| {
        let parts = told.as_array().expect("a list");
        parts.iter().find(|part| part["window"] == *window).expect("a part")["processes"]
            .as_array()
            .expect("a list")
    };
    assert_eq!(of(&Value::Null)[0]["pid"], world.coordinator_pid());
    assert_eq!(of(&json!("weather")).len(), 1, "{told:#}");
    let shop = of(&json!("shop"));
    assert_eq!(shop[0]["pid"], world.agent_pid("shop"));
    // Its agent has started it.
    assert!(shop.iter().all(|process| process["pid"] != world.coordinator_pid()), "{told:#}");
    let heap = |process: &&Value| process["heap_bytes"].as_u64().expect("a number");
    let greedy = shop.iter().max_by_key(heap).expect("a process");
    // What the system says of it, within what debugpy does meanwhile.
    let resident = rss_kib(u32::try_from(greedy["pid"].as_u64().expect("a number")).expect("a pid")) * 1024;
    let (own, heap) = (greedy["own_bytes"].as_u64().expect("a number"), heap(&greedy));
    assert!(heap >= 64 << 20 && heap <= own && own <= resident + (4 << 20), "{greedy:#} of {resident}");
    let printed = world.baton_ok(&["memory"]);
    assert!(
        printed.contains("window shop") && printed.contains("baton-agent") && printed.contains("coordinator")
    );
    let one = world.baton_ok(&["memory", "--window", "weather"]);
    assert!(!one.contains("shop") && !one.contains("coordinator"), "{one}");
    let none = world.baton(&["memory", "--window", "nobody"]);
    assert!(none.code == 1 && none.err.contains("no window matches \"nobody\""), "{none:?}");
    client.close();
}
