//! The command line of Baton: one file per verb.
//!
//! A verb says what it does, on standard output what a script may read, on standard error what a person is told, and
//! ends with an exit code that says how it went; `docs/commands.md` is the contract. The coordinator itself, the
//! bridge and the files of AI clients are crates of their own, in folders beside this one.
//!
//! | module | what it does |
//! |---|---|
//! | [`cli`] | what can be said, and one file per verb |
//! | `logging` | what each of them logs |

pub mod cli;
mod logging;
