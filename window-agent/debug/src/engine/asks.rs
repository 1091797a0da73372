//! What an adapter is asked about a program: threads, stacks, scopes, variables, expressions, anything.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::expression::{Expression, Otherwise};
use super::moves::gate_error;
use super::waits::{Wait, WaitId};
use super::{Engine, Live, Reply};
use crate::breakpoints::SessionKey;
use crate::dap::body::{self, read};
use crate::error::DebugError;
use crate::from_dap;
use crate::handles::Owner;
use crate::pages::{self, Deeper, Page};
use crate::session::{Input, Ticket};
use crate::tuples;
use crate::types::control::{Request, ResumeWish, StackTrace, Thread};
use crate::types::{Evaluate, Evaluated, MAX_VALUE_LEN, Paging, Phase, Scope, SessionId, Variables};
use crate::values::{MAX_PARTS, Wordless};

/// How much later than its caller is told an adapter ends an expression.
const MARGIN: Duration = Duration::from_millis(50);
/// Requests that belong to a verb of their own: sent past it, the session would lose its thread.
const OF_VERBS: [&str; 20] = [
    "initialize",
    "launch",
    "attach",
    "restart",
    "configurationDone",
    "disconnect",
    "terminate",
    "setBreakpoints",
    "setFunctionBreakpoints",
    "setInstructionBreakpoints",
    "setDataBreakpoints",
    "setExceptionBreakpoints",
    "continue",
    "next",
    "stepIn",
    "stepOut",
    "stepBack",
    "reverseContinue",
    "goto",
    "restartFrame",
];

/// What an answer of an adapter is for.
pub(super) enum Asked {
    Breakpoints {
        gather: u64,
    },
    Threads {
        wait: Wait,
        thread_id: i64,
        wish: ResumeWish,
    },
    ThreadsToPause {
        key: SessionKey,
        /// `None` when the caller went on: the pause stands all the same.
        wait: Option<Wait>,
    },
    ListThreads {
        key: SessionKey,
        reply: Reply<Vec<Thread>>,
    },
    StackTrace {
        owner: Owner,
        is_running: bool,
        reply: Reply<StackTrace>,
    },
    Scopes {
        owner: Owner,
        reply: Reply<Vec<Scope>>,
    },
    Variables {
        owner: Owner,
        page: Page,
        reply: Reply<Variables>,
    },
    Evaluate {
        owner: Owner,
        expression: Expression,
        /// `None` when its caller was told that it takes too long.
        reply: Option<Reply<Evaluated>>,
    },
    /// The parts of a value that came without words.
    Parts {
        wordless: Wordless,
        evaluated: Evaluated,
        reply: Reply<Evaluated>,
    },
    Request {
        owner: Owner,
        command: String,
        reply: Reply<Value>,
    },
}

impl Engine {
    /// The adapter has to tell whether it knows the thread: some let everything go on, whatever the id.
    pub(super) fn ask_threads(&mut self, wait: Wait, thread_id: i64, wish: ResumeWish) {
        let key = wait.session;
        self.ask_adapter(key, Asked::Threads { wait, thread_id, wish }, "threads", json!({}));
    }

    /// The adapter has to tell a thread, for a pause is of one.
    pub(super) fn ask_threads_to_pause(&mut self, wait: Wait) {
        let key = wait.session;
        self.ask_adapter(key, Asked::ThreadsToPause { key, wait: Some(wait) }, "threads", json!({}));
    }

    /// Takes the wait of this id, when it stands behind a question about threads.
    pub(super) fn take_asking(&mut self, id: WaitId) -> Option<Wait> {
        let is_meant = |asked: &Asked| match asked {
            Asked::Threads { wait, .. } => wait.id == id,
            Asked::ThreadsToPause { wait, .. } => wait.as_ref().is_some_and(|wait| wait.id == id),
            _ => false,
        };
        let ticket = self.asked.iter().find(|(_, asked)| is_meant(asked)).map(|(&ticket, _)| ticket)?;
        if let Some(Asked::ThreadsToPause { wait, .. }) = self.asked.get_mut(&ticket) {
            return wait.take();
        }
        match self.asked.remove(&ticket) {
            Some(Asked::Threads { wait, .. }) => Some(wait),
            _ => None,
        }
    }

