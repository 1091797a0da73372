//! What the coordinator says to an agent beside the bytes of an MCP call, and how an agent refuses one.
//!
//! An agent serves MCP on `POST http://127.0.0.1:<its port>/mcp`, stateless, in every revision.

/// Header on a call routed to the live window: the term it was routed under, as `generation.seq`.
///
/// The agent refuses, unrun, a call whose term is lower than the highest one it has seen, and every such call
/// while it is fenced. A higher term is taken as a grant that overtook its notice.
pub const TERM_HEADER: &str = "baton-term";

/// Header on a call that names its window (pin, `window` argument, session handle): no term is needed.
pub const PIN_HEADER: &str = "baton-pin";

/// Header of an answer with status 409: the call was refused and provably not run; its value says why.
pub const REFUSED_HEADER: &str = "baton-refused";

/// [`REFUSED_HEADER`]: the call's term is over.
pub const REFUSED_STALE_TERM: &str = "stale-term";

/// [`REFUSED_HEADER`]: the agent lost touch with the coordinator and does not run calls of its term.
pub const REFUSED_FENCED: &str = "fenced";

/// Header that the bridge sends with its working directory, percent-encoded: pins its calls to the window
/// whose folder contains it, when there is one.
pub const FOLDER_HEADER: &str = "baton-folder";

/// Key of `_meta` that names the window and term on every result.
pub const META_WINDOW: &str = "baton/window";

/// Name of the optional tool argument that names a window; every tool has it.
pub const WINDOW_ARGUMENT: &str = "window";

/// Name of the optional tool argument that names a debug session, and with it a window.
pub const SESSION_ARGUMENT: &str = "session_id";
