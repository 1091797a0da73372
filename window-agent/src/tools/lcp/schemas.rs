//! What clients see of the toolset `lcp`: names, arguments and results of its six tools.

use serde_json::{Value, json};

use crate::tools::sketch::{Effect, Sketch};
use crate::tools::{Definition, Object, object};

/// Name of the toolset.
pub const TOOLSET: &str = "lcp";

/// All six tools.
pub fn definitions() -> Vec<Definition> {
    let sketches = [launch(), add_breakpoint(), remove_breakpoint(), step(), evaluate(), stop()];
    sketches.into_iter().map(|sketch| sketch.into_definition(TOOLSET)).collect()
}

fn launch() -> Sketch {
    Sketch {
        name: "lcp_debug_launch",
        title: "Launch",
        description: "Debug a program and stop at its first line. The debugger is found from the program. \
            session_id is for every later call.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "program": text("Relative to the project, or a unique part of a path."),
            "args": {"type": "array", "items": {"type": "string"}, "description": "Arguments of the program."},
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "More environment variables.",
            },
        }),
        required: &["program"],
        output: enveloped(
            json!({
                "session_id": string(),
                "status": {"type": "string", "description": "started, or terminated when it ended at once."},
                "breakpoint_count": {"type": "integer"},
                "current_line": nullable("integer"),
                "message": string(),
                "output": output(),
            }),
            &["session_id", "status", "breakpoint_count", "current_line"],
        ),
    }
}

fn add_breakpoint() -> Sketch {
    Sketch {
        name: "lcp_add_breakpoint",
        title: "Add a breakpoint",
        description: "Add a breakpoint, before or during a session.",
        effect: Effect::ChangesOnce,
        waits: false,
        properties: json!({
            "file": text("Relative to the project, or a unique part of a path."),
            "line": {"type": "integer", "minimum": 1, "maximum": i32::MAX, "description": "From 1."},
            "condition": {"type": "string", "description": "Stop only when this is true."},
            "hit_condition": {"type": "string", "description": "Stop only at some hits: \"> 5\", \"== 3\"."},
            "log_message": {"type": "string", "description": "Print this instead of stopping."},
        }),
        required: &["file", "line"],
        output: enveloped(
            json!({
                "breakpoint_id": string(),
                "verified": {"type": "boolean", "description": "False until a debugger has bound it."},
                "file": string(),
                "line": {"type": "integer"},
                "message": string(),
            }),
            &["breakpoint_id", "verified", "file", "line"],
        ),
    }
}

fn remove_breakpoint() -> Sketch {
    Sketch {
        name: "lcp_remove_breakpoint",
        title: "Remove a breakpoint",
        description: "Remove the breakpoint of that id.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({"breakpoint_id": text("From lcp_add_breakpoint.")}),
        required: &["breakpoint_id"],
        output: enveloped(
            json!({"success": {"type": "boolean"}, "remaining_breakpoints": {"type": "integer"}}),
            &["success", "remaining_breakpoints"],
        ),
    }
}

fn step() -> Sketch {
    Sketch {
        name: "lcp_debug_step",
        title: "Step",
        description: "Run one step, or on to the next breakpoint, and answer where the program stands then. A \
            program that does not stop within 5 s is paused by force (status paused). status terminated: it ended.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "session_id": session_id(),
            "action": {"type": "string", "enum": ["next", "stepIn", "stepOut", "continue"]},
        }),
        required: &["session_id", "action"],
        output: enveloped(
            json!({
                "status": {"type": "string", "enum": ["stopped", "paused", "terminated"]},
                "reason": string(),
                "message": string(),
                "current_line": nullable("integer"),
                "current_file": nullable("string"),
                "call_stack": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"function": string(), "file": string(), "line": {"type": "integer"}},
                        "required": ["function", "file", "line"],
                    },
                },
                "local_variables": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"name": string(), "value": string(), "type": string()},
                        "required": ["name", "value", "type"],
                    },
                },
                "output": output(),
                "exit_code": {"type": "integer"},
            }),
            &["status", "reason", "current_line", "current_file", "call_stack", "local_variables"],
        ),
    }
}

fn evaluate() -> Sketch {
    Sketch {
        name: "lcp_debug_evaluate",
        title: "Evaluate",
        description: "Evaluate an expression where the program stopped. It may change the program.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({"session_id": session_id(), "expression": text("In the program's language.")}),
        required: &["session_id", "expression"],
        output: enveloped(
            json!({"value": string(), "type": string(), "variablesReference": {"type": "integer"}}),
            &["value", "type", "variablesReference"],
        ),
    }
}

fn stop() -> Sketch {
    Sketch {
        name: "lcp_debug_stop",
        title: "Stop debugging",
        description: "End the debug session and its program; one that was attached to runs on.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({"session_id": session_id()}),
        required: &["session_id"],
        output: enveloped(
            json!({"success": {"type": "boolean"}, "message": string()}),
            &["success", "message"],
        ),
    }
}

/// `{"success": true, "data": {...}}`, or an error with `success` false.
fn enveloped(data: Value, required: &[&str]) -> Object {
    object(json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "data": {"type": "object", "properties": data, "required": required},
            "status": {"type": "string", "description": "error, if any."},
            "code": string(),
            "message": string(),
            "hint": string(),
        },
        "required": ["success"],
        "anyOf": [{"required": ["data"]}, {"required": ["status", "code", "message"]}],
    }))
}

fn text(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

fn session_id() -> Value {
    json!({"type": "string", "minLength": 1, "description": "From lcp_debug_launch."})
}

fn output() -> Value {
    json!({"type": "string", "description": "The end of what the program printed since the last answer."})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn nullable(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}
