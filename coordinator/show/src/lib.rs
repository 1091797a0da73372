//! What the coordinator shows to people: the page in a browser, and the same in a terminal.
//!
//! Both ask the coordinator as every other process of Baton does, and know nothing that it does not tell
//! ([`baton_proto::page`]).
//!
//! | module | what it does |
//! |---|---|
//! | [`browser`] | leads the user's browser to the page |
//! | [`top`] | the page in a terminal: asks, hears keys |
//! | `screen` | draws it, and says what a key means |

pub mod browser;
mod screen;
pub mod top;
