//! CORE: which window a tool call belongs to.
//!
//! The order: the argument `window`, then the handle of a debug session, then the endpoint's pin, then the live
//! window. With the setting `routing` at `live` the first two may only confirm what the last two say.

use std::sync::Arc;

use baton_election::resolve::{Unresolved, resolve, resolve_containing};
use baton_election::roster::{Roster, Window};
use baton_mcp::fault::ToolFailure;
use baton_proto::control::{Routing, WindowRef, WindowState};
use baton_proto::ids::{Term, WindowId};

/// What an endpoint is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pin {
    /// Whichever window is live.
    #[default]
    Live,
    /// The window with this id or name.
    Window(String),
    /// The window whose folder contains this path; the live one when none does.
    Folder(String),
}

/// What a call says about its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) window: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) pin: &'a Pin,
}

/// Where a call goes.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    /// To this window.
    Send(Target),
    /// Nowhere yet: it waits for the roster to change, and gets this failure when it waited too long.
    Hold(ToolFailure),
    /// Nowhere.
    Refuse(ToolFailure),
}

/// A window and the right to call it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) window: Arc<Window>,
    pub(crate) right: Right,
}

/// Why the window may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// It is live in this term.
    Term(Term),
    /// The call names it.
    Pin,
}

/// Routes a call.
pub(crate) fn route(roster: &Roster, wish: Wish<'_>) -> Decision {
    let named = match (wish.window, wish.session) {
        (Some(text), _) => match resolve(roster, text) {
            Ok(window) => Some(window),
            Err(unresolved) if is_awaited(roster, text) => {
                return Decision::Hold(unknown(roster, unresolved));
            }
            Err(unresolved) => return Decision::Refuse(unknown(roster, unresolved)),
        },
        (None, Some(session)) => match owner_of(roster, session, wish.pin) {
            Ok(owner) => owner,
            Err(failure) => return Decision::Refuse(failure),
        },
        (None, None) => None,
    };
    let pinned = match pinned(roster, wish.pin) {
        Ok(pinned) => pinned,
        // A named window does not need the pin.
        Err(decision) if named.is_none() => return decision,
        Err(_) => None,
    };
    let Some(window) = named.or(pinned) else { return to_live(roster) };
    if let Some((live, term)) = roster.live_window()
        && live.id == window.id
    {
        return Decision::Send(Target { window: live.clone(), right: Right::Term(term) });
    }
    let is_pinned = pinned.is_some_and(|pinned| pinned.id == window.id);
    if !is_pinned && roster.settings.routing == Routing::Live {
        return Decision::Refuse(not_live(roster, window));
    }
    if window.state == WindowState::Off {
        return Decision::Refuse(window_off(window));
    }
    Decision::Send(Target { window: window.clone(), right: Right::Pin })
}

fn to_live(roster: &Roster) -> Decision {
    match roster.live_window() {
        Some((window, term)) => Decision::Send(Target { window: window.clone(), right: Right::Term(term) }),
        None => Decision::Hold(no_live_window(roster)),
    }
}

/// The window an endpoint is bound to; `None` when it follows the live one.
fn pinned<'a>(roster: &'a Roster, pin: &Pin) -> Result<Option<&'a Arc<Window>>, Decision> {
    match pin {
        Pin::Live => Ok(None),
        // The window of a pin may be reloading, so the call waits for it.
        Pin::Window(text) => resolve(roster, text).map(Some).map_err(|unresolved| match unresolved {
            Unresolved::Unknown { .. } => Decision::Hold(unknown(roster, unresolved)),
            Unresolved::Ambiguous { .. } => Decision::Refuse(unknown(roster, unresolved)),
        }),
        Pin::Folder(path) => match resolve_containing(roster, path) {
            Ok(found) => Ok(found),
            Err(Unresolved::Ambiguous { candidates, .. }) if live_among(roster, &candidates).is_some() => {
                Ok(live_among(roster, &candidates))
            }
            Err(unresolved) => Err(Decision::Refuse(unknown(roster, unresolved))),
        },
    }
}

