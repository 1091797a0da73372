//! What must hold of an answer, and of the disk after it. Which tree a folder is of, git says.

use std::path::{Path, PathBuf};

use baton_tests::bridge::Shown;

use crate::forest::{Change, Forest, title};
use crate::held::Programs;
use crate::speaker::{Act, Speaker};
use crate::windows::Windows;

/// Codes of refusals that say that there is no window for the client, or not the one that it named.
const NO_WINDOW: [&str; 8] = [
    "no_window",
    "no_live_window",
    "ambiguous_window",
    "unknown_window",
    "not_live",
    "window_changed",
    "window_unreachable",
    "outcome_unknown",
];

/// An edit that was cancelled: it is made later, or never, and then in one of these folders.
pub(crate) struct Late {
    mark: u64,
    places: Vec<&'static str>,
}

impl Late {
    pub(crate) fn of(speaker: &Speaker, act: &Act, mark: u64, windows: &Windows, forest: &Forest) -> Self {
        let meant = Meant::of(speaker, act, windows, forest, &Programs::default());
        let change = |name| Change { name, is_run: false, text: String::new() };
        let places = forest.names().filter(|name| meant.may_change(&change(name), windows, forest));
        Self { mark, places: places.collect() }
    }
}

/// Takes the changes that are of cancelled calls.
fn without_late(changes: Vec<Change>, late: &[Late]) -> Result<Vec<Change>, String> {
    let mut others = Vec::new();
    for change in changes {
        match late.iter().find(|late| !change.is_run && change.text.contains(&late.mark.to_string())) {
            Some(late) if late.places.contains(&change.name) => {}
            Some(late) => {
                return Err(format!("{change:?} is of a cancelled call that meant {:?}", late.places));
            }
            None => others.push(change),
        }
    }
    Ok(others)
}

/// All that is known beside the clients.
pub(crate) struct Known<'a> {
    pub(crate) windows: &'a Windows,
    pub(crate) programs: &'a mut Programs,
    pub(crate) late: &'a [Late],
}

/// Checks an answer, and what it changed; the client has heard of its window then.
pub(crate) fn check(
    speaker: &mut Speaker,
    act: &Act,
    shown: &Shown,
    is_calm: bool,
    known: Known<'_>,
    forest: &mut Forest,
) -> Result<(), String> {
    let Known { windows, programs, late } = known;
    let all = forest.changes();
    let n_all = all.len();
    let changes = without_late(all, late)?;
    let meant = Meant::of(speaker, act, windows, forest, programs);
    programs.check(speaker, act, shown, windows, forest)?;
    for change in &changes {
        if !is_of_act(act, change) {
            return Err(format!("{change:?} came from nowhere"));
        }
        if !meant.may_change(change, windows, forest) {
            return Err(format!("{change:?} is not of what was meant: {meant:?}"));
        }
    }
    let is_answered = !shown.window.is_empty();
    match (shown.code(), act) {
        // What was cancelled may have come in between.
        ("", Act::Edit(_) | Act::EditIn(..)) if changes.len() != 1 && changes.len() == n_all => {
            return Err(format!("{} changes of an edit that was made", changes.len()));
        }
        ("" | "outcome_unknown", _) => {}
        (code, _) if !changes.is_empty() => {
            return Err(format!("refused ({code}), and done: {changes:?}"));
        }
        _ => {}
    }
    if is_answered {
        let who = windows.who(shown).unwrap_or_default();
        let Some((folder, _)) = windows.get(who) else {
            return Err(format!("window {:?} answered, which is closed", shown.window));
        };
        if !meant.may_answer(who, windows, forest) {
            return Err(format!("window {who:?} ({}) answered; meant: {meant:?}", folder.display()));
        }
        let is_one_of_two =
            |name: &&str| windows.names().iter().filter(|one| title(one) == title(name)).count() > 1;
        if is_calm && act.window().is_some() && is_one_of_two(&who) {
            return Err(format!("{who:?} answered, and another window has that name"));
        }
        if matches!(act, Act::Look | Act::LookAt(_)) && shown.code().is_empty() {
            check_look(speaker, shown, folder, forest)?;
        }
    } else if is_calm && meant.is_owed_an_answer(windows, forest) {
        // A client that hears of a handover is refused once.
        let is_told = shown.code() == "window_changed" && speaker.heard.is_some();
        if !is_told {
            return Err(format!("no window answered; meant: {meant:?}"));
        }
    }
    hear(speaker, act, shown, is_calm, windows)
}

/// Whether a change can be what the client asked for.
fn is_of_act(act: &Act, change: &Change) -> bool {
    match act {
        Act::Edit(mark) | Act::EditIn(_, mark) => !change.is_run && change.text.contains(&mark.to_string()),
        Act::Run(_) => change.is_run,
        _ => false,
    }
}

