//! The toolset `debug`: one tool, 28 actions. Arguments in, verbs of the engine, text and details out; no state.

mod action;
mod arguments;
mod breakpoints;
mod custom;
mod details;
mod fault;
mod inspect;
mod machine;
mod needs;
mod run;
pub mod schema;
mod start;
mod text;
mod wire;

use serde_json::{Value, json};

use self::action::Action;
use self::arguments::Arguments;
use self::text::Speaker;
use super::answer::{Answer, Spoken};
use super::arguments::typed;
use crate::caller::Caller;
use crate::window::Window;
use crate::words;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::{Object, object};
use baton_agent_debug::Wait;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::Status;
use baton_agent_debug::types::{Phase, SessionId, StopEvent};

/// Runs the action of a call on arguments that the schema allows.
pub async fn call(window: &Window, arguments: Object, caller: Caller) -> Answer {
    let arguments: Arguments = match typed(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return refused(None, error),
    };
    let action = arguments.action.name();
    let view = window.workspace().view();
    let call = Call { window, arguments, caller, speaker: Speaker { view } };
    // The engine's futures are large; on the heap they do not weigh on every other call.
    match Box::pin(call.run()).await {
        Ok(reply) => Answer::Spoken(reply.into_spoken(action)),
        Err(error) => {
            let error = words::with_relative_candidates(call.with_cause(error).await, &call.speaker.view);
            refused(Some(action.into()), error)
        }
    }
}

/// One call.
struct Call<'a> {
    window: &'a Window,
    arguments: Arguments,
    caller: Caller,
    speaker: Speaker,
}

/// What an action answers.
struct Reply {
    text: String,
    details: Object,
    /// What it is about.
    session: Option<SessionId>,
}

impl Reply {
    fn new(text: impl Into<String>, details: Value) -> Self {
        Self { text: text.into(), details: object(details), session: None }
    }

    fn with_snapshot(mut self, status: &Status) -> Self {
        self.session = Some(status.id.clone());
        self.details.insert("snapshot".to_owned(), Value::Object(details::summary(status)));
        self
    }

    fn into_spoken(self, action: &str) -> Spoken {
        let mut object = object(json!({"action": action, "success": true}));
        object.extend(self.details);
        Spoken { texts: vec![self.text], object, is_text_whole: true, is_error: false }
    }
}

/// Files that an error names which may have been meant.
const MAX_CANDIDATES: usize = 10;

/// The argument that says what to do.
pub(super) const ACTION: &str = "action";

/// The sentence as it is, what to try, and the same as an object.
pub(super) fn refused(action: Option<Value>, error: Fault) -> Answer {
    let candidates = error.details.get("candidates").and_then(Value::as_array).into_iter().flatten();
    let candidates: Vec<&str> = candidates.filter_map(Value::as_str).take(MAX_CANDIDATES).collect();
    let mut text = error.message.clone();
    for line in [error.hint.clone(), Some(candidates.join(", ")).filter(|all| !all.is_empty())] {
        text.extend(line.map(|line| format!("\n{line}")));
    }
    let action = action.filter(Value::is_string).unwrap_or_else(|| "".into());
    let mut object = object(json!({ACTION: action, "success": false}));
    object.extend(error.into_object());
    Answer::Spoken(Spoken { texts: vec![text], object, is_text_whole: true, is_error: true })
}

impl Call<'_> {
    async fn run(&self) -> Result<Reply, Fault> {
        needs::check(&self.arguments)?;
        match self.arguments.action {
            Action::Launch => self.launch().await,
            Action::Attach => self.attach().await,
            Action::SetBreakpoint => self.set_breakpoint().await,
            Action::RemoveBreakpoint => self.remove_breakpoint().await,
            Action::SetInstructionBreakpoint => self.set_instruction_breakpoint().await,
            Action::RemoveInstructionBreakpoint => self.remove_instruction_breakpoint().await,
            Action::DataBreakpointInfo => self.data_breakpoint_info().await,
            Action::SetDataBreakpoint => self.set_data_breakpoint().await,
            Action::RemoveDataBreakpoint => self.remove_data_breakpoint().await,
            Action::Continue | Action::StepOver | Action::StepIn | Action::StepOut => self.resume().await,
            Action::Pause => self.pause().await,
            Action::Evaluate => self.evaluate().await,
            Action::StackTrace => self.stack_trace().await,
            Action::Threads => self.threads().await,
            Action::Scopes => self.scopes().await,
            Action::Variables => self.variables().await,
            Action::Disassemble => self.disassemble().await,
            Action::ReadMemory => self.read_memory().await,
            Action::WriteMemory => self.write_memory().await,
            Action::Modules => self.modules().await,
            Action::LoadedSources => self.loaded_sources().await,
            Action::CustomRequest => self.custom_request().await,
            Action::Output => self.output().await,
            Action::Terminate => self.terminate().await,
            Action::Sessions => self.sessions().await,
        }
    }

    /// The session the call names, or else the client's own where there are others.
    fn session(&self) -> Option<SessionId> {
        arguments::given(&self.arguments.session).map(SessionId).or_else(|| self.caller.session.clone())
    }

    /// A session that has ended because its adapter did is told as that.
    async fn with_cause(&self, error: Fault) -> Fault {
        let Some(session) = self.session().filter(|_| error.kind == Kind::SessionEnded) else { return error };
        let status = self.window.debugger.status(Some(&session)).await;
        let died = status.ok().filter(|status| status.adapter_died);
        died.map_or(error, |status| fault::not_running(&status.adapter))
    }

    /// How the session of the call stands.
    async fn status(&self) -> Result<Status, Fault> {
        let status = self.window.debugger.status(self.session().as_ref()).await;
        status.map_err(|error| self.fault(error))
    }

    fn wait(&self) -> Wait {
        Wait { timeout: self.arguments.timeout(), cancelled: self.caller.cancelled.clone() }
    }

    fn fault(&self, error: DebugError) -> Fault {
        fault::told(error, &self.window.debugger.sessions())
    }

    /// The frame the call names, or the one that is meant by a stop.
    async fn frame_id(&self) -> Result<i64, Fault> {
        if let Some(frame_id) = self.arguments.frame_id {
            return Ok(frame_id);
        }
        let status = self.status().await?;
        if let Some(frame_id) = status.last_stop.as_deref().and_then(StopEvent::meant_frame) {
            return Ok(frame_id);
        }
        if status.phase == Phase::Running {
            return Err(self.fault(DebugError::NotStopped { thread_id: status.thread_id }));
        }
        // Before it runs there is none, and that is the reason.
        let asked = self.window.debugger.stack_trace(self.session().as_ref(), None, 0, 1).await;
        Err(asked.err().map_or_else(fault::no_frame, |error| self.fault(error)))
    }
}
