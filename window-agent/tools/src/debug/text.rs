//! CORE: what the engine answers, as the text that people and models read.

use std::path::Path;

use serde_json::Value;

use super::wire::{Instruction, Module, Source};
use crate::steps::Step;
use crate::words::{self, shorten};
use baton_agent_base::view::View;
use baton_agent_base::wire::read;
use baton_agent_debug::types::control::{Activity, Doing, Status, Thread};
use baton_agent_debug::types::triggers::{Trigger, TriggerBreakpoint};
use baton_agent_debug::types::{Breakpoint, Frame, Phase, Scope, StopEvent, Variable};

/// Characters of a value in a line of variables.
const MAX_INLINE: usize = 80;
/// Frames in a row that are not the program's own and are told all the same.
const MAX_FOREIGN: usize = 2;
/// Variables that a stop tells; `variables` tells the rest.
const MAX_STOP_VARIABLES: usize = 20;
/// Reasons that say all of a stop that was asked for.
const PLAIN_REASONS: [&str; 4] = ["breakpoint", "step", "pause", "entry"];
/// Characters of a value in a list of variables.
const MAX_LISTED: usize = 1_024;

/// Sessions that have ended and are listed, the latest ones.
const MAX_ENDED: usize = 5;

/// What the sentences need to know besides.
#[derive(Clone, Debug)]
pub(super) struct Speaker {
    /// How files are called for the client.
    pub(super) view: View,
}

impl Speaker {
    fn path(&self, path: &str) -> String {
        self.view.relative(Path::new(path))
    }

    /// `price main.py:3`.
    fn position(&self, function: Option<&str>, path: Option<&str>, line: Option<i64>) -> String {
        let place = match (path.filter(|path| !path.is_empty()), line) {
            (Some(path), Some(line)) => format!("{}:{line}", self.path(path)),
            (Some(path), None) => self.path(path),
            (None, _) => "no source".to_owned(),
        };
        match function.filter(|function| !function.is_empty()) {
            Some(function) => format!("{place} in {function}"),
            None => place,
        }
    }

    /// Why and where a program stopped, and its variables there.
    pub(super) fn stop(&self, stop: &StopEvent) -> String {
        let top = stop.call_stack.first();
        let function = top.map(|top| top.function_name.as_str());
        let path = stop.source.as_ref().map(|source| source.path.as_str());
        let position = self.position(function, path, stop.line);
        let mut text = format!("Stopped at {position} ({}), thread {}.", reason(stop), stop.thread_id);
        // What else it says of a stop that was asked for is its reason in other words.
        let why = stop.text.as_ref().or(stop.description.as_ref());
        let is_more = |why: &&String| **why != stop.reason && !PLAIN_REASONS.contains(&&*stop.reason);
        if let Some(why) = why.filter(is_more) {
            text.push_str(&format!("\n{}", shorten(why, MAX_LISTED)));
        }
        let is_own = |frame: &&Frame| self.view.is_own(Path::new(&frame.file_path));
        let own = stop.call_stack.iter().find(is_own).filter(|own| top != Some(*own));
        if let Some(own) = own {
            // It stopped in a library or in the language's own code.
            text.push_str(&format!("\nCalled from frame {}", self.frame(own)));
        }
        let meant = stop.own.as_ref().map(|own| &own.variables);
        if let Some(top) = top.filter(|_| meant.is_none()) {
            text.push_str(&format!("\nFrame {}", top.frame_id));
        }
        if let Some(scope) = meant.unwrap_or(&stop.top_frame_variables) {
            let shown: Vec<String> = scope.variables.iter().take(MAX_STOP_VARIABLES).map(inline).collect();
            let n_more = scope.omitted + scope.variables.len().saturating_sub(MAX_STOP_VARIABLES);
            let more = if n_more > 0 { format!(", and {n_more} more") } else { String::new() };
            let shown = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
            text.push_str(&format!(", {}: {shown}{more}", scope.scope_name));
        }
        text
    }

    /// A step on the way of several, and what it changed, in a line.
    pub(super) fn step(&self, step: &Step) -> String {
        let line = step.line.map_or("?".to_owned(), |line| line.to_string());
        let place = match &step.place {
            Some((function, file)) => self.position(Some(function), Some(file), step.line),
            None => format!("line {line}"),
        };
        let changed: Vec<String> =
            step.changed.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if changed.is_empty() { place } else { format!("{place}: {}", changed.join(", ")) }
    }

