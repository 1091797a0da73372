//! What clients see of the toolset `lcp`: names, arguments and results of its six tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::definition::{Definition, Effect, Sketch, taken};
use baton_agent_base::object::{Object, object};
use baton_agent_debug::types::Resume;

/// Name of the toolset.
pub const TOOLSET: &str = "lcp";

/// All six tools.
pub fn definitions() -> Vec<Definition> {
    let sketches = [launch(), add_breakpoint(), remove_breakpoint(), step(), evaluate(), stop()];
    sketches.into_iter().map(|sketch| Definition::new(TOOLSET, sketch)).collect()
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Launch {
    /// Relative to the project, or a unique part of a path.
    #[schemars(length(min = 1))]
    pub(super) program: String,
    /// Arguments of the program.
    pub(super) args: Option<Vec<String>>,
    /// More environment variables.
    pub(super) env: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AddBreakpoint {
    /// Relative to the project, or a unique part of a path.
    #[schemars(length(min = 1))]
    pub(super) file: String,
    /// From 1.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(super) line: u32,
    /// Stop only when this is true.
    pub(super) condition: Option<String>,
    /// Stop only at some hits: "> 5", "== 3".
    pub(super) hit_condition: Option<String>,
    /// Print this instead of stopping.
    pub(super) log_message: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveBreakpoint {
    /// From lcp_add_breakpoint.
    #[schemars(length(min = 1))]
    pub(super) breakpoint_id: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Step {
    /// From lcp_debug_launch.
    #[schemars(length(min = 1))]
    pub(super) session_id: String,
    pub(super) action: StepAction,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum StepAction {
    Next,
    StepIn,
    StepOut,
    Continue,
}

impl From<StepAction> for Resume {
    fn from(action: StepAction) -> Self {
        match action {
            StepAction::Next => Resume::StepOver,
            StepAction::StepIn => Resume::StepInto,
            StepAction::StepOut => Resume::StepOut,
            StepAction::Continue => Resume::Continue,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Evaluate {
    /// From lcp_debug_launch.
    #[schemars(length(min = 1))]
    pub(super) session_id: String,
    /// In the program's language.
    #[schemars(length(min = 1))]
    pub(super) expression: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Stop {
    /// From lcp_debug_launch.
    #[schemars(length(min = 1))]
    pub(super) session_id: String,
}

fn launch() -> Sketch {
    Sketch {
        name: "lcp_debug_launch",
        title: "Launch",
        description: "Debug a program and stop at its first line. The debugger is found from the program. \
            session_id is for every later call.",
        effect: Effect::Changes,
        waits: true,
        input: taken::<Launch>,
        output: || {
            enveloped(
                json!({
                    "session_id": string(),
                    "status": {"type": "string", "description": "started, or terminated if it exited immediately."},
                    "breakpoint_count": {"type": "integer"},
                    "current_line": nullable("integer"),
                    "message": string(),
                    "output": output(),
                }),
                &["session_id", "status", "breakpoint_count", "current_line"],
            )
        },
    }
}

fn add_breakpoint() -> Sketch {
    Sketch {
        name: "lcp_add_breakpoint",
        title: "Add a breakpoint",
        description: "Add a breakpoint, before or during a session.",
        effect: Effect::ChangesOnce,
        waits: false,
        input: taken::<AddBreakpoint>,
        output: || {
            enveloped(
                json!({
                    "breakpoint_id": string(),
                    "verified": {"type": "boolean", "description": "False until a debugger has bound it."},
                    "file": string(),
                    "line": {"type": "integer"},
                    "message": string(),
                }),
                &["breakpoint_id", "verified", "file", "line"],
            )
        },
    }
}

fn remove_breakpoint() -> Sketch {
    Sketch {
        name: "lcp_remove_breakpoint",
        title: "Remove a breakpoint",
        description: "Remove the breakpoint of that id.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<RemoveBreakpoint>,
        output: || {
            enveloped(
                json!({"success": {"type": "boolean"}, "remaining_breakpoints": {"type": "integer"}}),
                &["success", "remaining_breakpoints"],
            )
        },
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
        input: taken::<Step>,
        output: || {
            enveloped(
                json!({
                    "status": {"type": "string", "enum": ["stopped", "paused", "running", "terminated"]},
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
            )
        },
    }
}

fn evaluate() -> Sketch {
    Sketch {
        name: "lcp_debug_evaluate",
        title: "Evaluate",
        description: "Evaluate an expression where the program stopped. It may change the program.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<Evaluate>,
        output: || {
            enveloped(
                json!({"value": string(), "type": string(), "variablesReference": {"type": "integer"}}),
                &["value", "type", "variablesReference"],
            )
        },
    }
}

fn stop() -> Sketch {
    Sketch {
        name: "lcp_debug_stop",
        title: "Stop debugging",
        description: "End the debug session and its program; an attached one keeps running.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<Stop>,
        output: || {
            enveloped(json!({"success": {"type": "boolean"}, "message": string()}), &["success", "message"])
        },
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

fn output() -> Value {
    json!({"type": "string", "description": "The end of what the program printed since the last answer."})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn nullable(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}
