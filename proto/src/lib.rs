//! Types that cross a process boundary of Baton, and nothing else.
//!
//! | module | who speaks it |
//! |---|---|
//! | [`ids`] | everybody: window ids, terms, instance ids |
//! | [`discovery`] | the discovery file, the mutual proof, the keys derived from the secret |
//! | [`control`] | agent, command line <-> coordinator, JSON over HTTP under `/v1` |
//! | [`edge`] | coordinator -> agent: the headers on a forwarded MCP call, and the refusals |
//! | [`page`] | coordinator -> its page and `baton top`: what there is to see |
//! | [`percent`] | CORE: any text in a header or a path |
//! | [`record`] | coordinator -> whoever reads a record of calls |
//! | [`redact`] | CORE: what looks like a secret |
//! | [`bounds`] | CORE: what a message of a client may hold at most |
//! | [`start`] | a coordinator that starts -> whoever started it |
//! | [`shim`] | agent <-> VS Code extension, JSON-RPC over stdio |

pub mod bounds;
pub mod control;
pub mod discovery;
pub mod edge;
pub mod ids;
pub mod page;
pub mod percent;
pub mod record;
pub mod redact;
mod settings;
pub mod shim;
pub mod start;

/// Version of the control protocol this build speaks.
pub const PROTOCOL: u32 = 2;

/// Oldest version of the control protocol this build still speaks.
pub const PROTOCOL_MIN: u32 = 1;
