//! First stop and steps of a Python program, beside raw debugpy; and how fast an agent starts.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use baton_tests::place;
use baton_tests::process::{await_some, command};
use baton_tests::world::{World, find};
use serde_json::{Value, json};

use crate::handover::secret;
use crate::load::{Caller, Target};
use crate::report::{Section, median, ms, percentile, say, verdict};

/// Sessions on each side, in turns.
const N_SESSIONS: usize = 20;
/// Steps in each measured session.
const N_STEPS: usize = 60;
/// Starts of an agent.
const N_STARTS: usize = 30;
/// Line of `main.py` at which every session stops first.
const LINE: u64 = 7;

pub(crate) fn run() -> Result<Section> {
    let mut world = World::new();
    let folder = world.folder("steps");
    place::copy_folder(&place::project("steps"), &folder);
    let attach_port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    write_launch_json(&folder, attach_port)?;
    world.window("steps");
    world.await_live("steps");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let target = Target::edge(world.port(), &world.token()).in_session().await?;
        let mut caller = Caller::connect(&target).await?;
        caller
            .expect("success", "set_breakpoint", json!({ "file_path": "main.py", "line_number": LINE }))
            .await?;
        let (mut raw_stops, mut stops, mut raw_steps) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 1..=N_SESSIONS {
            let raw = raw_session(&folder.join("main.py"), if turn == 1 { N_STEPS } else { 0 })?;
            raw_stops.push(raw["first_stop_ms"].as_f64().context("a figure")?);
            if let (1, Some(steps)) = (turn, raw["steps_ms"].as_array()) {
                raw_steps = steps.iter().filter_map(Value::as_f64).collect();
            }
            let start = Instant::now();
            start_debugging(&mut caller, "launch").await?;
            stops.push(start.elapsed().as_secs_f64() * 1e3);
            stop(&mut caller).await?;
        }
        say("first stops are measured");
        let launched = steps_of(&mut caller, "launch").await?;
        let mut debuggee = listen(&folder, attach_port)?;
        let attached = steps_of(&mut caller, "attach").await?;
        debuggee.kill()?;
        debuggee.wait()?;
        let child = steps_of(&mut caller, "child").await?;
        let difference = median(&stops) - median(&raw_stops);
        let worst = [&launched, &attached, &child].map(|samples| percentile(samples, 50)).into_iter().max();
        let row = |what: &str, figure: String| vec![what.to_owned(), figure];
        let steps = |samples: &[Duration]| format!("{} / {}", ms(percentile(samples, 50)), ms(percentile(samples, 95)));
        Ok(Section {
            title: "Debugging Python",
            notes: vec![
                format!("{N_SESSIONS} sessions on each side in turns; {N_STEPS} steps each; a stop includes stack and locals on both sides."),
                verdict("First stop, more than debugpy alone", difference, 50.0, "ms"),
                verdict("Slowest step median", worst.unwrap_or_default().as_secs_f64() * 1e3, 10.0, "ms"),
            ],
            columns: vec!["what", "ms"],
            rows: vec![
                row("first stop, raw debugpy, median", format!("{:.0}", median(&raw_stops))),
                row("first stop, `start_debugging`, median", format!("{:.0}", median(&stops))),
                row("step, raw debugpy, median", format!("{:.1}", median(&raw_steps))),
                row("step, launched program, p50 / p95", steps(&launched)),
                row("step, attached program, p50 / p95", steps(&attached)),
                row("step, child process, p50 / p95", steps(&child)),
            ],
        })
    })
}

fn write_launch_json(folder: &Path, attach_port: u16) -> Result<()> {
    let program = |name: &str, file: &str| json!({ "name": name, "type": "debugpy", "request": "launch", "program": format!("${{workspaceFolder}}/{file}") });
    let configurations = json!({ "version": "0.2.0", "configurations": [
        program("launch", "main.py"),
        program("child", "parent.py"),
        { "name": "attach", "type": "debugpy", "request": "attach",
          "connect": { "host": "127.0.0.1", "port": attach_port } },
    ] });
    std::fs::create_dir_all(folder.join(".vscode"))?;
    Ok(std::fs::write(folder.join(".vscode/launch.json"), configurations.to_string())?)
}

async fn start_debugging(caller: &mut Caller, configuration: &str) -> Result<Value> {
    let arguments = json!({ "configuration_name": configuration });
    Ok(caller.expect("stopped", "start_debugging", arguments).await?["stop_event_data"].clone())
}

