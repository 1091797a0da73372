//! The port holder: a small process that keeps the coordinator's port while coordinators come and go.
//!
//! Without it the port is free for a moment after a `kill -9` of the coordinator, and another user of the machine
//! who takes it then hears the token that the next client sends, and may answer it. A client that connects in that
//! moment waits for the next coordinator instead.
//!
//! | module | what belongs there |
//! |---|---|
//! | `process` | the process: `baton hold-port` |
//! | `lease` | what a coordinator does with it: find it or start it, take the listeners, let it go |
//! | `pass` | listeners over a socket |
//!
//! It knows no secret, reads nothing that clients send, and ends by itself when no coordinator has come for a while.

#[cfg_attr(sim, path = "sim/lease.rs")]
mod lease;
pub(crate) mod pass;
mod process;

pub use lease::{Lease, Left};
pub use process::run;

/// Said by a coordinator that ends for good, or moves to another port: the port is to be let go of.
const RELEASE: u8 = b'R';
