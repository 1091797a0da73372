//! CORE: what the engine answers, in the words of the toolset `quick`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::words::{self, shorten};
use baton_agent_base::fault::{Fault, Kind, sentence};
use baton_agent_base::object::{Object, object};
use baton_agent_base::view::View;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{Activity, Status};
use baton_agent_debug::types::{
    Breakpoint, Completed, Frame, MAX_VALUE_LEN, OutputTail, Phase, Scope, StopEvent, Variable, Waited,
};

/// Characters of an evaluation.
const MAX_RESULT: usize = 4 * MAX_VALUE_LEN;
/// Said of the stack of a thread that runs.
pub(super) const RUNNING_STACK: &str = "The program is running, not stopped: this is where it is, values are not available. debug_pause tells all threads.";

/// The engine's errors; what to try in the words of this toolset.
pub(super) fn fault(error: DebugError) -> Fault {
    let hint = match &error {
        DebugError::NoSession | DebugError::SessionEnded { .. } | DebugError::AdapterDied { .. } => {
            "Start one with debug_start; breakpoints are kept."
        }
        DebugError::NotStopped { .. } => {
            "Call debug_pause to stop it, or debug_continue to wait for its next stop."
        }
        DebugError::StaleFrame { .. } | DebugError::NoSuchFrame { .. } => {
            "Call debug_getStackTrace to list them."
        }
        DebugError::StaleReference { .. } | DebugError::NoSuchReference { .. } => {
            "Call debug_getVariables for the ones of this stop."
        }
        DebugError::NoSuchBreakpoint { .. } => "Call debug_listBreakpoints to list them.",
        DebugError::NoSuchSession { .. } => "Call debug_getStatus for the one there is.",
        DebugError::NoSuchThread { .. } => "Leave it to the thread that stopped.",
        DebugError::TooManySessions { .. } => "End one with debug_stop.",
        DebugError::Untrusted { .. } => "Call debug_start again when the user has said that they trust it.",
        DebugError::StartFailed { .. } | DebugError::BadConfiguration { .. } => {
            "Fix the program and start again."
        }
        DebugError::NoAnswer { .. } => "The program may be busy; try again, or call debug_stop.",
        _ => error.hint().unwrap_or_default(),
    };
    let fault = Fault::new(error.kind(), sentence(&error.to_string()));
    if hint.is_empty() { fault } else { fault.hint(hint) }
}

/// A tool that looks at a stopped program, and it runs.
pub(super) fn not_paused() -> Fault {
    Fault::new(Kind::NotStopped, "The program is not paused.")
        .hint("Call debug_pause to stop it, or debug_continue to wait for its next stop.")
}

/// The status of a session in a word.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting | Phase::Configuring | Phase::Running => "running",
        Phase::Stopped => "stopped",
        Phase::Terminating | Phase::Terminated => "terminated",
    }
}

/// Where debugging stands; what is not known is null.
pub(super) fn status(status: Option<&Status>) -> Object {
    let active = status.filter(|status| status.phase != Phase::Terminated);
    let stop = active.filter(|status| status.phase == Phase::Stopped);
    let stop = stop.and_then(|status| status.last_stop.as_deref());
    let top = stop.and_then(|stop| stop.call_stack.first());
    let file = match top.map(|top| top.file_path.as_str()).filter(|path| !path.is_empty()) {
        Some(path) => Some(path),
        // While it runs: the program.
        None => active.and_then(|status| status.program.as_deref()),
    };
    object(json!({
        "active": active.is_some(),
        "file": file,
        "line": stop.and_then(|stop| stop.line),
        "function": top.map(|top| top.function_name.as_str()),
        "paused": stop.is_some(),
    }))
}

const INTERRUPTED: &str = "The wait was interrupted; the program is still running.";

/// How a program ended, with the end of what it printed.
pub(super) fn end(completed: &Completed, view: &View) -> String {
    with_output(words::end(completed, view), &completed.output)
}

/// The answer of `debug_continue`.
pub(super) fn continued(waited: Waited, view: &View) -> Object {
    match waited {
        Waited::Stopped(stop) => {
            let mut answer = object(json!({"stopped": true, "reason": reason(&stop)}));
            if let Some(line) = stop.line {
                answer.insert("line".to_owned(), line.into());
            }
            insert_output(&mut answer, &stop.output);
            answer
        }
        Waited::Completed(completed) => object(json!({"stopped": false, "reason": end(&completed, view)})),
        Waited::TimedOut { output, waits_for_input, .. } => {
            running(&words::running("The program is still running.", waits_for_input), &output)
        }
        Waited::Interrupted { output, .. } => running(INTERRUPTED, &output),
    }
}

/// What is said of a program that has neither stopped nor ended since its start: a server, for one.
pub(super) fn runs_on(waited: &Waited) -> Option<String> {
    match waited {
        Waited::TimedOut { output, waits_for_input, .. } => {
            let text =
                words::running("The program is still running: debug_pause stops it.", *waits_for_input);
            Some(with_output(text, output))
        }
        Waited::Interrupted { output, .. } => Some(with_output(INTERRUPTED.to_owned(), output)),
        Waited::Stopped(_) | Waited::Completed(_) => None,
    }
}

fn running(reason: &str, output: &OutputTail) -> Object {
    let mut answer = object(json!({"stopped": false, "reason": reason}));
    insert_output(&mut answer, output);
    answer
}

