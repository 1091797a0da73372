//! CORE: what the engine answers, in the words of the toolset `lcp`: relative paths, lines from 1.

use std::path::Path;

use baton_proto::edge::Handle;
use serde_json::{Value, json};

use crate::words::{self, shorten};
use baton_agent_base::fault::{Fault, Kind, sentence};
use baton_agent_base::object::{Object, object};
use baton_agent_base::view::View;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{Activity, Doing};
use baton_agent_debug::types::{
    Frame, MAX_VALUE_LEN, OutputTail, Phase, SessionId, StopEvent, Variable, Waited,
};

/// Said when a program was stopped because it did not stop by itself.
const FORCED: &str =
    "程序仍在运行，已强制暂停，当前位置如下 (still running, paused by force; its position follows)";
/// Said when the debug adapter died.
const RESET: &str =
    "调试器意外重置，请重新启动调试会话 (the debugger died unexpectedly, start the session again)";
/// Said when an adapter did not answer in time.
const TIMED_OUT: &str = "请求超时，请稍后重试 (the request timed out, try again later)";
/// Frames told.
const MAX_FRAMES: usize = 20;
/// Characters of an evaluation.
const MAX_RESULT: usize = 4 * MAX_VALUE_LEN;

/// An error about the session of a call, by the UUID that its client knows it by.
pub(super) fn with_uuid(mut error: Fault, uuid: Option<&str>) -> Fault {
    if let Some((uuid, id)) = uuid.and_then(|uuid| Some((uuid, Handle::Session.read_uuid(uuid)?))) {
        error.message = error.message.replace(&id, uuid);
    }
    error
}

/// The engine's errors in the document's words where it has some.
pub(super) fn fault(error: DebugError) -> Fault {
    let kind = error.kind();
    let relaunch = "Call lcp_debug_launch; breakpoints are kept.";
    match &error {
        DebugError::AdapterDied { how, .. } => Fault::new(kind, RESET).hint(format!("It {how}. {relaunch}")),
        DebugError::NoAnswer { .. } => request_timed_out(),
        DebugError::NoSession | DebugError::SessionEnded { .. } => {
            Fault::new(kind, sentence(&error.to_string())).hint(relaunch)
        }
        DebugError::NoSuchSession { session } => {
            no_such_session(&Handle::Session.to_uuid(session.as_str()).unwrap_or_default())
        }
        DebugError::NotStopped { .. } => not_stopped(Phase::Running),
        DebugError::TooManySessions { limit } => too_many(*limit),
        DebugError::StartFailed { .. } | DebugError::BadConfiguration { .. } => {
            Fault::new(kind, sentence(&error.to_string())).hint("Fix the program and launch it again.")
        }
        DebugError::Busy { .. } => {
            Fault::new(kind, "Another call is already running this program.").hint("Wait for the other call.")
        }
        _ => {
            let hint = match &error {
                DebugError::StaleFrame { .. } | DebugError::NoSuchFrame { .. } => {
                    Some("Leave the frame out: the one that stopped is meant.")
                }
                DebugError::Untrusted { .. } => {
                    Some("Call lcp_debug_launch again when the user has said that they trust it.")
                }
                _ => error.hint(),
            };
            let fault = Fault::new(kind, sentence(&error.to_string()));
            hint.map_or(fault.clone(), |hint| fault.hint(hint))
        }
    }
}

pub(super) fn request_timed_out() -> Fault {
    Fault::new(Kind::AdapterTimeout, TIMED_OUT).hint("Call lcp_debug_stop if it goes on.")
}

pub(super) fn no_such_session(given: &str) -> Fault {
    let given = shorten(given, 80);
    Fault::new(Kind::NoSuchSession, format!("No active debug session has the id {given:?}."))
        .hint("Use the session_id of lcp_debug_launch.")
}

pub(super) fn no_such_breakpoint(given: &str) -> Fault {
    let given = shorten(given, 80);
    Fault::new(Kind::NoSuchBreakpoint, format!("No breakpoint has the id {given:?}."))
        .hint("Use the breakpoint_id of lcp_add_breakpoint.")
}

pub(super) fn too_many(limit: usize) -> Fault {
    Fault::new(Kind::TooManySessions, format!("Too many debug sessions (limit {limit})."))
        .hint("End one with lcp_debug_stop.")
}

pub(super) fn not_stopped(phase: Phase) -> Fault {
    if phase == Phase::Terminated {
        return Fault::new(Kind::SessionEnded, "The debug session has ended.")
            .hint("Call lcp_debug_launch for a new one.");
    }
    Fault::new(Kind::NotStopped, "The program is running.")
        .hint("Call lcp_debug_step with action continue: it waits for a stop, or forces one.")
}

