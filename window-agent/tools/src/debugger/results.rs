//! What the engine answers, in the words of the toolset `debugger`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::steps::Step;
use crate::words;
use baton_agent_base::fault::sentence;
use baton_agent_base::object::{Object, object};
use baton_agent_base::view::View;
use baton_agent_debug::types::{
    Breakpoint, Completed, OutputTail, Scope, SessionId, StopEvent, Variable, Waited,
};

/// What was waited for, for the sentences of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Start,
    Continue,
    Step,
}

/// Milliseconds, as in the documents: `2025-04-16T03:14:00.123Z`.
pub(super) fn timestamp(at: Timestamp) -> Value {
    format!("{at:.3}").into()
}

pub(super) fn insert_notes(answer: &mut Object, notes: Vec<String>) {
    if !notes.is_empty() {
        answer.insert("notes".to_owned(), json!(notes));
    }
}

pub(super) fn breakpoint(breakpoint: &Breakpoint) -> Object {
    let mut entry = object(json!({
        "id": breakpoint.id,
        "verified": breakpoint.verified,
        "source": {"path": breakpoint.path},
        "line": breakpoint.line,
    }));
    insert(&mut entry, "column", breakpoint.column);
    insert(&mut entry, "condition", breakpoint.condition.as_deref());
    insert(&mut entry, "hit_condition", breakpoint.hit_condition.as_deref());
    insert(&mut entry, "log_message", breakpoint.log_message.as_deref());
    insert(&mut entry, "message", breakpoint.message.as_deref());
    insert(&mut entry, "actual_line", breakpoint.actual_line.filter(|line| *line != breakpoint.line));
    entry
}

pub(super) fn scope(scope: &Scope) -> Value {
    let mut entry = object(json!({
        "name": scope.name,
        "variables_reference": scope.variables_reference,
        "expensive": scope.expensive,
    }));
    insert(&mut entry, "named_variables", scope.named_variables);
    insert(&mut entry, "indexed_variables", scope.indexed_variables);
    Value::Object(entry)
}

/// A variable with its value cut.
pub(super) fn variable_within(variable: &Variable, max_length: usize) -> Value {
    self::variable(&Variable { value: words::shorten(&variable.value, max_length), ..variable.clone() })
}

fn variable(variable: &Variable) -> Value {
    let mut entry = object(json!({
        "name": variable.name,
        "value": variable.value,
        "variables_reference": variable.variables_reference,
    }));
    insert(&mut entry, "type", variable.type_name.as_deref());
    let is_other_name = |name: &&str| *name != variable.name;
    insert(&mut entry, "evaluate_name", variable.evaluate_name.as_deref().filter(is_other_name));
    insert(&mut entry, "memory_reference", variable.memory_reference.as_deref());
    insert(&mut entry, "named_variables", variable.named_variables);
    insert(&mut entry, "indexed_variables", variable.indexed_variables);
    Value::Object(entry)
}

/// The answer of a tool that waits.
pub(super) fn waited(waited: Waited, waiting: Waiting) -> Object {
    match waited {
        Waited::Stopped(stop) => stopped(*stop),
        Waited::Completed(completed) => ended(*completed, waiting),
        Waited::TimedOut { session, output, waits_for_input } => {
            let message = match waiting {
                Waiting::Start => "Timed out waiting for the debugger to stop for the first time.",
                Waiting::Continue => "Timed out waiting for the debugger to stop again or to end.",
                Waiting::Step => "Timed out waiting for the debugger to stop after the step.",
            };
            let message = format!(
                "{message} The program is still running: continue_debugging waits on, stop_debugging ends it."
            );
            running("timeout", &words::running(&message, waits_for_input), &session, output)
        }
        Waited::Interrupted { session, output } => {
            let message = match waiting {
                Waiting::Start => "The wait for the start of debugging was interrupted.",
                Waiting::Continue => "The wait for the program to stop again was interrupted.",
                Waiting::Step => "The wait for the step was interrupted.",
            };
            running("interrupted", &format!("{message} The program was not stopped by it."), &session, output)
        }
    }
}

fn running(status: &str, message: &str, session: &SessionId, output: OutputTail) -> Object {
    let mut answer = object(json!({"status": status, "message": message, "session_id": session.as_str()}));
    insert_output(&mut answer, output);
    answer
}

