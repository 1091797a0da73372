//! CORE: what became of the windows between two looks at them, as lines of the record.

use std::collections::BTreeMap;

use baton_election::roster::Roster;
use baton_proto::ids::WindowId;
use baton_proto::record::Line;

/// The windows as they were told last.
#[derive(Default)]
pub(super) struct Windows {
    told: BTreeMap<WindowId, (String, Vec<String>)>,
    live: Option<WindowId>,
}

impl Windows {
    /// What is new.
    pub(super) fn lines(&mut self, roster: &Roster, at_ms: u64) -> Vec<Line> {
        let mut lines = Vec::new();
        for (id, window) in &roster.windows {
            let now = (window.name.clone(), window.folders.clone());
            if self.told.get(id) != Some(&now) {
                let (name, folders) = now.clone();
                lines.push(Line::Window { at_ms, id: id.clone(), name, folders });
                self.told.insert(id.clone(), now);
            }
        }
        self.told.retain(|id, _| {
            let is_there = roster.windows.contains_key(id);
            if !is_there {
                lines.push(Line::Gone { at_ms, id: id.clone() });
            }
            is_there
        });
        let live = roster.live_window().map(|(window, _)| window.id.clone());
        if live != self.live {
            let granted = roster.grants.last().filter(|grant| live.as_ref() == Some(&grant.window.id));
            let (rule, why) = granted.map_or(("", ""), |grant| (grant.rule, grant.why));
            lines.push(Line::Live { at_ms, id: live.clone(), rule: rule.to_owned(), why: why.to_owned() });
            self.live = live;
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baton_election::roster::Grant;
    use tokio::time::Instant;

    use super::*;
    use crate::route::tests::roster;

    #[test]
    fn each_change_is_told_once() {
        let (mut windows, mut roster) = (Windows::default(), roster());
        let told = windows.lines(&roster, 1);
        let n_windows = told.iter().filter(|line| matches!(line, Line::Window { .. })).count();
        assert_eq!((n_windows, told.len()), (3, 4), "{told:?}");
        assert_eq!(windows.lines(&roster, 2), []);
        let b: WindowId = "b".parse().unwrap();
        let term = roster.live.as_ref().unwrap().1;
        let window = roster.windows[&b].to_ref();
        roster.live = Some((b.clone(), term));
        roster.grants = Arc::new(vec![Grant {
            at: Instant::now(),
            window,
            term,
            rule: "R4",
            why: "the user took it over",
        }]);
        roster.windows.retain(|id, _| id.as_str() != "a");
        let gone = Line::Gone { at_ms: 3, id: "a".parse().unwrap() };
        let (rule, why) = ("R4".to_owned(), "the user took it over".to_owned());
        assert_eq!(windows.lines(&roster, 3), [gone, Line::Live { at_ms: 3, id: Some(b), rule, why }]);
        roster.live = None;
        let (rule, why) = (String::new(), String::new());
        assert_eq!(windows.lines(&roster, 4), [Line::Live { at_ms: 4, id: None, rule, why }]);
    }
}
