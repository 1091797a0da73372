//! CORE: one debug session as a state machine: messages and wishes in, messages and facts out. No IO, no clock.
//!
//! Starting -> Configuring -> Running <-> Stopped -> Terminating -> Terminated.
//! A stop is told only once its stack and variables were fetched, so that whoever waits gets all of it at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::debug::adapters::{Adapter, Plan, Reach, StartKind};
use crate::debug::breakpoints::{Binding, Wanted};
use crate::debug::dap::{Incoming, Reply, Request, Response};
use crate::debug::session::capture::{Capture, Captured, Step};
use crate::debug::types::{Phase, Resume};

pub(crate) mod capture;
#[cfg(test)]
mod tests;

/// How long the real cause of a failed start may come after its symptom.
const START_ERROR_GRACE: Duration = Duration::from_millis(150);
/// How long `exited` may come after `terminated`.
const EXIT_CODE_GRACE: Duration = Duration::from_millis(150);
/// How long `terminated` may come after `exited`.
const TERMINATED_GRACE: Duration = Duration::from_secs(2);
/// How long an adapter may take to end the program when asked to.
const STOP_GRACE: Duration = Duration::from_millis(700);
/// How long stack and variables of a stop may take; after it the stop is told with what is there.
const CAPTURE_GRACE: Duration = Duration::from_secs(5);

/// Names a request of the engine; its answer carries it.
pub(crate) type Ticket = u64;

/// What a session is told.
#[derive(Debug)]
pub(crate) enum Input {
    /// The adapter is reached; begin.
    Connected,
    /// A message of the adapter.
    Message(Incoming),
    /// The connection or the adapter ended.
    Closed { how: String },
    /// The breakpoints of a file are these now.
    SetBreakpoints { ticket: Ticket, path: PathBuf, wanted: Vec<Wanted> },
    /// Any other request.
    Request { ticket: Ticket, command: &'static str, arguments: Value },
    /// Let a thread go on.
    Resume { thread_id: i64, how: Resume },
    /// The answer to a request of the adapter.
    Reply { request_seq: i64, command: String, result: Result<Value, String> },
    /// End it.
    Stop,
}

/// What a session wants done, or tells.
#[derive(Debug)]
pub(crate) enum Output {
    /// Send this message.
    Send(Value),
    /// The answer to [`Input::Request`], or that of [`Input::SetBreakpoints`] without a body.
    Answer { ticket: Ticket, result: Result<Value, String> },
    /// What the adapter made of one of our breakpoints.
    Bound { id: i64, binding: Binding },
    /// The program goes on: frames and references are void.
    Resumed,
    /// A resume was refused; the program is still stopped.
    ResumeRefused { thread_id: i64, message: String },
    /// The program stopped.
    Stopped(Box<Captured>),
    /// The program, a log point or the debugger printed something.
    Printed(String),
    /// The adapter wants a child session.
    StartChild { request_seq: i64, request: String, configuration: Value },
    /// The adapter wants a program run in a terminal.
    RunInTerminal { request_seq: i64, arguments: Value },
    /// The session is over; nothing follows.
    Ended(End),
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) exit_code: Option<i64>,
    pub(crate) how: Ending,
}

/// See [`End`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The program ended.
    Plain,
    /// We were asked to end it.
    Asked,
    /// It never began, for this reason.
    NotStarted(String),
    /// The adapter went away.
    Lost(String),
}

/// What a request was sent for.
#[derive(Debug)]
enum Purpose {
    Initialize,
    Start,
    Breakpoints { ids: Vec<i64>, ticket: Option<Ticket> },
    Exceptions,
    ConfigurationDone,
    Resume { thread_id: i64 },
    Capture { capture: u64, step: Step },
    Ticket(Ticket),
    Disconnect,
    Nothing,
}

/// Where the `launch` or `attach` request stands.
#[derive(Debug, PartialEq, Eq)]
enum Started {
    NotYet,
    Yes,
}

/// Which threads are stopped.
#[derive(Clone, Debug, Default)]
struct StoppedThreads {
    all: bool,
    threads: BTreeSet<i64>,
}

