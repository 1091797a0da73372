//! The toolset `quick`: 14 tools that need no configuration. Arguments in, verbs of the engine, result out; no
//! state: whether and where the program stands is asked of the engine each time.

mod results;
pub mod schemas;

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Answer, Spoken, unknown_tool};
use super::arguments::typed;
use super::{outside, programs, redact};
use crate::caller::Caller;
use crate::window::Window;
use baton_agent_base::fault::Fault;
use baton_agent_base::object::{Object, object};
use baton_agent_base::view::View;
use baton_agent_debug::Wait;
use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{Paused, ResumeWish, Status};
use baton_agent_debug::types::{
    Evaluate, Paging, Phase, RemoveBreakpoint, Resume, SessionId, SetBreakpoint, Variable, Waited,
};

/// How long a call waits for the program.
const WAIT: Duration = Duration::from_secs(30);
/// Frames told.
const MAX_FRAMES: u32 = 50;
/// Variables told of each scope.
const MAX_VARIABLES: usize = 100;
/// Scopes of a frame that are looked into.
const MAX_SCOPES: usize = 8;

/// Runs a tool on arguments that its schema allows.
pub async fn call(window: &Window, tool: &str, arguments: Object, caller: Caller) -> Answer {
    let call = Call { window, caller };
    let result = Box::pin(call.run(tool, arguments)).await;
    match result {
        Ok(Told::Object(object)) => Answer::Result(object),
        Ok(Told::List { list, omitted, note }) => Answer::Spoken(spoken_list(list, omitted, note)),
        Err(error) => Answer::Error(error),
    }
}

/// What a tool answers.
enum Told {
    Object(Object),
    /// The documented list is the text. What it leaves out is said behind it.
    List {
        list: Vec<Value>,
        omitted: usize,
        /// What is to be known of it.
        note: Option<&'static str>,
    },
}

fn told(value: Value) -> Told {
    Told::Object(object(value))
}

fn spoken_list(list: Vec<Value>, omitted: usize, note: Option<&str>) -> Spoken {
    let list = Value::Array(list);
    let mut texts = vec![list.to_string()];
    let mut structured = object(json!({"result": list}));
    let left_out = (omitted > 0).then(|| format!("{omitted} more not shown."));
    let messages: Vec<&str> = note.into_iter().chain(left_out.as_deref()).collect();
    if !messages.is_empty() {
        let message = messages.join(" ");
        structured.insert("message".to_owned(), message.as_str().into());
        texts.push(message);
    }
    Spoken { texts, object: structured, ..Spoken::default() }
}

struct Call<'a> {
    window: &'a Window,
    caller: Caller,
}

