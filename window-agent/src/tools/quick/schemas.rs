//! What clients see of the toolset `quick`: names, arguments and results of its 14 tools.
//!
//! Three documented results are lists, which `structuredContent` cannot be: there the list is the text, and the
//! object holds it as `result`.

use serde_json::{Value, json};

use crate::tools::sketch::{Effect, Sketch, documented};
use crate::tools::{Definition, Object};

/// Name of the toolset.
pub const TOOLSET: &str = "quick";

/// All 14 tools.
pub fn definitions() -> Vec<Definition> {
    let sketches = [
        start(),
        stop(),
        status(),
        set_breakpoint(),
        remove_breakpoint(),
        list_breakpoints(),
        resume(),
        step(
            "debug_stepOver",
            "Step over",
            "Run to the next line, over calls. Answers where it stopped then.",
        ),
        step(
            "debug_stepInto",
            "Step into",
            "Run to the next line, into a call. Answers where it stopped then.",
        ),
        step("debug_stepOut", "Step out", "Run until the function returns. Answers where it stopped then."),
        pause(),
        stack_trace(),
        variables(),
        evaluate(),
    ];
    sketches.into_iter().map(|sketch| sketch.into_definition(TOOLSET)).collect()
}

fn start() -> Sketch {
    Sketch {
        name: "debug_start",
        title: "Debug a file",
        description: "Debug a program file without any configuration; the language is found from the file. Set \
            breakpoints first. Answers once it stops, ends, or has run for a while. status: stopped, running or \
            terminated.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({
            "file": text("Program: absolute, relative to the window's folder, or a unique end of a path."),
            "type": {"type": "string", "description": "python, node, ... Default: from the file."},
            "stopOnEntry": {"type": "boolean", "description": "Stop at the first line. Default false."},
        }),
        required: &["file"],
        output: documented(json!({"sessionId": string(), "status": string()}), &["sessionId", "status"]),
    }
}

fn stop() -> Sketch {
    Sketch {
        name: "debug_stop",
        title: "Stop debugging",
        description: "End the debug session and its program. status: terminated.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({}),
        required: &[],
        output: documented(json!({"status": string()}), &["status"]),
    }
}

fn status() -> Sketch {
    Sketch {
        name: "debug_getStatus",
        title: "Where debugging stands",
        description: "Whether a session is active, whether it is paused, and where.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({}),
        required: &[],
        output: documented(
            json!({
                "active": {"type": "boolean"},
                "file": nullable("string"),
                "line": nullable("integer"),
                "function": nullable("string"),
                "paused": {"type": "boolean"},
            }),
            &["active", "file", "line", "function", "paused"],
        ),
    }
}

fn set_breakpoint() -> Sketch {
    Sketch {
        name: "debug_setBreakpoint",
        title: "Set a breakpoint",
        description: "Set a breakpoint, before or during debugging. verified is true once a debugger has bound it.",
        effect: Effect::ChangesOnce,
        waits: false,
        properties: json!({
            "file": text("Source file."),
            "line": line(),
            "condition": {"type": "string", "description": "Stop only when this is true, e.g. x > 10."},
        }),
        required: &["file", "line"],
        output: documented(
            json!({"id": {"type": "integer"}, "verified": {"type": "boolean"}}),
            &["id", "verified"],
        ),
    }
}

fn remove_breakpoint() -> Sketch {
    Sketch {
        name: "debug_removeBreakpoint",
        title: "Remove a breakpoint",
        description: "Remove the breakpoints of a line. status: removed.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({"file": text("Source file."), "line": line()}),
        required: &["file", "line"],
        output: documented(json!({"status": string()}), &["status"]),
    }
}

fn list_breakpoints() -> Sketch {
    Sketch {
        name: "debug_listBreakpoints",
        title: "List breakpoints",
        description: "List all breakpoints.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({}),
        required: &[],
        output: list(json!({
            "file": string(),
            "line": {"type": "integer"},
            "condition": nullable("string"),
            "verified": {"type": "boolean"},
        })),
    }
}

fn resume() -> Sketch {
    Sketch {
        name: "debug_continue",
        title: "Continue",
        description: "Let the program run until it stops again, ends, or has run for 30 s; call again to wait on.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({}),
        required: &[],
        output: documented(
            json!({
                "stopped": {"type": "boolean"},
                "reason": {"type": "string", "description": "Why it stopped, or how it ended."},
                "line": {"type": "integer"},
            }),
            &["stopped"],
        ),
    }
}

fn step(name: &'static str, title: &'static str, description: &'static str) -> Sketch {
    Sketch {
        name,
        title,
        description,
        effect: Effect::Changes,
        waits: true,
        properties: json!({}),
        required: &[],
        output: place(),
    }
}

fn pause() -> Sketch {
    Sketch {
        name: "debug_pause",
        title: "Pause",
        description: "Stop the running program where it is.",
        effect: Effect::Changes,
        waits: true,
        properties: json!({}),
        required: &[],
        output: place(),
    }
}

fn stack_trace() -> Sketch {
    Sketch {
        name: "debug_getStackTrace",
        title: "Stack trace",
        description: "The call stack of the stopped program, innermost frame first.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({}),
        required: &[],
        output: list(json!({
            "name": string(),
            "file": string(),
            "line": {"type": "integer"},
            "frameId": {"type": "integer"},
        })),
    }
}

fn variables() -> Sketch {
    Sketch {
        name: "debug_getVariables",
        title: "Variables",
        description: "The variables of a frame of the stopped program.",
        effect: Effect::Reads,
        waits: false,
        properties: json!({
            "scope": {"type": "string", "enum": ["local", "global", "all"], "description": "Default local."},
            "frameId": frame_id(),
        }),
        required: &[],
        output: list(json!({"name": string(), "value": string(), "type": string()})),
    }
}

fn evaluate() -> Sketch {
    Sketch {
        name: "debug_evaluate",
        title: "Evaluate",
        description: "Evaluate an expression in a frame of the stopped program. It may change the program.",
        effect: Effect::Destroys,
        waits: false,
        properties: json!({"expression": text("In the program's language."), "frameId": frame_id()}),
        required: &["expression"],
        output: documented(json!({"result": string(), "type": string()}), &["result", "type"]),
    }
}

/// Where the program stopped; null when it did not.
fn place() -> Object {
    documented(json!({"line": nullable("integer"), "file": nullable("string")}), &["line", "file"])
}

/// A documented list of objects with exactly these fields.
fn list(fields: Value) -> Object {
    let names: Vec<&str> = fields.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let items = json!({"type": "object", "properties": fields, "required": names});
    documented(json!({"result": {"type": "array", "items": items}}), &["result"])
}

fn text(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

fn line() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": i32::MAX, "description": "From 1."})
}

fn frame_id() -> Value {
    json!({"type": "integer", "description": "From debug_getStackTrace. Default: the current frame."})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn nullable(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}
