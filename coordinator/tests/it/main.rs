//! The coordinator and its command line as real processes: one per user, whatever happens to it.
#![expect(clippy::disallowed_methods, reason = "these tests start real processes")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod commands;
mod scene;
mod singleton;
mod stdio;
mod strangers;
mod trust;
mod windows;
