//! Which debug session each client was last about.

use std::collections::VecDeque;

use baton_agent_debug::types::SessionId;
use parking_lot::Mutex;

/// Clients whose last session is remembered: more than a user has.
const MAX_CLIENTS: usize = 64;

/// Which session each client was last about, the latest one last.
#[derive(Debug, Default)]
pub struct Claims(Mutex<VecDeque<(String, SessionId)>>);

impl Claims {
    /// A call of this client was about this session.
    pub(crate) fn note(&self, client: &str, session: SessionId) {
        let mut claims = self.0.lock();
        claims.retain(|(known, _)| known != client);
        claims.push_back((client.to_owned(), session));
        if claims.len() > MAX_CLIENTS {
            claims.pop_front();
        }
    }

    /// The session that a client was last about.
    pub(crate) fn last(&self, client: &str) -> Option<SessionId> {
        let claims = self.0.lock();
        claims.iter().find(|(known, _)| known == client).map(|(_, session)| session.clone())
    }
}
