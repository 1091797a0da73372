//! CORE: what each action cannot do without, and how what is missing is said.

use baton_agent_base::fault::{Fault, Kind};

use super::action::Action;
use super::arguments::Arguments;

/// Whether the arguments hold what their action cannot do without; an empty text is a missing one.
pub(super) fn check(arguments: &Arguments) -> Result<(), Fault> {
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    let is_removal = arguments.action == Action::RemoveBreakpoint;
    let has_place =
        given(&arguments.function) || (given(&arguments.file) && (is_removal || arguments.line.is_some()));
    let action = arguments.action.name();
    let problem = match arguments.action {
        Action::Launch
            if ![&arguments.program, &arguments.module, &arguments.configuration].into_iter().any(given) =>
        {
            "program is required for launch".to_owned()
        }
        Action::Attach if arguments.pid.is_none() && arguments.port.is_none() => {
            "attach requires pid or port".to_owned()
        }
        Action::SetBreakpoint | Action::RemoveBreakpoint if !has_place => {
            let all = if is_removal { ", or file for all of yours in it" } else { "" };
            format!("{action} requires file+line or function{all}")
        }
        Action::SetBreakpoint | Action::RemoveBreakpoint
            if given(&arguments.function) && (given(&arguments.file) || arguments.line.is_some()) =>
        {
            format!("{action} takes function or file+line, not both")
        }
        Action::SetInstructionBreakpoint | Action::RemoveInstructionBreakpoint
            if !given(&arguments.instruction_reference) =>
        {
            format!("instruction_reference is required for {action}")
        }
        Action::DataBreakpointInfo if !given(&arguments.name) => {
            "name is required for data_breakpoint_info".to_owned()
        }
        Action::SetDataBreakpoint | Action::RemoveDataBreakpoint if !given(&arguments.data_id) => {
            format!("data_id is required for {action}")
        }
        Action::Evaluate if !given(&arguments.expression) => "expression is required for evaluate".to_owned(),
        Action::Variables if arguments.variable_ref.is_none() && arguments.scope_id.is_none() => {
            "variables requires variable_ref or scope_id".to_owned()
        }
        Action::Disassemble if arguments.instruction_count.is_none() => {
            "instruction_count is required for disassemble".to_owned()
        }
        Action::ReadMemory | Action::WriteMemory if !given(&arguments.memory_reference) => {
            format!("memory_reference is required for {action}")
        }
        Action::ReadMemory if arguments.count.is_none() => "count is required for read_memory".to_owned(),
        Action::WriteMemory if arguments.data.is_none() => "data is required for write_memory".to_owned(),
        Action::CustomRequest if !given(&arguments.command) => {
            "command is required for custom_request".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Fault::new(Kind::InvalidArguments, problem))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn check_calls(calls: &[Value], expected: Expect) {
        let lines: Vec<String> = calls
            .iter()
            .map(|call| {
                let arguments: Arguments = serde_json::from_value(call.clone()).unwrap();
                match check(&arguments) {
                    Ok(()) => format!("{call}: fine\n"),
                    Err(error) => format!("{call}: {}\n", error.message),
                }
            })
            .collect();
        expected.assert_eq(&lines.concat());
    }

    #[test]
    fn what_is_missing_is_said() {
        let alone = |action: &Action| json!({"action": action.name()});
        let calls: Vec<Value> = Action::ALL.iter().map(alone).collect();
        check_calls(
            &calls,
            expect![[r#"
                {"action":"launch"}: program is required for launch
                {"action":"attach"}: attach requires pid or port
                {"action":"set_breakpoint"}: set_breakpoint requires file+line or function
                {"action":"remove_breakpoint"}: remove_breakpoint requires file+line or function, or file for all of yours in it
                {"action":"set_instruction_breakpoint"}: instruction_reference is required for set_instruction_breakpoint
                {"action":"remove_instruction_breakpoint"}: instruction_reference is required for remove_instruction_breakpoint
                {"action":"data_breakpoint_info"}: name is required for data_breakpoint_info
                {"action":"set_data_breakpoint"}: data_id is required for set_data_breakpoint
                {"action":"remove_data_breakpoint"}: data_id is required for remove_data_breakpoint
                {"action":"continue"}: fine
                {"action":"step_over"}: fine
                {"action":"step_in"}: fine
                {"action":"step_out"}: fine
                {"action":"pause"}: fine
                {"action":"evaluate"}: expression is required for evaluate
                {"action":"stack_trace"}: fine
                {"action":"threads"}: fine
                {"action":"scopes"}: fine
                {"action":"variables"}: variables requires variable_ref or scope_id
                {"action":"disassemble"}: instruction_count is required for disassemble
                {"action":"read_memory"}: memory_reference is required for read_memory
                {"action":"write_memory"}: memory_reference is required for write_memory
                {"action":"modules"}: fine
                {"action":"loaded_sources"}: fine
                {"action":"custom_request"}: command is required for custom_request
                {"action":"output"}: fine
                {"action":"terminate"}: fine
                {"action":"sessions"}: fine
            "#]],
        );
    }

    #[test]
    fn halves_are_not_enough() {
        check_calls(
            &[
                json!({"action": "launch", "program": " "}),
                json!({"action": "attach", "host": "localhost"}),
                json!({"action": "set_breakpoint", "file": "a.py"}),
                json!({"action": "set_breakpoint", "file": "a.py", "line": 3}),
                json!({"action": "remove_breakpoint", "file": "a.py"}),
                json!({"action": "set_breakpoint", "function": "main"}),
                json!({"action": "set_breakpoint", "function": "main", "file": "a.py", "line": 3}),
                json!({"action": "variables", "scope_id": 3}),
                json!({"action": "read_memory", "memory_reference": "0x10"}),
                json!({"action": "write_memory", "memory_reference": "0x10"}),
            ],
            expect![[r#"
                {"action":"launch","program":" "}: program is required for launch
                {"action":"attach","host":"localhost"}: attach requires pid or port
                {"action":"set_breakpoint","file":"a.py"}: set_breakpoint requires file+line or function
                {"action":"set_breakpoint","file":"a.py","line":3}: fine
                {"action":"remove_breakpoint","file":"a.py"}: fine
                {"action":"set_breakpoint","function":"main"}: fine
                {"action":"set_breakpoint","file":"a.py","function":"main","line":3}: set_breakpoint takes function or file+line, not both
                {"action":"variables","scope_id":3}: fine
                {"action":"read_memory","memory_reference":"0x10"}: count is required for read_memory
                {"action":"write_memory","memory_reference":"0x10"}: data is required for write_memory
            "#]],
        );
    }
}
