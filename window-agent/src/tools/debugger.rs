//! The toolset `debugger`: the 11 tools. Arguments in, verbs of the engine, result out; no state.

mod results;
pub mod schemas;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::results::Waiting;
use super::{Answer, Object, ToolError, object, programs, redact, typed, words};
use crate::debug::types::{
    Evaluate, OutputTail, Paging, RemoveBreakpoint, Resume, SessionId, SetBreakpoint, Start, Wait, Waited,
};
use crate::launch_config;
use crate::paths::{self, Given};
use crate::window::Window;

/// How long a tool waits when the client does not say.
const DEFAULT_TIMEOUT_S: f64 = 30.0;
/// Variables in a page when the client does not say.
const DEFAULT_COUNT: usize = 100;

/// Characters of a variable's value when the client does not say.
const DEFAULT_VALUE_LEN: usize = 256;
/// Characters of an expression's result when the client does not say.
const DEFAULT_RESULT_LEN: usize = 4_096;

/// Runs a tool on arguments that its schema allows.
pub async fn call(window: &Window, tool: &str, arguments: Object, cancelled: CancellationToken) -> Answer {
    let result = match tool {
        "get_debugger_configurations" => get_debugger_configurations(window).await,
        "set_breakpoint" => set_breakpoint(window, arguments).await,
        "remove_breakpoint" => remove_breakpoint(window, arguments).await,
        "get_breakpoints" => get_breakpoints(window).await,
        // The engine's futures are large; on the heap they do not weigh on every other call.
        "start_debugging" => Box::pin(start_debugging(window, arguments, cancelled)).await,
        "continue_debugging" => Box::pin(continue_debugging(window, arguments, cancelled)).await,
        "step_execution" => Box::pin(step_execution(window, arguments, cancelled)).await,
        "get_scopes" => get_scopes(window, arguments).await,
        "get_variables" => get_variables(window, arguments).await,
        "evaluate_expression" => evaluate_expression(window, arguments).await,
        "stop_debugging" => stop_debugging(window, arguments).await,
        other => Err(super::CATALOGUE.unknown(other)),
    };
    result.into()
}

async fn get_debugger_configurations(window: &Window) -> Result<Object, ToolError> {
    let all = window.workspace().configurations().await?;
    let entries =
        |list: Vec<(usize, Object)>| -> Vec<Object> { list.into_iter().map(|(_, entry)| entry).collect() };
    let mut answer = success();
    answer.insert("configurations".to_owned(), json!(entries(all.configurations)));
    if !all.compounds.is_empty() {
        answer.insert("compounds".to_owned(), json!(entries(all.compounds)));
    }
    results::insert_notes(&mut answer, all.notes);
    Ok(answer)
}

#[derive(Deserialize)]
struct SetBreakpointArguments {
    file_path: String,
    line_number: u32,
    column_number: Option<u32>,
    condition: Option<String>,
    hit_condition: Option<String>,
    log_message: Option<String>,
}

async fn set_breakpoint(window: &Window, arguments: Object) -> Result<Object, ToolError> {
    let arguments: SetBreakpointArguments = typed(arguments)?;
    let path = window.workspace().resolve_file(&arguments.file_path).await?;
    // An empty text is what some clients send for an argument they leave out.
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let wish = SetBreakpoint {
        path,
        line: arguments.line_number,
        column: arguments.column_number,
        condition: given(arguments.condition),
        hit_condition: given(arguments.hit_condition),
        log_message: given(arguments.log_message),
    };
    let set = vec![window.debugger.set_breakpoint(wish).await?];
    let set = programs::with_changes(window, set).await;
    let mut entry = set.iter().map(results::breakpoint).next().unwrap_or_default();
    entry.insert("timestamp".to_owned(), results::timestamp(Timestamp::now()));
    let mut answer = success();
    answer.insert("breakpoint".to_owned(), Value::Object(entry));
    Ok(answer)
}

#[derive(Deserialize)]
struct RemoveBreakpointArguments {
    breakpoint_id: Option<i64>,
    location: Option<Location>,
    clear_all: Option<bool>,
}

#[derive(Deserialize)]
struct Location {
    file_path: String,
    line_number: u32,
}

