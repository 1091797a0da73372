//! `config.toml`: what the user may write there, what is wrong with it, and how a setting is changed in it.
//!
//! The file holds settings of the coordinator and of all windows, each under its name; one that it does not name has
//! its default. Whatever else stands in it, comments and order, is the user's, and stays. Nothing here reads or writes
//! a file: `baton-daemon` does, which alone may.
//!
//! **Invariant:** what is taken can be carried out; everything else is one sentence with line and column.
//!
//! | module | what it does |
//! |---|---|
//! | `check` | what each setting can be |
//! | [`file`](mod@file) | settings out of a text, and into it |

mod check;
pub mod file;

pub use check::{TOOLSETS, check, expected, nearest, nearest_of};

/// Name of the file, in the user's configuration folder.
pub const NAME: &str = "config.toml";
/// The same by the name that another tool gives it; read when there is no [`NAME`].
pub const ALIAS: &str = "lcp.config.json";
/// Name of the file's JSON schema, beside it.
pub const SCHEMA_NAME: &str = "config.schema.json";
