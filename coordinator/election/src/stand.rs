//! CORE: which window a client belongs to that stands in a folder: the one that holds the folder's own tree, or none.
//!
//! A tree ends at its `.git`, and at the folder of a window that the client was answered by. **Invariant:** a window of
//! another tree never answers, whatever it is called, however close its folder is, and also while the right one is away.

use std::sync::Arc;

use baton_proto::control::WindowRef;

use crate::resolve::{MAX_CANDIDATES, contains, trim_folder};
use crate::roster::{Roster, Window};

/// Where a client stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// Its working directory.
    pub folder: String,
    /// The root of the tree that the directory is in; `None` when it is in none.
    pub tree: Option<String>,
    /// Whether another tree is around that one.
    pub is_nested: bool,
    /// The folder by which its window was found when it was answered first.
    pub bound: Option<String>,
}

/// The window that a client belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The window.
    pub window: &'a Arc<Window>,
    /// Its folder by which it was found.
    pub folder: &'a str,
}

/// Why a client belongs to no window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nowhere {
    /// Several hold its folder, or lie in it.
    Several(Vec<WindowRef>),
    /// The one that does vanished a moment ago, and may be back.
    Away(String),
    /// None does.
    Nobody,
}

/// How a folder of a window lies to a client: what is greater goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It lies in the client's.
    Below,
    /// It holds the client's; the longer, the closer.
    Holds(usize),
    /// The client was answered by it.
    Bound,
}

/// Finds the window of a client.
pub fn resolve_stand<'a>(roster: &'a Roster, stand: &Stand) -> Result<Found<'a>, Nowhere> {
    let here = roster.windows.values().map(|window| (true, window));
    let away = roster.departed.iter().filter(|window| !roster.windows.contains_key(&window.id));
    let fitting = here.chain(away.map(|window| (false, window))).flat_map(|(is_here, window)| {
        let fit =
            move |folder: &'a String| Some((fit(window, folder, stand)?, is_here, Found { window, folder }));
        window.folders.iter().filter_map(fit)
    });
    let fitting: Vec<_> = fitting.collect();
    let Some(best) = fitting.iter().map(|(fit, is_here, _)| (*fit, *is_here)).max() else {
        return Err(Nowhere::Nobody);
    };
    let mut found: Vec<Found<'a>> = fitting
        .into_iter()
        .filter(|(fit, is_here, _)| (*fit, *is_here) == best)
        .map(|(.., found)| found)
        .collect();
    found.dedup_by(|one, other| one.window.id == other.window.id);
    let is_live = |found: &&Found<'_>| roster.live.as_ref().is_some_and(|(live, _)| *live == found.window.id);
    match (best, found.as_slice()) {
        ((_, false), [first, ..]) => Err(Nowhere::Away(first.window.name.clone())),
        (_, [only]) => Ok(*only),
        // Two windows on one folder show the same tree.
        ((Fit::Bound | Fit::Holds(_), _), several) if several.iter().any(|one| is_live(&one)) => {
            several.iter().find(is_live).copied().ok_or(Nowhere::Nobody)
        }
        (_, several) => {
            let several = several.iter().take(MAX_CANDIDATES).map(|found| found.window.to_ref());
            Err(Nowhere::Several(several.collect()))
        }
    }
}

/// Whether a client that stands there may name this window: it shows a part of its tree.
pub fn is_of_stand(window: &Window, stand: &Stand) -> bool {
    window.folders.iter().any(|folder| fit(window, folder, stand).is_some())
}

