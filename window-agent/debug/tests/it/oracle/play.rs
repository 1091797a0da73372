//! A random session with a random program, each answer compared with the truth.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton_agent_debug::types::{Completed, Evaluate, Resume, SetBreakpoint, Start, StopEvent, Waited};
use baton_agent_debug::{Debugger, DebuggerOptions, Wait};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::choices::Choices;
use super::program;
use super::truth::{self, Hits, Move, Point, Stack, Stop, Told, Trace, Truth};

/// Asked at stops, and what conditions are made of; the first one is logged.
const EXPRESSIONS: [&str; 7] =
    ["[a, b, c]", "a > 3", "b % 2 == 0", "a == b", "c + a", "len(str(b))", "nobody"];
/// Those of them that are conditions.
const CONDITIONS: [usize; 4] = [1, 2, 3, 6];
/// Longest wait for an answer; nothing takes that long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most stops in one session.
const MAX_STOPS: usize = 25;

/// Debugs one program; an error tells the program, what was done, and the first answer that is not true.
pub(crate) async fn python(python: &Path, program: Vec<u16>, play: Vec<u16>) -> Result<()> {
    let text = program::python(&mut Choices::new(program));
    let mut choices = Choices::new(play);
    let folder = tempfile::tempdir()?;
    let path = folder.path().canonicalize()?.join("program.py");
    std::fs::write(&path, &text)?;
    let Some(trace) = truth::trace(python, &path, &EXPRESSIONS).await? else { return Ok(()) };
    let points = points(&mut choices, &trace);
    let options = DebuggerOptions {
        folders: vec![folder.path().to_owned()],
        python: Some(python.to_owned()),
        search_path: std::env::var_os("PATH"),
        ..DebuggerOptions::default()
    };
    let debugger = Debugger::spawn(options);
    let mut session = Session {
        debugger: debugger.clone(),
        path: path.to_str().context("a path")?.to_owned(),
        truth: Truth { trace: &trace, points: &points },
        told: Told::default(),
        ids: Vec::new(),
        story: String::new(),
        output: String::new(),
    };
    let played = session.play(python, &mut choices).await;
    debugger.stop_all().await;
    let numbered = text.lines().enumerate().fold(String::new(), |mut all, (idx, line)| {
        writeln!(all, "{:3}  {line}", idx + 1).unwrap();
        all
    });
    played.with_context(|| format!("\n{numbered}\n{}", session.story))
}

/// Some lines that have code, each at most once.
fn points(choices: &mut Choices, trace: &Trace) -> Vec<Point> {
    let mut points = BTreeMap::new();
    for _ in 0..=choices.pick(4) {
        let line = trace.code_lines[choices.pick(trace.code_lines.len())];
        let condition = [None, None, Some(CONDITIONS[choices.pick(4)])][choices.pick(3)];
        let n = u32::try_from(choices.pick(3)).unwrap() + 1;
        let hits = [Hits::All, Hits::All, Hits::Equal(n), Hits::Above(n), Hits::Every(n)][choices.pick(5)];
        let logs = choices.pick(5) == 4;
        points.insert(line, Point { line, condition, hits, logs });
    }
    points.into_values().collect()
}

struct Session<'a> {
    debugger: Debugger,
    path: String,
    truth: Truth<'a>,
    told: Told,
    /// Of the breakpoints, in their order.
    ids: Vec<i64>,
    /// What was done, and what came of it.
    story: String,
    /// What was printed and logged.
    output: String,
}