/// What a client means by a call.
#[derive(Debug)]
enum Meant {
    /// A folder that it stands in, and the tree of it.
    Stand { name: &'static str, tree: Option<PathBuf> },
    /// A window by its name; the client stands in a folder of that tree, or nowhere.
    Named(&'static str),
    /// The window that it heard of last; any when it has heard of none, or only looks.
    Heard(Option<&'static str>),
    /// The window that has a session; any when nobody has it, and then it is an error.
    Session(Option<&'static str>),
}

impl Meant {
    fn of(speaker: &Speaker, act: &Act, windows: &Windows, forest: &Forest, programs: &Programs) -> Self {
        if let Some(id) = act.session() {
            return Self::Session(programs.window_of(id, windows));
        }
        if let Some(name) = act.window() {
            return Self::Named(name);
        }
        match &speaker.stand {
            Some((name, first)) => {
                let tree = match forest.is_there(name) {
                    true => forest.top(&forest.path(name)),
                    false => first.clone(),
                };
                Self::Stand { name, tree }
            }
            None => {
                let is_open = |name: &&str| windows.get(name).is_some();
                Self::Heard(speaker.heard.filter(|_| act.acts()).filter(is_open))
            }
        }
    }

    fn may_answer(&self, window: &str, windows: &Windows, forest: &Forest) -> bool {
        let Some((folder, first)) = windows.get(window) else { return false };
        match self {
            Self::Named(name) => {
                windows.names().iter().any(|one| *one == window && title(one) == title(name))
            }
            Self::Heard(one) | Self::Session(one) => one.is_none_or(|one| one == window),
            Self::Stand { name, tree } => {
                let own = if folder.exists() { forest.top(folder) } else { first.cloned() };
                let place = forest.path(name);
                let is_same = match (&own, tree) {
                    (Some(own), Some(tree)) => own == tree,
                    // A folder of no tree has the trees in it, and none in those.
                    (None, Some(tree)) => {
                        tree.starts_with(folder)
                            && tree.parent().and_then(|above| forest.top(above)).is_none()
                    }
                    (own, None) => own.is_none() || folder.starts_with(&place),
                };
                is_same && (place.starts_with(folder) || folder.starts_with(&place))
            }
        }
    }

    /// The folder itself, where the window holds it; else that of the window.
    fn may_change(&self, change: &Change, windows: &Windows, forest: &Forest) -> bool {
        let changed = forest.path(change.name);
        windows.names().iter().filter(|window| self.may_answer(window, windows, forest)).any(|window| {
            let Some((folder, _)) = windows.get(window) else { return false };
            match self {
                Self::Stand { name, .. } if forest.path(name).starts_with(folder) => {
                    let place = forest.path(name);
                    changed == place || (change.is_run && changed == *folder)
                }
                Self::Named(_) => changed.starts_with(folder),
                Self::Stand { .. } | Self::Heard(_) | Self::Session(_) => changed == *folder,
            }
        })
    }

    /// Whether exactly one window is meant, and it is there.
    fn is_owed_an_answer(&self, windows: &Windows, forest: &Forest) -> bool {
        let Self::Stand { name, .. } = self else { return false };
        let all = windows.names();
        let fitting: Vec<_> = all.iter().filter(|window| self.may_answer(window, windows, forest)).collect();
        let holds =
            |window: &&&&str| windows.get(window).is_some_and(|(folder, _)| *folder == forest.path(name));
        forest.is_there(name) && fitting.len() == 1 && fitting.iter().any(|window| holds(&window))
    }
}

/// The configurations are those of the folder that the client stands in, and of the window's.
fn check_look(speaker: &Speaker, shown: &Shown, folder: &Path, forest: &Forest) -> Result<(), String> {
    let stand = speaker.stand.as_ref().map(|(name, _)| forest.path(name));
    for configuration in shown.content["configurations"].as_array().into_iter().flatten() {
        let name = configuration["name"].as_str().and_then(|name| name.strip_prefix("run "));
        let Some(name) = name else { return Err(format!("{configuration} is nobody's")) };
        let path = forest.path(name);
        if path != folder && Some(&path) != stand.as_ref() {
            return Err(format!("the configuration of {name} is shown by {}", folder.display()));
        }
    }
    Ok(())
}

/// What the client knows now; whatever it was not told it does not know.
fn hear(
    speaker: &mut Speaker,
    act: &Act,
    shown: &Shown,
    is_calm: bool,
    windows: &Windows,
) -> Result<(), String> {
    if act.window().is_some() || act.session().is_some() {
        return Ok(());
    }
    let now = match shown.code() {
        "window_changed" => shown.content["candidates"][0]["id"].as_str().and_then(|id| windows.of_id(id)),
        code if NO_WINDOW.contains(&code) => None,
        _ => windows.who(shown),
    };
    let Some(now) = now else { return Ok(()) };
    let has_moved = speaker.heard.is_some_and(|heard| heard != now);
    let is_alike = speaker.heard.is_some_and(|heard| title(heard) == title(now));
    let folder = windows.get(now).map(|(folder, _)| folder.display().to_string());
    // Where two are called alike, the folder tells them apart.
    let is_named = match folder.filter(|_| is_alike) {
        Some(folder) => shown.text.contains(&folder),
        None => shown.text.contains(title(now)),
    };
    if has_moved && !is_named && (speaker.remembers() || is_calm && windows.names().len() > 1) {
        return Err(format!("window {now:?} answered, before it was {:?}, and no word of it", speaker.heard));
    }
    speaker.heard = Some(now);
    Ok(())
}
