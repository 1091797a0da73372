//! The tool `debug`: every documented error, and bad input of any other kind; the session goes on after each.

use serde_json::{Value, json};

use super::desk::Desk;

async fn check(desk: &Desk, arguments: Value, sentence: &str) {
    let said = desk.refused("debug", arguments.clone()).await;
    assert!(desk.stable(&said.text).contains(sentence), "{arguments}: {}", said.text);
}

#[tokio::test]
async fn what_is_missing_is_said_in_the_documents_words() {
    let desk = Desk::open().await;
    for (arguments, sentence) in [
        (json!({"action": "launch"}), "program is required for launch"),
        (json!({"action": "attach"}), "attach requires pid or port"),
        (json!({"action": "set_breakpoint"}), "set_breakpoint requires file+line or function"),
        (
            json!({"action": "remove_breakpoint", "line": 3}),
            "remove_breakpoint requires file+line or function, or file for all of yours in it",
        ),
        (json!({"action": "variables"}), "variables requires variable_ref or scope_id"),
        (json!({"action": "disassemble"}), "instruction_count is required for disassemble"),
        (json!({"action": "read_memory", "count": 4}), "memory_reference is required for read_memory"),
        (json!({"action": "read_memory", "memory_reference": "0x0"}), "count is required for read_memory"),
        (json!({"action": "write_memory", "memory_reference": "0x0"}), "data is required for write_memory"),
        (json!({"action": "custom_request"}), "command is required for custom_request"),
        (json!({"action": "evaluate"}), "expression is required for evaluate"),
    ] {
        check(&desk, arguments, sentence).await;
    }
}

#[tokio::test]
async fn without_a_session_every_action_says_so() {
    let desk = Desk::open().await;
    let sentence = "No active debug session. Launch or attach first.";
    for arguments in [
        json!({"action": "continue"}),
        json!({"action": "step_over"}),
        json!({"action": "step_in"}),
        json!({"action": "step_out"}),
        json!({"action": "pause"}),
        json!({"action": "evaluate", "expression": "1"}),
        json!({"action": "stack_trace"}),
        json!({"action": "threads"}),
        json!({"action": "scopes"}),
        json!({"action": "disassemble", "instruction_count": 3}),
        json!({"action": "read_memory", "memory_reference": "0x0", "count": 4}),
        json!({"action": "write_memory", "memory_reference": "0x0", "data": "AAAA"}),
        json!({"action": "modules"}),
        json!({"action": "loaded_sources"}),
        json!({"action": "custom_request", "command": "x"}),
        json!({"action": "output"}),
        json!({"action": "data_breakpoint_info", "name": "x"}),
        json!({"action": "set_data_breakpoint", "data_id": "x", "access_type": "write"}),
        json!({"action": "set_instruction_breakpoint", "instruction_reference": "0x0"}),
    ] {
        check(&desk, arguments, sentence).await;
    }
    let none = desk.debug("sessions", json!({})).await;
    assert_eq!((none.text.as_str(), &none.value["sessions"]), ("No debug sessions.", &json!([])));
}

#[tokio::test]
async fn what_the_adapter_cannot_do_is_named() {
    let desk = Desk::open().await;
    desk.debug("launch", json!({"program": "main.py"})).await;
    for (arguments, what) in [
        (
            json!({"action": "read_memory", "memory_reference": "0x0", "count": 4, "offset": 0}),
            "memory reads",
        ),
        (
            json!({"action": "write_memory", "memory_reference": "0x0", "data": "AAAA", "allow_partial": true}),
            "memory writes",
        ),
        (
            json!({"action": "disassemble", "instruction_count": 3, "instruction_offset": -1, "resolve_symbols": true}),
            "disassembly",
        ),
        (
            json!({"action": "set_instruction_breakpoint", "instruction_reference": "0x0"}),
            "instruction breakpoints",
        ),
        (json!({"action": "data_breakpoint_info", "name": "bill"}), "data breakpoints"),
        (json!({"action": "set_data_breakpoint", "data_id": "x"}), "data breakpoints"),
        (json!({"action": "loaded_sources"}), "loaded source"),
    ] {
        check(&desk, arguments, &format!("Active adapter does not support {what}")).await;
    }
    let known = desk.debug("evaluate", json!({"expression": "1 + 1"})).await;
    assert_eq!(known.value["evaluation"]["result"], "2", "the session is intact");
}

#[tokio::test]
async fn a_slip_in_a_file_name_is_told_with_the_file() {
    let desk = Desk::open().await;
    for (action, arguments) in
        [("launch", json!({"program": "mian.py"})), ("set_breakpoint", json!({"file": "mian.py", "line": 1}))]
    {
        let refused = desk.debug_refused(action, arguments).await;
        assert!(refused.text.ends_with("Did you mean one of the candidates?\nmain.py"), "{}", refused.text);
    }
}

#[tokio::test]
async fn a_program_that_is_merely_called_alike_is_not_started() {
    let desk = Desk::open().await;
    std::fs::copy("/bin/true", desk.path("words.bak")).unwrap();
    let refused = desk.debug_refused("launch", json!({"program": "words"})).await;
    let told = "There is no file \"words\" in this window.\nwords.bak is merely called alike: give its whole name if \
                you mean it.";
    assert_eq!(refused.text, told);
    // A link leads to a program that may be called anything.
    std::os::unix::fs::symlink(desk.path("words.bak"), desk.path("words")).unwrap();
    let launched =
        desk.debug("launch", json!({"program": "words", "adapter": "gdb", "stop_on_entry": false})).await;
    assert!(launched.text.contains("exit code 0"), "{}", launched.text);
}

