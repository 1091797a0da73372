//! CORE: what is fetched at a stop before it is told: stack, scopes and variables of the top frame, the exception.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

/// Frames told with a stop. Deeper ones are seldom looked at, and a runaway recursion has thousands.
pub(crate) const MAX_FRAMES: usize = 20;

/// What a request of a capture fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Stack,
    Exception,
    Scopes,
    Variables,
}

/// A stop whose surroundings are being fetched.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) id: u64,
    /// Requests without an answer yet.
    pub(crate) n_open: usize,
    /// When it is told with what is there.
    pub(crate) deadline: Instant,
    captured: Captured,
}

/// A stop with its surroundings, as the adapter told them. Ids are the adapter's, but for the breakpoints'.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) thread_id: i64,
    /// Body of the `stopped` event.
    pub(crate) event: Value,
    /// Body of `stackTrace`.
    pub(crate) stack: Value,
    /// Body of `exceptionInfo`.
    pub(crate) exception: Value,
    /// The scope whose variables were fetched.
    pub(crate) scope: Value,
    /// Body of `variables`.
    pub(crate) variables: Value,
    /// Ours, of the breakpoints that were hit; `None` when the adapter does not tell.
    pub(crate) hit: Option<Vec<i64>>,
}

impl Capture {
    /// A stop of which only the event is known.
    pub(crate) fn new(id: u64, thread_id: i64, event: Value, deadline: Instant) -> Self {
        Self { id, n_open: 0, deadline, captured: Captured { thread_id, event, ..Captured::default() } }
    }

    /// Takes an answer (null when the request failed); gives the request that follows from it.
    pub(crate) fn take(&mut self, step: Step, body: Value) -> Option<(&'static str, Value, Step)> {
        match step {
            Step::Stack => {
                let frame_id = body["stackFrames"][0]["id"].as_i64();
                self.captured.stack = body;
                Some(("scopes", json!({"frameId": frame_id?}), Step::Scopes))
            }
            Step::Exception => {
                self.captured.exception = body;
                None
            }
            Step::Scopes => {
                // An expensive scope can take for ever.
                let is_cheap = |scope: &&Value| scope["expensive"] != true;
                let scope = body["scopes"].as_array()?.iter().find(is_cheap)?.clone();
                let reference = scope["variablesReference"].as_i64()?;
                self.captured.scope = scope;
                (reference != 0)
                    .then(|| ("variables", json!({"variablesReference": reference}), Step::Variables))
            }
            Step::Variables => {
                self.captured.variables = body;
                None
            }
        }
    }

    /// The stop as it is to be told.
    pub(crate) fn into_captured(self, ours: &BTreeMap<i64, i64>) -> Captured {
        let mut captured = self.captured;
        captured.hit = captured.event["hitBreakpointIds"]
            .as_array()
            .map(|ids| ids.iter().filter_map(|id| ours.get(&id.as_i64()?).copied()).collect::<Vec<i64>>());
        captured
    }
}
