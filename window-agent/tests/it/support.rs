//! What several of these tests stand on: an agent within the test, one in a process of its own, a coordinator played by
//! the test.

pub(crate) mod agent;
pub(crate) mod coordinator;
pub(crate) mod standalone;
