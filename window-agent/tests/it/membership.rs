//! The real agent beside a coordinator that the test plays: what it tells, what it obeys, what it refuses.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use baton_link::home::Home;
use baton_proto::control::{Failure, Notice, WindowState};
use baton_proto::ids::{Term, WindowId};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::coordinator::{Coordinator, PATIENCE, live, standby};

const WINDOW: &str = "w-1";

/// The agent as a process, with a state folder and a window folder of its own. It is killed when dropped.
struct Agent {
    child: Child,
    /// Kept apart, because waiting for a child closes its input.
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    port: u16,
    token: String,
    home: Home,
    dir: tempfile::TempDir,
}

/// A state folder that holds nothing yet.
fn folder() -> (tempfile::TempDir, Home) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("project")).unwrap();
    let home = Home::open(dir.path().join("state")).unwrap();
    (dir, home)
}

impl Agent {
    async fn start(dir: tempfile::TempDir, home: Home) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton-agent"));
        command.args([
            "--window",
            WINDOW,
            "--name",
            "project",
            "--port",
            &free_port().to_string(),
            "--folder",
        ]);
        command.arg(dir.path().join("project"));
        // No coordinator is ever started: the test is the only one.
        command.env("BATON_HOME", home.path()).env("BATON_BIN", "/bin/false");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = next_report(&mut lines).await;
        assert_eq!(ready["ready"]["window"], WINDOW);
        let port = u16::try_from(ready["ready"]["port"].as_u64().unwrap()).unwrap();
        let window: WindowId = WINDOW.parse().unwrap();
        let token = home.secret().unwrap().window_token(&window, None).expose().to_owned();
        Self { child, stdin, lines, port, token, home, dir }
    }

    /// The exit code.
    async fn ended(&mut self) -> Option<i32> {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("the agent ends").unwrap().code()
    }

    /// Calls a tool under a term; gives the status, why it was refused, and the answer.
    async fn call(&self, term: &str, tool: &str, arguments: Value) -> (u16, Option<String>, Value) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let request = reqwest::Client::new().post(format!("http://127.0.0.1:{}/mcp", self.port));
        let request = request.bearer_auth(&self.token).header("baton-term", term).json(&body);
        let request = request.header("accept", "application/json, text/event-stream");
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let refused = response.headers().get("baton-refused").map(|why| why.to_str().unwrap().to_owned());
        let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default();
        (status, refused, answer["result"]["structuredContent"].clone())
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

/// A port that was free a moment ago: the coordinator of these tests is of a version that knows no sockets.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn next_report(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("the agent reports").unwrap();
    serde_json::from_str(&line.expect("the agent runs")).unwrap()
}

/// Where the window stands, by its next report of that.
async fn next_state(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    loop {
        if let Some(state) = next_report(lines).await.get_mut("state") {
            return state["state"].take();
        }
    }
}

fn state(state: WindowState, term: Option<Term>, why: &str) -> Notice {
    Notice::State { state, term, live: None, why: why.to_owned(), awaited: false }
}

#[tokio::test]
async fn it_tells_everything_at_first_and_leaves_when_its_input_ends() {
    let (dir, home) = folder();
    let mut coordinator = Coordinator::start(&home, 1).await;
    let mut agent = Agent::start(dir, home).await;
    let (said, _stream) = coordinator.register(standby()).await;
    let folder = std::fs::canonicalize(agent.dir.path().join("project")).unwrap();
    assert_eq!(said["name"], "project");
    assert_eq!(said["kind"], "headless");
    assert_eq!(said["folders"], json!([folder]));
    assert_eq!(said["auto_start"], true);
    assert_eq!(said["pid"], agent.child.id().unwrap());
    assert!(said["pid_start"].as_u64().unwrap() > 0);
    assert_eq!(said["port"], agent.port);
    assert_eq!((&said["highest_term"], &said["held_term"]), (&Value::Null, &Value::Null));

    let first = coordinator.next("/heartbeat").await;
    let seq = first.body["seq"].as_u64().unwrap();
    first.answer(200, standby());
    let second = coordinator.next("/heartbeat").await;
    assert_eq!(second.body["seq"], seq + 1);
    assert_eq!(second.body["incarnation"], said["incarnation"]);
    second.answer(200, standby());

    let since = Instant::now();
    drop(agent.stdin.take());
    let leave = coordinator.next("/leave").await;
    assert_eq!(leave.body["incarnation"], said["incarnation"]);
    leave.answer(200, json!({}));
    assert_eq!(agent.ended().await, Some(0));
    assert!(since.elapsed() < Duration::from_secs(2));
}

