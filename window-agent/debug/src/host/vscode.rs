//! Reaches adapters through VS Code: plays a debug adapter to the engine, and lets the extension do the work.
//!
//! VS Code starts the sessions, hands the adapter its breakpoints and shows the user where the program stands; the
//! engine gets the same conversation as from an adapter of its own. What the user does meanwhile is told as events.

mod breakpoints;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use baton_proto::shim::{
    EditorRequest, EditorSessionRef, EditorStartRef, GiveUpInEditor, Problem, RequestInEditor, StartInEditor,
    StopInEditor,
};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::breakpoints::{Place, Virtual, Waiting};
use crate::dap::body::{self, read};
use crate::dap::{Incoming, Response};
use crate::editor::{Editor, EditorEvent, Target};
use crate::error::DebugError;
use crate::host::inbox::{FromHost, Inbox};
use crate::types::control::UserAct;
use baton_agent_base::paths::{self, Given, Remote};
use baton_agent_base::shim::ShimError;

/// Of a start whose adapter VS Code did not come to.
const UNREACHED: &str = "VS Code did not reach the debug adapter: its own message in the window says why, or the user \
                         pressed stop; an attach needs a program that listens at its address";

/// How long the adapter's own words may come after VS Code's, which do not say why.
const WORDS_GRACE: Duration = Duration::from_millis(300);

/// The code of a start that the window's end came into.
const CLOSING: &str = "closing";

/// Requests of the engine that wait here; it sends a handful at a time.
const MAX_REQUESTS: usize = 1_024;

struct Host {
    editor: Editor,
    target: Target,
    inbox: Inbox,
    /// VS Code's id of the session, once it has begun.
    session: Option<String>,
    /// The engine's `launch` or `attach`, until it is answered.
    start_seq: Option<i64>,
    breakpoints: BTreeMap<Place, Virtual>,
    /// The adapter's ids -> ours.
    ours: BTreeMap<i64, i64>,
    last_id: i64,
    /// Arguments of the editor's requests about breakpoints, by their `seq`, until they are answered.
    asked: BTreeMap<i64, body::SetBreakpoints>,
    /// What the adapter can do is known, and the engine was told to say its breakpoints.
    is_initialized: bool,
    /// VS Code has said everything that comes before the program runs; what comes now is said past it.
    is_configured: bool,
    /// The engine has said which exceptions stop the program.
    has_exceptions: bool,
    /// The adapter could not start the program: VS Code ends the session by itself.
    has_failed: bool,
    waiting: Vec<Waiting>,
    /// Resumes of ours that the tracker will show as the editor's.
    expected: Vec<String>,
    is_terminated: bool,
}