fn fit(window: &Window, folder: &str, stand: &Stand) -> Option<Fit> {
    let is_within = |root: &Option<String>| root.as_ref().is_none_or(|root| contains(root, folder));
    let is_holding = contains(folder, &stand.folder);
    // A window on the client's folder itself is never another tree's, also when one below it answered until it was closed.
    let is_its_own = is_holding && contains(&stand.folder, folder);
    // A folder that is in no tree itself has the trees in it. What the client says of them is newer than what the window
    // said.
    let has_trees = is_holding && !stand.is_nested;
    if !((is_within(&stand.tree) || has_trees) && (is_its_own || is_within(&stand.bound))) {
        return None;
    }
    if is_holding {
        let is_bound = stand.bound.as_deref().map(trim_folder) == Some(trim_folder(folder));
        return Some(if is_bound { Fit::Bound } else { Fit::Holds(trim_folder(folder).len()) });
    }
    // Below the client's folder other trees may begin.
    let own = window.trees.get(folder).map(|tree| trim_folder(tree));
    let is_of_tree = stand.tree.as_deref().is_none_or(|tree| own == Some(trim_folder(tree)));
    let is_bound = stand.bound.as_deref().map(trim_folder) == Some(trim_folder(folder));
    (contains(&stand.folder, folder) && is_of_tree).then_some(if is_bound { Fit::Bound } else { Fit::Below })
}

#[cfg(test)]
mod tests {
    use baton_proto::control::{Settings, WindowKind, WindowState};
    use baton_proto::ids::{InstanceId, Term};

    use super::*;
    use crate::roster::Address;

    /// Windows by id and folder, with the tree of each, the live one first.
    fn roster(windows: &[(&str, &str, &str)]) -> Roster {
        let window = |(id, folder, tree): &(&str, &str, &str)| Window {
            id: id.parse().unwrap(),
            name: (*id).to_owned(),
            kind: WindowKind::Headless,
            folders: vec![(*folder).to_owned()],
            trees: [((*folder).to_owned(), (*tree).to_owned())]
                .into_iter()
                .filter(|(_, tree)| !tree.is_empty())
                .collect(),
            state: WindowState::Standby,
            responsive: true,
            auto_start: true,
            pid: 1,
            address: Address::Port(2000),
            incarnation: 1,
            debug_sessions: Vec::new(),
            last_focus: None,
            why: String::new(),
            before: Default::default(),
        };
        Roster {
            instance: InstanceId("i".to_owned()),
            generation: 1,
            live: windows.first().map(|(id, ..)| (id.parse().unwrap(), Term { generation: 1, seq: 1 })),
            awaiting: None,
            windows: windows.iter().map(window).map(|window| (window.id.clone(), Arc::new(window))).collect(),
            departed: Vec::new(),
            settings: Arc::new(Settings::default()),
            client_epoch: 0,
            granted: Default::default(),
            grants: Arc::default(),
        }
    }

    fn stand(folder: &str, tree: &str, bound: &str) -> Stand {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Stand { folder: folder.to_owned(), tree: some(tree), is_nested: false, bound: some(bound) }
    }

    fn check(roster: &Roster, folder: &str, tree: &str, bound: &str) -> String {
        check_stand(roster, &stand(folder, tree, bound))
    }

    fn check_stand(roster: &Roster, stand: &Stand) -> String {
        match resolve_stand(roster, stand) {
            Ok(found) => format!("{} by {}", found.window.id, found.folder),
            Err(Nowhere::Several(several)) => {
                let ids: Vec<_> = several.iter().map(|one| one.id.as_str()).collect();
                format!("one of {}", ids.join(" "))
            }
            Err(Nowhere::Away(name)) => format!("{name} is away"),
            Err(Nowhere::Nobody) => "nobody".to_owned(),
        }
    }

    fn depart(roster: &mut Roster, id: &str) {
        roster.departed.extend(roster.windows.remove(&id.parse().unwrap()));
    }

    #[test]
    fn the_nearest_tree_decides() {
        let roster =
            roster(&[("live", "/other", ""), ("repo", "/src/repo", "/src/repo"), ("work", "/work", "")]);
        for (folder, tree, expected) in [
            ("/src/repo", "/src/repo", "repo by /src/repo"),
            ("/src/repo/deep/", "/src/repo", "repo by /src/repo"),
            // A worktree beside the window's folder.
            ("/src/wt", "/src/wt", "nobody"),
            ("/src/repository", "", "nobody"),
            // A window on a folder of repositories.
            ("/work/one/deep", "/work/one", "work by /work"),
            ("/elsewhere", "", "nobody"),
            // Above the only window that fits.
            ("/src", "", "repo by /src/repo"),
            // The window's tree begins below the client's.
            ("/src", "/src", "nobody"),
        ] {
            assert_eq!(check(&roster, folder, tree, ""), expected, "{folder} in {tree}");
        }
        // A worktree, a nested repository, a submodule inside of the window's folder, or of a repository in it.
        for (folder, tree) in [
            ("/src/repo/wt", "/src/repo/wt"),
            ("/src/repo/wt/deep", "/src/repo/wt"),
            ("/work/one/wt/deep", "/work/one/wt"),
        ] {
            let nested = Stand { is_nested: true, ..stand(folder, tree, "") };
            assert_eq!(check_stand(&roster, &nested), "nobody", "{folder} in {tree}");
        }
    }

