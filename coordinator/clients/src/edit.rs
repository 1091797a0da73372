//! CORE: what is put into a text, as one change, and how that is undone.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One place of a text was replaced; everything around it is as it was, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    /// Where, in bytes.
    pub offset: usize,
    /// What was there.
    pub removed: String,
    /// What is there now.
    pub inserted: String,
}

/// Why a client's file cannot be changed. The rest of the sentence is the file's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

impl Splice {
    /// The smallest change that makes `after` out of `before`.
    pub fn between(before: &str, after: &str) -> Self {
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
    pub fn undo(&self, after: &str) -> Option<String> {
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

/// Properties in the order in which the clients' documentation shows them.
pub(super) fn in_reading_order(entry: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let first = ["type", "url", "serverUrl", "httpUrl", "command", "args"];
    let rank = |name: &str| first.iter().position(|known| *known == name).unwrap_or(first.len());
    let mut properties: Vec<_> = entry.iter().collect();
    properties.sort_by_key(|(name, _)| rank(name));
    properties
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
