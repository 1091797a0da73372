//! What clients see of the toolset `debugger`: names, arguments and results of its 11 tools.

use serde_json::{Value, json};

use crate::tools::Definition;
use crate::tools::sketch::{Effect, Sketch, by_status};

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
        description: "Read the debug configurations of .vscode/launch.json; their names are for start_debugging.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({}),
        required: &[],
        output: by_status(
            ANSWERS,
            json!({"configurations": list(), "compounds": list(), "notes": {"type": "array"}}),
        ),
    }
}

fn set_breakpoint() -> Sketch {
    Sketch {
        name: "set_breakpoint",
        title: "Set a breakpoint",
        description: "Set a breakpoint, before or during debugging. One at the same place is replaced.",
        effect: Effect::ChangesOnce,
        waits: false,
        properties: json!({
            "file_path": {"type": "string", "minLength": 1, "description": "Absolute, relative, or a unique end of a path."},
            "line_number": line(),
            "column_number": {"type": "integer", "minimum": 1, "maximum": i32::MAX},
            "condition": {"type": "string", "description": "Stop only when this is true."},
            "hit_condition": {"type": "string", "description": "Stop at some hits: \"> 5\", \"== 3\", \"% 2 == 0\"."},
            "log_message": {"type": "string", "description": "Print this with its {expressions} instead of stopping."},
        }),
        required: &["file_path", "line_number"],
        output: by_status(ANSWERS, json!({"breakpoint": breakpoint()})),
    }
}

fn remove_breakpoint() -> Sketch {
    Sketch {
        name: "remove_breakpoint",
        title: "Remove breakpoints",
        description: "Give exactly one of breakpoint_id, location, clear_all.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({
            "breakpoint_id": {"type": "integer"},
            "location": {
                "type": "object",
                "properties": {"file_path": {"type": "string", "minLength": 1}, "line_number": line()},
                "required": ["file_path", "line_number"],
                "additionalProperties": false,
            },
            "clear_all": {"type": "boolean", "const": true},
        }),
        required: &[],
        output: by_status(ANSWERS, json!({"removed": {"type": "array", "items": {"type": "integer"}}})),
    }
}

fn get_breakpoints() -> Sketch {
    Sketch {
        name: "get_breakpoints",
        title: "List breakpoints",
        description: "List all breakpoints with their state.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({}),
        required: &[],
        output: by_status(
            ANSWERS,
            json!({"timestamp": string(), "breakpoints": {"type": "array", "items": breakpoint()}}),
        ),
    }
}

fn start_debugging() -> Sketch {
    Sketch {
        name: "start_debugging",
        title: "Start debugging",
        description: "Start (or attach to) what a configuration of launch.json says, and wait until it stops or \
            ends. Set breakpoints first. A stop tells call stack and local variables; status timeout: it still runs.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "configuration_name": {"type": "string", "minLength": 1},
            "no_debug": {"type": "boolean", "description": "Run without debugging."},
            "file": {"type": "string", "minLength": 1, "description": "What ${file} means."},
            "timeout": timeout(),
        }),
        required: &["configuration_name"],
        output: by_status(WAITS, waited(json!({"notes": {"type": "array"}}))),
    }
}

fn continue_debugging() -> Sketch {
    Sketch {
        name: "continue_debugging",
        title: "Continue",
        description: "Let the program run on until it stops again or ends.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "session_id": session_id(),
            "thread_id": thread_id(),
            "timeout": timeout(),
        }),
        required: &["thread_id"],
        output: by_status(WAITS, waited(json!({}))),
    }
}

fn step_execution() -> Sketch {
    Sketch {
        name: "step_execution",
        title: "Step",
        description: "Step over a line, into the function it calls, or out to the caller. With count, steps tells \
            the lines on the way and what changed there.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "session_id": session_id(),
            "thread_id": thread_id(),
            "step_type": {"type": "string", "enum": ["over", "into", "out"]},
            "count": {"type": "integer", "minimum": 1, "maximum": MAX_STEPS, "description": "Default 1."},
            "timeout": timeout(),
        }),
        required: &["thread_id", "step_type"],
        output: by_status(WAITS, waited(json!({"steps": list()}))),
    }
}

