//! Measures the engine with a real debugpy: `debug_latency PYTHON [N]` prints, in milliseconds, median and p95 of
//! the first stop, a step with stack and variables, and one expression; for a launch, an attach and a child process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use baton_agent_debug::types::{Evaluate, Resume, SetBreakpoint, Start, StopEvent, Waited};
use baton_agent_debug::{Debugger, DebuggerOptions, Wait};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_util::sync::CancellationToken;

/// Steps and expressions per way.
const N_STEPS: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    // Absolute, but not canonical: a virtual environment's interpreter is a symbolic link.
    let python: PathBuf = std::path::absolute(arguments.next().context("which Python?")?)?;
    let n_starts: usize = arguments.next().map_or(Ok(10), |n| n.parse())?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/debug").canonicalize()?;
    let options = DebuggerOptions {
        folders: vec![folder.clone()],
        python: Some(python.clone()),
        search_path: std::env::var_os("PATH"),
        ..DebuggerOptions::default()
    };
    let debugger = Debugger::spawn(options);
    let launch = |program: &str| json!({"type": "debugpy", "request": "launch", "program": folder.join(program), "python": python});

    set(&debugger, &folder.join("demo.py"), 6).await?;
    let mut first_stops = Vec::new();
    for _ in 0..n_starts {
        let begun = Instant::now();
        stop(debugger.start(start(launch("demo.py")), wait()).await?)?;
        first_stops.push(begun.elapsed());
        debugger.stop_all().await;
    }
    print("launch: first stop", &mut first_stops);

    set(&debugger, &folder.join("endless.py"), 6).await?;
    let stopped = stop(debugger.start(start(launch("endless.py")), wait()).await?)?;
    measure(&debugger, "launch", stopped).await?;

    set(&debugger, &folder.join("serves.py"), 15).await?;
    let mut server = tokio::process::Command::new(&python)
        .arg(folder.join("serves.py"))
        .arg("/nonexistent")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(server.stdout.take().context("no output")?).lines();
    let port: u16 = lines.next_line().await?.context("no port")?.parse()?;
    let attach = json!({"type": "debugpy", "request": "attach", "connect": {"port": port}});
    let stopped = stop(debugger.start(start(attach), wait()).await?)?;
    measure(&debugger, "attach", stopped).await?;

    set(&debugger, &folder.join("loops.py"), 5).await?;
    let stopped = stop(debugger.start(start(launch("parent_of_loops.py")), wait()).await?)?;
    measure(&debugger, "child", stopped).await
}

async fn set(debugger: &Debugger, path: &Path, line: u32) -> anyhow::Result<()> {
    debugger
        .set_breakpoint(SetBreakpoint { path: path.to_owned(), line, ..SetBreakpoint::default() })
        .await?;
    Ok(())
}

fn start(configuration: Value) -> Start {
    let configuration = configuration.as_object().cloned().unwrap_or_default();
    Start { configuration, name: "measured".to_owned(), ..Start::default() }
}

fn wait() -> Wait {
    Wait { timeout: Duration::from_secs(30), cancelled: CancellationToken::new() }
}

fn stop(waited: Waited) -> anyhow::Result<StopEvent> {
    match waited {
        Waited::Stopped(stop) => Ok(*stop),
        other => bail!("it did not stop: {other:?}"),
    }
}

/// Steps and evaluates, then ends the session.
async fn measure(debugger: &Debugger, way: &str, mut stopped: StopEvent) -> anyhow::Result<()> {
    let (mut steps, mut expressions) = (Vec::new(), Vec::new());
    for _ in 0..N_STEPS {
        let begun = Instant::now();
        let (session, thread_id) = (stopped.session.clone(), stopped.thread_id);
        stopped = stop(debugger.resume(Some(&session), thread_id, Resume::StepOver, wait()).await?)?;
        steps.push(begun.elapsed());
        let frame_id = stopped.call_stack.first().context("no frames")?.frame_id;
        let begun = Instant::now();
        debugger.evaluate(Evaluate { expression: "1 + 1".to_owned(), frame_id, context: None }).await?;
        expressions.push(begun.elapsed());
    }
    print(&format!("{way}: step"), &mut steps);
    print(&format!("{way}: evaluate"), &mut expressions);
    debugger.stop_all().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn print(what: &str, times: &mut [Duration]) {
    times.sort();
    let ms = |at: usize| times[at.min(times.len() - 1)].as_secs_f64() * 1_000.0;
    println!(
        "{what:24} median {:7.2}  p95 {:7.2}  n {}",
        ms(times.len() / 2),
        ms(times.len() * 95 / 100),
        times.len()
    );
}
