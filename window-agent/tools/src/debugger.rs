//! The toolset `debugger`: the 11 tools. Arguments in, verbs of the engine, result out; no state.

mod fault;
mod results;
pub mod schemas;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::results::Waiting;
use super::answer::{Answer, unknown_tool};
use super::arguments::typed;
use super::programs::{BETWEEN_PARTS, Parts};
use super::{outside, programs, redact, stepping, words};
use crate::caller::Caller;
use crate::window::Window;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::launch_config::inputs::Answers;
use baton_agent_base::object::{Object, object};
use baton_agent_debug::Wait;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::ResumeWish;
use baton_agent_debug::types::triggers::{RemoveTriggers, TriggerBreakpoint, TriggerKind};
use baton_agent_debug::types::{
    Breakpoint, Evaluate, Paging, RemoveBreakpoint, Resume, SessionId, SetBreakpoint, Start, Waited,
};

/// How long a tool waits when the client does not say.
const DEFAULT_TIMEOUT_S: f64 = 30.0;
/// Variables in a page when the client does not say.
const DEFAULT_COUNT: usize = 100;

/// Characters of a variable's value when the client does not say.
const DEFAULT_VALUE_LEN: usize = 256;
/// Characters of an expression's result when the client does not say.
const DEFAULT_RESULT_LEN: usize = 4_096;

/// Runs a tool on arguments that its schema allows.
pub async fn call(window: &Window, tool: &str, arguments: Object, caller: Caller) -> Answer {
    let result = match tool {
        "get_debugger_configurations" => get_debugger_configurations(window).await,
        "set_breakpoint" => set_breakpoint(window, arguments, &caller).await,
        "remove_breakpoint" => remove_breakpoint(window, arguments, &caller).await,
        "get_breakpoints" => get_breakpoints(window, &caller).await,
        // The engine's futures are large; on the heap they do not weigh on every other call.
        "start_debugging" => Box::pin(start_debugging(window, arguments, caller)).await,
        "continue_debugging" => Box::pin(continue_debugging(window, arguments, caller)).await,
        "step_execution" => Box::pin(step_execution(window, arguments, caller)).await,
        "get_scopes" => get_scopes(window, arguments).await,
        "get_variables" => get_variables(window, arguments).await,
        "evaluate_expression" => evaluate_expression(window, arguments).await,
        "stop_debugging" => stop_debugging(window, arguments, caller).await,
        other => Err(unknown_tool(other)),
    };
    result.into()
}

async fn get_debugger_configurations(window: &Window) -> Result<Object, Fault> {
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

async fn set_breakpoint(window: &Window, arguments: Object, caller: &Caller) -> Result<Object, Fault> {
    let arguments: schemas::SetBreakpoint = typed(arguments)?;
    let path = outside::file(window, &arguments.file_path).await?;
    // An empty text is what some clients send for an argument they leave out.
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let wish = SetBreakpoint {
        path,
        line: arguments.line_number,
        column: arguments.column_number,
        condition: given(arguments.condition),
        hit_condition: given(arguments.hit_condition),
        log_message: given(arguments.log_message),
        owner: caller.owner(),
    };
    let set = vec![window.debugger.set_breakpoint(wish).await.map_err(fault::told)?];
    let set = programs::with_changes(window, set).await;
    let mut entry = set.iter().map(results::breakpoint).next().unwrap_or_default();
    entry.insert("timestamp".to_owned(), results::timestamp(Timestamp::now()));
    let mut answer = success();
    answer.insert("breakpoint".to_owned(), Value::Object(entry));
    Ok(answer)
}

async fn remove_breakpoint(window: &Window, arguments: Object, caller: &Caller) -> Result<Object, Fault> {
    let arguments: schemas::RemoveBreakpoint = typed(arguments)?;
    let which = match (arguments.breakpoint_id, arguments.location, arguments.clear_all) {
        (Some(id), None, None) => RemoveBreakpoint::Id(id),
        (None, Some(location), None) => {
            let path = programs::file_of_breakpoint(window, caller, &location.file_path).await?;
            RemoveBreakpoint::Location { path, line: location.line_number, owner: caller.owner() }
        }
        (None, None, Some(_)) => RemoveBreakpoint::Of(caller.owner()),
        _ => {
            return Err(Fault::new(
                Kind::InvalidArguments,
                "remove_breakpoint: give exactly one of \"breakpoint_id\", \"location\" and \"clear_all\".",
            )
            .hint("For example {\"breakpoint_id\": 3}, or {\"clear_all\": true} for all of them."));
        }
    };
    let is_all = matches!(which, RemoveBreakpoint::Of(_));
    let trigger = match which {
        RemoveBreakpoint::Id(id) => Some(RemoveTriggers::Id(id)),
        _ => None,
    };
    let lines = window.debugger.remove_breakpoint(which.clone()).await;
    if let (Err(DebugError::NoSuchBreakpoint { .. }), RemoveBreakpoint::Location { path, .. }) =
        (&lines, which)
    {
        outside::own(window, path).await?;
    }
    let mut removed: Vec<i64> = match (lines, trigger) {
        (Err(DebugError::NoSuchBreakpoint { .. }), Some(trigger)) => {
            let triggers = window.debugger.remove_triggers(trigger).await.map_err(fault::told)?;
            triggers.iter().map(|trigger| trigger.id).collect()
        }
        (lines, _) => lines.map_err(fault::told)?.iter().map(|breakpoint| breakpoint.id).collect(),
    };
    // What stops at exceptions is a choice, and no breakpoint.
    for kind in
        [TriggerKind::Function, TriggerKind::Instruction, TriggerKind::Data].into_iter().filter(|_| is_all)
    {
        let own = RemoveTriggers::Of(kind, caller.owner());
        let triggers = window.debugger.remove_triggers(own).await.map_err(fault::told)?;
        removed.extend(triggers.iter().map(|trigger| trigger.id));
    }
    let ids: Vec<String> = removed.iter().map(i64::to_string).collect();
    let others = if is_all { of_others(window).await } else { Vec::new() };
    let message = match (is_all, removed.len()) {
        (true, 0) if others.is_empty() => "There were no breakpoints.".to_owned(),
        (true, n_removed) if others.is_empty() => format!("Removed all breakpoints ({n_removed})."),
        (true, n_removed) => format!(
            "Removed all breakpoints of this client ({n_removed}). Left alone: {}. Remove one by its ID.",
            some(&others)
        ),
        (false, 1) => format!("Removed the breakpoint with ID {}.", ids.join(", ")),
        (false, _) => format!("Removed the breakpoints with IDs {}.", ids.join(", ")),
    };
    let mut answer = success();
    answer.insert("message".to_owned(), message.into());
    answer.insert("removed".to_owned(), json!(removed));
    Ok(answer)
}

/// Some of these; a model pays for each.
fn some(all: &[String]) -> String {
    const MAX_TOLD: usize = 10;
    let told = all.iter().take(MAX_TOLD).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MAX_TOLD) {
        0 => told,
        n_more => format!("{told}, and {n_more} more"),
    }
}