async fn stop(caller: &mut Caller) -> Result<()> {
    caller.expect("success", "stop_debugging", json!({})).await.map(drop)
}

async fn steps_of(caller: &mut Caller, configuration: &str) -> Result<Vec<Duration>> {
    let mut event = start_debugging(caller, configuration).await.context(configuration.to_owned())?;
    // The breakpoint in the loop would turn every second step into a hit.
    caller.expect("success", "remove_breakpoint", json!({ "clear_all": true })).await?;
    let mut samples = Vec::new();
    for _ in 0..N_STEPS {
        let arguments = json!({ "thread_id": event["thread_id"], "session_id": event["session_id"], "step_type": "over" });
        let start = Instant::now();
        event = caller.expect("stopped", "step_execution", arguments).await?["stop_event_data"].clone();
        samples.push(start.elapsed());
        ensure!(event["top_frame_variables"]["variables"].is_array(), "a step without locals: {event}");
    }
    stop(caller).await?;
    caller
        .expect("success", "set_breakpoint", json!({ "file_path": "main.py", "line_number": LINE }))
        .await?;
    say(&format!("steps are measured: {configuration}"));
    Ok(samples)
}

fn raw_session(program: &Path, n_steps: usize) -> Result<Value> {
    let output = command(place::python())
        .arg(place::root().join("tests/bench/raw_dap.py"))
        .arg(program)
        .args([LINE.to_string(), n_steps.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    serde_json::from_slice(&output.stdout).context("the raw session printed no figures")
}

/// A program that waits for a debugger, as `attach` finds it.
fn listen(folder: &Path, port: u16) -> Result<Child> {
    let child = command(place::python())
        .args(["-m", "debugpy", "--listen", &format!("127.0.0.1:{port}"), "--wait-for-client"])
        .arg(folder.join("main.py"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Its port must not be tried with a connection: that would be the one client it waits for.
    let wanted = format!(":{port:04X} 00000000:0000 0A");
    let is_listening = || std::fs::read_to_string("/proc/net/tcp").ok()?.contains(&wanted).then_some(());
    await_some(Duration::from_secs(20), is_listening).context("debugpy --listen did not open its port")?;
    Ok(child)
}

pub(crate) fn agent_start() -> Result<Section> {
    let mut world = World::new();
    // A coordinator runs, as it does for all windows but the first.
    world.window("shop");
    let status = world.await_live("shop");
    ensure!(find(&status, "shop").is_some(), "the window is there");
    let secret = secret(&world)?;
    let folder = world.folder("shop");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let samples = runtime.block_on(async {
        let mut samples = Vec::new();
        for turn in 0..N_STARTS {
            let id = format!("started-{turn}");
            let token = secret.window_token(&id.parse()?, None);
            let mut agent = world.command(place::program("baton-agent"));
            agent.args(["--standalone", "--window", &id, "--name", &id, "--folder"]).arg(&folder);
            let start = Instant::now();
            let mut child =
                agent.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
            let mut line = String::new();
            BufReader::new(child.stdout.take().context("it is piped")?).read_line(&mut line)?;
            let ready: Value = serde_json::from_str(&line).context("the ready line")?;
            let port = u16::try_from(ready["ready"]["port"].as_u64().context("a port")?)?;
            let target = Target {
                port,
                socket: None,
                path: "/mcp".to_owned(),
                has_sessions: false,
                headers: vec![
                    ("authorization", format!("Bearer {}", token.expose())),
                    (baton_proto::edge::PIN_HEADER, "1".to_owned()),
                    ("mcp-protocol-version", "2025-11-25".to_owned()),
                ],
            };
            Caller::connect(&target).await?.call("get_breakpoints", &json!({})).await?;
            samples.push(start.elapsed());
            // The agent ends when its standard input does.
            drop(child.stdin.take());
            child.wait()?;
        }
        anyhow::Ok(samples)
    })?;
    let p50 = percentile(&samples, 50).as_secs_f64() * 1e3;
    Ok(Section {
        title: "Start of an agent",
        notes: vec![
            format!(
                "{N_STARTS} starts of `baton-agent`, to the answer of a tool call made as soon as it says its port."
            ),
            verdict("Process start to first MCP answer, p50", p50, 30.0, "ms"),
        ],
        columns: vec!["p50 ms", "p95 ms", "worst ms"],
        rows: vec![[50, 95, 100].iter().map(|percent| ms(percentile(&samples, *percent))).collect()],
    })
}
