//! (skeleton)
pub mod control;
pub mod election;
pub mod http;
pub mod keeper;
pub mod mcp;
pub mod resolve;
pub mod roster;
