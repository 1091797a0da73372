//! CORE: which window each client heard of last, and what it must be told when another one answers.
//!
//! `baton stdio` keeps this for its client, also while the coordinator is restarted; of other clients the edge remembers
//! it, by their sessions, or else by their names.

use std::collections::{HashMap, VecDeque};

use baton_election::roster::{Roster, Window};
use baton_mcp::fault::ToolFailure;
use baton_proto::edge::Heard;

use super::route::{Deed, shown};

/// Clients that are remembered: more than a user has. One that was forgotten is told as a new one is.
const CLIENTS_MAX: usize = 4_096;
/// Bytes of what they are known by, all together: a folder's path can be long.
const KEYS_MAX: usize = 1024 * 1024;
/// Sessions that a notice names.
const SESSIONS_MAX: usize = 5;
/// Letters of a name in a label: a model reads it with every answer.
const LABEL_MAX: usize = 20;

/// What clients heard of.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    heard: HashMap<String, Heard>,
    /// Their keys, oldest first.
    order: VecDeque<String>,
    n_bytes: usize,
}

impl Memory {
    pub(crate) fn last(&self, client: &str) -> Option<Heard> {
        self.heard.get(client).cloned()
    }

    pub(crate) fn note(&mut self, client: &str, heard: Heard) {
        if let Some(known) = self.heard.get_mut(client) {
            *known = heard;
            return;
        }
        self.n_bytes += client.len();
        while self.order.len() >= CLIENTS_MAX || self.n_bytes > KEYS_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.n_bytes -= oldest.len();
            self.heard.remove(&oldest);
        }
        self.order.push_back(client.to_owned());
        self.heard.insert(client.to_owned(), heard);
    }
}

/// A window, as a client will remember it.
pub(crate) fn heard(window: &Window) -> Heard {
    Heard { id: window.id.clone(), incarnation: window.incarnation, name: window.name.clone() }
}

/// Why a call that would do something in `window` is not run: its client knows of another one.
pub(crate) fn refusal(last: Option<&Heard>, window: &Window, deed: Deed) -> Option<ToolFailure> {
    let last = last.filter(|last| last.id != window.id && deed != Deed::Reads)?;
    let (now, before) = (described(window), &last.name);
    Some(ToolFailure {
        code: "window_changed",
        message: format!("The call was not run: calls go to window {now} now, no longer to {before:?}."),
        hint: format!(
            "Call again to run it in {:?}. To go on in {before:?}, pass {:?} in the argument `window`.",
            window.name,
            last.id.as_str()
        ),
        candidates: vec![window.to_ref()],
    })
}

/// The sentence with which an answer of `window` begins; `is_told_first`: also for a client that knows of none yet.
pub(crate) fn notice(last: Option<&Heard>, window: &Window, is_told_first: bool) -> Option<String> {
    match last {
        Some(last) if last.id == window.id && last.incarnation == window.incarnation => None,
        Some(last) if last.id == window.id => Some(started_again(last, window)),
        Some(last) => {
            Some(format!("This is window {} now; before, it was {:?}.", described(window), last.name))
        }
        None => is_told_first.then(|| format!("This is window {}.", described(window))),
    }
}

/// What became of what the agent had that the client heard of.
fn started_again(last: &Heard, window: &Window) -> String {
    let of_client = window.before.ended.iter().filter(|(incarnation, _)| *incarnation >= last.incarnation);
    let mut ended: Vec<String> =
        of_client.map(|(_, session)| format!("{} ({})", session.id, session.name)).collect();
    if ended.len() > SESSIONS_MAX {
        let n_more = ended.len() - SESSIONS_MAX;
        ended.truncate(SESSIONS_MAX);
        ended.push(format!("{n_more} more"));
    }
    let ended = match ended.is_empty() {
        true => "its earlier debug sessions are gone".to_owned(),
        false => format!("these debug sessions are gone: {}", ended.join(", ")),
    };
    let breakpoints = match window.before.breakpoints {
        None => "its breakpoints may be gone".to_owned(),
        Some(0) => "no breakpoints were kept".to_owned(),
        Some(1) => "1 breakpoint was kept".to_owned(),
        Some(count) => format!("{count} breakpoints were kept"),
    };
    format!("Window {} was started again; {ended}; {breakpoints}.", described(window))
}

/// A word for the window where there are several; `None` where there are not.
pub(crate) fn label(roster: &Roster, window: &Window) -> Option<String> {
    if roster.windows.len() < 2 {
        return None;
    }
    let is_twin = |other: &Window| other.id != window.id && other.name == window.name;
    let has_twin = roster.windows.values().any(|other| is_twin(other));
    let name = if has_twin { window.id.as_str() } else { &window.name };
    let letters = name.chars().filter(|letter| !letter.is_control() && !"[]".contains(*letter));
    Some(letters.take(LABEL_MAX).collect())
}

