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
    let gulp = json!([{ "label": "build", "type": "gulp", "task": "x" }]);
    std::fs::write(desk.path(".vscode/tasks.json"), json!({ "tasks": gulp }).to_string()).unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    let why = "preLaunchTask \"build\" was not run: the task `build` of type `gulp` exists in VS Code only.";
    assert!(ran.text.contains("built by the task") && ran.text.contains(why), "{}", ran.text);
}

/// What builds the program, then runs `then`, as a task in the background.
fn watcher(then: &str) -> Value {
    let command = format!(
        "echo $$ >>pids; mkdir -p 'out dir'; cc -g -o 'out dir/main' main.c; printf '\\033[32mbuilt\\033[0m; watching\\n'; {then}"
    );
    json!([{ "label": "build", "type": "shell", "command": command, "isBackground": true,
        "problemMatcher": { "pattern": { "regexp": "^never$" }, "background": {
            "activeOnStart": true, "beginsPattern": "^begins", "endsPattern": "^built; watching$" } } }])
}

/// Ids of the processes that the task was.
fn pids(desk: &Desk) -> Vec<u32> {
    let text = std::fs::read_to_string(desk.path("pids")).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_task_in_the_background_is_waited_for_until_it_is_ready_and_ends_with_the_window() {
    // Whoever reads its standard input finds no end of it.
    let desk = desk(watcher("exec cat")).await;
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    let told = "The task `build` runs in the background, until this window is closed.";
    assert!(ran.text.contains("built by the task") && ran.text.contains(told), "{}", ran.text);
    let again = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(again.text.contains("built by the task") && !again.text.contains(told), "{}", again.text);
    let [pid] = pids(&desk)[..] else { panic!("it was started once: {:?}", pids(&desk)) };
    assert!(is_there(pid), "it goes on");
    desk.agent.window.end_programs().await;
    let gone = async {
        while is_there(pid) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), gone).await.expect("it is ended");
}