    /// A session in a line.
    pub(super) fn session(&self, status: &Status) -> String {
        let mut text = format!("Session {} ({})", status.id, status.adapter);
        let program =
            status.program.as_ref().map_or_else(|| status.name.clone(), |program| self.path(program));
        text.push_str(&format!(", {program}"));
        if let Some(parent) = &status.parent {
            text.push_str(&format!(", child of {parent}"));
        }
        text.push_str(&format!(": {}", super::details::phase(status.phase)));
        if let Some(stop) = status.last_stop.as_deref().filter(|_| status.phase == Phase::Stopped) {
            let path = stop.source.as_ref().map(|source| source.path.as_str());
            let function = stop.call_stack.first().map(|top| top.function_name.as_str());
            text.push_str(&format!(" at {} ({})", self.position(function, path, stop.line), reason(stop)));
        }
        // Why it ended says more than a code that the end made.
        match (status.end.as_deref().filter(|end| *end != Status::PLAIN_END), status.exit_code) {
            (Some(end), _) => text.push_str(&format!(", {}", shorten(end, MAX_LISTED))),
            (None, Some(code)) => text.push_str(&format!(", exit code {code}")),
            (None, None) => {}
        }
        text
    }

    /// A breakpoint on a line.
    pub(super) fn breakpoint(&self, breakpoint: &Breakpoint) -> String {
        let place = format!("{}:{}", self.path(&breakpoint.path.to_string_lossy()), breakpoint.line);
        let mut text = format!("#{} {place}", breakpoint.id);
        if let Some(line) = breakpoint.actual_line.filter(|line| *line != breakpoint.line) {
            text.push_str(&format!(" (moved to line {line})"));
        }
        push_conditions(&mut text, breakpoint.condition.as_ref(), breakpoint.hit_condition.as_ref());
        if let Some(message) = &breakpoint.log_message {
            text.push_str(&format!(", logs {message:?}"));
        }
        push_state(&mut text, breakpoint.verified, breakpoint.message.as_ref());
        text
    }

    /// A breakpoint on anything else.
    pub(super) fn trigger(&self, breakpoint: &TriggerBreakpoint) -> String {
        let what = match &breakpoint.trigger {
            Trigger::Function { name } => format!("function {name}"),
            other => other.describe().trim_start_matches("on ").to_owned(),
        };
        let mut text = format!("#{} {what}", breakpoint.id);
        push_conditions(&mut text, breakpoint.condition.as_ref(), breakpoint.hit_condition.as_ref());
        push_state(&mut text, breakpoint.verified, breakpoint.message.as_ref());
        text
    }

    /// A thread in a line, with where it is while it runs.
    pub(super) fn thread(&self, thread: &Thread, activity: Option<&Activity>) -> String {
        let stacks = match activity.map(|activity| &activity.doing) {
            Some(Doing::Stacks { threads, .. }) => threads.as_slice(),
            _ => &[],
        };
        let stack = stacks.iter().find(|(known, _)| known.id == thread.id);
        let state = match stack.and_then(|(_, frames)| frames.first()) {
            _ if thread.is_stopped => "stopped".to_owned(),
            Some(top) => format!("running at {}", words::running_frame(top, &self.view)),
            None => "running".to_owned(),
        };
        format!("{} {} ({state})", thread.id, thread.name)
    }

    /// A frame in a line each. Of many in a row that are of libraries, or of the language itself, the first and how many
    /// more there are, unless all are wanted or no other is there.
    pub(super) fn stack(&self, frames: &[Frame], is_whole: bool) -> Vec<String> {
        let is_own = |frame: &Frame| self.view.is_own(Path::new(&frame.file_path));
        if is_whole || !frames.iter().any(is_own) {
            return frames.iter().map(|frame| self.frame(frame)).collect();
        }
        let mut lines = Vec::new();
        for run in frames.chunk_by(|one, next| is_own(one) == is_own(next)) {
            let n_told = if is_own(&run[0]) || run.len() <= MAX_FOREIGN { run.len() } else { 1 };
            lines.extend(run[..n_told].iter().map(|frame| self.frame(frame)));
            if n_told < run.len() {
                lines.push(format!(
                    "{} more frames outside the project's own code; levels lists them",
                    run.len() - n_told
                ));
            }
        }
        lines
    }

    /// A frame in a line.
    fn frame(&self, frame: &Frame) -> String {
        if frame.frame_id == 0 {
            return words::running_frame(frame, &self.view);
        }
        let place =
            self.position(Some(&frame.function_name), Some(&frame.file_path), Some(frame.line_number));
        match &frame.instruction_pointer {
            Some(address) => format!("{} {place} [{address}]", frame.frame_id),
            None => format!("{} {place}", frame.frame_id),
        }
    }
}

