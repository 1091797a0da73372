//! The same scenario spoken straight to each debug adapter and through Baton, in turns.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use baton_tests::place;
use baton_tests::process::command;
use baton_tests::world::{WindowOptions, World};
use serde_json::{Value, json};

use crate::dap::{self, Transport};
use crate::load::{Caller, Target};
use crate::report::{Section, median, say};

/// Rounds that count; the one before them fills caches.
const N_ROUNDS: usize = 7;
/// Steps, looks at stack and variables, and evaluations in each session.
const N_TIMES: usize = 10;
/// The line of the addition, in every language.
const LINE: u64 = 12;
/// What Baton may take more than the adapter itself: the larger of these.
const MORE_MS: f64 = 3.0;
/// See [`MORE_MS`].
const MORE_SHARE: f64 = 0.05;
/// What is measured.
const WHAT: [&str; 4] = ["first stop", "step", "stack and variables", "evaluate"];

/// An adapter, and a program for it.
struct Subject {
    name: &'static str,
    kind: &'static str,
    /// `{installed}` stands for the adapter's folder, `{python}` for the one with debugpy.
    command: &'static [&'static str],
    transport: Transport,
    source: &'static str,
    program: &'static str,
    build: &'static [&'static str],
    /// Fields of its launch beside `program` and `cwd`, as Baton gives them to the adapter; `{folder}` is replaced.
    launch: &'static str,
    expression: &'static str,
}

const BASE: Subject = Subject {
    name: "",
    kind: "",
    command: &[],
    transport: Transport::Stdio,
    source: "sums.c",
    program: "c",
    build: &["cc", "-g", "-O0", "-o", "c", "sums.c"],
    launch: "{}",
    expression: "left + right",
};

const SUBJECTS: [Subject; 8] = [
    Subject {
        name: "debugpy",
        kind: "debugpy",
        command: &["{python}", "-m", "debugpy.adapter"],
        source: "sums.py",
        program: "sums.py",
        build: &[],
        launch: r#"{"console": "internalConsole"}"#,
        ..BASE
    },
    Subject {
        name: "js-debug",
        kind: "pwa-node",
        command: &["node", "{installed}/vsDebugServer.cjs", "0", "127.0.0.1"],
        transport: Transport::Announced("Debug server listening at 127.0.0.1:"),
        source: "sums.js",
        program: "sums.js",
        build: &[],
        launch: r#"{"type": "pwa-node", "console": "internalConsole", "outputCapture": "std", "sourceMaps": true,
            "__workspaceFolder": "{folder}", "outFiles": ["{folder}/**/*.(m|c|)js", "!**/node_modules/**"]}"#,
        ..BASE
    },
    Subject { name: "gdb", kind: "gdb", command: &["{installed}/bin/gdb", "-q", "-i=dap"], ..BASE },
    Subject { name: "lldb-dap", kind: "lldb-dap", command: &["{installed}/bin/lldb-dap"], ..BASE },
    Subject {
        name: "codelldb",
        kind: "lldb",
        command: &["{installed}/adapter/codelldb", "--port", "{port}"],
        transport: Transport::Given,
        launch: r#"{"terminal": "console"}"#,
        ..BASE
    },
    Subject {
        name: "delve",
        kind: "go",
        command: &["dlv", "dap", "--listen=127.0.0.1:0"],
        transport: Transport::Announced("DAP server listening at: 127.0.0.1:"),
        source: "go/sums.go",
        program: "go/sums",
        build: &["sh", "-c", "cd go && go build -gcflags='all=-N -l' -o sums ."],
        launch: r#"{"mode": "exec"}"#,
        ..BASE
    },
    Subject {
        name: "java",
        kind: "java",
        command: &["java", "-cp", "{installed}/out", "JdiDapServer", "--port", "{port}"],
        transport: Transport::Given,
        source: "java/Sums.java",
        program: "java/Sums.java",
        build: &["javac", "-g", "-d", "java/out", "java/Sums.java"],
        launch: r#"{"mainClass": "Sums", "classpath": "{folder}/java/out", "stopOnEntry": false}"#,
        ..BASE
    },
    Subject {
        name: "bash-dap",
        kind: "bash",
        command: &["{installed}/bin/bash-dap"],
        source: "sums.sh",
        program: "sums.sh",
        build: &[],
        launch: r#"{"console": "internalConsole"}"#,
        expression: "$((total + number))",
        ..BASE
    },
];

