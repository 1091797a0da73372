//! The answer of `GET /v1/status`.

use std::time::SystemTime;

use baton_election::roster::{Roster, Window};
use baton_link::process::own_id;
use baton_proto::control::{Status, WindowStatus};
use jiff::Timestamp;
use tokio::time::Instant;

/// The stable URL for clients.
pub(super) fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/mcp")
}

pub(super) fn status(roster: &Roster, port: u16) -> Status {
    Status {
        running: true,
        pid: own_id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        generation: roster.generation,
        url: url(port),
        port,
        live: roster.live.as_ref().map(|(id, _)| id.clone()),
        term: roster.live.as_ref().map(|(_, term)| *term),
        awaiting: roster.awaiting.as_ref().map(|(id, _)| id.clone()),
        windows: roster.windows.values().map(|window| window_status(window)).collect(),
        warnings: Vec::new(),
    }
}

pub(super) fn window_status(window: &Window) -> WindowStatus {
    WindowStatus {
        id: window.id.clone(),
        name: window.name.clone(),
        folders: window.folders.clone(),
        kind: window.kind,
        state: window.state,
        responsive: window.responsive,
        auto_start: window.auto_start,
        pid: window.pid,
        debug_sessions: {
            let clients = window.debug_sessions.iter().filter(|session| !session.by_user);
            clients.map(|session| session.id.clone()).collect()
        },
        last_focus: window.last_focus.and_then(to_rfc3339),
    }
}

/// A moment of the monotonic clock as one of the wall clock, for people.
fn to_rfc3339(moment: Instant) -> Option<String> {
    let wall = SystemTime::now().checked_sub(moment.elapsed())?;
    let seconds = wall.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    Some(Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?.to_string())
}
