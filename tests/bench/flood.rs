//! A program that prints 100,000 lines while it is stepped: what a step takes then, and what the agent's memory does.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use baton_tests::place;
use baton_tests::process::{command, rss_kib};
use baton_tests::world::World;
use serde_json::{Value, json};

use crate::adapters::since;
use crate::load::{Caller, Target};
use crate::report::{Section, median, say};

/// What is printed.
const N_LINES: usize = 100_000;
/// Lines that the fixture prints at once.
const N_IN_A_TURN: usize = 1000;
/// How often it is asked whether all has come.
const LOOK: Duration = Duration::from_millis(20);
/// What the output of a session may cost, kept and on its way; see `window-agent/debug/src/output.rs`.
const RING_KIB: u64 = 1024;
/// Steps in a quiet program.
const N_QUIET: usize = 40;
/// The flood takes two seconds; steps of the first one count.
const FLOODED: Duration = Duration::from_secs(1);
/// How much longer than a quiet step one during the flood may take.
const MORE: f64 = 2.0;
/// Longest time for all that was printed to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// An adapter and its program in the folder of the fixture.
struct Subject {
    name: &'static str,
    kind: &'static str,
    source: &'static str,
    program: &'static str,
}

const SUBJECTS: [Subject; 5] = [
    Subject { name: "debugpy", kind: "debugpy", source: "main.py", program: "main.py" },
    Subject { name: "js-debug", kind: "pwa-node", source: "main.js", program: "main.js" },
    Subject { name: "gdb", kind: "gdb", source: "main.c", program: "main" },
    Subject { name: "lldb-dap", kind: "lldb-dap", source: "main.c", program: "main" },
    Subject { name: "codelldb", kind: "lldb", source: "main.c", program: "main" },
];

/// What was found for one adapter.
struct Found {
    quiet_ms: f64,
    flooded_ms: f64,
    n_flooded: usize,
    grown_kib: u64,
}

pub(crate) fn run() -> Result<Section> {
    let mut world = World::new();
    let folder = world.folder("flood");
    place::copy_folder(&place::project("flood"), &folder);
    let built = command("cc").args(["-g", "-O0", "-o", "main", "main.c"]).current_dir(&folder).status()?;
    ensure!(built.success(), "cc failed");
    write_launch_json(&folder)?;
    world.window("flood");
    world.await_live("flood");
    let agent = world.agent_pid("flood");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let target = Target::edge(world.port(), &world.token()).in_session().await?;
        let mut caller = Caller::connect(&target).await?;
        let mut all = Vec::new();
        for subject in &SUBJECTS {
            let line = line_of(&folder.join(subject.source))?;
            // The first flood fills the logs of ended sessions, too, of which a few are kept.
            for _ in 0..2 {
                measure(&mut caller, subject, line, agent).await.context(subject.name)?;
            }
            all.push(measure(&mut caller, subject, line, agent).await.context(subject.name)?);
            say(&format!("measured: {}", subject.name));
        }
        Ok(section(&all))
    })
}

fn section(all: &[Found]) -> Section {
    let word = |kept: bool| if kept { "kept" } else { "MISSED" };
    let rows = SUBJECTS.iter().zip(all).map(|(subject, found)| {
        let times = found.flooded_ms / found.quiet_ms;
        vec![
            subject.name.to_owned(),
            format!("{:.1}", found.quiet_ms),
            format!("{:.1}", found.flooded_ms),
            format!("{times:.2} x: {}", word(times <= MORE)),
            found.n_flooded.to_string(),
            format!("{} KiB: {}", found.grown_kib, word(found.grown_kib <= RING_KIB)),
        ]
    });
    Section {
        title: "A flood of output",
        notes: vec![
            format!(
                "A child of the program prints {N_LINES} lines in some two seconds; the program is stepped meanwhile. Third session of each adapter in one window."
            ),
            format!(
                "A step then: at most {MORE} x its quiet time. The agent's memory, from the stop before the flood to its end: at most the {RING_KIB} KiB that a session's output may cost, 960 of them for what is kept."
            ),
        ],
        columns: vec![
            "adapter",
            "quiet step ms",
            "step in the flood ms",
            "ratio",
            "steps in it",
            "memory grown",
        ],
        rows: rows.collect(),
    }
}

