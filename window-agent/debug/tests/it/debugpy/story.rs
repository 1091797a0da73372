//! A scenario and its transcript: verbs go in, a text with short paths and stable names comes out.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::{
    Breakpoint, Evaluate, Frame, OutputTail, Paging, Phase, Resume, SessionId, SessionSummary, SetBreakpoint,
    Start, StopEvent, Variable, Waited,
};
use baton_agent_debug::{Debugger, DebuggerOptions, Wait};
use expect_test::Expect;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fixtures::{PATIENCE, fixture, python, workspace_root};

pub(crate) fn options() -> DebuggerOptions {
    DebuggerOptions {
        folders: vec![workspace_root().join("tests/fixtures/debug")],
        python: Some(python()),
        search_path: std::env::var_os("PATH"),
        ..DebuggerOptions::default()
    }
}

pub(crate) fn wait() -> Wait {
    wait_for(PATIENCE)
}

pub(crate) fn wait_for(timeout: Duration) -> Wait {
    Wait { timeout, cancelled: CancellationToken::new() }
}

/// A launch of a fixture, with more settings.
pub(crate) fn launch(program: &str, more: Value) -> Start {
    let base =
        json!({"type": "debugpy", "request": "launch", "program": fixture(program), "python": python()});
    start(program, base, more)
}

pub(crate) fn start(name: &str, base: Value, more: Value) -> Start {
    let Value::Object(mut configuration) = base else { panic!("not an object") };
    configuration.extend(more.as_object().cloned().unwrap_or_default());
    Start { configuration, name: name.to_owned(), ..Start::default() }
}

/// A scenario.
pub(crate) struct Story {
    pub(crate) debugger: Debugger,
    pub(crate) transcript: String,
    /// What the programs printed; when it arrives is a matter of chance.
    printed: String,
    /// Sessions in the order of their appearance.
    sessions: Vec<SessionId>,
    /// The latest stop.
    pub(crate) stop: Option<StopEvent>,
}

