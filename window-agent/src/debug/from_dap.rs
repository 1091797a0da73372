//! Bodies of the adapter to types of ours: ids are exchanged, texts bounded, whatever is missing tolerated.

use jiff::Timestamp;
use serde_json::Value;

use crate::debug::breakpoints::SessionKey;
use crate::debug::handles::{Handles, Owner};
use crate::debug::session::capture::Captured;
use crate::debug::types::{
    Evaluated, Frame, MAX_TOP_VALUE_LEN, MAX_TOP_VARIABLES, OutputTail, Scope, ScopeVariables, SessionId,
    Source, StopEvent, Variable,
};

/// Longest result of an evaluation that is told, in bytes.
const MAX_RESULT_LEN: usize = 64 * 1024;
/// Longest explanation of an evaluation that failed, in bytes.
const MAX_PROBLEM_LEN: usize = 500;

/// The ids given out.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    pub(crate) frames: Handles,
    pub(crate) references: Handles,
}

impl Ids {
    /// The program of a session goes on, or one thread of it: its ids are void.
    pub(crate) fn forget(&mut self, session: SessionKey, thread_id: Option<i64>) {
        self.frames.forget(session, thread_id);
        self.references.forget(session, thread_id);
    }

    fn reference(&mut self, owner: Owner, body: &Value) -> i64 {
        match body["variablesReference"].as_i64() {
            None | Some(0) => 0,
            Some(theirs) => self.references.add(owner, theirs),
        }
    }
}

/// A stop, without what was printed.
pub(crate) fn stop_event(
    captured: &Captured,
    (key, session): (SessionKey, SessionId),
    timestamp: Timestamp,
    ids: &mut Ids,
) -> StopEvent {
    let frames = captured.stack["stackFrames"].as_array().map(Vec::as_slice).unwrap_or_default();
    let owner = Owner { session: key, thread_id: captured.thread_id };
    let call_stack: Vec<Frame> = frames.iter().map(|body| frame(body, owner, ids)).collect();
    let top = call_stack.first();
    let source = top.filter(|top| !top.file_path.is_empty()).map(|top| Source {
        path: top.file_path.clone(),
        name: top.file_path.rsplit('/').next().unwrap_or_default().to_owned(),
    });
    let event = &captured.event;
    StopEvent {
        timestamp,
        session,
        reason: event["reason"].as_str().unwrap_or("unknown").to_owned(),
        thread_id: captured.thread_id,
        description: text(&event["description"]),
        text: exception_text(captured).or_else(|| text(&event["text"])),
        all_threads_stopped: event["allThreadsStopped"].as_bool(),
        source,
        line: top.map(|top| top.line_number),
        column: top.map(|top| top.column_number),
        total_frames: captured.stack["totalFrames"].as_i64(),
        top_frame_variables: scope_variables(captured, owner, ids),
        hit_breakpoint_ids: captured.hit.clone().filter(|hit| !hit.is_empty()),
        output: OutputTail::default(),
        call_stack,
    }
}

/// `ValueError: x must be positive`.
fn exception_text(captured: &Captured) -> Option<String> {
    let exception = &captured.exception;
    let name = exception["exceptionId"].as_str()?;
    let says = exception["details"]["message"].as_str().or_else(|| exception["description"].as_str());
    match says {
        Some(says) if !says.is_empty() && says != name => Some(format!("{name}: {says}")),
        _ => Some(name.to_owned()),
    }
}

/// Those of all scopes that were fetched, the innermost first.
fn scope_variables(captured: &Captured, owner: Owner, ids: &mut Ids) -> Option<ScopeVariables> {
    let fetched = captured
        .scopes
        .iter()
        .filter_map(|(scope, variables)| Some((scope["name"].as_str()?, variables["variables"].as_array()?)));
    let (names, bodies): (Vec<&str>, Vec<&Vec<Value>>) = fetched.unzip();
    if names.is_empty() {
        return None;
    }
    let bodies: Vec<&Value> = bodies.into_iter().flatten().collect();
    Some(ScopeVariables {
        scope_name: names.join(", "),
        variables: bodies
            .iter()
            .take(MAX_TOP_VARIABLES)
            .map(|body| variable(body, owner, ids, MAX_TOP_VALUE_LEN))
            .collect(),
        omitted: bodies.len().saturating_sub(MAX_TOP_VARIABLES),
    })
}

/// `demo::main::h38e95565b6f46d0e` is Rust's `demo::main`.
fn without_hash(name: &str) -> &str {
    const LEN: usize = 16;
    let is_hash = |hash: &str| hash.len() == LEN && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name)
}

/// A frame of a call stack.
pub(crate) fn frame(body: &Value, owner: Owner, ids: &mut Ids) -> Frame {
    Frame {
        frame_id: ids.frames.add(owner, body["id"].as_i64().unwrap_or(0)),
        function_name: without_hash(body["name"].as_str().unwrap_or_default()).to_owned(),
        file_path: body["source"]["path"].as_str().unwrap_or_default().to_owned(),
        line_number: body["line"].as_i64().unwrap_or(0),
        column_number: body["column"].as_i64().unwrap_or(0),
        instruction_pointer: text(&body["instructionPointerReference"]),
    }
}

