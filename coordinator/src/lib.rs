//! (skeleton)
pub mod http;
pub mod mcp;
pub mod resolve;
pub mod roster;
