//! A small program debugged with an adapter, from its start to its end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::step::{self, program};
use baton_agent_debug::adapter::Adapter;
use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::probe;
use baton_agent_debug::types::{Evaluate, RemoveBreakpoint, Resume, SetBreakpoint, StopEvent, Waited};
use baton_agent_debug::{Debugger, DebuggerOptions, Wait, program_on_path};

/// How long the program may take to the breakpoint; Go builds it first.
const PATIENCE: Duration = Duration::from_secs(60);

/// The line of `total = left + right` in each of the programs.
const LINE: u32 = 12;

/// A program in a language.
struct Sample {
    language: &'static str,
    file: &'static str,
    text: &'static str,
    /// What builds it in its folder, and what is started then.
    build: Option<(&'static [&'static str], &'static str)>,
    /// An expression that is 0 when the breakpoint is hit first.
    expression: &'static str,
}

/// The programs that the tests use too.
const SAMPLES: [Sample; 8] = [
    sample("Python", "sums.py", include_str!("../../../tests/fixtures/languages/sums.py"), None),
    sample("JavaScript", "sums.js", include_str!("../../../tests/fixtures/languages/sums.js"), None),
    sample(
        "C",
        "sums.c",
        include_str!("../../../tests/fixtures/languages/sums.c"),
        Some((&["cc", "-g", "-O0", "-o", "sums", "sums.c"], "sums")),
    ),
    sample(
        "C++",
        "sums.cpp",
        include_str!("../../../tests/fixtures/languages/sums.cpp"),
        Some((&["c++", "-g", "-O0", "-o", "sums", "sums.cpp"], "sums")),
    ),
    sample(
        "Rust",
        "sums.rs",
        include_str!("../../../tests/fixtures/languages/sums.rs"),
        Some((&["rustc", "--edition", "2024", "-g", "-o", "sums", "sums.rs"], "sums")),
    ),
    sample("Go", "sums.go", include_str!("../../../tests/fixtures/languages/go/sums.go"), None),
    sample(
        "Java",
        "Sums.java",
        include_str!("../../../tests/fixtures/languages/java/Sums.java"),
        Some((&["javac", "-g", "-d", "out", "Sums.java"], "Sums.java")),
    ),
    Sample {
        language: "Bash",
        file: "sums.sh",
        text: include_str!("../../../tests/fixtures/languages/sums.sh"),
        build: None,
        expression: "$((total * 2))",
    },
];

const fn sample(
    language: &'static str,
    file: &'static str,
    text: &'static str,
    build: Option<(&'static [&'static str], &'static str)>,
) -> Sample {
    Sample { language, file, text, build, expression: "left + right" }
}

/// Debugs the sample of the adapter's first language that can be built here; says what was seen.
pub(super) async fn check(adapter: &Adapter, options: &DebuggerOptions) -> Result<String, String> {
    probe::probe(adapter, options).await?;
    let known = |language: &String| SAMPLES.iter().find(|sample| sample.language == language);
    let samples: Vec<&Sample> = adapter.languages.iter().filter_map(known).collect();
    let builds = |sample: &&&Sample| {
        let compiler = sample.build.map(|(words, _)| words[0]);
        compiler.is_none_or(|name| program_on_path(name, options.search_path.as_deref()).is_some())
    };
    let Some(sample) = samples.iter().find(builds) else {
        let needed: Vec<&str> = samples.iter().filter_map(|sample| Some(sample.build?.0[0])).collect();
        return if needed.is_empty() {
            Ok(format!("starts and responds (no sample for {})", adapter.languages.join(", ")))
        } else {
            Err(format!("starts and responds ({} is required to build a sample)", needed.join(" or ")))
        };
    };
    let folder = std::env::temp_dir().join(format!("baton-check-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let checked = debug(adapter, sample, &folder, options).await;
    let _ = std::fs::remove_dir_all(&folder);
    checked
}

async fn debug(
    adapter: &Adapter,
    sample: &Sample,
    folder: &Path,
    options: &DebuggerOptions,
) -> Result<String, String> {
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    let source = folder.join(sample.file);
    std::fs::write(&source, sample.text).map_err(|error| error.to_string())?;
    let mut to_start = source.clone();
    if let Some((words, built)) = sample.build {
        let mut build = program(words[0], words[1..].iter().copied());
        build.cwd = Some(folder.clone());
        step::run("building the sample", &build).await?;
        to_start = folder.join(built);
    }
    let debugger = Debugger::spawn(DebuggerOptions { folders: vec![folder], ..options.clone() });
    let seen = play(&debugger, adapter, sample, (source, to_start)).await;
    debugger.stop_all().await;
    seen
}

async fn play(
    debugger: &Debugger,
    adapter: &Adapter,
    sample: &Sample,
    (path, program): (PathBuf, PathBuf),
) -> Result<String, String> {
    let wait = || Wait { timeout: PATIENCE, cancelled: CancellationToken::new() };
    let begun = Instant::now();
    let breakpoint = SetBreakpoint { path, line: LINE, ..SetBreakpoint::default() };
    debugger.set_breakpoint(breakpoint).await.map_err(|error| error.to_string())?;
    let launch = Launch { adapter: Some(adapter.name.clone()), program, ..Launch::default() };
    let start = debugger.configure(&Wish::Launch(launch)).await.map_err(|error| error.to_string())?;
    let waited = debugger.start(start, wait()).await.map_err(|error| error.to_string())?;
    let stop = stop_at_line(waited)?;
    let ms = begun.elapsed().as_millis();
    let frame_id = stop.call_stack.first().map_or(0, |frame| frame.frame_id);
    let evaluate = Evaluate { expression: sample.expression.to_owned(), frame_id, context: None };
    let value = debugger.evaluate(evaluate).await.map_err(|error| error.to_string())?.result;
    if value != "0" {
        return Err(format!("{} is {value} instead of 0", sample.expression));
    }
    debugger.remove_breakpoint(RemoveBreakpoint::All).await.map_err(|error| error.to_string())?;
    let mut stop = stop;
    // Java's tells the same stop twice.
    for _ in 0..2 {
        let going = debugger.resume(Some(&stop.session), stop.thread_id, Resume::Continue, wait());
        match going.await.map_err(|error| error.to_string())? {
            Waited::Completed(_) => {
                let language = sample.language;
                return Ok(format!(
                    "a {language} program stopped at its breakpoint after {ms} ms, then exited"
                ));
            }
            Waited::Stopped(again) => stop = *again,
            other => return Err(format!("the program did not exit: {other:?}")),
        }
    }
    Err("the program stops although its breakpoint is removed".to_owned())
}

fn stop_at_line(waited: Waited) -> Result<StopEvent, String> {
    match waited {
        Waited::Stopped(stop) if stop.line == Some(i64::from(LINE)) => Ok(*stop),
        Waited::Stopped(stop) => {
            Err(format!("it stopped at line {:?} ({}) instead of line {LINE}", stop.line, stop.reason))
        }
        Waited::Completed(completed) => {
            let end: String = completed.output.text.chars().take(200).collect();
            Err(format!("the program exited without stopping at its breakpoint: {end}"))
        }
        Waited::TimedOut { .. } | Waited::Interrupted { .. } => {
            Err(format!("timed out waiting for the breakpoint ({} s)", PATIENCE.as_secs()))
        }
    }
}