async fn remove_breakpoint(window: &Window, arguments: Object) -> Result<Object, ToolError> {
    let arguments: RemoveBreakpointArguments = typed(arguments)?;
    let which = match (arguments.breakpoint_id, arguments.location, arguments.clear_all) {
        (Some(id), None, None) => RemoveBreakpoint::Id(id),
        (None, Some(location), None) => {
            let path = match window.workspace().resolve_file(&location.file_path).await {
                Ok(path) => path,
                // A breakpoint in a file that was deleted since can still be removed.
                Err(error) => match paths::parse(&location.file_path) {
                    Ok(Given::Absolute(path)) => path,
                    _ => return Err(error),
                },
            };
            RemoveBreakpoint::Location { path, line: location.line_number }
        }
        (None, None, Some(_)) => RemoveBreakpoint::All,
        _ => {
            return Err(ToolError::new(
                "invalid_arguments",
                "remove_breakpoint: give exactly one of \"breakpoint_id\", \"location\" and \"clear_all\".",
            )
            .hint("For example {\"breakpoint_id\": 3}, or {\"clear_all\": true} for all of them."));
        }
    };
    let is_all = which == RemoveBreakpoint::All;
    let removed: Vec<i64> =
        window.debugger.remove_breakpoint(which).await?.iter().map(|breakpoint| breakpoint.id).collect();
    let ids: Vec<String> = removed.iter().map(i64::to_string).collect();
    let message = match (is_all, removed.len()) {
        (true, 0) => "There were no breakpoints.".to_owned(),
        (true, n_removed) => format!("Removed all breakpoints ({n_removed})."),
        (false, 1) => format!("Removed the breakpoint with ID {}.", ids.join(", ")),
        (false, _) => format!("Removed the breakpoints with IDs {}.", ids.join(", ")),
    };
    let mut answer = success();
    answer.insert("message".to_owned(), message.into());
    answer.insert("removed".to_owned(), json!(removed));
    Ok(answer)
}

async fn get_breakpoints(window: &Window) -> Result<Object, ToolError> {
    let breakpoints = programs::with_changes(window, window.debugger.breakpoints().await).await;
    let entries: Vec<Object> = breakpoints.iter().map(results::breakpoint).collect();
    let mut answer = success();
    answer.insert("timestamp".to_owned(), results::timestamp(Timestamp::now()));
    answer.insert("breakpoints".to_owned(), json!(entries));
    Ok(answer)
}

#[derive(Deserialize)]
struct StartArguments {
    configuration_name: String,
    no_debug: Option<bool>,
    file: Option<String>,
    timeout: Option<f64>,
}

async fn start_debugging(
    window: &Window,
    arguments: Object,
    cancelled: CancellationToken,
) -> Result<Object, ToolError> {
    let arguments: StartArguments = typed(arguments)?;
    let file = match &arguments.file {
        Some(file) => Some(window.workspace().resolve_file(file).await?),
        None => None,
    };
    let name = &arguments.configuration_name;
    // An editor completes a configuration itself, but it has no say in which file an AI client means.
    let left_to_editor = window.debugger.has_editor() && file.is_none();
    let (folder, configuration, notes) = if left_to_editor {
        let (folder, configuration) = window.workspace().written_configuration(name).await?;
        (Some(folder), configuration, Vec::new())
    } else {
        let (configuration, notes) = window.workspace().configuration(name, file).await?;
        (None, configuration, notes)
    };
    let name = launch_config::name_of(&configuration).unwrap_or(name).to_owned();
    let no_debug = arguments.no_debug.unwrap_or(false);
    let start = Start { configuration, name, folder, left_to_editor, no_debug, ..Start::default() };
    let waited = window.debugger.start(start, wait(arguments.timeout, cancelled)).await?;
    let mut answer = results::waited(shown(window, waited), Waiting::Start);
    results::insert_notes(&mut answer, notes);
    Ok(answer)
}

#[derive(Deserialize)]
struct ContinueArguments {
    session_id: Option<String>,
    thread_id: i64,
    timeout: Option<f64>,
}

async fn continue_debugging(
    window: &Window,
    arguments: Object,
    cancelled: CancellationToken,
) -> Result<Object, ToolError> {
    let arguments: ContinueArguments = typed(arguments)?;
    let session = arguments.session_id.map(SessionId);
    let wait = wait(arguments.timeout, cancelled);
    let waited =
        window.debugger.resume(session.as_ref(), arguments.thread_id, Resume::Continue, wait).await?;
    Ok(results::waited(shown(window, waited), Waiting::Continue))
}

