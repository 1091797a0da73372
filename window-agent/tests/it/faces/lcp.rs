//! The toolset `lcp`: its six tools with the documented structure.

use serde_json::{Value, json};

use super::desk::Desk;

/// Calls a tool that succeeds; its data.
async fn data(desk: &Desk, tool: &str, arguments: Value) -> Value {
    let said = desk.call(tool, arguments).await;
    assert_eq!(said.value["success"], true, "{said:#?}");
    let names: Vec<&String> = said.value.as_object().unwrap().keys().collect();
    assert_eq!(names, ["data", "success"]);
    assert_eq!(said.text, said.value.to_string());
    said.value["data"].clone()
}

fn is_uuid(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| uuid::Uuid::parse_str(text).is_ok_and(|uuid| uuid.get_version_num() == 4))
}

#[tokio::test]
async fn the_documents_scenario() {
    let desk = Desk::open().await;
    let launched = data(&desk, "lcp_debug_launch", json!({"program": "main.py", "args": []})).await;
    assert!(is_uuid(&launched["session_id"]), "{launched:#}");
    let id = &launched["session_id"];
    assert_eq!(
        launched,
        json!({"session_id": id, "status": "started", "breakpoint_count": 0, "current_line": 1})
    );

    let added = data(&desk, "lcp_add_breakpoint", json!({"file": "main.py", "line": 3})).await;
    let breakpoint = &added["breakpoint_id"];
    assert!(is_uuid(breakpoint), "{added:#}");
    assert_eq!(added, json!({"breakpoint_id": breakpoint, "verified": true, "file": "main.py", "line": 3}));

    let stopped = data(&desk, "lcp_debug_step", json!({"session_id": id, "action": "continue"})).await;
    assert_eq!(
        stopped,
        json!({
            "status": "stopped",
            "reason": "breakpoint",
            "current_line": 3,
            "current_file": "main.py",
            "call_stack": [
                {"function": "price", "file": "main.py", "line": 3},
                {"function": "<module>", "file": "main.py", "line": 9},
            ],
            "local_variables": [
                {"name": "item", "value": "'apple'", "type": "str"},
                {"name": "quantity", "value": "2", "type": "int"},
                {"name": "total", "value": "6", "type": "int"},
            ],
        })
    );
    let evaluated =
        data(&desk, "lcp_debug_evaluate", json!({"session_id": id, "expression": "total + 4"})).await;
    assert_eq!(evaluated, json!({"value": "10", "type": "int", "variablesReference": 0}));
    let out = data(&desk, "lcp_debug_step", json!({"session_id": id, "action": "stepOut"})).await;
    assert_eq!((&out["reason"], &out["current_line"]), (&json!("step"), &json!(9)));
    let next = data(&desk, "lcp_debug_step", json!({"session_id": id, "action": "next"})).await;
    assert_eq!((&next["reason"], &next["current_line"]), (&json!("step"), &json!(8)), "{next:#}");

    let removed = data(&desk, "lcp_remove_breakpoint", json!({"breakpoint_id": breakpoint})).await;
    assert_eq!(removed, json!({"success": true, "remaining_breakpoints": 0}));
    data(&desk, "lcp_debug_step", json!({"session_id": id, "action": "next"})).await;
    let into = data(&desk, "lcp_debug_step", json!({"session_id": id, "action": "stepIn"})).await;
    assert_eq!((&into["call_stack"][0]["function"], &into["current_line"]), (&json!("price"), &json!(2)));
    let stopped = data(&desk, "lcp_debug_stop", json!({"session_id": id})).await;
    assert_eq!(stopped, json!({"success": true, "message": "Debug session stopped"}));
}

