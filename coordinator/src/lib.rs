//! (skeleton)
pub mod roster;
