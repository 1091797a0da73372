//! CORE: one debug session as a state machine: messages and wishes in, messages and facts out. No IO, no clock.
//!
//! Starting -> Configuring -> Running <-> Stopped -> Terminating -> Terminated.
//! A stop is told only once its stack and variables were fetched, so that whoever waits gets all of it at once.

//!
//! | module | what |
//! |---|---|
//! | [`plan`] | what it is to do |
//! | `configure` | from the first message to the running program; breakpoints of all kinds |
//! | [`motion`] | stops, and how a stopped program goes on |
//! | [`capture`] | what is fetched at a stop before it is told |
//! | `ending` | how a session ends |
//! | `traceback` | what Python prints of an exception, without the debugger's frames |

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::adapter::Adapter;
use crate::breakpoints::hits::HITS_KEY;
use crate::breakpoints::triggers::{WantedOfKind, WantedTrigger};
use crate::breakpoints::{Binding, Wanted, WantedAll};
use crate::dap::body::{self, read};
use crate::dap::{Incoming, Reply, Request, Response};
use crate::session::capture::{Capture, Captured, Step};
use crate::session::motion::{Asked, Motion, StoppedThreads};
use crate::session::plan::{Link, SessionPlan, StartKind};
use crate::session::traceback::Traceback;
use crate::types::Phase;
use crate::types::control::{Category, PendingPause};
use crate::types::triggers::TriggerKind;

pub(crate) mod capture;
mod configure;
mod ending;
pub(crate) mod motion;
pub(crate) mod plan;
#[cfg(test)]
mod tests;
mod traceback;

/// How long a program whose end can be lost says nothing before it is asked for.
const END_SILENCE: Duration = Duration::from_secs(1);
/// How long the real cause of a failed start may come after its symptom.
const START_ERROR_GRACE: Duration = Duration::from_millis(150);
/// How long `terminated` may come after `exited`.
const TERMINATED_GRACE: Duration = Duration::from_secs(2);
/// What is told of a question to a session that is over, or ends before it is answered.
const OVER: &str = "the session has ended";

/// How long after the program goes on a question that was asked before may still be answered: some adapters forget it.
const OVERTAKEN_GRACE: Duration = Duration::from_secs(4);

/// Names a request of the engine; its answer carries it.
pub(crate) type Ticket = u64;

