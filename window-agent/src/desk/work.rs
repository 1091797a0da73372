//! What clients do in this window, for its view in the editor.

use std::path::Path;

use baton_agent_debug::types::Phase;
use baton_agent_tools::window::Window;
use baton_proto::shim::{Work, WorkBreakpoint, WorkClient, WorkSession};
use tokio::time::Instant;

pub(super) async fn of(window: &Window) -> Work {
    let sessions = window.debugger.sessions().into_iter().map(|session| WorkSession {
        id: session.id.to_string(),
        name: session.name,
        stopped: session.phase == Phase::Stopped,
        by_user: session.by_user,
    });
    let to_text = |path: &Path| path.to_string_lossy().into_owned();
    let breakpoints = window.debugger.breakpoints().await.into_iter().filter_map(|known| {
        let owner = known.owner?;
        Some(WorkBreakpoint {
            path: to_text(&known.path),
            line: known.line,
            condition: known.condition,
            client: window.guests.name(&owner),
        })
    });
    let clients = window.guests.list(Instant::now()).into_iter();
    let clients = clients.map(|(name, ago)| WorkClient { name, seconds: ago.as_secs() });
    Work { sessions: sessions.collect(), breakpoints: breakpoints.collect(), clients: clients.collect() }
}