#[derive(Deserialize)]
struct StepArguments {
    session_id: Option<String>,
    thread_id: i64,
    step_type: StepType,
    count: Option<usize>,
    timeout: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum StepType {
    Over,
    Into,
    Out,
}

async fn step_execution(
    window: &Window,
    arguments: Object,
    cancelled: CancellationToken,
) -> Result<Object, ToolError> {
    let arguments: StepArguments = typed(arguments)?;
    let session = arguments.session_id.map(SessionId);
    let how = match arguments.step_type {
        StepType::Over => Resume::StepOver,
        StepType::Into => Resume::StepInto,
        StepType::Out => Resume::StepOut,
    };
    let started = Instant::now();
    let whole = wait(arguments.timeout, cancelled);
    let n_steps = arguments.count.unwrap_or(1);
    // Where the first step begins, to tell what it changes.
    let mut before = match n_steps {
        1 => None,
        _ => window.debugger.status(session.as_ref()).await?.last_stop,
    };
    let (mut steps, mut printed) = (Vec::new(), OutputTail::default());
    loop {
        let wait = Wait { timeout: whole.timeout.saturating_sub(started.elapsed()), ..whole.clone() };
        let waited = window.debugger.resume(session.as_ref(), arguments.thread_id, how, wait).await?;
        let waited = shown(window, waited);
        match waited {
            Waited::Stopped(mut stop) if stop.reason == "step" && steps.len() + 1 < n_steps => {
                printed = words::joined(printed, std::mem::take(&mut stop.output));
                steps.push(results::step(&stop, before.as_deref()));
                before = Some(stop);
            }
            mut last => {
                let output = match &mut last {
                    Waited::Stopped(stop) => &mut stop.output,
                    Waited::Completed(completed) => &mut completed.output,
                    Waited::TimedOut { output, .. } | Waited::Interrupted { output, .. } => output,
                };
                *output = words::joined(printed, std::mem::take(output));
                let mut answer = results::waited(last, Waiting::Step);
                if !steps.is_empty() {
                    answer.insert("steps".to_owned(), steps.into());
                }
                return Ok(answer);
            }
        }
    }
}

/// What clients may see.
fn shown(window: &Window, mut waited: Waited) -> Waited {
    if let Waited::Stopped(stop) = &mut waited
        && window.redacts()
    {
        redact::stop(stop);
    }
    waited
}

#[derive(Deserialize)]
struct ScopesArguments {
    frame_id: i64,
}

async fn get_scopes(window: &Window, arguments: Object) -> Result<Object, ToolError> {
    let arguments: ScopesArguments = typed(arguments)?;
    let scopes = window.debugger.scopes(arguments.frame_id).await?;
    let mut answer = success();
    answer.insert("scopes".to_owned(), scopes.iter().map(results::scope).collect());
    Ok(answer)
}

#[derive(Deserialize)]
struct VariablesArguments {
    variables_reference: i64,
    start: Option<usize>,
    count: Option<usize>,
    max_length: Option<usize>,
}

async fn get_variables(window: &Window, arguments: Object) -> Result<Object, ToolError> {
    let arguments: VariablesArguments = typed(arguments)?;
    let paging = Paging { start: arguments.start, count: Some(arguments.count.unwrap_or(DEFAULT_COUNT)) };
    let mut page = window.debugger.variables(arguments.variables_reference, paging).await?;
    if window.redacts() {
        redact::variables(&mut page.variables);
    }
    let max_length = arguments.max_length.unwrap_or(DEFAULT_VALUE_LEN);
    let entries = page.variables.iter().map(|variable| results::variable_within(variable, max_length));
    let mut answer = success();
    answer.insert("variables".to_owned(), entries.collect());
    if let (Some(start @ 1..), true) = (arguments.start, page.variables.is_empty()) {
        answer.insert("message".to_owned(), format!("There are no variables from {start} on.").into());
    }
    if page.omitted > 0 {
        let next_start = arguments.start.unwrap_or(0) + page.variables.len();
        answer.insert("next_start".to_owned(), json!(next_start));
        answer.insert("total".to_owned(), json!(next_start + page.omitted));
        let message = format!("{} more; get them with start {next_start}.", page.omitted);
        answer.insert("message".to_owned(), message.into());
    }
    Ok(answer)
}

#[derive(Deserialize)]
struct EvaluateArguments {
    expression: String,
    frame_id: i64,
    context: Option<String>,
    max_length: Option<usize>,
}

async fn evaluate_expression(window: &Window, arguments: Object) -> Result<Object, ToolError> {
    let arguments: EvaluateArguments = typed(arguments)?;
    // The expression itself may hold secrets, so the log gets its length alone.
    tracing::info!(
        frame_id = arguments.frame_id,
        length = arguments.expression.len(),
        "evaluates an expression"
    );
    let evaluate = Evaluate {
        expression: arguments.expression.clone(),
        frame_id: arguments.frame_id,
        context: arguments.context,
    };
    let evaluated = window.debugger.evaluate(evaluate).await?;
    let mut answer = success();
    let result = if window.redacts() {
        redact::value(&arguments.expression, &evaluated.result)
    } else {
        evaluated.result
    };
    let max_length = arguments.max_length.unwrap_or(DEFAULT_RESULT_LEN);
    answer.insert("result".to_owned(), words::shorten(&result, max_length).into());
    let n_chars = result.chars().count();
    if n_chars > max_length {
        let message = format!("Cut from {n_chars} characters; max_length gives more.");
        answer.insert("message".to_owned(), message.into());
    }
    if let Some(type_name) = evaluated.type_name {
        answer.insert("type".to_owned(), type_name.into());
    }
    answer.insert("variables_reference".to_owned(), evaluated.variables_reference.into());
    Ok(answer)
}

#[derive(Deserialize)]
struct StopArguments {
    session_id: Option<String>,
}

async fn stop_debugging(window: &Window, arguments: Object) -> Result<Object, ToolError> {
    let arguments: StopArguments = typed(arguments)?;
    let session = arguments.session_id.map(SessionId);
    let stopped = window.debugger.stop(session.as_ref()).await?;
    let mut answer = success();
    answer.insert("message".to_owned(), "The request to stop the debug session was sent.".into());
    answer.insert("session_id".to_owned(), stopped.0.into());
    Ok(answer)
}

fn success() -> Object {
    object(json!({"status": "success"}))
}

fn wait(timeout_s: Option<f64>, cancelled: CancellationToken) -> Wait {
    Wait { timeout: Duration::from_secs_f64(timeout_s.unwrap_or(DEFAULT_TIMEOUT_S)), cancelled }
}
