//! CORE: the revisions of MCP that the edge speaks, in two eras: with sessions, and without.

/// A revision with `initialize` and sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
}

/// The revision without sessions.
pub const STATELESS: &str = "2026-07-28";

/// All revisions, newest first.
pub const SUPPORTED: [&str; 5] = [STATELESS, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// How a request's life is ruled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, a session, a GET stream; a lost connection cancels nothing.
    Sessions(Revision),
    /// Every request stands alone; closing its stream cancels it.
    Stateless,
}

impl Revision {
    /// Every revision with sessions, newest first.
    pub const ALL: [Self; 4] = [Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];
    /// What a client gets that asks for a revision we do not know.
    pub const NEWEST: Self = Self::V2025_11_25;
    /// What a client without a session speaks when it does not say: the specification's own assumption.
    pub const ASSUMED: Self = Self::V2025_03_26;

    /// The one with this name.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }
}

impl Era {
    /// The revision as it stands in `MCP-Protocol-Version`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sessions(revision) => revision.as_str(),
            Self::Stateless => STATELESS,
        }
    }
}
