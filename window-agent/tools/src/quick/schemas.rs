//! What clients see of the toolset `quick`: names, arguments and results of its 14 tools.
//!
//! Three documented results are lists, which `structuredContent` cannot be: there the list is the text, and the
//! object holds it as `result`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::results::Wanted;
use crate::definition::{Definition, Effect, Nothing, Sketch, documented, taken};
use baton_agent_base::object::Object;

/// Name of the toolset.
pub const TOOLSET: &str = "quick";

/// The argument that says which debug session is meant. The document has one session only.
pub(crate) const SESSION: &str = "sessionId";

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
    sketches.into_iter().map(|sketch| Definition::new(TOOLSET, sketch)).collect()
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Start {
    /// Program: absolute, relative to the window's folder, or a unique end of a path.
    #[schemars(length(min = 1))]
    pub(super) file: String,
    /// python, node, ... Default: from the file.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    /// Stop at the first line. Default false.
    #[serde(rename = "stopOnEntry")]
    pub(super) stop_on_entry: Option<bool>,
}

/// Arguments of tools that take nothing else; read in [`crate::whose`].
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the schema is what it is for")]
struct OfSession {
    /// From debug_start. Default: your own.
    session_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SetBreakpoint {
    /// Source file.
    #[schemars(length(min = 1))]
    pub(super) file: String,
    /// From 1.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(super) line: u32,
    /// Stop only when this is true, e.g. x > 10.
    pub(super) condition: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Line {
    /// Source file.
    #[schemars(length(min = 1))]
    pub(super) file: String,
    /// From 1.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(super) line: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Variables {
    /// Default local.
    pub(super) scope: Option<Wanted>,
    /// From debug_getStackTrace. Default: the current frame.
    pub(super) frame_id: Option<i64>,
    /// From debug_start. Default: your own.
    #[serde(rename = "sessionId")]
    _session: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Evaluate {
    /// In the program's language.
    #[schemars(length(min = 1))]
    pub(super) expression: String,
    /// From debug_getStackTrace. Default: the current frame.
    pub(super) frame_id: Option<i64>,
    /// From debug_start. Default: your own.
    #[serde(rename = "sessionId")]
    _session: Option<String>,
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
        input: taken::<Start>,
        output: || documented(json!({"sessionId": string(), "status": string()}), &["sessionId", "status"]),
    }
}

fn stop() -> Sketch {
    Sketch {
        name: "debug_stop",
        title: "Stop debugging",
        description: "End the debug session and its program. status: terminated.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<OfSession>,
        output: || documented(json!({"status": string()}), &["status"]),
    }
}

fn status() -> Sketch {
    Sketch {
        name: "debug_getStatus",
        title: "Where debugging stands",
        description: "Whether a session is active, whether it is paused, and where.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<OfSession>,
        output: || {
            documented(
                json!({
                    "active": {"type": "boolean"},
                    "file": nullable("string"),
                    "line": nullable("integer"),
                    "function": nullable("string"),
                    "paused": {"type": "boolean"},
                }),
                &["active", "file", "line", "function", "paused"],
            )
        },
    }
}

fn set_breakpoint() -> Sketch {
    Sketch {
        name: "debug_setBreakpoint",
        title: "Set a breakpoint",
        description: "Set a breakpoint, before or during debugging. verified is true once a debugger has bound it.",
        effect: Effect::ChangesOnce,
        waits: false,
        input: taken::<SetBreakpoint>,
        output: || {
            documented(
                json!({"id": {"type": "integer"}, "verified": {"type": "boolean"}}),
                &["id", "verified"],
            )
        },
    }
}

fn remove_breakpoint() -> Sketch {
    Sketch {
        name: "debug_removeBreakpoint",
        title: "Remove a breakpoint",
        description: "Remove the breakpoints of a line. status: removed.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<Line>,
        output: || documented(json!({"status": string()}), &["status"]),
    }
}

fn list_breakpoints() -> Sketch {
    Sketch {
        name: "debug_listBreakpoints",
        title: "List breakpoints",
        description: "List all breakpoints.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<Nothing>,
        output: || {
            list(json!({
                "file": string(),
                "line": {"type": "integer"},
                "condition": nullable("string"),
                "verified": {"type": "boolean"},
            }))
        },
    }
}

fn resume() -> Sketch {
    Sketch {
        name: "debug_continue",
        title: "Continue",
        description: "Let the program run until it stops again, ends, or has run for 30 s; call again to wait on.",
        effect: Effect::Changes,
        waits: true,
        input: taken::<OfSession>,
        output: || {
            documented(
                json!({
                    "stopped": {"type": "boolean"},
                    "reason": {"type": "string", "description": "Why it stopped, or how it ended."},
                    "line": {"type": "integer"},
                }),
                &["stopped"],
            )
        },
    }
}

fn step(name: &'static str, title: &'static str, description: &'static str) -> Sketch {
    Sketch {
        name,
        title,
        description,
        effect: Effect::Changes,
        waits: true,
        input: taken::<OfSession>,
        output: place,
    }
}

fn pause() -> Sketch {
    Sketch {
        name: "debug_pause",
        title: "Pause",
        description: "Stop the running program where it is.",
        effect: Effect::Changes,
        waits: true,
        input: taken::<OfSession>,
        output: place,
    }
}

fn stack_trace() -> Sketch {
    Sketch {
        name: "debug_getStackTrace",
        title: "Stack trace",
        description: "The call stack of the stopped program, innermost frame first.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<OfSession>,
        output: || {
            list(json!({
                "name": string(),
                "file": string(),
                "line": {"type": "integer"},
                "frameId": {"type": "integer"},
            }))
        },
    }
}

fn variables() -> Sketch {
    Sketch {
        name: "debug_getVariables",
        title: "Variables",
        description: "The variables of a frame of the stopped program.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<Variables>,
        output: || list(json!({"name": string(), "value": string(), "type": string()})),
    }
}

fn evaluate() -> Sketch {
    Sketch {
        name: "debug_evaluate",
        title: "Evaluate",
        description: "Evaluate an expression in a frame of the stopped program. It may change the program.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<Evaluate>,
        output: || documented(json!({"result": string(), "type": string()}), &["result", "type"]),
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

fn string() -> Value {
    json!({"type": "string"})
}

fn nullable(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}