#[tokio::test]
async fn an_endless_loop_is_paused_by_force() {
    let desk = Desk::open().await;
    let launched = data(&desk, "lcp_debug_launch", json!({"program": "endless"})).await;
    let id = &launched["session_id"];
    let started = std::time::Instant::now();
    let paused = data(&desk, "lcp_debug_step", json!({"session_id": id, "action": "continue"})).await;
    assert_eq!((&paused["status"], &paused["reason"]), (&json!("paused"), &json!("timeout")), "{paused:#}");
    assert!(started.elapsed() >= std::time::Duration::from_secs(5), "the program had its time");
    assert!(paused["message"].as_str().unwrap().starts_with("程序仍在运行，已强制暂停，当前位置如下"));
    assert_eq!(paused["current_file"], "endless.py");
    assert!(paused["local_variables"].as_array().unwrap().iter().any(|variable| variable["name"] == "n"));
    let stepped = data(&desk, "lcp_debug_step", json!({"session_id": id, "action": "next"})).await;
    assert_eq!(stepped["status"], "stopped", "it goes on from there: {stepped:#}");
}

#[tokio::test]
async fn names_are_fuzzy_and_environment_arrives() {
    let desk = Desk::open().await;
    let added = data(&desk, "lcp_add_breakpoint", json!({"file": "user.py", "line": 2})).await;
    assert_eq!(added["file"], "src/models/user.py");
    let launched =
        data(&desk, "lcp_debug_launch", json!({"program": "USER.py", "env": {"MOOD": "fine"}})).await;
    assert_eq!(launched["breakpoint_count"], 1);
    let id = &launched["session_id"];
    let mood = json!({"session_id": id, "expression": "__import__('os').environ['MOOD']"});
    assert_eq!(data(&desk, "lcp_debug_evaluate", mood).await["value"], "'fine'");
    let twin = desk.refused("lcp_add_breakpoint", json!({"file": "twin.py", "line": 1})).await;
    assert_eq!((&twin.value["success"], &twin.value["code"]), (&json!(false), &json!("ambiguous_path")));
    assert_eq!(twin.value["candidates"], json!(["a/twin.py", "b/twin.py"]));
    let ended = loop {
        let step = data(&desk, "lcp_debug_step", json!({"session_id": id, "action": "continue"})).await;
        if step["status"] != "stopped" {
            break step;
        }
    };
    assert_eq!(
        (&ended["status"], &ended["reason"], &ended["exit_code"]),
        (&json!("terminated"), &json!("exited"), &json!(0))
    );
    assert!(ended["output"].as_str().unwrap().contains("ann"), "{ended:#}");
    let over = desk.refused("lcp_debug_step", json!({"session_id": id, "action": "next"})).await;
    assert_eq!(over.value["code"], "session_ended", "{over:#?}");
    // In words that its client knows.
    assert!(over.value["message"].as_str().unwrap().contains(id.as_str().unwrap()), "{over:#?}");
}

#[tokio::test]
async fn the_death_of_the_adapter_is_told_and_breakpoints_stay() {
    let desk = Desk::open().await;
    data(&desk, "lcp_add_breakpoint", json!({"file": "main.py", "line": 3})).await;
    let launched = data(&desk, "lcp_debug_launch", json!({"program": "main.py"})).await;
    let id = &launched["session_id"];
    let parent = json!({"session_id": id, "expression": "__import__('os').getppid()"});
    // The program's parent is the adapter, or the launcher whose parent the adapter is.
    let adapter = adapter_above(data(&desk, "lcp_debug_evaluate", parent).await["value"].as_str().unwrap());
    let killed = std::process::Command::new("kill").args(["-9", &adapter]).status().unwrap();
    assert!(killed.success());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let said = loop {
        let step = json!({"session_id": id, "action": "continue"});
        let said = desk.refused("lcp_debug_step", step).await;
        println!("{}", said.text);
        if said.value["code"] == "adapter_died" || std::time::Instant::now() > deadline {
            break said;
        }
    };
    assert!(
        said.value["message"].as_str().unwrap().starts_with("调试器意外重置，请重新启动调试会话"),
        "{said:#?}"
    );
    let again = data(&desk, "lcp_debug_launch", json!({"program": "main.py"})).await;
    assert_eq!(again["breakpoint_count"], 1);
    let step = json!({"session_id": again["session_id"], "action": "continue"});
    assert_eq!(data(&desk, "lcp_debug_step", step).await["current_line"], 3, "breakpoints were kept");
}