impl Session<'_> {
    async fn play(&mut self, python: &Path, choices: &mut Choices) -> Result<()> {
        self.told = self.truth.begin();
        for point in self.truth.points {
            let wish = SetBreakpoint {
                path: self.path.clone().into(),
                line: point.line,
                condition: point.condition.map(|condition| EXPRESSIONS[condition].to_owned()),
                hit_condition: point.hits.text(),
                log_message: point.logs.then(|| format!("log {}: {{{}}}", point.line, EXPRESSIONS[0])),
                ..SetBreakpoint::default()
            };
            writeln!(self.story, "{point:?}")?;
            self.ids.push(self.debugger.set_breakpoint(wish).await?.id);
        }
        let configuration =
            json!({"type": "debugpy", "request": "launch", "program": self.path, "python": python});
        let configuration = configuration.as_object().context("an object")?.clone();
        let start = Start { configuration, name: "program.py".to_owned(), ..Start::default() };
        let mut waited = self.debugger.start(start, wait()).await?;
        let (mut at, mut step) = (None, Move::Continue);
        for _ in 0..MAX_STOPS {
            let stop = match waited {
                Waited::Stopped(stop) => stop,
                Waited::Completed(completed) => return self.completed(&completed, at, step),
                other => bail!("no stop and no end: {other:?}"),
            };
            self.output.push_str(&stop.output.text);
            let stack = self.stack(&stop);
            writeln!(self.story, "{step:?}: {} at {stack:?}", stop.reason)?;
            at = self.stopped(&stop, &stack, at, step)?;
            if let Some(event) = at {
                self.ask(&stop, event, choices).await?;
            }
            step = [Move::Continue, Move::Over, Move::Into, Move::Out][choices.pick(4)];
            let how = match step {
                Move::Continue => Resume::Continue,
                Move::Over => Resume::StepOver,
                Move::Into => Resume::StepInto,
                Move::Out => Resume::StepOut,
            };
            waited = self.debugger.resume(Some(&stop.session), stop.thread_id, how, wait()).await?;
        }
        Ok(())
    }

    fn stack(&self, stop: &StopEvent) -> Stack {
        let own = stop.call_stack.iter().filter(|frame| frame.file_path == self.path);
        own.map(|frame| (frame.function_name.clone(), frame.line_number)).collect()
    }

    /// Compares a stop; gives the event at which the program stands, none after its end by an exception.
    fn stopped(
        &mut self,
        stop: &StopEvent,
        stack: &Stack,
        at: Option<usize>,
        step: Move,
    ) -> Result<Option<usize>> {
        let expected = self.truth.next(at, step, &self.told);
        for candidate in &expected {
            match candidate {
                Stop::At { event, stack: known, points, told } if known == stack => {
                    let hit: Vec<i64> = points.iter().map(|point| self.ids[*point]).collect();
                    let said = stop.hit_breakpoint_ids.clone().unwrap_or_default();
                    ensure!(said == hit, "it hit breakpoints {hit:?}, and {said:?} is told");
                    let is_hit = stop.reason == "breakpoint";
                    ensure!(is_hit != hit.is_empty(), "it hit {hit:?}, and the reason is {}", stop.reason);
                    for point in points {
                        self.failing(stop, *event, *point)?;
                    }
                    self.told = told.clone();
                    return self.locals(stop, *event).map(|()| Some(*event));
                }
                Stop::Uncaught if stop.reason == "exception" => {
                    let uncaught = self.truth.trace.uncaught.as_ref().context("an exception")?;
                    ensure!(*stack == uncaught.stack, "the exception came of {:?}", uncaught.stack);
                    let text = stop.text.clone().unwrap_or_default();
                    let is_told = text.contains(&uncaught.name) && text.contains(&uncaught.text);
                    ensure!(is_told, "{uncaught:?} is told as {text:?}");
                    // What was logged on the way.
                    self.told = self.truth.to_the_end(at, &self.told);
                    return Ok(None);
                }
                _ => {}
            }
        }
        bail!("it stopped by {} at {stack:?}; expected one of {expected:#?}", stop.reason)
    }

    /// A condition that failed is told as it was written.
    fn failing(&self, stop: &StopEvent, event: usize, point: usize) -> Result<()> {
        let Some(condition) = self.truth.points[point].condition else { return Ok(()) };
        if self.truth.trace.events[event].values[condition].is_none() {
            let said = format!("conditional breakpoint: {}\n", EXPRESSIONS[condition]);
            let told = &stop.output.text;
            ensure!(told.contains(&said), "{} fails, and {told:?} is told", EXPRESSIONS[condition]);
        }
        Ok(())
    }

    fn locals(&self, stop: &StopEvent, event: usize) -> Result<()> {
        let event = &self.truth.trace.events[event];
        if event.kind == truth::Kind::Return {
            // The caller's are not in it.
            return Ok(());
        }
        let told = stop.top_frame_variables.as_ref().context("no variables")?;
        for (name, value) in &event.locals {
            let shown = told.variables.iter().find(|variable| variable.name == *name);
            let shown = shown.map(|variable| variable.value.as_str());
            ensure!(shown == Some(value.as_str()), "{name} is {value}, and {shown:?} is told");
        }
        Ok(())
    }

    async fn ask(&mut self, stop: &StopEvent, event: usize, choices: &mut Choices) -> Result<()> {
        let event = &self.truth.trace.events[event];
        let asked = choices.pick(EXPRESSIONS.len());
        if event.kind == truth::Kind::Return {
            return Ok(());
        }
        let frame_id = stop.call_stack.first().context("no frame")?.frame_id;
        let wish = Evaluate { expression: EXPRESSIONS[asked].to_owned(), frame_id, context: None };
        let answer = self.debugger.evaluate(wish).await;
        match (&event.values[asked], answer) {
            (Some(value), Ok(answer)) => {
                ensure!(answer.result == *value, "{} is {value}, not {}", EXPRESSIONS[asked], answer.result);
            }
            (None, Err(_)) => {}
            (truth, answer) => bail!("{} is {truth:?}, and {answer:?} is told", EXPRESSIONS[asked]),
        }
        Ok(())
    }

    fn completed(&mut self, completed: &Completed, at: Option<usize>, step: Move) -> Result<()> {
        writeln!(
            self.story,
            "{step:?}: completed {:?}; output {:?} {:?}",
            completed.exit_code, self.output, completed.output
        )?;
        self.output.push_str(&completed.output.text);
        let trace = self.truth.trace;
        let after_exception = trace.uncaught.is_some() && at.is_none() && self.story.contains(": exception");
        if !after_exception {
            let expected = self.truth.next(at, step, &self.told);
            ensure!(matches!(expected.last(), Some(Stop::End)), "it ended; expected one of {expected:#?}");
            // What was logged on the way to the end.
            self.told = self.truth.to_the_end(at, &self.told);
        }
        ensure!(completed.exit_code == Some(trace.exit), "it exited with {}", trace.exit);
        let never: Vec<i64> = completed.never_hit.iter().map(|breakpoint| breakpoint.id).collect();
        let unhit = |point: &usize| self.told.stops[*point] == 0 && !self.truth.points[*point].logs;
        let unhit: Vec<i64> = (0..self.ids.len()).filter(unhit).map(|point| self.ids[point]).collect();
        ensure!(never == unhit, "never hit are {unhit:?}, and {never:?} is told");
        let (logged, printed): (Vec<&str>, Vec<&str>) =
            self.output.lines().partition(|line| line.starts_with("log "));
        ensure!(logged == self.told.logs, "logged is {:?}, and {logged:?} is told", self.told.logs);
        let printed: Vec<&str> =
            printed.into_iter().take_while(|line| !line.starts_with("Traceback")).collect();
        let expected: Vec<&str> = trace.stdout.lines().collect();
        ensure!(
            self.told.has_failed || printed == expected,
            "printed is {expected:?}, and {printed:?} is told"
        );
        Ok(())
    }
}

fn wait() -> Wait {
    Wait { timeout: PATIENCE, cancelled: CancellationToken::new() }
}
