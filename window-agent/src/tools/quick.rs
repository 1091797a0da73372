//! The toolset `quick`: 14 tools that need no configuration. Arguments in, verbs of the engine, result out; no
//! state: whether and where the program stands is asked of the engine each time.

mod results;
pub mod schemas;

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Answer, Object, Spoken, ToolError, object, programs, redact, typed};
use crate::debug::adapters::wish::{Launch, Wish};
use crate::debug::error::DebugError;
use crate::debug::types::control::{ResumeWish, Status};
use crate::debug::types::{
    Evaluate, Paging, Phase, RemoveBreakpoint, Resume, SetBreakpoint, Variable, Wait, Waited,
};
use crate::paths::{self, Given};
use crate::window::Window;

/// How long a call waits for the program.
const WAIT: Duration = Duration::from_secs(30);
/// Frames told.
const MAX_FRAMES: u32 = 50;
/// Variables told of each scope.
const MAX_VARIABLES: usize = 100;
/// Scopes of a frame that are looked into.
const MAX_SCOPES: usize = 8;

/// Runs a tool on arguments that its schema allows.
pub async fn call(window: &Window, tool: &str, arguments: Object, cancelled: CancellationToken) -> Answer {
    let call = Call { window, cancelled };
    let result = Box::pin(call.run(tool, arguments)).await;
    match result {
        Ok(Told::Object(object)) => Answer::Result(object),
        Ok(Told::List { list, omitted }) => Answer::Spoken(spoken_list(list, omitted)),
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
    },
}

fn told(value: Value) -> Told {
    Told::Object(object(value))
}

fn spoken_list(list: Vec<Value>, omitted: usize) -> Spoken {
    let list = Value::Array(list);
    let mut texts = vec![list.to_string()];
    let mut structured = object(json!({"result": list}));
    if omitted > 0 {
        let message = format!("{omitted} more are left out.");
        structured.insert("message".to_owned(), message.as_str().into());
        texts.push(message);
    }
    Spoken { texts, object: structured, is_error: false }
}

struct Call<'a> {
    window: &'a Window,
    cancelled: CancellationToken,
}

