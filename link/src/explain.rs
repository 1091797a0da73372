//! What went wrong and what to try, kept apart for whoever prints it.

use std::fmt;

/// An error for people: what went wrong, and the remedy when there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What went wrong: one sentence without a period.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

impl Explanation {
    /// One without a remedy.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Both on one line, for a log or a notification.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "{}; {hint}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
