//! CORE: which window a tool call belongs to.
//!
//! The order: the argument `window`, then the handle of a debug session, then the endpoint's pin, then the live
//! window. With the setting `routing` at `live` the first two may only confirm what the last two say, but for what ends
//! a debug session or looks at it.
//!
//! **Invariant:** a client that stands in a folder is answered by a window of that folder's tree, or by a failure.

use std::sync::Arc;

use baton_election::resolve::{Unresolved, resolve};
use baton_election::roster::{Roster, Window};
use baton_election::stand::{Found, Nowhere, Stand, is_of_stand, resolve_stand};
use baton_mcp::fault::ToolFailure;
use baton_proto::control::{Routing, WindowRef, WindowState};
use baton_proto::ids::{Term, WindowId};

/// What an endpoint is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pin {
    /// Whichever window is live.
    #[default]
    Live,
    /// The window of this name.
    Window(Named),
    /// The window that holds the folder's own tree.
    Folder(Stand),
}

/// A window that an endpoint names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// Its id, name or folder.
    pub(crate) text: String,
    /// The folder that it had when it answered first: a name may be another window's by now.
    pub(crate) bound: Option<String>,
    /// The same as a folder, which may lie inside of the window's.
    pub(crate) stand: Option<Stand>,
}

/// What a call does, as far as routing needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It looks.
    Reads,
    /// It ends a debug session.
    Ends,
    /// It changes or runs something.
    Acts,
}

/// What a call says about its window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) window: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) pin: &'a Pin,
    pub(crate) deed: Deed,
}

impl Wish<'_> {
    /// Whether the call itself says which window it means.
    pub(crate) fn is_explicit(&self) -> bool {
        self.window.is_some() || self.session.is_some()
    }
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
    /// Its folder by which the client's pin found it.
    pub(crate) folder: Option<String>,
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
        Err(decision) if named.is_none() => return *decision,
        Err(_) => None,
    };
    let Some(window) = named.or(pinned.map(|found| found.window)) else { return to_live(roster) };
    let folder = pinned.filter(|found| found.window.id == window.id).map(|found| found.folder.to_owned());
    let is_pinned = folder.is_some() || matches!(wish.pin, Pin::Folder(stand) if is_of_stand(window, stand));
    if let Some((live, term)) = roster.live_window()
        && live.id == window.id
    {
        return Decision::Send(Target { window: live.clone(), right: Right::Term(term), folder });
    }
    // What runs in a window that is no longer live must not be out of reach of who started it.
    let is_farewell = wish.window.is_none() && wish.session.is_some() && wish.deed != Deed::Acts;
    if !is_pinned && !is_farewell && roster.settings.routing == Routing::Live {
        return Decision::Refuse(not_live(roster, window));
    }
    if window.state == WindowState::Off && !is_farewell {
        return Decision::Refuse(window_off(window));
    }
    Decision::Send(Target { window: window.clone(), right: Right::Pin, folder })
}

fn to_live(roster: &Roster) -> Decision {
    match roster.live_window() {
        Some((window, term)) => {
            Decision::Send(Target { window: window.clone(), right: Right::Term(term), folder: None })
        }
        None => Decision::Hold(no_live_window(roster)),
    }
}

/// The window an endpoint is bound to; `None` when it follows the live one.
fn pinned<'a>(roster: &'a Roster, pin: &Pin) -> Result<Option<Found<'a>>, Box<Decision>> {
    match pin {
        Pin::Live => Ok(None),
        Pin::Window(named) => by_name(roster, named).map(Some),
        Pin::Folder(stand) => by_folder(roster, stand).map(Some),
    }
}

fn by_name<'a>(roster: &'a Roster, named: &Named) -> Result<Found<'a>, Box<Decision>> {
    let window = match (resolve(roster, &named.text), &named.stand) {
        (Ok(window), _) => window,
        (Err(Unresolved::Unknown { .. }), Some(stand)) => return by_folder(roster, stand),
        // The window of a pin may be reloading, so the call waits for it.
        (Err(unresolved @ Unresolved::Unknown { .. }), None) => {
            return Err(Box::new(Decision::Hold(unknown(roster, unresolved))));
        }
        (Err(unresolved), _) => return Err(Box::new(Decision::Refuse(unknown(roster, unresolved)))),
    };
    match &named.bound {
        Some(bound) if named.text != window.id.as_str() && !window.folders.contains(bound) => {
            Err(Box::new(Decision::Refuse(taken_over(roster, window, bound))))
        }
        _ => Ok(Found { window, folder: window.folders.first().map_or("", String::as_str) }),
    }
}

