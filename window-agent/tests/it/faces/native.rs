//! The tool `debug` below the source: instructions, memory, data breakpoints, on a compiled program.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::desk::Desk;

const MAIN: &str = r#"#include <stdio.h>
#include <unistd.h>

int total = 0;
char word[8] = "abcdefg";

int price(int unit, int quantity) {
    int sum = unit * quantity;
    return sum;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        while (access(argv[1], F_OK) != 0) {
            usleep(10000);
        }
    }
    total = price(3, 2);
    total = total + price(4, 1);
    printf("total: %d %s\n", total, word);
    return 0;
}
"#;

/// A desk with a compiled program on it.
async fn desk() -> Desk {
    let desk = Desk::open().await;
    std::fs::write(desk.path("main.c"), MAIN).unwrap();
    compile(&desk, &["-g", "-O0"], "main");
    desk
}

fn compile(desk: &Desk, options: &[&str], output: &str) {
    let compiled = Command::new("cc")
        .args(options)
        .args(["-o", output, "main.c"])
        .current_dir(&desk.agent.root)
        .status();
    assert!(compiled.expect("a C compiler is installed").success());
}

/// The adapters that the machine's language debuggers bring, and what each can do.
const GDB: &str = "gdb";
const LLDB: &str = "lldb-dap";

async fn stopped_in_price(desk: &Desk, adapter: &str) -> Value {
    desk.debug("set_breakpoint", json!({"function": "price"})).await;
    let launched = desk.debug("launch", json!({"program": "main", "adapter": adapter})).await;
    assert_eq!(launched.value["adapter"], adapter);
    assert_eq!(launched.value["state"], "stopped", "{launched:#?}");
    assert!(launched.value["snapshot"]["frameName"].as_str().unwrap().contains("price"), "{launched:#?}");
    launched.value
}

async fn address_of(desk: &Desk, expression: &str) -> String {
    let said = desk.debug("evaluate", json!({"expression": expression, "context": "watch"})).await;
    let start = said.text.find("0x").unwrap_or_else(|| panic!("no address: {said:#?}"));
    let digits = said.text[start + 2..].chars().take_while(char::is_ascii_hexdigit).collect::<String>();
    format!("0x{digits}")
}

async fn instructions_and_memory(adapter: &str) {
    let desk = desk().await;
    stopped_in_price(&desk, adapter).await;
    let here = desk
        .debug(
            "disassemble",
            json!({"instruction_count": 4, "instruction_offset": 0, "resolve_symbols": true}),
        )
        .await;
    let instructions = here.value["disassembly"].as_array().unwrap();
    assert_eq!(instructions.len(), 4, "{here:#?}");
    assert!(instructions[0]["address"].as_str().unwrap().starts_with("0x"));
    let third = instructions[2]["address"].as_str().unwrap().to_owned();
    let again = desk
        .debug("disassemble", json!({"instruction_count": 1, "memory_reference": third, "offset": 0}))
        .await;
    assert_eq!(again.value["disassembly"][0]["instruction"], instructions[2]["instruction"]);

    let set = desk.debug("set_instruction_breakpoint", json!({"instruction_reference": third})).await;
    assert_eq!(set.value["instructionBreakpoints"][0]["instructionReference"], third, "{set:#?}");
    let stopped = desk.debug("continue", json!({})).await;
    assert_eq!(stopped.value["snapshot"]["instructionPointerReference"], third, "{stopped:#?}");
    let none = desk.debug("remove_instruction_breakpoint", json!({"instruction_reference": third})).await;
    assert_eq!(none.value["instructionBreakpoints"], json!([]));

    let address = address_of(&desk, "&word").await;
    let read = desk.debug("read_memory", json!({"memory_reference": address, "count": 8})).await;
    assert_eq!(
        STANDARD.decode(read.value["memoryData"].as_str().unwrap()).unwrap(),
        b"abcdefg\0",
        "{read:#?}"
    );
    assert_eq!(read.value["unreadableBytes"], 0);
    assert!(read.text.contains("abcdefg."), "{}", read.text);
    let part = desk.debug("read_memory", json!({"memory_reference": address, "count": 2, "offset": 2})).await;
    assert_eq!(STANDARD.decode(part.value["memoryData"].as_str().unwrap()).unwrap(), b"cd");
    let data = STANDARD.encode(b"XY");
    let written =
        desk.debug("write_memory", json!({"memory_reference": address, "data": data, "offset": 1})).await;
    assert_eq!(written.value["bytesWritten"], 2, "{written:#?}");
    let outside = desk.debug_refused("read_memory", json!({"memory_reference": "0x10", "count": 4})).await;
    assert!(!outside.text.is_empty());

    let modules = desk.debug("modules", json!({})).await;
    assert!(modules.text.contains("main"), "{}", modules.text);
    desk.debug("remove_breakpoint", json!({"function": "price"})).await;
    let ended = desk.debug("continue", json!({})).await;
    assert!(ended.text.contains("total: 10 aXYdefg"), "{}", ended.text);
}

