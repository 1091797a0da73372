//! One program, played through Baton and without it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::types::control::{OutputWish, ResumeWish};
use baton_agent_debug::types::{Completed, Evaluate, Resume, SetBreakpoint, StopEvent, Waited};
use baton_agent_debug::{Debugger, Wait};
use tokio_util::sync::CancellationToken;

use crate::scenario::options;

use super::choices::Choices;
use super::program::{self, Tongue, Written};
use super::truth::{Driver, Hits, Plan, Point, Seen, Told, plain, said};

/// Longest wait for an answer; a build is part of some.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Most stops of one program.
const MAX_STOPS: usize = 25;
/// How often, and how long apart, the output is looked at when it is not whole.
const MAX_LOOKS: usize = 60;
/// See [`MAX_LOOKS`].
const LOOK: Duration = Duration::from_millis(50);

const CONDITIONS: [&str; 7] =
    ["a > 3", "b % 2 == 0", "a == b", "a + b > c", "a > 3 && b < 50", "!(a > b)", "a != b || c == 2"];
/// The first of them every debugger writes alike.
const EXPRESSIONS: [&str; 4] = ["a * 2 - c", "a + b", "a > 3", "nobody"];
const PLAIN_EXPRESSIONS: usize = 2;
/// Of hit conditions; the first is the simplest.
const OPERATORS: [&str; 6] = [">=", "==", "%", "<=", ">", "<"];

/// An adapter, and what it is compared with.
pub(crate) struct Pair {
    pub(crate) adapter: &'static str,
    pub(crate) tongue: Tongue,
    pub(crate) driver: Driver,
    /// The adapter drives the same debugger: it steps alike too.
    pub(crate) is_same_debugger: bool,
    /// Log points are looked at too.
    pub(crate) logs: bool,
}

/// Plays one program both ways; how often it stopped. An error tells the program, the plan, and the first difference.
pub(crate) async fn both(pair: &Pair, program: Vec<u16>, moves: Vec<u16>) -> Result<usize> {
    let written = program::write(pair.tongue, &mut Choices::new(program));
    let folder = tempfile::Builder::new().prefix("baton-generated-").tempdir()?;
    let folder = folder.path().canonicalize()?;
    let (source, program) = pair.tongue.build(&folder, &written.text)?;
    let plan = pair.plan(&written, &mut Choices::new(moves), &source);
    let played = compare(pair, &plan, &program).await;
    let numbered = written.text.lines().enumerate().fold(String::new(), |mut all, (idx, line)| {
        let _ = writeln!(all, "{:3}  {line}", idx + 1);
        all
    });
    played.with_context(|| format!("\n{numbered}\n{:#?}\n{}", plan.points, plan.moves.join(" ")))
}

impl Pair {
    fn plan(&self, written: &Written, choices: &mut Choices, source: &Path) -> Plan {
        let mut lines = written.statements.clone();
        if self.is_same_debugger {
            lines.extend(&written.heads);
        }
        let is_counted = choices.pick(4) == 3;
        let mut points = BTreeMap::new();
        for _ in 0..=choices.pick(4) {
            let line = lines[choices.pick(lines.len())];
            let condition = [None, None, Some(CONDITIONS[choices.pick(CONDITIONS.len())])][choices.pick(3)];
            let hits = is_counted.then(|| {
                let count = u32::try_from(choices.pick(4)).unwrap_or_default() + 1;
                Hits { operator: choices.one_of(&OPERATORS), count }
            });
            let logs = is_counted && self.logs && choices.pick(3) == 2;
            points.insert(line, Point { line, condition, hits, logs });
        }
        // What a step passes is counted as each debugger likes.
        let steps = self.is_same_debugger && !is_counted;
        let all = ["continue", "over", "into", "out"];
        let moves = (0..MAX_STOPS).map(|_| if steps { all[choices.pick(4)] } else { all[0] }).collect();
        let n = if self.is_same_debugger { EXPRESSIONS.len() } else { PLAIN_EXPRESSIONS };
        Plan {
            source: source.to_owned(),
            points: points.into_values().collect(),
            moves,
            asked: (0..MAX_STOPS).map(|_| EXPRESSIONS[choices.pick(n)]).collect(),
            names: ["a", "b", "c"],
            output: source.with_file_name("output"),
            told: source.with_file_name("told"),
        }
    }
}

