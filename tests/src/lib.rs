//! Tests of Baton as a whole: real programs, real clients, nothing mocked.
//!
//! | module | what it gives a test |
//! |---|---|
//! | [`world`] | one coordinator and its windows as real processes, ended and accounted for |
//! | [`bridge`] | `baton stdio`, spoken to by hand |
//! | [`client`] | an official MCP client, driven line by line |
//! | [`edits`] | clients that edit and undo, beside a model of the files |
//! | [`raw`] | HTTP written byte by byte, for requests that no client would send |
//! | [`elder`] | a window of protocol 1 |
//! | [`story`] | the main job as a client does it |
//! | [`process`] | starting, signalling and finding processes |
//! | [`user`] | other users of the machine |
//! | [`place`] | where programs, tools and fixtures are |

pub mod bridge;
pub mod client;
pub mod edits;
pub mod elder;
pub mod place;
pub mod process;
pub mod raw;
pub mod story;
pub mod user;
pub mod world;
