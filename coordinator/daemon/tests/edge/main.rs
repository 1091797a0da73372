//! The edge over real sockets: real MCP servers as windows, the official Rust client and plain HTTP as clients.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod counted;
mod eras;
mod faults;
mod guard;
mod world;
