//! The toolset `code` on real language servers: what a client sees, and what the servers say themselves.

#![expect(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod agree;
mod aim;
mod assist;
mod budget;
mod changes;
mod faults;
mod languages;
mod large;
mod moves;
mod oracle;
mod place;
mod python;
mod rename;
#[path = "../support/standalone.rs"]
mod standalone;
mod trees;
