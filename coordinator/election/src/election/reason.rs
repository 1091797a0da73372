//! CORE: why a window is live.

/// Which rule made a window live, and in which case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// No other window was live (R1).
    Alone,
    /// The user said so (R4).
    Chosen,
    /// The window that was live has gone (R6).
    Promoted,
    /// It was gone, and has its place again (R6).
    Back,
    /// It was gone for a moment (R6).
    BackInTime,
    /// Its agent was started again (R7).
    Restarted,
    /// It was live under an earlier coordinator (R9).
    Before,
    /// The user works in it (R12).
    Focused,
}

impl Reason {
    /// As the user reads it.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Alone => "no other window was live",
            Self::Chosen => "you chose it",
            Self::Promoted => "the live window went away",
            Self::Back => "it came back",
            Self::BackInTime => "it came back in time",
            Self::Restarted => "it was restarted",
            Self::Before => "it was live before the coordinator restarted",
            Self::Focused => "it has the focus",
        }
    }

    /// The rule.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Self::Alone => "R1",
            Self::Chosen => "R4",
            Self::Promoted | Self::Back | Self::BackInTime => "R6",
            Self::Restarted => "R7",
            Self::Before => "R9",
            Self::Focused => "R12",
        }
    }
}
