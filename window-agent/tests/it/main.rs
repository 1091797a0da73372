//! The agent as others meet it, in one binary, which is linked once. `tests/adapters` has what needs adapters that take
//! long to install.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, outside of #[test] functions"
)]

mod catalogue;
mod code;
mod debugger_tools;
mod faces;
mod killed;
mod mcp;
mod membership;
mod support;
