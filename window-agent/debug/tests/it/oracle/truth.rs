//! What a debugger must say of a program, worked out from the events that the interpreter's own tracer told.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// What `tracer.py` prints.
#[derive(Debug, Deserialize)]
pub(crate) struct Trace {
    pub(crate) code_lines: Vec<u32>,
    pub(crate) events: Vec<Event>,
    pub(crate) stdout: String,
    pub(crate) exit: i64,
    pub(crate) uncaught: Option<Uncaught>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Call,
    Line,
    Return,
}

/// Function and line, innermost first.
pub(crate) type Stack = Vec<(String, i64)>;

#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    thread: usize,
    pub(crate) frame: usize,
    pub(crate) stack: Stack,
    pub(crate) locals: BTreeMap<String, String>,
    pub(crate) values: Vec<Option<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Uncaught {
    #[serde(rename = "type")]
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) stack: Stack,
}

/// Runs the program under the tracer; `None` when it does too much to be looked at.
pub(crate) async fn trace(python: &Path, program: &Path, expressions: &[&str]) -> Result<Option<Trace>> {
    let tracer = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oracle/tracer.py");
    let mut child = Command::new(python)
        .arg(tracer)
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    stdin.write_all(&serde_json::to_vec(expressions)?).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("too many events") {
        return Ok(None);
    }
    ensure!(output.status.success(), "the tracer failed: {stderr}");
    Ok(Some(serde_json::from_slice(&output.stdout)?))
}

/// At which of the hits that it counts a breakpoint stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hits {
    All,
    Equal(u32),
    Above(u32),
    Every(u32),
}

impl Hits {
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::All => None,
            Self::Equal(n) => Some(format!("== {n}")),
            Self::Above(n) => Some(format!("> {n}")),
            Self::Every(n) => Some(format!("% {n} == 0")),
        }
    }

    fn stops_at(self, hit: u32) -> bool {
        match self {
            Self::All => true,
            Self::Equal(n) => hit == n,
            Self::Above(n) => hit > n,
            Self::Every(n) => hit.is_multiple_of(n),
        }
    }
}

/// A breakpoint, on a line that has code.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) line: u32,
    /// An index among the expressions.
    pub(crate) condition: Option<usize>,
    pub(crate) hits: Hits,
    /// Logs instead of stopping.
    pub(crate) logs: bool,
}

/// A move of the debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Continue,
    Over,
    Into,
    Out,
}

/// Where a program may stop next.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// At an event: before the line runs, or back in the middle of the line that called.
    At {
        event: usize,
        stack: Stack,
        points: Vec<usize>,
        told: Told,
    },
    /// It was ended by an exception.
    Uncaught,
    End,
}

/// What breakpoints have counted and logged until then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    hits: Vec<u32>,
    pub(crate) stops: Vec<u32>,
    pub(crate) logs: Vec<String>,
    /// A condition or a log point's expression failed; debugpy prints why, anywhere.
    pub(crate) has_failed: bool,
}

pub(crate) struct Truth<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) points: &'a [Point],
}

impl Truth<'_> {
    pub(crate) fn begin(&self) -> Told {
        Told {
            hits: vec![0; self.points.len()],
            stops: vec![0; self.points.len()],
            logs: Vec::new(),
            has_failed: false,
        }
    }

    /// All places at which the program may stop after a move, the one that a plain debugger takes first. A debugger
    /// that comes back from a call may stop in the middle of the line that called, or at the caller's next line.
    pub(crate) fn next(&self, from: Option<usize>, step: Move, told: &Told) -> Vec<Stop> {
        let mut told = told.clone();
        let mut found = Vec::new();
        // The frame in which a step ends; after a return the caller's.
        let mut home = from.and_then(|from| match self.trace.events[from].kind {
            Kind::Return => self.caller(from),
            Kind::Call | Kind::Line => Some(self.trace.events[from].frame),
        });
        let first = home;
        // Of others, breakpoints alone stop the program.
        let thread = from.map(|from| self.trace.events[from].thread);
        let (mut is_left, mut is_elsewhere) = (false, false);
        for at in from.map_or(0, |from| from + 1)..self.trace.events.len() {
            let event = &self.trace.events[at];
            match event.kind {
                Kind::Call => {}
                Kind::Line => {
                    let points = self.hit(event, &mut told);
                    let is_home = home == Some(event.frame);
                    // A generator that has yielded goes on, and a debugger may stay with it; debugpy steps into the next
                    // function that the caller's line calls.
                    let is_next = is_left && thread == Some(event.thread) && !is_elsewhere;
                    let may_stop = !is_home && (first == Some(event.frame) || is_next);
                    if points.is_empty() && step == Move::Over && may_stop {
                        is_elsewhere = true;
                        let told = told.clone();
                        found.push(Stop::At { event: at, stack: event.stack.clone(), points, told });
                        continue;
                    }
                    let steps = match step {
                        Move::Continue => false,
                        Move::Over => is_home,
                        Move::Into => thread == Some(event.thread),
                        Move::Out => is_home && is_left,
                    };
                    if steps || !points.is_empty() {
                        for point in &points {
                            told.stops[*point] += 1;
                        }
                        found.push(Stop::At { event: at, stack: event.stack.clone(), points, told });
                        return found;
                    }
                }
                Kind::Return if home == Some(event.frame) && step != Move::Continue => {
                    is_left = true;
                    home = self.caller(at);
                    let stack = event.stack[1..].to_vec();
                    if home.is_some() {
                        found.push(Stop::At { event: at, stack, points: Vec::new(), told: told.clone() });
                    }
                }
                Kind::Return => {}
            }
        }
        found.push(if self.trace.uncaught.is_some() { Stop::Uncaught } else { Stop::End });
        found
    }

    /// What breakpoints count and log when none of them stops the program any more.
    pub(crate) fn to_the_end(&self, from: Option<usize>, told: &Told) -> Told {
        let mut told = told.clone();
        let rest = &self.trace.events[from.map_or(0, |from| from + 1)..];
        for event in rest.iter().filter(|event| event.kind == Kind::Line) {
            self.hit(event, &mut told);
        }
        told
    }

    /// The frame that called the one that an event is of.
    fn caller(&self, at: usize) -> Option<usize> {
        let Event { thread, stack, .. } = &self.trace.events[at];
        let depth = stack.len().checked_sub(1)?;
        let before = self.trace.events[..at].iter().rev();
        before
            .filter(|event| event.thread == *thread)
            .filter(|event| event.kind != Kind::Return)
            .find(|event| event.stack.len() == depth)
            .map(|event| event.frame)
    }

    /// The breakpoints that stop the program at a line.
    fn hit(&self, event: &Event, told: &mut Told) -> Vec<usize> {
        let line = event.stack[0].1;
        let mut stopping = Vec::new();
        for (idx, point) in self.points.iter().enumerate().filter(|(_, point)| i64::from(point.line) == line)
        {
            // One that fails stops whatever is counted, so that its author sees it.
            let is_true = |value: &Option<String>| value.as_deref().is_none_or(|value| value != "False");
            if point.condition.is_some_and(|condition| !is_true(&event.values[condition])) {
                continue;
            }
            let is_failing = point.condition.is_some_and(|at| event.values[at].is_none());
            told.has_failed |= is_failing;
            told.hits[idx] += u32::from(!is_failing);
            if !is_failing && !point.hits.stops_at(told.hits[idx]) {
                continue;
            }
            match &event.values[0] {
                _ if !point.logs => stopping.push(idx),
                Some(value) => told.logs.push(format!("log {line}: {value}")),
                None => told.has_failed = true,
            }
        }
        stopping
    }
}