impl Tongue {
    /// Writes and builds a program: its source, and what is started.
    fn build(self, folder: &Path, text: &str) -> Result<(PathBuf, PathBuf)> {
        let (name, build): (&str, &[&str]) = match self {
            Self::C => ("program.c", &["cc", "-g", "-O0", "-pthread", "-o", "program", "program.c"]),
            Self::Go => ("program.go", &[]),
            Self::JavaScript => ("program.js", &[]),
            Self::Rust => {
                ("program.rs", &["rustc", "--edition", "2024", "-g", "-o", "program", "program.rs"])
            }
        };
        let source = folder.join(name);
        std::fs::write(&source, text)?;
        if self == Self::Go {
            std::fs::write(folder.join("go.mod"), "module program\n\ngo 1.19\n")?;
        }
        let Some((compiler, arguments)) = build.split_first() else { return Ok((source.clone(), source)) };
        let output = Command::new(compiler).args(arguments).current_dir(folder).output()?;
        ensure!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
        Ok((source.clone(), source.with_extension("")))
    }
}

async fn compare(pair: &Pair, plan: &Plan, program: &Path) -> Result<usize> {
    let truth = pair.driver.play(plan, program).await?;
    let folder = plan.source.parent().context("a folder")?;
    let debugger = Debugger::spawn(options(folder));
    let told = play(&debugger, pair.adapter, plan, program, &truth).await;
    debugger.stop_all().await;
    let (told, completed) = told?;
    ensure!(told.over == truth.over, "ended by itself: {}, and {} is told", truth.over, told.over);
    let Some(completed) = completed else { return Ok(truth.stops.len()) };
    let said =
        |told: &Told| if pair.adapter == "js-debug" { told.said.clone() } else { logs_first(&told.said) };
    ensure!(said(&told) == said(&truth), "printed is {:?}, and {:?} is told", truth.printed, told.printed);
    if let (Some(code), Some(told)) = (truth.exit, completed.exit_code) {
        ensure!(code == told, "it exited with {code}, and {told} is told");
    }
    if plan.points.iter().all(|point| point.hits.is_none()) {
        compare_never_hit(pair, plan, &truth, &completed)?;
    }
    Ok(truth.stops.len())
}

/// What a debugger logs and what the program prints come on two ways, but for JavaScript.
fn logs_first(said: &[String]) -> Vec<String> {
    let (logs, other): (Vec<&String>, Vec<&String>) =
        said.iter().partition(|line| line.starts_with("say log "));
    [logs, other].concat().into_iter().cloned().collect()
}

/// codelldb tells one of several breakpoints at one place: of the others, those with conditions are not known.
fn tells_one_hit(adapter: &str) -> bool {
    adapter == "codelldb"
}

fn compare_never_hit(pair: &Pair, plan: &Plan, truth: &Told, completed: &Completed) -> Result<()> {
    let hit: Vec<u32> = truth.stops.iter().flat_map(|stop| stop.hit.clone().unwrap_or_default()).collect();
    let tops = |stop: &Seen| u32::try_from(stop.stack.first()?.1).ok();
    let ends: Vec<u32> = truth.stops.iter().filter_map(tops).collect();
    let open = truth.stops.iter().filter(|stop| stop.hit.is_none());
    let open: Vec<u32> = open.filter_map(tops).collect();
    let never: Vec<u32> = completed.never_hit.iter().map(|breakpoint| breakpoint.line).collect();
    for Point { line, condition, .. } in &plan.points {
        // A step that ends at a breakpoint has reached it, when that has no condition.
        let is_hit = hit.contains(line) || (condition.is_none() && ends.contains(line));
        let is_told = never.contains(line);
        let is_open = open.contains(line) || (condition.is_some() && tells_one_hit(pair.adapter));
        ensure!(is_told != is_hit || (!is_hit && is_open), "never hit, it is told, are {never:?}");
    }
    Ok(())
}

