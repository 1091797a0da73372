//! The debug engine with a real debugpy, in one binary, which is linked once. `tests/adapters` has what needs adapters
//! that take long to install.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, outside of #[test] functions"
)]

mod debugpy;
mod oracle;
