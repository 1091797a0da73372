//! CORE: what the engine reads of answers, events and requests, as types.

use std::collections::BTreeMap;

use baton_agent_base::wire::bodies;
pub(crate) use baton_agent_base::wire::read;
use serde::Serialize;
use serde_json::{Map, Value};

bodies! {
    pub(crate),

    /// `stopped`.
    Stopped {
        reason: Option<String>,
        thread_id: Option<i64>,
        description: Option<String>,
        text: Option<String>,
        all_threads_stopped: Option<bool>,
        hit_breakpoint_ids: Option<Vec<i64>>,
    }

    /// `continued`.
    Continued {
        thread_id: Option<i64>,
        all_threads_continued: Option<bool>,
    }

    /// `thread`; `breakpoint` has such a reason as well.
    ThreadEvent {
        reason: Option<String>,
    }

    /// `process`.
    Process {
        system_process_id: Option<i64>,
    }

    /// `exited`.
    Exited {
        exit_code: Option<i64>,
        /// Not of DAP: the signal that ended the program, empty when none did. Baton's part of gdb knows it.
        signal: Option<String>,
    }

    /// `output`.
    Output {
        category: Option<String>,
        output: Option<String>,
    }

    /// `breakpoint`.
    #[derive(Serialize)]
    BreakpointEvent {
        reason: Option<String>,
        breakpoint: Breakpoint,
    }

    /// `setBreakpoints` and its like: what they are answered.
    Breakpoints {
        breakpoints: Option<Vec<Breakpoint>>,
    }

    /// What an adapter made of a breakpoint.
    #[derive(Serialize)]
    Breakpoint {
        id: Option<i64>,
        verified: bool,
        message: Option<String>,
        reason: Option<String>,
        source: Source,
        line: Option<u32>,
    }

    /// Where text is.
    #[derive(Serialize)]
    Source {
        path: Option<String>,
    }

    /// `threads`.
    Threads {
        threads: Vec<Thread>,
    }

    /// A thread.
    Thread {
        id: Option<i64>,
        name: String,
    }

    /// `stackTrace`.
    StackTrace {
        stack_frames: Vec<StackFrame>,
        total_frames: Option<i64>,
    }

    /// A frame.
    StackFrame {
        id: Option<i64>,
        name: String,
        source: Source,
        line: i64,
        column: i64,
        instruction_pointer_reference: Option<String>,
    }

    /// `scopes`.
    Scopes {
        scopes: Vec<Scope>,
    }

    /// A scope.
    Scope {
        name: Option<String>,
        presentation_hint: Option<String>,
        variables_reference: i64,
        named_variables: Option<i64>,
        indexed_variables: Option<i64>,
        expensive: bool,
    }

    /// `variables`.
    Variables {
        variables: Vec<Variable>,
    }

    /// A variable.
    Variable {
        name: String,
        value: String,
        #[serde(rename = "type")]
        kind: Option<String>,
        evaluate_name: Option<String>,
        variables_reference: i64,
        named_variables: Option<i64>,
        indexed_variables: Option<i64>,
        memory_reference: Option<String>,
    }

    /// `evaluate`.
    Evaluated {
        result: String,
        #[serde(rename = "type")]
        kind: Option<String>,
        variables_reference: i64,
        named_variables: Option<i64>,
        indexed_variables: Option<i64>,
        memory_reference: Option<String>,
    }

    /// `exceptionInfo`.
    ExceptionInfo {
        exception_id: Option<String>,
        description: Option<String>,
        details: ExceptionDetails,
    }

    /// More about an exception.
    ExceptionDetails {
        message: Option<String>,
    }

    /// What the capabilities say of exceptions.
    Exceptions {
        exception_breakpoint_filters: Vec<ExceptionFilter>,
        supports_exception_filter_options: bool,
    }

    /// A kind of exceptions that an adapter can stop at.
    ExceptionFilter {
        filter: String,
        default: bool,
        supports_condition: bool,
    }

    /// The request `setBreakpoints`, or `setFunctionBreakpoints`, which has no source.
    SetBreakpoints {
        source: Source,
        breakpoints: Vec<WantedBreakpoint>,
    }

    /// One of them.
    WantedBreakpoint {
        line: i64,
        column: Option<i64>,
        name: String,
    }

    /// The request `runInTerminal`.
    RunInTerminal {
        args: Vec<String>,
        cwd: Option<String>,
        env: Map<String, Value>,
    }

    /// The arguments of `disconnect` and `terminate`.
    Ends {
        restart: bool,
    }

    /// The ids in the arguments of a request.
    Named {
        frame_id: Option<i64>,
        variables_reference: Option<i64>,
        thread_id: Option<i64>,
    }

    /// A request as its sender's tracker sees it.
    Sent {
        seq: Option<i64>,
        command: String,
        arguments: Value,
    }
}