fn live_among<'a>(roster: &'a Roster, candidates: &[WindowRef]) -> Option<&'a Arc<Window>> {
    let (live, _) = roster.live_window()?;
    candidates.iter().any(|candidate| candidate.id == live.id).then_some(live)
}

/// The window that has the debug session. An unknown one is left to the pinned or live window to complain of.
fn owner_of<'a>(
    roster: &'a Roster,
    session: &str,
    pin: &Pin,
) -> Result<Option<&'a Arc<Window>>, ToolFailure> {
    let owns = |window: &&Arc<Window>| window.debug_sessions.iter().any(|own| own.id == session);
    let owners: Vec<_> = roster.windows.values().filter(owns).collect();
    if owners.len() < 2 {
        return Ok(owners.first().copied());
    }
    // Among several, the one that the call would go to anyway is meant.
    let default_id: Option<&WindowId> = match pinned(roster, pin) {
        Ok(Some(window)) => Some(&window.id),
        Ok(None) => roster.live.as_ref().map(|(id, _)| id),
        Err(_) => None,
    };
    if let Some(owner) = owners.iter().find(|owner| Some(&owner.id) == default_id) {
        return Ok(Some(*owner));
    }
    Err(ToolFailure {
        code: "ambiguous_window",
        message: format!("More than one window has a debug session {session:?}."),
        hint: "Pass the window in the argument `window`.".to_owned(),
        candidates: owners.iter().map(|owner| owner.to_ref()).collect(),
    })
}

/// True when the call means a window or a debug session of which the roster knows nothing.
pub(crate) fn is_unheard_of(roster: &Roster, wish: Wish<'_>) -> bool {
    let is_unknown = |text: &str| matches!(resolve(roster, text), Err(Unresolved::Unknown { .. }));
    let is_owned = |session: &str| {
        roster.windows.values().flat_map(|window| &window.debug_sessions).any(|own| own.id == session)
    };
    match (wish.window, wish.session, wish.pin) {
        (Some(text), ..) => is_unknown(text),
        (None, Some(session), _) => !is_owned(session),
        // A pin on a window waits by itself.
        (None, None, Pin::Live | Pin::Window(_)) => false,
        (None, None, Pin::Folder(path)) => matches!(resolve_containing(roster, path), Ok(None)),
    }
}

/// True when `text` is the id of the window whose place is held.
fn is_awaited(roster: &Roster, text: &str) -> bool {
    roster.awaiting.as_ref().is_some_and(|(id, _)| id.as_str() == text)
}

fn unknown(roster: &Roster, unresolved: Unresolved) -> ToolFailure {
    match unresolved {
        Unresolved::Unknown { text } => ToolFailure {
            code: "unknown_window",
            message: format!("No window matches {text:?}."),
            hint: "Call list_windows, or omit the argument to use the live window.".to_owned(),
            candidates: roster.windows.values().take(CANDIDATES_MAX).map(|window| window.to_ref()).collect(),
        },
        Unresolved::Ambiguous { text, candidates } => ToolFailure {
            code: "ambiguous_window",
            message: format!("{text:?} matches {} windows.", candidates.len()),
            hint: "Use the ID of one of the candidates.".to_owned(),
            candidates,
        },
    }
}

fn not_live(roster: &Roster, window: &Window) -> ToolFailure {
    let live = match roster.live_window() {
        Some((live, _)) => format!("{:?} is", live.name),
        None => "no window is".to_owned(),
    };
    ToolFailure {
        code: "not_live",
        message: format!("Window {:?} is not live; {live}.", window.name),
        hint: format!(
            "Call activate_window with {:?}, or ask the user to run `baton take {}`. With the setting \
             routing=any, calls can name any window.",
            window.id.as_str(),
            window.id
        ),
        candidates: vec![window.to_ref()],
    }
}

