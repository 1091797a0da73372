//! CORE: the 28 actions.

use schemars::JsonSchema;
use serde::Deserialize;

// What the tool is asked to do; a doc comment would be told to models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Launch,
    Attach,
    SetBreakpoint,
    RemoveBreakpoint,
    SetInstructionBreakpoint,
    RemoveInstructionBreakpoint,
    DataBreakpointInfo,
    SetDataBreakpoint,
    RemoveDataBreakpoint,
    Continue,
    StepOver,
    StepIn,
    StepOut,
    Pause,
    Evaluate,
    StackTrace,
    Threads,
    Scopes,
    Variables,
    Disassemble,
    ReadMemory,
    WriteMemory,
    Modules,
    LoadedSources,
    CustomRequest,
    Output,
    Terminate,
    Sessions,
}

impl Action {
    /// In the order in which they are documented.
    pub(super) const ALL: [Action; 28] = [
        Action::Launch,
        Action::Attach,
        Action::SetBreakpoint,
        Action::RemoveBreakpoint,
        Action::SetInstructionBreakpoint,
        Action::RemoveInstructionBreakpoint,
        Action::DataBreakpointInfo,
        Action::SetDataBreakpoint,
        Action::RemoveDataBreakpoint,
        Action::Continue,
        Action::StepOver,
        Action::StepIn,
        Action::StepOut,
        Action::Pause,
        Action::Evaluate,
        Action::StackTrace,
        Action::Threads,
        Action::Scopes,
        Action::Variables,
        Action::Disassemble,
        Action::ReadMemory,
        Action::WriteMemory,
        Action::Modules,
        Action::LoadedSources,
        Action::CustomRequest,
        Action::Output,
        Action::Terminate,
        Action::Sessions,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Action::Launch => "launch",
            Action::Attach => "attach",
            Action::SetBreakpoint => "set_breakpoint",
            Action::RemoveBreakpoint => "remove_breakpoint",
            Action::SetInstructionBreakpoint => "set_instruction_breakpoint",
            Action::RemoveInstructionBreakpoint => "remove_instruction_breakpoint",
            Action::DataBreakpointInfo => "data_breakpoint_info",
            Action::SetDataBreakpoint => "set_data_breakpoint",
            Action::RemoveDataBreakpoint => "remove_data_breakpoint",
            Action::Continue => "continue",
            Action::StepOver => "step_over",
            Action::StepIn => "step_in",
            Action::StepOut => "step_out",
            Action::Pause => "pause",
            Action::Evaluate => "evaluate",
            Action::StackTrace => "stack_trace",
            Action::Threads => "threads",
            Action::Scopes => "scopes",
            Action::Variables => "variables",
            Action::Disassemble => "disassemble",
            Action::ReadMemory => "read_memory",
            Action::WriteMemory => "write_memory",
            Action::Modules => "modules",
            Action::LoadedSources => "loaded_sources",
            Action::CustomRequest => "custom_request",
            Action::Output => "output",
            Action::Terminate => "terminate",
            Action::Sessions => "sessions",
        }
    }

    /// Whether it only looks. The rest execute: they run the program, change it, or hand the debugger a command.
    pub(super) fn reads(self) -> bool {
        matches!(
            self,
            Action::Output
                | Action::Threads
                | Action::StackTrace
                | Action::Scopes
                | Action::Variables
                | Action::Disassemble
                | Action::ReadMemory
                | Action::LoadedSources
                | Action::Modules
                | Action::Sessions
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        for action in Action::ALL {
            let read: Action = serde_json::from_value(json!(action.name())).unwrap();
            assert_eq!(read, action);
        }
        assert_eq!(Action::ALL.iter().filter(|action| action.reads()).count(), 10);
    }
}
