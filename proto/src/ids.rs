//! Newtypes for what is named across processes: windows, terms, coordinator instances.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The id of a window. It survives reloads of the window and restarts of its agent.
///
/// **Invariant:** 1 to 64 characters out of `[A-Za-z0-9_-]`, so that it can stand in a URL path and a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct WindowId(String);

/// Why a text is not a [`WindowId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a window ID must have 1 to 64 letters, digits, '-', or '_'")]
pub struct InvalidWindowId;

impl WindowId {
    /// Longest id, in characters.
    pub const MAX_LEN: usize = 64;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for WindowId {
    type Error = InvalidWindowId;

    fn try_from(text: String) -> Result<Self, InvalidWindowId> {
        let is_valid_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if text.is_empty() || text.len() > Self::MAX_LEN || !text.bytes().all(is_valid_byte) {
            return Err(InvalidWindowId);
        }
        Ok(Self(text))
    }
}

impl std::str::FromStr for WindowId {
    type Err = InvalidWindowId;

    fn from_str(text: &str) -> Result<Self, InvalidWindowId> {
        Self::try_from(text.to_owned())
    }
}

impl From<WindowId> for String {
    fn from(id: WindowId) -> Self {
        id.0
    }
}

impl fmt::Display for WindowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to be live, ordered and strictly growing; on the wire `[generation, seq]`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
#[schemars(with = "(u64, u64)")]
pub struct Term {
    /// Grows with every start of a coordinator: at least the milliseconds since 1970 at that start.
    pub generation: u64,
    /// Grows with every grant of one coordinator.
    pub seq: u64,
}

/// Highest generation and `seq` that are believed, wherever they come from: thousands of years of milliseconds, and
/// far from overflow.
pub const MAX_GENERATION: u64 = 1 << 48;

impl Term {
    /// Whether a coordinator can have granted it.
    pub fn is_believable(self) -> bool {
        self.generation <= MAX_GENERATION && self.seq <= MAX_GENERATION
    }
}

impl From<(u64, u64)> for Term {
    fn from((generation, seq): (u64, u64)) -> Self {
        Self { generation, seq }
    }
}

impl From<Term> for (u64, u64) {
    fn from(term: Term) -> Self {
        (term.generation, term.seq)
    }
}

/// `generation.seq`, the form used in headers and logs.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.generation, self.seq)
    }
}

impl std::str::FromStr for Term {
    type Err = InvalidTerm;

    fn from_str(text: &str) -> Result<Self, InvalidTerm> {
        let (generation, seq) = text.split_once('.').ok_or(InvalidTerm)?;
        Ok(Self {
            generation: generation.parse().map_err(|_| InvalidTerm)?,
            seq: seq.parse().map_err(|_| InvalidTerm)?,
        })
    }
}

/// Why a text is not a [`Term`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a term must have the form generation.seq")]
pub struct InvalidTerm;

/// One run of a coordinator: 32 hexadecimal digits, new with every start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct InstanceId(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_ordered_by_generation_then_seq() {
        let term = |generation, seq| Term { generation, seq };
        assert!(term(1, 9) < term(2, 0));
        assert!(term(2, 0) < term(2, 1));
        assert_eq!("2.1".parse(), Ok(term(2, 1)));
        assert_eq!(serde_json::to_string(&term(2, 1)).unwrap(), "[2,1]");
    }

    #[test]
    fn window_ids_are_fit_for_a_path() {
        assert!("w-1_A".parse::<WindowId>().is_ok());
        for bad in ["", "a/b", "..", "a b", "é", &"x".repeat(65)] {
            assert!(bad.parse::<WindowId>().is_err(), "{bad}");
        }
    }
}
