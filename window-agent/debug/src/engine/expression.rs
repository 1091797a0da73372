//! CORE: an expression that an adapter evaluates, and what happens to it when it takes too long. No IO, no clock.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::adapter::SecondTry;
use crate::error::DebugError;

/// How long an adapter may take to tell that it interrupted an expression.
const GRACE: Duration = Duration::from_secs(2);
/// Characters of an expression that a sentence about it tells.
const MAX_TOLD: usize = 80;

/// An expression that an adapter evaluates.
pub(super) struct Expression {
    text: String,
    limit: Duration,
    due: Due,
    /// What to ask when it is refused.
    pub(super) otherwise: Option<Otherwise>,
    /// Why it was refused in its own language, when it is asked in another one.
    pub(super) refusal: Option<String>,
}

/// The second way to ask for an expression.
pub(super) struct Otherwise {
    pub(super) second_try: SecondTry,
    pub(super) arguments: Value,
    /// The first way was the program's own language.
    pub(super) is_foreign: bool,
}

/// What happens to an expression next.
enum Due {
    /// It is interrupted.
    Interrupted(Instant),
    /// It was; then its caller is told, whatever the adapter does.
    Told(Instant),
    /// Nothing: nobody waits for it.
    Never,
}

impl Expression {
    pub(super) fn new(now: Instant, text: String, limit: Duration, otherwise: Option<Otherwise>) -> Self {
        Self { text, limit, due: Due::Interrupted(now + limit), otherwise, refusal: None }
    }

    /// When something is to be done about it: now, when its caller has gone.
    pub(super) fn due(&self, now: Instant, caller_has_gone: bool) -> Option<Instant> {
        match self.due {
            Due::Interrupted(_) if caller_has_gone => Some(now),
            Due::Interrupted(at) | Due::Told(at) => Some(at),
            Due::Never => None,
        }
    }

    pub(super) fn is_to_be_interrupted(&self) -> bool {
        matches!(self.due, Due::Interrupted(_))
    }

    /// It ends soon.
    pub(super) fn was_interrupted(&mut self, now: Instant) {
        self.due = Due::Told(now + GRACE);
    }

    /// It goes on, and its caller hears this instead of a value.
    pub(super) fn give_up(&mut self) -> DebugError {
        self.due = Due::Never;
        DebugError::NoAnswer { command: "evaluate".to_owned(), seconds: self.limit.as_secs() }
    }

    /// What an adapter's refusal of it means.
    pub(super) fn failure(&self, message: String) -> DebugError {
        match self.due {
            Due::Interrupted(_) => DebugError::EvaluationFailed { message },
            Due::Told(_) | Due::Never => DebugError::Interrupted { seconds: self.limit.as_secs() },
        }
    }

    /// What else is asked hears this while it is evaluated.
    pub(super) fn excuse(&self) -> DebugError {
        let expression = match self.text.char_indices().nth(MAX_TOLD) {
            Some((end, _)) => format!("{}...", &self.text[..end]),
            None => self.text.clone(),
        };
        DebugError::Evaluating { expression }
    }
}
