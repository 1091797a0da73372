//! How a process of Baton finds, proves, starts and talks to the coordinator.
//!
//! | module | what it does |
//! |---|---|
//! | [`home`] | the state folder: paths, checks, the secret, the discovery file |
//! | [`process`] | start times of processes, and killing only the one that is meant |
//! | [`connection`] | one proven connection and the typed requests on it |
//! | [`spawn`] | start `baton serve` detached and hear how it went |
//! | [`find`] | all of it together: find the coordinator, or start one |
//!
//! The usual way in is [`find::find_or_start`].

pub mod connection;
pub mod find;
pub mod home;
pub mod process;
pub mod spawn;
