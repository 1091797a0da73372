//! CORE: the arguments of the tool `debug` as a type.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::action::Action;
use baton_agent_base::object::Object;

/// Seconds that a call waits when the client does not say.
const DEFAULT_TIMEOUT_S: f64 = 30.0;
/// Fewest and most seconds.
const TIMEOUT_S: (f64, f64) = (5.0, 300.0);
/// How long a program that was started may run before the answer says that it runs, when the client does not say.
const FIRST_STOP: Duration = Duration::from_secs(5);

/// Everything an action can be given; [`super::needs::check`] says what each needs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    pub(super) action: Action,
    /// Session id, where there are several. Default: your own that you used last.
    pub(super) session: Option<String>,
    /// Seconds to wait, 5 to 300. Default 30.
    pub(super) timeout: Option<f64>,

    /// launch: name of a configuration in launch.json (file stands for the open file).
    pub(super) configuration: Option<String>,
    /// launch: what the configuration asks a person for, by the ids in launch.json.
    pub(super) inputs: Option<BTreeMap<String, String>>,
    /// launch: what to run, absolute or relative to cwd.
    pub(super) program: Option<String>,
    /// launch: Python module to run instead, such as pytest.
    pub(super) module: Option<String>,
    /// launch: arguments of the program.
    pub(super) args: Option<Vec<String>>,
    /// launch: all that the program reads on its standard input; "" when continue is to give it. continue: more of it.
    pub(super) stdin: Option<String>,
    /// launch: more environment variables.
    pub(super) env: Option<BTreeMap<String, String>>,
    /// launch: stop at the first line. Default: true when no breakpoint is set.
    pub(super) stop_on_entry: Option<bool>,
    /// launch, attach: debug adapter by name. Default: by file, project or port.
    pub(super) adapter: Option<String>,
    /// launch, attach: working directory. Default: the window's folder.
    pub(super) cwd: Option<String>,
    /// attach: local process. launch: the one that the configuration asks for.
    #[schemars(range(min = 1))]
    pub(super) pid: Option<u32>,
    /// attach: port of a debug server.
    #[schemars(range(min = 1))]
    pub(super) port: Option<u16>,
    /// attach: its host. Default 127.0.0.1.
    pub(super) host: Option<String>,

    /// Source file of a breakpoint.
    pub(super) file: Option<String>,
    /// Line of a breakpoint, from 1.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub(super) line: Option<u32>,
    /// Function of a breakpoint, instead of file and line.
    pub(super) function: Option<String>,
    /// Stop only when this expression is true.
    pub(super) condition: Option<String>,
    /// Stop only at some hits: "> 5", "== 3", "% 2 == 0".
    pub(super) hit_condition: Option<String>,
    /// Source breakpoint: print this instead of stopping; {expression} is evaluated.
    pub(super) log_message: Option<String>,
    /// Address of an instruction breakpoint.
    pub(super) instruction_reference: Option<String>,
    /// data_breakpoint_info: variable to watch.
    pub(super) name: Option<String>,
    /// From data_breakpoint_info.
    pub(super) data_id: Option<String>,
    /// set_data_breakpoint: accesses that stop.
    #[schemars(extend("enum" = ["read", "write", "readWrite"]))]
    pub(super) access_type: Option<String>,

    /// evaluate: expression, or a command of the debugger.
    pub(super) expression: Option<String>,
    #[schemars(
        description = "evaluate: watch, hover, repl, clipboard or variables. Without it, expressions never are commands of the debugger; with repl they are, in gdb, lldb-dap and codelldb."
    )]
    pub(super) context: Option<String>,
    /// From stack_trace. Default: the stopped frame.
    pub(super) frame_id: Option<i64>,
    /// variables, data_breakpoint_info: variablesReference of a scope.
    pub(super) scope_id: Option<i64>,
    /// variables: variablesReference; wins over scope_id.
    pub(super) variable_ref: Option<i64>,
    /// From threads. Default: the stopped thread.
    pub(super) thread_id: Option<i64>,
    /// stack_trace: frames at most. Default 20.
    #[schemars(range(min = 1, max = 1_000))]
    pub(super) levels: Option<u32>,
    /// variables, stack_trace: index of the first one.
    pub(super) start: Option<usize>,
    /// evaluate, output: characters at most.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) max_length: Option<usize>,
    /// output: cursor of an earlier answer; tells what is newer.
    pub(super) since: Option<u64>,
    /// output: of this kind only.
    #[schemars(extend("enum" = ["stdout", "stderr", "console"]))]
    pub(super) category: Option<String>,

    /// Address, or memoryReference of a variable.
    pub(super) memory_reference: Option<String>,
    /// disassemble: how many.
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) instruction_count: Option<i64>,
    /// disassemble: instructions to skip; may be negative.
    pub(super) instruction_offset: Option<i64>,
    /// disassemble: name the symbols.
    pub(super) resolve_symbols: Option<bool>,
    /// Bytes to add to the address.
    pub(super) offset: Option<i64>,
    #[schemars(
        description = "read_memory: bytes. variables: how many, default 50. step_*: how many steps, each told with what it changed."
    )]
    #[schemars(range(max = 1_048_576))]
    pub(super) count: Option<usize>,
    /// write_memory: Base64.
    pub(super) data: Option<String>,
    /// write_memory: writing less is fine.
    pub(super) allow_partial: Option<bool>,
    /// modules: index of the first one.
    #[schemars(range(min = 0))]
    pub(super) start_module: Option<i64>,
    /// modules: how many. Default 50.
    #[schemars(range(min = 0))]
    pub(super) module_count: Option<i64>,
    /// custom_request: name of a DAP request.
    pub(super) command: Option<String>,
    /// custom_request: its arguments. launch, attach: more fields as in launch.json, such as justMyCode.
    pub(super) arguments: Option<Object>,
}

impl Arguments {
    /// How long the call may wait: clamped, never refused.
    pub(super) fn timeout(&self) -> Duration {
        let (min, max) = TIMEOUT_S;
        Duration::from_secs_f64(self.timeout.unwrap_or(DEFAULT_TIMEOUT_S).clamp(min, max))
    }

    /// How long a start may wait for the first stop; one that was asked for is waited for.
    pub(super) fn first_wait(&self, stops_at_entry: bool) -> Duration {
        if stops_at_entry || self.timeout.is_some() { self.timeout() } else { FIRST_STOP }
    }
}

/// A text that says something; some clients send an empty one for an argument they leave out.
pub(super) fn given(text: &Option<String>) -> Option<String> {
    text.as_ref().filter(|text| !text.trim().is_empty()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_timeout_is_clamped() {
        let timeout = |given: serde_json::Value| {
            let arguments: Arguments =
                serde_json::from_value(json!({"action": "continue", "timeout": given})).unwrap();
            arguments.timeout().as_secs_f64()
        };
        assert_eq!(timeout(json!(null)), 30.0);
        assert_eq!(timeout(json!(-1)), 5.0);
        assert_eq!(timeout(json!(7.5)), 7.5);
        assert_eq!(timeout(json!(1e300)), 300.0);
    }

    #[test]
    fn a_timeout_that_is_given_counts_for_the_first_stop() {
        let first_wait = |given: serde_json::Value, stops_at_entry| {
            let arguments: Arguments =
                serde_json::from_value(json!({"action": "launch", "timeout": given})).unwrap();
            arguments.first_wait(stops_at_entry).as_secs_f64()
        };
        assert_eq!((first_wait(json!(null), false), first_wait(json!(null), true)), (5.0, 30.0));
        assert_eq!((first_wait(json!(60), false), first_wait(json!(60), true)), (60.0, 60.0));
    }
}
