//! Programs that hang: what they do is told, within seconds, though they cannot be stopped there.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::programs::shelf;
use crate::standalone::Standalone;

/// A name, a program, and what its stack says.
const PYTHON: [(&str, &str, &[&str]); 6] = [
    (
        "deadlock",
        "import threading, time\na, b = threading.Lock(), threading.Lock()\n\ndef one():\n    with a:\n        \
         time.sleep(0.1)\n        with b:\n            pass\n\ndef two():\n    with b:\n        time.sleep(0.1)\n        \
         with a:\n            pass\n\nall = [threading.Thread(target=one), threading.Thread(target=two)]\nfor each in \
         all: each.start()\nfor each in all: each.join()\n",
        &["deadlock.py:7 in one", "deadlock.py:13 in two", "deadlock.py:18 in <module>", "MainThread"],
    ),
    (
        "sleeps",
        "import time\n\ndef nap():\n    time.sleep(600)\n\nnap()\n",
        &["sleeps.py:4 in nap", "sleeps.py:6"],
    ),
    (
        "accepts",
        "import socket\nserver = socket.create_server((\"127.0.0.1\", 0))\n\ndef serve():\n    server.accept()\n\nserve()\n",
        &["accepts.py:5 in serve"],
    ),
    (
        "queues",
        "import queue\n\ndef take(jobs):\n    return jobs.get()\n\ntake(queue.Queue())\n",
        &["queues.py:4 in take"],
    ),
    (
        "children",
        "import subprocess\n\ndef run():\n    subprocess.run([\"sleep\", \"600\"])\n\nrun()\n",
        &["children.py:4 in run"],
    ),
    (
        "idles",
        "import asyncio\n\nasync def main():\n    await asyncio.Event().wait()\n\nasyncio.run(main())\n",
        &["idles.py:6 in <module>"],
    ),
];
/// As long as the answer about a program that hangs may take, on a busy machine.
const BOUND: Duration = Duration::from_secs(6);

/// Starts a program that hangs; gives its session once it does.
async fn hang(agent: &Standalone, folder: &Path, name: &str, text: &str) -> Value {
    std::fs::write(folder.join(name), text).unwrap();
    let launched =
        agent.call("debug", json!({"action": "launch", "program": name, "stop_on_entry": false})).await;
    let details = &launched["_meta"]["baton/details"];
    assert_eq!(details["state"], "running", "{name}: {launched}");
    details["snapshot"]["id"].clone()
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn every_hang_of_python_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Standalone::start(folder.path(), &[("BATON_ADAPTERS", shelf())]);
    let hung = PYTHON.map(|(name, program, _)| (format!("{name}.py"), program));
    let started = hung.iter().map(|(name, program)| hang(&agent, folder.path(), name, program));
    let sessions = futures_util::future::join_all(started).await;
    for ((name, _, told), session) in PYTHON.iter().zip(sessions) {
        let n_threads = if *name == "deadlock" { 3 } else { 1 };
        let asked = Instant::now();
        // debugpy notices a thread some time after it has begun.
        loop {
            let threads = agent.call("debug", json!({"action": "threads", "session": session})).await;
            let said = text(&threads);
            assert!(said.contains("MainThread (running"), "{name}: {said}");
            if said.matches("(running").count() >= n_threads {
                break;
            }
            assert!(asked.elapsed() < BOUND, "{name}: {said}");
        }
        for action in ["stack_trace", "pause"] {
            let begun = Instant::now();
            let answer = agent.call("debug", json!({"action": action, "session": session})).await;
            assert!(begun.elapsed() < BOUND, "{name}, {action}: {:?}", begun.elapsed());
            let said = text(&answer);
            assert_eq!(answer["isError"], false, "{name}, {action}: {said}");
            assert!(told.iter().all(|told| said.contains(told)), "{name}, {action}: {said}");
            assert!(said.contains("running, values are not available"), "{name}, {action}: {said}");
            assert_eq!(answer["_meta"]["baton/details"]["snapshot"]["status"], "running", "{said}");
            let takes_effect = "takes effect when that call returns";
            assert_eq!(said.contains(takes_effect), action == "pause", "{name}, {action}: {said}");
        }
        let value = json!({"action": "evaluate", "expression": "1", "session": session});
        assert!(text(&agent.call("debug", value).await).contains("is running"), "{name}");
        agent.call("debug", json!({"action": "terminate", "session": session})).await;
    }
}

