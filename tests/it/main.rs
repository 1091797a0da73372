//! Baton as a whole, on real processes: one module for each concern.

mod adapters;
mod bad_input;
mod code;
mod command_line;
mod edge;
mod election;
mod faults;
mod succession;
mod threats;
mod tidy;
mod toolsets;