fn window_off(window: &Window) -> ToolFailure {
    ToolFailure {
        code: "window_off",
        message: format!("Window {:?} is off.", window.name),
        hint: format!("Ask the user to run `baton start {}`.", window.id),
        candidates: vec![window.to_ref()],
    }
}

/// Nobody is live: what a user can do about it.
pub(crate) fn no_live_window(roster: &Roster) -> ToolFailure {
    let hint = if roster.windows.is_empty() {
        "Ask the user to open VS Code with the Baton extension, or to run `baton window DIR`."
    } else {
        "Call list_windows, then activate_window, or ask the user to run `baton take WINDOW`."
    };
    ToolFailure {
        code: "no_live_window",
        message: "No window is live.".to_owned(),
        hint: hint.to_owned(),
        candidates: roster.windows.values().take(CANDIDATES_MAX).map(|window| window.to_ref()).collect(),
    }
}

/// Most windows that a failure lists.
const CANDIDATES_MAX: usize = 10;

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use baton_proto::control::{DebugSession, Settings, WindowKind};
    use baton_proto::ids::InstanceId;

    use super::*;

    /// A roster with a live window `a`, a standby one `b` with the debug session `s1`, and `c`, which is off.
    pub(crate) fn roster() -> Roster {
        let mut windows = BTreeMap::new();
        for (id, state) in [("a", WindowState::Live), ("b", WindowState::Standby), ("c", WindowState::Off)] {
            let window = window(id, state);
            windows.insert(window.id.clone(), Arc::new(window));
        }
        Roster {
            instance: InstanceId("i".to_owned()),
            generation: 1,
            live: Some(("a".parse().unwrap(), Term { generation: 1, seq: 1 })),
            awaiting: None,
            windows,
            settings: Arc::new(Settings::default()),
            client_epoch: 0,
        }
    }

    pub(crate) fn window(id: &str, state: WindowState) -> Window {
        let session = DebugSession { id: "s1".to_owned(), name: "main".to_owned(), by_user: false };
        Window {
            id: id.parse().unwrap(),
            name: format!("project {id}"),
            kind: WindowKind::Headless,
            folders: vec![format!("/src/{id}")],
            state,
            responsive: true,
            auto_start: true,
            pid: 1,
            address: baton_election::roster::Address::Port(1024),
            incarnation: 1,
            debug_sessions: if id == "b" { vec![session] } else { Vec::new() },
            last_focus: None,
        }
    }

    fn any(mut roster: Roster) -> Roster {
        let settings = Settings { routing: Routing::Any, ..Settings::default() };
        roster.settings = Arc::new(settings);
        roster
    }

    fn check(roster: &Roster, window: Option<&str>, session: Option<&str>, pin: Pin) -> String {
        match route(roster, Wish { window, session, pin: &pin }) {
            Decision::Send(Target { window, right: Right::Term(term) }) => format!("{} in {term}", window.id),
            Decision::Send(Target { window, right: Right::Pin }) => format!("{} pinned", window.id),
            Decision::Hold(failure) => format!("hold {}", failure.code),
            Decision::Refuse(failure) => failure.code.to_owned(),
        }
    }

    #[test]
    fn the_order_is_argument_session_pin_live() {
        let roster = any(roster());
        let pin = || Pin::Window("a".to_owned());
        assert_eq!(check(&roster, None, None, Pin::Live), "a in 1.1");
        assert_eq!(check(&roster, None, None, Pin::Window("project b".to_owned())), "b pinned");
        assert_eq!(check(&roster, None, Some("s1"), pin()), "b pinned");
        assert_eq!(check(&roster, Some("a"), Some("s1"), Pin::Window("b".to_owned())), "a in 1.1");
        assert_eq!(check(&roster, None, Some("unknown"), Pin::Live), "a in 1.1");
        assert_eq!(check(&roster, Some("c"), None, Pin::Live), "window_off");
        assert_eq!(check(&roster, Some("b"), None, Pin::Window("gone".to_owned())), "b pinned");
    }

    #[test]
    fn by_default_only_the_live_and_the_pinned_window_may_be_named() {
        let roster = roster();
        assert_eq!(check(&roster, Some("b"), None, Pin::Live), "not_live");
        assert_eq!(check(&roster, None, Some("s1"), Pin::Live), "not_live");
        assert_eq!(check(&roster, Some("/src/a"), None, Pin::Live), "a in 1.1");
        assert_eq!(check(&roster, Some("b"), None, Pin::Window("b".to_owned())), "b pinned");
        assert_eq!(check(&roster, Some("nope"), None, Pin::Live), "unknown_window");
        let Decision::Refuse(failure) =
            route(&roster, Wish { window: Some("b"), session: None, pin: &Pin::Live })
        else {
            panic!()
        };
        assert!(
            failure.message.contains("project b") && failure.hint.contains("baton take b"),
            "{failure:?}"
        );
    }

    #[test]
    fn folders_pin_to_the_window_that_contains_them_or_follow_the_live_one() {
        let roster = roster();
        assert_eq!(check(&roster, None, None, Pin::Folder("/src/b/deep".to_owned())), "b pinned");
        assert_eq!(check(&roster, None, None, Pin::Folder("/elsewhere".to_owned())), "a in 1.1");
        assert_eq!(check(&roster, None, None, Pin::Folder("/src/c".to_owned())), "window_off");
    }

    #[test]
    fn ambiguity_lists_the_candidates() {
        let mut roster = any(roster());
        let mut twin = window("d", WindowState::Standby);
        twin.name = "project b".to_owned();
        twin.debug_sessions = roster.windows[&"b".parse().unwrap()].debug_sessions.clone();
        roster.windows.insert(twin.id.clone(), Arc::new(twin));
        for (window, session) in [(Some("project b"), None), (None, Some("s1"))] {
            let Decision::Refuse(failure) = route(&roster, Wish { window, session, pin: &Pin::Live }) else {
                panic!()
            };
            assert_eq!(failure.code, "ambiguous_window");
            let ids: Vec<_> = failure.candidates.iter().map(|candidate| candidate.id.as_str()).collect();
            assert_eq!(ids, ["b", "d"]);
        }
        assert_eq!(check(&roster, None, Some("s1"), Pin::Window("d".to_owned())), "d pinned");
    }

    #[test]
    fn calls_wait_while_nobody_is_live_or_the_window_is_awaited() {
        let mut roster = roster();
        roster.live = None;
        assert_eq!(check(&roster, None, None, Pin::Live), "hold no_live_window");
        assert_eq!(check(&roster, None, None, Pin::Window("gone".to_owned())), "hold unknown_window");
        roster.live = Some(("r".parse().unwrap(), Term { generation: 1, seq: 2 }));
        roster.awaiting = Some(("r".parse().unwrap(), tokio::time::Instant::now()));
        assert_eq!(check(&roster, None, None, Pin::Live), "hold no_live_window");
        assert_eq!(check(&roster, Some("r"), None, Pin::Live), "hold unknown_window");
    }

    #[test]
    fn what_the_roster_knows_nothing_of_is_told_from_what_it_refuses() {
        let roster = roster();
        let is_unheard_of =
            |window, session, pin: &Pin| is_unheard_of(&roster, Wish { window, session, pin });
        assert!(is_unheard_of(Some("z"), None, &Pin::Live) && is_unheard_of(None, Some("s9"), &Pin::Live));
        assert!(is_unheard_of(None, None, &Pin::Folder("/elsewhere".to_owned())));
        for (window, session) in
            [(Some("c"), None), (Some("project b"), Some("s9")), (None, Some("s1")), (None, None)]
        {
            assert!(!is_unheard_of(window, session, &Pin::Live), "{window:?} {session:?}");
        }
    }
}