/// A terminal that is closed says so with a signal of its own.
#[tokio::test]
async fn it_leaves_when_a_signal_ends_it() {
    for ending in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (dir, home) = folder();
        let mut coordinator = Coordinator::start(&home, 1).await;
        let mut agent = Agent::start(dir, home).await;
        let (said, _stream) = coordinator.register(standby()).await;
        agent.signal(ending);
        let leave = coordinator.next("/leave").await;
        assert_eq!(leave.body["incarnation"], said["incarnation"]);
        leave.answer(200, json!({}));
        assert_eq!(agent.ended().await, Some(0), "{ending:?}");
    }
}

#[tokio::test]
async fn a_new_coordinator_hears_at_once_what_was_held() {
    let (dir, home) = folder();
    let mut first = Coordinator::start(&home, 1).await;
    let mut agent = Agent::start(dir, home.clone()).await;
    let (_, stream) = first.register(live(1, 4)).await;
    stream
        .send(state(WindowState::Live, Some(Term { generation: 1, seq: 4 }), "no other window was live"))
        .await
        .unwrap();
    assert_eq!(next_state(&mut agent.lines).await, "live");
    assert_eq!(agent.call("1.4", "get_breakpoints", json!({})).await.0, 200);

    let since = Instant::now();
    first.kill().await;
    let mut second = Coordinator::start(&home, 2).await;
    let (said, stream) = second.register(live(2, 1)).await;
    assert!(since.elapsed() < Duration::from_secs(1));
    assert_eq!((&said["highest_term"], &said["held_term"]), (&json!([1, 4]), &json!([1, 4])));
    assert_eq!(agent.call("1.4", "get_breakpoints", json!({})).await.1.as_deref(), Some("stale-term"));
    assert_eq!(agent.call("2.1", "get_breakpoints", json!({})).await.0, 200);

    // It loses the place, and remembers what it had seen.
    stream.send(state(WindowState::Standby, None, "another window is live")).await.unwrap();
    assert_eq!(next_state(&mut agent.lines).await, "standby");
    assert_eq!(agent.call("2.1", "get_breakpoints", json!({})).await.1.as_deref(), Some("stale-term"));
    drop(stream);
    let (said, stream) = second.register(standby()).await;
    assert_eq!((&said["highest_term"], &said["held_term"]), (&json!([2, 1]), &Value::Null));

    // What was switched elsewhere is remembered as well.
    assert_eq!(said["auto_start"], true);
    stream.send(Notice::AutoStart { auto_start: false }).await.unwrap();
    stream.send(state(WindowState::Off, None, "auto-start is off")).await.unwrap();
    assert_eq!(next_state(&mut agent.lines).await, "off");
    drop(stream);
    let (said, _stream) = second.register(standby()).await;
    assert_eq!(said["auto_start"], false);
}