#[tokio::test]
async fn gdb_shows_instructions_and_memory() {
    instructions_and_memory(GDB).await;
}

#[tokio::test]
async fn lldb_shows_instructions_and_memory() {
    instructions_and_memory(LLDB).await;
}

#[tokio::test]
async fn gdb_lists_the_sources() {
    let desk = desk().await;
    stopped_in_price(&desk, GDB).await;
    let sources = desk.debug("loaded_sources", json!({"count": 500})).await;
    assert!(sources.text.contains("main.c"), "{}", sources.text);
    assert!(sources.value["total"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn data_is_watched() {
    let desk = desk().await;
    let launched =
        desk.debug("launch", json!({"program": "main", "adapter": LLDB, "stop_on_entry": true})).await;
    assert_eq!(launched.value["state"], "stopped", "{launched:#?}");
    let scopes = desk.debug("scopes", json!({})).await;
    let globals = scopes.value["scopes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|scope| scope["name"].as_str().is_some_and(|name| name.to_lowercase().contains("global")));
    let globals = &globals.unwrap_or_else(|| panic!("no globals: {scopes:#?}"))["variablesReference"];
    let info = desk.debug("data_breakpoint_info", json!({"name": "total", "scope_id": globals})).await;
    let data_id = info.value["dataBreakpointInfo"]["dataId"].as_str().unwrap_or_else(|| panic!("{info:#?}"));
    let set = desk.debug("set_data_breakpoint", json!({"data_id": data_id, "access_type": "write"})).await;
    assert_eq!(set.value["dataBreakpoints"][0]["accessType"], "write", "{set:#?}");
    let stopped = desk.debug("continue", json!({})).await;
    assert_eq!(stopped.value["state"], "stopped", "{stopped:#?}");
    let reason = stopped.value["snapshot"]["stopReason"].as_str().unwrap();
    assert!(reason.contains("data") || reason.contains("watch"), "{stopped:#?}");
    let none = desk.debug("remove_data_breakpoint", json!({"data_id": data_id})).await;
    assert_eq!(none.value["dataBreakpoints"], json!([]));
    let ended = desk.debug("continue", json!({})).await;
    assert_eq!(ended.value["state"], "terminated", "{ended:#?}");
    // The address means nothing any more.
    let expired = desk.debug_refused("set_data_breakpoint", json!({"data_id": data_id})).await;
    assert!(!expired.text.is_empty());
}

#[tokio::test]
async fn a_process_is_attached_to() {
    let desk = desk().await;
    let mut running = Command::new(desk.path("main"))
        .arg("go")
        .current_dir(&desk.agent.root)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let attached = desk.debug("attach", json!({"pid": running.id(), "adapter": GDB})).await;
    assert_eq!(attached.value["adapter"], GDB, "{attached:#?}");
    if attached.value["state"] == "running" {
        desk.debug("pause", json!({})).await;
    }
    let stack = desk.debug("stack_trace", json!({})).await;
    assert!(stack.text.contains("main"), "{}", stack.text);
    desk.debug("terminate", json!({})).await;
    assert!(running.try_wait().unwrap().is_none(), "a program that was attached to lives on");
    std::fs::write(desk.path("go"), "").unwrap();
    assert!(running.wait().unwrap().success());
}

/// The first answer says it, and not the end alone.
#[tokio::test]
async fn a_start_says_which_breakpoints_its_debugger_cannot_have() {
    let desk = desk().await;
    desk.debug("set_breakpoint", json!({"file": "main.c", "line": 8, "condition": "nosuch == 3"})).await;
    desk.debug("set_breakpoint", json!({"file": "main.c", "line": 20})).await;
    let launched = desk.debug("launch", json!({"program": "main", "adapter": GDB})).await;
    assert_eq!(launched.value["state"], "stopped", "{launched:#?}");
    let told = "(main.c:8) is not set: no symbol \"nosuch\" in current context.";
    assert!(desk.stable(&launched.text).contains(told), "{}", launched.text);
    let went_on = desk.debug("continue", json!({})).await;
    assert!(went_on.text.contains("No symbol \"nosuch\""), "{}", went_on.text);
}

#[tokio::test]
async fn a_program_without_debug_information_still_runs() {
    let desk = desk().await;
    compile(&desk, &["-O1", "-s"], "stripped");
    let set = desk.debug("set_breakpoint", json!({"file": "main.c", "line": 8})).await;
    assert!(set.text.contains("not verified"), "{}", set.text);
    let launched = desk.debug("launch", json!({"program": "stripped", "adapter": GDB})).await;
    assert_eq!(launched.value["state"], "terminated", "{launched:#?}");
    assert!(launched.text.contains("main.c:8) was never hit"), "{}", launched.text);
    assert!(Path::new(&desk.path("stripped")).exists());
}

#[tokio::test]
async fn a_source_that_is_newer_than_its_program_is_told() {
    let desk = desk().await;
    let told = "main.c changed since main was built; lines may be those of the old text: build it again.";
    let stop = async || {
        desk.debug("set_breakpoint", json!({"file": "main.c", "line": 8})).await;
        desk.debug("launch", json!({"program": "main", "adapter": GDB})).await.text
    };
    let first = stop().await;
    assert!(first.contains("Stopped at main.c:8") && !first.contains(told), "{first}");
    desk.debug("terminate", json!({})).await;
    let built = std::fs::metadata(desk.path("main")).unwrap().modified().unwrap();
    let source = std::fs::File::options().append(true).open(desk.path("main.c")).unwrap();
    source.set_modified(built + std::time::Duration::from_millis(10)).unwrap();
    let second = stop().await;
    assert!(second.contains(told), "{second}");
}

/// What a program that reads one line prints.
const READS: &str = r#"#include <stdio.h>

int main(void) {
    char name[64];
    if (fgets(name, 64, stdin)) {
        printf("got %s\n", name);
    }
    return 0;
}
"#;

#[tokio::test]
async fn a_start_that_cannot_pass_its_stdin_on_starts_nothing() {
    let desk = desk().await;
    let start = json!({"program": "main", "adapter": GDB, "stdin": "Ada"});
    let refused = desk.debug_refused("launch", start).await;
    assert!(refused.text.contains("A program under gdb has no terminal to read from"), "{}", refused.text);
    assert!(refused.text.contains("Use `adapter` lldb-dap"), "{}", refused.text);
    let sessions = desk.debug("sessions", json!({})).await;
    assert!(!sessions.text.contains("main"), "{}", sessions.text);
}

#[tokio::test]
async fn a_start_with_stdin_chooses_an_adapter_that_passes_it_on() {
    let desk = desk().await;
    std::fs::write(desk.path("main.c"), READS).unwrap();
    compile(&desk, &["-g", "-O0"], "reads");
    let launched =
        desk.debug("launch", json!({"program": "reads", "stdin": "Ada", "stop_on_entry": false})).await;
    assert_eq!(launched.value["adapter"], LLDB, "{launched:#?}");
    assert!(launched.text.contains("got Ada"), "{}", launched.text);
}

#[tokio::test]
async fn a_shell_script_reads_what_its_start_gives_it() {
    let desk = desk().await;
    std::fs::write(desk.path("ask.sh"), "read -r name\necho \"hello $name\"\n").unwrap();
    let launch = json!({"program": "ask.sh", "stdin": "Ada\n", "stop_on_entry": false});
    let launched = desk.debug("launch", launch).await;
    assert_eq!(launched.value["adapter"], "bash-dap", "{launched:#?}");
    assert!(launched.text.contains("hello Ada"), "{}", launched.text);
}