/// The answer of `lcp_debug_launch`.
pub(super) fn launched(waited: Waited, n_breakpoints: usize, view: &View) -> Result<Object, Fault> {
    let data = |session: &SessionId, status: &str, line: Option<i64>, output: &OutputTail| {
        let mut data = object(json!({
            "session_id": uuid(session),
            "status": status,
            "breakpoint_count": n_breakpoints,
            "current_line": line,
        }));
        insert_output(&mut data, output);
        data
    };
    match waited {
        Waited::Stopped(stop) => Ok(data(&stop.session, "started", stop.line, &stop.output)),
        Waited::Completed(completed) => {
            let mut data = data(&completed.session, "terminated", None, &completed.output);
            data.insert("message".to_owned(), words::end(&completed, view).into());
            Ok(data)
        }
        Waited::TimedOut { session, output, waits_for_input } => {
            let mut data = data(&session, "started", None, &output);
            let message =
                "The program runs; lcp_debug_step with action continue waits for a stop or forces one.";
            data.insert("message".to_owned(), words::running(message, waits_for_input).into());
            Ok(data)
        }
        Waited::Interrupted { session, .. } => Err(interrupted(&session)),
    }
}

fn interrupted(session: &SessionId) -> Fault {
    Fault::new(Kind::Interrupted, "The wait was interrupted; the program is still running.")
        .detail("session_id", uuid(session))
}

/// The answer of `lcp_debug_step`.
pub(super) fn stepped(waited: Waited, view: &View) -> Object {
    match waited {
        Waited::Stopped(stop) => stopped("stopped", &stop.reason, &stop, view),
        Waited::Completed(completed) => {
            let mut data = nowhere("terminated", "exited", &words::end(&completed, view));
            if let Some(code) = completed.exit_code {
                data.insert("exit_code".to_owned(), code.into());
            }
            insert_output(&mut data, &completed.output);
            data
        }
        Waited::TimedOut { output, .. } | Waited::Interrupted { output, .. } => {
            let mut data =
                nowhere("running", "interrupted", "The wait was interrupted; the program is still running.");
            insert_output(&mut data, &output);
            data
        }
    }
}

/// The answer of `lcp_debug_step` about a program that had to be stopped by force; `before` is what it printed until
/// then.
pub(super) fn paused(waited: Waited, before: OutputTail, view: &View) -> Result<Object, Fault> {
    match waited {
        Waited::Stopped(mut stop) => {
            stop.output = words::joined(before, std::mem::take(&mut stop.output));
            let mut data = stopped("paused", "timeout", &stop, view);
            data.insert("message".to_owned(), FORCED.into());
            Ok(data)
        }
        Waited::Completed(mut completed) => {
            completed.output = words::joined(before, std::mem::take(&mut completed.output));
            Ok(stepped(Waited::Completed(completed), view))
        }
        // It cannot even be paused: inside a call of the system, say.
        Waited::TimedOut { .. } => Err(request_timed_out()),
        Waited::Interrupted { session, .. } => Err(interrupted(&session)),
    }
}

/// The same, of one that the pause has not stopped: where it is all the same.
pub(super) fn pending(activity: Activity, before: OutputTail, view: &View) -> Object {
    let message = words::pending(&activity, view, "lcp_debug_step with action continue");
    let mut data = nowhere("running", "timeout", &message);
    if let Doing::Stacks { threads, .. } = &activity.doing
        && let Some((_, stack)) = threads.first()
    {
        data.insert("call_stack".to_owned(), frames(stack, view).into());
        if let Some(top) = stack.first() {
            data.insert("current_line".to_owned(), top.line_number.into());
            data.insert("current_file".to_owned(), named(&top.file_path, view).into());
        }
    }
    insert_output(&mut data, &words::joined(before, activity.output));
    data
}

fn named(path: &str, view: &View) -> String {
    view.relative(Path::new(path))
}

fn frames(stack: &[Frame], view: &View) -> Vec<Value> {
    let frame = |frame: &Frame| {
        json!({
            "function": frame.function_name,
            "file": named(&frame.file_path, view),
            "line": frame.line_number,
        })
    };
    stack.iter().take(MAX_FRAMES).map(frame).collect()
}

fn stopped(status: &str, reason: &str, stop: &StopEvent, view: &View) -> Object {
    let variables = stop.top_frame_variables.iter().flat_map(|scope| &scope.variables);
    let mut data = object(json!({
        "status": status,
        "reason": reason,
        "current_line": stop.line,
        "current_file": stop.source.as_ref().map(|source| named(&source.path, view)),
        "call_stack": frames(&stop.call_stack, view),
        "local_variables": variables.map(variable).collect::<Vec<_>>(),
    }));
    if let Some(text) = words::why(stop) {
        data.insert("message".to_owned(), text.as_str().into());
    }
    insert_output(&mut data, &stop.output);
    data
}