/// Types whose fields are said when there is something to say.
macro_rules! wishes {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $kind:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct $name {
            $(#[serde(skip_serializing_if = "Option::is_none")] pub(crate) $field: Option<$kind>,)*
        }
    )*};
}

wishes! {
    /// A breakpoint of any kind, as an adapter is asked for it.
    NewBreakpoint {
        line: u32,
        column: u32,
        name: String,
        instruction_reference: String,
        offset: i64,
        data_id: String,
        access_type: &'static str,
        condition: String,
        hit_condition: String,
        log_message: String,
    }

    /// The arguments of a request that lets a program go on.
    Going {
        thread_id: i64,
        frame_id: i64,
        target_id: i64,
        granularity: &'static str,
        single_thread: bool,
    }
}

/// The arguments of `setExceptionBreakpoints`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetExceptions {
    pub(crate) filters: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) filter_options: Vec<FilterOption>,
}

/// An exception filter with a condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FilterOption {
    pub(crate) filter_id: String,
    pub(crate) condition: String,
}

/// Puts ids of ours in the place of the adapter's in the body of `stopped`; without one that is known, none is told.
pub(crate) fn exchange_hits(body: &mut Value, ours: &BTreeMap<i64, i64>) {
    let Some(hit) = read::<Stopped>(body).hit_breakpoint_ids else { return };
    let known: Vec<i64> = hit.iter().filter_map(|id| ours.get(id).copied()).collect();
    match body.as_object_mut() {
        Some(body) if known.is_empty() => drop(body.remove("hitBreakpointIds")),
        Some(body) => drop(body.insert("hitBreakpointIds".to_owned(), known.into())),
        None => {}
    }
}

/// Whether a message of an editor ends a session to start it once more.
pub(crate) fn restarts(message: &Value) -> bool {
    let Sent { command, arguments, .. } = read(message);
    matches!(command.as_str(), "disconnect" | "terminate") && read::<Ends>(&arguments).restart
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_as_it_should_be_is_missing_and_nothing_else_is() {
        let frame: StackFrame =
            read(&json!({"id": "7", "name": "main", "source": null, "line": 3, "column": -1.5}));
        assert_eq!(frame, StackFrame { name: "main".to_owned(), line: 3, ..StackFrame::default() });
        assert_eq!(read::<StackTrace>(&json!([1])), StackTrace::default());
        let stack: StackTrace = read(&json!({"stackFrames": [{"id": 1}, {}], "totalFrames": null}));
        assert_eq!(stack.stack_frames.len(), 2);
        let told = json!({"breakpoints": [null, {"id": 1}], "hitBreakpointIds": [1, "2"], "args": ["a", 2]});
        assert_eq!(read::<Breakpoints>(&told).breakpoints.unwrap()[1].id, Some(1), "each keeps its place");
        assert_eq!(read::<Stopped>(&told).hit_breakpoint_ids, Some(vec![1]));
        assert_eq!(read::<RunInTerminal>(&told).args, ["a"]);
        assert_eq!(read::<Breakpoints>(&json!({"breakpoints": {}})).breakpoints, None);
    }

    #[test]
    fn hits_that_nobody_knows_are_not_told() {
        let exchanged = |ids: Value| {
            let mut body = json!({"hitBreakpointIds": ids});
            exchange_hits(&mut body, &BTreeMap::from([(1, 10), (2, 20)]));
            body
        };
        assert_eq!(exchanged(json!([2, 7])), json!({"hitBreakpointIds": [20]}));
        assert_eq!(exchanged(json!([7])), json!({}));
        assert_eq!(exchanged(Value::Null), json!({"hitBreakpointIds": null}));
    }
}
