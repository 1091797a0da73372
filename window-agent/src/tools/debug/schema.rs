//! What clients see of the toolset `debug`: one tool, its arguments, its results.

use serde_json::{Value, json};

use super::action::Action;
use crate::tools::sketch::{Effect, Sketch, documented};
use crate::tools::{Definition, object};

/// Name of the toolset, and of its tool.
pub const TOOLSET: &str = "debug";
/// Key in the tool's `_meta` that says which actions only read and which execute.
const APPROVALS: &str = "baton/approvals";

const DESCRIPTION: &str = "Drive a debugger, one action per call. \
launch: program (args, cwd, env, adapter, stop_on_entry). attach: pid or port (host). \
set_breakpoint, remove_breakpoint: file+line or function; also before launch and without session. \
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
        properties: properties(),
        required: &["action"],
        output: documented(results(), &["action", "success"]),
    };
    let names = |reads: bool| -> Vec<&str> {
        Action::ALL.iter().filter(|action| action.reads() == reads).map(|action| action.name()).collect()
    };
    let approvals = json!({APPROVALS: {"read": names(true), "exec": names(false)}});
    vec![sketch.into_definition_with_meta(TOOLSET, object(approvals))]
}

fn properties() -> Value {
    let mut all = object(json!({
        "action": {"type": "string", "enum": Action::ALL.map(Action::name)},
        "session": text("Session id, where there are several. Default: the one that stopped or started last."),
        "timeout": {"type": "number", "description": "Seconds to wait, 5 to 300. Default 30."},
    }));
    all.extend(object(starting()));
    all.extend(object(breakpoints()));
    all.extend(object(inspecting()));
    all.extend(object(machine()));
    Value::Object(all)
}

fn starting() -> Value {
    json!({
        "program": text("launch: what to run, absolute or relative to cwd."),
        "args": {"type": "array", "items": {"type": "string"}, "description": "launch: arguments of the program."},
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "launch: more environment variables.",
        },
        "stop_on_entry": {
            "type": "boolean",
            "description": "launch: stop at the first line. Default: true when no breakpoint is set.",
        },
        "adapter": text("launch, attach: debug adapter by name. Default: by file, project or port."),
        "cwd": text("launch, attach: working directory. Default: the window's folder."),
        "pid": {"type": "integer", "minimum": 1, "description": "attach: local process."},
        "port": {"type": "integer", "minimum": 1, "maximum": 65_535, "description": "attach: port of a debug server."},
        "host": text("attach: its host. Default 127.0.0.1."),
    })
}

fn breakpoints() -> Value {
    json!({
        "file": text("Source file of a breakpoint."),
        "line": {"type": "integer", "minimum": 1, "maximum": i32::MAX, "description": "Line of a breakpoint, from 1."},
        "function": text("Function of a breakpoint, instead of file and line."),
        "condition": text("Stop only when this expression is true."),
        "hit_condition": text("Stop only at some hits: \"> 5\", \"== 3\", \"% 2 == 0\"."),
        "log_message": text("Source breakpoint: print this instead of stopping; {expression} is evaluated."),
        "instruction_reference": text("Address of an instruction breakpoint."),
        "name": text("data_breakpoint_info: variable to watch."),
        "data_id": text("From data_breakpoint_info."),
        "access_type": {
            "type": "string",
            "enum": ["read", "write", "readWrite"],
            "description": "set_data_breakpoint: accesses that stop.",
        },
    })
}

fn inspecting() -> Value {
    json!({
        "expression": text("evaluate: expression, or a command of the debugger."),
        "context": text("evaluate: watch, hover, repl, clipboard or variables. Without it, expressions never are commands of the debugger; with repl they are, in gdb, lldb-dap and codelldb."),
        "frame_id": {"type": "integer", "description": "From stack_trace. Default: the stopped frame."},
        "scope_id": {"type": "integer", "description": "variables, data_breakpoint_info: variablesReference of a scope."},
        "variable_ref": {"type": "integer", "description": "variables: variablesReference; wins over scope_id."},
        "thread_id": {"type": "integer", "description": "From threads. Default: the stopped thread."},
        "levels": {"type": "integer", "minimum": 1, "maximum": 1_000, "description": "stack_trace: frames at most. Default 20."},
        "start": {"type": "integer", "minimum": 0, "description": "variables, stack_trace: index of the first one."},
        "max_length": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "description": "evaluate, output: characters at most."},
        "since": {"type": "integer", "minimum": 0, "description": "output: cursor of an earlier answer; tells what is newer."},
        "category": {
            "type": "string",
            "enum": ["stdout", "stderr", "console"],
            "description": "output: of this kind only.",
        },
    })
}

fn machine() -> Value {
    json!({
        "memory_reference": text("Address, or memoryReference of a variable."),
        "instruction_count": {"type": "integer", "minimum": 1, "maximum": 10_000, "description": "disassemble: how many."},
        "instruction_offset": {"type": "integer", "description": "disassemble: instructions to skip; may be negative."},
        "resolve_symbols": {"type": "boolean", "description": "disassemble: name the symbols."},
        "offset": {"type": "integer", "description": "Bytes to add to the address."},
        "count": {"type": "integer", "minimum": 0, "maximum": 1_048_576, "description": "read_memory: bytes. variables: how many, default 50."},
        "data": text("write_memory: Base64."),
        "allow_partial": {"type": "boolean", "description": "write_memory: writing less is fine."},
        "start_module": {"type": "integer", "minimum": 0, "description": "modules: index of the first one."},
        "module_count": {"type": "integer", "minimum": 0, "description": "modules: how many. Default 50."},
        "command": text("custom_request: name of a DAP request."),
        "arguments": {"type": "object", "description": "custom_request: its arguments."},
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
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
        },
        "required": ["id", "status"],
    })
}