#[tokio::test]
async fn it_obeys_restart_stop_and_its_successor() {
    for (notice, code) in [(Notice::Restart, 75), (Notice::Superseded, 0)] {
        let (dir, home) = folder();
        let mut coordinator = Coordinator::start(&home, 1).await;
        let mut agent = Agent::start(dir, home).await;
        let (_, stream) = coordinator.register(standby()).await;
        stream.send(notice).await.unwrap();
        assert_eq!(agent.ended().await, Some(code));
    }

    let (dir, home) = folder();
    let mut coordinator = Coordinator::start(&home, 1).await;
    let mut agent = Agent::start(dir, home).await;
    let (said, stream) = coordinator.register(live(1, 1)).await;
    assert_eq!(said["stopped"], false);
    stream.send(Notice::Stop).await.unwrap();
    stream.send(state(WindowState::Off, None, "you stopped it")).await.unwrap();
    assert_eq!(next_state(&mut agent.lines).await, "off");
    drop(stream);
    let asked = coordinator.next("/register").await;
    assert_eq!(asked.body["stopped"], true, "the user's wish outlives the coordinator");
    let code = "stale_incarnation".to_owned();
    asked.answer(
        409,
        Failure { code, message: "a newer agent runs".to_owned(), hint: None, candidates: Vec::new() },
    );
    assert_eq!(agent.ended().await, Some(0));
}

#[tokio::test]
async fn a_new_secret_counts_from_the_next_registration_on() {
    let (dir, home) = folder();
    let mut first = Coordinator::start(&home, 1).await;
    let mut agent = Agent::start(dir, home).await;
    let (_, _stream) = first.register(live(1, 1)).await;
    first.kill().await;

    agent.home.replace("secret", &[9; 32]).unwrap();
    let mut second = Coordinator::start(&agent.home, 2).await;
    let (_, _stream) = second.register(live(2, 1)).await;
    let (status, ..) = agent.call("2.1", "get_breakpoints", json!({})).await;
    assert_eq!(status, 401, "the old token is worth nothing any more");
    agent.token =
        agent.home.secret().unwrap().window_token(&WINDOW.parse().unwrap(), None).expose().to_owned();
    let (status, _, answer) = agent.call("2.1", "get_breakpoints", json!({})).await;
    assert_eq!((status, &answer["status"]), (200, &json!("success")));
}

#[tokio::test]
async fn a_coordinator_that_forgot_the_window_is_told_again() {
    let (dir, home) = folder();
    let mut coordinator = Coordinator::start(&home, 1).await;
    let _agent = Agent::start(dir, home).await;
    let (_, _stream) = coordinator.register(standby()).await;
    let code = "not_registered".to_owned();
    let evicted = Failure {
        code,
        message: "this window is not registered".to_owned(),
        hint: None,
        candidates: Vec::new(),
    };
    coordinator.next("/heartbeat").await.answer(404, evicted);
    coordinator.register(standby()).await;
}

