//! What clients see of the toolset `debugger`: names, arguments and results of its 11 tools.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::definition::{Definition, Effect, Nothing, Sketch, by_status, taken};
use crate::stepping::MAX_STEPS;

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
    sketches.into_iter().map(|sketch| Definition::new(TOOLSET, sketch)).collect()
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SetBreakpoint {
    /// Absolute, relative, or a unique end of a path.
    #[schemars(length(min = 1))]
    pub(super) file_path: String,
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(super) line_number: u32,
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(super) column_number: Option<u32>,
    /// Stop only when this is true.
    pub(super) condition: Option<String>,
    /// Stop at some hits: "> 5", "== 3", "% 2 == 0".
    pub(super) hit_condition: Option<String>,
    /// Print this with its {expressions} instead of stopping.
    pub(super) log_message: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveBreakpoint {
    pub(super) breakpoint_id: Option<i64>,
    pub(super) location: Option<Location>,
    #[schemars(extend("const" = true))]
    pub(super) clear_all: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Location {
    #[schemars(length(min = 1))]
    pub(super) file_path: String,
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(super) line_number: u32,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Start {
    #[schemars(length(min = 1))]
    pub(super) configuration_name: String,
    /// Run without debugging.
    pub(super) no_debug: Option<bool>,
    /// What ${file} means.
    #[schemars(length(min = 1))]
    pub(super) file: Option<String>,
    /// Seconds. Default 30.
    #[schemars(range(min = 1, max = 300))]
    pub(super) timeout: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Continue {
    /// Default: the active one.
    #[schemars(length(min = 1))]
    pub(super) session_id: Option<String>,
    pub(super) thread_id: i64,
    /// Seconds. Default 30.
    #[schemars(range(min = 1, max = 300))]
    pub(super) timeout: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Step {
    /// Default: the active one.
    #[schemars(length(min = 1))]
    pub(super) session_id: Option<String>,
    pub(super) thread_id: i64,
    pub(super) step_type: StepType,
    /// Default 1.
    #[schemars(range(min = 1, max = MAX_STEPS))]
    pub(super) count: Option<usize>,
    /// Seconds. Default 30.
    #[schemars(range(min = 1, max = 300))]
    pub(super) timeout: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum StepType {
    Over,
    Into,
    Out,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Scopes {
    /// Of the latest stop.
    pub(super) frame_id: i64,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Variables {
    #[schemars(range(min = 1))]
    pub(super) variables_reference: i64,
    /// Default 0.
    pub(super) start: Option<usize>,
    /// Default 100.
    #[schemars(range(min = 1, max = MAX_VARIABLES))]
    pub(super) count: Option<usize>,
    /// Of a value. Default 256.
    #[schemars(range(min = 1, max = MAX_VALUE_LEN))]
    pub(super) max_length: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Evaluate {
    #[schemars(length(min = 1))]
    pub(super) expression: String,
    /// Of the latest stop.
    pub(super) frame_id: i64,
    #[schemars(extend("enum" = ["watch", "repl", "hover", "clipboard"]))]
    pub(super) context: Option<String>,
    /// Of the result. Default 4096.
    #[schemars(range(min = 1, max = MAX_RESULT_LEN))]
    pub(super) max_length: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Stop {
    /// Default: the active one.
    #[schemars(length(min = 1))]
    pub(super) session_id: Option<String>,
}

fn get_debugger_configurations() -> Sketch {
    Sketch {
        name: "get_debugger_configurations",
        title: "List debug configurations",
        description: "Read the debug configurations of .vscode/launch.json; their names are for start_debugging.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<Nothing>,
        output: || {
            by_status(
                ANSWERS,
                json!({"configurations": list(), "compounds": list(), "notes": {"type": "array"}}),
            )
        },
    }
}

fn set_breakpoint() -> Sketch {
    Sketch {
        name: "set_breakpoint",
        title: "Set a breakpoint",
        description: "Set a breakpoint, before or during debugging. One at the same place is replaced.",
        effect: Effect::ChangesOnce,
        waits: false,
        input: taken::<SetBreakpoint>,
        output: || by_status(ANSWERS, json!({"breakpoint": breakpoint()})),
    }
}

fn remove_breakpoint() -> Sketch {
    Sketch {
        name: "remove_breakpoint",
        title: "Remove breakpoints",
        description: "Give exactly one of breakpoint_id, location, clear_all.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<RemoveBreakpoint>,
        output: || by_status(ANSWERS, json!({"removed": {"type": "array", "items": {"type": "integer"}}})),
    }
}

fn get_breakpoints() -> Sketch {
    Sketch {
        name: "get_breakpoints",
        title: "List breakpoints",
        description: "List all breakpoints with their state.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<Nothing>,
        output: || {
            by_status(
                ANSWERS,
                json!({"timestamp": string(), "breakpoints": {"type": "array", "items": breakpoint()}}),
            )
        },
    }
}

fn start_debugging() -> Sketch {
    Sketch {
        name: "start_debugging",
        title: "Start debugging",
        description: "Start (or attach to) what a configuration of launch.json says, and wait until it stops or \
            ends. Set breakpoints first. A stop tells call stack and local variables; status timeout: it is still running.",
        effect: Effect::Changes,
        waits: true,
        input: taken::<Start>,
        output: || by_status(WAITS, waited(json!({"notes": {"type": "array"}}))),
    }
}

fn continue_debugging() -> Sketch {
    Sketch {
        name: "continue_debugging",
        title: "Continue",
        description: "Let the program run on until it stops again or ends.",
        effect: Effect::Changes,
        waits: true,
        input: taken::<Continue>,
        output: || by_status(WAITS, waited(json!({}))),
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
        input: taken::<Step>,
        output: || by_status(WAITS, waited(json!({"steps": list()}))),
    }
}

fn get_scopes() -> Sketch {
    Sketch {
        name: "get_scopes",
        title: "List scopes",
        description: "List the scopes (locals, globals, ...) of a stack frame.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<Scopes>,
        output: || by_status(ANSWERS, json!({"scopes": list()})),
    }
}

fn get_variables() -> Sketch {
    Sketch {
        name: "get_variables",
        title: "List variables",
        description: "List the variables of a scope, or the members of a variable. Long lists come in pages.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<Variables>,
        output: || {
            by_status(ANSWERS, json!({"variables": list(), "total": integer(), "next_start": integer()}))
        },
    }
}

fn evaluate_expression() -> Sketch {
    Sketch {
        name: "evaluate_expression",
        title: "Evaluate",
        description: "Evaluate an expression in a stack frame. It runs in the program and may change it.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<Evaluate>,
        output: || {
            by_status(
                ANSWERS,
                json!({"result": string(), "type": string(), "variables_reference": integer()}),
            )
        },
    }
}

fn stop_debugging() -> Sketch {
    Sketch {
        name: "stop_debugging",
        title: "Stop debugging",
        description: "End the session: a launched program ends, an attached one is let go.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<Stop>,
        output: || by_status(ANSWERS, json!({"session_id": string()})),
    }
}

/// Most variables in one answer.
pub const MAX_VARIABLES: usize = baton_agent_debug::types::MAX_VARIABLES;
/// Longest value of a variable that can be asked for.
const MAX_VALUE_LEN: usize = baton_agent_debug::types::MAX_VALUE_LEN;
/// Longest result of an expression that can be asked for.
const MAX_RESULT_LEN: usize = 64 * 1024;

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
