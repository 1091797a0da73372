//! The words of MCP that the edge and the bridge share: what a message is, and how Baton answers one itself.
//!
//! Everything here is a core: bytes in, bytes or decisions out, for every revision that is spoken. A message is read
//! no further than Baton needs, so that what it does not know passes through unchanged; and nothing that a client
//! sends makes anything here panic. What is an error becomes a message in one place, with a code that stays and a
//! sentence that says what to try.
//!
//! | module | what it does |
//! |---|---|
//! | [`envelope`] | CORE: method, id, name out of a message; nothing more |
//! | [`revision`] | CORE: the revisions that are spoken, in two eras |
//! | [`fault`] | CORE: the errors with which Baton itself answers |
//! | [`message`] | CORE: the answers that Baton itself gives |
//! | [`events`] | CORE: server-sent events: where whole ones end, and which one answers |
//! | [`header`] | CORE: names of headers, and any text as the value of one |
//! | [`session`] | CORE: sealed session ids of the older revisions |

pub mod envelope;
pub mod events;
pub mod fault;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod header;
pub mod message;
pub mod revision;
pub mod session;