impl Call<'_> {
    async fn run(&self, tool: &str, arguments: Object) -> Result<Told, ToolError> {
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
            other => Err(super::CATALOGUE.unknown(other)),
        }
    }

    async fn start(&self, arguments: Start) -> Result<Told, ToolError> {
        let program = programs::program(self.window, &arguments.file, None).await?;
        let wish = Wish::Launch(Launch {
            adapter: arguments.kind.filter(|kind| !kind.trim().is_empty()),
            program,
            stop_on_entry: arguments.stop_on_entry.unwrap_or(false),
            ..Launch::default()
        });
        let debugger = &self.window.debugger;
        let start = debugger.configure(&wish).map_err(results::fault)?;
        let waited = debugger.start(start, self.wait()).await.map_err(results::fault)?;
        let (session, status, message) = match waited {
            Waited::Stopped(stop) => (stop.session, "stopped", None),
            Waited::Completed(completed) => {
                let message = results::end(&completed, &self.folders());
                (completed.session, "terminated", Some(message))
            }
            Waited::TimedOut { session, .. } | Waited::Interrupted { session, .. } => {
                // Another call may have stopped it meanwhile.
                let status = debugger.status(Some(&session)).await.map_err(results::fault)?;
                (session, results::phase(status.phase), None)
            }
        };
        let mut answer = object(json!({"sessionId": session.as_str(), "status": status}));
        if let Some(message) = message {
            answer.insert("message".to_owned(), message.into());
        }
        Ok(Told::Object(answer))
    }

    async fn stop(&self) -> Result<Told, ToolError> {
        self.window.debugger.stop(None).await.map_err(results::fault)?;
        Ok(told(json!({"status": "terminated"})))
    }

    async fn status(&self) -> Result<Told, ToolError> {
        let status = match self.window.debugger.status(None).await {
            Ok(status) => Some(status),
            Err(DebugError::NoSession | DebugError::SessionEnded { .. } | DebugError::AdapterDied { .. }) => {
                None
            }
            Err(error) => return Err(results::fault(error)),
        };
        Ok(Told::Object(results::status(status.as_ref())))
    }

    async fn set_breakpoint(&self, arguments: SetArguments) -> Result<Told, ToolError> {
        let path = self.window.workspace().resolve_file(&arguments.file).await?;
        let condition = arguments.condition.filter(|condition| !condition.trim().is_empty());
        let wish = SetBreakpoint { path, line: arguments.line, condition, ..SetBreakpoint::default() };
        let set = self.window.debugger.set_breakpoint(wish).await.map_err(results::fault)?;
        let mut answer = object(json!({"id": set.id, "verified": set.verified}));
        if let Some(message) = set.message {
            answer.insert("message".to_owned(), message.into());
        }
        Ok(Told::Object(answer))
    }

    async fn remove_breakpoint(&self, arguments: Place) -> Result<Told, ToolError> {
        let path = match self.window.workspace().resolve_file(&arguments.file).await {
            Ok(path) => path,
            // A breakpoint in a file that was deleted since can still be removed.
            Err(error) => match paths::parse(&arguments.file) {
                Ok(Given::Absolute(path)) => path,
                _ => return Err(error),
            },
        };
        let which = RemoveBreakpoint::Location { path, line: arguments.line };
        self.window.debugger.remove_breakpoint(which).await.map_err(results::fault)?;
        Ok(told(json!({"status": "removed"})))
    }

    async fn list_breakpoints(&self) -> Result<Told, ToolError> {
        let all = self.window.debugger.breakpoints().await;
        Ok(Told::List { list: all.iter().map(results::breakpoint).collect(), omitted: 0 })
    }

    async fn resume(&self) -> Result<Told, ToolError> {
        let waited = self.go(Resume::Continue).await?;
        Ok(Told::Object(results::continued(waited, &self.folders())))
    }

    async fn step(&self, how: Resume) -> Result<Told, ToolError> {
        let waited = self.go(how).await?;
        Ok(Told::Object(results::place(waited, &self.folders())))
    }

    async fn go(&self, how: Resume) -> Result<Waited, ToolError> {
        let wish = ResumeWish::new(None, None, how);
        self.window.debugger.resume_as(wish, self.wait()).await.map_err(results::fault)
    }

    async fn pause(&self) -> Result<Told, ToolError> {
        programs::begun(self.window, None, WAIT).await;
        let waited = self.window.debugger.pause(None, None, self.wait()).await.map_err(results::fault)?;
        Ok(Told::Object(results::place(waited, &self.folders())))
    }

    async fn stack_trace(&self) -> Result<Told, ToolError> {
        let trace = self.window.debugger.stack_trace(None, None, 0, MAX_FRAMES).await;
        let trace = trace.map_err(results::fault)?;
        let total = trace.total.and_then(|total| usize::try_from(total).ok()).unwrap_or_default();
        let omitted = total.saturating_sub(trace.frames.len());
        Ok(Told::List { list: trace.frames.iter().map(results::frame).collect(), omitted })
    }

    async fn variables(&self, arguments: VariablesArguments) -> Result<Told, ToolError> {
        let frame_id = self.frame_id(arguments.frame_id).await?;
        let scopes = self.window.debugger.scopes(frame_id).await.map_err(results::fault)?;
        let wanted = results::wanted_scopes(&scopes, arguments.scope.as_deref().unwrap_or("local"));
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
        Ok(Told::List { list: all.iter().map(results::variable).collect(), omitted })
    }

    async fn evaluate(&self, arguments: EvaluateArguments) -> Result<Told, ToolError> {
        // The expression itself may hold secrets, so the log gets its length alone.
        tracing::info!(length = arguments.expression.len(), "evaluates an expression");
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

    /// The frame that is named, or the one in which the program stopped.
    async fn frame_id(&self, given: Option<i64>) -> Result<i64, ToolError> {
        if let Some(given) = given {
            return Ok(given);
        }
        let status = self.window.debugger.status(None).await.map_err(results::fault)?;
        top_frame(&status).ok_or_else(results::not_paused)
    }

    fn folders(&self) -> Vec<std::path::PathBuf> {
        self.window.workspace().folders().iter().map(|folder| folder.path.clone()).collect()
    }

    fn wait(&self) -> Wait {
        Wait { timeout: WAIT, cancelled: self.cancelled.clone() }
    }
}

fn top_frame(status: &Status) -> Option<i64> {
    let stop = status.last_stop.as_deref().filter(|_| status.phase == Phase::Stopped)?;
    Some(stop.call_stack.first()?.frame_id)
}

#[derive(Deserialize)]
struct Start {
    file: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "stopOnEntry")]
    stop_on_entry: Option<bool>,
}

#[derive(Deserialize)]
struct SetArguments {
    file: String,
    line: u32,
    condition: Option<String>,
}

#[derive(Deserialize)]
struct Place {
    file: String,
    line: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VariablesArguments {
    scope: Option<String>,
    frame_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EvaluateArguments {
    expression: String,
    frame_id: Option<i64>,
}