/// `"api" (/src/api)`
pub(crate) fn described(window: &Window) -> String {
    match window.folders.first() {
        Some(folder) => format!("{:?} ({})", window.name, shown(folder)),
        None => format!("{:?}", window.name),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baton_election::roster::Before;
    use baton_proto::control::DebugSession;

    use super::*;
    use crate::route::tests::roster;

    #[test]
    fn a_client_hears_of_another_window_once_and_before_anything_is_done() {
        let roster = roster();
        let [a, b] = ["a", "b"].map(|id| &*roster.windows[&id.parse().unwrap()]);
        let mut memory = Memory::default();
        assert_eq!(
            notice(memory.last("x").as_ref(), a, true).unwrap(),
            "This is window \"project a\" (/src/a)."
        );
        assert_eq!(notice(None, a, false), None);
        assert_eq!(refusal(None, a, Deed::Acts), None);
        memory.note("x", heard(a));
        let last = memory.last("x");
        let last = last.as_ref();
        assert_eq!((notice(last, a, true), refusal(last, a, Deed::Acts)), (None, None));
        assert_eq!(refusal(last, b, Deed::Reads), None);
        assert_eq!(
            notice(last, b, false).unwrap(),
            "This is window \"project b\" (/src/b) now; before, it was \"project a\"."
        );
        let refused = refusal(last, b, Deed::Ends).unwrap();
        assert_eq!(refused.code, "window_changed");
        assert!(refused.message.contains("(/src/b) now, no longer to \"project a\""), "{}", refused.message);
        memory.note("x", heard(b));
        assert_eq!(refusal(memory.last("x").as_ref(), b, Deed::Acts), None);
        assert_eq!(memory.last("y"), None);
        let again = Window { incarnation: 2, ..b.clone() };
        assert_eq!(refusal(memory.last("x").as_ref(), &again, Deed::Acts), None);
        assert_eq!(
            notice(memory.last("x").as_ref(), &again, false).unwrap(),
            "Window \"project b\" (/src/b) was started again; its earlier debug sessions are gone; its breakpoints \
             may be gone."
        );
    }

    #[test]
    fn what_became_of_sessions_and_breakpoints_is_told() {
        let roster = roster();
        let first = &*roster.windows[&"b".parse().unwrap()];
        let session = |id: &str| DebugSession { id: id.to_owned(), name: "main".to_owned(), by_user: false };
        let told = |breakpoints: u32, ended: &[(u64, &str)]| {
            let ended = ended.iter().map(|(incarnation, id)| (*incarnation, session(id))).collect();
            let before = Before { breakpoints: Some(breakpoints), ended };
            let again = Window { incarnation: 9, before, ..first.clone() };
            let known = Heard { incarnation: 4, ..heard(first) };
            notice(Some(&known), &again, false).unwrap().split_once("; ").unwrap().1.to_owned()
        };
        assert_eq!(told(0, &[]), "its earlier debug sessions are gone; no breakpoints were kept.");
        // What ended before the client heard of the window is no news.
        assert_eq!(
            told(1, &[(3, "b-1"), (4, "b-2"), (5, "b-3")]),
            "these debug sessions are gone: b-2 (main), b-3 (main); 1 breakpoint was kept."
        );
        let many: Vec<(u64, &str)> =
            ["b-1", "b-2", "b-3", "b-4", "b-5", "b-6", "b-7"].map(|id| (4, id)).into();
        let told = told(20, &many);
        assert!(told.ends_with("b-5 (main), 2 more; 20 breakpoints were kept."), "{told}");
    }

    #[test]
    fn memory_is_bounded() {
        let (roster, mut memory) = (roster(), Memory::default());
        for number in 0..CLIENTS_MAX + 10 {
            memory.note(&number.to_string(), heard(&roster.windows[&"a".parse().unwrap()]));
        }
        assert_eq!((memory.heard.len(), memory.order.len()), (CLIENTS_MAX, CLIENTS_MAX));
        assert!(memory.last("9").is_none() && memory.last("10").is_some());
        for letter in 'a'..='y' {
            let key = letter.to_string().repeat(KEYS_MAX / 10);
            memory.note(&key, heard(&roster.windows[&"a".parse().unwrap()]));
            assert!(memory.last(&key).is_some() && memory.n_bytes <= KEYS_MAX);
        }
        assert_eq!(memory.heard.len(), memory.order.len());
    }

    #[test]
    fn windows_are_told_apart_by_a_word_where_there_are_several() {
        let mut roster = roster();
        let window = |roster: &Roster, id: &str| roster.windows[&id.parse().unwrap()].clone();
        assert_eq!(label(&roster, &window(&roster, "a")).unwrap(), "project a");
        let mut twin = (*window(&roster, "b")).clone();
        twin.name = "project a".to_owned();
        roster.windows.insert(twin.id.clone(), Arc::new(twin));
        assert_eq!(label(&roster, &window(&roster, "b")).unwrap(), "b");
        roster.windows.retain(|id, _| id.as_str() == "a");
        assert_eq!(label(&roster, &window(&roster, "a")), None);
    }
}
