//! From `initialize` to the exit, three times: breakpoints of all kinds, a stop at the entry, a crash.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_agent_debug::Shelf;
use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{Category, OutputPage, OutputWish, ResumeWish};
use baton_agent_debug::types::triggers::{RemoveTriggers, SetTrigger, Trigger};
use baton_agent_debug::types::{
    Breakpoint, Completed, Evaluate, RemoveBreakpoint, Resume, SetBreakpoint, StopEvent, Variable, Waited,
};
use baton_agent_debug::{Debugger, DebuggerOptions, Wait};
use expect_test::ExpectFile;
use tokio_util::sync::CancellationToken;

use crate::features::{self, Features};
use crate::languages::{Language, workspace_root};

/// Longest wait for a stop: Go builds its program first, and the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the program prints on its way.
const N_LINES: usize = 5;
/// How often, and how long apart, the output is looked at when it is not whole.
const MAX_LOOKS: usize = 40;
/// See [`MAX_LOOKS`].
const LOOK: Duration = Duration::from_millis(50);

/// Lines of the program, the same in every language.
const FAILURE: u32 = 8;
const ADDITION: u32 = 12;
const CALL: u32 = 19;
const PRINT: u32 = 20;

pub(crate) fn options(folder: &Path) -> DebuggerOptions {
    DebuggerOptions {
        folders: vec![folder.to_owned()],
        search_path: std::env::var_os("PATH"),
        shelf: shelf(),
        ..DebuggerOptions::default()
    }
}

/// What `cargo xtask test adapters` installed.
pub(crate) fn shelf() -> Shelf {
    let given = std::env::var_os("BATON_ADAPTERS").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| workspace_root().join(".cache/adapters"));
    assert!(folder.is_dir(), "there is no {}: `cargo xtask test adapters` installs it", folder.display());
    Shelf { folder: Some(folder), ..Shelf::default() }
}

/// Plays the scenario and compares transcript and features with what they were.
pub(crate) async fn play(adapter: &str, language: &Language, expected: ExpectFile) {
    let folder = tempfile::tempdir().unwrap();
    // A temporary folder can be a link, and adapters tell real paths.
    let folder = folder.path().canonicalize().unwrap();
    let (source, program) = language.make(&folder);
    let mut play = Play {
        debugger: Debugger::spawn(options(&folder)),
        adapter: adapter.to_owned(),
        language,
        folder: folder.clone(),
        source,
        program,
        transcript: String::new(),
        features: Features::default(),
    };
    play.hits().await;
    play.steps().await;
    play.entry().await;
    play.crash().await;
    play.debugger.stop_all().await;
    assert_eq!(play.debugger.sessions(), []);
    assert_eq!(processes_of(&folder), Vec::<String>::new(), "nothing outlives its session");
    expected.assert_eq(&play.transcript);
    features::check_row(adapter, language.name, &play.features);
}

struct Play<'a> {
    debugger: Debugger,
    adapter: String,
    language: &'a Language,
    folder: PathBuf,
    source: PathBuf,
    program: PathBuf,
    transcript: String,
    features: Features,
}