#[tokio::test]
async fn without_acknowledgement_it_fences_itself_and_comes_back() {
    let (dir, home) = folder();
    let mut coordinator = Coordinator::start(&home, 1).await;
    let agent = Agent::start(dir, home).await;
    let registering = coordinator.next("/register").await;
    let since = Instant::now();
    registering.answer(200, live(1, 1));
    let _stream = coordinator.stream().await;
    let mut unanswered = Vec::new();
    loop {
        match agent.call("1.1", "get_breakpoints", json!({})).await {
            (200, ..) => {
                assert!(since.elapsed() < Duration::from_millis(4_100), "it runs calls for too long")
            }
            (409, Some(why), _) => {
                assert_eq!(why, "fenced");
                break;
            }
            other => panic!("{other:?}"),
        }
        if let Ok(asked) = tokio::time::timeout(Duration::from_millis(20), coordinator.next_raw()).await {
            unanswered.push(asked);
        }
    }
    assert!(since.elapsed() > Duration::from_millis(3_900), "it gave up after {:?}", since.elapsed());
    // The coordinator wakes up, and the window is live again under its term.
    for asked in unanswered {
        asked.answer(200, live(1, 1));
    }
    loop {
        match agent.call("1.1", "get_breakpoints", json!({})).await {
            (200, ..) => break,
            (409, Some(why), _) if why == "fenced" => assert!(since.elapsed() < PATIENCE),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn calls_that_queued_while_it_was_frozen_are_not_run() {
    let (dir, home) = folder();
    std::fs::write(dir.path().join("project/a.py"), "x = 1\n").unwrap();
    let mut coordinator = Coordinator::start(&home, 1).await;
    let agent = Agent::start(dir, home).await;
    let (_, _stream) = coordinator.register(live(1, 1)).await;
    agent.signal(Signal::STOP);
    let set = agent.call("1.1", "set_breakpoint", json!({"file_path": "a.py", "line_number": 1}));
    let thaw = async {
        // Longer than the fence: time passing is what this test is about.
        tokio::time::sleep(Duration::from_millis(4_200)).await;
        agent.signal(Signal::CONT);
    };
    let ((status, refused, _), ()) = tokio::join!(set, thaw);
    assert_eq!((status, refused.as_deref()), (409, Some("fenced")));
    coordinator.next("/heartbeat").await.answer(200, live(1, 1));
    loop {
        let (status, _, answer) = agent.call("1.1", "get_breakpoints", json!({})).await;
        if status == 200 {
            assert_eq!(answer["breakpoints"], json!([]), "the queued call left nothing behind");
            break;
        }
    }
}

#[tokio::test]
async fn its_debug_sessions_are_told_at_once_and_end_with_it() {
    let (dir, home) = folder();
    let project = dir.path().join("project");
    std::fs::create_dir(project.join(".vscode")).unwrap();
    let launch = json!({"configurations": [{
        "name": "wait", "type": "debugpy", "request": "launch", "console": "internalConsole",
        "program": "${workspaceFolder}/wait.py", "python": python(),
    }]});
    std::fs::write(project.join(".vscode/launch.json"), launch.to_string()).unwrap();
    let program =
        "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nwhile True:\n    time.sleep(0.05)\n";
    std::fs::write(project.join("wait.py"), program).unwrap();
    let mut coordinator = Coordinator::start(&home, 1).await;
    let mut agent = Agent::start(dir, home).await;
    let (_, _stream) = coordinator.register(live(1, 1)).await;
    let mut told = Vec::new();
    let (_, _, answer) = {
        let at = json!({"file_path": "wait.py", "line_number": 4});
        assert_eq!(agent.call("1.1", "set_breakpoint", at).await.0, 200);
        let arguments = json!({"configuration_name": "wait"});
        let starting = agent.call("1.1", "start_debugging", arguments);
        tokio::pin!(starting);
        loop {
            tokio::select! {
                answer = &mut starting => break answer,
                beat = coordinator.next_raw() => {
                    told.push(beat.body["debug_sessions"].clone());
                    beat.answer(200, live(1, 1));
                }
            }
        }
    };
    let sessions = told.pop().unwrap();
    assert_eq!(answer["status"], "stopped", "{answer}");
    assert_eq!(sessions, json!([{"id": answer["stop_event_data"]["session_id"], "name": "wait"}]));

    let pid = std::fs::read_to_string(project.join("pid")).unwrap();
    assert!(Path::new("/proc").join(&pid).exists());
    let since = Instant::now();
    drop(agent.stdin.take());
    coordinator.next("/leave").await.answer(200, json!({}));
    assert_eq!(agent.ended().await, Some(0));
    assert!(since.elapsed() < Duration::from_secs(2), "it took {:?}", since.elapsed());
    assert!(!Path::new("/proc").join(&pid).exists(), "the program ended with its window");
    assert!(agent.home.logs_path().exists());
}

/// A Python that has debugpy.
fn python() -> std::path::PathBuf {
    if let Some(python) = std::env::var_os("BATON_TEST_PYTHON") {
        return python.into();
    }
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/py/bin/python");
    assert!(python.exists(), "{} is missing; `cargo xtask test` installs it", python.display());
    python
}
