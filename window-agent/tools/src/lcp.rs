//! The toolset `lcp`, its debugging part: arguments in, verbs of the engine, result out; no state: a UUID is another
//! spelling of the engine's own id.

mod results;
pub mod schemas;

use std::path::PathBuf;
use std::time::Duration;

use baton_proto::edge::Handle;
use serde_json::{Value, json};

use super::answer::{Answer, Spoken, unknown_tool};
use super::arguments::typed;
use super::{outside, programs, redact, words};
use crate::caller::Caller;
use crate::window::Window;
use baton_agent_base::fault::Fault;
use baton_agent_base::object::{Object, object};
use baton_agent_base::view::View;
use baton_agent_debug::Wait;
use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{Paused, ResumeWish};
use baton_agent_debug::types::{
    Breakpoint, Evaluate, Phase, RemoveBreakpoint, SessionId, SetBreakpoint, Start, StopEvent, Waited,
};

/// A program that does not stop by then is paused.
const STEP: Duration = Duration::from_secs(5);
/// How long the start may take.
const LAUNCH: Duration = Duration::from_secs(30);
/// A session that nobody uses for so long is ended.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// Environment variable with the most sessions there may be.
const MAX_SESSIONS_VARIABLE: &str = "LCP_MAX_SESSIONS";
/// Without it.
const DEFAULT_MAX_SESSIONS: usize = 10;

/// Runs a tool on arguments that its schema allows.
pub async fn call(window: &Window, tool: &str, arguments: Object, caller: Caller) -> Answer {
    let call = Call { window, caller };
    let session = arguments.get("session_id").and_then(Value::as_str).map(str::to_owned);
    match Box::pin(call.run(tool, arguments)).await {
        Ok(data) => Answer::Result(object(json!({"success": true, "data": data}))),
        Err(error) => refused(results::with_uuid(error, session.as_deref())),
    }
}

/// An error with `success` as the toolset's results have it.
pub(super) fn refused(error: Fault) -> Answer {
    let mut object = object(json!({"success": false}));
    object.extend(error.into_object());
    let texts = vec![Value::from(object.clone()).to_string()];
    Answer::Spoken(Spoken { texts, object, is_error: true, ..Spoken::default() })
}

struct Call<'a> {
    window: &'a Window,
    caller: Caller,
}