/// What a client that removes its own leaves there.
async fn of_others(window: &Window) -> Vec<String> {
    let whose = |owner: &Option<String>| if owner.is_some() { "another client's" } else { "the user's" };
    let view = window.workspace().view();
    let place = |known: &Breakpoint| format!("at {}:{}", view.relative(&known.path), known.line);
    let lines = window.debugger.breakpoints().await;
    let lines = lines.iter().map(|known| (known.id, &known.owner, place(known)));
    let triggers = window.debugger.triggers().await;
    let is_breakpoint = |known: &&TriggerBreakpoint| known.trigger.kind() != TriggerKind::Exception;
    let triggers = triggers.iter().filter(is_breakpoint);
    let triggers = triggers.map(|known| (known.id, &known.owner, known.trigger.describe()));
    let all = lines.chain(triggers);
    all.map(|(id, owner, place)| format!("{id} ({}, {place})", whose(owner))).collect()
}

async fn get_breakpoints(window: &Window, caller: &Caller) -> Result<Object, Fault> {
    let mut breakpoints = programs::with_changes(window, window.debugger.breakpoints().await).await;
    for known in breakpoints.iter_mut().filter(|known| !caller.is_stopped_by(window, &known.owner)) {
        known.message = Some("another client's: it stops that client's programs only".to_owned());
    }
    let entries: Vec<Object> = breakpoints.iter().map(results::breakpoint).collect();
    let mut answer = success();
    answer.insert("timestamp".to_owned(), results::timestamp(Timestamp::now()));
    answer.insert("breakpoints".to_owned(), json!(entries));
    Ok(answer)
}

async fn start_debugging(window: &Window, arguments: Object, caller: Caller) -> Result<Object, Fault> {
    let arguments: schemas::Start = typed(arguments)?;
    let (name, file) = (&arguments.configuration_name, arguments.file.as_deref());
    let whole = wait(arguments.timeout, caller.cancelled.clone());
    let Parts { names, mut notes, stop_together } =
        Parts::of(window, name, file, Some(whole.clone())).await?;
    let mut begun: Vec<Waited> = Vec::new();
    for (idx, part) in names.iter().enumerate() {
        let is_last = idx + 1 == names.len();
        let timeout = if is_last { whole.timeout } else { BETWEEN_PARTS.min(whole.timeout) };
        let started = async {
            let tasks = Some(whole.clone());
            let configured = programs::configured(window, part, file, tasks, &Answers::default()).await?;
            notes.extend(configured.notes);
            let no_debug = arguments.no_debug.unwrap_or(false);
            let start = Start { no_debug, owner: caller.id.clone(), ..configured.start };
            let waited = window.debugger.start(start, Wait { timeout, ..whole.clone() }).await;
            let waited = waited.map_err(fault::told)?;
            window.run_after(waited.session(), configured.after);
            Ok(waited)
        };
        match started.await {
            Ok(waited) => begun.push(waited),
            Err(fault) => {
                let begun = begun.iter().map(|waited| waited.session().clone()).collect();
                return Err(programs::part_failed(window, part, begun, fault).await);
            }
        }
    }
    if stop_together {
        window.bind(begun.iter().map(|waited| waited.session().clone()).collect());
    }
    // One that stopped first.
    let is_stop = |waited: &Waited| matches!(waited, Waited::Stopped(_));
    let told = begun.iter().rposition(is_stop).unwrap_or(begun.len().saturating_sub(1));
    let waited = begun.remove(told);
    let others = names.iter().enumerate().filter(|(idx, _)| *idx != told).map(|(_, part)| part);
    notes.extend(others.zip(&begun).map(|(part, waited)| also(part, waited)));
    let mut answer = about(window, waited, Waiting::Start).await;
    results::insert_notes(&mut answer, notes);
    Ok(answer)
}