/// One debug session.
#[derive(Debug)]
pub(crate) struct Session {
    adapter: &'static Adapter,
    kind: StartKind,
    arguments: Value,
    no_debug: bool,
    /// The adapter serves this session only. A shared one must not be told farewell after `terminated`: debugpy's
    /// dies, with all its sessions, when the connection goes before its answer is out.
    owns_adapter: bool,
    /// Evaluated at the first stop; see [`Adapter::attach_tuning`].
    tuning: Option<&'static str>,
    phase: Phase,
    last_seq: i64,
    pending: BTreeMap<i64, Purpose>,
    capabilities: Map<String, Value>,
    started: Started,
    initialized: bool,
    /// Answers that are awaited before `configurationDone`.
    n_configuring: usize,
    wanted: BTreeMap<PathBuf, Vec<Wanted>>,
    /// The adapter's id of a breakpoint -> ours. 0 is an id.
    ours: BTreeMap<i64, i64>,
    stopped: StoppedThreads,
    /// A `continued` for a resume of ours has not come yet; it may come after the next stop and is void then.
    owes_continued: bool,
    captures: Vec<Capture>,
    last_capture: u64,
    last_thread: i64,
    exit_code: Option<i64>,
    /// `terminated` came, and `exited` may still.
    terminated: bool,
    deadline: Option<(Instant, Ending)>,
    outputs: VecDeque<Output>,
}

impl Session {
    /// A session that has not begun, with the breakpoints there are.
    pub(crate) fn new(
        plan: &Plan,
        tuning: Option<&'static str>,
        wanted: BTreeMap<PathBuf, Vec<Wanted>>,
    ) -> Self {
        Self {
            adapter: plan.adapter,
            kind: plan.kind,
            arguments: plan.arguments.clone(),
            no_debug: plan.no_debug,
            owns_adapter: matches!(plan.reach, Reach::Stdio(_)),
            tuning,
            phase: Phase::Starting,
            last_seq: 0,
            pending: BTreeMap::new(),
            capabilities: Map::new(),
            started: Started::NotYet,
            initialized: false,
            n_configuring: 0,
            wanted,
            ours: BTreeMap::new(),
            stopped: StoppedThreads::default(),
            owes_continued: false,
            captures: Vec::new(),
            last_capture: 0,
            last_thread: 1,
            exit_code: None,
            terminated: false,
            deadline: None,
            outputs: VecDeque::new(),
        }
    }

    /// Takes an input; afterwards drain [`Session::poll_output`].
    pub(crate) fn handle(&mut self, now: Instant, input: Input) {
        if self.phase == Phase::Terminated {
            if let Input::SetBreakpoints { ticket, .. } | Input::Request { ticket, .. } = input {
                let result = Err("the session has ended".to_owned());
                self.outputs.push_back(Output::Answer { ticket, result });
            }
            return;
        }
        match input {
            Input::Connected => self.on_connected(),
            Input::Message(Incoming::Response(response)) => self.on_response(now, &response),
            Input::Message(Incoming::Event { event, body }) => self.on_event(now, &event, body),
            Input::Message(Incoming::Request { seq, command, arguments }) => {
                self.on_request(seq, command, arguments);
            }
            Input::Closed { how } => self.on_closed(how),
            Input::SetBreakpoints { ticket, path, wanted } => self.on_breakpoints(ticket, path, wanted),
            Input::Request { ticket, command, arguments } => {
                self.send(command, arguments, Purpose::Ticket(ticket));
            }
            Input::Resume { thread_id, how } => self.on_resume(thread_id, how),
            Input::Reply { request_seq, command, result } => self.reply(request_seq, command, result),
            Input::Stop => self.on_stop(now),
        }
    }