#[tokio::test]
async fn bad_input_leaves_the_session_intact() {
    let desk = Desk::open().await;
    desk.debug("launch", json!({"program": "main.py"})).await;
    for (arguments, sentence) in [
        (json!({"action": "lunch"}), "\"action\" is the string \"lunch\" (did you mean \"launch\"?)."),
        (json!({"action": "jump"}), "\"action\" must be one of"),
        (json!({}), "\"action\" is missing"),
        (json!({"action": "continue", "speed": 3}), "unknown argument \"speed\""),
        (
            json!({"action": "launch", "program": "main.py", "breakpoints": [{"file": "main.py", "line": 3}]}),
            "Breakpoints are set first, each by a call with `action` set_breakpoint.",
        ),
        (
            json!({"action": "read_memory", "memory_reference": "0x0", "count": -4}),
            "\"count\" must be an integer from 0",
        ),
        (json!({"action": "stack_trace", "levels": 0}), "\"levels\" must be an integer from 1"),
        (json!({"action": "attach", "port": 70_000}), "\"port\" must be an integer from 1 to 65535"),
        (json!({"action": "launch", "program": "main.py", "args": "x"}), "\"args\" must be an array"),
        (json!({"action": "launch", "program": "main.py", "args": [1]}), "\"args[0]\" must be a string"),
        (json!({"action": "launch", "program": "main.py", "env": {"A": 1}}), "\"env.A\" must be a string"),
        (json!({"action": "write_memory", "memory_reference": "0x0", "data": "!"}), "data must be Base64"),
        (json!({"action": "set_breakpoint", "file": "main.py", "line": 99}), "has 10 lines"),
        (json!({"action": "set_breakpoint", "file": "gone.py", "line": 1}), "There is no file \"gone.py\""),
        (json!({"action": "set_breakpoint", "file": "twin.py", "line": 1}), "could be any of 2 files"),
        (json!({"action": "set_breakpoint", "file": "main.py", "line": 3, "function": "price"}), "not both"),
        (
            json!({"action": "set_breakpoint", "function": "price", "log_message": "x"}),
            "log_message works on",
        ),
        (
            json!({"action": "set_breakpoint", "file": "main.py", "line": 3, "condition": "=="}),
            "does not parse",
        ),
        (
            json!({"action": "set_breakpoint", "file": "main.py", "line": 3, "hit_condition": "often"}),
            "is not valid",
        ),
        (json!({"action": "remove_breakpoint", "file": "main.py", "line": 3}), "There is no breakpoint"),
        (json!({"action": "remove_breakpoint", "function": "price"}), "There is no breakpoint"),
        (json!({"action": "remove_data_breakpoint", "data_id": "x"}), "There is no breakpoint"),
        (
            json!({"action": "remove_instruction_breakpoint", "instruction_reference": "0x0"}),
            "There is no breakpoint",
        ),
        (json!({"action": "evaluate", "expression": "nonsense + 1"}), "NameError"),
        (json!({"action": "evaluate", "expression": "1", "frame_id": 99_999}), "no frame 99999"),
        (json!({"action": "scopes", "frame_id": 99_999}), "no frame 99999"),
        (json!({"action": "variables", "variable_ref": 99_999}), "no variables reference 99999"),
        (json!({"action": "stack_trace", "thread_id": 99_999}), "99999"),
        (json!({"action": "continue", "session": "nope"}), "no debug session nope"),
        (json!({"action": "custom_request", "command": "nope"}), "nope"),
        (json!({"action": "custom_request", "command": "configurationDone"}), "cannot be a custom request"),
        (json!({"action": "custom_request", "command": "goto"}), "goto requires targetId"),
        (
            json!({"action": "custom_request", "command": "stepBack"}),
            "Active adapter does not support stepping back",
        ),
        (json!({"action": "launch", "program": "gone.py"}), "There is no file \"gone.py\""),
        (json!({"action": "launch", "program": "main.py", "cwd": "gone"}), "There is no folder \"gone\""),
        (json!({"action": "launch", "program": "main.py", "adapter": "nope"}), "nope"),
        (json!({"action": "attach", "pid": 4_000_000}), "4000000"),
    ] {
        check(&desk, arguments, sentence).await;
    }
    let known = desk.debug("evaluate", json!({"expression": "1 + 1"})).await;
    assert_eq!(known.value["evaluation"]["result"], "2", "the session is intact");
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_told() {
    let desk = Desk::open().await;
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let said = desk.debug_refused("attach", json!({"port": port})).await;
    assert!(said.text.contains(&port.to_string()), "{}", said.text);
}

#[tokio::test]
async fn what_needs_a_stop_says_so_while_the_program_runs() {
    let desk = Desk::open().await;
    desk.debug("launch", json!({"program": "endless.py", "stop_on_entry": false})).await;
    for arguments in [json!({"action": "scopes"}), json!({"action": "evaluate", "expression": "n"})] {
        check(&desk, arguments, "Thread 1 is running.").await;
    }
    check(&desk, json!({"action": "step_over"}), "is running").await;
    let paused = desk.debug("pause", json!({})).await;
    let stale = paused.value["snapshot"]["frameId"].clone();
    desk.debug("step_over", json!({})).await;
    check(&desk, json!({"action": "scopes", "frame_id": stale}), "is from an earlier stop").await;
}

#[tokio::test]
async fn an_adapter_that_is_not_installed_names_its_command() {
    let desk = Desk::open_bare().await;
    std::fs::write(desk.path("main.js"), "console.log(1)\n").unwrap();
    for arguments in [json!({"program": "main.js"}), json!({"program": "main.js", "adapter": "js-debug"})] {
        let said = desk.debug_refused("launch", arguments).await;
        assert!(
            said.text.starts_with("No debugger adapter available. Installed adapters: none."),
            "{}",
            said.text
        );
        assert!(said.text.contains("baton adapters install js-debug"), "{}", said.text);
    }
}
