//! CORE: the errors with which Baton itself answers a client; [`crate::message`] makes messages of them.

use baton_proto::control::WindowRef;
use serde_json::Value;

/// JSON-RPC and MCP error codes.
pub mod code {
    /// It is no JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// It is JSON, and no message.
    pub const INVALID_REQUEST: i32 = -32600;
    /// Nobody has such a method.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The method takes no such parameters.
    pub const INVALID_PARAMS: i32 = -32602;
    /// A fault that is not the caller's.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// A session id that is not ours.
    pub const UNKNOWN_SESSION: i32 = -32001;
    /// A header and the body say different things.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// A revision that is not spoken.
    pub const UNSUPPORTED_REVISION: i32 = -32022;
}

/// A tool call that Baton itself answers with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure {
    /// Stable, for programs.
    pub code: &'static str,
    /// What happened, one sentence.
    pub message: String,
    /// What to try, one sentence.
    pub hint: String,
    /// The windows it could be about.
    pub candidates: Vec<WindowRef>,
}

/// A protocol error.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// One of [`code`].
    pub code: i32,
    /// What happened, one sentence.
    pub message: String,
    /// What programs may want to know.
    pub data: Option<Value>,
}

impl RpcError {
    /// One without data.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// Of a call that may have taken effect: never an invitation to repeat it. `what` happened is no whole sentence yet.
pub fn outcome_unknown(what: &str) -> ToolFailure {
    ToolFailure {
        code: "outcome_unknown",
        message: format!("{what}; it may or may not have taken effect."),
        hint: "Check before you repeat it: read the file, or call list_windows or get_breakpoints. Only a \
               call that changes nothing is safe to repeat."
            .to_owned(),
        candidates: Vec::new(),
    }
}