/// What became of another part of a compound.
fn also(part: &str, waited: &Waited) -> String {
    let stands = match waited {
        Waited::Stopped(_) => "stopped",
        Waited::Completed(_) => "ended",
        Waited::TimedOut { .. } | Waited::Interrupted { .. } => "running",
    };
    format!("Also started: {part} (session_id {}), which is {stands}.", waited.session().as_str())
}

async fn continue_debugging(window: &Window, arguments: Object, caller: Caller) -> Result<Object, Fault> {
    let arguments: schemas::Continue = typed(arguments)?;
    let session = arguments.session_id.map(SessionId).or(caller.session);
    let wait = wait(arguments.timeout, caller.cancelled);
    let waited = window
        .debugger
        .resume(session.as_ref(), arguments.thread_id, Resume::Continue, wait)
        .await
        .map_err(fault::told)?;
    Ok(about(window, waited, Waiting::Continue).await)
}

async fn step_execution(window: &Window, arguments: Object, caller: Caller) -> Result<Object, Fault> {
    let arguments: schemas::Step = typed(arguments)?;
    let session = arguments.session_id.map(SessionId).or(caller.session);
    let how = match arguments.step_type {
        schemas::StepType::Over => Resume::StepOver,
        schemas::StepType::Into => Resume::StepInto,
        schemas::StepType::Out => Resume::StepOut,
    };
    let wish = ResumeWish::new(session, Some(arguments.thread_id), how);
    let n_steps = arguments.count.unwrap_or(1);
    let stepped = stepping::run(window, wish, n_steps, wait(arguments.timeout, caller.cancelled)).await;
    let (steps, last) = stepped.map_err(fault::told)?;
    let mut answer = about(window, last, Waiting::Step).await;
    if !steps.is_empty() {
        let steps: Vec<Value> = steps.into_iter().map(results::step).collect();
        answer.insert("steps".to_owned(), steps.into());
    }
    Ok(answer)
}

/// The answer of a tool that waits; of a program that still runs with where it is, as no tool pauses it.
async fn about(window: &Window, waited: Waited, waiting: Waiting) -> Object {
    let running = match &waited {
        Waited::TimedOut { session, .. } => Some(session.clone()),
        _ => None,
    };
    let mut answer = results::waited(shown(window, waited), waiting);
    if let Some(session) = running
        && let Ok(Some(activity)) = window.debugger.activity(Some(&session)).await
        && let Some(Value::String(message)) = answer.get_mut("message")
    {
        let view = window.workspace().view();
        message.push_str(&format!(" {}", words::doing(&activity.doing, &view)));
    }
    answer
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

async fn get_scopes(window: &Window, arguments: Object) -> Result<Object, Fault> {
    let arguments: schemas::Scopes = typed(arguments)?;
    let scopes = window.debugger.scopes(arguments.frame_id).await.map_err(fault::told)?;
    let mut answer = success();
    answer.insert("scopes".to_owned(), scopes.iter().map(results::scope).collect());
    Ok(answer)
}

async fn get_variables(window: &Window, arguments: Object) -> Result<Object, Fault> {
    let arguments: schemas::Variables = typed(arguments)?;
    let paging = Paging { start: arguments.start, count: Some(arguments.count.unwrap_or(DEFAULT_COUNT)) };
    let mut page =
        window.debugger.variables(arguments.variables_reference, paging).await.map_err(fault::told)?;
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

async fn evaluate_expression(window: &Window, arguments: Object) -> Result<Object, Fault> {
    let arguments: schemas::Evaluate = typed(arguments)?;
    let evaluate = Evaluate {
        expression: arguments.expression.clone(),
        frame_id: arguments.frame_id,
        context: arguments.context,
    };
    let evaluated = window.debugger.evaluate(evaluate).await.map_err(fault::told)?;
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

async fn stop_debugging(window: &Window, arguments: Object, caller: Caller) -> Result<Object, Fault> {
    let arguments: schemas::Stop = typed(arguments)?;
    let session = arguments.session_id.map(SessionId).or(caller.session);
    let stopped = window.stop(session.as_ref()).await.map_err(fault::told)?.session;
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
