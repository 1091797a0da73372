//! The debug engine against a real debugpy, one scenario per feature.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_window_agent::debug::types::*;
use baton_window_agent::debug::{Debugger, DebuggerOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The interpreter with debugpy that `cargo xtask test` installs.
fn python() -> PathBuf {
    let given = std::env::var_os("BATON_TEST_PYTHON").map(PathBuf::from);
    let python = given.unwrap_or_else(|| workspace_root().join(".cache/py/bin/python"));
    assert!(python.exists(), "no {}: `cargo xtask test` installs it", python.display());
    python
}

fn fixture(name: &str) -> PathBuf {
    workspace_root().join("tests/fixtures/debug").join(name)
}

fn debugger() -> Debugger {
    Debugger::spawn(DebuggerOptions {
        folders: vec![fixture("")],
        python: Some(python()),
        search_path: std::env::var_os("PATH"),
    })
}

fn wait() -> Wait {
    Wait { timeout: Duration::from_secs(20), cancelled: CancellationToken::new() }
}

fn launch(program: &str) -> Start {
    let Value::Object(configuration) =
        json!({"type": "debugpy", "request": "launch", "program": fixture(program), "python": python()})
    else {
        unreachable!()
    };
    Start { configuration, name: program.to_owned(), no_debug: false }
}

#[tokio::test]
async fn smoke() {
    let debugger = debugger();
    let bp = debugger
        .set_breakpoint(SetBreakpoint { path: fixture("demo.py"), line: 6, ..Default::default() })
        .await
        .unwrap();
    println!("{bp:?}");
    let t = Instant::now();
    let waited = debugger.start(launch("demo.py"), wait()).await;
    println!("start {:?}", t.elapsed());
    println!("{waited:#?}");
    let Ok(Waited::Stopped(stop)) = waited else { panic!() };
    println!("{:?}", debugger.breakpoints().await);
    for _ in 0..10 {
        let t = Instant::now();
        let waited = debugger.resume(None, stop.thread_id, Resume::StepOver, wait()).await.unwrap();
        let Waited::Stopped(stop) = waited else { panic!() };
        println!("step {:?} line {:?} {:?}", t.elapsed(), stop.line, stop.reason);
    }
    debugger.remove_breakpoint(RemoveBreakpoint::All).await.unwrap();
    let t = Instant::now();
    let waited = debugger.resume(None, stop.thread_id, Resume::Continue, wait()).await.unwrap();
    println!("end {:?} {waited:?}", t.elapsed());
    let t = Instant::now();
    debugger.stop_all().await;
    println!("gone {:?}", t.elapsed());
}