fn ended(completed: Completed, waiting: Waiting) -> Object {
    let mut message = match (waiting, completed.exit_code) {
        (_, Some(code)) if code != 0 => format!("The program ended with exit code {code}."),
        (Waiting::Start | Waiting::Continue, _) => "The debug session ended normally.".to_owned(),
        (Waiting::Step, _) => "The debug session ended normally after the step.".to_owned(),
    };
    if let Some(note) = &completed.note {
        message = sentence(note);
    }
    let (old, new): (Vec<&Breakpoint>, Vec<&Breakpoint>) =
        completed.never_hit.iter().partition(|breakpoint| completed.told_before.contains(&breakpoint.id));
    for breakpoint in new.into_iter().take(MAX_NEVER_HIT) {
        message.push_str(&format!(" {}", words::never_hit(breakpoint, &View::new([]))));
    }
    for breakpoint in completed.never_called.iter().take(MAX_NEVER_HIT) {
        message.push_str(&format!(" {}", words::never_called(breakpoint)));
    }
    message.extend(words::never_hit_again(&old, &View::new([])));
    let mut answer = object(json!({
        "status": "completed",
        "message": message,
        "session_id": completed.session.as_str(),
    }));
    insert(&mut answer, "exit_code", completed.exit_code);
    let lines = completed.never_hit.iter().map(|breakpoint| breakpoint.id);
    let ids: Vec<i64> = lines.chain(completed.never_called.iter().map(|breakpoint| breakpoint.id)).collect();
    if !ids.is_empty() {
        answer.insert("breakpoints_not_hit".to_owned(), json!(ids));
    }
    insert_output(&mut answer, completed.output);
    answer
}

fn stopped(stop: StopEvent) -> Object {
    let frames: Vec<Value> = stop
        .call_stack
        .iter()
        .map(|frame| {
            json!({
                "frame_id": frame.frame_id,
                "function_name": frame.function_name,
                "file_path": frame.file_path,
                "line_number": frame.line_number,
                "column_number": frame.column_number,
            })
        })
        .collect();
    let top_frame_variables = stop.top_frame_variables.as_ref().map(|scope| {
        let variables: Vec<Value> = scope.variables.iter().map(variable).collect();
        let mut entry = object(json!({"scope_name": scope.scope_name, "variables": variables}));
        insert(&mut entry, "omitted", Some(scope.omitted).filter(|omitted| *omitted > 0));
        entry
    });
    let mut event = object(json!({
        "timestamp": timestamp(stop.timestamp),
        "session_id": stop.session.as_str(),
        "reason": stop.reason,
        "thread_id": stop.thread_id,
        "call_stack": frames,
    }));
    // What is not known is left out: every null would be read with every stop.
    insert(&mut event, "description", stop.description.as_deref());
    insert(&mut event, "text", stop.text.as_deref());
    insert(&mut event, "all_threads_stopped", stop.all_threads_stopped);
    let source = stop.source.as_ref().map(|source| json!({"path": source.path, "name": source.name}));
    insert(&mut event, "source", source);
    insert(&mut event, "line", stop.line);
    insert(&mut event, "column", stop.column);
    insert(&mut event, "top_frame_variables", top_frame_variables);
    insert(&mut event, "hit_breakpoint_ids", stop.hit_breakpoint_ids.clone());
    // Only when the call stack was cut.
    let is_cut = |total: &i64| usize::try_from(*total).is_ok_and(|total| total > stop.call_stack.len());
    insert(&mut event, "total_frames", stop.total_frames.filter(is_cut));
    let mut answer = object(json!({"status": "stopped"}));
    answer.insert("stop_event_data".to_owned(), Value::Object(event));
    insert_output(&mut answer, stop.output);
    answer
}

/// A step on the way of several.
pub(super) fn step(step: Step) -> Value {
    let mut entry = Object::new();
    insert(&mut entry, "line", step.line);
    if let Some((function, file)) = step.place {
        entry.insert("function_name".to_owned(), function.into());
        entry.insert("file_path".to_owned(), file.into());
    }
    if !step.changed.is_empty() {
        let changed: Object = step.changed.into_iter().map(|(name, value)| (name, value.into())).collect();
        entry.insert("changed".to_owned(), Value::Object(changed));
    }
    Value::Object(entry)
}

/// Breakpoints that were never hit which the message explains; the ids of all are told.
const MAX_NEVER_HIT: usize = 5;

fn insert_output(answer: &mut Object, output: OutputTail) {
    if output.is_empty() {
        return;
    }
    let text = match output.omitted_bytes {
        0 => output.text,
        omitted => format!("[{omitted} earlier bytes omitted]\n{}", output.text),
    };
    answer.insert("output".to_owned(), text.into());
}

fn insert(entry: &mut Object, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        entry.insert(name.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_says_how_the_program_ended() {
        let message = |exit_code, note: Option<&str>, waiting| {
            let completed = Completed {
                session: SessionId("s".to_owned()),
                exit_code,
                output: OutputTail::default(),
                never_hit: Vec::new(),
                told_before: [].into(),
                never_called: Vec::new(),
                note: note.map(str::to_owned),
            };
            ended(completed, waiting)["message"].clone()
        };
        assert_eq!(message(Some(0), None, Waiting::Start), "The debug session ended normally.");
        assert_eq!(message(None, None, Waiting::Step), "The debug session ended normally after the step.");
        assert_eq!(message(Some(1), None, Waiting::Continue), "The program ended with exit code 1.");
        let note = Some("the debug session was stopped");
        assert_eq!(message(Some(247), note, Waiting::Start), "The debug session was stopped.");
    }
}
