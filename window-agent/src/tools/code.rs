//! The toolset `code`: reading code by meaning. Arguments in, verbs of the code engine, result out.

mod render;
pub mod schemas;
pub mod truncate;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::render::{Rendered, Window as Lines};
use crate::code::OUTSIDE;
use crate::code::actions::Lines as ActionLines;
use crate::code::change::{Change, Wish};
use crate::code::complete::Place;
use crate::code::navigate::Direction;
use crate::code::references::Wanted;
use crate::tools::{Answer, Object, Spoken, ToolError, words};
use crate::window::{Owner, Window};

/// How long a call may take unless it says otherwise.
const TIMEOUT_S: f64 = 5.0;
/// Tokens of code in one answer unless the call says otherwise.
const MAX_TOKENS: usize = 10_000;
/// References that come with their code unless the call says otherwise.
const N_TEXTS: usize = 15;
/// Places in one answer unless the call says otherwise.
const N_SPOTS: usize = 50;
/// Lines that the preview of a rename shows: each of them shows what all are like.
const N_RENAMED: usize = 12;
/// Lines that the preview of an action shows.
const N_CHANGED: usize = 80;
/// Completions in one answer unless the call says otherwise.
const N_COMPLETIONS: usize = 30;
/// Problems in one answer unless the call says otherwise.
const N_PROBLEMS: usize = 100;

/// Runs a tool on arguments that its schema allows. A cancelled call cancels what it asked of a server.
pub async fn call(window: &Window, tool: &str, arguments: Object, cancelled: CancellationToken) -> Answer {
    let answered = tokio::select! {
        answered = answer(window, tool, arguments) => answered,
        () = cancelled.cancelled() => Err(ToolError::new("interrupted", "The call was interrupted.")),
    };
    match answered {
        Ok((object, text)) => Answer::Spoken(Spoken { texts: vec![text], object, is_error: false }),
        Err(error) => {
            let folders: Vec<PathBuf> =
                window.workspace().folders().iter().map(|folder| folder.path.clone()).collect();
            let error = words::with_relative_candidates(error, &folders);
            Answer::Error(with_owner(window, error).await)
        }
    }
}

/// A file outside the window's folders may be in those of another one.
async fn with_owner(window: &Window, mut error: ToolError) -> ToolError {
    let Some(Value::String(path)) = error.details.remove("path").filter(|_| error.code == OUTSIDE) else {
        return error;
    };
    let Some(owner) = window.owner_of(Path::new(&path)).await else { return error };
    error.message.push_str(&format!(" The window {:?} has it.", owner.name));
    let hint = match owner.is_routed {
        true => format!("Name {:?} in the argument window.", owner.name),
        false => {
            let Owner { name, url, .. } = owner;
            format!(
                "Make {name:?} the live window with activate_window, or use that window's own URL, {url}."
            )
        }
    };
    error.hint(hint)
}

/// What a tool answers: the structure, and a text that says the same in fewer tokens.
pub async fn answer(window: &Window, tool: &str, arguments: Object) -> Result<(Object, String), ToolError> {
    let folders: Vec<PathBuf> =
        window.workspace().folders().iter().map(|folder| folder.path.clone()).collect();
    let rendered = match tool {
        "lcp_get_outline" => get_outline(window, &folders, arguments).await,
        "lcp_read_symbol" => read_symbol(window, &folders, arguments).await,
        "lcp_find_references" => find_references(window, &folders, arguments).await,
        "lcp_get_diagnostics" => get_diagnostics(window, &folders, arguments).await,
        "lcp_navigate" => navigate(window, &folders, arguments).await,
        "lcp_rename" => rename(window, &folders, arguments).await,
        "lcp_apply_edit" => apply_edit(window, &folders, arguments).await,
        "lcp_complete" => complete(window, arguments).await,
        "lcp_code_action" => code_action(window, &folders, arguments).await,
        _ => Err(ToolError::new("unknown_tool", format!("There is no tool named {tool:?}."))),
    };
    rendered.map(|rendered| (rendered.object, rendered.text))
}

fn typed<T: DeserializeOwned>(arguments: Object) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ToolError::new("invalid_arguments", format!("The arguments do not fit: {error}.")))
}

fn deadline(timeout: Option<f64>) -> Instant {
    Instant::now() + Duration::from_secs_f64(timeout.unwrap_or(TIMEOUT_S).clamp(1.0, 300.0))
}

#[derive(Deserialize)]
struct GetOutline {
    file_path: String,
    depth: Option<usize>,
    format: Option<String>,
    timeout: Option<f64>,
}

async fn get_outline(window: &Window, folders: &[PathBuf], arguments: Object) -> Result<Rendered, ToolError> {
    let arguments: GetOutline = typed(arguments)?;
    let outline =
        window.code.outline(&window.workspace(), &arguments.file_path, deadline(arguments.timeout)).await?;
    let as_lines = arguments.format.as_deref() == Some("lines");
    Ok(render::outline(&outline, folders, arguments.depth, as_lines))
}

