//! `cargo xtask demo --adapters`: one program per language, debugged through the stable URL by one client.

use std::path::Path;
use std::process::ExitCode;

use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::command;
use baton_tests::story::variable;
use baton_tests::world::{WindowOptions, World};
use serde_json::{Value, json};

use crate::Timeline;

/// The line of the addition, in every language.
const ADDITION: u64 = 12;

/// A program: its language, source, `type`, and what is started.
struct Program {
    language: &'static str,
    source: &'static str,
    kind: &'static str,
    program: &'static str,
    /// What builds it, in the folder of the programs.
    build: &'static [&'static str],
    /// A variable and its value when the condition holds.
    condition: &'static str,
    seen: (&'static str, &'static str),
}

const BASE: Program = Program {
    language: "",
    source: "",
    kind: "",
    program: "",
    build: &[],
    condition: "right > 3",
    seen: ("left", "6"),
};

const PROGRAMS: [Program; 9] = [
    Program { language: "Python", source: "sums.py", kind: "debugpy", program: "sums.py", ..BASE },
    Program { language: "JavaScript", source: "sums.js", kind: "node", program: "sums.js", ..BASE },
    Program {
        language: "TypeScript",
        source: "typescript/sums.ts",
        kind: "node",
        program: "typescript/sums.ts",
        build: &["node", "{tsc}", "-p", "typescript"],
        ..BASE
    },
    Program {
        language: "C",
        source: "sums.c",
        kind: "gdb",
        program: "c",
        build: &["cc", "-g", "-O0", "-o", "c", "sums.c"],
        ..BASE
    },
    Program {
        language: "C++",
        source: "sums.cpp",
        kind: "lldb-dap",
        program: "cpp",
        build: &["c++", "-g", "-O0", "-o", "cpp", "sums.cpp"],
        ..BASE
    },
    Program {
        language: "Rust",
        source: "sums.rs",
        kind: "lldb",
        program: "rust",
        build: &["rustc", "--edition", "2024", "-g", "-o", "rust", "sums.rs"],
        ..BASE
    },
    Program { language: "Go", source: "go/sums.go", kind: "go", program: "go", ..BASE },
    Program {
        language: "Java",
        source: "java/Sums.java",
        kind: "java",
        program: "java/Sums.java",
        build: &["javac", "-g", "-d", "java/out", "java/Sums.java"],
        ..BASE
    },
    Program {
        language: "Bash",
        source: "sums.sh",
        kind: "bash",
        program: "sums.sh",
        condition: "(( number > 3 ))",
        seen: ("number", "4"),
        ..BASE
    },
];

pub(crate) fn demo() -> ExitCode {
    let mut timeline = Timeline::new();
    let mut world = World::new();
    timeline.heading("1. the programs are built");
    let folder = world.folder("languages");
    place::copy_folder(&place::root().join("tests/fixtures/languages"), &folder);
    for program in PROGRAMS.iter().filter(|program| !program.build.is_empty()) {
        build(program, &folder);
        timeline.say(&format!("{}: {}", program.language, program.build.join(" ")));
    }
    write_launch_json(&folder);
    world.window_with("languages", WindowOptions { folder: Some(folder), ..WindowOptions::default() });
    world.await_live("languages");
    timeline.heading(&format!("2. one MCP client at {} debugs them", world.url()));
    let mut client = world.client(ClientKind::Python1);
    for program in &PROGRAMS {
        let told = debug(&mut client, program);
        timeline.say(&told);
    }
    client.close();
    timeline.heading("3. everything ends");
    super::end(&mut world, &mut timeline)
}

fn build(program: &Program, folder: &Path) {
    let tsc = place::root().join(".cache/typescript/node_modules/typescript/bin/tsc");
    let words = program.build.iter().map(|word| word.replace("{tsc}", &tsc.to_string_lossy()));
    let words: Vec<String> = words.collect();
    let built = command(&words[0]).args(&words[1..]).current_dir(folder).output();
    let output =
        built.unwrap_or_else(|error| panic!("{} is needed for {}: {error}", words[0], program.language));
    assert!(output.status.success(), "{}: {}", program.language, String::from_utf8_lossy(&output.stderr));
}

fn write_launch_json(folder: &Path) {
    let configurations: Vec<Value> = PROGRAMS
        .iter()
        .map(|program| {
            json!({
                "name": program.language, "type": program.kind, "request": "launch",
                "program": format!("${{workspaceFolder}}/{}", program.program),
            })
        })
        .collect();
    std::fs::create_dir_all(folder.join(".vscode")).expect("a temporary folder");
    let text = json!({"version": "0.2.0", "configurations": configurations}).to_string();
    std::fs::write(folder.join(".vscode/launch.json"), text).expect("a temporary file");
}

/// A conditional breakpoint, a variable, an expression, a step, and on to the end.
fn debug(client: &mut Client, program: &Program) -> String {
    let (language, (name, value)) = (program.language, program.seen);
    let breakpoint = json!({
        "file_path": program.source, "line_number": ADDITION, "condition": program.condition,
    });
    client.expect("success", "set_breakpoint", breakpoint);
    let started = client.expect("stopped", "start_debugging", json!({"configuration_name": language}));
    let event = &started["stop_event_data"];
    assert_eq!(event["line"], ADDITION, "{language}: {event:#}");
    let variables = &event["top_frame_variables"]["variables"];
    assert_eq!(variable(variables, name)["value"], value, "{language}: {event:#}");
    let arguments =
        json!({"thread_id": event["thread_id"], "session_id": event["session_id"], "step_type": "over"});
    let stepped = client.expect("stopped", "step_execution", arguments);
    let line = &stepped["stop_event_data"]["line"];
    client.expect("success", "remove_breakpoint", json!({"clear_all": true}));
    let arguments = json!({"thread_id": event["thread_id"], "session_id": event["session_id"]});
    client.expect("completed", "continue_debugging", arguments);
    format!(
        "{language}: stopped at line {ADDITION} with {name} = {value}, stepped to line {line}, ran to its end"
    )
}