impl Play<'_> {
    /// A hit count and a log point.
    async fn hits(&mut self) {
        self.line("== hit count, log point");
        let hits = SetBreakpoint { hit_condition: Some(">= 4".to_owned()), ..self.at(CALL) };
        let message = format!("log: {{{}}}", self.language.total);
        let log = SetBreakpoint { log_message: Some(message), ..self.at(PRINT) };
        self.set(hits).await;
        self.set(log).await;
        let waited = self.start(&[], false).await;
        self.list().await;
        let number = stop_of(&waited).and_then(|stop| value_of(stop, &["number"]));
        self.features.set("hit count", at_line(&waited, CALL) && number.is_some_and(|number| number == "3"));
        self.finish(waited).await;
        let _ = self.debugger.remove_breakpoint(RemoveBreakpoint::All).await;
    }

    /// A condition; variables, expressions, steps.
    async fn steps(&mut self) {
        self.line("== condition, steps");
        let condition =
            SetBreakpoint { condition: Some(self.language.condition.to_owned()), ..self.at(ADDITION) };
        self.set(condition).await;
        let mut waited = self.start(&[], false).await;
        self.list().await;
        let Some(stop) = stop_of(&waited).cloned() else { return self.finish(waited).await };
        let names = ["right", "number"];
        let is_fourth = value_of(&stop, &names).is_some_and(|right| right == "4");
        self.features.set("condition", at_line(&waited, ADDITION) && is_fourth);
        self.features.set("variables", is_fourth);
        let value = self.evaluate(&stop, self.language.expression).await;
        self.features.set("evaluate", value.is_ok_and(|value| value == "10"));
        let _ = self.evaluate(&stop, "no_such_name").await;
        let _ = self.debugger.remove_breakpoint(RemoveBreakpoint::All).await;

        waited = self.resume(stop, Resume::StepOver).await;
        self.features.set("step over", at_line(&waited, ADDITION + 1) || at_line(&waited, ADDITION + 2));
        if let Some(stop) = stop_of(&waited).cloned() {
            waited = self.resume(stop, Resume::StepOut).await;
            self.features.set("step out", at_line(&waited, CALL) || at_line(&waited, PRINT));
        }
        self.finish(waited).await;

        self.set(self.at(CALL)).await;
        waited = self.start(&[], false).await;
        if let Some(stop) = stop_of(&waited).cloned() {
            waited = self.resume(stop, Resume::StepInto).await;
            let is_inside = at_line(&waited, ADDITION) || at_line(&waited, ADDITION - 1);
            self.features.set("step in", is_inside);
        }
        let _ = self.debugger.remove_breakpoint(RemoveBreakpoint::All).await;
        self.finish(waited).await;
    }

    /// A stop at the first line, which hides no breakpoint; a function breakpoint.
    async fn entry(&mut self) {
        self.line("== entry");
        self.set(self.at(ADDITION)).await;
        let mut waited = self.start(&[], true).await;
        let is_own = stop_of(&waited).is_some_and(|stop| {
            stop.reason == "entry"
                && stop.call_stack.first().is_some_and(|frame| self.is_own(&frame.file_path))
        });
        if let Some(stop) = stop_of(&waited).cloned()
            && !at_line(&waited, ADDITION)
        {
            waited = self.resume(stop, Resume::Continue).await;
        }
        self.features.set("stop on entry", is_own && at_line(&waited, ADDITION));
        let _ = self.debugger.remove_breakpoint(RemoveBreakpoint::All).await;
        // Java's tells this stop once or twice.
        let before = self.transcript.len();
        self.finish(waited).await;
        let last = self.transcript[before..].lines().rev().take(2).map(|line| format!("{line}\n"));
        let last: Vec<String> = last.collect();
        self.transcript.truncate(before);
        self.transcript.extend(last.into_iter().rev());

        self.line("== function");
        let trigger = Trigger::Function { name: self.language.function.to_owned() };
        let wish = SetTrigger { trigger, condition: None, hit_condition: None, owner: None };
        if let Err(error) = self.debugger.set_trigger(None, wish).await {
            self.error(&error);
        }
        let waited = self.start(&[], false).await;
        self.features.set("function", at_line(&waited, ADDITION) || at_line(&waited, ADDITION - 1));
        let _ = self.debugger.remove_triggers(RemoveTriggers::All).await;
        if stop_of(&waited).is_some() {
            self.finish(waited).await;
        }
    }

    /// The program fails at its end.
    async fn crash(&mut self) {
        self.line("== crash");
        let waited = self.start(&["crash"], false).await;
        let tells = stop_of(&waited).is_some_and(|stop| {
            stop.call_stack
                .iter()
                .any(|frame| frame.line_number == i64::from(FAILURE) && self.is_own(&frame.file_path))
        });
        self.features.set("crash", tells);
        self.finish(waited).await;
    }

    /// Goes on until the program has ended.
    async fn finish(&mut self, mut waited: Result<Waited, DebugError>) {
        const MAX_STOPS: usize = 8;
        for _ in 0..MAX_STOPS {
            let Some(stop) = stop_of(&waited).cloned() else { break };
            waited = self.resume(stop, Resume::Continue).await;
        }
        let Ok(Waited::Completed(completed)) = &waited else {
            let _ = self.debugger.stop(None).await;
            return self.line("it did not end by itself");
        };
        self.completed(completed).await;
    }

    async fn completed(&mut self, completed: &Completed) {
        // What a child printed is told with its root, whose last words can follow the end of the child.
        let mut page = self.whole_output().await;
        for _ in 0..MAX_LOOKS {
            if all_of(&page, None).matches("so far").count() == N_LINES {
                break;
            }
            tokio::time::sleep(LOOK).await;
            page = self.whole_output().await;
        }
        let all = all_of(&page, None);
        // A program may print in pieces, and the debugger between them.
        let logged = numbers_after(&all, "log: ");
        if !logged.is_empty() {
            self.line(&format!("logged {}", logged.join(" ")));
            self.features.set("log point", logged.last().is_some_and(|last| *last == "10"));
        }
        let n_lines = all.matches("so far").count();
        self.line(&format!("printed {n_lines} lines"));
        // A program that is killed takes what it has not written with it.
        if !self.transcript.contains("== crash") {
            self.features.set("exit code", completed.exit_code == Some(0));
            let printed = all_of(&page, Some(Category::Stdout));
            self.features.set("output", printed.matches("so far").count() == N_LINES);
        }
    }

    async fn whole_output(&self) -> OutputPage {
        let statuses = self.debugger.statuses().await;
        let root = statuses.iter().rfind(|status| status.parent.is_none()).map(|status| status.id.clone());
        let all = OutputWish { session: root, since: Some(0), categories: Vec::new(), max_bytes: 1 << 20 };
        self.debugger.output(all).await.unwrap()
    }

    fn at(&self, line: u32) -> SetBreakpoint {
        SetBreakpoint { path: self.source.clone(), line, ..SetBreakpoint::default() }
    }

    async fn set(&mut self, wish: SetBreakpoint) -> i64 {
        match self.debugger.set_breakpoint(wish).await {
            Ok(breakpoint) => breakpoint.id,
            Err(error) => {
                self.error(&error);
                0
            }
        }
    }

    async fn list(&mut self) {
        for breakpoint in self.debugger.breakpoints().await {
            self.breakpoint(&breakpoint);
        }
    }

    async fn start(&mut self, args: &[&str], stop_on_entry: bool) -> Result<Waited, DebugError> {
        let launch = Launch {
            adapter: Some(self.adapter.clone()),
            program: self.program.clone(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            stop_on_entry,
            ..Launch::default()
        };
        let start = self.debugger.configure(&Wish::Launch(launch)).await.unwrap();
        let waited = self.debugger.start(start, wait()).await;
        self.waited(&waited);
        waited
    }

    async fn resume(&mut self, stop: StopEvent, how: Resume) -> Result<Waited, DebugError> {
        self.line(&format!("> {how:?}"));
        let wish = ResumeWish::new(Some(stop.session.clone()), Some(stop.thread_id), how);
        let waited = self.debugger.resume_as(wish, wait()).await;
        self.waited(&waited);
        waited
    }

    async fn evaluate(&mut self, stop: &StopEvent, expression: &str) -> Result<String, DebugError> {
        let frame_id = stop.call_stack[0].frame_id;
        let evaluate = Evaluate { expression: expression.to_owned(), frame_id, context: None };
        let value = self.debugger.evaluate(evaluate).await.map(|value| value.result);
        match &value {
            Ok(value) => self.line(&format!("{expression} = {value}")),
            Err(error) => self.line(&format!("{expression} is an error: {}", error.kind())),
        }
        value
    }

    fn waited(&mut self, waited: &Result<Waited, DebugError>) {
        match waited {
            Ok(Waited::Stopped(stop)) => self.stopped(stop),
            Ok(Waited::Completed(completed)) => {
                let code =
                    completed.exit_code.map_or("no exit code".to_owned(), |code| format!("exit code {code}"));
                let note = completed.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
                self.line(&format!("completed with {code}{note}"));
            }
            Ok(Waited::TimedOut { .. }) => self.line("timed out"),
            Ok(Waited::Interrupted { .. }) => self.line("interrupted"),
            Err(error) => self.error(error),
        }
    }

    fn stopped(&mut self, stop: &StopEvent) {
        let own = stop.call_stack.iter().filter(|frame| self.is_own(&frame.file_path));
        let frames: Vec<String> =
            own.map(|frame| format!("{}:{}", frame.function_name, frame.line_number)).collect();
        let hit = stop.hit_breakpoint_ids.as_ref().map(|hit| format!(" {hit:?}")).unwrap_or_default();
        let inside = stop.call_stack.first().is_some_and(|frame| !self.is_own(&frame.file_path));
        let inside = if inside { "the library < " } else { "" };
        let mut text = format!("stopped by {}{hit} in {inside}{}", stop.reason, frames.join(" < "));
        let names = ["left", "right", "total", "number"];
        for variable in variables(stop).filter(|variable| names.contains(&variable.name.as_str())) {
            // What has no value yet holds what was there before, or is not told.
            let has_none = stop.line == Some(i64::from(ADDITION)) || stop.reason == "entry";
            if variable.name == "total" && has_none {
                continue;
            }
            let value = &variable.value;
            write!(text, " {}={value}", variable.name).unwrap();
        }
        self.line(&text);
    }

    fn breakpoint(&mut self, breakpoint: &Breakpoint) {
        let state = if breakpoint.verified { "verified" } else { "not verified" };
        let message = breakpoint.message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
        self.line(&format!("breakpoint {} on line {} {state}{message}", breakpoint.id, breakpoint.line));
    }

    fn error(&mut self, error: &DebugError) {
        self.line(&format!("error {}: {error}", error.kind()));
    }

    /// A line of the transcript, with a plain folder.
    fn line(&mut self, text: &str) {
        let text = text.replace(&format!("{}/", self.folder.display()), "");
        writeln!(self.transcript, "{text}").unwrap();
    }

    fn is_own(&self, path: &str) -> bool {
        Path::new(path) == self.source
    }
}