/// Milliseconds of one session, in the order of [`WHAT`]: the middle one of each.
type Figures = [f64; 4];

/// What all rounds gave for one subject.
#[derive(Default)]
struct Sides {
    straight: Vec<Figures>,
    baton: Vec<Figures>,
}

pub(crate) fn run() -> Result<Section> {
    let mut world = World::new();
    let folder = world.folder("languages");
    place::copy_folder(&place::root().join("tests/fixtures/languages"), &folder);
    for subject in SUBJECTS.iter().filter(|subject| !subject.build.is_empty()) {
        build(subject, &folder)?;
    }
    write_launch_json(&folder)?;
    let options = WindowOptions { folder: Some(folder.clone()), ..WindowOptions::default() };
    world.window_with("languages", options);
    world.await_live("languages");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let target = Target::edge(world.port(), &world.token()).in_session().await?;
        let mut all: Vec<Sides> = SUBJECTS.iter().map(|_| Sides::default()).collect();
        for round in 0..=N_ROUNDS {
            say(&format!("round {round} of {N_ROUNDS}"));
            for (subject, sides) in SUBJECTS.iter().zip(&mut all) {
                let straight =
                    straight(subject, &folder).with_context(|| format!("{}, straight", subject.name))?;
                let baton = through_baton(&target, subject).await.context(subject.name)?;
                if round > 0 {
                    sides.straight.push(straight);
                    sides.baton.push(baton);
                }
            }
        }
        Ok(section(&all))
    })
}

fn section(all: &[Sides]) -> Section {
    let (mut rows, mut n_kept) = (Vec::new(), 0);
    for (subject, sides) in SUBJECTS.iter().zip(all) {
        let mut row = vec![subject.name.to_owned()];
        let mut missed = Vec::new();
        for (at, what) in WHAT.iter().enumerate() {
            let of = |figures: &[Figures]| median(&figures.iter().map(|one| one[at]).collect::<Vec<_>>());
            let pairs = sides.straight.iter().zip(&sides.baton);
            // Taken within a round, so that a busy minute hits both sides.
            let more = median(&pairs.map(|(straight, baton)| baton[at] - straight[at]).collect::<Vec<_>>());
            let straight = of(&sides.straight);
            row.push(format!("{} / {} ({more:+.1})", ms(straight), ms(of(&sides.baton))));
            if more > MORE_MS.max(straight * MORE_SHARE) {
                missed.push(*what);
            } else {
                n_kept += 1;
            }
        }
        row.push(if missed.is_empty() { "yes".to_owned() } else { format!("MISSED: {}", missed.join(", ")) });
        rows.push(row);
    }
    let mut columns = vec!["adapter"];
    columns.extend(WHAT);
    columns.push("kept");
    Section {
        title: "Debug adapters, straight and through Baton",
        notes: vec![
            format!("{N_ROUNDS} sessions on each side in turns, {N_TIMES} steps, looks and evaluations in each; ms, the adapter's own / Baton's (median of the differences within a round)."),
            "A stop counts with its stack and the variables of its nearest scope, on both sides; the straight client acknowledges at once, as Baton does.".to_owned(),
            format!(
                "More than the adapter itself by at most {MORE_MS} ms or 5 %, whichever is larger: {n_kept} of {} kept.",
                SUBJECTS.len() * WHAT.len()
            ),
        ],
        columns,
        rows,
    }
}

/// A figure with the digits that mean something.
pub(crate) fn ms(figure: f64) -> String {
    if figure < 100.0 { format!("{figure:.1}") } else { format!("{figure:.0}") }
}

