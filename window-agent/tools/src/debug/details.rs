//! CORE: what the engine answers, as the structured result of the tool `debug`: names of the debug adapter
//! protocol.

use serde_json::{Value, json};

use crate::steps::Step;
use baton_agent_base::object::{Object, object};
use baton_agent_debug::types::control::{Doing, Status, Thread};
use baton_agent_debug::types::triggers::{Trigger, TriggerBreakpoint};
use baton_agent_debug::types::{Breakpoint, Evaluated, Frame, Phase, Scope, StopEvent, Variable};

/// A session as it stands.
pub(super) fn summary(status: &Status) -> Object {
    let mut summary = object(json!({
        "id": status.id.as_str(),
        "name": status.name,
        "adapter": status.adapter,
        "status": phase(status.phase),
        "launchedAt": format!("{:.3}", status.started_at),
        "lastUsedAt": format!("{:.3}", status.last_used_at),
        "needsConfigurationDone": status.needs_configuration_done,
        "outputTruncated": status.output_truncated,
    }));
    insert(&mut summary, "program", status.program.as_deref());
    insert(&mut summary, "cwd", status.cwd.as_deref());
    insert(&mut summary, "parent", status.parent.as_ref().map(|parent| parent.as_str()));
    insert(&mut summary, "pid", status.pid);
    insert(&mut summary, "exitCode", status.exit_code);
    insert(&mut summary, "end", status.end.as_deref());
    if let Some(stop) = status.last_stop.as_deref() {
        summary.extend(place(stop));
    }
    summary
}

/// Where a program stopped.
fn place(stop: &StopEvent) -> Object {
    let mut place = object(json!({"threadId": stop.thread_id, "stopReason": stop.reason}));
    insert(&mut place, "stopDescription", stop.description.as_deref());
    insert(&mut place, "stopText", stop.text.as_deref());
    if let Some(source) = &stop.source {
        place.insert("source".to_owned(), json!({"name": source.name, "path": source.path}));
    }
    insert(&mut place, "line", stop.line);
    insert(&mut place, "column", stop.column);
    if let Some(top) = stop.call_stack.first() {
        place.insert("frameId".to_owned(), top.frame_id.into());
        place.insert("frameName".to_owned(), top.function_name.as_str().into());
        insert(&mut place, "instructionPointerReference", top.instruction_pointer.as_deref());
    }
    if let Some(ids) = &stop.hit_breakpoint_ids {
        place.insert("hitBreakpointIds".to_owned(), json!(ids));
    }
    place
}

/// In the document's words.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "launching",
        Phase::Configuring => "configuring",
        Phase::Running => "running",
        Phase::Stopped => "stopped",
        Phase::Terminating => "terminating",
        Phase::Terminated => "terminated",
    }
}

/// A breakpoint on a line.
pub(super) fn breakpoint(breakpoint: &Breakpoint) -> Value {
    let mut entry = object(json!({
        "id": breakpoint.id,
        "verified": breakpoint.verified,
        "source": {"path": breakpoint.path},
        "line": breakpoint.line,
    }));
    insert(&mut entry, "condition", breakpoint.condition.as_deref());
    insert(&mut entry, "hitCondition", breakpoint.hit_condition.as_deref());
    insert(&mut entry, "logMessage", breakpoint.log_message.as_deref());
    insert(&mut entry, "message", breakpoint.message.as_deref());
    insert(&mut entry, "actualLine", breakpoint.actual_line.filter(|line| *line != breakpoint.line));
    Value::Object(entry)
}

