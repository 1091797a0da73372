//! What clients see of the toolset `debugger`: names, arguments and results of its 11 tools.

use serde_json::{Value, json};

use crate::tools::{Definition, Effect, Sketch};

/// Name of the toolset.
pub const TOOLSET: &str = "debugger";

/// How a wait can end.
const WAITS: &[&str] = &["stopped", "completed", "timeout", "interrupted", "error"];
/// How everything else can end.
const ANSWERS: &[&str] = &["success", "error"];

/// All 11 tools.
pub fn definitions() -> Vec<Definition> {
    let sketches = [
        get_debugger_configurations(),
        set_breakpoint(),
        remove_breakpoint(),
        get_breakpoints(),
        start_debugging(),
        continue_debugging(),
        step_execution(),
        get_scopes(),
        get_variables(),
        evaluate_expression(),
        stop_debugging(),
    ];
    sketches.into_iter().map(|sketch| sketch.into_definition(TOOLSET)).collect()
}

fn get_debugger_configurations() -> Sketch {
    Sketch {
        name: "get_debugger_configurations",
        title: "List debug configurations",
        description: "Read the debug configurations in .vscode/launch.json of the window's folders. \
            Call it before start_debugging to learn their names.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({}),
        required: &[],
        statuses: ANSWERS,
        results: json!({
            "configurations": {
                "type": "array",
                "description": "As written in launch.json, variables unresolved.",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "type": {"type": "string"},
                        "request": {"type": "string"},
                    },
                },
            },
            "compounds": {
                "type": "array",
                "description": "Named groups of configurations.",
                "items": {"type": "object"},
            },
            "notes": notes(),
        }),
    }
}

fn set_breakpoint() -> Sketch {
    Sketch {
        name: "set_breakpoint",
        title: "Set a breakpoint",
        description: "Set a breakpoint, before or during debugging. With condition it stops only when the \
            expression is true, with hit_condition only at certain hits, with log_message it prints instead of \
            stopping. A breakpoint at the same place is replaced.",
        effect: Effect::ChangesOnce,
        waits: false,
        properties: json!({
            "file_path": {"type": "string", "minLength": 1, "description": "Absolute, relative to the window's folder, or a unique end of a path."},
            "line_number": line(),
            "column_number": {"type": "integer", "minimum": 1, "maximum": i32::MAX, "description": "Counted from 1."},
            "condition": {"type": "string", "description": "Expression in the program's language; the program stops when it is true."},
            "hit_condition": {"type": "string", "description": "Which hits stop: \"> 5\", \"== 3\", \"% 2 == 0\"."},
            "log_message": {"type": "string", "description": "Text to print instead of stopping; {expression} is evaluated."},
        }),
        required: &["file_path", "line_number"],
        statuses: ANSWERS,
        results: json!({"breakpoint": breakpoint(true)}),
    }
}

fn remove_breakpoint() -> Sketch {
    Sketch {
        name: "remove_breakpoint",
        title: "Remove breakpoints",
        description: "Remove breakpoints: give exactly one of breakpoint_id, location, clear_all.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({
            "breakpoint_id": {"type": "integer", "description": "From set_breakpoint or get_breakpoints."},
            "location": {
                "type": "object",
                "description": "All breakpoints of this line.",
                "properties": {
                    "file_path": {"type": "string", "minLength": 1},
                    "line_number": line(),
                },
                "required": ["file_path", "line_number"],
                "additionalProperties": false,
            },
            "clear_all": {"type": "boolean", "const": true, "description": "Remove all breakpoints."},
        }),
        required: &[],
        statuses: ANSWERS,
        results: json!({
            "removed": {"type": "array", "items": {"type": "integer"}, "description": "Ids of the removed breakpoints."},
        }),
    }
}

fn get_breakpoints() -> Sketch {
    Sketch {
        name: "get_breakpoints",
        title: "List breakpoints",
        description: "List all breakpoints with their state. timestamp says how fresh the list is.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({}),
        required: &[],
        statuses: ANSWERS,
        results: json!({
            "timestamp": timestamp(),
            "breakpoints": {"type": "array", "items": breakpoint(false)},
        }),
    }
}

