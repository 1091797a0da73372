//! CORE: one change of a text, how it is made, and how it is undone.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One place of a text was replaced; everything around it is as it was, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Splice {
    /// Where, in bytes.
    pub(crate) offset: usize,
    /// What was there.
    pub(crate) removed: String,
    /// What is there now.
    pub(crate) inserted: String,
}

/// Why a client's file cannot be changed. The rest of the sentence is the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(pub(crate) String);

impl Splice {
    /// The smallest change that makes `after` out of `before`.
    pub(crate) fn between(before: &str, after: &str) -> Self {
        let common = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
            pairs.take_while(|(left, right)| left == right).map(|(left, _)| left.len_utf8()).sum()
        };
        let prefix = common(&mut before.chars().zip(after.chars()));
        let (before_rest, after_rest) = (&before[prefix..], &after[prefix..]);
        let suffix = common(&mut before_rest.chars().rev().zip(after_rest.chars().rev()));
        Self {
            offset: prefix,
            removed: before_rest[..before_rest.len() - suffix].to_owned(),
            inserted: after_rest[..after_rest.len() - suffix].to_owned(),
        }
    }

    /// The text before the change; `None` when what was inserted is not there any more, or is there twice.
    pub(crate) fn undo(&self, after: &str) -> Option<String> {
        if self.inserted.is_empty() {
            return None;
        }
        let is_there = after.get(self.offset..).is_some_and(|rest| rest.starts_with(&self.inserted));
        let offset = if is_there { self.offset } else { find_once(after, &self.inserted)? };
        let rest = &after[offset + self.inserted.len()..];
        Some(format!("{}{}{rest}", &after[..offset], self.removed))
    }
}

/// Removes `section.name` from a value, and the section when nothing is left in it.
pub(super) fn take_entry(value: &mut Value, section: &str, name: &str) {
    let Some(root) = value.as_object_mut() else { return };
    let Some(servers) = root.get_mut(section).and_then(Value::as_object_mut) else { return };
    servers.remove(name);
    if servers.is_empty() {
        root.remove(section);
    }
}

fn find_once(text: &str, part: &str) -> Option<usize> {
    let first = text.find(part)?;
    (text.rfind(part) == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_splice_is_small_and_undone() {
        for (before, after, removed, inserted) in [
            ("ab", "aXb", "", "X"),
            ("", "X", "", "X"),
            ("aé", "aéé", "", "é"),
            ("aa", "aaa", "", "a"),
            ("axb", "ayb", "x", "y"),
            ("è", "é", "è", "é"),
        ] {
            let splice = Splice::between(before, after);
            assert_eq!((splice.removed.as_str(), splice.inserted.as_str()), (removed, inserted));
            assert_eq!(splice.undo(after).as_deref(), Some(before));
        }
    }

    #[test]
    fn an_undo_finds_what_has_moved_but_does_not_guess() {
        let splice = Splice::between("[]", "[XY]");
        assert_eq!(splice.undo("more [XY]").as_deref(), Some("more []"));
        assert_eq!(splice.undo("[XY XY]").as_deref(), Some("[ XY]"));
        assert_eq!(splice.undo("  [XY] [XY]"), None);
        assert_eq!(splice.undo("[X]"), None);
    }
}