    pub(super) fn on_list_threads(&mut self, session: Option<&SessionId>, reply: Reply<Vec<Thread>>) {
        match self.resolve(session) {
            Ok(key) => {
                self.ask_adapter(key, Asked::ListThreads { key, reply }, "threads", json!({}));
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    pub(super) fn on_stack_trace(
        &mut self,
        session: Option<&SessionId>,
        thread_id: Option<i64>,
        (start, levels): (i64, i64),
        reply: Reply<StackTrace>,
    ) {
        let key = match self.resolve(session) {
            Ok(key) => key,
            Err(error) => return drop(reply.send(Err(error))),
        };
        let Some(live) = self.sessions.get(&key) else { return };
        let thread_id = thread_id.unwrap_or_else(|| live.core.last_thread());
        let is_running = live.core.phase() == Phase::Running;
        let is_told = is_running && live.plan.session.adapter.tells_running_stacks;
        if live.core.phase() != Phase::Stopped && !is_told {
            // What some answer all the same is a moment long gone.
            return drop(reply.send(Err(DebugError::NotStopped { thread_id })));
        }
        if let Err(error) = self.free(key) {
            return drop(reply.send(Err(error)));
        }
        let owner = Owner { session: key, thread_id };
        let arguments = json!({"threadId": thread_id, "startFrame": start, "levels": levels});
        self.ask_adapter(key, Asked::StackTrace { owner, is_running, reply }, "stackTrace", arguments);
    }

    pub(super) fn on_scopes(&mut self, frame_id: i64, reply: Reply<Vec<Scope>>) {
        match self.frame(frame_id) {
            Ok((owner, theirs)) => {
                let asked = Asked::Scopes { owner, reply };
                self.ask_adapter(owner.session, asked, "scopes", json!({"frameId": theirs}));
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    pub(super) fn on_variables(&mut self, reference: i64, paging: Paging, reply: Reply<Variables>) {
        match self.container(reference) {
            Ok((owner, theirs)) => {
                let size = self.ids.size(reference);
                let live = self.sessions.get(&owner.session);
                let pages_all = live.is_some_and(|live| live.plan.session.adapter.pages_all);
                let page = Page::new(size, paging, pages_all);
                let arguments = page.arguments(theirs, size);
                let asked = Asked::Variables { owner, page, reply };
                self.ask_adapter(owner.session, asked, "variables", arguments);
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    pub(super) fn on_evaluate(&mut self, evaluate: Evaluate, limit: Duration, reply: Reply<Evaluated>) {
        match self.frame(evaluate.frame_id) {
            Ok((owner, theirs)) => {
                self.tune(owner, theirs, limit);
                let adapter = self.sessions.get(&owner.session).map(|live| &live.plan.session.adapter);
                let usual = adapter.and_then(|adapter| adapter.evaluate_context.as_deref());
                // `repl` is the command line of the debugger itself in some adapters.
                let usual = usual.unwrap_or("watch");
                let context = evaluate.context.as_deref().unwrap_or(usual);
                let expression = evaluate.expression;
                let timeout =
                    adapter.filter(|adapter| adapter.evaluate_timeout).map(|_| limit.saturating_add(MARGIN));
                let timeout = timeout.map(|timeout| i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
                let asking = |expression: &str| {
                    let mut asking = json!({"expression": expression, "frameId": theirs, "context": context});
                    if let Some(timeout) = timeout {
                        asking["timeout"] = timeout.into();
                    }
                    asking
                };
                // Who names another context, or another evaluator, wants that one's answer.
                let is_plain = context == usual && !expression.starts_with('/');
                let expression = match adapter.filter(|_| is_plain) {
                    Some(adapter) => tuples::with_places(&expression, &adapter.tuple_places),
                    None => expression,
                };
                let second_try = adapter.and_then(|adapter| adapter.second_try.clone()).filter(|_| is_plain);
                let mut arguments = asking(&expression);
                let otherwise = second_try.map(|second_try| {
                    let is_foreign = second_try.goes_first(&expression);
                    let mut second = asking(&second_try.told(&expression));
                    if is_foreign {
                        std::mem::swap(&mut arguments, &mut second);
                    }
                    Otherwise { second_try, arguments: second, is_foreign }
                });
                let expression = Expression::new(Instant::now(), expression, limit, otherwise);
                let asked = Asked::Evaluate { owner, expression, reply: Some(reply) };
                self.ask_adapter(owner.session, asked, "evaluate", arguments);
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Tells an adapter before an expression how long it may take. Nobody waits for the answer.
    fn tune(&mut self, owner: Owner, frame_id: i64, limit: Duration) {
        let tuning = self.sessions.get_mut(&owner.session).and_then(|live| Self::limits(live, limit));
        if let Some(expression) = tuning {
            self.last_ticket += 1;
            let arguments = json!({"expression": expression, "frameId": frame_id, "context": "repl"});
            let (ticket, command) = (self.last_ticket, "evaluate".into());
            self.feed(owner.session, Input::Request { ticket, command, arguments });
        }
    }

    pub(super) fn on_request(&mut self, request: Request, reply: Reply<Value>) {
        match self.exchange_ids(&request) {
            Ok((owner, arguments)) => {
                let Request { command, .. } = request;
                let asked = Asked::Request { owner, command: command.clone(), reply };
                self.ask_adapter(owner.session, asked, command, Value::Object(arguments));
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Whose a request is, and its arguments with the adapter's own ids.
    fn exchange_ids(&mut self, request: &Request) -> Result<(Owner, Map<String, Value>), DebugError> {
        let command = &request.command;
        if OF_VERBS.contains(&command.as_str()) {
            return Err(DebugError::OfVerb { command: command.clone() });
        }
        let mut arguments = request.arguments.clone();
        let mut owner = None;
        let named: body::Named = read(&Value::Object(arguments.clone()));
        if let Some(frame_id) = named.frame_id {
            let (of_frame, theirs) = self.frame(frame_id)?;
            arguments.insert("frameId".to_owned(), json!(theirs));
            owner = Some(of_frame);
        }
        if let Some(reference) = named.variables_reference.filter(|reference| *reference != 0) {
            let (of_container, theirs) = self.container(reference)?;
            if owner.is_some_and(|owner| owner.session != of_container.session) {
                return Err(DebugError::NoSuchReference { reference });
            }
            arguments.insert("variablesReference".to_owned(), json!(theirs));
            owner = Some(of_container);
        }
        let key = match (&request.session, owner) {
            (None, Some(owner)) => owner.session,
            (session, _) => self.resolve(session.as_ref())?,
        };
        if let Some(owner) = owner.filter(|owner| owner.session != key) {
            let of = self.sessions.get(&owner.session).map_or_else(String::new, |live| live.id.to_string());
            return Err(DebugError::ForeignId { session: SessionId(of) });
        }
        self.free(key)?;
        let Some(live) = self.sessions.get(&key) else { return Err(DebugError::NoSession) };
        if let Some(error) = request.gate.and_then(|gate| gate_error(live, gate)) {
            return Err(error);
        }
        let thread_id = named.thread_id.unwrap_or_else(|| live.core.last_thread());
        Ok((owner.unwrap_or(Owner { session: key, thread_id }), arguments))
    }

    fn ask_adapter(
        &mut self,
        key: SessionKey,
        asked: Asked,
        command: impl Into<Cow<'static, str>>,
        arguments: Value,
    ) {
        self.note_use(key);
        let ticket = self.ask(asked);
        self.feed(key, Input::Request { ticket, command: command.into(), arguments });
    }

    pub(super) fn ask(&mut self, asked: Asked) -> Ticket {
        self.last_ticket += 1;
        self.asked.insert(self.last_ticket, asked);
        self.last_ticket
    }

    pub(super) fn on_answer(&mut self, ticket: Ticket, result: Result<Value, String>) {
        let refused =
            |command: &str, message: String| DebugError::Refused { command: command.to_owned(), message };
        match self.asked.remove(&ticket) {
            Some(Asked::Breakpoints { gather }) => self.on_gathered(gather),
            Some(Asked::Threads { wait, thread_id, wish }) => {
                self.on_threads(wait, thread_id, &wish, result);
            }
            Some(Asked::ThreadsToPause { key, wait }) => self.on_threads_to_pause(key, wait, &result),
            Some(Asked::ListThreads { key, reply }) => {
                let threads = result.map_err(|message| refused("threads", message));
                let live = self.sessions.get(&key);
                let _ = reply.send(threads.map(|body| to_threads(read(&body), live)));
            }
            Some(Asked::StackTrace { owner, is_running, reply }) => {
                let stack = result.map_err(|message| refused("stackTrace", message));
                let _ = reply.send(stack.map(|body| self.stack(&read(&body), owner, is_running)));
            }
            Some(Asked::Scopes { owner, reply }) => {
                let scopes = result.map_err(|message| refused("scopes", message)).map(|body| {
                    let bodies = read::<body::Scopes>(&body).scopes;
                    bodies.iter().map(|body| from_dap::scope(body, owner, &mut self.ids)).collect()
                });
                let _ = reply.send(scopes);
            }
            Some(Asked::Variables { owner, page, reply }) => match result {
                Ok(body) => self.on_members(read(&body), owner, page, reply),
                Err(message) => drop(reply.send(Err(refused("variables", message)))),
            },
            Some(Asked::Evaluate { owner, expression, reply: Some(reply) }) => {
                self.on_evaluate_answer(result, owner, expression, reply);
            }
            Some(Asked::Parts { wordless, mut evaluated, reply }) => {
                match result {
                    Ok(body) => evaluated.result = wordless.told(&read(&body)),
                    Err(_) if evaluated.result.is_empty() => evaluated.result = "{...}".to_owned(),
                    Err(_) => {}
                }
                let _ = reply.send(Ok(evaluated));
            }
            Some(Asked::Request { owner, command, reply }) => {
                let body = result.map_err(|message| refused(&command, from_dap::request_problem(&message)));
                let _ = reply.send(body.map(|mut body| {
                    from_dap::exchange_ids(&mut body, owner, &mut self.ids);
                    body
                }));
            }
            Some(Asked::Evaluate { reply: None, .. }) | None => {}
        }
    }

    fn on_evaluate_answer(
        &mut self,
        result: Result<Value, String>,
        owner: Owner,
        mut expression: Expression,
        reply: Reply<Evaluated>,
    ) {
        match (result, expression.otherwise.take()) {
            (Err(refusal), Some(Otherwise { second_try, arguments, is_foreign }))
                if second_try.is_for(&refusal) && expression.is_to_be_interrupted() =>
            {
                expression.refusal = is_foreign.then_some(refusal);
                let asked = Asked::Evaluate { owner, expression, reply: Some(reply) };
                self.ask_adapter(owner.session, asked, "evaluate", arguments);
            }
            (result, _) => {
                let evaluated = result.map_err(|message| {
                    let message = expression.refusal.take().unwrap_or(message);
                    expression.failure(from_dap::evaluation_problem(&message))
                });
                self.on_evaluated(evaluated.map(|body| read(&body)), owner, reply);
            }
        }
    }

    fn on_evaluated(
        &mut self,
        evaluated: Result<body::Evaluated, DebugError>,
        owner: Owner,
        reply: Reply<Evaluated>,
    ) {
        let body = match evaluated {
            Ok(body) => body,
            Err(error) => return drop(reply.send(Err(error))),
        };
        let evaluated = from_dap::evaluated(&body, owner, &mut self.ids);
        let Some(wordless) = Wordless::of(&body.result, body.kind.as_deref(), body.variables_reference)
        else {
            return drop(reply.send(Ok(evaluated)));
        };
        let arguments =
            json!({"variablesReference": body.variables_reference, "start": 0, "count": MAX_PARTS + 1});
        self.ask_adapter(owner.session, Asked::Parts { wordless, evaluated, reply }, "variables", arguments);
    }

    fn stack(&mut self, stack: &body::StackTrace, owner: Owner, is_running: bool) -> StackTrace {
        let frame = |body: &body::StackFrame| match is_running {
            true => from_dap::running_frame(body),
            false => from_dap::frame(body, owner, &mut self.ids),
        };
        let frames = stack.stack_frames.iter().map(frame).collect();
        StackTrace { thread_id: owner.thread_id, is_running, frames, total: stack.total_frames }
    }

    /// Members of something came: the page is among them, or behind one of them.
    fn on_members(&mut self, all: body::Variables, owner: Owner, page: Page, reply: Reply<Variables>) {
        let mut all = all.variables;
        let page = match page.deeper(&all) {
            Some(Deeper::Behind(reference, page)) => {
                let asked = Asked::Variables { owner, page, reply };
                let arguments = json!({"variablesReference": reference});
                return self.ask_adapter(owner.session, asked, "variables", arguments);
            }
            Some(Deeper::Here(page)) => page,
            None => page,
        };
        pages::explain_cut(&mut all);
        let (told, omitted) = page.cut(&all);
        let variables = told.iter().map(|body| from_dap::variable(body, owner, &mut self.ids, MAX_VALUE_LEN));
        let variables = Variables { variables: variables.collect(), omitted };
        let _ = reply.send(Ok(variables));
    }
}

fn to_threads(told: body::Threads, live: Option<&Live>) -> Vec<Thread> {
    let is_stopped = |id| {
        let core = live.map(|live| &live.core).filter(|core| core.phase() == Phase::Stopped);
        core.is_some_and(|core| core.all_stopped() || core.is_stopped(id) == Some(true))
    };
    let thread = |body: body::Thread| {
        let id = body.id?;
        Some(Thread { id, name: body.name, is_stopped: is_stopped(id) })
    };
    told.threads.into_iter().filter_map(thread).collect()
}
