//! The life of the coordinator: one per user, whatever happens to it.
//!
//! This crate owns the process: it takes the lock before the port, writes its generation before the port answers,
//! puts the parts together, carries out the orders that only the owner of a process can, and ends so that no call is
//! lost. What leads others to it is made anew when it is lost, and its port is kept when it is killed. What it does
//! for windows and clients is decided in the crates below.
//!
//! | module | what it does |
//! |---|---|
//! | [`daemon`] | from the lock to the last answer |
//! | [`app`] | who answers which path |
//! | [`singleton`] | the lock, the port, the discovery file |
//! | `presence` | what leads others to this coordinator, and is made anew when it is lost |
//! | [`holder`] | the process that keeps the port while coordinators come and go |
//! | [`succession`] | one coordinator follows another without a pause |
//! | [`configuration`] | the user's `config.toml` |
//! | [`watchers`] | who hears of each tool call |
//! | [`state`] | what is remembered over restarts |

pub mod app;
pub mod configuration;
pub mod daemon;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod holder;
mod presence;
pub mod singleton;
pub mod state;
pub mod succession;
pub mod watchers;
