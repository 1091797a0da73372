//! (skeleton)
pub mod resolve;
pub mod roster;
