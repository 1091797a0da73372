//! Baton as a whole, on real processes: one module for each concern.

mod adapters;
mod audit;
mod bad_input;
mod belonging;
mod changes;
mod code;
mod command_line;
mod doctor;
mod edge;
mod election;
mod ending;
mod faults;
mod heavy;
mod keeping;
mod lost_state;
mod moved_port;
mod report;
mod restarts;
mod second_user;
mod succession;
mod threats;
mod tidy;
mod toolsets;
mod trees;
mod walls;
mod words;
