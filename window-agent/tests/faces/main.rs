//! The toolsets `debug`, `quick` and `lcp` on real programs, through a real MCP client: every action and tool, every
//! documented error, every result against its own schema; and what all of it costs a model to read.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, outside of #[test] functions"
)]

mod debug;
mod debug_errors;
mod desk;
mod fake;
mod lcp;
mod names;
mod native;
mod quick;
mod redact;
#[path = "../support/agent.rs"]
#[expect(dead_code, reason = "other test binaries speak byte by byte")]
mod support;
mod tokens;
