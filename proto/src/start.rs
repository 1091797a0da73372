//! What `baton serve --detached` says to whoever started it: one JSON line on standard output, then nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Exit code of a coordinator that found another one running.
pub const EXIT_ALREADY_RUNNING: i32 = 75;

/// How a start went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Handshake {
    /// The coordinator answers on this port.
    Ready {
        /// See [`crate::discovery::Discovery::port`].
        port: u16,
    },
    /// Another one holds the lock; this one ended with [`EXIT_ALREADY_RUNNING`].
    AlreadyRunning,
    /// A stranger holds the port. The coordinator keeps the lock and keeps trying.
    PortTaken {
        /// The port.
        port: u16,
        /// Who holds it, for people, as far as the system tells.
        by: String,
    },
    /// It could not start and ended.
    Error {
        /// What went wrong, in one sentence.
        message: String,
        /// What to try.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

/// `waiting.json`: a coordinator that has the lock and waits for its port. Gone once it answers or ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Its process id.
    pub pid: u32,
    /// See [`crate::discovery::Discovery::pid_start`].
    pub pid_start: u64,
    /// The port that somebody else holds.
    pub port: u16,
}
