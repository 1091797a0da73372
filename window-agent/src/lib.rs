//! The agent of one window: MCP server and debug engine.

pub mod debug;
