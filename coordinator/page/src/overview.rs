//! All that there is to see but the calls, at one moment.

use std::sync::Arc;

use baton_election::roster::Window;
use baton_link::process::own_id;
use baton_proto::page::{Overview, WindowView};

use crate::holdings::Holdings;
use crate::{Shared, since_1970};

pub(crate) fn overview(shared: &Shared, port: u16) -> Overview {
    let roster = shared.keeper.roster();
    let mut windows: Vec<WindowView> =
        roster.windows.values().map(|window| view(window, &shared.holdings)).collect();
    windows.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
    Overview {
        instance: roster.instance.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: own_id(),
        url: format!("http://127.0.0.1:{port}/mcp"),
        since_ms: since_1970(shared.since),
        live: roster.live.as_ref().map(|(id, _)| id.clone()),
        awaiting: roster.awaiting.as_ref().map(|(id, _)| id.clone()),
        windows,
        story: shared.story.borrow().happenings(),
        clients: shared.journal.clients(),
    }
}

fn view(window: &Arc<Window>, holdings: &Holdings) -> WindowView {
    let (mut programs, breakpoints, more_breakpoints) = holdings.of(&window.id, window.incarnation);
    programs.retain(|tally| tally.running > 0 || tally.died > 0);
    WindowView {
        id: window.id.clone(),
        name: window.name.clone(),
        kind: window.kind,
        folders: window.folders.clone(),
        state: window.state,
        why: window.why.clone(),
        responsive: window.responsive,
        auto_start: window.auto_start,
        pid: window.pid,
        sessions: window.debug_sessions.clone(),
        breakpoints,
        more_breakpoints,
        programs,
    }
}