fn build(subject: &Subject, folder: &Path) -> Result<()> {
    let (program, arguments) = subject.build.split_first().context("there is something to build")?;
    let output = command(program).args(arguments).current_dir(folder).output();
    let output = output.with_context(|| format!("{program} is needed for {}", subject.name))?;
    ensure!(output.status.success(), "{}: {}", subject.name, String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn write_launch_json(folder: &Path) -> Result<()> {
    let configurations = SUBJECTS.iter().map(|subject| {
        let mut configuration = json!({
            "name": subject.name, "type": subject.kind, "request": "launch",
            "program": format!("${{workspaceFolder}}/{}", subject.program),
        });
        if subject.name == "delve" {
            configuration["mode"] = json!("exec");
        }
        configuration
    });
    let configurations: Vec<Value> = configurations.collect();
    std::fs::create_dir_all(folder.join(".vscode"))?;
    let text = json!({ "version": "0.2.0", "configurations": configurations }).to_string();
    Ok(std::fs::write(folder.join(".vscode/launch.json"), text)?)
}

/// Where `cargo xtask bench` installed the adapters.
fn adapters_folder() -> PathBuf {
    std::env::var_os("BATON_ADAPTERS").map_or_else(|| place::root().join(".cache/adapters"), PathBuf::from)
}

/// Milliseconds since.
pub(crate) fn since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

fn straight(subject: &Subject, folder: &Path) -> Result<Figures> {
    let installed = adapters_folder().join(subject.name);
    let words = subject.command.iter().map(|word| {
        let word = word.replace("{installed}", &installed.to_string_lossy());
        word.replace("{python}", &place::python().to_string_lossy())
    });
    let words: Vec<String> = words.collect();
    let mut launch: Value =
        serde_json::from_str(&subject.launch.replace("{folder}", &folder.to_string_lossy()))?;
    launch["program"] = json!(folder.join(subject.program));
    launch["cwd"] = json!(folder);
    let source = folder.join(subject.source);
    let wish =
        dap::Wish { transport: subject.transport, kind: subject.kind, launch, source: &source, line: LINE };
    let begun = Instant::now();
    let mut session = dap::Session::start(&words, folder, &wish)?;
    let first_stop = since(begun);
    let (mut steps, mut looks, mut evaluations) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..N_TIMES {
        let begun = Instant::now();
        session.look()?;
        looks.push(since(begun));
        let begun = Instant::now();
        session.evaluate(subject.expression, "watch")?;
        evaluations.push(since(begun));
    }
    session.clear(&source)?;
    for _ in 0..N_TIMES {
        let begun = Instant::now();
        session.step()?;
        steps.push(since(begun));
    }
    session.end()?;
    Ok([first_stop, median(&steps), median(&looks), median(&evaluations)])
}

async fn through_baton(target: &Target, subject: &Subject) -> Result<Figures> {
    // A connection that lay idle while others were measured may be closed.
    let mut caller = Caller::connect(target).await?;
    let breakpoint = json!({ "file_path": subject.source, "line_number": LINE });
    caller.expect("success", "set_breakpoint", breakpoint).await?;
    let begun = Instant::now();
    let started =
        caller.expect("stopped", "start_debugging", json!({ "configuration_name": subject.name })).await?;
    let first_stop = since(begun);
    let event = started["stop_event_data"].clone();
    ensure!(event["line"] == LINE, "it stopped elsewhere: {event}");
    let frame = event["call_stack"][0]["frame_id"].clone();
    let (mut looks, mut evaluations) = (Vec::new(), Vec::new());
    for _ in 0..N_TIMES {
        let begun = Instant::now();
        caller.call("debug", &json!({ "action": "stack_trace" })).await?;
        let scopes = caller.call("get_scopes", &json!({ "frame_id": frame })).await?;
        let reference = &scopes["structuredContent"]["scopes"][0]["variables_reference"];
        let variables = caller.call("get_variables", &json!({ "variables_reference": reference })).await?;
        looks.push(since(begun));
        ensure!(variables["structuredContent"]["variables"].is_array(), "no variables: {scopes} {variables}");
        let begun = Instant::now();
        let wish = json!({ "expression": subject.expression, "frame_id": frame, "context": "watch" });
        caller.expect("success", "evaluate_expression", wish).await?;
        evaluations.push(since(begun));
    }
    let steps = step_and_end(&mut caller, event, N_TIMES).await?;
    Ok([first_stop, median(&steps), median(&looks), median(&evaluations)])
}

/// Steps from a stop without any breakpoint left, each to the variables where it ends, and ends the session: ms of each.
pub(crate) async fn step_and_end(caller: &mut Caller, mut event: Value, n_times: usize) -> Result<Vec<f64>> {
    let mut steps = Vec::new();
    caller.expect("success", "remove_breakpoint", json!({ "clear_all": true })).await?;
    for _ in 0..n_times {
        let wish = json!({ "thread_id": event["thread_id"], "session_id": event["session_id"], "step_type": "over" });
        let begun = Instant::now();
        event = caller.expect("stopped", "step_execution", wish).await?["stop_event_data"].clone();
        steps.push(since(begun));
        ensure!(event["top_frame_variables"]["variables"].is_array(), "a step without variables: {event}");
    }
    caller.expect("success", "stop_debugging", json!({})).await?;
    Ok(steps)
}
