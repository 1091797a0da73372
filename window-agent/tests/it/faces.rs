//! The toolsets `debug`, `quick` and `lcp` on real programs, through a real MCP client: every action and tool, every
//! documented error, every result against its own schema; and what all of it costs a model to read.

mod alike;
mod asks;
mod debug;
mod debug_errors;
pub(crate) mod desk;
mod fake;
mod lcp;
mod names;
mod native;
mod quick;
mod redact;
mod tasks;
mod tokens;
