//! CORE: a step on the way of several, and what it changed.

use crate::words;
use baton_agent_debug::types::StopEvent;

/// Characters of a value told with a step on the way.
const MAX_STEP_VALUE: usize = 80;

/// A step on the way of several.
pub(crate) struct Step {
    /// Where it led.
    pub(crate) line: Option<i64>,
    /// Function and file, when they are others than before.
    pub(crate) place: Option<(String, String)>,
    /// The variables that are new or changed there, with their values.
    pub(crate) changed: Vec<(String, String)>,
}

/// The step that led to `stop`.
pub(crate) fn step(stop: &StopEvent, before: Option<&StopEvent>) -> Step {
    let place = |stop: &StopEvent| {
        let top = stop.call_stack.first()?;
        Some((top.function_name.clone(), top.file_path.clone()))
    };
    let (now, then) = (place(stop), before.and_then(place));
    let known: Vec<(&str, &str)> = before.iter().flat_map(|before| values(before)).collect();
    let changed = values(stop).filter(|value| !known.contains(value));
    let changed = changed.map(|(name, value)| (name.to_owned(), words::shorten(value, MAX_STEP_VALUE)));
    Step { line: stop.line, place: now.filter(|now| Some(now) != then.as_ref()), changed: changed.collect() }
}

fn values(stop: &StopEvent) -> impl Iterator<Item = (&str, &str)> {
    let variables = stop.top_frame_variables.iter().flat_map(|scope| &scope.variables);
    variables.map(|variable| (variable.name.as_str(), variable.value.as_str()))
}