    #[test]
    fn a_part_of_a_tree_is_found_from_above_it() {
        let one = roster(&[("app", "/src/repo/app", "/src/repo")]);
        assert_eq!(check(&one, "/src/repo", "/src/repo", ""), "app by /src/repo/app");
        assert_eq!(check(&one, "/src/repo/docs", "/src/repo", ""), "nobody");
        let two = roster(&[("app", "/src/repo/app", "/src/repo"), ("lib", "/src/repo/lib", "/src/repo")]);
        assert_eq!(check(&two, "/src/repo", "/src/repo", ""), "one of app lib");
        assert_eq!(check(&two, "/src/repo", "/src/repo", "/src/repo/lib"), "lib by /src/repo/lib");
        assert_eq!(check(&two, "/src", "", ""), "one of app lib");
    }

    #[test]
    fn the_deepest_folder_wins_and_of_twins_the_live_one() {
        let roster = roster(&[
            ("d", "/x", ""),
            ("c", "/x", ""),
            ("a", "/src", ""),
            ("b", "/src/web/", ""),
            ("e", "/y", ""),
            ("f", "/y", ""),
        ]);
        assert_eq!(check(&roster, "/src/web/app", "", ""), "b by /src/web/");
        assert_eq!(check(&roster, "/src/website", "", ""), "a by /src");
        assert_eq!(check(&roster, "/x/deep", "", ""), "d by /x");
        assert_eq!(check(&roster, "/y/deep", "", ""), "one of e f");
    }

    #[test]
    fn a_binding_outlives_its_window() {
        let mut roster = roster(&[("outer", "/src", ""), ("inner", "/src/web", "")]);
        assert_eq!(check(&roster, "/src/web/app", "", ""), "inner by /src/web");
        depart(&mut roster, "inner");
        // It reloads; bound or not, nobody else answers.
        assert_eq!(check(&roster, "/src/web/app", "", ""), "inner is away");
        assert_eq!(check(&roster, "/src/web/app", "", "/src/web"), "inner is away");
        roster.departed.clear();
        assert_eq!(check(&roster, "/src/web/app", "", "/src/web"), "nobody");
        assert_eq!(check(&roster, "/src/web/app", "", ""), "outer by /src");
        // A window that opens below a bound one changes nothing.
        let both = super::tests::roster(&[("outer", "/src", ""), ("inner", "/src/web", "")]);
        assert_eq!(check(&both, "/src/web/app", "", "/src"), "outer by /src");
        // One that opens on the client's own folder, above the bound one: while that is there or may be back, it answers.
        let mut own = super::tests::roster(&[("work", "/work", ""), ("two", "/work/two", "/work/two")]);
        assert_eq!(check(&own, "/work", "", "/work/two"), "two by /work/two");
        depart(&mut own, "two");
        assert_eq!(check(&own, "/work", "", "/work/two"), "two is away");
        own.departed.clear();
        assert_eq!(check(&own, "/work/", "", "/work/two"), "work by /work");
        assert_eq!(check(&own, "/work/sub", "", "/work/two"), "nobody");
        // The client's folder was renamed, and another tree took its name.
        assert_eq!(check(&both, "/moved", "", "/src/web"), "nobody");
    }

    #[test]
    fn a_root_folder_holds_everything() {
        assert_eq!(check(&roster(&[("a", "/", "")]), "/any/where", "", ""), "a by /");
    }
}
