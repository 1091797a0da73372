//! CORE: what of a window's breakpoints outlasts its agent.

use serde::{Deserialize, Serialize};

use super::Breakpoints;
use crate::types::SetBreakpoint;
use crate::types::triggers::SetTrigger;

/// The breakpoints of a window without what sessions made of them. Those that mean something in one session only end with
/// it, and are not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// On lines.
    pub lines: Vec<SetBreakpoint>,
    /// On functions and exceptions.
    pub triggers: Vec<SetTrigger>,
    /// Whose programs no exception is to stop.
    pub without_exceptions: Vec<Option<String>>,
}

impl Kept {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Breakpoints.
    pub fn len(&self) -> usize {
        self.lines.len() + self.triggers.len()
    }
}

impl Breakpoints {
    /// What the next agent of the window is to begin with.
    pub(crate) fn kept(&self) -> Kept {
        let lines = self.by_id.values().filter(|entry| entry.wish.path.to_str().is_some());
        let triggers = self.triggers.values().filter(|entry| entry.of_tree.is_none());
        Kept {
            lines: lines
                .map(|entry| SetBreakpoint { owner: entry.owner.clone(), ..entry.wish.clone() })
                .collect(),
            triggers: triggers.map(super::triggers::TriggerEntry::kept).collect(),
            without_exceptions: self.without_exceptions.iter().cloned().collect(),
        }
    }

    /// Begins with what the agent before has kept; each has a new id.
    pub(crate) fn restore(&mut self, kept: Kept) {
        for wish in kept.lines {
            self.set(wish);
        }
        for wish in kept.triggers.into_iter().filter(|wish| !wish.trigger.kind().is_of_session()) {
            self.set_trigger(wish, 0);
        }
        self.without_exceptions = kept.without_exceptions.into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Base;
    use crate::types::triggers::{Access, Trigger};

    #[test]
    fn all_but_what_means_one_session_is_kept_with_its_owner() {
        let owner = || Some("ann".to_owned());
        let trigger = |trigger| SetTrigger { trigger, condition: None, hit_condition: None, owner: owner() };
        let mut before = Breakpoints::default();
        let line = SetBreakpoint {
            path: "/src/a.py".into(),
            line: 3,
            condition: Some("n > 1".to_owned()),
            owner: owner(),
            ..SetBreakpoint::default()
        };
        before.set(line.clone());
        before.set(SetBreakpoint { owner: None, condition: None, ..line });
        before.set_trigger(trigger(Trigger::Function { name: "f".to_owned() }), 0);
        before.set_trigger(trigger(Trigger::Data { data_id: "x".to_owned(), access: Some(Access::Read) }), 1);
        before.set_exceptions(Some("bob".to_owned()), Some(Vec::new()));
        let all = trigger(Trigger::Exception { filter: "all".to_owned() });
        before.set_exceptions(owner(), Some(vec![all]));

        let text = serde_json::to_string(&before.kept()).unwrap();
        assert!(!text.contains("data_id"), "{text}");
        let mut after = Breakpoints::from_base(Base::of("00000001"), false);
        after.restore(serde_json::from_str(&text).unwrap());
        assert_eq!(after.kept(), before.kept());
        let owners: Vec<_> = after.list().into_iter().map(|known| (known.id, known.owner)).collect();
        assert_eq!(owners, [(2_001, owner()), (2_002, None)]);
        assert_eq!(after.kept().without_exceptions, [Some("bob".to_owned())]);
    }

    #[test]
    fn what_a_later_version_writes_is_read_as_far_as_it_is_known() {
        let text = r#"{"lines":[{"path":"/a","line":1,"mode":"hardware"}],"more":1}"#;
        let kept: Kept = serde_json::from_str(text).unwrap();
        assert_eq!(kept.lines.len(), 1);
        assert!(!kept.is_empty() && Kept::default().is_empty());
    }
}
