//! CORE: which window a person, a pin or a tool argument means: id, name, folder or unique prefix of an id.

use std::sync::Arc;

use baton_proto::control::WindowRef;

use crate::roster::{Roster, Window};

/// Most windows that an ambiguity lists; more help nobody.
const MAX_CANDIDATES: usize = 10;

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

/// Finds the window that `text` names.
///
/// What matches whole beats what matches in part, so that a window named `web` is reached while another's id
/// starts with those letters: id, then name, then folder, then a prefix of an id.
pub fn resolve<'a>(roster: &'a Roster, text: &str) -> Result<&'a Arc<Window>, Unresolved> {
    let folder = trim_folder(text);
    let by_id = |window: &Window| window.id.as_str() == text;
    let by_name = |window: &Window| window.name == text;
    let by_folder = |window: &Window| window.folders.iter().any(|own| trim_folder(own) == folder);
    let by_prefix = |window: &Window| window.id.as_str().starts_with(text);
    let attempts: [&dyn Fn(&Window) -> bool; 4] = [&by_id, &by_name, &by_folder, &by_prefix];
    if !text.is_empty() {
        for matches in attempts {
            let found = roster.windows.values().filter(|window| matches(window)).collect();
            if let Some(answer) = only_one(found, text) {
                return answer;
            }
        }
    }
    Err(Unresolved::Unknown { text: shortened(text) })
}

/// Finds the window whose folder contains `path`; the deepest such folder wins.
///
/// `Ok(None)` when no window's folder does, which for a pin by working directory is no error.
pub fn resolve_containing<'a>(roster: &'a Roster, path: &str) -> Result<Option<&'a Arc<Window>>, Unresolved> {
    let depth_of = |window: &Window| {
        window
            .folders
            .iter()
            .filter(|folder| contains(folder, path))
            .map(|folder| trim_folder(folder).len())
            .max()
    };
    let matching: Vec<_> =
        roster.windows.values().filter_map(|window| Some((depth_of(window)?, window))).collect();
    let Some(deepest) = matching.iter().map(|(depth, _)| *depth).max() else { return Ok(None) };
    let found =
        matching.into_iter().filter(|(depth, _)| *depth == deepest).map(|(_, window)| window).collect();
    only_one(found, path).transpose()
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
fn contains(folder: &str, path: &str) -> bool {
    let Some(rest) = trim_folder(path).strip_prefix(trim_folder(folder)) else { return false };
    rest.is_empty() || rest.starts_with(is_separator) || trim_folder(folder).ends_with(is_separator)
}

/// Without trailing separators, so that `/a/` is `/a`; a root keeps its own.
fn trim_folder(folder: &str) -> &str {
    let trimmed = folder.trim_end_matches(is_separator);
    if trimmed.is_empty() { folder } else { trimmed }
}

fn is_separator(letter: char) -> bool {
    letter == '/' || (cfg!(windows) && letter == '\\')
}

/// What is fit to stand in a message.
fn shortened(text: &str) -> String {
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
            state: WindowState::Standby,
            responsive: true,
            auto_start: true,
            pid: 1,
            address: crate::roster::Address::Port(2000),
            incarnation: 1,
            debug_sessions: Vec::new(),
            last_focus: None,
        };
        Roster {
            instance: InstanceId("i".to_owned()),
            generation: 1,
            live: None,
            awaiting: None,
            windows: windows.iter().map(window).map(|w| (w.id.clone(), Arc::new(w))).collect(),
            settings: Arc::new(Settings::default()),
            client_epoch: 0,
        }
    }

    fn found(roster: &Roster, text: &str) -> String {
        match resolve(roster, text) {
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
    fn the_deepest_folder_that_contains_a_path_wins() {
        let roster = roster(&[
            ("a", "a", &["/src"]),
            ("b", "b", &["/src/web/"]),
            ("c", "c", &["/x"]),
            ("d", "d", &["/x"]),
        ]);
        let containing = |path| resolve_containing(&roster, path).map(|w| w.map(|w| w.id.to_string()));
        assert_eq!(containing("/src/web/app/"), Ok(Some("b".to_owned())));
        assert_eq!(containing("/src/web"), Ok(Some("b".to_owned())));
        assert_eq!(containing("/src/website"), Ok(Some("a".to_owned())));
        assert_eq!(containing("/srcs"), Ok(None));
        assert!(matches!(containing("/x/y"), Err(Unresolved::Ambiguous { .. })));
    }

    #[test]
    fn a_root_folder_contains_everything() {
        let roster = roster(&[("a", "a", &["/"])]);
        assert!(resolve_containing(&roster, "/any/where").unwrap().is_some());
    }

    #[test]
    fn a_huge_text_is_not_repeated_whole() {
        let Err(Unresolved::Unknown { text }) = resolve(&roster(&[]), &"x".repeat(9000)) else { panic!() };
        assert_eq!(text.len(), 80);
    }
}