/// A scope.
pub(crate) fn scope(body: &Value, owner: Owner, ids: &mut Ids) -> Scope {
    Scope {
        name: body["name"].as_str().unwrap_or_default().to_owned(),
        variables_reference: ids.reference(owner, body),
        expensive: body["expensive"].as_bool().unwrap_or(false),
        named_variables: body["namedVariables"].as_i64(),
        indexed_variables: body["indexedVariables"].as_i64(),
    }
}

/// A variable; its value is cut at `max_len` bytes.
pub(crate) fn variable(body: &Value, owner: Owner, ids: &mut Ids, max_len: usize) -> Variable {
    let variables_reference = ids.reference(owner, body);
    // gdb says nothing of what has parts.
    let value = match body["value"].as_str().unwrap_or_default() {
        "" if variables_reference != 0 => "{...}",
        value => value,
    };
    Variable {
        name: body["name"].as_str().unwrap_or_default().to_owned(),
        value: cut(value, max_len),
        type_name: text(&body["type"]),
        variables_reference,
        evaluate_name: text(&body["evaluateName"]),
        memory_reference: text(&body["memoryReference"]),
        named_variables: body["namedVariables"].as_i64(),
        indexed_variables: body["indexedVariables"].as_i64(),
    }
}

/// The value of an expression.
pub(crate) fn evaluated(body: &Value, owner: Owner, ids: &mut Ids) -> Evaluated {
    Evaluated {
        result: cut(body["result"].as_str().unwrap_or_default(), MAX_RESULT_LEN),
        type_name: text(&body["type"]),
        variables_reference: ids.reference(owner, body),
        memory_reference: text(&body["memoryReference"]),
    }
}

/// Puts our ids in the place of the adapter's, in an answer of any kind.
pub(crate) fn exchange_ids(body: &mut Value, owner: Owner, ids: &mut Ids) {
    let frames = body.get_mut("stackFrames").and_then(Value::as_array_mut);
    for frame in frames.into_iter().flatten() {
        if let Some(theirs) = frame["id"].as_i64() {
            frame["id"] = Value::from(ids.frames.add(owner, theirs));
        }
    }
    exchange_references(body, owner, ids);
}

fn exchange_references(body: &mut Value, owner: Owner, ids: &mut Ids) {
    match body {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_i64().filter(|theirs| name == "variablesReference" && *theirs != 0) {
                    Some(theirs) => *value = Value::from(ids.references.add(owner, theirs)),
                    None => exchange_references(value, owner, ids),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| exchange_references(item, owner, ids)),
        _ => {}
    }
}

/// The parts of a value whose adapter says nothing of the whole, one level deep: `{x = 1, y = 2}`.
pub(crate) fn parts(body: &Value) -> String {
    const MAX_PARTS: usize = 20;
    let bodies = body["variables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let part = |body: &Value| {
        let (name, value) =
            (body["name"].as_str().unwrap_or_default(), body["value"].as_str().unwrap_or_default());
        format!("{name} = {}", if value.is_empty() { "{...}" } else { value })
    };
    let mut parts: Vec<String> = bodies.iter().take(MAX_PARTS).map(part).collect();
    if bodies.len() > MAX_PARTS {
        parts.push(format!("{} more", bodies.len() - MAX_PARTS));
    }
    format!("{{{}}}", parts.join(", "))
}

/// What went wrong with an expression, out of an adapter's message: of a Python traceback the exception alone, which
/// stands behind the frames of the last one.
pub(crate) fn evaluation_problem(message: &str) -> String {
    const TRACEBACK: &str = "Traceback (most recent call last):";
    let problem = match message.rfind(TRACEBACK) {
        Some(at) => {
            let lines = message[at + TRACEBACK.len()..].lines();
            let is_said = |line: &&str| !line.is_empty() && !line.starts_with(char::is_whitespace);
            lines.skip_while(|line| !is_said(line)).map(str::trim).collect::<Vec<_>>().join(" ")
        }
        None => message.trim().to_owned(),
    };
    let problem = if problem.is_empty() { message.trim().to_owned() } else { problem };
    cut(&problem, MAX_PROBLEM_LEN)
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// At most `max_len` bytes, and whether there were more.
fn cut(text: &str, max_len: usize) -> String {
    if text.len() <= max_len {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max_len);
    format!("{}... ({} bytes more)", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_made_between_characters_and_says_so() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("aéb", 2), "a... (3 bytes more)");
    }

    #[test]
    fn a_traceback_is_reduced_to_what_it_says() {
        let frames = "  File \"<string>\", line 1, in <module>\n";
        let one = format!("Traceback (most recent call last):\n{frames}NameError: name 'x' is not defined\n");
        assert_eq!(evaluation_problem(&one), "NameError: name 'x' is not defined");
        let two = format!(
            "{one}\nDuring handling of the above exception, another exception occurred:\n\n\
             Traceback (most recent call last):\n{frames}    int('a')\n    ^^^\nValueError: bad\n  in field a\n"
        );
        assert_eq!(evaluation_problem(&two), "ValueError: bad in field a");
        assert_eq!(evaluation_problem("SyntaxError: invalid syntax"), "SyntaxError: invalid syntax");
        let cut_off = format!("Traceback (most recent call last):\n{frames}");
        assert_eq!(evaluation_problem(&cut_off), cut_off.trim());
    }
}
