//! How the engine reaches debug adapters.

pub(crate) mod direct;
pub(crate) mod vscode;
