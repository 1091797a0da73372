//! Attaching to a program that listens.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use baton_agent_debug::DebuggerOptions;
use baton_agent_debug::types::{Start, Waited};
use expect_test::expect;
use serde_json::json;

use super::fixtures::{fixture, python};
use super::story::{Story, start};

/// A program that waits for a debugger, and its port.
struct Server {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
    end: PathBuf,
}

impl Server {
    fn start() -> Self {
        Self::running(&fixture("serves.py"))
    }

    fn running(program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let end = folder.path().join("end");
        let mut child = Command::new(python())
            .arg(program)
            .arg(&end)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
            .unwrap();
        Self { child, port: line.trim().parse().unwrap(), _folder: folder, end }
    }

    fn attach(&self) -> Start {
        let base = json!({"type": "debugpy", "request": "attach"});
        start("attach", base, json!({"connect": {"host": "127.0.0.1", "port": self.port}}))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_listening_program_is_attached_to_left_alone_and_attached_to_again() {
    let mut server = Server::start();
    let mut story = Story::begin();
    story.set("serves.py", 15).await;
    for _ in 0..2 {
        let waited = story.debugger.start(server.attach(), super::story::wait()).await.unwrap();
        let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
        story.line(&format!("stopped at {:?} by {:?}", stop.line, stop.hit_breakpoint_ids));
        story.debugger.stop(None).await.unwrap();
        assert!(server.child.try_wait().unwrap().is_none(), "the program lives on");
    }
    std::fs::write(&server.end, "").unwrap();
    assert!(server.child.wait().unwrap().success());
    story
        .end(expect![[r#"
        breakpoint 1 serves.py:15 not verified (not verified yet: no debug session has loaded it)
        stopped at Some(15) by Some([1])
        stopped at Some(15) by Some([1])
    "#]])
        .await;
}

/// As in a container, where the sources lie elsewhere.
#[tokio::test]
async fn a_program_from_another_folder_is_attached_to_with_a_mapping_of_paths() {
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("serves.py");
    std::fs::copy(fixture("serves.py"), &copy).unwrap();
    let server = Server::running(&copy);
    let mut story = Story::begin();
    story.set("serves.py", 15).await;
    let mut attach = server.attach();
    let mapping = json!([{"localRoot": fixture(""), "remoteRoot": elsewhere.path()}]);
    attach.configuration.insert("pathMappings".to_owned(), mapping);
    let waited = story.debugger.start(attach, super::story::wait()).await.unwrap();
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    assert_eq!(stop.source.unwrap().path, fixture("serves.py").display().to_string());
    story.line(&format!("stopped at {:?} by {:?}", stop.line, stop.hit_breakpoint_ids));
    story
        .end(expect![[r#"
        breakpoint 1 serves.py:15 not verified (not verified yet: no debug session has loaded it)
        stopped at Some(15) by Some([1])
    "#]])
        .await;
}

#[tokio::test]
async fn an_attach_that_cannot_work_says_why() {
    let mut story = Story::begin();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let attach = |more| start("attach", json!({"type": "debugpy", "request": "attach"}), more);
    let waited = story.debugger.start(attach(json!({"port": port})), super::story::wait()).await;
    let text = waited.unwrap_err().to_string().replace(&port.to_string(), "PORT");
    story.line(&text);
    story.start(attach(json!({}))).await;
    story.start(attach(json!({"connect": {"port": "many"}}))).await;
    story.end(expect![[r#"
        nothing to attach to at 127.0.0.1:PORT (Connection refused (os error 111)); is the program running with a debugger that listens there?
        error bad_configuration: attach needs `connect` with `host` and `port`, or `processId`
        error bad_configuration: `port` must be a number from 1 to 65535
    "#]]).await;
}

/// Without it each answer of the program would come 40 ms late; how late they come is measured, not tested.
#[tokio::test]
async fn a_program_that_is_attached_to_sends_without_delay() {
    let server = Server::start();
    let mut story = Story::begin();
    story.set("serves.py", 15).await;
    let waited = story.debugger.start(server.attach(), super::story::wait()).await.unwrap();
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    story.stop = Some(*stop);
    story.evaluate("__import__('pydevd').get_global_debugger().writer.sock.getsockopt(6, 1)").await;
    story
        .end(expect![[r#"
        breakpoint 1 serves.py:15 not verified (not verified yet: no debug session has loaded it)
        __import__('pydevd').get_global_debugger().writer.sock.getsockopt(6, 1) = 1
    "#]])
        .await;
}

#[tokio::test]
async fn a_running_program_is_not_joined_without_gdb_and_lives_on() {
    let options = DebuggerOptions { search_path: Some("".into()), ..super::story::options() };
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let mut story = Story::with(options);
    let attach =
        start("attach", json!({"type": "debugpy", "request": "attach"}), json!({"processId": child.id()}));
    let waited = story.debugger.start(attach, super::story::wait()).await;
    story.line(&format!("{}", waited.unwrap_err()));
    assert!(child.try_wait().unwrap().is_none(), "it lives on");
    child.kill().unwrap();
    child.wait().unwrap();
    story
        .end(expect![[r#"
        attaching to a running process needs gdb, which is not installed
    "#]])
        .await;
}