impl Call<'_> {
    async fn run(&self, tool: &str, arguments: Object) -> Result<Told, Fault> {
        match tool {
            "debug_start" => self.start(typed(arguments)?).await,
            "debug_stop" => self.stop().await,
            "debug_getStatus" => self.status().await,
            "debug_setBreakpoint" => self.set_breakpoint(typed(arguments)?).await,
            "debug_removeBreakpoint" => self.remove_breakpoint(typed(arguments)?).await,
            "debug_listBreakpoints" => self.list_breakpoints().await,
            "debug_continue" => self.resume().await,
            "debug_stepOver" => self.step(Resume::StepOver).await,
            "debug_stepInto" => self.step(Resume::StepInto).await,
            "debug_stepOut" => self.step(Resume::StepOut).await,
            "debug_pause" => self.pause().await,
            "debug_getStackTrace" => self.stack_trace().await,
            "debug_getVariables" => self.variables(typed(arguments)?).await,
            "debug_evaluate" => self.evaluate(typed(arguments)?).await,
            other => Err(unknown_tool(other)),
        }
    }

    async fn start(&self, arguments: schemas::Start) -> Result<Told, Fault> {
        let program = programs::program(self.window, &arguments.file, None).await?;
        let wish = Wish::Launch(Launch {
            adapter: arguments.kind.filter(|kind| !kind.trim().is_empty()),
            program,
            stop_on_entry: arguments.stop_on_entry.unwrap_or(false),
            ..Launch::default()
        });
        let debugger = &self.window.debugger;
        let start = debugger.configure(&wish).await.map_err(results::fault)?;
        let start = baton_agent_debug::types::Start { owner: self.caller.id.clone(), ..start };
        let waited = debugger.start(start, self.wait()).await.map_err(results::fault)?;
        let (session, status, message) = match waited {
            Waited::Stopped(stop) => (stop.session, "stopped", None),
            Waited::Completed(completed) => {
                let message = results::end(&completed, &self.view());
                (completed.session, "terminated", Some(message))
            }
            Waited::TimedOut { ref session, .. } | Waited::Interrupted { ref session, .. } => {
                // Another call may have stopped it meanwhile.
                let status = debugger.status(Some(session)).await.map_err(results::fault)?;
                let status = results::phase(status.phase);
                let message = results::runs_on(&waited).filter(|_| status == "running");
                (session.clone(), status, message)
            }
        };
        let mut answer = object(json!({"sessionId": session.as_str(), "status": status}));
        if let Some(message) = message {
            answer.insert("message".to_owned(), message.into());
        }
        Ok(Told::Object(answer))
    }

    async fn stop(&self) -> Result<Told, Fault> {
        self.window.stop(self.session()).await.map_err(results::fault)?;
        Ok(told(json!({"status": "terminated"})))
    }

    async fn status(&self) -> Result<Told, Fault> {
        let status = match self.window.debugger.status(self.session()).await {
            Ok(status) => Some(status),
            Err(DebugError::NoSession | DebugError::SessionEnded { .. } | DebugError::AdapterDied { .. }) => {
                None
            }
            Err(error) => return Err(results::fault(error)),
        };
        Ok(Told::Object(results::status(status.as_ref())))
    }

    async fn set_breakpoint(&self, arguments: schemas::SetBreakpoint) -> Result<Told, Fault> {
        let path = outside::file(self.window, &arguments.file).await?;
        let condition = arguments.condition.filter(|condition| !condition.trim().is_empty());
        let (line, owner) = (arguments.line, self.caller.owner());
        let wish = SetBreakpoint { path, line, condition, owner, ..SetBreakpoint::default() };
        let set = self.window.debugger.set_breakpoint(wish).await.map_err(results::fault)?;
        let mut answer = object(json!({"id": set.id, "verified": set.verified}));
        if let Some(message) = set.message {
            answer.insert("message".to_owned(), message.into());
        }
        Ok(Told::Object(answer))
    }

    async fn remove_breakpoint(&self, arguments: schemas::Line) -> Result<Told, Fault> {
        let path = programs::file_of_breakpoint(self.window, &self.caller, &arguments.file).await?;
        let which = RemoveBreakpoint::Location {
            path: path.clone(),
            line: arguments.line,
            owner: self.caller.owner(),
        };
        let removed = self.window.debugger.remove_breakpoint(which).await;
        if matches!(removed, Err(DebugError::NoSuchBreakpoint { .. })) {
            outside::own(self.window, path).await?;
        }
        removed.map_err(results::fault)?;
        Ok(told(json!({"status": "removed"})))
    }

    async fn list_breakpoints(&self) -> Result<Told, Fault> {
        let all = programs::breakpoints_of(self.window, &self.caller).await;
        Ok(Told::List { list: all.iter().map(results::breakpoint).collect(), omitted: 0, note: None })
    }

    async fn resume(&self) -> Result<Told, Fault> {
        let waited = self.go(Resume::Continue).await?;
        Ok(Told::Object(results::continued(waited, &self.view())))
    }

    async fn step(&self, how: Resume) -> Result<Told, Fault> {
        let waited = self.go(how).await?;
        Ok(Told::Object(results::place(waited, &self.view())))
    }

    async fn go(&self, how: Resume) -> Result<Waited, Fault> {
        let wish = ResumeWish::new(self.caller.session.clone(), None, how);
        self.window.debugger.resume_as(wish, self.wait()).await.map_err(results::fault)
    }

    async fn pause(&self) -> Result<Told, Fault> {
        programs::begun(self.window, self.session(), WAIT).await;
        let paused = self.window.debugger.pause_or_tell(self.session(), None, self.wait()).await;
        Ok(Told::Object(match paused.map_err(results::fault)? {
            Paused::Waited(waited) => results::place(waited, &self.view()),
            Paused::Pending(activity) => results::pending(&activity, &self.view()),
        }))
    }

    async fn stack_trace(&self) -> Result<Told, Fault> {
        let trace = self.window.debugger.stack_trace(self.session(), None, 0, MAX_FRAMES).await;
        let trace = trace.map_err(results::fault)?;
        let total = trace.total.and_then(|total| usize::try_from(total).ok()).unwrap_or_default();
        let omitted = total.saturating_sub(trace.frames.len());
        let note = trace.is_running.then_some(results::RUNNING_STACK);
        Ok(Told::List { list: trace.frames.iter().map(results::frame).collect(), omitted, note })
    }

    async fn variables(&self, arguments: schemas::Variables) -> Result<Told, Fault> {
        let frame_id = self.frame_id(arguments.frame_id).await?;
        let scopes = self.window.debugger.scopes(frame_id).await.map_err(results::fault)?;
        let wanted = results::wanted_scopes(&scopes, arguments.scope.unwrap_or(results::Wanted::Local));
        let (mut all, mut omitted) = (Vec::<Variable>::new(), 0);
        for scope in wanted.into_iter().take(MAX_SCOPES) {
            let paging = Paging { start: None, count: Some(MAX_VARIABLES) };
            let page = self.window.debugger.variables(scope, paging).await.map_err(results::fault)?;
            all.extend(page.variables);
            omitted += page.omitted;
        }
        if self.window.redacts() {
            redact::variables(&mut all);
        }
        Ok(Told::List { list: all.iter().map(results::variable).collect(), omitted, note: None })
    }

    async fn evaluate(&self, arguments: schemas::Evaluate) -> Result<Told, Fault> {
        let wish = Evaluate {
            expression: arguments.expression.clone(),
            frame_id: self.frame_id(arguments.frame_id).await?,
            context: None,
        };
        let evaluated = self.window.debugger.evaluate(wish).await.map_err(results::fault)?;
        let result = if self.window.redacts() {
            redact::value(&arguments.expression, &evaluated.result)
        } else {
            evaluated.result
        };
        Ok(Told::Object(results::evaluated(&result, evaluated.type_name)))
    }

    /// The frame that is named, or the one that is meant by a stop.
    async fn frame_id(&self, given: Option<i64>) -> Result<i64, Fault> {
        if let Some(given) = given {
            return Ok(given);
        }
        let status = self.window.debugger.status(self.session()).await.map_err(results::fault)?;
        meant_frame(&status).ok_or_else(results::not_paused)
    }

    /// The client's own session, where there are others.
    fn session(&self) -> Option<&SessionId> {
        self.caller.session.as_ref()
    }

    fn view(&self) -> View {
        self.window.workspace().view()
    }

    fn wait(&self) -> Wait {
        Wait { timeout: WAIT, cancelled: self.caller.cancelled.clone() }
    }
}

fn meant_frame(status: &Status) -> Option<i64> {
    let stop = status.last_stop.as_deref().filter(|_| status.phase == Phase::Stopped)?;
    stop.meant_frame()
}
