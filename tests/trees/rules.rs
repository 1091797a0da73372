//! What must hold of an answer, and of the disk after it. Which tree a folder is of, git says.

use std::path::{Path, PathBuf};

use baton_tests::bridge::Shown;

use crate::forest::{Change, Forest};
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

/// Checks an answer, and what it changed; the client has heard of its window then.
pub(crate) fn check(
    speaker: &mut Speaker,
    act: &Act,
    shown: &Shown,
    is_calm: bool,
    windows: &Windows,
    forest: &mut Forest,
) -> Result<(), String> {
    let changes = forest.changes();
    let meant = Meant::of(speaker, act, windows, forest);
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
        ("", Act::Edit(_) | Act::EditIn(..)) if changes.len() != 1 => {
            return Err(format!("{} changes of an edit that was made", changes.len()));
        }
        ("" | "outcome_unknown", _) => {}
        (code, _) if !changes.is_empty() => {
            return Err(format!("refused ({code}), and done: {changes:?}"));
        }
        _ => {}
    }
    if is_answered {
        let Some((folder, _)) = windows.get(&shown.window) else {
            return Err(format!("window {:?} answered, which is closed", shown.window));
        };
        if !meant.may_answer(&shown.window, windows, forest) {
            return Err(format!(
                "window {:?} ({}) answered; meant: {meant:?}",
                shown.window,
                folder.display()
            ));
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
        Act::Look | Act::LookAt(_) | Act::Read => false,
        Act::Edit(mark) | Act::EditIn(_, mark) => !change.is_run && change.text.contains(&mark.to_string()),
        Act::Run(_) => change.is_run,
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
    Heard(Option<String>),
}

impl Meant {
    fn of(speaker: &Speaker, act: &Act, windows: &Windows, forest: &Forest) -> Self {
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
                let is_open = |name: &&String| windows.get(name).is_some();
                Self::Heard(speaker.heard.as_ref().filter(|_| act.acts()).filter(is_open).cloned())
            }
        }
    }

    fn may_answer(&self, window: &str, windows: &Windows, forest: &Forest) -> bool {
        let Some((folder, first)) = windows.get(window) else { return false };
        match self {
            Self::Named(name) => window == *name,
            Self::Heard(heard) => heard.as_ref().is_none_or(|heard| heard == window),
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
                Self::Stand { .. } | Self::Heard(_) => changed == *folder,
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
    if act.window().is_some() {
        return Ok(());
    }
    let now = match shown.code() {
        "window_changed" => shown.content["candidates"][0]["name"].as_str().map(str::to_owned),
        code if NO_WINDOW.contains(&code) => None,
        _ => Some(shown.window.clone()).filter(|window| !window.is_empty()),
    };
    let Some(now) = now else { return Ok(()) };
    let has_moved = speaker.heard.as_ref().is_some_and(|heard| *heard != now);
    let is_named = shown.text.contains(&now);
    if has_moved && !is_named && (speaker.remembers() || is_calm && windows.names().len() > 1) {
        return Err(format!("window {now:?} answered, before it was {:?}, and no word of it", speaker.heard));
    }
    speaker.heard = Some(now);
    Ok(())
}