impl Call<'_> {
    async fn run(&self, tool: &str, arguments: Object) -> Result<Object, Fault> {
        match tool {
            "lcp_debug_launch" => self.launch(typed(arguments)?).await,
            "lcp_add_breakpoint" => self.add_breakpoint(typed(arguments)?).await,
            "lcp_remove_breakpoint" => self.remove_breakpoint(typed(arguments)?).await,
            "lcp_debug_step" => self.step(typed(arguments)?).await,
            "lcp_debug_evaluate" => self.evaluate(typed(arguments)?).await,
            "lcp_debug_stop" => self.stop(typed(arguments)?).await,
            other => Err(unknown_tool(other)),
        }
    }

    async fn launch(&self, arguments: schemas::Launch) -> Result<Object, Fault> {
        let debugger = &self.window.debugger;
        let limit = max_sessions(std::env::var(MAX_SESSIONS_VARIABLE).ok().as_deref());
        if debugger.sessions().len() >= limit {
            return Err(results::too_many(limit));
        }
        let program = programs::program(self.window, &arguments.program, None).await?;
        let wish = Wish::Launch(Launch {
            program,
            args: arguments.args.unwrap_or_default(),
            env: arguments.env.unwrap_or_default(),
            stop_on_entry: true,
            ..Launch::default()
        });
        let start = debugger.configure(&wish).await.map_err(results::fault)?;
        let start = Start { idle_limit: Some(IDLE), owner: self.caller.id.clone(), ..start };
        let waited = debugger.start(start, self.wait(LAUNCH)).await.map_err(results::fault)?;
        let n_breakpoints = programs::breakpoints_of(self.window, &self.caller).await.len();
        results::launched(waited, n_breakpoints, &self.view())
    }

    async fn add_breakpoint(&self, arguments: schemas::AddBreakpoint) -> Result<Object, Fault> {
        let path = self.resolve(&arguments.file).await?;
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let wish = SetBreakpoint {
            path,
            line: arguments.line,
            column: None,
            condition: given(arguments.condition),
            hit_condition: given(arguments.hit_condition),
            log_message: given(arguments.log_message),
            owner: self.caller.owner(),
        };
        let set = self.window.debugger.set_breakpoint(wish).await.map_err(results::fault)?;
        let mut data = object(json!({
            "breakpoint_id": self.uuid_of(&set),
            "verified": set.verified,
            "file": self.view().relative(&set.path),
            "line": set.line,
        }));
        if let Some(message) = set.message {
            data.insert("message".to_owned(), message.into());
        }
        Ok(data)
    }

    async fn remove_breakpoint(&self, arguments: schemas::RemoveBreakpoint) -> Result<Object, Fault> {
        let debugger = &self.window.debugger;
        let all = debugger.breakpoints().await;
        let wanted = arguments.breakpoint_id.trim().to_ascii_lowercase();
        let Some(found) = all.iter().find(|breakpoint| self.uuid_of(breakpoint) == wanted) else {
            let id = Handle::Breakpoint.read_uuid(&wanted);
            let is_of_another = id.is_some_and(|id| !id.starts_with(debugger.prefix()));
            return Err(match is_of_another {
                true => results::fault(DebugError::OfAnotherRun { what: format!("breakpoint {wanted}") }),
                false => results::no_such_breakpoint(&arguments.breakpoint_id),
            });
        };
        debugger.remove_breakpoint(RemoveBreakpoint::Id(found.id)).await.map_err(results::fault)?;
        let n_left = programs::breakpoints_of(self.window, &self.caller).await.len();
        Ok(object(json!({"success": true, "remaining_breakpoints": n_left})))
    }

    async fn step(&self, arguments: schemas::Step) -> Result<Object, Fault> {
        let debugger = &self.window.debugger;
        let session = self.session(&arguments.session_id)?;
        let wish = ResumeWish::new(Some(session.clone()), None, arguments.action.into());
        let waited = debugger.resume_as(wish, self.wait(STEP)).await.map_err(results::fault)?;
        let Waited::TimedOut { output, .. } = waited else {
            return Ok(results::stepped(self.shown(waited), &self.view()));
        };
        // It runs on, perhaps in an endless loop: stop it by force, so that the agent is never left hanging.
        programs::begun(self.window, Some(&session), STEP).await;
        let paused = debugger.pause_or_tell(Some(&session), None, self.wait(STEP)).await;
        match paused.map_err(results::fault)? {
            Paused::Waited(waited) => results::paused(self.shown(waited), output, &self.view()),
            Paused::Pending(activity) => Ok(results::pending(activity, output, &self.view())),
        }
    }

    async fn evaluate(&self, arguments: schemas::Evaluate) -> Result<Object, Fault> {
        let debugger = &self.window.debugger;
        let session = self.session(&arguments.session_id)?;
        let status = debugger.status(Some(&session)).await.map_err(results::fault)?;
        let stop = status.last_stop.as_deref().filter(|_| status.phase == Phase::Stopped);
        let Some(frame_id) = stop.and_then(StopEvent::meant_frame) else {
            return Err(results::not_stopped(status.phase));
        };
        let wish = Evaluate { expression: arguments.expression.clone(), frame_id, context: None };
        let asked = tokio::time::timeout(STEP, debugger.evaluate(wish)).await;
        let evaluated = asked.map_err(|_| results::request_timed_out())?.map_err(results::fault)?;
        let value = if self.window.redacts() {
            redact::value(&arguments.expression, &evaluated.result)
        } else {
            evaluated.result
        };
        Ok(results::evaluated(&value, evaluated.type_name, evaluated.variables_reference))
    }

    async fn stop(&self, arguments: schemas::Stop) -> Result<Object, Fault> {
        let session = self.session(&arguments.session_id)?;
        let debugger = &self.window.debugger;
        let is_attached = debugger.status(Some(&session)).await.is_ok_and(|status| status.is_attached);
        self.window.stop(Some(&session)).await.map_err(results::fault)?;
        let message = if is_attached {
            "Debug session stopped; the program keeps running"
        } else {
            "Debug session stopped"
        };
        Ok(object(json!({"success": true, "message": message})))
    }

    /// The engine's id that a UUID stands for.
    fn session(&self, uuid: &str) -> Result<SessionId, Fault> {
        Handle::Session.read_uuid(uuid).map(SessionId).ok_or_else(|| results::no_such_session(uuid))
    }

    fn uuid_of(&self, breakpoint: &Breakpoint) -> String {
        let id = format!("{}-{}", self.window.debugger.prefix(), breakpoint.id);
        Handle::Breakpoint.to_uuid(&id).unwrap_or(id)
    }

    /// The file that a client names, fuzzily; candidates are told as the toolset tells files.
    async fn resolve(&self, given: &str) -> Result<PathBuf, Fault> {
        let view = self.view();
        let resolved = outside::file(self.window, given).await;
        resolved.map_err(|error| words::with_relative_candidates(error, &view))
    }

    /// What clients may see.
    fn shown(&self, mut waited: Waited) -> Waited {
        if let Waited::Stopped(stop) = &mut waited
            && self.window.redacts()
        {
            redact::stop(stop);
        }
        waited
    }

    fn view(&self) -> View {
        self.window.workspace().view()
    }

    fn wait(&self, timeout: Duration) -> Wait {
        Wait { timeout, cancelled: self.caller.cancelled.clone() }
    }
}

fn max_sessions(set: Option<&str>) -> usize {
    set.and_then(|set| set.trim().parse().ok()).filter(|max| *max > 0).unwrap_or(DEFAULT_MAX_SESSIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_sessions_can_be_set() {
        assert_eq!(max_sessions(None), 10);
        assert_eq!(max_sessions(Some(" 3 ")), 3);
        for bad in ["", "0", "-1", "many"] {
            assert_eq!(max_sessions(Some(bad)), 10, "{bad}");
        }
    }
}