/// The answer of a step and of `debug_pause`.
pub(super) fn place(waited: Waited, view: &View) -> Object {
    let nowhere = |message: String| object(json!({"line": null, "file": null, "message": message}));
    match waited {
        Waited::Stopped(stop) => {
            let file = stop.source.as_ref().map(|source| source.path.as_str());
            let mut answer = object(json!({"line": stop.line, "file": file}));
            insert_output(&mut answer, &stop.output);
            answer
        }
        Waited::Completed(completed) => nowhere(end(&completed, view)),
        Waited::TimedOut { waits_for_input, .. } => {
            let text = "The program is still running: debug_continue waits on, debug_pause stops it.";
            nowhere(words::running(text, waits_for_input))
        }
        Waited::Interrupted { .. } => nowhere(INTERRUPTED.to_owned()),
    }
}

/// The answer of `debug_pause` about a program that has not stopped.
pub(super) fn pending(activity: &Activity, view: &View) -> Object {
    let message = with_output(words::pending(activity, view, "debug_continue"), &activity.output);
    object(json!({"line": null, "file": null, "message": message}))
}

/// What was printed is worth a message, as there is no other way to read it.
fn insert_output(answer: &mut Object, output: &OutputTail) {
    if !output.is_empty() {
        answer.insert("message".to_owned(), with_output(String::new(), output).into());
    }
}

fn with_output(text: String, output: &OutputTail) -> String {
    if output.is_empty() {
        return text;
    }
    let space = if text.is_empty() { "" } else { " " };
    format!("{text}{space}Printed: {}", words::output(output).trim_end())
}

/// `breakpoint`, or with what is known of an exception.
fn reason(stop: &StopEvent) -> String {
    match words::why(stop) {
        Some(text) => format!("{}: {}", stop.reason, shorten(text, MAX_VALUE_LEN)),
        None => stop.reason.clone(),
    }
}

pub(super) fn breakpoint(breakpoint: &Breakpoint) -> Value {
    json!({
        "file": breakpoint.path,
        "line": breakpoint.line,
        "condition": breakpoint.condition,
        "verified": breakpoint.verified,
    })
}

pub(super) fn frame(frame: &Frame) -> Value {
    json!({
        "name": frame.function_name,
        "file": frame.file_path,
        "line": frame.line_number,
        "frameId": frame.frame_id,
    })
}

pub(super) fn variable(variable: &Variable) -> Value {
    json!({
        "name": variable.name,
        "value": variable.value,
        "type": variable.type_name.as_deref().unwrap_or_default(),
    })
}

pub(super) fn evaluated(result: &str, type_name: Option<String>) -> Object {
    let mut answer =
        object(json!({"result": shorten(result, MAX_RESULT), "type": type_name.unwrap_or_default()}));
    let n_chars = result.chars().count();
    if n_chars > MAX_RESULT {
        let message = format!("Cut from {n_chars} characters; ask for a part of it.");
        answer.insert("message".to_owned(), message.into());
    }
    answer
}

// Which variables are wanted; a doc comment would be told to models.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Wanted {
    Local,
    Global,
    All,
}

/// References of the scopes that `local`, `global` and `all` mean. Adapters name theirs each in its own way.
pub(super) fn wanted_scopes(scopes: &[Scope], wanted: Wanted) -> Vec<i64> {
    let is_global = |scope: &Scope| {
        let name = scope.name.to_lowercase();
        ["global", "static", "module", "register"].iter().any(|part| name.contains(part))
    };
    let is_machine = |scope: &Scope| scope.name.to_lowercase().contains("register");
    scopes
        .iter()
        .filter(|scope| scope.variables_reference > 0)
        .filter(|scope| match wanted {
            Wanted::Global => is_global(scope) && !is_machine(scope),
            Wanted::All => true,
            Wanted::Local => !is_global(scope),
        })
        .map(|scope| scope.variables_reference)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_agent_debug::types::SessionId;

    #[test]
    fn scopes_of_every_adapter_are_local_or_global() {
        let scopes: Vec<Scope> =
            ["Locals", "Block: if", "Closure", "Globals", "Global", "Registers", "Static"]
                .iter()
                .zip(1..)
                .map(|(name, variables_reference)| Scope {
                    name: (*name).to_owned(),
                    variables_reference,
                    expensive: false,
                    named_variables: None,
                    indexed_variables: None,
                })
                .collect();
        assert_eq!(wanted_scopes(&scopes, Wanted::Local), [1, 2, 3]);
        assert_eq!(wanted_scopes(&scopes, Wanted::Global), [4, 5, 7]);
        assert_eq!(wanted_scopes(&scopes, Wanted::All), [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn without_a_session_nothing_is_made_up() {
        let told = Value::Object(status(None));
        assert_eq!(
            told,
            json!({"active": false, "file": null, "line": null, "function": null, "paused": false})
        );
    }

    #[test]
    fn a_program_that_ended_says_so() {
        let completed = Completed {
            session: SessionId("s".to_owned()),
            exit_code: Some(2),
            output: OutputTail { text: "boom\n".to_owned(), omitted_bytes: 0 },
            never_hit: Vec::new(),
            told_before: [].into(),
            never_called: Vec::new(),
            note: None,
        };
        let told = Value::Object(continued(Waited::Completed(Box::new(completed.clone())), &View::new([])));
        assert_eq!(
            told,
            json!({"stopped": false, "reason": "The program ended with exit code 2. Printed: boom"})
        );
        let told = Value::Object(place(Waited::Completed(Box::new(completed)), &View::new([])));
        let message = "The program ended with exit code 2. Printed: boom";
        assert_eq!(told, json!({"line": null, "file": null, "message": message}));
    }
}
