//! CORE: what is fetched at a stop before it is told: stack, scopes and variables of the top frame, the exception.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::debug::breakpoints::triggers::CRASH_ID;
use serde_json::{Value, json};

/// Frames told with a stop. Deeper ones are seldom looked at, and a runaway recursion has thousands.
pub(crate) const MAX_FRAMES: usize = 20;
/// Scopes whose variables are told with a stop: blocks, arguments and locals.
const MAX_SCOPES: usize = 3;

/// What a request of a capture fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Stack,
    Exception,
    /// The number of the signal, where the stop does not name it.
    Signal,
    Scopes,
    /// Of the scope at this place in [`Captured::scopes`].
    Variables(usize),
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
    /// Body of the `stopped` event; its `reason` is brought to one form.
    pub(crate) event: Value,
    /// Body of `stackTrace`.
    pub(crate) stack: Value,
    /// Body of `exceptionInfo`.
    pub(crate) exception: Value,
    /// The scopes whose variables were fetched, and the bodies of `variables`.
    pub(crate) scopes: Vec<(Value, Value)>,
    /// Ours, of the breakpoints that were hit; `None` when the adapter does not tell.
    pub(crate) hit: Option<Vec<i64>>,
}

impl Capture {
    /// A stop of which only the event is known.
    pub(crate) fn new(id: u64, thread_id: i64, event: Value, deadline: Instant) -> Self {
        Self { id, n_open: 0, deadline, captured: Captured { thread_id, event, ..Captured::default() } }
    }

    /// The thread that stopped.
    pub(crate) fn thread_id(&self) -> i64 {
        self.captured.thread_id
    }

    /// Takes an answer (null when the request failed); gives the requests that follow from it.
    pub(crate) fn take(&mut self, step: Step, body: Value) -> Vec<(&'static str, Value, Step)> {
        match step {
            Step::Stack => {
                let frame_id = body["stackFrames"][0]["id"].as_i64();
                self.captured.stack = body;
                let scopes = |frame_id| ("scopes", json!({"frameId": frame_id}), Step::Scopes);
                return frame_id.map(scopes).into_iter().collect();
            }
            Step::Exception => self.captured.exception = body,
            Step::Signal => {
                if let Some(name) = signal_name(&body) {
                    self.captured.event["description"] = json!(name);
                }
            }
            Step::Scopes => {
                let scopes = body["scopes"].as_array().map(Vec::as_slice).unwrap_or_default();
                self.captured.scopes =
                    nearest(scopes).iter().map(|scope| (scope.clone(), Value::Null)).collect();
                let variables = |(at, (scope, _)): (usize, &(Value, Value))| {
                    let reference =
                        scope["variablesReference"].as_i64().filter(|reference| *reference != 0)?;
                    Some(("variables", json!({"variablesReference": reference}), Step::Variables(at)))
                };
                return self.captured.scopes.iter().enumerate().filter_map(variables).collect();
            }
            Step::Variables(at) => {
                if let Some((_, variables)) = self.captured.scopes.get_mut(at) {
                    *variables = body;
                }
            }
        }
        Vec::new()
    }

    /// The stop as it is to be told.
    pub(crate) fn into_captured(self, ours: &BTreeMap<i64, i64>) -> Captured {
        let mut captured = self.captured;
        captured.hit = captured.event["hitBreakpointIds"].as_array().map(|ids| {
            ids.iter()
                .filter_map(|id| ours.get(&id.as_i64()?).copied())
                .filter(|id| *id != CRASH_ID)
                .collect::<Vec<i64>>()
        });
        captured
    }
}

/// The name of the signal whose number was evaluated.
pub(crate) fn signal_name(body: &Value) -> Option<&'static str> {
    Some(match body["result"].as_str()?.trim().parse().ok()? {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// The scopes whose variables belong to a function's call: up to its locals, where the adapter marks them (js-debug
/// marks closures, which lie behind, as arguments), else the first. An expensive one can take for ever.
fn nearest(scopes: &[Value]) -> Vec<Value> {
    let is_registers =
        |scope: &Value| scope["presentationHint"] == "registers" || scope["name"] == "Registers";
    let is_cheap = |scope: &&Value| scope["expensive"] != true && !is_registers(scope);
    let cheap: Vec<&Value> = scopes.iter().filter(is_cheap).take(MAX_SCOPES).collect();
    let n_own =
        cheap.iter().rposition(|scope| scope["presentationHint"] == "locals").map_or(1, |last| last + 1);
    cheap.into_iter().take(n_own).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_no_variables_of_a_function() {
        let registers =
            json!({"name": "Registers", "presentationHint": "registers", "variablesReference": 1});
        let locals = json!({"name": "Locals", "presentationHint": "locals", "variablesReference": 2});
        assert_eq!(nearest(std::slice::from_ref(&registers)), Vec::<Value>::new());
        assert_eq!(nearest(&[registers, locals.clone()]), [locals]);
    }
}
