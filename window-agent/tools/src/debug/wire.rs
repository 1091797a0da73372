//! CORE: what an adapter answers to requests that this face passes on, and what it is given for them, as types.

use baton_agent_base::wire::bodies;
use serde_json::Value;

bodies! {
    pub(super),

    /// `dataBreakpointInfo`.
    DataBreakpointInfo {
        data_id: Option<String>,
        description: Option<String>,
        access_types: Vec<String>,
    }

    /// `readMemory`.
    Memory {
        address: Option<String>,
        data: String,
        unreadable_bytes: Option<u64>,
    }

    /// `writeMemory`.
    Written {
        bytes_written: Option<u64>,
    }

    /// How many modules there are.
    Modules {
        total_modules: Option<usize>,
    }

    /// A module.
    Module {
        id: Value,
        name: Option<String>,
        path: Option<String>,
    }

    /// A source.
    Source {
        name: Option<String>,
        path: Option<String>,
        source_reference: Option<i64>,
    }

    /// A line of a disassembly.
    Instruction {
        address: String,
        instruction_bytes: String,
        instruction: String,
        symbol: Option<String>,
        line: Option<i64>,
    }

    /// The arguments of a request that lets the program go on.
    Going {
        granularity: Option<String>,
        single_thread: bool,
    }

    /// The arguments of `setExceptionBreakpoints`.
    SetExceptions {
        filters: Option<Vec<String>>,
        filter_options: Option<Vec<FilterOption>>,
    }

    /// An exception filter with a condition.
    FilterOption {
        filter_id: String,
        condition: Option<String>,
    }
}
