//! CORE: which window a person, a pin or a tool argument means: id, name, folder, and for a person the beginning of an id.

use std::sync::Arc;
use std::time::Duration;

use baton_proto::control::WindowRef;

use crate::roster::{Roster, Window};

/// Windows register again within this time after the coordinator was restarted: until then, one that no text names may
/// still come.
pub const REGISTRATION: Duration = Duration::from_secs(1);
/// Most windows that an ambiguity lists; more help nobody.
pub(crate) const MAX_CANDIDATES: usize = 10;

/// Why a text names no window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// No window is called that.
    #[error("no window matches {text:?}")]
    Unknown {
        /// What was looked for, shortened.
        text: String,
    },
    /// Several are.
    #[error("{text:?} matches more than one window")]
    Ambiguous {
        /// What was looked for, shortened.
        text: String,
        /// The windows it could be, ordered by id.
        candidates: Vec<WindowRef>,
    },
}

impl Unresolved {
    /// What to try, on a command line.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "list the windows with `baton windows`",
            Self::Ambiguous { .. } => "use one of these IDs",
        }
    }
}

/// Finds the window that `text` names: its id, name or folder, whole.
pub fn resolve<'a>(roster: &'a Roster, text: &str) -> Result<&'a Arc<Window>, Unresolved> {
    named(roster, text).unwrap_or_else(|| Err(Unresolved::Unknown { text: shortened(text) }))
}

/// The same for what a person types: the beginning of an id will do when it is that of one window only.
///
/// What matches whole beats what matches in part, so that a window named `web` is reached while another's id
/// starts with those letters.
pub fn resolve_typed<'a>(roster: &'a Roster, text: &str) -> Result<&'a Arc<Window>, Unresolved> {
    let by_prefix = |window: &&Arc<Window>| !text.is_empty() && window.id.as_str().starts_with(text);
    named(roster, text)
        .or_else(|| only_one(roster.windows.values().filter(by_prefix).collect(), text))
        .unwrap_or_else(|| Err(Unresolved::Unknown { text: shortened(text) }))
}

fn named<'a>(roster: &'a Roster, text: &str) -> Option<Result<&'a Arc<Window>, Unresolved>> {
    let folder = trim_folder(text);
    let by_id = |window: &Window| window.id.as_str() == text;
    let by_name = |window: &Window| window.name == text;
    let by_folder = |window: &Window| window.folders.iter().any(|own| trim_folder(own) == folder);
    let attempts: [&dyn Fn(&Window) -> bool; 3] = [&by_id, &by_name, &by_folder];
    if text.is_empty() {
        return None;
    }
    let found = |is_meant: &&dyn Fn(&Window) -> bool| {
        only_one(roster.windows.values().filter(|window| is_meant(window)).collect(), text)
    };
    attempts.iter().find_map(found)
}

/// `None` when nothing was found, an error when several were.
fn only_one<'a>(found: Vec<&'a Arc<Window>>, text: &str) -> Option<Result<&'a Arc<Window>, Unresolved>> {
    match found.as_slice() {
        [] => None,
        [window] => Some(Ok(window)),
        several => {
            let candidates = several.iter().take(MAX_CANDIDATES).map(|window| window.to_ref()).collect();
            Some(Err(Unresolved::Ambiguous { text: shortened(text), candidates }))
        }
    }
}

/// Whether `path` is `folder` or lies in it.
pub(crate) fn contains(folder: &str, path: &str) -> bool {
    let Some(rest) = trim_folder(path).strip_prefix(trim_folder(folder)) else { return false };
    rest.is_empty() || rest.starts_with(is_separator) || trim_folder(folder).ends_with(is_separator)
}

/// Without trailing separators, so that `/a/` is `/a`; a root keeps its own.
pub(crate) fn trim_folder(folder: &str) -> &str {
    let trimmed = folder.trim_end_matches(is_separator);
    if trimmed.is_empty() { folder } else { trimmed }
}

fn is_separator(letter: char) -> bool {
    letter == '/' || (cfg!(windows) && letter == '\\')
}

/// What is fit to stand in a message.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use baton_proto::control::{Settings, WindowKind, WindowState};
    use baton_proto::ids::InstanceId;

    use super::*;

    fn roster(windows: &[(&str, &str, &[&str])]) -> Roster {
        let window = |(id, name, folders): &(&str, &str, &[&str])| Window {
            id: id.parse().unwrap(),
            name: (*name).to_owned(),
            kind: WindowKind::Headless,
            folders: folders.iter().map(|folder| (*folder).to_owned()).collect(),
            trees: Default::default(),
            state: WindowState::Standby,
            responsive: true,
            auto_start: true,
            pid: 1,
            address: crate::roster::Address::Port(2000),
            incarnation: 1,
            debug_sessions: Vec::new(),
            last_focus: None,
            why: String::new(),
            before: Default::default(),
        };
        Roster {
            instance: InstanceId("i".to_owned()),
            generation: 1,
            live: None,
            awaiting: None,
            departed: Vec::new(),
            windows: windows.iter().map(window).map(|w| (w.id.clone(), Arc::new(w))).collect(),
            settings: Arc::new(Settings::default()),
            client_epoch: 0,
            granted: Default::default(),
            grants: Arc::default(),
        }
    }

    fn found(roster: &Roster, text: &str) -> String {
        match resolve_typed(roster, text) {
            Ok(window) => window.id.to_string(),
            Err(Unresolved::Unknown { .. }) => "unknown".to_owned(),
            Err(Unresolved::Ambiguous { candidates, .. }) => {
                let ids: Vec<_> = candidates.iter().map(|candidate| candidate.id.as_str()).collect();
                format!("one of {}", ids.join(" "))
            }
        }
    }

    #[test]
    fn a_window_is_found_by_id_name_folder_and_unique_prefix() {
        let roster = roster(&[
            ("ab1", "web", &["/src/web"]),
            ("ab2", "api", &["/src/api/", "/src/lib"]),
            ("ab", "api", &["/"]),
            ("web9", "other", &["/src/web"]),
        ]);
        let cases = [
            ("ab1", "ab1"),
            ("ab", "ab"),
            ("a", "one of ab ab1 ab2"),
            ("web", "ab1"),
            ("we", "web9"),
            ("api", "one of ab ab2"),
            ("/src/api", "ab2"),
            ("/src/lib/", "ab2"),
            ("/", "ab"),
            ("/src/web", "one of ab1 web9"),
            ("", "unknown"),
            ("nope", "unknown"),
            ("/src", "unknown"),
        ];
        for (text, expected) in cases {
            assert_eq!(found(&roster, text), expected, "{text}");
        }
    }

    #[test]
    fn only_a_person_may_shorten_an_id() {
        let roster = roster(&[("app2", "shop", &["/src/shop"])]);
        assert!(resolve(&roster, "app").is_err() && resolve(&roster, "").is_err());
        assert_eq!(resolve_typed(&roster, "app").unwrap().id.as_str(), "app2");
        assert!(resolve_typed(&roster, "").is_err());
    }

    #[test]
    fn a_huge_text_is_not_repeated_whole() {
        let Err(Unresolved::Unknown { text }) = resolve(&roster(&[]), &"x".repeat(9000)) else { panic!() };
        assert_eq!(text.len(), 80);
    }
}