/// The debugpy adapter among the ancestors of a process.
fn adapter_above(pid: &str) -> String {
    let mut pid = pid.to_owned();
    loop {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        if line.contains("debugpy.adapter") {
            return pid;
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields = stat.rsplit(')').next().unwrap();
        pid = fields.split_whitespace().nth(1).unwrap().to_owned();
        assert_ne!(pid, "1", "no adapter is above the program");
    }
}

#[tokio::test]
async fn no_more_than_ten_sessions() {
    let desk = Desk::open().await;
    let mut ids = Vec::new();
    let said = loop {
        let arguments = json!({"program": "endless.py"});
        if ids.len() < 10 {
            ids.push(data(&desk, "lcp_debug_launch", arguments).await["session_id"].clone());
        } else {
            break desk.refused("lcp_debug_launch", arguments).await;
        }
    };
    assert_eq!(said.value["code"], "too_many_sessions", "{said:#?}");
    data(&desk, "lcp_debug_stop", json!({"session_id": ids[3]})).await;
    data(&desk, "lcp_debug_launch", json!({"program": "main.py"})).await;
}

#[tokio::test]
async fn bad_input_is_told() {
    let desk = Desk::open().await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    for (tool, arguments, sentence) in [
        ("lcp_debug_launch", json!({}), "\"program\" is missing"),
        ("lcp_debug_launch", json!({"program": "gone.py"}), "There is no file"),
        ("lcp_debug_launch", json!({"program": "main.py", "env": {"A": 1}}), "\"env.A\" must be a string"),
        ("lcp_add_breakpoint", json!({"file": "main.py", "line": -1}), "\"line\" must be an integer from 1"),
        ("lcp_add_breakpoint", json!({"file": "main.py", "line": 99}), "has 10 lines"),
        ("lcp_remove_breakpoint", json!({"breakpoint_id": unknown}), "No breakpoint has the id"),
        (
            "lcp_debug_step",
            json!({"session_id": unknown, "action": "next"}),
            "No active debug session has the id",
        ),
        ("lcp_debug_step", json!({"session_id": unknown, "action": "over"}), "\"action\" must be one of"),
        ("lcp_debug_step", json!({"action": "next"}), "\"session_id\" is missing"),
        (
            "lcp_debug_evaluate",
            json!({"session_id": "x", "expression": "1"}),
            "No active debug session has the id",
        ),
        ("lcp_debug_stop", json!({"session_id": unknown}), "No active debug session has the id"),
    ] {
        let said = desk.refused(tool, arguments.clone()).await;
        assert_eq!(said.value["success"], false);
        assert!(said.value["message"].as_str().unwrap().contains(sentence), "{tool} {arguments}: {said:#?}");
    }
    let launched = data(&desk, "lcp_debug_launch", json!({"program": "main.py"})).await;
    let id = &launched["session_id"];
    let said = desk.refused("lcp_debug_evaluate", json!({"session_id": id, "expression": "nonsense"})).await;
    assert_eq!(said.value["code"], "evaluation_failed");
    let step = json!({"session_id": id, "action": "next"});
    assert_eq!(
        data(&desk, "lcp_debug_step", step.clone()).await["status"],
        "stopped",
        "the session is intact"
    );
    // Of one that has ended too, it is told by the name that the client knows.
    data(&desk, "lcp_debug_stop", json!({"session_id": id})).await;
    let said = desk.refused("lcp_debug_step", step).await;
    let named = format!("Debug session {} has ended", id.as_str().unwrap());
    assert!(said.value["message"].as_str().unwrap().starts_with(&named), "{said:#?}");
}