fn write_launch_json(folder: &Path) -> Result<()> {
    let configuration = |subject: &Subject, argument: &str| {
        json!({
            "name": format!("{} {argument}", subject.name), "type": subject.kind, "request": "launch",
            "program": format!("${{workspaceFolder}}/{}", subject.program), "args": [argument],
            "cwd": "${workspaceFolder}",
        })
    };
    let pairs = SUBJECTS
        .iter()
        .flat_map(|subject| ["quiet", "flood"].map(|argument| configuration(subject, argument)));
    let configurations: Vec<Value> = pairs.collect();
    std::fs::create_dir_all(folder.join(".vscode"))?;
    let text = json!({ "version": "0.2.0", "configurations": configurations }).to_string();
    Ok(std::fs::write(folder.join(".vscode/launch.json"), text)?)
}

fn line_of(source: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(source)?;
    let line = text.lines().position(|line| line.contains("stop here")).context("a line to stop at")?;
    Ok(line as u64 + 1)
}

async fn measure(caller: &mut Caller, subject: &Subject, line: u64, agent: u32) -> Result<Found> {
    let event = start(caller, subject, "quiet", line).await?;
    let mut quiet = Vec::new();
    let mut at = event;
    for _ in 0..N_QUIET {
        let begun = Instant::now();
        at = step(caller, &at).await?;
        quiet.push(since(begun));
    }
    caller.expect("success", "stop_debugging", json!({})).await?;

    let event = start(caller, subject, "flood", line).await?;
    let (before, begun) = (rss_kib(agent), Instant::now());
    let (mut flooded, mut at) = (Vec::new(), event);
    while begun.elapsed() < FLOODED {
        let begun = Instant::now();
        at = step(caller, &at).await?;
        flooded.push(since(begun));
    }
    await_all(caller).await?;
    let grown_kib = rss_kib(agent).saturating_sub(before);
    caller.expect("success", "stop_debugging", json!({})).await?;
    Ok(Found { quiet_ms: median(&quiet), flooded_ms: median(&flooded), n_flooded: flooded.len(), grown_kib })
}

async fn start(caller: &mut Caller, subject: &Subject, argument: &str, line: u64) -> Result<Value> {
    let breakpoint = json!({ "file_path": subject.source, "line_number": line });
    caller.expect("success", "set_breakpoint", breakpoint).await?;
    let name = format!("{} {argument}", subject.name);
    let started = caller.expect("stopped", "start_debugging", json!({ "configuration_name": name })).await?;
    // The breakpoint in the loop would turn every other step into a hit.
    caller.expect("success", "remove_breakpoint", json!({ "clear_all": true })).await?;
    Ok(started["stop_event_data"].clone())
}

async fn step(caller: &mut Caller, event: &Value) -> Result<Value> {
    let wish =
        json!({ "thread_id": event["thread_id"], "session_id": event["session_id"], "step_type": "over" });
    Ok(caller.expect("stopped", "step_execution", wish).await?["stop_event_data"].clone())
}

/// Waits until everything was told.
async fn await_all(caller: &mut Caller) -> Result<()> {
    let begun = Instant::now();
    let n_digits: usize = (1..=N_IN_A_TURN).map(|number| number.to_string().len()).sum();
    let n_bytes = N_LINES / N_IN_A_TURN * (n_digits + N_IN_A_TURN * "line  of a flood of output\n".len());
    let mut cursor = 0;
    while cursor < n_bytes as u64 {
        ensure!(begun.elapsed() < PATIENCE, "only {cursor} bytes of {n_bytes} came");
        tokio::time::sleep(LOOK).await;
        let told = caller.call("debug", &json!({ "action": "output", "max_length": 1 })).await?;
        cursor = baton_tests::client::content_of(&told)["outputCursor"].as_u64().context("a cursor")?;
    }
    Ok(())
}