/// What a session is told.
#[derive(Debug)]
pub(crate) enum Input {
    /// The adapter is reached; begin.
    Connected,
    /// A message of the adapter.
    Message(Incoming),
    /// The program ran in a terminal of ours, and ended.
    TerminalEnded { exit_code: Option<i64> },
    /// The connection or the adapter ended.
    Closed { how: String },
    /// The breakpoints of a file are these now.
    SetBreakpoints { ticket: Ticket, path: PathBuf, wanted: Vec<Wanted> },
    /// The triggers of a kind are these now.
    SetTriggers { ticket: Ticket, wanted: WantedOfKind },
    /// Any other request.
    Request { ticket: Ticket, command: Cow<'static, str>, arguments: Value },
    /// Nobody wants the answer to that one any more.
    Cancel { ticket: Ticket },
    /// Let a thread go on.
    Resume { thread_id: i64, how: Motion },
    /// Stop a running thread.
    Pause { thread_id: i64 },
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
    /// The answer to [`Input::Request`], or that of [`Input::SetBreakpoints`] and the like without a body.
    Answer { ticket: Ticket, result: Result<Value, String> },
    /// What the adapter made of one of our breakpoints.
    Bound { id: i64, binding: Binding },
    /// The program goes on, or one thread of it: frames and references are void.
    Resumed { thread_id: Option<i64> },
    /// A resume was refused; the program is still stopped.
    ResumeRefused { thread_id: i64, message: String },
    /// The program cannot be paused.
    PauseRefused { message: String },
    /// The program has one more thread.
    ThreadStarted,
    /// The program stopped.
    Stopped(Box<Captured>),
    /// The program, a log point or the debugger printed something.
    Printed(Category, String),
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
    /// The signal that ended the program, when it stopped for one last.
    pub(crate) signal: Option<String>,
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
    ConfigurationDone,
    Resume { thread_id: i64, before: StoppedThreads },
    Pause,
    Capture { capture: u64, step: Step },
    Ticket(Ticket),
    Disconnect,
    Nothing,
}

impl Purpose {
    /// Telling breakpoints, as the configuration or for a verb.
    fn of_breakpoints(ticket: Option<Ticket>) -> Self {
        Self::Breakpoints { ids: Vec::new(), ticket }
    }
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
    /// Evaluated at the first stop; see [`Adapter::attach_tuning`] and [`Adapter::limits`].
    tuning: Vec<&'static str>,
    phase: Phase,
    last_seq: i64,
    pending: BTreeMap<i64, Purpose>,
    capabilities: Map<String, Value>,
    /// When the `launch` or `attach` request was answered.
    started: Option<Instant>,
    initialized: bool,
    /// Answers that are awaited before `configurationDone`.
    n_configuring: usize,
    wanted: BTreeMap<PathBuf, Vec<Wanted>>,
    /// Without an entry for exceptions, the adapter's own choice counts.
    triggers: BTreeMap<TriggerKind, Vec<WantedTrigger>>,
    /// Function breakpoints of our own, where the program fails.
    crash_functions: Vec<WantedTrigger>,
    /// The adapter's id of a breakpoint -> ours. 0 is an id.
    ours: BTreeMap<i64, i64>,
    stopped: StoppedThreads,
    /// Threads that stayed stopped when another one was stepped: that one may wait for them.
    left_behind: BTreeSet<i64>,
    /// A resume that was sent and not confirmed: its thread, and whether it is all that goes on.
    unconfirmed: Option<(i64, bool)>,
    /// A thread to pause once the program runs: before that, a pause is taken and forgotten.
    pause_wanted: Option<i64>,
    /// A pause was sent that no stop has followed yet.
    pending_pause: Option<PendingPause>,
    /// What the program was last asked to do.
    asked: Asked,
    /// The function at whose beginning the program is to stop once.
    entry_function: Option<String>,
    /// The signal of the last stop.
    signal: Option<String>,
    /// The process id of the program.
    pid: Option<i64>,
    /// A `continued` for a resume of ours has not come yet; it may come after the next stop and is void then.
    owes_continued: bool,
    captures: Vec<Capture>,
    /// Where the program's own files are.
    folders: Vec<PathBuf>,
    last_capture: u64,
    traceback: Traceback,
    last_thread: i64,
    exit_code: Option<i64>,
    /// The program runs in a terminal of ours, whose end tells its exit code.
    runs_in_terminal: bool,
    /// The adapter said something for its own part.
    has_spoken: bool,
    /// `terminated` came, and `exited` may still.
    terminated: bool,
    deadline: Option<(Instant, Ending)>,
    /// When to give up on the engine's requests up to this `seq`, which a resume has overtaken.
    overtaken: VecDeque<(Instant, i64)>,
    /// When to ask for the pause of this thread again, of an adapter that loses some.
    unheard_pause: Option<(Instant, i64)>,
    /// When to ask an adapter that loses ends whether the program has ended.
    silence: Option<Instant>,
    /// That was asked, and what is printed then has not come.
    awaits_status: bool,
    outputs: VecDeque<Output>,
}

impl Session {
    /// A session that has not begun, with the breakpoints there are, in a window of these folders.
    pub(crate) fn new(plan: &SessionPlan, link: Link, wanted: WantedAll, folders: Vec<PathBuf>) -> Self {
        Self {
            adapter: plan.adapter,
            kind: plan.kind,
            arguments: plan.arguments.clone(),
            no_debug: plan.no_debug,
            owns_adapter: link == Link::Spawned,
            tuning: [plan.adapter.attach_tuning.as_deref().filter(|_| link == Link::Connected)]
                .into_iter()
                .chain([plan.adapter.limits.as_deref()])
                .flatten()
                .collect(),
            phase: Phase::Starting,
            last_seq: 0,
            pending: BTreeMap::new(),
            capabilities: Map::new(),
            started: None,
            initialized: false,
            n_configuring: 0,
            wanted: wanted.lines,
            triggers: wanted.triggers,
            crash_functions: plan.crash_functions.iter().map(|name| WantedTrigger::crash(name)).collect(),
            ours: BTreeMap::new(),
            stopped: StoppedThreads::default(),
            left_behind: BTreeSet::new(),
            unconfirmed: None,
            pause_wanted: None,
            pending_pause: None,
            asked: Asked::Start { stops_at_entry: motion::stops_at_entry(plan) },
            entry_function: plan.entry_function.clone(),
            signal: None,
            pid: None,
            owes_continued: false,
            captures: Vec::new(),
            folders,
            last_capture: 0,
            traceback: Traceback::default(),
            last_thread: 1,
            exit_code: None,
            runs_in_terminal: false,
            has_spoken: false,
            terminated: false,
            deadline: None,
            overtaken: VecDeque::new(),
            unheard_pause: None,
            silence: None,
            awaits_status: false,
            outputs: VecDeque::new(),
        }
    }

