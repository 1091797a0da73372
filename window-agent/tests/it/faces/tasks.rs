//! The task that a configuration of launch.json wants to be run before it.

use serde_json::{Value, json};

use super::desk::Desk;

const READY: &str =
    "#include <stdio.h>\n\nint main(void) {\n    puts(\"built by the task\");\n    return 0;\n}\n";

/// A desk with a program that has to be built, and the tasks for it.
async fn desk(tasks: Value) -> Desk {
    let desk = Desk::open().await;
    std::fs::create_dir_all(desk.path(".vscode")).unwrap();
    let launch = json!({ "configurations": [{
        "name": "Run", "type": "gdb", "request": "launch", "program": "${workspaceFolder}/out dir/main",
        "preLaunchTask": "build",
    }] });
    std::fs::write(desk.path(".vscode/launch.json"), launch.to_string()).unwrap();
    std::fs::write(desk.path(".vscode/tasks.json"), json!({ "tasks": tasks }).to_string()).unwrap();
    std::fs::write(desk.path("main.c"), READY).unwrap();
    desk
}

fn build() -> Value {
    json!([
        { "label": "folder", "type": "process", "command": "mkdir", "args": ["-p", "out dir"] },
        { "label": "build", "type": "shell", "command": "cc", "dependsOn": "folder",
          "args": ["-g", "-o", "${workspaceFolder}/out dir/main", "main.c"] },
    ])
}

#[tokio::test]
async fn a_task_builds_the_program_before_it_is_started() {
    let desk = desk(build()).await;
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(ran.text.contains("built by the task"), "{}", ran.text);
    // Built anew: what is run is what stands in the file.
    std::fs::write(desk.path("main.c"), READY.replace("built", "built again")).unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(ran.text.contains("built again by the task"), "{}", ran.text);
}

