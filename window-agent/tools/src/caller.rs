//! Who calls.

use tokio_util::sync::CancellationToken;

use crate::window::Window;
use baton_agent_base::workspace::Stand;
use baton_agent_debug::types::SessionId;

/// Who calls, and waits for an answer.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The same in all calls of one client; `None` when nobody told.
    pub id: Option<String>,
    /// Where it stands: relative paths mean that folder first.
    pub stand: Option<Stand>,
    /// Cancelled when it gave up.
    pub cancelled: CancellationToken,
    /// The session that is meant when the call names none; `None` leaves it to the engine.
    pub session: Option<SessionId>,
}

impl Caller {
    /// What is set on its behalf is nobody else's; one of which nobody told is no user of an editor.
    pub(crate) fn owner(&self) -> Option<String> {
        Some(self.id.clone().unwrap_or_default())
    }

    /// Whether its programs stop at the breakpoints of this owner.
    pub(crate) fn is_stopped_by(&self, window: &Window, owner: &Option<String>) -> bool {
        window.debugger.concerns(owner, self.id.as_deref().unwrap_or_default())
    }
}