/// Runs the host of one session until it has ended in the editor, or the engine has no use for it any more.
pub(crate) async fn run(editor: Editor, target: Target, over: CancellationToken, inbox: Inbox) {
    let mut events = editor.attach(&target);
    let (outgoing, mut requests) = mpsc::channel::<Bytes>(MAX_REQUESTS);
    inbox.tell(FromHost::Reached(outgoing)).await;
    let mut host = Host::new(editor, target, inbox);
    let (start_failed, mut failures) = mpsc::channel(1);
    loop {
        let grace = host.waiting.iter().map(|waiting| waiting.until).min();
        let grace = async {
            match grace {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = requests.recv() => match message.as_deref().map(Incoming::parse) {
                Some(Some(Incoming::Request { seq, command, arguments })) => {
                    host.on_request(seq, command, arguments, &start_failed).await;
                }
                // Answers of the engine are for the host, which asked, and not for the editor.
                Some(_) => {}
                None => break,
            },
            Some(problem) = failures.recv() => host.on_start_failed(problem).await,
            event = events.recv() => match event {
                Some(event) => host.on_event(event).await,
                None => break,
            },
            () = grace => host.drive_waiting().await,
            () = over.cancelled() => break,
        }
        if host.is_terminated && over.is_cancelled() {
            break;
        }
    }
    drop(events);
    host.editor.detach(&host.target, host.session.as_deref());
    host.inbox.tell(FromHost::Gone).await;
}

impl Host {
    fn new(editor: Editor, target: Target, inbox: Inbox) -> Self {
        let session = match &target {
            Target::Begun { session, .. } => Some(session.clone()),
            Target::Start(_) => None,
        };
        // What the user started may run for long already.
        let is_configured = target.is_users();
        Self {
            editor,
            target,
            inbox,
            session,
            start_seq: None,
            breakpoints: BTreeMap::new(),
            ours: BTreeMap::new(),
            last_id: 0,
            asked: BTreeMap::new(),
            is_initialized: false,
            is_configured,
            has_exceptions: false,
            has_failed: false,
            waiting: Vec::new(),
            expected: Vec::new(),
            is_terminated: false,
        }
    }

    async fn on_request(
        &mut self,
        seq: i64,
        command: String,
        arguments: Value,
        start_failed: &mpsc::Sender<Problem>,
    ) {
        match command.as_str() {
            "initialize" => {
                // VS Code asks the adapter itself; what it answers is told as an event.
                let capabilities = json!({
                    "supportsConfigurationDoneRequest": true,
                    "supportsConditionalBreakpoints": true,
                    "supportsHitConditionalBreakpoints": true,
                    "supportsLogPoints": true,
                });
                self.respond(seq, Ok(capabilities)).await;
            }
            "launch" | "attach" => self.on_launch(seq, start_failed.clone()).await,
            "setBreakpoints" | "setFunctionBreakpoints" => self.on_set_breakpoints(seq, &arguments).await,
            "configurationDone" => self.respond(seq, Ok(Value::Null)).await,
            "setExceptionBreakpoints" => self.on_set_exceptions(seq, arguments).await,
            "disconnect" => self.on_disconnect(seq).await,
            _ => self.pass_on(seq, command, arguments).await,
        }
    }

    /// Answered when the adapter answers the editor, which it has done when the user started it.
    async fn on_launch(&mut self, seq: i64, start_failed: mpsc::Sender<Problem>) {
        if self.target.is_users() {
            return self.respond(seq, Ok(Value::Null)).await;
        }
        self.start_seq = Some(seq);
        let Target::Start(start) = &self.target else { return };
        let (shim, start) = (self.editor.shim().clone(), (**start).clone());
        tokio::spawn(async move {
            // VS Code answers when the session is under way, which can be after its first stop.
            let failure = match shim.ask::<StartInEditor>(start).await {
                Ok(started) => started.failure,
                Err(error) => {
                    let code = if error == ShimError::Closed { CLOSING } else { "" };
                    Some(Problem { code: code.to_owned(), message: error.to_string(), args: Vec::new() })
                }
            };
            if let Some(problem) = failure {
                if problem.code == "start_failed" {
                    tokio::time::sleep(WORDS_GRACE).await;
                }
                let _ = start_failed.send(problem).await;
            }
        });
    }

    async fn on_start_failed(&mut self, Problem { code, message, .. }: Problem) {
        match self.start_seq.take() {
            Some(_) if code == "untrusted" => {
                self.inbox.tell(FromHost::Failed(DebugError::Untrusted { message })).await;
            }
            // Nothing is wrong with what was to be started, and nobody knows whether it was.
            Some(_) if code == CLOSING => self.inbox.tell(FromHost::Failed(DebugError::ShuttingDown)).await,
            Some(seq) => self.respond(seq, Err(message)).await,
            // It had begun; that it is over is told by its end.
            None => self.event("output", json!({"category": "important", "output": message})).await,
        }
    }

    async fn on_disconnect(&mut self, seq: i64) {
        // VS Code ends children with their parent, and parents badly when it has been told to end a child.
        let ends_with_parent = matches!(self.target, Target::Begun { is_child: true, .. });
        let is_kept = self.target.is_users() && self.editor.has_let_go();
        let is_to_end = !self.is_terminated && !ends_with_parent && !is_kept;
        let shim = self.editor.shim().clone();
        match (self.session.clone(), &self.target) {
            _ if !is_to_end => {}
            (Some(session), _) => {
                self.expected.push("disconnect".to_owned());
                tokio::spawn(async move {
                    if let Err(error) = shim.ask::<StopInEditor>(EditorSessionRef { session }).await {
                        tracing::debug!(%error, "the editor did not end a session");
                    }
                });
            }
            // VS Code is still on its way: a task, or what completes the configuration.
            (None, Target::Start(start)) if self.start_seq.is_some() => {
                let start = start.start.clone();
                tokio::spawn(async move {
                    if let Err(error) = shim.ask::<GiveUpInEditor>(EditorStartRef { start }).await {
                        tracing::debug!(%error, "the editor did not give up a start");
                    }
                });
            }
            _ => {}
        }
        self.respond(seq, Ok(Value::Null)).await;
    }

    /// Everything the adapter answers itself.
    async fn pass_on(&mut self, seq: i64, command: String, arguments: Value) {
        let Some(session) = self.session.clone() else {
            return self.respond(seq, Err("the session has not begun yet".to_owned())).await;
        };
        if is_resume(&command) {
            self.expected.push(command.clone());
        }
        let (shim, inbox) = (self.editor.shim().clone(), self.inbox.clone());
        tokio::spawn(async move {
            let request = EditorRequest { session, command, arguments };
            let result = match shim.ask::<RequestInEditor>(request).await {
                Ok(response) => match response.refusal {
                    Some(refusal) => Err(refusal),
                    None => Ok(with_plain_paths(response.body)),
                },
                Err(error) => Err(error.to_string()),
            };
            inbox.tell(FromHost::Message(to_response(seq, result))).await;
        });
    }

    /// A session begins with what the extension puts into VS Code's own words; a later choice is said past VS Code.
    async fn on_set_exceptions(&mut self, seq: i64, arguments: Value) {
        let is_first = !std::mem::replace(&mut self.has_exceptions, true);
        if self.target.is_users() {
            let why = "the user started this session, and chooses its exceptions";
            self.respond(seq, Err(why.to_owned())).await;
        } else if is_first || !self.is_configured {
            self.respond(seq, Ok(Value::Null)).await;
        } else {
            self.pass_on(seq, "setExceptionBreakpoints".to_owned(), arguments).await;
        }
    }

    async fn on_event(&mut self, event: EditorEvent) {
        match event {
            EditorEvent::Began(session) => self.session = Some(session.session),
            EditorEvent::Child(child) => self.inbox.tell(FromHost::Child(child)).await,
            EditorEvent::Message { from_adapter: true, message } => self.on_adapter(message).await,
            EditorEvent::Message { from_adapter: false, message } => self.on_editor(&message).await,
            EditorEvent::Ended => {
                if !self.is_terminated {
                    self.is_terminated = true;
                    self.hear_children().await;
                    self.event("terminated", Value::Null).await;
                }
            }
        }
    }

    async fn on_adapter(&mut self, message: Value) {
        let Ok(bytes) = serde_json::to_vec(&message) else { return };
        match Incoming::parse(&bytes) {
            Some(Incoming::Event { event, body }) => self.on_adapter_event(&event, body).await,
            Some(Incoming::Response(response)) => match read::<body::Sent>(&message).command.as_str() {
                "initialize" if response.success => {
                    self.event("capabilities", json!({"capabilities": response.body})).await;
                    if !std::mem::replace(&mut self.is_initialized, true) {
                        self.event("initialized", Value::Null).await;
                    }
                }
                "setBreakpoints" | "setFunctionBreakpoints" => {
                    self.on_adapter_breakpoints(&response).await;
                }
                "launch" | "attach" => self.on_adapter_start(&response).await,
                _ => {}
            },
            _ => {}
        }
    }

    async fn on_adapter_start(&mut self, response: &Response) {
        let failure = (!response.success).then(|| response.error_text());
        self.has_failed |= failure.is_some();
        match (self.start_seq.take(), failure) {
            (Some(seq), failure) => {
                self.respond(seq, failure.map_or(Ok(Value::Null), Err)).await;
            }
            (None, Some(text)) => {
                self.event("output", json!({"category": "important", "output": text})).await;
            }
            (None, None) => {}
        }
    }

    async fn on_adapter_event(&mut self, event: &str, mut body: Value) {
        match event {
            "stopped" => {
                // What an agent that comes later hears first.
                self.is_configured = true;
                // Without one that we know, the place tells.
                body::exchange_hits(&mut body, &self.ours);
            }
            "breakpoint" => {
                let mut told: body::BreakpointEvent = read(&body);
                let id = told.breakpoint.id.and_then(|id| self.ours.get(&id).copied());
                let Some(id) = id else { return };
                if let Some(known) = self.breakpoints.values_mut().find(|known| known.id == id) {
                    known.bound = Some(told.breakpoint.clone());
                }
                told.breakpoint.id = Some(id);
                body = json!(told);
            }
            "terminated" => {
                self.is_terminated = true;
                self.hear_children().await;
            }
            _ => {}
        }
        self.event(event, body).await;
    }

    /// A request of the editor: ours, which it sends for us, or the user's.
    async fn on_editor(&mut self, message: &Value) {
        let body::Sent { seq, command, arguments } = read(message);
        let command = command.as_str();
        match command {
            "setBreakpoints" | "setFunctionBreakpoints" => {
                if let Some(seq) = seq {
                    self.asked.insert(seq, read(&arguments));
                }
                return;
            }
            // The last that is said before the program runs; not every adapter is told both.
            "setExceptionBreakpoints" | "configurationDone" => {
                self.is_configured = true;
                return;
            }
            _ => {}
        }
        let is_end = matches!(command, "disconnect" | "terminate");
        let name = if is_end { "disconnect" } else { command };
        if let Some(at) = self.expected.iter().position(|expected| expected == name) {
            if !is_end {
                self.expected.remove(at);
            }
        } else if is_end && !self.is_initialized {
            // VS Code clears away what it could not reach, and tells why in a dialog only.
            if let Some(seq) = self.start_seq.take() {
                self.respond(seq, Err(UNREACHED.to_owned())).await;
            }
        } else if is_end && (self.has_failed || self.is_terminated) {
            // It clears away what could not be started, or has ended.
        } else if let Some(session) = self.session.clone().filter(|_| body::restarts(message)) {
            self.inbox.tell(FromHost::BeginsAgain(session)).await;
        } else if is_end {
            self.inbox.tell(FromHost::UserActs(UserAct::Stopped)).await;
        } else if command == "restart" {
            self.inbox.tell(FromHost::UserActs(UserAct::Restarted)).await;
        } else if is_resume(command) {
            let act = match command {
                "continue" | "reverseContinue" => UserAct::Continued,
                _ => UserAct::Stepped,
            };
            self.inbox.tell(FromHost::UserActs(act)).await;
            let thread_id = read::<body::Named>(&arguments).thread_id;
            self.event("continued", json!({"threadId": thread_id, "allThreadsContinued": true})).await;
        }
    }

    async fn hear_children(&self) {
        if let Some(session) = &self.session {
            self.editor.children_gone(session).await;
        }
    }

    async fn respond(&self, request_seq: i64, result: Result<Value, String>) {
        self.inbox.tell(FromHost::Message(to_response(request_seq, result))).await;
    }

    async fn event(&self, event: &str, body: Value) {
        self.inbox.tell(FromHost::Message(Incoming::Event { event: event.to_owned(), body })).await;
    }
}

fn to_response(request_seq: i64, result: Result<Value, String>) -> Incoming {
    Incoming::Response(match result {
        Ok(body) => Response { request_seq, success: true, message: None, body },
        Err(message) => Response { request_seq, success: false, message: Some(message), body: Value::Null },
    })
}

fn is_resume(command: &str) -> bool {
    const RESUMES: [&str; 8] =
        ["continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "goto", "restartFrame"];
    RESUMES.contains(&command)
}

fn plain_path(text: &str) -> Option<PathBuf> {
    match paths::parse(text, Remote::Own) {
        Ok(Given::Absolute(path)) => Some(path),
        _ => None,
    }
}

/// In a remote window VS Code makes addresses of the paths in an answer. `eval` and the like have sources that are no
/// files.
fn with_plain_paths(mut body: Value) -> Value {
    match &mut body {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                let plain = value.as_str().filter(|_| name == "path").and_then(plain_path);
                *value = plain.map_or_else(|| with_plain_paths(value.take()), |path| json!(path));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = with_plain_paths(item.take())),
        _ => {}
    }
    body
}

#[cfg(test)]
mod tests {
    use baton_proto::shim::EditorSession;
    use tokio::io::AsyncReadExt as _;

    use baton_agent_base::shim::{FromExtension, Shim};

    use super::*;

    #[tokio::test]
    async fn an_answer_of_the_engine_is_no_request_of_the_editor() {
        let ((shim, _keep), (_extension, mut heard)) = Shim::pair();
        let (sender, mut to_engine) = mpsc::channel(16);
        let target =
            Target::Begun { session: "one".to_owned(), is_child: false, is_users: true, start: None };
        let (editor, inbox) = (Editor::new(shim), Inbox { key: 1, sender });
        editor.on_began(session("one")).await;
        tokio::spawn(run(editor, target, CancellationToken::new(), inbox));
        let Some((_, FromHost::Reached(requests))) = to_engine.recv().await else { panic!() };
        for message in [
            json!({"seq": 1, "type": "response", "request_seq": 0, "success": true, "command": "startDebugging"}),
            json!({"seq": 2, "type": "request", "command": "threads", "arguments": {}}),
        ] {
            requests.send(message.to_string().into()).await.unwrap();
        }
        let Some(FromExtension::Request { params, .. }) = heard.recv().await else { panic!() };
        assert_eq!(params["command"], "threads");
    }

    #[tokio::test]
    async fn a_start_that_the_windows_end_comes_into_is_not_blamed_for_it() {
        let (agent, mut extension) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(agent);
        let (shim, _keep) = Shim::open(reader, writer);
        let (sender, mut to_engine) = mpsc::channel(16);
        let start = serde_json::from_value(json!({"start": "1", "name": "orders"}));
        let target = Target::Start(Box::new(start.unwrap()));
        tokio::spawn(run(Editor::new(shim), target, CancellationToken::new(), Inbox { key: 1, sender }));
        let Some((_, FromHost::Reached(requests))) = to_engine.recv().await else { panic!() };
        let launch = json!({"seq": 1, "type": "request", "command": "launch", "arguments": {}});
        requests.send(launch.to_string().into()).await.unwrap();
        assert_ne!(extension.read(&mut [0; 1_024]).await.unwrap(), 0);
        drop(extension);
        let told = to_engine.recv().await;
        assert!(matches!(told, Some((1, FromHost::Failed(DebugError::ShuttingDown)))), "{told:?}");
    }

    fn session(id: &str) -> EditorSession {
        serde_json::from_value(json!({
            "session": id, "parent": null, "start": null, "kind": "mock", "name": id, "request": "launch",
        }))
        .unwrap()
    }

    #[test]
    fn addresses_become_paths_wherever_they_are() {
        let address = "vscode-remote://ssh-remote%2Bbox/work/a.js";
        let body = json!({"stackFrames": [{"source": {"path": address}}, {"source": {"path": "<eval>"}}]});
        let plain =
            json!({"stackFrames": [{"source": {"path": "/work/a.js"}}, {"source": {"path": "<eval>"}}]});
        assert_eq!(with_plain_paths(body), plain);
        let sources = json!({"sources": [{"path": address, "name": address}]});
        assert_eq!(with_plain_paths(sources), json!({"sources": [{"path": "/work/a.js", "name": address}]}));
        // Nothing is added, and an answer can be anything.
        for body in [Value::Null, json!("text"), json!(7), json!([1]), json!({"targets": []})] {
            assert_eq!(with_plain_paths(body.clone()), body);
        }
    }
}
