//! The agent of one window: MCP server and debug engine.
//!
//! | module | what |
//! |---|---|
//! | [`options`], [`agent`] | the command line; one run |
//! | [`window`] | what all parts share about the window |
//! | [`membership`] | find, prove, register, heartbeat, notices, re-register |
//! | [`fence`] | CORE: which calls of which term may run |
//! | [`mcp`] | the MCP server: who may call, dispatch |
//! | [`tools`] | one module per toolset: arguments in, verbs, result out |
//! | [`workspace`] | the window's folders on disk: files, launch.json, settings |
//! | [`paths`], [`launch_config`] | CORE: what a path or a configuration means |
//! | [`debug`] | the debug engine |
//! | [`install`] | `baton-agent adapters`: list, install, check |
//! | [`code`] | the code engine |
//! | [`shim`] | the channel to the VS Code extension |
//! | `process` | the only file that spawns children |
//! | [`framing`], `pipe` | CORE: `Content-Length` framing; a connection that speaks in it |
//! | [`report`], [`logging`] | lines for the supervisor; the log |

pub mod agent;
pub mod code;
pub mod debug;
pub mod fence;
pub mod framing;
pub mod install;
pub mod launch_config;
pub mod logging;
pub mod mcp;
pub mod membership;
pub mod options;
pub mod paths;
mod pipe;
mod process;
pub mod report;
pub mod shim;
pub mod tools;
mod walk;
pub mod window;
pub mod workspace;