/// Whether a process runs; one that nobody has asked how it ended does not.
fn is_there(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[tokio::test]
async fn a_task_in_the_background_that_is_late_or_ends_is_told() {
    let desk = desk(watcher("exit 3")).await;
    let tasks = desk.path(".vscode/tasks.json");
    let text = std::fs::read_to_string(&tasks).unwrap();
    std::fs::write(&tasks, text.replace("^built; watching$", "^never$")).unwrap();
    let refused = desk.debug_refused("launch", json!({ "configuration": "Run" })).await;
    for part in ["The task `build` exited with code 3.", "built", "preLaunchTask"] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    std::fs::write(&tasks, text.replace("^built; watching$", "^never$").replace("exit 3", "exec cat"))
        .unwrap();
    let refused = desk.debug_refused("launch", json!({ "configuration": "Run", "timeout": 5 })).await;
    let late = "The task `build` is not ready after 5 s; it goes on, and the next start waits for it.";
    assert!(refused.text.contains(late), "{}", refused.text);
    assert_eq!(pids(&desk).len(), 2);
    // The work is done, and nothing is left of it.
    std::fs::write(&tasks, text.replace("^built; watching$", "^never$").replace("exit 3", "exit 0")).unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(ran.text.contains("built by the task") && !ran.text.contains("background"), "{}", ran.text);
    std::fs::write(&tasks, text.replace("^built; watching$", "(?=built)").replace("exit 3", "exec cat; :"))
        .unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(ran.text.contains("its `endsPattern` cannot be read, so it was not waited for."), "{}", ran.text);
}

#[tokio::test]
async fn the_typescript_compiler_watches_in_the_background() {
    let desk = Desk::open().await;
    let tsc = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../.cache/servers/typescript/node_modules/.bin/tsc");
    for folder in [".vscode", "node_modules/.bin", "src"] {
        std::fs::create_dir_all(desk.path(folder)).unwrap();
    }
    std::os::unix::fs::symlink(std::fs::canonicalize(tsc).unwrap(), desk.path("node_modules/.bin/tsc"))
        .unwrap();
    let project = json!({ "compilerOptions": { "outDir": "out", "rootDir": "src" }, "include": ["src"] });
    std::fs::write(desk.path("tsconfig.json"), project.to_string()).unwrap();
    std::fs::write(desk.path("src/main.ts"), "const name: string = 'Ada';\nconsole.log(name);\n").unwrap();
    std::fs::write(desk.path("show.py"), "print(open('out/main.js').read())\n").unwrap();
    let launch = json!({ "configurations": [{ "name": "Run", "type": "debugpy", "request": "launch",
        "program": "${workspaceFolder}/show.py", "cwd": "${workspaceFolder}",
        "preLaunchTask": "tsc: watch - tsconfig.json" }] });
    std::fs::write(desk.path(".vscode/launch.json"), launch.to_string()).unwrap();
    let ran = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(ran.text.contains("'Ada'") && !ran.text.contains(": string"), "{}", ran.text);
    assert!(ran.text.contains("runs in the background, until this window is closed."), "{}", ran.text);
}

#[tokio::test]
async fn a_task_is_run_once_the_session_has_ended() {
    let mut tasks = build();
    let after = json!({ "label": "after", "type": "shell", "command": "cp main.c 'the end'" });
    tasks.as_array_mut().unwrap().push(after);
    let desk = desk(tasks).await;
    let launch = std::fs::read_to_string(desk.path(".vscode/launch.json")).unwrap();
    let with_after = launch.replace("\"preLaunchTask\"", "\"postDebugTask\":\"after\",\"preLaunchTask\"");
    std::fs::write(desk.path(".vscode/launch.json"), with_after).unwrap();
    desk.debug("set_breakpoint", json!({ "file": "main.c", "line": 4 })).await;
    let stopped = desk.debug("launch", json!({ "configuration": "Run" })).await;
    assert!(stopped.text.contains("main.c:4") && !stopped.text.contains("postDebugTask"), "{}", stopped.text);
    assert!(!std::path::Path::new(&desk.path("the end")).exists(), "not yet");
    desk.debug("terminate", json!({})).await;
    desk.agent.window.end_programs().await;
    assert_eq!(std::fs::read_to_string(desk.path("the end")).unwrap(), READY);
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
async fn a_compound_starts_its_parts_by_the_tool_for_configurations_too() {
    let desk = pair().await;
    desk.debug("set_breakpoint", json!({ "file": "client.py", "line": 6 })).await;
    let started =
        desk.call("start_debugging", json!({ "configuration_name": "Both", "timeout": 60 })).await.value;
    assert_eq!(started["status"], "stopped", "{started:#}");
    assert_eq!(started["stop_event_data"]["call_stack"][0]["line_number"], 6, "{started:#}");
    let notes = started["notes"].to_string();
    assert!(
        notes.contains("Also started: server (session_id ") && notes.contains("which is running."),
        "{notes}"
    );
    let sessions = desk.debug("sessions", json!({})).await;
    assert!(sessions.text.contains("server") && sessions.text.contains("client"), "{}", sessions.text);
}

#[tokio::test]
async fn a_compound_that_says_so_ends_with_the_first_that_is_terminated() {
    let desk = pair().await;
    let launch = std::fs::read_to_string(desk.path(".vscode/launch.json")).unwrap();
    let names = "\"name\":\"Both\"";
    assert!(launch.contains(names), "{launch}");
    for (stops_all, n_running) in [(false, 1), (true, 0)] {
        let with = launch.replace(names, &format!("{names},\"stopAll\":{stops_all}"));
        std::fs::write(desk.path(".vscode/launch.json"), with).unwrap();
        desk.debug("set_breakpoint", json!({ "file": "client.py", "line": 5 })).await;
        let started = desk.debug("launch", json!({ "configuration": "Both" })).await;
        assert!(started.text.contains("client.py:5"), "{}", started.text);
        let ended = desk.debug("terminate", json!({})).await;
        assert_eq!(ended.text.contains("Terminated with all of its compound ("), stops_all, "{}", ended.text);
        let sessions = desk.debug("sessions", json!({})).await;
        let n_left = sessions.text.matches("running").count();
        assert_eq!(n_left, n_running, "{}", sessions.text);
        if n_left > 0 {
            desk.debug("terminate", json!({})).await;
        }
    }
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