#[derive(Deserialize)]
struct ReadSymbol {
    file_path: String,
    symbol_name: String,
    line: Option<u32>,
    start_line: Option<usize>,
    end_line: Option<usize>,
    max_tokens: Option<usize>,
    timeout: Option<f64>,
}

async fn read_symbol(window: &Window, folders: &[PathBuf], arguments: Object) -> Result<Rendered, ToolError> {
    let arguments: ReadSymbol = typed(arguments)?;
    let outline =
        window.code.outline(&window.workspace(), &arguments.file_path, deadline(arguments.timeout)).await?;
    let chosen = outline.choose(&arguments.symbol_name, arguments.line)?;
    let lines = Lines {
        start: arguments.start_line,
        end: arguments.end_line,
        max_tokens: arguments.max_tokens.unwrap_or(MAX_TOKENS),
    };
    render::symbol(&outline, &chosen, folders, lines)
}

#[derive(Deserialize)]
struct FindReferences {
    symbol_name: String,
    context_file: String,
    line: Option<u32>,
    include_declaration: Option<bool>,
    limit: Option<usize>,
    timeout: Option<f64>,
}

async fn find_references(
    window: &Window,
    folders: &[PathBuf],
    arguments: Object,
) -> Result<Rendered, ToolError> {
    let arguments: FindReferences = typed(arguments)?;
    let wanted = Wanted {
        symbol: arguments.symbol_name,
        context_file: arguments.context_file,
        line: arguments.line,
        with_declaration: arguments.include_declaration.unwrap_or(true),
        n_texts: arguments.limit.unwrap_or(N_TEXTS),
    };
    let found = window.code.references(&window.workspace(), &wanted, deadline(arguments.timeout)).await?;
    Ok(render::references(&found, folders))
}

#[derive(Deserialize)]
struct GetDiagnostics {
    file_path: Option<String>,
    severity: Option<String>,
    limit: Option<usize>,
    timeout: Option<f64>,
}

async fn get_diagnostics(
    window: &Window,
    folders: &[PathBuf],
    arguments: Object,
) -> Result<Rendered, ToolError> {
    let arguments: GetDiagnostics = typed(arguments)?;
    let (workspace, deadline) = (window.workspace(), deadline(arguments.timeout));
    let found = match &arguments.file_path {
        Some(file) => window.code.file_problems(&workspace, file, deadline).await?,
        None => window.code.all_problems(&workspace, deadline).await?,
    };
    let mildest = render::severity(arguments.severity.as_deref().unwrap_or("warning"));
    Ok(render::problems(&found, folders, mildest, arguments.limit.unwrap_or(N_PROBLEMS)))
}

#[derive(Deserialize)]
struct Navigate {
    to: String,
    symbol_name: String,
    context_file: Option<String>,
    line: Option<u32>,
    limit: Option<usize>,
    timeout: Option<f64>,
}

async fn navigate(window: &Window, folders: &[PathBuf], arguments: Object) -> Result<Rendered, ToolError> {
    let arguments: Navigate = typed(arguments)?;
    let (workspace, deadline) = (window.workspace(), deadline(arguments.timeout));
    let limit = arguments.limit.unwrap_or(N_SPOTS);
    if arguments.to == "symbols" {
        let found = window.code.project_symbols(&workspace, &arguments.symbol_name, deadline).await?;
        return Ok(render::spots(&found, folders, limit));
    }
    let Some(context_file) = arguments.context_file else {
        return Err(ToolError::new("invalid_arguments", "context_file is missing.")
            .hint("Name a file that defines or uses the symbol; only `to: symbols` does without."));
    };
    let wanted = Wanted::place(arguments.symbol_name, context_file, arguments.line);
    let found = match arguments.to.as_str() {
        "hover" => {
            let (told, found) = window.code.hover(&workspace, &wanted, deadline).await?;
            return Ok(render::hover(&told, &found));
        }
        "callers" => window.code.calls(&workspace, &wanted, Direction::Callers, deadline).await?,
        "callees" => window.code.calls(&workspace, &wanted, Direction::Callees, deadline).await?,
        _ => window.code.definition(&workspace, &wanted, deadline).await?,
    };
    Ok(render::spots(&found, folders, limit))
}

#[derive(Deserialize)]
struct Rename {
    symbol_name: String,
    context_file: String,
    line: Option<u32>,
    new_name: String,
    apply: Option<String>,
    timeout: Option<f64>,
}

async fn rename(window: &Window, folders: &[PathBuf], arguments: Object) -> Result<Rendered, ToolError> {
    let arguments: Rename = typed(arguments)?;
    let wanted = Wanted::place(arguments.symbol_name, arguments.context_file, arguments.line);
    let deadline = deadline(arguments.timeout);
    let new_name = &arguments.new_name;
    let (change, renamed) = window.code.renaming(&window.workspace(), &wanted, new_name, deadline).await?;
    let taken = render::taken(&change.plan, new_name, folders);
    let subject = ("symbol", N_RENAMED);
    let mut rendered = preview_or_make(window, folders, subject, change, arguments.apply).await?;
    let defined_at = format!("{}:{}", words::relative(&renamed.file, folders), renamed.line);
    rendered.text = format!("{} ({defined_at}) becomes {new_name}. {}", renamed.name, rendered.text);
    rendered.object.insert("defined_at".to_owned(), defined_at.into());
    if let Some(taken) = taken {
        rendered.text.push_str(&format!("\n{taken}"));
        let note = rendered.object["note"].as_str().unwrap_or_default();
        rendered.object["note"] = format!("{note} {taken}").into();
    }
    Ok(rendered)
}

