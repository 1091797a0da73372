//! A record of calls: a file of the state folder, written by the coordinator while the user wants it, one [`Line`] of JSON
//! a line. What looks like a secret is not in it, see [`crate::redact`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::WindowId;

/// The folder of the records, in the state folder.
pub const FOLDER: &str = "records";
/// How the name of a record's file ends.
pub const ENDING: &str = ".jsonl";
/// Largest record, in bytes: one that has grown so far ends.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Longest arguments, and longest answer, that are written whole, in bytes of JSON.
pub const MAX_PART: usize = 1024 * 1024;

/// What happened. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// The record begins.
    Begin {
        /// When.
        at_ms: u64,
        /// Version of the coordinator.
        version: String,
    },
    /// A window is there from now on, or has other folders than before.
    Window {
        /// When.
        at_ms: u64,
        /// Its id.
        id: WindowId,
        /// Its name.
        name: String,
        /// Its absolute folders.
        folders: Vec<String>,
    },
    /// A window is there no longer.
    Gone {
        /// When.
        at_ms: u64,
        /// Its id.
        id: WindowId,
    },
    /// Another window is live, or none.
    Live {
        /// When.
        at_ms: u64,
        /// Its id.
        id: Option<WindowId>,
        /// The rule that decided: `R1` to `R12`; empty when none is live.
        rule: String,
        /// Why, in a few words.
        why: String,
    },
    /// A call of a client, written when it was over.
    Call(Box<Call>),
    /// The record ends.
    End {
        /// When.
        at_ms: u64,
        /// Why, in a few words.
        why: String,
        /// Calls that were left out because they came faster than they could be written.
        n_left_out: u64,
    },
}

/// A call of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// When it came.
    pub at_ms: u64,
    /// Until its answer was complete, in milliseconds.
    pub took_ms: f64,
    /// What it is called in the logs.
    pub id: String,
    /// What the client calls itself.
    pub client: String,
    /// The window that it was passed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowId>,
    /// The tool.
    pub tool: String,
    /// Its arguments; null when they were too long.
    pub arguments: Value,
    /// What went wrong, in a word of Baton's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The result, as MCP's `CallToolResult`, or what Baton answered itself; null when there was no answer, or when it
    /// was too long.
    pub result: Value,
    /// Whether something was too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// Whether the arguments held what looks like a secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_redacted: bool,
}