fn get_scopes() -> Sketch {
    Sketch {
        name: "get_scopes",
        title: "List scopes",
        description: "List the scopes (locals, globals, ...) of a stack frame.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({"frame_id": frame_id()}),
        required: &["frame_id"],
        output: by_status(ANSWERS, json!({"scopes": list()})),
    }
}

fn get_variables() -> Sketch {
    Sketch {
        name: "get_variables",
        title: "List variables",
        description: "List the variables of a scope, or the members of a variable. Long lists come in pages.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({
            "variables_reference": {"type": "integer", "minimum": 1},
            "start": {"type": "integer", "minimum": 0, "description": "Default 0."},
            "count": {"type": "integer", "minimum": 1, "maximum": MAX_VARIABLES, "description": "Default 100."},
            "max_length": {"type": "integer", "minimum": 1, "maximum": MAX_VALUE_LEN, "description": "Of a value. Default 256."},
        }),
        required: &["variables_reference"],
        output: by_status(ANSWERS, json!({"variables": list(), "total": integer(), "next_start": integer()})),
    }
}

fn evaluate_expression() -> Sketch {
    Sketch {
        name: "evaluate_expression",
        title: "Evaluate",
        description: "Evaluate an expression in a stack frame. It runs in the program and may change it.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({
            "expression": {"type": "string", "minLength": 1},
            "frame_id": frame_id(),
            "context": {"type": "string", "enum": ["watch", "repl", "hover", "clipboard"]},
            "max_length": {"type": "integer", "minimum": 1, "maximum": MAX_RESULT_LEN, "description": "Of the result. Default 4096."},
        }),
        required: &["expression", "frame_id"],
        output: by_status(
            ANSWERS,
            json!({"result": string(), "type": string(), "variables_reference": integer()}),
        ),
    }
}

fn stop_debugging() -> Sketch {
    Sketch {
        name: "stop_debugging",
        title: "Stop debugging",
        description: "End the session: a launched program ends, an attached one is let go.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({"session_id": session_id()}),
        required: &[],
        output: by_status(ANSWERS, json!({"session_id": string()})),
    }
}

/// Most variables in one answer.
pub const MAX_VARIABLES: usize = crate::debug::types::MAX_VARIABLES;
/// Longest value of a variable that can be asked for.
const MAX_VALUE_LEN: usize = crate::debug::types::MAX_VALUE_LEN;
/// Longest result of an expression that can be asked for.
const MAX_RESULT_LEN: usize = 64 * 1024;
/// Most steps in one call.
const MAX_STEPS: usize = 50;

fn line() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": i32::MAX})
}

fn timeout() -> Value {
    json!({"type": "number", "minimum": 1, "maximum": 300, "description": "Seconds. Default 30."})
}

fn session_id() -> Value {
    json!({"type": "string", "minLength": 1, "description": "Default: the active one."})
}

fn thread_id() -> Value {
    json!({"type": "integer"})
}

fn frame_id() -> Value {
    json!({"type": "integer", "description": "Of the latest stop."})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn integer() -> Value {
    json!({"type": "integer"})
}

fn list() -> Value {
    json!({"type": "array", "items": {"type": "object"}})
}

fn breakpoint() -> Value {
    json!({"type": "object", "required": ["id", "verified", "source", "line"]})
}

/// Results of a tool that waits. The schema names what is always there and no more: clients hand it to models with
/// every list of tools.
fn waited(more: Value) -> Value {
    let mut results = json!({
        "stop_event_data": {
            "type": "object",
            "required": ["timestamp", "session_id", "reason", "thread_id", "call_stack"],
        },
        "session_id": string(),
        "exit_code": integer(),
        "output": string(),
        "breakpoints_not_hit": {"type": "array"},
    });
    if let (Some(results), Value::Object(more)) = (results.as_object_mut(), more) {
        results.extend(more);
    }
    results
}
