//! What is known before a session begins: what runs its adapter, and how to reach it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::dap::body::read;
use crate::dap::configuration::Configuration;
use crate::editor::{Editor, Target};
use crate::session::plan::{Link, SessionPlan, StartKind};
use baton_agent_base::process::Program;

/// How to reach an adapter.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// Spawn it and speak over its pipes. The programs are tried in order; one that exits with
    /// [`EXIT_ADAPTER_MISSING`] passes the turn to the next.
    Stdio(Vec<Program>),
    /// Spawn it and connect to it; child sessions connect to it again.
    Server(Server),
    /// Connect to it.
    Tcp { host: String, port: u16 },
    /// Connect to it once more: a child session of a server.
    Unix(PathBuf),
}

/// An adapter that is a server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) program: Program,
    pub(crate) listening: Listening,
    /// What the server prints is what the debugged program prints.
    pub(crate) prints_program_output: bool,
    /// See [`crate::adapter::Adapter::exit_code_sign`].
    pub(crate) exit_code_sign: Option<String>,
    /// See [`crate::adapter::Adapter::late_output`].
    pub(crate) late_output: bool,
    /// See [`crate::adapter::Adapter::answers_after_end`].
    pub(crate) answers_after_end: bool,
    /// Where sources lie that the server names by relative paths.
    pub(crate) source_roots: Vec<PathBuf>,
    /// Where it listens, if it does; set by the host once it is known, read for child sessions.
    pub(crate) address: Arc<OnceLock<Address>>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// How it is learned where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// It prints a line, on either stream, in which the port follows this text.
    Announced(String),
    /// It was told; it can be connected to a moment later. [`PORT`] stands in its arguments for a free port.
    Given,
    /// It does not: it connects to a port of ours, for which [`PORT`] stands in its arguments.
    Back,
    /// It does not: it speaks over its standard streams.
    Pipes,
    /// It was told a path, for which [`SOCKET`] stands in its arguments.
    Unix,
}

/// Stands in a server's arguments for the port to listen on, or to connect to; the host chooses it.
pub(crate) const PORT: &str = "{port}";
/// Stands in a server's arguments for the path of the unix socket to listen on; the host chooses it.
pub(crate) const SOCKET: &str = "{socket}";

/// Exit code of a bootstrap that found no adapter where it looked.
#[cfg_attr(sim, expect(dead_code, reason = "the adapter of a simulation is always there"))]
pub(crate) const EXIT_ADAPTER_MISSING: i32 = 86;

/// What runs the adapter of a session.
#[derive(Clone, Debug)]
pub(crate) enum Host {
    /// We do.
    Direct(Reach),
    /// VS Code does.
    Editor(Editor, Target),
}

/// Everything needed to begin a session.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) session: SessionPlan,
    pub(crate) host: Host,
    /// What to say when none of the programs had the adapter.
    #[cfg_attr(sim, expect(dead_code, reason = "the adapter of a simulation is always there"))]
    pub(crate) install_hint: String,
}

/// What this machine is called in configurations.
pub(crate) const HERE: [&str; 4] = ["localhost", "127.0.0.1", "::1", "[::1]"];

impl Host {
    /// What the adapter is to its session.
    pub(crate) fn link(&self) -> Link {
        match self {
            Self::Direct(Reach::Stdio(_) | Reach::Server(_)) => Link::Spawned,
            Self::Direct(Reach::Tcp { .. } | Reach::Unix(_)) | Self::Editor(..) => Link::Connected,
        }
    }
}

impl Plan {
    /// Whether the user started it, and no client.
    pub(crate) fn is_users(&self) -> bool {
        matches!(&self.host, Host::Editor(_, target) if target.is_users())
    }

    /// Whether it is of the next part of a compound in the editor.
    pub(crate) fn is_part(&self) -> bool {
        matches!(&self.host, Host::Editor(_, target) if target.is_part())
    }

    /// The port of this machine that an attach of js-debug is to.
    pub(crate) fn attached_port(&self) -> Option<u16> {
        /// Where node listens when nobody says otherwise.
        const USUAL: u16 = 9229;
        let SessionPlan { arguments, kind, .. } = &self.session;
        let Configuration { address, port, .. } = read(arguments);
        let host = address.as_deref().unwrap_or("localhost");
        let is_here = HERE.contains(&host);
        let port = if port.is_given() { port.as_port() } else { Some(USUAL) };
        port.filter(|_| is_here && *kind == StartKind::Attach)
    }
}
