//! The coordinator of Baton: the one daemon per user that decides which window is live.
//!
//! | module | what it does |
//! |---|---|
//! | [`daemon`] | the life of a coordinator |
//! | [`singleton`] | the lock, the port, the discovery file |
//! | [`state`] | what is remembered over restarts |
//! | [`election`] | core: which window is live |
//! | [`keeper`] | the one task that owns the election |
//! | [`roster`] | what is known of all windows at one moment |
//! | [`resolve`] | which window a text names |
//! | [`http`] | the accept loop, the guard, the routes |
//! | [`control`] | `/v1`: registration, commands of the user |
//! | [`mcp`] | `/mcp`: what is answered here, what is passed on; the bridge |
//! | [`cli`] | the command line |

pub mod cli;
mod clients;
pub mod control;
pub mod daemon;
pub mod election;
pub mod http;
pub mod keeper;
mod logging;
pub mod mcp;
pub mod resolve;
pub mod roster;
pub mod singleton;
pub mod state;
pub mod succession;