/// The sessions that a list tells, those that have not ended first, and how many more have ended.
pub(super) fn listed(all: Vec<Status>) -> (Vec<Status>, usize) {
    let (ended, mut listed): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|status| status.phase == Phase::Terminated);
    let n_more = ended.len().saturating_sub(MAX_ENDED);
    listed.extend(ended.into_iter().rev().take(MAX_ENDED));
    (listed, n_more)
}

/// A list under a heading, or a sentence when it is empty.
pub(super) fn list(heading: &str, lines: &[String], none: &str) -> String {
    if lines.is_empty() { none.to_owned() } else { format!("{heading}:\n{}", lines.join("\n")) }
}

/// A scope in a line.
pub(super) fn scope(scope: &Scope) -> String {
    let cost = if scope.expensive { " (expensive)" } else { "" };
    format!("{}: variable_ref {}{cost}", scope.name, scope.variables_reference)
}

/// A variable in a line of its own.
pub(super) fn variable(variable: &Variable) -> String {
    let kind = variable.type_name.as_ref().map(|kind| format!(": {kind}")).unwrap_or_default();
    let inside = match variable.variables_reference {
        0 => String::new(),
        reference => format!(" (variable_ref {reference})"),
    };
    format!("{}{kind} = {}{inside}", variable.name, shorten(&variable.value, MAX_LISTED))
}

/// A variable among others in a line.
fn inline(variable: &Variable) -> String {
    format!("{} = {}", variable.name, shorten(&variable.value.replace('\n', " "), MAX_INLINE))
}

/// An instruction in a line, from the protocol's object.
pub(super) fn instruction(told: &Value) -> String {
    let Instruction { address: mut text, instruction_bytes, instruction, symbol, line } = read(told);
    for part in [instruction_bytes, instruction] {
        if !part.is_empty() {
            text.push_str(&format!("  {part}"));
        }
    }
    if let Some(symbol) = symbol {
        text.push_str(&format!("  <{symbol}>"));
    }
    if let Some(line) = line {
        text.push_str(&format!("  line {line}"));
    }
    text
}

/// A module in a line, from the protocol's object.
pub(super) fn module(told: &Value) -> String {
    let Module { id, name, path } = read(told);
    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let name = name.unwrap_or_else(|| "?".to_owned());
    match path.filter(|path| *path != name) {
        Some(path) => format!("{id} {name} {path}"),
        None => format!("{id} {name}"),
    }
}

/// A source in a line, from the protocol's object.
pub(super) fn source(told: &Value) -> String {
    let Source { name, path, source_reference } = read(told);
    let name = path.or(name).unwrap_or_else(|| "?".to_owned());
    match source_reference.filter(|reference| *reference > 0) {
        Some(reference) => format!("{name} (source reference {reference})"),
        None => name,
    }
}

fn reason(stop: &StopEvent) -> String {
    match &stop.hit_breakpoint_ids {
        Some(ids) if !ids.is_empty() => {
            let ids: Vec<String> = ids.iter().map(|id| format!("#{id}")).collect();
            format!("{} {}", stop.reason, ids.join(", "))
        }
        _ => stop.reason.clone(),
    }
}

fn push_conditions(text: &mut String, condition: Option<&String>, hit_condition: Option<&String>) {
    if let Some(condition) = condition {
        text.push_str(&format!(", if {condition}"));
    }
    if let Some(hits) = hit_condition {
        text.push_str(&format!(", hits {hits}"));
    }
}

