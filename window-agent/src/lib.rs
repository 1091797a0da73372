//! The agent of one window: MCP server, tools, membership. The engines are crates of their own.
//!
//! | module | what |
//! |---|---|
//! | [`options`], [`agent`] | the command line; one run |
//! | [`membership`] | find, prove, register, heartbeat, notices, re-register |
//! | [`heart`] | whether the thread of the calls still turns |
//! | [`install`] | `baton-agent adapters`: list, install, check |
//! | [`desk`], [`pulse`], [`identity`] | what the extension is answered; its beats; which window it is, across reloads |
//! | [`keeping`] | breakpoints, from one agent of the window to the next |
//! | [`report`] | lines for the supervisor |

pub mod agent;
pub mod desk;
pub mod heart;
pub mod identity;
pub mod install;
pub mod keeping;
pub mod membership;
pub mod options;
pub mod pulse;
pub mod report;
