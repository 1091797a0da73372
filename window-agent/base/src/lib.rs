//! What the engines and the faces of the agent stand on: files, folders, processes, and ways to talk to both.
//!
//! It promises to know no debugger, no language server, no tool and no coordinator.
//! What goes wrong here is a [`fault::Fault`], and every child process is spawned in [`process`].
//!
//! | module | what |
//! |---|---|
//! | [`fault`] | CORE: what went wrong, as a client reads it |
//! | [`fence`] | CORE: which calls of which term may run |
//! | [`object`] | CORE: objects of JSON |
//! | [`wire`] | CORE: values of a protocol as types |
//! | [`names`] | CORE: which names are like one that does not exist |
//! | [`paths`], [`launch_config`] | CORE: what a path or a configuration means |
//! | [`tasks`] | CORE: what is run for a task of tasks.json |
//! | [`view`] | CORE: how files are called in answers to one client |
//! | [`workspace`], [`walk`] | the window's folders on disk: files, launch.json, settings |
//! | [`trees`] | which tree of sources a path is of: a window's own, or another one inside of it |
//! | [`process`] | the only file that spawns children |
//! | [`census`] | how many adapters and servers were started, died and run |
//! | [`programs`] | adapters and servers that the user has somewhere of their own |
//! | [`rustup`] | what stands behind the names that rustup puts on the search path |
//! | [`framing`], [`pipe`] | CORE: `Content-Length` framing; a connection that speaks in it |
//! | [`shim`] | the channel to the VS Code extension |

// What [`wire::bodies`] writes names this crate, here too.
extern crate self as baton_agent_base;

pub mod census;
pub mod fault;
pub mod fence;
pub mod framing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod launch_config;
pub mod names;
pub mod object;
pub mod paths;
pub mod pipe;
pub mod process;
pub mod programs;
pub mod rustup;
pub mod shim;
pub mod tasks;
pub mod trees;
pub mod view;
pub mod walk;
pub mod wire;
pub mod workspace;