    /// To be called when [`Session::poll_timeout`] has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some((at, _)) = &self.deadline
            && *at <= now
            && let Some((_, ending)) = self.deadline.take()
        {
            self.end(ending);
        }
        let due: Vec<u64> = self
            .captures
            .iter()
            .filter(|capture| capture.deadline <= now)
            .map(|capture| capture.id)
            .collect();
        for id in due {
            self.finish_capture(id);
        }
    }

    /// When to call [`Session::handle_timeout`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let captures = self.captures.iter().map(|capture| capture.deadline);
        captures.chain(self.deadline.iter().map(|(at, _)| *at)).min()
    }

    /// The next thing to do.
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Where the session stands.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether this thread is known to be stopped; `None` when only the adapter can tell.
    pub(crate) fn is_stopped(&self, thread_id: i64) -> Option<bool> {
        if self.phase != Phase::Stopped {
            return Some(false);
        }
        if self.stopped.threads.contains(&thread_id) {
            return Some(true);
        }
        None
    }

    /// Whether the surroundings of a stop are still being fetched.
    pub(crate) fn is_capturing(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Whether a thread that the adapter knows is stopped.
    pub(crate) fn all_stopped(&self) -> bool {
        self.stopped.all
    }

    fn on_connected(&mut self) {
        let arguments = json!({
            "clientID": "baton",
            "clientName": "Baton",
            "adapterID": self.adapter.types[0],
            "locale": "en-US",
            "linesStartAt1": true,
            "columnsStartAt1": true,
            "pathFormat": "path",
            "supportsVariableType": true,
            "supportsVariablePaging": true,
            "supportsRunInTerminalRequest": true,
            "supportsArgsCanBeInterpretedByShell": false,
            "supportsStartDebuggingRequest": true,
            "supportsMemoryReferences": true,
        });
        self.send("initialize", arguments, Purpose::Initialize);
    }

    fn on_response(&mut self, now: Instant, response: &Response) {
        let Some(purpose) = self.pending.remove(&response.request_seq) else { return };
        match purpose {
            Purpose::Initialize if response.success => {
                self.merge_capabilities(&response.body);
                let arguments = self.arguments.clone();
                // Its answer may come only after `configurationDone`: it is never awaited first.
                self.send(self.kind.command(), arguments, Purpose::Start);
            }
            Purpose::Initialize => self.end(Ending::NotStarted(response.error_text())),
            Purpose::Start if response.success => self.on_started(),
            Purpose::Start => self.end(Ending::NotStarted(response.error_text())),
            Purpose::Breakpoints { ids, ticket } => self.on_breakpoints_answer(response, &ids, ticket),
            Purpose::Exceptions => self.drive_configuration(),
            Purpose::ConfigurationDone if !response.success && self.started == Started::NotYet => {
                // The cause can be in the answer to the start request, which comes a little later.
                let symptom = Ending::NotStarted(response.error_text());
                self.deadline = Some((now + START_ERROR_GRACE, symptom));
            }
            Purpose::Resume { thread_id } => self.on_resume_answer(response, thread_id),
            Purpose::Capture { capture, step } => self.on_captured(capture, step, response),
            Purpose::Ticket(ticket) => {
                let result =
                    if response.success { Ok(response.body.clone()) } else { Err(response.error_text()) };
                self.outputs.push_back(Output::Answer { ticket, result });
            }
            Purpose::Disconnect => self.end(Ending::Asked),
            Purpose::ConfigurationDone | Purpose::Nothing => {}
        }
    }

    fn on_started(&mut self) {
        self.started = Started::Yes;
        // Without debugging some adapters skip the configuration altogether.
        if self.no_debug && !self.initialized && self.phase == Phase::Starting {
            self.phase = Phase::Running;
        }
    }

    fn on_event(&mut self, now: Instant, event: &str, body: Value) {
        match event {
            "initialized" => self.on_initialized(),
            "capabilities" => self.merge_capabilities(&body),
            "stopped" => self.on_stopped(now, body),
            "continued" => self.on_continued(&body),
            "output" => {
                if body["category"] != "telemetry"
                    && let Some(text) = body["output"].as_str()
                {
                    let is_failure = self.adapter.failure_sign.is_some_and(|sign| text.contains(sign));
                    if is_failure && self.phase == Phase::Starting && self.deadline.is_none() {
                        // The rest of what it has to say follows.
                        let failure = format!("`{}` failed", self.kind.command());
                        self.deadline = Some((now + START_ERROR_GRACE, Ending::NotStarted(failure)));
                    }
                    self.outputs.push_back(Output::Printed(text.to_owned()));
                }
            }
            "breakpoint" => {
                let id = body["breakpoint"]["id"].as_i64().and_then(|id| self.ours.get(&id));
                if let Some(&id) = id
                    && body["reason"] != "removed"
                {
                    let binding = to_binding(&body["breakpoint"]);
                    self.outputs.push_back(Output::Bound { id, binding });
                }
            }
            "exited" => {
                self.exit_code = body["exitCode"].as_i64();
                if self.terminated {
                    self.end(Ending::Plain);
                } else if self.phase != Phase::Terminating {
                    self.deadline = Some((now + TERMINATED_GRACE, Ending::Plain));
                }
            }
            "terminated" => self.on_terminated(now),
            _ => {}
        }
    }

    fn on_initialized(&mut self) {
        // js-debug sends it twice.
        if self.initialized {
            return;
        }
        self.initialized = true;
        self.phase = Phase::Configuring;
        self.n_configuring = 1;
        for path in self.wanted.keys().cloned().collect::<Vec<_>>() {
            self.n_configuring += 1;
            self.send_breakpoints(&path, None);
        }
        let filters: Vec<Value> = self
            .capabilities
            .get("exceptionBreakpointFilters")
            .and_then(Value::as_array)
            .map(|filters| {
                let defaults = filters.iter().filter(|filter| filter["default"] == true);
                defaults.map(|filter| filter["filter"].clone()).collect()
            })
            .unwrap_or_default();
        if let Some((command, arguments)) = self.adapter.extra_request {
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            self.send(command, arguments, Purpose::Nothing);
        }
        self.send("setExceptionBreakpoints", json!({"filters": filters}), Purpose::Exceptions);
    }

    /// One more answer of the configuration came.
    fn drive_configuration(&mut self) {
        self.n_configuring = self.n_configuring.saturating_sub(1);
        if self.n_configuring > 0 || self.phase != Phase::Configuring {
            return;
        }
        self.phase = Phase::Running;
        if self.can("supportsConfigurationDoneRequest") {
            self.send("configurationDone", json!({}), Purpose::ConfigurationDone);
        }
    }

    fn on_breakpoints(&mut self, ticket: Ticket, path: PathBuf, wanted: Vec<Wanted>) {
        let is_served = self.adapter.serves_source(&path) && !self.no_debug;
        if is_served {
            self.wanted.insert(path.clone(), wanted);
        }
        if !is_served || !self.initialized {
            // Told with the configuration, or never.
            self.outputs.push_back(Output::Answer { ticket, result: Ok(Value::Null) });
            return;
        }
        self.send_breakpoints(&path, Some(ticket));
    }

    fn send_breakpoints(&mut self, path: &PathBuf, ticket: Option<Ticket>) {
        let (mut ids, mut sources) = (Vec::new(), Vec::new());
        for wanted in self.wanted.get(path).into_iter().flatten() {
            match wanted.to_source_breakpoint(&self.capabilities, self.adapter.hits) {
                Ok(source) => {
                    ids.push(wanted.id);
                    sources.push(source);
                }
                Err(message) => {
                    let binding = Binding { verified: false, line: None, message: Some(message) };
                    self.outputs.push_back(Output::Bound { id: wanted.id, binding });
                }
            }
        }
        let lines: Vec<Value> = sources.iter().map(|source| source["line"].clone()).collect();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let arguments = json!({
            "source": {"path": path, "name": name},
            "breakpoints": sources,
            "lines": lines,
            "sourceModified": false,
        });
        self.send("setBreakpoints", arguments, Purpose::Breakpoints { ids, ticket });
    }

    fn on_breakpoints_answer(&mut self, response: &Response, ids: &[i64], ticket: Option<Ticket>) {
        if response.success {
            // The list can be shorter than ours: an adapter may leave out what did not change.
            let bound = response.body["breakpoints"].as_array().map(Vec::as_slice).unwrap_or_default();
            for (&id, body) in ids.iter().zip(bound) {
                if let Some(theirs) = body["id"].as_i64() {
                    self.ours.insert(theirs, id);
                }
                self.outputs.push_back(Output::Bound { id, binding: to_binding(body) });
            }
        } else {
            for &id in ids {
                let message = Some(response.error_text());
                let binding = Binding { verified: false, line: None, message };
                self.outputs.push_back(Output::Bound { id, binding });
            }
        }
        match ticket {
            Some(ticket) => self.outputs.push_back(Output::Answer { ticket, result: Ok(Value::Null) }),
            None => self.drive_configuration(),
        }
    }

    fn on_stopped(&mut self, now: Instant, body: Value) {
        if self.phase == Phase::Terminating {
            return;
        }
        if self.phase == Phase::Running {
            self.outputs.push_back(Output::Resumed);
            self.stopped = StoppedThreads::default();
        }
        self.phase = Phase::Stopped;
        let thread_id = body["threadId"].as_i64().unwrap_or(self.last_thread);
        self.last_thread = thread_id;
        self.stopped.threads.insert(thread_id);
        self.stopped.all |= body["allThreadsStopped"].as_bool().unwrap_or(false);
        self.last_capture += 1;
        let capture = self.last_capture;
        let is_exception = body["reason"] == "exception";
        self.captures.push(Capture::new(capture, thread_id, body, now + CAPTURE_GRACE));
        let levels = capture::MAX_FRAMES;
        let arguments = json!({"threadId": thread_id, "startFrame": 0, "levels": levels});
        self.send_capture("stackTrace", arguments, capture, Step::Stack);
        if is_exception && self.can("supportsExceptionInfoRequest") {
            self.send_capture("exceptionInfo", json!({"threadId": thread_id}), capture, Step::Exception);
        }
    }

    fn send_capture(&mut self, command: &'static str, arguments: Value, capture: u64, step: Step) {
        if let Some(capture) = self.captures.iter_mut().find(|known| known.id == capture) {
            capture.n_open += 1;
        }
        self.send(command, arguments, Purpose::Capture { capture, step });
    }

    fn on_captured(&mut self, id: u64, step: Step, response: &Response) {
        let Some(capture) = self.captures.iter_mut().find(|capture| capture.id == id) else { return };
        capture.n_open -= 1;
        let body = if response.success { response.body.clone() } else { Value::Null };
        let next = capture.take(step, body);
        if let Some((command, arguments, step)) = next {
            if step == Step::Scopes
                && let Some(expression) = self.tuning.take()
            {
                let frame_id = arguments["frameId"].clone();
                let tuning = json!({"expression": expression, "frameId": frame_id, "context": "watch"});
                self.send("evaluate", tuning, Purpose::Nothing);
            }
            self.send_capture(command, arguments, id, step);
        }
        if self.captures.iter().any(|capture| capture.id == id && capture.n_open == 0) {
            self.finish_capture(id);
        }
    }

    fn finish_capture(&mut self, id: u64) {
        let Some(at) = self.captures.iter().position(|capture| capture.id == id) else { return };
        let captured = self.captures.remove(at).into_captured(&self.ours);
        self.outputs.push_back(Output::Stopped(Box::new(captured)));
    }

    fn on_resume(&mut self, thread_id: i64, how: Resume) {
        let command = match how {
            Resume::Continue => "continue",
            Resume::StepOver => "next",
            Resume::StepInto => "stepIn",
            Resume::StepOut => "stepOut",
        };
        self.phase = Phase::Running;
        self.owes_continued = true;
        self.last_thread = thread_id;
        self.captures.clear();
        self.send(command, json!({"threadId": thread_id}), Purpose::Resume { thread_id });
    }

    fn on_resume_answer(&mut self, response: &Response, thread_id: i64) {
        if response.success {
            // A stop can overtake the answer.
            if self.phase == Phase::Running {
                self.outputs.push_back(Output::Resumed);
            }
        } else if self.phase == Phase::Running {
            self.phase = Phase::Stopped;
            let message = response.error_text();
            self.outputs.push_back(Output::ResumeRefused { thread_id, message });
        }
    }

    fn on_continued(&mut self, body: &Value) {
        if std::mem::take(&mut self.owes_continued) || self.phase != Phase::Stopped {
            return;
        }
        // Somebody else let it go on.
        let all = body["allThreadsContinued"].as_bool().unwrap_or(true);
        match body["threadId"].as_i64() {
            Some(thread_id) if !all => {
                self.stopped.threads.remove(&thread_id);
            }
            _ => self.stopped = StoppedThreads::default(),
        }
        if self.stopped.threads.is_empty() {
            self.phase = Phase::Running;
            self.captures.clear();
            self.outputs.push_back(Output::Resumed);
        }
    }

    fn on_terminated(&mut self, now: Instant) {
        let may_exit_code_come =
            self.exit_code.is_none() && self.adapter.tells_exit_code && self.kind == StartKind::Launch;
        if self.phase == Phase::Terminating {
            // The answer to `disconnect` is still to come.
        } else if self.phase == Phase::Starting && self.exit_code.is_none() {
            // The reason is among what was printed.
            self.end(Ending::NotStarted("the debug adapter gave up before the program began".to_owned()));
        } else if may_exit_code_come {
            self.terminated = true;
            self.deadline = Some((now + EXIT_CODE_GRACE, Ending::Plain));
        } else {
            self.end(Ending::Plain);
        }
    }

    fn on_closed(&mut self, how: String) {
        let ending = match (self.phase, self.deadline.take()) {
            (_, Some((_, ending))) => ending,
            (Phase::Terminating, _) => Ending::Asked,
            (Phase::Starting | Phase::Configuring, _) => {
                Ending::NotStarted(format!("the debug adapter {how}"))
            }
            _ if self.exit_code.is_some() => Ending::Plain,
            _ => Ending::Lost(how),
        };
        self.end(ending);
    }

    fn on_request(&mut self, request_seq: i64, command: String, mut arguments: Value) {
        match command.as_str() {
            "startDebugging" => {
                let request = arguments["request"].as_str().unwrap_or("launch").to_owned();
                let configuration = arguments["configuration"].take();
                self.outputs.push_back(Output::StartChild { request_seq, request, configuration });
            }
            "runInTerminal" => self.outputs.push_back(Output::RunInTerminal { request_seq, arguments }),
            _ => self.reply(request_seq, command, Err("not supported".to_owned())),
        }
    }

    fn on_stop(&mut self, now: Instant) {
        if self.phase == Phase::Starting && self.last_seq == 0 {
            self.end(Ending::Asked);
        } else if self.phase != Phase::Terminating {
            self.phase = Phase::Terminating;
            self.captures.clear();
            self.deadline = Some((now + STOP_GRACE, Ending::Asked));
            let arguments = self.disconnect_arguments();
            self.send("disconnect", arguments, Purpose::Disconnect);
        }
    }

    /// A launched program ends with its session; one that was attached to lives on.
    fn disconnect_arguments(&self) -> Value {
        json!({"restart": false, "terminateDebuggee": self.kind == StartKind::Launch})
    }

    fn end(&mut self, how: Ending) {
        let is_farewell_due = self.owns_adapter && self.phase != Phase::Terminating && self.last_seq > 0;
        if is_farewell_due && !matches!(how, Ending::Lost(_)) {
            let arguments = self.disconnect_arguments();
            self.send("disconnect", arguments, Purpose::Nothing);
        }
        self.phase = Phase::Terminated;
        self.deadline = None;
        self.captures.clear();
        for purpose in std::mem::take(&mut self.pending).into_values() {
            if let Purpose::Ticket(ticket) | Purpose::Breakpoints { ticket: Some(ticket), .. } = purpose {
                let result = Err("the session has ended".to_owned());
                self.outputs.push_back(Output::Answer { ticket, result });
            }
        }
        self.outputs.push_back(Output::Ended(End { exit_code: self.exit_code, how }));
    }

    fn merge_capabilities(&mut self, body: &Value) {
        // The `capabilities` event wraps them; the answer to `initialize` does not.
        if let Some(more) = body.get("capabilities").unwrap_or(body).as_object() {
            self.capabilities.extend(more.clone());
        }
    }

    fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).and_then(Value::as_bool).unwrap_or(false)
    }

    fn send(&mut self, command: &'static str, arguments: Value, purpose: Purpose) {
        self.last_seq += 1;
        self.pending.insert(self.last_seq, purpose);
        let request = Request { seq: self.last_seq, kind: "request", command, arguments };
        self.outputs.push_back(Output::Send(json!(request)));
    }

    fn reply(&mut self, request_seq: i64, command: String, result: Result<Value, String>) {
        self.last_seq += 1;
        let (success, body, message) = match result {
            Ok(body) => (true, body, None),
            Err(message) => (false, Value::Null, Some(message)),
        };
        let seq = self.last_seq;
        let reply = Reply { seq, kind: "response", request_seq, success, command, message, body };
        self.outputs.push_back(Output::Send(json!(reply)));
    }
}

fn to_binding(body: &Value) -> Binding {
    Binding {
        verified: body["verified"].as_bool().unwrap_or(false),
        line: body["line"].as_u64().and_then(|line| u32::try_from(line).ok()),
        message: body["message"].as_str().map(str::to_owned),
    }
}