fn nowhere(status: &str, reason: &str, message: &str) -> Object {
    object(json!({
        "status": status,
        "reason": reason,
        "message": message,
        "current_line": null,
        "current_file": null,
        "call_stack": [],
        "local_variables": [],
    }))
}

fn variable(variable: &Variable) -> Value {
    json!({
        "name": variable.name,
        "value": variable.value,
        "type": variable.type_name.as_deref().unwrap_or_default(),
    })
}

/// The answer of `lcp_debug_evaluate`.
pub(super) fn evaluated(value: &str, type_name: Option<String>, reference: i64) -> Object {
    object(json!({
        "value": shorten(value, MAX_RESULT),
        "type": type_name.unwrap_or_default(),
        "variablesReference": reference,
    }))
}

fn insert_output(data: &mut Object, output: &OutputTail) {
    if !output.is_empty() {
        data.insert("output".to_owned(), words::output(output).into());
    }
}

/// The engine's id as the toolset tells it.
pub(super) fn uuid(session: &SessionId) -> String {
    Handle::Session.to_uuid(session.as_str()).unwrap_or_else(|| session.to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use jiff::Timestamp;

    use super::*;
    use baton_agent_debug::types::{Frame, ScopeVariables, Source};

    fn stop() -> StopEvent {
        let frame = Frame {
            frame_id: 1,
            function_name: "main".to_owned(),
            file_path: "/w/main.py".to_owned(),
            line_number: 11,
            column_number: 1,
            instruction_pointer: None,
        };
        let x = Variable {
            name: "x".to_owned(),
            value: "10".to_owned(),
            type_name: Some("int".to_owned()),
            variables_reference: 0,
            evaluate_name: None,
            memory_reference: None,
            named_variables: None,
            indexed_variables: None,
        };
        StopEvent {
            timestamp: Timestamp::UNIX_EPOCH,
            session: SessionId("a1b2c3d4-1".to_owned()),
            reason: "step".to_owned(),
            thread_id: 1,
            description: None,
            text: None,
            all_threads_stopped: Some(true),
            source: Some(Source { path: "/w/main.py".to_owned(), name: "main.py".to_owned() }),
            line: Some(11),
            column: Some(1),
            call_stack: vec![frame],
            total_frames: Some(1),
            own: None,
            top_frame_variables: Some(ScopeVariables {
                scope_name: "Locals".to_owned(),
                variables: vec![x],
                omitted: 0,
            }),
            hit_breakpoint_ids: None,
            output: OutputTail::default(),
        }
    }

    #[test]
    fn a_step_has_the_documents_structure() {
        let data = stepped(Waited::Stopped(Box::new(stop())), &View::new(["/w".into()]));
        expect![[r#"{"call_stack":[{"file":"main.py","function":"main","line":11}],"current_file":"main.py","current_line":11,"local_variables":[{"name":"x","type":"int","value":"10"}],"reason":"step","status":"stopped"}"#]]
        .assert_eq(&Value::Object(data).to_string());
    }

    #[test]
    fn a_forced_pause_says_so() {
        let before = OutputTail { text: "a\n".to_owned(), omitted_bytes: 3 };
        let data = paused(Waited::Stopped(Box::new(stop())), before, &View::new(["/w".into()])).unwrap();
        assert_eq!((&data["status"], &data["reason"]), (&json!("paused"), &json!("timeout")));
        assert!(data["message"].as_str().unwrap().starts_with("程序仍在运行，已强制暂停，当前位置如下"));
        assert_eq!(data["output"], "[3 earlier bytes omitted]\na\n");
    }

    #[test]
    fn the_documents_sentences() {
        let session = || SessionId("a1b2c3d4-1".to_owned());
        let how = "exited with code 1".to_owned();
        let died = fault(DebugError::AdapterDied { session: session(), how, output: String::new() });
        assert!(died.message.starts_with("调试器意外重置，请重新启动调试会话"));
        assert!(died.hint.unwrap().contains("breakpoints are kept"));
        let late = fault(DebugError::NoAnswer { command: "next".to_owned(), seconds: 5 });
        assert!(late.message.starts_with("请求超时，请稍后重试"));
        let unknown = fault(DebugError::NoSuchSession { session: session() });
        assert!(unknown.message.contains(&uuid(&session())), "{}", unknown.message);
    }
}