/// Plays a plan through Baton, and stops at the first stop that is not the truth's.
async fn play(
    debugger: &Debugger,
    adapter: &str,
    plan: &Plan,
    program: &Path,
    truth: &Told,
) -> Result<(Told, Option<Completed>)> {
    let mut lines = BTreeMap::new();
    for point in &plan.points {
        let wish = SetBreakpoint {
            path: plan.source.clone(),
            line: point.line,
            condition: point.condition.map(str::to_owned),
            // Without a count it is looked at alone.
            hit_condition: point
                .hits
                .filter(|hits| hits.operator != OPERATORS[0] || hits.count > 1)
                .map(|hits| format!("{} {}", hits.operator, hits.count)),
            log_message: point.logs.then(|| format!("say log {} {{a}}", point.line)),
            ..SetBreakpoint::default()
        };
        lines.insert(debugger.set_breakpoint(wish).await?.id, point.line);
    }
    let launch =
        Launch { adapter: Some(adapter.to_owned()), program: program.to_owned(), ..Launch::default() };
    let start = debugger.configure(&Wish::Launch(launch)).await?;
    let mut waited = debugger.start(start, wait()).await?;
    let mut told = Told::default();
    for (idx, (asked, &name)) in plan.asked.iter().zip(&plan.moves).enumerate() {
        let stop = match waited {
            Waited::Stopped(stop) => stop,
            Waited::Completed(completed) => {
                let next = truth.stops.get(idx);
                ensure!(next.is_none(), "after {idx} stops it ended, and not at {next:?}");
                told.over = true;
                (told.said, told.printed) = until_said(debugger, &completed, truth.said.len()).await?;
                return Ok((told, Some(*completed)));
            }
            other => bail!("no stop and no end: {other:?}"),
        };
        let mut seen = look(debugger, plan, &stop, asked, &lines).await?;
        let known = truth.stops.get(idx);
        seen.hit = seen.hit.filter(|_| known.is_none_or(|known| known.hit.is_some()));
        if let (Some(told), Some(all)) = (&seen.hit, known.and_then(|known| known.hit.as_ref()))
            && tells_one_hit(adapter)
            && !told.is_empty()
            && told.iter().all(|line| all.contains(line))
        {
            seen.hit = Some(all.clone());
        }
        ensure!(known == Some(&seen), "stop {idx} is {known:#?}, and by {} {seen:#?} is told", stop.reason);
        let how = match name {
            _ if truth.waiting.contains(&idx) => Resume::Continue,
            // Not of the program's file, as where a thread ends.
            _ if seen.stack.is_empty() => Resume::Continue,
            "over" => Resume::StepOver,
            // What makes a thread runs beside that thread.
            "into" if seen.stack[0].0 == "in_thread" => Resume::StepOver,
            "into" => Resume::StepInto,
            "out" if seen.stack.len() > 1 => Resume::StepOut,
            _ => Resume::Continue,
        };
        told.stops.push(seen);
        let wish = ResumeWish::new(Some(stop.session.clone()), Some(stop.thread_id), how);
        waited = debugger.resume_as(wish, wait()).await?;
    }
    if let Waited::Completed(completed) = waited {
        told.over = true;
        (told.said, told.printed) = until_said(debugger, &completed, truth.said.len()).await?;
        return Ok((told, Some(*completed)));
    }
    Ok((told, None))
}

async fn look(
    debugger: &Debugger,
    plan: &Plan,
    stop: &StopEvent,
    asked: &str,
    lines: &BTreeMap<i64, u32>,
) -> Result<Seen> {
    let source = plan.source.to_str().context("a path")?;
    let own = stop.call_stack.iter().filter(|frame| frame.file_path == source);
    let stack = own.map(|frame| (plain(&frame.function_name), frame.line_number)).collect();
    let ids = stop.hit_breakpoint_ids.clone().unwrap_or_default();
    let mut hit: Vec<u32> = ids.iter().filter_map(|id| lines.get(id).copied()).collect();
    hit.sort_unstable();
    let mut seen = Seen { stack, hit: Some(hit), locals: BTreeMap::new(), value: None };
    let Some(top) = stop.call_stack.first().filter(|frame| frame.file_path == source) else {
        return Ok(seen);
    };
    if top.function_name.ends_with(".func1") {
        // See `look` of delve.py.
        return Ok(seen);
    }
    let value = async |expression: &str| {
        let wish = Evaluate { expression: expression.to_owned(), frame_id: top.frame_id, context: None };
        debugger.evaluate(wish).await.ok().map(|value| value.result)
    };
    for name in plan.names {
        let shown = stop.top_frame_variables.iter().flat_map(|scope| &scope.variables);
        let shown =
            shown.into_iter().find(|variable| variable.name == name).map(|variable| variable.value.clone());
        // In an inner block it stands in an outer scope.
        let known = if shown.is_some() { shown } else { value(name).await };
        seen.locals.extend(known.map(|value| (name.to_owned(), value)));
    }
    seen.value = value(asked).await;
    Ok(seen)
}

/// What the program said; its last words can follow its end.
async fn until_said(
    debugger: &Debugger,
    completed: &Completed,
    n_lines: usize,
) -> Result<(Vec<String>, String)> {
    let wish = OutputWish {
        session: Some(completed.session.clone()),
        since: Some(0),
        categories: Vec::new(),
        max_bytes: 1 << 22,
    };
    let (mut lines, mut printed) = (Vec::new(), String::new());
    for _ in 0..MAX_LOOKS {
        let page = debugger.output(wish.clone()).await?;
        printed = page.entries.iter().map(|entry| entry.text.as_str()).collect();
        lines = said(&printed);
        if lines.len() >= n_lines {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok((lines, printed))
}

fn wait() -> Wait {
    Wait { timeout: PATIENCE, cancelled: CancellationToken::new() }
}
