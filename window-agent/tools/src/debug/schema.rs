//! What clients see of the toolset `debug`: one tool, its arguments, its results.

use serde_json::{Value, json};

use super::action::Action;
use super::arguments::Arguments;
use crate::definition::{Definition, Effect, Sketch, documented, taken};
use baton_agent_base::object::{Object, object};

/// Name of the toolset, and of its tool.
pub const TOOLSET: &str = "debug";
/// Key in the tool's `_meta` that says which actions only read and which execute.
const APPROVALS: &str = "baton/approvals";

const DESCRIPTION: &str = "Drive a debugger, one action per call. \
launch: program or module (args, stdin, cwd, env, adapter, stop_on_entry), or configuration. attach: pid or port (host). \
set_breakpoint, remove_breakpoint: file+line or function; also before launch and without session. remove_breakpoint: \
file alone for all of yours in it. \
set_/remove_instruction_breakpoint: instruction_reference. data_breakpoint_info: name; \
set_/remove_data_breakpoint: data_id. continue, step_over, step_in, step_out: run and wait for the next stop. \
pause. evaluate: expression. stack_trace, threads, scopes, variables (variable_ref or scope_id). \
disassemble: instruction_count. read_memory: memory_reference, count. write_memory: memory_reference, data. \
modules, loaded_sources. custom_request: any DAP command, with its arguments (restart, restartFrame, stepBack, \
goto, setVariable, setExceptionBreakpoints, ...). output (since, category). terminate. sessions. \
Reading actions change nothing: output, threads, stack_trace, scopes, variables, disassemble, read_memory, \
loaded_sources, modules, sessions. All others execute.";

/// The one tool.
pub fn definitions() -> Vec<Definition> {
    let sketch = Sketch {
        name: TOOLSET,
        title: "Debug",
        description: DESCRIPTION,
        // True of the tool as a whole: some of its actions run the program, write its memory or end it.
        effect: Effect::Destroys,
        waits: true,
        input: taken::<Arguments>,
        output: || documented(results(), &["action", "success"]),
    };
    // What keeps to the schema of its results is told in `_meta`.
    vec![Definition::new(TOOLSET, sketch).with_meta(approvals).without_listed_output()]
}

fn approvals() -> Object {
    let names = |reads: bool| -> Vec<&str> {
        Action::ALL.iter().filter(|action| action.reads() == reads).map(|action| action.name()).collect()
    };
    object(json!({APPROVALS: {"read": names(true), "exec": names(false)}}))
}

fn results() -> Value {
    let list = || json!({"type": "array", "items": {"type": "object"}});
    let integer = || json!({"type": "integer"});
    let string = || json!({"type": "string"});
    json!({
        "action": string(),
        "success": {"type": "boolean"},
        "snapshot": summary(),
        "adapter": string(),
        "breakpoints": list(),
        "functionBreakpoints": list(),
        "instructionBreakpoints": list(),
        "dataBreakpoints": list(),
        "exceptionBreakpoints": list(),
        "dataBreakpointInfo": {
            "type": "object",
            "properties": {
                "dataId": {"type": ["string", "null"]},
                "description": string(),
                "accessTypes": {"type": "array", "items": string()},
            },
            "required": ["dataId"],
        },
        "state": {"type": "string", "enum": ["stopped", "running", "terminated"]},
        "timedOut": {"type": "boolean"},
        "threads": list(),
        "stackFrames": list(),
        "scopes": list(),
        "variables": list(),
        "evaluation": {
            "type": "object",
            "properties": {
                "result": string(),
                "type": string(),
                "variablesReference": integer(),
                "memoryReference": string(),
            },
            "required": ["result", "variablesReference"],
        },
        "disassembly": list(),
        "memoryAddress": string(),
        "memoryData": string(),
        "unreadableBytes": integer(),
        "bytesWritten": integer(),
        "modules": list(),
        "sources": list(),
        "customBody": {},
        "output": string(),
        "outputCursor": {"type": "integer", "description": "For since."},
        "sessions": {"type": "array", "items": summary()},
        "breakpointsNotHit": list(),
        "total": {"type": "integer", "description": "How many there are in all."},
    })
}

/// A session as it stands.
fn summary() -> Value {
    let (string, integer) = (json!({"type": "string"}), json!({"type": "integer"}));
    json!({
        "type": "object",
        "properties": {
            "id": string,
            "name": string,
            "adapter": string,
            "status": {"type": "string", "enum": ["launching", "configuring", "running", "stopped", "terminating", "terminated"]},
            "program": string,
            "parent": string,
            "threadId": integer,
            "frameId": integer,
            "stopReason": string,
            "stopDescription": string,
            "frameName": string,
            "source": {"type": "object"},
            "line": integer,
            "column": integer,
            "instructionPointerReference": string,
            "exitCode": integer,
            "needsConfigurationDone": {"type": "boolean"},
            "outputTruncated": {"type": "boolean"},
        },
        "required": ["id", "status"],
    })
}
