//! What a program meets that asks a coordinator, or starts one.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod connection;
mod spawn_budget;
