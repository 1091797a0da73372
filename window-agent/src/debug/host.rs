//! How the engine reaches debug adapters.

pub(crate) mod direct;
pub(crate) mod inspector;
pub(crate) mod server;
pub(crate) mod vscode;