fn out_of_date() -> ToolError {
    ToolError::new("changed_meanwhile", "The preview is out of date; nothing was changed.")
        .hint("Call without apply for a new preview.")
}

/// The first call shows a change, the second one makes it, when it is still the same.
async fn preview_or_make(
    window: &Window,
    folders: &[PathBuf],
    (subject_name, n_shown): (&str, usize),
    change: Change,
    apply: Option<String>,
) -> Result<Rendered, ToolError> {
    let (n_files, plan) = (change.n_files(), change.plan.clone());
    let mut more = match apply {
        None => json!({
            "token": change.token,
            "applied": false,
            "note": format!("Nothing is changed yet. To change {n_files} files call again with apply {:?}.", change.token),
        }),
        Some(token) if token != change.token => {
            return Err(out_of_date());
        }
        Some(_) => json!({"applied": true, "note": format!("{n_files} files were changed.")}),
    };
    more[subject_name] = change.subject.clone().into();
    let is_made = more["applied"] == true;
    if is_made {
        window.code.write(change).await?;
    }
    Ok(render::changes(&plan, folders, if is_made { 0 } else { n_shown }, more))
}

#[derive(Deserialize)]
struct Complete {
    file_path: String,
    line: u32,
    column: Option<u32>,
    text: Option<String>,
    limit: Option<usize>,
    timeout: Option<f64>,
}

async fn complete(window: &Window, arguments: Object) -> Result<Rendered, ToolError> {
    let arguments: Complete = typed(arguments)?;
    let place = Place {
        file: arguments.file_path,
        line: arguments.line,
        column: arguments.column,
        typed: arguments.text,
    };
    let limit = arguments.limit.unwrap_or(N_COMPLETIONS);
    let deadline = deadline(arguments.timeout);
    let found = window.code.completions(&window.workspace(), &place, limit, deadline).await?;
    Ok(render::completions(&found))
}

#[derive(Deserialize)]
struct CodeAction {
    file_path: String,
    line: u32,
    end_line: Option<u32>,
    kind: Option<String>,
    action: Option<String>,
    apply: Option<String>,
    timeout: Option<f64>,
}

async fn code_action(window: &Window, folders: &[PathBuf], arguments: Object) -> Result<Rendered, ToolError> {
    let arguments: CodeAction = typed(arguments)?;
    let (workspace, deadline) = (window.workspace(), deadline(arguments.timeout));
    let lines = ActionLines {
        file: arguments.file_path,
        first: arguments.line,
        last: arguments.end_line.unwrap_or(arguments.line),
        kind: arguments.kind,
    };
    match arguments.action {
        None if arguments.apply.is_some() => {
            Err(ToolError::new("invalid_arguments", "apply needs action, as in the preview.")
                .hint("Call again with both."))
        }
        None => Ok(render::actions(&window.code.actions(&workspace, &lines, deadline).await?)),
        Some(title) => {
            let change = window.code.action(&workspace, &lines, &title, deadline).await.map_err(|error| {
                match arguments.apply.is_some() && error.code == "action_not_found" {
                    true => out_of_date(),
                    false => error,
                }
            })?;
            preview_or_make(window, folders, ("action", N_CHANGED), change, arguments.apply).await
        }
    }
}

#[derive(Deserialize)]
struct ApplyEdit {
    file_path: String,
    edits: Vec<OneEdit>,
    timeout: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    old_text: Option<String>,
    start_line: Option<usize>,
    end_line: Option<usize>,
    new_text: String,
}

async fn apply_edit(window: &Window, folders: &[PathBuf], arguments: Object) -> Result<Rendered, ToolError> {
    let arguments: ApplyEdit = typed(arguments)?;
    if arguments.edits.is_empty() {
        return Err(ToolError::new("invalid_arguments", "There are no edits.").hint("Give at least one."));
    }
    let wishes = arguments.edits.into_iter().map(|edit| Wish {
        start_line: edit.start_line,
        end_line: edit.end_line,
        old_text: edit.old_text,
        new_text: edit.new_text,
    });
    let (file, wishes) = (&arguments.file_path, wishes.collect());
    let change = window.code.edit(&window.workspace(), file, wishes, deadline(arguments.timeout)).await?;
    let plan = change.plan.clone();
    let n_lines = plan.edits.first().map_or(0, |edit| edit.new.lines().count());
    window.code.write(change).await?;
    let more = json!({"n_lines": n_lines, "note": "1 file was changed."});
    Ok(render::changes(&plan, folders, 0, more))
}
