//! How a process of Baton finds, proves, starts and talks to the coordinator.
//!
//! | module | what it does |
//! |---|---|
//! | [`explain`] | an error for people: message and remedy apart |
//! | [`folders`] | where installed programs and configuration lie |
//! | [`lead`] | the file that leads a browser to the page |
//! | [`home`] | the state folder: paths, checks, the secret, the discovery file |
//! | [`logs`] | log files: private, one line an event, never through a link |
//! | [`logging`] | what of a process goes there, and in which form |
//! | [`process`] | start times of processes, and killing only the one that is meant |
//! | [`socket`] | Unix sockets in the state folder |
//! | [`peer`] | which user is at the other end of a connection on this host |
//! | [`api`] | the routes of the control API, and a typed call for each |
//! | [`connection`] | one proven connection and the typed requests on it |
//! | [`spawn`] | start `baton serve` detached and hear how it went |
//! | [`net`], [`blocking`] | streams and listeners, work that blocks: the system's, or those of a simulation |
//! | [`plant`] | faults that a simulation has to find; none of them is ever in a program |
//! | [`scratch`] | a private folder for what lives no longer than its process |
//! | [`trees`] | which tree of files a folder belongs to |
//! | [`find`] | all of it together: find the coordinator, or start one |
//!
//! The usual way in is [`find::find_or_start`].

pub mod api;
#[cfg_attr(sim, path = "sim/blocking.rs")]
pub mod blocking;
pub mod connection;
pub mod explain;
#[cfg_attr(sim, path = "sim/files.rs")]
mod files;
pub mod find;
pub mod folders;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod home;
pub mod lead;
pub mod logging;
pub mod logs;
#[cfg_attr(sim, path = "sim/net.rs")]
pub mod net;
pub mod peer;
pub mod plant;
#[cfg_attr(sim, path = "sim/process.rs")]
pub mod process;
pub mod routes;
pub mod scratch;
#[cfg(sim)]
pub mod sim;
#[cfg_attr(sim, path = "sim/socket.rs")]
pub mod socket;
pub mod spawn;
pub mod trees;