fn start_debugging() -> Sketch {
    Sketch {
        name: "start_debugging",
        title: "Start debugging",
        description: "Start the configuration of that name from launch.json (or attach), and wait until the \
            program stops for the first time or ends. Set breakpoints first. status stopped brings \
            stop_event_data with the call stack and the local variables; status timeout means that the program \
            still runs.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "configuration_name": {"type": "string", "minLength": 1, "description": "A name from get_debugger_configurations."},
            "no_debug": {"type": "boolean", "description": "Run without debugging: no breakpoint stops, the answer comes when the program ends. Default false."},
            "file": {"type": "string", "minLength": 1, "description": "The file that ${file} and its kin in the configuration mean."},
            "timeout": timeout(),
        }),
        required: &["configuration_name"],
        statuses: WAITS,
        results: waited(json!({"notes": notes()})),
    }
}

fn continue_debugging() -> Sketch {
    Sketch {
        name: "continue_debugging",
        title: "Continue",
        description: "Let the stopped program run on, and wait until it stops again or ends.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "session_id": session_id(),
            "thread_id": thread_id(),
            "timeout": timeout(),
        }),
        required: &["thread_id"],
        statuses: WAITS,
        results: waited(json!({})),
    }
}

fn step_execution() -> Sketch {
    Sketch {
        name: "step_execution",
        title: "Step",
        description: "Run one step of the stopped program: over a line, into the function it calls, or out to the \
            caller. Answers where it stopped then.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "session_id": session_id(),
            "thread_id": thread_id(),
            "step_type": {"type": "string", "enum": ["over", "into", "out"]},
            "timeout": timeout(),
        }),
        required: &["thread_id", "step_type"],
        statuses: WAITS,
        results: waited(json!({})),
    }
}

fn get_scopes() -> Sketch {
    Sketch {
        name: "get_scopes",
        title: "List scopes",
        description: "List the scopes (locals, globals, ...) of a stack frame of the stopped program.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({"frame_id": frame_id()}),
        required: &["frame_id"],
        statuses: ANSWERS,
        results: json!({
            "scopes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "variables_reference": {"type": "integer", "description": "For get_variables; 0 when empty."},
                        "expensive": {"type": "boolean"},
                        "named_variables": {"type": "integer"},
                        "indexed_variables": {"type": "integer"},
                    },
                    "required": ["name", "variables_reference", "expensive"],
                },
            },
        }),
    }
}

fn get_variables() -> Sketch {
    Sketch {
        name: "get_variables",
        title: "List variables",
        description: "List the variables in a scope, or the members of a variable whose variables_reference is \
            greater than 0. Long lists come in pages.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({
            "variables_reference": {"type": "integer", "minimum": 1, "description": "From get_scopes, get_variables, evaluate_expression or stop_event_data."},
            "start": {"type": "integer", "minimum": 0, "description": "Index of the first variable wanted. Default 0."},
            "count": {"type": "integer", "minimum": 1, "maximum": MAX_VARIABLES, "description": "How many variables at most. Default 100."},
        }),
        required: &["variables_reference"],
        statuses: ANSWERS,
        results: json!({
            "variables": {"type": "array", "items": variable()},
            "total": {"type": "integer", "description": "How many there are, when that is known."},
            "next_start": {"type": "integer", "description": "start of the next page, when there is one."},
        }),
    }
}

fn evaluate_expression() -> Sketch {
    Sketch {
        name: "evaluate_expression",
        title: "Evaluate",
        description: "Evaluate an expression of the program's language in a stack frame of the stopped program. \
            It runs in the program and may change it.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({
            "expression": {"type": "string", "minLength": 1},
            "frame_id": frame_id(),
            "context": {"type": "string", "enum": ["watch", "repl", "hover", "clipboard"], "description": "How the result is used; clipboard gives it in full. Default repl."},
        }),
        required: &["expression", "frame_id"],
        statuses: ANSWERS,
        results: json!({
            "result": {"type": "string"},
            "type": {"type": "string"},
            "variables_reference": {"type": "integer", "description": "For get_variables; 0 when there is nothing inside."},
        }),
    }
}

fn stop_debugging() -> Sketch {
    Sketch {
        name: "stop_debugging",
        title: "Stop debugging",
        description: "End the debug session: a launched program is ended, an attached one is let go. Waits that \
            are running end too.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({"session_id": session_id()}),
        required: &[],
        statuses: ANSWERS,
        results: json!({}),
    }
}