fn push_state(text: &mut String, verified: bool, message: Option<&String>) {
    const UNVERIFIED: &str = "not verified yet";
    let state = if verified { "verified" } else { UNVERIFIED };
    text.push_str(&format!(", {state}"));
    if let Some(message) = message {
        // Elsewhere it stands alone and says that itself.
        let message =
            message.strip_prefix(UNVERIFIED).map_or(message.as_str(), |rest| rest.trim_start_matches(": "));
        text.push_str(&format!(": {message}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_agent_debug::types::{OwnFrame, ScopeVariables};

    fn speaker() -> Speaker {
        Speaker { view: View::new(["/w".into()]) }
    }

    fn frame(frame_id: i64, function_name: &str, file_path: &str) -> Frame {
        Frame {
            frame_id,
            function_name: function_name.to_owned(),
            file_path: file_path.to_owned(),
            line_number: 11,
            column_number: 0,
            instruction_pointer: None,
        }
    }

    #[test]
    fn a_breakpoint_says_once_that_it_is_not_verified() {
        let message = Some("not verified yet: no debug session has loaded it".to_owned());
        let breakpoint =
            Breakpoint { id: 1, path: "/w/a.py".into(), line: 3, message, ..Breakpoint::default() };
        let text = "#1 a.py:3, not verified yet: no debug session has loaded it";
        assert_eq!(speaker().breakpoint(&breakpoint), text);
    }

    #[test]
    fn sessions_that_run_are_listed_first_and_few_that_ended() {
        let ended = (0..8).map(|n| Status::of(&n.to_string(), Phase::Terminated));
        let (shown, n_more) = listed(ended.chain([Status::of("runs", Phase::Running)]).collect());
        let ids: Vec<&str> = shown.iter().map(|status| status.id.as_str()).collect();
        assert_eq!((ids, n_more), (vec!["runs", "7", "6", "5", "4", "3"], 3));
        let child = Status { parent: Some(shown[1].id.clone()), ..Status::of("runs", Phase::Running) };
        assert_eq!(speaker().session(&child), "Session runs (debugpy), runs.py, child of 7: running");
    }

    #[test]
    fn frames_of_libraries_are_counted_and_the_programs_own_told() {
        let own = |frame_id| frame(frame_id, "main", "/w/a.ts");
        let foreign = |frame_id| frame(frame_id, "run", "/w/node_modules/jest/run.js");
        let nodes = |frame_id| frame(frame_id, "run", "<node_internals>/internal/loader");
        let waits = |frame_id| frame(frame_id, "await", "");
        let stack = [own(1), waits(2), nodes(3), own(4), foreign(5), waits(6), nodes(7)];
        let told = [
            "1 a.ts:11 in main",
            "2 no source in await",
            "3 <node_internals>/internal/loader:11 in run",
            "4 a.ts:11 in main",
            "5 node_modules/jest/run.js:11 in run",
            "2 more frames outside the project's own code; levels lists them",
        ];
        assert_eq!(speaker().stack(&stack, false), told);
        assert_eq!(speaker().stack(&stack, true).len(), stack.len());
        assert_eq!(speaker().stack(&stack[4..], false).len(), 3, "nothing else is there");
        assert!(speaker().stack(&[], false).is_empty());
    }

    #[test]
    fn a_stop_in_a_library_names_who_called_it() {
        let stop = |call_stack: Vec<Frame>| StopEvent {
            timestamp: jiff::Timestamp::UNIX_EPOCH,
            session: baton_agent_debug::types::SessionId("a".to_owned()),
            reason: "exception".to_owned(),
            thread_id: 1,
            description: None,
            text: None,
            all_threads_stopped: None,
            source: None,
            line: None,
            column: None,
            call_stack,
            total_frames: None,
            top_frame_variables: None,
            own: None,
            hit_breakpoint_ids: None,
            output: Default::default(),
        };
        let (inside, own) = (frame(1, "rust_panic", "/rustc/panicking.rs"), frame(3, "main", "/w/m.rs"));
        let told = speaker().stop(&stop(vec![inside, frame(2, "begin", ""), own.clone()]));
        assert!(told.contains("\nCalled from frame 3 m.rs:11 in main"), "{told}");
        assert!(!speaker().stop(&stop(vec![own])).contains("Called from"));
        // With what it was doing itself, in the place of what the library did.
        let mut with_own =
            stop(vec![frame(1, "rust_panic", "/rustc/panicking.rs"), frame(3, "main", "/w/m.rs")]);
        let scope = |name: &str| {
            let (scope_name, omitted) = (name.to_owned(), 0);
            Some(ScopeVariables { scope_name, variables: Vec::new(), omitted })
        };
        with_own.top_frame_variables = scope("Theirs");
        with_own.own = Some(OwnFrame { frame_id: 3, variables: scope("Ours") });
        let told = speaker().stop(&with_own);
        assert!(told.ends_with("\nCalled from frame 3 m.rs:11 in main, Ours: none"), "{told}");
    }

    #[test]
    fn a_session_that_ended_says_how() {
        let ended = |end: &str, exit_code| {
            let end = Some(end.to_owned());
            speaker().session(&Status { end, exit_code, ..Status::of("a", Phase::Terminated) })
        };
        assert!(ended("the program ended", Some(3)).ends_with(": terminated, exit code 3"));
        let by_signal = ended("the program was ended by SIGABRT", Some(6));
        assert!(by_signal.ends_with(": terminated, the program was ended by SIGABRT"), "{by_signal}");
    }
}