#[tokio::test]
async fn a_task_that_fails_starts_nothing_unless_it_is_left_out() {
    let desk = desk(build()).await;
    desk.debug("launch", json!({ "configuration": "Run" })).await;
    std::fs::write(desk.path("main.c"), READY.replace("puts(", "puts(no_such_name, ")).unwrap();
    let refused = desk.debug_refused("launch", json!({ "configuration": "Run" })).await;
    for part in ["The task `build` exited with code 1", "main.c:4", "no_such_name", "\"preLaunchTask\": null"]
    {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    let sessions = desk.debug("sessions", json!({})).await;
    assert_eq!(sessions.text.matches("main").count(), 1, "the first alone: {}", sessions.text);
    let skip = json!({ "configuration": "Run", "arguments": { "preLaunchTask": null } });
    let ran = desk.debug("launch", skip).await;
    assert!(ran.text.contains("built by the task"), "{}", ran.text);
    std::fs::write(desk.path(".vscode/settings.json"), r#"{"debug.onTaskErrors": "debugAnyway"}"#).unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(
        ran.text.contains("built by the task")
            && ran.text.contains("exited with code 1")
            && !ran.text.contains("nothing was started"),
        "{}",
        ran.text
    );
}

#[tokio::test]
async fn a_task_whose_folder_or_program_is_missing_says_which() {
    let desk = desk(json!([
        { "label": "build", "type": "process", "command": "cc", "options": { "cwd": "${workspaceFolder}/gone" } },
    ]))
    .await;
    let refused = desk.debug_refused("launch", json!({ "configuration": "Run" })).await;
    assert!(refused.text.contains("/gone, which is no folder"), "{}", refused.text);
    let missing = json!([{ "label": "build", "type": "process", "command": "no-such-compiler" }]);
    std::fs::write(desk.path(".vscode/tasks.json"), json!({ "tasks": missing }).to_string()).unwrap();
    let refused = desk.debug_refused("launch", json!({ "configuration": "Run" })).await;
    assert!(refused.text.contains("cannot run `no-such-compiler`: No such file"), "{}", refused.text);
}

#[tokio::test]
async fn a_task_that_does_not_end_is_ended() {
    let desk = desk(json!([{ "label": "build", "type": "shell", "command": "sleep 600; true" }])).await;
    let refused = desk.debug_refused("launch", json!({ "configuration": "Run", "timeout": 5 })).await;
    assert!(refused.text.contains("The task `build` did not end within 5 s"), "{}", refused.text);
}

#[tokio::test]
async fn a_task_that_only_an_editor_runs_is_told_and_left_out() {
    let desk = desk(build()).await;
    desk.debug("launch", json!({ "configuration": "Run" })).await;
    let watch = json!([{ "label": "build", "type": "npm", "script": "watch", "isBackground": true }]);
    std::fs::write(desk.path(".vscode/tasks.json"), json!({ "tasks": watch }).to_string()).unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    let why =
        "preLaunchTask \"build\" was not run: the task `build` runs in the background: start it yourself.";
    assert!(ran.text.contains("built by the task") && ran.text.contains(why), "{}", ran.text);
}

/// A server and what asks it, which are started together.
async fn pair() -> Desk {
    let desk = Desk::open().await;
    std::fs::create_dir_all(desk.path(".vscode")).unwrap();
    let part = |name: &str| {
        json!({ "name": name, "type": "debugpy", "request": "launch",
        "program": format!("${{workspaceFolder}}/{name}.py"), "args": ["${workspaceFolder}/pipe"] })
    };
    let launch = json!({
        "configurations": [part("server"), part("client"), { "name": "bad", "type": "debugpy", "request": "launch" }],
        "compounds": [
            { "name": "Both", "configurations": ["server", "client"] },
            { "name": "Half", "configurations": ["server", "bad"] },
        ],
    });
    std::fs::write(desk.path(".vscode/launch.json"), launch.to_string()).unwrap();
    let path = desk.path("pipe");
    std::fs::write(desk.path("server.py"), "import os, sys\n\nif not os.path.exists(sys.argv[1]):\n    os.mkfifo(sys.argv[1])\nprint('heard', open(sys.argv[1]).read())\n").unwrap();
    std::fs::write(desk.path("client.py"), "import os, sys, time\n\nwhile not os.path.exists(sys.argv[1]):\n    time.sleep(0.01)\nwith open(sys.argv[1], 'w') as pipe:\n    pipe.write('Ada')\n").unwrap();
    assert!(!std::path::Path::new(&path).exists());
    desk
}

#[tokio::test]
async fn a_compound_starts_its_parts() {
    let desk = pair().await;
    desk.debug("set_breakpoint", json!({ "file": "client.py", "line": 6 })).await;
    let started = desk.debug("launch", json!({ "configuration": "Both" })).await;
    assert!(started.text.contains("client.py:6"), "{}", started.text);
    let sessions = desk.debug("sessions", json!({})).await;
    assert!(sessions.text.contains("server") && sessions.text.contains("client"), "{}", sessions.text);
    let server = started.text.lines().find_map(|line| line.strip_prefix("Session ")).unwrap();
    let server = server.split(' ').next().unwrap();
    let went_on = desk.debug("continue", json!({})).await;
    assert_eq!(went_on.value["state"], "terminated", "{}", went_on.text);
    let heard =
        desk.debug_until("output", json!({ "session": server }), |said| said.text.contains("heard Ada"));
    heard.await;
}

#[tokio::test]
async fn a_compound_of_which_a_part_does_not_start_leaves_nothing() {
    let desk = pair().await;
    let refused = desk.debug_refused("launch", json!({ "configuration": "Half" })).await;
    assert!(refused.text.contains("\"bad\" did not start, the others were ended."), "{}", refused.text);
    let sessions = desk.debug("sessions", json!({})).await;
    assert!(!sessions.text.contains("running"), "{}", sessions.text);
}

#[tokio::test]
async fn a_compound_reads_nothing_for_it_has_no_one_program() {
    let desk = pair().await;
    let both = json!({ "configuration": "Both", "stdin": "Ada" });
    let refused = desk.debug_refused("launch", both).await;
    assert!(
        refused.text.contains("`stdin` is for one program, and the compound \"Both\" starts 2."),
        "{}",
        refused.text
    );
    let sessions = desk.debug("sessions", json!({})).await;
    assert!(sessions.text.contains("No debug sessions."), "{}", sessions.text);
}

/// Each says who built the program.
#[tokio::test]
async fn tasks_of_npm_and_cppbuild_run_what_their_tools_run() {
    let desk = desk(build()).await;
    let scripts = json!({ "name": "x", "scripts": { "build": "cc -g -o 'out dir/main' main.c" } });
    std::fs::write(desk.path("package.json"), scripts.to_string()).unwrap();
    std::fs::create_dir_all(desk.path("out dir")).unwrap();
    let file = "${workspaceFolder}/main.c";
    let tasks = [
        ("npm", json!({ "label": "build", "type": "npm", "script": "build" })),
        (
            "cppbuild",
            json!({ "label": "build", "type": "cppbuild", "command": "cc",
                "args": ["-g", file, "-o", "${workspaceFolder}/out dir/main"], "options": { "cwd": "/" } }),
        ),
    ];
    for (tool, task) in tasks {
        std::fs::write(desk.path(".vscode/tasks.json"), json!({ "tasks": [task] }).to_string()).unwrap();
        std::fs::write(desk.path("main.c"), READY.replace("the task", tool)).unwrap();
        let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
        assert!(ran.text.contains(&format!("built by {tool}")), "{tool}: {}", ran.text);
    }
    // VS Code finds this one by itself.
    let launch = std::fs::read_to_string(desk.path(".vscode/launch.json")).unwrap();
    std::fs::write(desk.path(".vscode/launch.json"), launch.replace("\"build\"", "\"npm: build\"")).unwrap();
    std::fs::remove_file(desk.path(".vscode/tasks.json")).unwrap();
    std::fs::write(desk.path("main.c"), READY.replace("the task", "npm alone")).unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(ran.text.contains("built by npm alone"), "{}", ran.text);
}

#[tokio::test]
async fn a_task_of_cargo_builds_the_crate() {
    let desk = Desk::open().await;
    std::fs::create_dir_all(desk.path(".vscode")).unwrap();
    std::fs::create_dir_all(desk.path("tiny/src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n";
    std::fs::write(desk.path("tiny/Cargo.toml"), manifest).unwrap();
    std::fs::write(desk.path("tiny/src/main.rs"), "fn main() {\n    println!(\"built by cargo\");\n}\n")
        .unwrap();
    let task = json!({ "label": "build", "type": "cargo", "command": "build",
        "args": ["--offline", "--target-dir", "${workspaceFolder}/out"],
        "options": { "cwd": "${workspaceFolder}/tiny" } });
    std::fs::write(desk.path(".vscode/tasks.json"), json!({ "tasks": [task] }).to_string()).unwrap();
    let launch = json!({ "configurations": [{ "name": "Run", "type": "lldb-dap", "request": "launch",
        "program": "${workspaceFolder}/out/debug/tiny", "preLaunchTask": "build" }] });
    std::fs::write(desk.path(".vscode/launch.json"), launch.to_string()).unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(ran.text.contains("built by cargo"), "{}", ran.text);
}