/// Most variables in one answer.
pub const MAX_VARIABLES: usize = crate::debug::types::MAX_VARIABLES;

fn line() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": i32::MAX, "description": "Counted from 1."})
}

fn timeout() -> Value {
    json!({"type": "number", "minimum": 1, "maximum": 300, "description": "Seconds to wait. Default 30."})
}

fn session_id() -> Value {
    json!({"type": "string", "minLength": 1, "description": "stop_event_data.session_id. Leave out for the active session."})
}

fn thread_id() -> Value {
    json!({"type": "integer", "description": "stop_event_data.thread_id."})
}

fn frame_id() -> Value {
    json!({"type": "integer", "description": "From stop_event_data.call_stack of the latest stop."})
}

fn timestamp() -> Value {
    json!({"type": "string", "description": "UTC, ISO 8601."})
}

fn notes() -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": "What else is worth knowing."})
}

fn nullable(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}

fn breakpoint(has_timestamp: bool) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "verified": {"type": "boolean", "description": "False until a debugger has confirmed it."},
            "source": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            "line": {"type": "integer"},
            "column": {"type": "integer"},
            "condition": {"type": "string"},
            "hit_condition": {"type": "string"},
            "log_message": {"type": "string"},
            "message": {"type": "string"},
            "actual_line": {"type": "integer", "description": "Where the debugger put it, when elsewhere."},
        },
        "required": ["id", "verified", "source", "line"],
    });
    if has_timestamp {
        schema["properties"]["timestamp"] = timestamp();
    }
    schema
}

fn variable() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "value": {"type": "string"},
            "type": nullable("string"),
            "variables_reference": {"type": "integer", "description": "For get_variables; 0 when there is nothing inside."},
            "evaluate_name": {"type": "string"},
            "memory_reference": {"type": "string"},
            "indexed_variables": {"type": "integer"},
            "named_variables": {"type": "integer"},
        },
        "required": ["name", "value", "variables_reference"],
    })
}

fn frame() -> Value {
    json!({
        "type": "object",
        "properties": {
            "frame_id": {"type": "integer"},
            "function_name": {"type": "string"},
            "file_path": {"type": "string"},
            "line_number": {"type": "integer"},
            "column_number": {"type": "integer"},
        },
        "required": ["frame_id", "function_name", "file_path", "line_number", "column_number"],
    })
}

/// Results of a tool that waits.
fn waited(more: Value) -> Value {
    let mut results = json!({
        "stop_event_data": stop_event_data(),
        "session_id": {"type": "string", "description": "The session, for later calls."},
        "exit_code": {"type": "integer", "description": "With status completed: of the program."},
        "output": {"type": "string", "description": "The end of what the program printed."},
        "breakpoints_not_hit": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "With status completed: ids of breakpoints that never stopped the program.",
        },
    });
    if let (Some(results), Value::Object(more)) = (results.as_object_mut(), more) {
        results.extend(more);
    }
    results
}

fn stop_event_data() -> Value {
    json!({
        "type": "object",
        "description": "With status stopped: where and why, with call stack and local variables.",
        "properties": {
            "timestamp": timestamp(),
            "session_id": {"type": "string"},
            "reason": {"type": "string", "description": "breakpoint, step, exception, pause, entry, ..."},
            "thread_id": {"type": "integer"},
            "description": nullable("string"),
            "text": nullable("string"),
            "all_threads_stopped": nullable("boolean"),
            "source": {
                "type": ["object", "null"],
                "properties": {"path": {"type": "string"}, "name": {"type": "string"}},
            },
            "line": nullable("integer"),
            "column": nullable("integer"),
            "call_stack": {"type": "array", "items": frame()},
            "top_frame_variables": {
                "type": ["object", "null"],
                "properties": {
                    "scope_name": {"type": "string"},
                    "variables": {"type": "array", "items": variable()},
                },
            },
            "hit_breakpoint_ids": {"type": ["array", "null"], "items": {"type": "integer"}},
        },
        "required": ["timestamp", "session_id", "reason", "thread_id", "call_stack"],
    })
}
