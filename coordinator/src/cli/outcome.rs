//! What a verb comes to: done, or an explanation for people and an exit code for scripts.

use baton_link::connection::CallError;
use baton_link::explain::Explanation;
use baton_link::find::FindError;
use baton_link::home::HomeError;

/// The program's exit codes.
pub(crate) mod exit {
    /// Something was refused or failed.
    pub(crate) const FAILED: u8 = 1;
    /// No coordinator runs, and the verb starts none.
    pub(crate) const NOT_RUNNING: u8 = 3;
    /// The command line makes no sense.
    pub(crate) const USAGE: u8 = 64;
    /// A file of a client cannot be understood.
    pub(crate) const BROKEN_FILE: u8 = 65;
    /// The coordinator cannot be reached or started.
    pub(crate) const UNAVAILABLE: u8 = 69;
    /// Another coordinator runs.
    pub(crate) const ALREADY_RUNNING: u8 = 75;
    /// The state folder cannot be trusted.
    pub(crate) const UNTRUSTED: u8 = 77;
}

/// A verb failed: why, for people, and the exit code for scripts.
#[derive(Debug)]
pub(crate) struct Failed {
    /// What the process ends with.
    pub(super) code: u8,
    /// Nothing when the verb has already said everything.
    pub(super) why: Explanation,
}

/// What a verb comes to.
pub(super) type Done = Result<(), Failed>;

impl Failed {
    pub(super) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, why: Explanation::new(message.into()) }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { why: self.why.with_hint(hint), ..self }
    }

    /// `error` with what caused it, and what to try.
    pub(super) fn from_error(code: u8, error: &dyn std::error::Error, hint: Option<String>) -> Self {
        Self { code, why: Explanation { message: with_sources(error), hint } }
    }

    /// For a verb that has already said everything.
    pub(super) fn silently(code: u8) -> Self {
        Self::new(code, "")
    }
}

impl From<HomeError> for Failed {
    fn from(error: HomeError) -> Self {
        let code = match error {
            HomeError::Untrusted { .. } => exit::UNTRUSTED,
            HomeError::Unknown | HomeError::Io { .. } => exit::UNAVAILABLE,
        };
        Self::from_error(code, &error, error.hint())
    }
}

impl From<FindError> for Failed {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Home(error) => error.into(),
            FindError::NotRunning => Self::from_error(exit::NOT_RUNNING, &error, error.hint()),
            error => Self::from_error(exit::UNAVAILABLE, &error, error.hint()),
        }
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        let mut message = error.to_string();
        let code = match &error {
            CallError::Refused { failure, .. } => {
                for candidate in &failure.candidates {
                    message.push_str(&format!("\n  {}  {}", candidate.id, candidate.name));
                }
                exit::FAILED
            }
            CallError::Lost | CallError::Silent | CallError::Malformed(_) => exit::UNAVAILABLE,
        };
        Self { code, why: Explanation { message, hint: error.hint() } }
    }
}

/// An error with what caused it, in one sentence.
pub(super) fn with_sources(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message} ({text})");
        }
        source = error.source();
    }
    message
}
