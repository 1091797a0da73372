//! CORE: the fields of a launch configuration that Baton reads, whichever adapter it is for. Everything else in it
//! passes through.

use baton_agent_base::wire::bodies;
use serde::Deserialize;
use serde_json::{Map, Value};

bodies! {
    pub(crate),

    /// A configuration of a launch.json, the arguments of `launch` and `attach`, or what `startDebugging` asks for.
    Configuration {
        #[serde(rename = "type")]
        kind: String,
        request: Option<String>,
        name: Option<String>,
        program: Option<String>,
        module: Option<String>,
        main_class: Option<String>,
        cwd: Option<String>,
        /// gdb and lldb-dap: what a program left behind when it crashed.
        core_file: Option<String>,
        stop_on_entry: bool,
        stop_at_entry: bool,
        stop_at_beginning_of_main_subprogram: bool,
        host: Option<String>,
        address: Option<String>,
        port: Number,
        process_id: Number,
        /// debugpy: where it listens.
        connect: Option<Connect>,
        /// VS Code: the port of an adapter that runs already.
        debug_server: Number,
        pre_launch_task: Option<Value>,
        /// debugpy: a path, or a path with arguments.
        python: Option<Value>,
        python_path: Option<Value>,
        debug_adapter_python: Option<String>,
        /// Go: `debug`, `test`, `exec` and others.
        mode: Option<String>,
        /// Go: the binary that is built.
        output: Option<String>,
        dlv_cwd: Option<String>,
        /// Java: one text, where VS Code takes a list.
        vm_args: Option<Vec<String>>,
        args: Option<Value>,
        /// js-debug: what a child is attached to.
        #[serde(rename = "__pendingTargetId")]
        pending_target_id: Option<Value>,
    }

    /// A variable of the environment in the form of VS Code's C++ debugger.
    Variable {
        name: Option<String>,
        value: Value,
    }

    /// Where a debugger listens.
    Connect {
        host: Option<String>,
        port: Number,
    }
}

/// A number, which people also write as a text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Number(Value);

impl Number {
    /// Whether there is anything.
    pub(crate) fn is_given(&self) -> bool {
        !self.0.is_null()
    }

    /// As a number.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        self.0.as_u64().or_else(|| self.0.as_str()?.trim().parse().ok())
    }

    /// As a port that something listens on.
    pub(crate) fn as_port(&self) -> Option<u16> {
        self.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
    }
}

impl Configuration {
    /// Of the fields of a configuration.
    pub(crate) fn of(fields: &Map<String, Value>) -> Self {
        Self::deserialize(fields).unwrap_or_default()
    }

    /// Whether it attaches.
    pub(crate) fn attaches(&self) -> bool {
        self.request.as_deref() == Some("attach")
    }
}
