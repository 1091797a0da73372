//! Who sent a message.

use baton_mcp::revision::Era;

/// See the module.
pub(crate) struct Caller {
    pub(crate) era: Era,
    /// Number of the session, when there is one.
    pub(crate) session: Option<[u8; 16]>,
    /// The client's own name.
    pub(crate) client: String,
}