/// The text of a category, or of all.
fn all_of(page: &OutputPage, category: Option<Category>) -> String {
    let chosen =
        page.entries.iter().filter(|entry| category.is_none_or(|category| entry.category == category));
    chosen.map(|entry| entry.text.as_str()).collect()
}

/// What stands after each `sign`, as far as it is a number.
fn numbers_after<'a>(text: &'a str, sign: &str) -> Vec<&'a str> {
    let number = |rest: &'a str| &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
    text.split(sign).skip(1).map(number).collect()
}

fn wait() -> Wait {
    Wait { timeout: PATIENCE, cancelled: CancellationToken::new() }
}

fn stop_of(waited: &Result<Waited, DebugError>) -> Option<&StopEvent> {
    match waited {
        Ok(Waited::Stopped(stop)) => Some(stop),
        _ => None,
    }
}

fn at_line(waited: &Result<Waited, DebugError>, line: u32) -> bool {
    stop_of(waited).is_some_and(|stop| stop.line == Some(i64::from(line)))
}

fn variables(stop: &StopEvent) -> impl Iterator<Item = &Variable> {
    stop.top_frame_variables.iter().flat_map(|scope| &scope.variables)
}

/// The value of the first variable with one of these names.
fn value_of(stop: &StopEvent, names: &[&str]) -> Option<String> {
    let named = variables(stop).find(|variable| names.contains(&variable.name.as_str()));
    named.map(|variable| variable.value.clone())
}

/// Command lines of living processes that name a folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let needle = folder.display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let line = |process: std::fs::DirEntry| {
        let line = std::fs::read(process.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&needle).then_some(line)
    };
    processes.filter_map(line).collect()
}