    /// Takes an input; afterwards drain [`Session::poll_output`].
    pub(crate) fn handle(&mut self, now: Instant, input: Input) {
        if self.phase == Phase::Terminated {
            if let Input::SetBreakpoints { ticket, .. }
            | Input::SetTriggers { ticket, .. }
            | Input::Request { ticket, .. } = input
            {
                let result = Err(OVER.to_owned());
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
            Input::TerminalEnded { exit_code } => self.on_terminal_ended(exit_code),
            Input::Closed { how } => self.on_closed(how),
            Input::SetBreakpoints { ticket, path, wanted } => self.on_breakpoints(ticket, path, wanted),
            Input::SetTriggers { ticket, wanted } => self.on_triggers(ticket, wanted),
            Input::Request { ticket, command, arguments } => {
                self.send(command, arguments, Purpose::Ticket(ticket));
            }
            Input::Cancel { ticket } => self.cancel(ticket),
            Input::Resume { thread_id, how } => self.on_resume(now, thread_id, how),
            Input::Pause { thread_id } => self.on_pause(now, thread_id),
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
        while let Some((_, last_seq)) = self.overtaken.pop_front_if(|(at, _)| *at <= now) {
            self.give_up_asking(last_seq);
        }
        self.pause_again(now);
        self.ask_for_the_end(now);
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
        let overtaken = self.overtaken.front().map(|(at, _)| *at);
        let pause = self.unheard_pause.map(|(at, _)| at);
        let deadline = self.deadline.iter().map(|(at, _)| *at);
        captures.chain(deadline).chain(overtaken).chain(pause).chain(self.silence).min()
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

    /// A thread that a step of another one left stopped.
    pub(crate) fn left_behind(&self) -> Option<i64> {
        self.left_behind.first().copied()
    }

    /// The thread that stopped or was resumed last.
    pub(crate) fn last_thread(&self) -> i64 {
        self.last_thread
    }

    /// A pause that no stop has followed yet.
    pub(crate) fn pending_pause(&self) -> Option<PendingPause> {
        self.pending_pause.filter(|_| self.phase == Phase::Running)
    }

    /// Whether the adapter said that the program runs.
    pub(crate) fn is_started(&self) -> bool {
        self.started.is_some()
    }

    /// Whether it ever stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        self.last_capture > 0
    }

    /// What the adapter can do.
    pub(crate) fn capabilities(&self) -> &Map<String, Value> {
        &self.capabilities
    }

    /// Whether the adapter still waits to be told that everything is configured.
    pub(crate) fn needs_configuration_done(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Configuring)
            && self.can("supportsConfigurationDoneRequest")
    }

    /// Process id of the program, when told.
    pub(crate) fn pid(&self) -> Option<i64> {
        self.pid
    }

    /// Exit code of the program, when told.
    pub(crate) fn exit_code(&self) -> Option<i64> {
        self.exit_code
    }

    /// Whether the adapter has a capability.
    pub(crate) fn can(&self, capability: &str) -> bool {
        self.capabilities.get(capability).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether the surroundings of a stop are still being fetched.
    pub(crate) fn is_capturing(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Whether a thread that the adapter knows is stopped.
    pub(crate) fn all_stopped(&self) -> bool {
        self.stopped.all
    }

    fn cancel(&mut self, ticket: Ticket) {
        let is_meant = |purpose: &Purpose| matches!(purpose, Purpose::Ticket(known) if *known == ticket);
        if let Some((&seq, _)) = self.pending.iter().find(|(_, purpose)| is_meant(purpose)) {
            self.send("cancel", json!({"requestId": seq}), Purpose::Nothing);
        }
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
            Purpose::Start if response.success => self.on_started(now),
            Purpose::Start => self.end(Ending::NotStarted(response.error_text())),
            Purpose::Breakpoints { ids, ticket } => self.on_breakpoints_answer(response, &ids, ticket),
            Purpose::ConfigurationDone if !response.success && self.started.is_none() => {
                // The cause can be in the answer to the start request, which comes a little later.
                let symptom = Ending::NotStarted(response.error_text());
                self.deadline = Some((now + START_ERROR_GRACE, symptom));
            }
            Purpose::Resume { thread_id, before } => self.on_resume_answer(now, response, thread_id, before),
            Purpose::Pause if !response.success => {
                self.pending_pause = None;
                self.outputs.push_back(Output::PauseRefused { message: response.error_text() });
            }
            Purpose::Capture { capture, step } => self.on_captured(capture, step, response),
            Purpose::Ticket(ticket) => {
                let result = match response.success {
                    true => Ok(response.body.clone()),
                    // Of what is broken off adapters tell how that looks from inside.
                    false if self.phase == Phase::Terminating => Err(OVER.to_owned()),
                    false => Err(response.error_text()),
                };
                self.outputs.push_back(Output::Answer { ticket, result });
            }
            Purpose::Disconnect => self.end(Ending::Asked),
            Purpose::Pause => {
                self.pending_pause = self.pending_pause.map(|_| PendingPause::Taken);
            }
            Purpose::ConfigurationDone | Purpose::Nothing => {}
        }
    }

    fn on_event(&mut self, now: Instant, event: &str, body: Value) {
        match event {
            "initialized" => self.on_initialized(),
            "capabilities" => self.merge_capabilities(&body),
            "stopped" => self.on_stopped(now, read(&body)),
            "continued" => self.on_continued(&read(&body)),
            "output" => self.on_output(now, read(&body)),
            "thread" if read::<body::ThreadEvent>(&body).reason.as_deref() == Some("started") => {
                self.outputs.push_back(Output::ThreadStarted);
            }
            "process" => self.pid = read::<body::Process>(&body).system_process_id.or(self.pid),
            "breakpoint" => self.on_breakpoint_event(&body),
            "exited" => {
                let body::Exited { exit_code, signal } = read(&body);
                self.exit_code = exit_code;
                if let Some(signal) = signal {
                    self.signal = Some(signal).filter(|signal| !signal.is_empty());
                }
                if self.terminated && !self.runs_in_terminal {
                    self.end(Ending::Plain);
                } else if !self.terminated && self.phase != Phase::Terminating {
                    self.deadline = Some((now + TERMINATED_GRACE, Ending::Plain));
                }
            }
            "terminated" => self.on_terminated(now),
            _ => {}
        }
    }

    fn on_output(&mut self, now: Instant, event: body::Output) {
        let category = match event.category.as_deref() {
            Some("telemetry") => return,
            Some("stdout") => Category::Stdout,
            Some("stderr") => Category::Stderr,
            _ => Category::Console,
        };
        let Some(mut text) = event.output else { return };
        if text.contains(HITS_KEY) {
            let wanted = self.wanted.values().flatten();
            text = wanted.fold(text, |text, wanted| wanted.with_own_condition(&text));
        }
        if category == Category::Console && self.is_about_the_end(&text) {
            return;
        }
        self.silence = self.end_may_be_lost(category).then(|| now + END_SILENCE).or(self.silence);
        // Where the program itself cannot print it. It may have been started once more since the last one.
        if let Some(sign) = self.adapter.exit_code_sign.as_ref().filter(|_| category == Category::Console) {
            self.exit_code = ending::code_after(sign, &text).or(self.exit_code);
        }
        let is_failure = self.adapter.failure_sign.as_deref().is_some_and(|sign| text.contains(sign));
        if is_failure && self.phase == Phase::Starting && self.deadline.is_none() {
            // The rest of what it has to say follows.
            let failure = format!("`{}` failed", self.kind.command());
            self.deadline = Some((now + START_ERROR_GRACE, Ending::NotStarted(failure)));
        }
        let is_log = self.adapter.logs_to_stdout && category == Category::Stdout && self.is_log(&text);
        let category = if is_log { Category::Console } else { category };
        if let Some(text) = self.worth_telling(category, text) {
            self.outputs.push_back(Output::Printed(category, text));
        }
        let is_awaited = self.adapter.exit_code_sign.is_some() && !self.runs_in_terminal;
        if self.terminated && self.exit_code.is_some() && is_awaited {
            self.end(Ending::Plain);
        }
    }

    /// Whether text begins as what a log point logs.
    fn is_log(&self, text: &str) -> bool {
        let wishes = self.wanted.values().flatten().filter_map(|wanted| wanted.wish.log_message.as_deref());
        let mut fixed = wishes.filter_map(|message| message.split('{').next());
        text.ends_with('\n') && fixed.any(|fixed| !fixed.trim().is_empty() && text.starts_with(fixed))
    }

    /// What was printed, without what tells nothing.
    fn worth_telling(&mut self, category: Category, text: String) -> Option<String> {
        if category == Category::Stderr {
            let text = self.adapter.without_stderr_noise(text);
            let text = self.traceback.without_own(text, &self.adapter.traceback_noise);
            return Some(text).filter(|text| !text.is_empty());
        }
        if category == Category::Console && !std::mem::replace(&mut self.has_spoken, true) {
            let program = self.arguments["program"].as_str().and_then(|path| path.rsplit('/').next());
            if self.adapter.tells_command_line && program.is_some_and(|name| text.contains(name)) {
                return None;
            }
        }
        // Some speak in the program's name, but before it begins.
        let is_adapters = category == Category::Console
            || (category == Category::Stdout && matches!(self.phase, Phase::Starting | Phase::Configuring));
        if is_adapters && self.adapter.is_noise(&text) {
            return None;
        }
        let is_stdout = category == Category::Stdout;
        Some(if is_stdout { self.adapter.without_stdout_noise(text) } else { text })
            .filter(|text| !text.is_empty())
    }

    fn on_request(&mut self, request_seq: i64, command: String, mut arguments: Value) {
        match command.as_str() {
            "startDebugging" => {
                let request = arguments["request"].as_str().unwrap_or("launch").to_owned();
                let configuration = arguments["configuration"].take();
                self.outputs.push_back(Output::StartChild { request_seq, request, configuration });
            }
            // Who was there already may be another machine's, and has nothing to start here.
            "runInTerminal" if !self.owns_adapter => {
                self.reply(request_seq, command, Err("not by an adapter that was attached to".to_owned()));
            }
            "runInTerminal" => {
                self.runs_in_terminal = true;
                self.outputs.push_back(Output::RunInTerminal { request_seq, arguments });
            }
            _ => self.reply(request_seq, command, Err("not supported".to_owned())),
        }
    }

    fn merge_capabilities(&mut self, body: &Value) {
        // The `capabilities` event wraps them; the answer to `initialize` does not.
        if let Some(more) = body.get("capabilities").unwrap_or(body).as_object() {
            self.capabilities.extend(more.clone());
        }
    }

    fn send(&mut self, command: impl Into<Cow<'static, str>>, arguments: Value, purpose: Purpose) {
        self.last_seq += 1;
        self.pending.insert(self.last_seq, purpose);
        let command = command.into();
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