fn by_folder<'a>(roster: &'a Roster, stand: &Stand) -> Result<Found<'a>, Box<Decision>> {
    resolve_stand(roster, stand).map_err(|nowhere| {
        Box::new(match nowhere {
            Nowhere::Away(_) => Decision::Hold(no_window(roster, stand)),
            Nowhere::Nobody => Decision::Refuse(no_window(roster, stand)),
            Nowhere::Several(candidates) => Decision::Refuse(ToolFailure {
                code: "ambiguous_window",
                message: format!("{} windows are open on {}.", candidates.len(), shown(&stand.folder)),
                hint: "Pass the ID of one of the candidates in the argument `window`.".to_owned(),
                candidates,
            }),
        })
    })
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
        Ok(Some(found)) => Some(&found.window.id),
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
        (None, None, Pin::Folder(stand)) => {
            resolve_stand(roster, stand).is_err_and(|why| why == Nowhere::Nobody)
        }
    }
}

/// True when `text` is the id of the window whose place is held.
fn is_awaited(roster: &Roster, text: &str) -> bool {
    roster.awaiting.as_ref().is_some_and(|(id, _)| id.as_str() == text)
}

/// What a client hears when a text names no window, or several.
pub(crate) fn unknown(roster: &Roster, unresolved: Unresolved) -> ToolFailure {
    match unresolved {
        Unresolved::Unknown { text } => ToolFailure {
            code: "unknown_window",
            message: format!("No window matches {text:?}."),
            hint: "Call list_windows, or omit the argument to use the live window.".to_owned(),
            candidates: candidates(roster),
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

/// No window shows the tree that a client stands in.
fn no_window(roster: &Roster, stand: &Stand) -> ToolFailure {
    let folder = shown(&stand.folder);
    let message = match (&stand.bound, &stand.tree) {
        (Some(bound), _) => format!("The window of {} was closed.", shown(bound)),
        (None, Some(tree)) if *tree != stand.folder => {
            format!("No window is open on {folder}, which is in the git tree {}.", shown(tree))
        }
        (None, Some(_)) => format!("No window is open on {folder}, which is a separate git tree."),
        (None, None) => format!("No window is open on {folder}."),
    };
    let open = stand.bound.as_ref().or(stand.tree.as_ref()).unwrap_or(&stand.folder);
    ToolFailure {
        code: "no_window",
        message: message + &open_windows(roster),
        hint: format!(
            "Ask the user to open {} in VS Code or to run `baton window DIR` on it. To work in an open window instead, \
             pass it in the argument `window`.",
            shown(open)
        ),
        candidates: candidates(roster),
    }
}

/// A window's name is that of another folder's window by now.
fn taken_over(roster: &Roster, window: &Window, bound: &str) -> ToolFailure {
    let now = window.folders.first().map_or("no folder", String::as_str);
    ToolFailure {
        code: "no_window",
        message: format!(
            "The window {:?} of {} was closed; {:?} is a window of {} now.",
            window.name,
            shown(bound),
            window.name,
            shown(now)
        ),
        hint: format!("Pass {:?} in the argument `window` if it is the one you mean.", window.id.as_str()),
        candidates: candidates(roster),
    }
}

/// ` Open: api (/src/api), web (/src/web).`
fn open_windows(roster: &Roster) -> String {
    const N_TOLD: usize = 5;
    let told = roster.windows.values().take(N_TOLD).map(|window| {
        let folder = window.folders.first().map_or("no folder", String::as_str);
        format!("{} ({})", window.name, shown(folder))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { " No other is open.".to_owned() } else { format!(" Open: {}.", told.join(", ")) }
}

/// A folder as a message shows it.
pub(crate) fn shown(folder: &str) -> String {
    const MAX_SHOWN: usize = 200;
    folder.chars().filter(|letter| !letter.is_control()).take(MAX_SHOWN).collect()
}

fn candidates(roster: &Roster) -> Vec<WindowRef> {
    roster.windows.values().take(CANDIDATES_MAX).map(|window| window.to_ref()).collect()
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
        candidates: candidates(roster),
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
            departed: Vec::new(),
            windows,
            settings: Arc::new(Settings::default()),
            client_epoch: 0,
            granted: BTreeMap::new(),
            grants: Arc::default(),
        }
    }

    pub(crate) fn window(id: &str, state: WindowState) -> Window {
        let session = DebugSession { id: "s1".to_owned(), name: "main".to_owned(), by_user: false };
        Window {
            id: id.parse().unwrap(),
            name: format!("project {id}"),
            kind: WindowKind::Headless,
            folders: vec![format!("/src/{id}")],
            trees: BTreeMap::new(),
            state,
            responsive: true,
            auto_start: true,
            pid: 1,
            address: baton_election::roster::Address::Port(1024),
            incarnation: 1,
            debug_sessions: if id == "b" { vec![session] } else { Vec::new() },
            last_focus: None,
            why: String::new(),
            before: Default::default(),
        }
    }

    fn named(text: &str) -> Pin {
        Pin::Window(Named { text: text.to_owned(), ..Named::default() })
    }

    fn folder(path: &str) -> Pin {
        Pin::Folder(Stand { folder: path.to_owned(), ..Stand::default() })
    }

    fn any(mut roster: Roster) -> Roster {
        let settings = Settings { routing: Routing::Any, ..Settings::default() };
        roster.settings = Arc::new(settings);
        roster
    }

    fn check(roster: &Roster, window: Option<&str>, session: Option<&str>, pin: Pin) -> String {
        match route(roster, Wish { window, session, pin: &pin, deed: Deed::Acts }) {
            Decision::Send(Target { window, right: Right::Term(term), .. }) => {
                format!("{} in {term}", window.id)
            }
            Decision::Send(Target { window, right: Right::Pin, .. }) => format!("{} pinned", window.id),
            Decision::Hold(failure) => format!("hold {}", failure.code),
            Decision::Refuse(failure) => failure.code.to_owned(),
        }
    }

    #[test]
    fn the_order_is_argument_session_pin_live() {
        let roster = any(roster());
        let pin = || named("a");
        assert_eq!(check(&roster, None, None, Pin::Live), "a in 1.1");
        assert_eq!(check(&roster, None, None, named("project b")), "b pinned");
        assert_eq!(check(&roster, None, Some("s1"), pin()), "b pinned");
        assert_eq!(check(&roster, Some("a"), Some("s1"), named("b")), "a in 1.1");
        assert_eq!(check(&roster, None, Some("unknown"), Pin::Live), "a in 1.1");
        assert_eq!(check(&roster, Some("c"), None, Pin::Live), "window_off");
        assert_eq!(check(&roster, Some("b"), None, named("gone")), "b pinned");
    }

    #[test]
    fn by_default_only_the_live_and_the_pinned_window_may_be_named() {
        let roster = roster();
        assert_eq!(check(&roster, Some("b"), None, Pin::Live), "not_live");
        assert_eq!(check(&roster, None, Some("s1"), Pin::Live), "not_live");
        assert_eq!(check(&roster, Some("/src/a"), None, Pin::Live), "a in 1.1");
        assert_eq!(check(&roster, Some("b"), None, named("b")), "b pinned");
        assert_eq!(check(&roster, Some("nope"), None, Pin::Live), "unknown_window");
        let Decision::Refuse(failure) =
            route(&roster, Wish { window: Some("b"), session: None, pin: &Pin::Live, deed: Deed::Reads })
        else {
            panic!()
        };
        assert!(
            failure.message.contains("project b") && failure.hint.contains("baton take b"),
            "{failure:?}"
        );
    }

    #[test]
    fn a_client_in_a_folder_is_answered_by_its_window_or_by_an_error() {
        let mut roster = roster();
        assert_eq!(check(&roster, None, None, folder("/src/b/deep")), "b pinned");
        assert_eq!(check(&roster, None, None, folder("/elsewhere")), "no_window");
        assert_eq!(check(&roster, None, None, folder("/src/c")), "window_off");
        assert_eq!(check(&roster, None, None, folder("/src")), "ambiguous_window");
        // What is ambiguous can be named, whatever the setting.
        assert_eq!(check(&roster, Some("b"), None, folder("/src")), "b pinned");
        assert_eq!(check(&roster, Some("b"), None, folder("/elsewhere")), "not_live");
        assert_eq!(check(&roster, Some("a"), None, folder("/elsewhere")), "a in 1.1");
        let gone = roster.windows.remove(&"b".parse().unwrap()).unwrap();
        assert_eq!(check(&roster, None, None, folder("/src/b/deep")), "no_window");
        roster.departed.push(gone);
        assert_eq!(check(&roster, None, None, folder("/src/b/deep")), "hold no_window");
    }

    #[test]
    fn what_is_open_and_what_to_do_is_told() {
        let stand = Stand { folder: "/wt/deep".to_owned(), tree: Some("/wt".to_owned()), ..Stand::default() };
        let pin = Pin::Folder(stand.clone());
        let wish = Wish { window: None, session: None, pin: &pin, deed: Deed::Reads };
        let Decision::Refuse(failure) = route(&roster(), wish) else { panic!() };
        assert_eq!(
            failure.message,
            "No window is open on /wt/deep, which is in the git tree /wt. Open: project a (/src/a), project b \
             (/src/b), project c (/src/c)."
        );
        assert!(failure.hint.starts_with("Ask the user to open /wt in VS Code or"), "{}", failure.hint);
        let closed = no_window(&roster(), &Stand { bound: Some("/wt".to_owned()), ..stand });
        assert!(closed.message.starts_with("The window of /wt was closed. Open:"), "{}", closed.message);
    }

    #[test]
    fn a_pin_is_a_whole_name_and_stays_with_its_folder() {
        let roster = roster();
        assert_eq!(check(&roster, None, None, named("project")), "hold unknown_window");
        let pin = |text: &str, bound: &str| {
            Pin::Window(Named { text: text.to_owned(), bound: Some(bound.to_owned()), stand: None })
        };
        assert_eq!(check(&roster, None, None, pin("project b", "/src/b")), "b pinned");
        assert_eq!(check(&roster, None, None, pin("project b", "/old/b")), "no_window");
        // Its folders may change, its id does not.
        assert_eq!(check(&roster, None, None, pin("b", "/old/b")), "b pinned");
        let stand = Stand { folder: "/src/b/sub".to_owned(), ..Stand::default() };
        let sub = Pin::Window(Named { text: "sub".to_owned(), bound: None, stand: Some(stand) });
        assert_eq!(check(&roster, None, None, sub), "b pinned");
    }

    #[test]
    fn a_session_of_a_window_that_is_no_longer_live_can_be_ended_and_looked_at() {
        let roster = roster();
        let told =
            |deed| match route(&roster, Wish { window: None, session: Some("s1"), pin: &Pin::Live, deed }) {
                Decision::Send(target) => target.window.id.to_string(),
                Decision::Hold(failure) | Decision::Refuse(failure) => failure.code.to_owned(),
            };
        assert_eq!(
            (told(Deed::Reads), told(Deed::Ends), told(Deed::Acts)),
            ("b".into(), "b".into(), "not_live".into())
        );
    }

    #[test]
    fn ambiguity_lists_the_candidates() {
        let mut roster = any(roster());
        let mut twin = window("d", WindowState::Standby);
        twin.name = "project b".to_owned();
        twin.debug_sessions = roster.windows[&"b".parse().unwrap()].debug_sessions.clone();
        roster.windows.insert(twin.id.clone(), Arc::new(twin));
        for (window, session) in [(Some("project b"), None), (None, Some("s1"))] {
            let Decision::Refuse(failure) =
                route(&roster, Wish { window, session, pin: &Pin::Live, deed: Deed::Acts })
            else {
                panic!()
            };
            assert_eq!(failure.code, "ambiguous_window");
            let ids: Vec<_> = failure.candidates.iter().map(|candidate| candidate.id.as_str()).collect();
            assert_eq!(ids, ["b", "d"]);
        }
        assert_eq!(check(&roster, None, Some("s1"), named("d")), "d pinned");
    }

    #[test]
    fn calls_wait_while_nobody_is_live_or_the_window_is_awaited() {
        let mut roster = roster();
        roster.live = None;
        assert_eq!(check(&roster, None, None, Pin::Live), "hold no_live_window");
        assert_eq!(check(&roster, None, None, named("gone")), "hold unknown_window");
        roster.live = Some(("r".parse().unwrap(), Term { generation: 1, seq: 2 }));
        roster.awaiting = Some(("r".parse().unwrap(), tokio::time::Instant::now()));
        assert_eq!(check(&roster, None, None, Pin::Live), "hold no_live_window");
        assert_eq!(check(&roster, Some("r"), None, Pin::Live), "hold unknown_window");
    }

    #[test]
    fn what_the_roster_knows_nothing_of_is_told_from_what_it_refuses() {
        let roster = roster();
        let is_unheard_of = |window, session, pin: &Pin| {
            is_unheard_of(&roster, Wish { window, session, pin, deed: Deed::Acts })
        };
        assert!(is_unheard_of(Some("z"), None, &Pin::Live) && is_unheard_of(None, Some("s9"), &Pin::Live));
        assert!(is_unheard_of(None, None, &folder("/elsewhere")));
        for (window, session) in
            [(Some("c"), None), (Some("project b"), Some("s9")), (None, Some("s1")), (None, None)]
        {
            assert!(!is_unheard_of(window, session, &Pin::Live), "{window:?} {session:?}");
        }
    }
}