/// A breakpoint on anything else.
pub(super) fn trigger(breakpoint: &TriggerBreakpoint) -> Value {
    let mut entry = object(json!({"id": breakpoint.id, "verified": breakpoint.verified}));
    match &breakpoint.trigger {
        Trigger::Function { name } => insert(&mut entry, "name", Some(name.as_str())),
        Trigger::Instruction { reference, offset } => {
            insert(&mut entry, "instructionReference", Some(reference.as_str()));
            insert(&mut entry, "offset", Some(*offset).filter(|offset| *offset != 0));
        }
        Trigger::Data { data_id, access } => {
            insert(&mut entry, "dataId", Some(data_id.as_str()));
            insert(&mut entry, "accessType", access.map(|access| access.as_str()));
        }
        Trigger::Exception { filter } => insert(&mut entry, "filter", Some(filter.as_str())),
    }
    insert(&mut entry, "condition", breakpoint.condition.as_deref());
    insert(&mut entry, "hitCondition", breakpoint.hit_condition.as_deref());
    insert(&mut entry, "message", breakpoint.message.as_deref());
    insert(&mut entry, "line", breakpoint.line);
    Value::Object(entry)
}

/// A frame of a call stack.
pub(super) fn frame(frame: &Frame) -> Value {
    let mut entry = object(json!({
        "name": frame.function_name,
        "line": frame.line_number,
        "column": frame.column_number,
    }));
    // Of a thread that runs none can be asked for.
    insert(&mut entry, "id", Some(frame.frame_id).filter(|id| *id != 0));
    if !frame.file_path.is_empty() {
        entry.insert("source".to_owned(), json!({"path": frame.file_path}));
    }
    insert(&mut entry, "instructionPointerReference", frame.instruction_pointer.as_deref());
    Value::Object(entry)
}

/// A thread.
pub(super) fn thread(thread: &Thread) -> Value {
    json!({"id": thread.id, "name": thread.name, "stopped": thread.is_stopped})
}

/// The steps on the way of several.
pub(super) fn steps(steps: &[Step]) -> Vec<Value> {
    let entry = |step: &Step| {
        let changed: Object =
            step.changed.iter().cloned().map(|(name, value)| (name, value.into())).collect();
        json!({"line": step.line, "changed": changed})
    };
    steps.iter().map(entry).collect()
}

/// What a program that runs does.
pub(super) fn doing(doing: &Doing) -> Object {
    let mut entry = object(json!({"state": "running"}));
    if let Doing::Stacks { threads, .. } = doing {
        let with_stack = |(one, frames): &(Thread, Vec<Frame>)| {
            let mut entry = thread(one);
            entry["stackFrames"] = frames.iter().map(frame).collect();
            entry
        };
        entry.insert("threads".to_owned(), threads.iter().map(with_stack).collect());
    }
    entry
}

/// A scope of a frame.
pub(super) fn scope(scope: &Scope) -> Value {
    let mut entry = object(json!({
        "name": scope.name,
        "variablesReference": scope.variables_reference,
        "expensive": scope.expensive,
    }));
    insert(&mut entry, "namedVariables", scope.named_variables);
    insert(&mut entry, "indexedVariables", scope.indexed_variables);
    Value::Object(entry)
}

/// A variable, or a member of one.
pub(super) fn variable(variable: &Variable) -> Value {
    let mut entry = object(json!({
        "name": variable.name,
        "value": variable.value,
        "variablesReference": variable.variables_reference,
    }));
    insert(&mut entry, "type", variable.type_name.as_deref());
    let is_other_name = |name: &&str| *name != variable.name;
    insert(&mut entry, "evaluateName", variable.evaluate_name.as_deref().filter(is_other_name));
    insert(&mut entry, "memoryReference", variable.memory_reference.as_deref());
    insert(&mut entry, "namedVariables", variable.named_variables);
    insert(&mut entry, "indexedVariables", variable.indexed_variables);
    Value::Object(entry)
}

/// What an expression gave.
pub(super) fn evaluation(evaluated: &Evaluated, result: &str) -> Value {
    let mut entry = object(json!({"result": result, "variablesReference": evaluated.variables_reference}));
    insert(&mut entry, "type", evaluated.type_name.as_deref());
    insert(&mut entry, "memoryReference", evaluated.memory_reference.as_deref());
    Value::Object(entry)
}

/// Inserts what is there.
pub(super) fn insert(entry: &mut Object, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        entry.insert(name.to_owned(), value.into());
    }
}
