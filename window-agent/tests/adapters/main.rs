//! The whole agent with debug adapters; what the engine alone does with them, `debug/tests/adapters` tests.
//! `cargo xtask test adapters` installs what they need.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, outside of #[test] functions"
)]

mod agents;
mod clients;
mod expressions;
mod hung;
mod ids;
#[path = "../../debug/tests/adapters/programs.rs"]
#[expect(dead_code, reason = "the engine's own tests need more of it")]
mod programs;
#[path = "../it/support/standalone.rs"]
mod standalone;