#[tokio::test]
async fn a_pause_that_was_late_is_heard_of() {
    // It hangs until somebody comes to the door.
    const TEXT: &str = "import os, time\n\ndef nap():\n    os.open('door', os.O_RDONLY)\n    return 3\n\nos.mkfifo('door')\nnap()\ntime.sleep(600)\n";
    let folder = tempfile::tempdir().unwrap();
    let agent = Standalone::start(folder.path(), &[("BATON_ADAPTERS", shelf())]);
    let session = hang(&agent, folder.path(), "naps.py", TEXT).await;
    let paused = agent.call("debug", json!({"action": "pause", "session": session})).await;
    assert!(text(&paused).contains("naps.py:4 in nap"), "{paused}");
    let door = folder.path().join("door");
    tokio::task::spawn_blocking(|| std::fs::OpenOptions::new().write(true).open(door))
        .await
        .unwrap()
        .unwrap();
    let stopped = agent.call("debug", json!({"action": "continue", "session": session})).await;
    assert!(text(&stopped).starts_with("Stopped at naps.py:5 in nap (pause)"), "{stopped}");
}

#[tokio::test]
async fn python_that_lets_nobody_in_is_told_as_such() {
    const TEXT: &str = "import re\nre.match(r\"(a+)+$\", \"a\" * 60 + \"b\")\n";
    let folder = tempfile::tempdir().unwrap();
    let agent = Standalone::start(folder.path(), &[("BATON_ADAPTERS", shelf())]);
    let session = hang(&agent, folder.path(), "matches.py", TEXT).await;
    for action in ["pause", "stack_trace"] {
        let begun = Instant::now();
        let said = agent.call("debug", json!({"action": action, "session": session})).await;
        assert!(begun.elapsed() < BOUND, "{action}: {:?}", begun.elapsed());
        assert!(text(&said).contains("blocked in native code"), "{action}: {}", text(&said));
    }
}

#[tokio::test]
async fn other_faces_tell_a_hang_too() {
    const TEXT: &str = "import queue\n\ndef take(jobs):\n    return jobs.get()\n\ntake(queue.Queue())\n";
    let folder = tempfile::tempdir().unwrap();
    let agent = Standalone::start(folder.path(), &[("BATON_ADAPTERS", shelf())]);
    std::fs::write(folder.path().join("takes.py"), TEXT).unwrap();
    let launched = agent.call("lcp_debug_launch", json!({"program": "takes.py"})).await;
    let session = launched["structuredContent"]["data"]["session_id"].clone();
    let begun = Instant::now();
    let forced = agent.call("lcp_debug_step", json!({"session_id": session, "action": "continue"})).await;
    assert!(begun.elapsed() < Duration::from_secs(5) + BOUND, "{:?}", begun.elapsed());
    let data = &forced["structuredContent"]["data"];
    assert_eq!((&data["status"], &data["reason"]), (&json!("running"), &json!("timeout")), "{forced}");
    assert_eq!((&data["current_file"], &data["current_line"]), (&json!("takes.py"), &json!(4)), "{forced}");
    assert_eq!(data["call_stack"][0]["function"], "take", "{forced}");

    let begun = Instant::now();
    let paused = agent.call("debug_pause", json!({})).await["structuredContent"].clone();
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    assert!(paused["message"].as_str().unwrap().contains("takes.py:4 in take"), "{paused}");
    let stack = agent.call("debug_getStackTrace", json!({})).await["structuredContent"].clone();
    assert_eq!(
        (&stack["result"][0]["name"], &stack["result"][0]["line"]),
        (&json!("take"), &json!(4)),
        "{stack}"
    );
    assert_eq!(stack["result"][0]["frameId"], 0, "{stack}");
    assert!(stack["message"].as_str().unwrap().contains("running"), "{stack}");

    let waits = json!({"thread_id": 1, "timeout": 1});
    let waited = agent.call("continue_debugging", waits).await["structuredContent"].clone();
    assert!(waited["message"].as_str().unwrap().contains("takes.py:4 in take"), "{waited}");
}

#[tokio::test]
async fn an_idle_node_and_a_blocked_one_are_told() {
    const PROGRAMS: [(&str, &str, &str); 3] = [
        (
            "serves.js",
            "require(\"http\").createServer(() => {}).listen(0, \"127.0.0.1\");\n",
            "idle in its event loop",
        ),
        ("waits.js", "require(\"child_process\").execSync(\"sleep 600\");\n", "blocked in native code"),
        (
            "hashes.js",
            "require(\"crypto\").pbkdf2Sync(\"a\", \"b\", 2000000000, 64, \"sha512\");\n",
            "blocked in native code",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let agent = Standalone::start(folder.path(), &[("BATON_ADAPTERS", shelf())]);
    for (name, program, told) in PROGRAMS {
        let session = hang(&agent, folder.path(), name, program).await;
        let begun = Instant::now();
        let answer = agent.call("debug", json!({"action": "pause", "session": session})).await;
        assert!(begun.elapsed() < BOUND, "{name}: {:?}", begun.elapsed());
        assert!(text(&answer).contains(told), "{name}: {answer}");
        assert_eq!(answer["isError"], false, "{name}: {answer}");
        agent.call("debug", json!({"action": "terminate", "session": session})).await;
    }
}
