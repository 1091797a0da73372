//! The names in the documents: each is there, and each has a test.

use std::collections::BTreeSet;

use baton_agent_tools::CATALOGUE;

/// Everything that calls the tools of these toolsets.
const TESTS: [&str; 6] = [
    include_str!("debug.rs"),
    include_str!("debug_errors.rs"),
    include_str!("fake.rs"),
    include_str!("quick.rs"),
    include_str!("lcp.rs"),
    include_str!("native.rs"),
];

const ACTIONS: [&str; 28] = [
    "launch",
    "attach",
    "set_breakpoint",
    "remove_breakpoint",
    "set_instruction_breakpoint",
    "remove_instruction_breakpoint",
    "data_breakpoint_info",
    "set_data_breakpoint",
    "remove_data_breakpoint",
    "continue",
    "step_over",
    "step_in",
    "step_out",
    "pause",
    "evaluate",
    "stack_trace",
    "threads",
    "scopes",
    "variables",
    "disassemble",
    "read_memory",
    "write_memory",
    "modules",
    "loaded_sources",
    "custom_request",
    "output",
    "terminate",
    "sessions",
];

const DEBUG_PARAMETERS: [&str; 37] = [
    "action",
    "program",
    "args",
    "adapter",
    "cwd",
    "file",
    "line",
    "function",
    "name",
    "condition",
    "hit_condition",
    "expression",
    "context",
    "frame_id",
    "scope_id",
    "variable_ref",
    "pid",
    "port",
    "host",
    "levels",
    "memory_reference",
    "instruction_reference",
    "instruction_count",
    "instruction_offset",
    "count",
    "data",
    "data_id",
    "access_type",
    "command",
    "arguments",
    "offset",
    "resolve_symbols",
    "allow_partial",
    "start_module",
    "module_count",
    "timeout",
    "session",
];

const QUICK: [(&str, &[&str]); 14] = [
    ("debug_start", &["file", "type", "stopOnEntry"]),
    ("debug_stop", &[]),
    ("debug_getStatus", &[]),
    ("debug_setBreakpoint", &["file", "line", "condition"]),
    ("debug_removeBreakpoint", &["file", "line"]),
    ("debug_listBreakpoints", &[]),
    ("debug_continue", &[]),
    ("debug_stepOver", &[]),
    ("debug_stepInto", &[]),
    ("debug_stepOut", &[]),
    ("debug_pause", &[]),
    ("debug_getStackTrace", &[]),
    ("debug_getVariables", &["scope", "frameId"]),
    ("debug_evaluate", &["expression", "frameId"]),
];

const LCP: [(&str, &[&str]); 6] = [
    ("lcp_debug_launch", &["program", "args", "env"]),
    ("lcp_add_breakpoint", &["file", "line"]),
    ("lcp_remove_breakpoint", &["breakpoint_id"]),
    ("lcp_debug_step", &["session_id", "action"]),
    ("lcp_debug_evaluate", &["session_id", "expression"]),
    ("lcp_debug_stop", &["session_id"]),
];

/// The sentences of the document's list of errors; what differs from case to case is left out.
const ERRORS: [&str; 20] = [
    "program is required for launch",
    "attach requires pid or port",
    "set_breakpoint requires file+line or function",
    "variables requires variable_ref or scope_id",
    "instruction_count is required for disassemble",
    "disassemble requires memory_reference unless the current stop location has an instruction pointer reference",
    "memory_reference is required for read_memory",
    "count is required for read_memory",
    "data is required for write_memory",
    "command is required for custom_request",
    "No debugger adapter available. Installed adapters: ",
    "Active adapter does not support ",
    "No active debug session. Launch or attach first.",
    "No active stack frame. Run stack_trace first or supply frame_id.",
    "Debugger reported no threads.",
    "is still active. Terminate it before launching another.",
    "DAP request evaluate timed out after 5000ms",
    "DAP event initialized timed out after 6000ms",
    "DAP adapter fake is not running",
    "DAP adapter exited unexpectedly (code 3)",
];

/// Tools of the toolset quick that concern no session; the others take its id besides what is documented.
const OF_NO_SESSION: [&str; 4] =
    ["debug_start", "debug_setBreakpoint", "debug_removeBreakpoint", "debug_listBreakpoints"];

fn tests() -> String {
    TESTS.concat()
}

fn properties(tool: &str) -> BTreeSet<String> {
    let definition = CATALOGUE.find(tool).unwrap_or_else(|| panic!("there is no tool {tool}"));
    definition.tool().input_schema["properties"].as_object().unwrap().keys().cloned().collect()
}

fn names(toolset: &str) -> Vec<String> {
    let all = CATALOGUE.definitions().iter().filter(|definition| definition.toolset == toolset);
    all.map(|definition| definition.name.to_owned()).collect()
}

#[test]
fn the_toolsets_hold_exactly_the_documented_tools() {
    assert_eq!(names("debug"), ["debug"]);
    assert_eq!(names("quick"), QUICK.map(|(tool, _)| tool));
    assert_eq!(names("lcp"), LCP.map(|(tool, _)| tool));
}

#[test]
fn every_documented_parameter_is_there() {
    for (tool, parameters) in QUICK.iter().chain(&LCP) {
        let known = properties(tool);
        for parameter in *parameters {
            assert!(known.contains(*parameter), "{tool} has no {parameter}");
        }
    }
    for (tool, parameters) in QUICK {
        let more: Vec<String> =
            properties(tool).into_iter().filter(|known| !parameters.contains(&known.as_str())).collect();
        let ours = if OF_NO_SESSION.contains(&tool) { vec!["window"] } else { vec!["sessionId", "window"] };
        assert_eq!(more, ours, "{tool}");
    }
    let known = properties("debug");
    for parameter in DEBUG_PARAMETERS {
        assert!(known.contains(parameter), "debug has no {parameter}");
    }
    let tool = CATALOGUE.find("debug").unwrap().tool();
    assert_eq!(tool.input_schema["properties"]["action"]["enum"], serde_json::json!(ACTIONS));
    let approvals = &tool.meta.as_ref().unwrap().0["baton/approvals"];
    assert_eq!(approvals["read"].as_array().unwrap().len(), 10);
    assert_eq!(approvals["exec"].as_array().unwrap().len(), 18);
}

#[test]
fn every_documented_error_has_a_test() {
    let tests = tests();
    let missing: Vec<&&str> = ERRORS.iter().filter(|sentence| !tests.contains(**sentence)).collect();
    assert!(missing.is_empty(), "no test hears {missing:#?}");
}

#[test]
fn every_action_tool_and_parameter_has_a_test() {
    let tests = tests();
    let missing: Vec<&str> = ACTIONS
        .iter()
        .filter(|action| {
            let plain = [format!("debug(\"{action}\""), format!("debug_until(\"{action}\"")];
            !plain.iter().any(|call| tests.split_whitespace().collect::<String>().contains(call.as_str()))
        })
        .copied()
        .collect();
    assert!(missing.is_empty(), "no test calls the actions {missing:?}");
    for (tool, parameters) in QUICK.iter().chain(&LCP) {
        assert!(tests.contains(&format!("\"{tool}\"")), "no test calls {tool}");
        for parameter in *parameters {
            assert!(tests.contains(&format!("\"{parameter}\":")), "no test gives {parameter}");
        }
    }
    for parameter in DEBUG_PARAMETERS {
        assert!(tests.contains(&format!("\"{parameter}\":")), "no test gives debug {parameter}");
    }
}