impl Story {
    pub(crate) fn begin() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: DebuggerOptions) -> Self {
        let debugger = Debugger::spawn(options);
        Self { debugger, transcript: String::new(), printed: String::new(), sessions: Vec::new(), stop: None }
    }

    /// Ends everything, and compares.
    pub(crate) async fn end(mut self, expected: Expect) {
        self.debugger.stop_all().await;
        assert_eq!(self.debugger.sessions(), []);
        self.transcript =
            self.transcript.replace(&format!("{}/", fixture("").display()).replace("//", "/"), "");
        expected.assert_eq(&self.transcript);
    }

    pub(crate) fn line(&mut self, text: &str) {
        writeln!(self.transcript, "{text}").unwrap();
    }

    pub(crate) async fn set(&mut self, program: &str, line: u32) {
        self.wish(SetBreakpoint { path: fixture(program), line, ..SetBreakpoint::default() }).await;
    }

    pub(crate) async fn wish(&mut self, wish: SetBreakpoint) {
        match self.debugger.set_breakpoint(wish).await {
            Ok(breakpoint) => self.breakpoint(&breakpoint),
            Err(error) => self.error(&error),
        }
    }

    pub(crate) async fn list(&mut self) {
        for breakpoint in self.debugger.breakpoints().await {
            self.breakpoint(&breakpoint);
        }
    }

    pub(crate) async fn start(&mut self, start: Start) {
        let waited = self.debugger.start(start, wait()).await;
        self.waited(waited);
    }

    /// Starts a program that does not stop by itself, and goes on once it runs.
    pub(crate) async fn start_running(&mut self, start: Start) {
        let debugger = self.debugger.clone();
        let starting = tokio::spawn(async move { debugger.start(start, wait()).await });
        let mut sessions = self.debugger.watch_sessions();
        let is_running = |session: &SessionSummary| session.phase == Phase::Running;
        sessions.wait_for(|sessions| sessions.last().is_some_and(is_running)).await.unwrap();
        self.debugger.interrupt_waits().await;
        let waited = starting.await.unwrap();
        self.waited(waited);
    }

    pub(crate) async fn go(&mut self, how: Resume) {
        let (session, thread_id) = self.here();
        self.go_thread(Some(&session), thread_id, how).await;
    }

    pub(crate) async fn go_thread(&mut self, session: Option<&SessionId>, thread_id: i64, how: Resume) {
        let waited = self.debugger.resume(session, thread_id, how, wait()).await;
        self.line(&format!("> {how:?}"));
        self.waited(waited);
    }

    /// Session and thread of the latest stop.
    pub(crate) fn here(&self) -> (SessionId, i64) {
        let stop = self.stop.as_ref().expect("stopped");
        (stop.session.clone(), stop.thread_id)
    }

    pub(crate) async fn evaluate(&mut self, expression: &str) {
        let frame_id = self.stop.as_ref().unwrap().call_stack[0].frame_id;
        let evaluate = Evaluate { expression: expression.to_owned(), frame_id, context: None };
        match self.debugger.evaluate(evaluate).await {
            Ok(value) => self.line(&format!("{expression} = {}", value.result)),
            Err(error) => self.error(&error),
        }
    }

    pub(crate) fn waited(&mut self, waited: Result<Waited, DebugError>) {
        match waited {
            Ok(Waited::Stopped(stop)) => self.stopped(*stop),
            Ok(Waited::Completed(completed)) => {
                let session = self.session(&completed.session);
                let code = completed
                    .exit_code
                    .map_or("without an exit code".to_owned(), |code| format!("with {code}"));
                let note = completed.note.map(|note| format!(" ({})", self.stable(note))).unwrap_or_default();
                let missed: Vec<i64> = completed.never_hit.iter().map(|breakpoint| breakpoint.id).collect();
                let missed = if missed.is_empty() { String::new() } else { format!(" never hit {missed:?}") };
                self.line(&format!("completed {session} {code}{note}{missed}"));
                self.output(&completed.output);
            }
            Ok(Waited::TimedOut { session, output, .. }) => self.early("timed out", &session, &output),
            Ok(Waited::Interrupted { session, output }) => self.early("interrupted", &session, &output),
            Err(error) => self.error(&error),
        }
    }

    fn early(&mut self, how: &str, session: &SessionId, output: &OutputTail) {
        let session = self.session(session);
        self.line(&format!("{how} {session}"));
        self.output(output);
    }

    fn stopped(&mut self, stop: StopEvent) {
        let session = self.session(&stop.session);
        let frames: Vec<String> = stop.call_stack.iter().map(frame).collect();
        let hit = stop.hit_breakpoint_ids.as_ref().map(|hit| format!(" {hit:?}")).unwrap_or_default();
        self.line(&format!("stopped {session} by {}{hit} in {}", stop.reason, frames.join(" < ")));
        if let Some(text) = &stop.text {
            self.line(&format!("  text: {text}"));
        }
        if let Some(scope) = &stop.top_frame_variables {
            let plain = scope.variables.iter().filter(|variable| !is_group(variable));
            let plain = plain.filter(|variable| variable.type_name.as_deref() != Some("module"));
            let variables: Vec<String> =
                plain.map(|variable| format!("{}={:.40}", variable.name, variable.value)).collect();
            self.line(&format!("  {}: {}", scope.scope_name, variables.join(", ")));
        }
        self.output(&stop.output);
        self.stop = Some(stop);
    }

    fn output(&mut self, output: &OutputTail) {
        assert_eq!(output.omitted_bytes, 0);
        self.printed.push_str(&output.text);
    }

    pub(crate) fn breakpoint(&mut self, breakpoint: &Breakpoint) {
        let state = if breakpoint.verified { "verified" } else { "not verified" };
        let place = format!("{}:{}", short(&breakpoint.path), breakpoint.line);
        let message = breakpoint.message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
        self.line(&format!("breakpoint {} {place} {state}{message}", breakpoint.id));
    }

    pub(crate) fn error(&mut self, error: &DebugError) {
        let text = self.stable(error.to_string());
        let python = python().display().to_string();
        self.line(&format!("error {}: {}", error.kind(), text.replace(&python, "PYTHON")));
    }

    /// A text with stable names of the sessions that were told or run.
    fn stable(&mut self, mut text: String) -> String {
        for running in self.debugger.sessions() {
            if text.contains(running.id.as_str()) {
                self.session(&running.id);
            }
        }
        for (n, session) in self.sessions.iter().enumerate() {
            text = text.replace(session.as_str(), &format!("session-{}", n + 1));
        }
        text
    }

    /// A stable name of a session.
    pub(crate) fn session(&mut self, session: &SessionId) -> String {
        let at = self.sessions.iter().position(|known| known == session).unwrap_or_else(|| {
            self.sessions.push(session.clone());
            self.sessions.len() - 1
        });
        format!("session-{}", at + 1)
    }

    pub(crate) async fn variables(&mut self, reference: i64, paging: Paging) -> Vec<Variable> {
        match self.debugger.variables(reference, paging).await {
            Ok(page) => page.variables,
            Err(error) => {
                self.error(&error);
                Vec::new()
            }
        }
    }
}

/// debugpy's groups of specials hold what differs between versions of Python.
fn is_group(variable: &Variable) -> bool {
    variable.name.ends_with(" variables") || variable.name.starts_with('_')
}

fn frame(frame: &Frame) -> String {
    format!("{} {}:{}", frame.function_name, short(Path::new(&frame.file_path)), frame.line_number)
}

fn short(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
