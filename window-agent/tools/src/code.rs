//! The toolset `code`: reading code by meaning. Arguments in, verbs of the code engine, result out.

mod hints;
mod render;
pub mod schemas;
pub mod truncate;

use std::time::{Duration, Instant};

use self::render::{Rendered, Window as Lines};
use self::schemas::{
    ApplyEdit, CodeAction, Complete, FindReferences, Format, GetDiagnostics, GetOutline, Navigate,
    ReadSymbol, Rename, Target, Timeout,
};
use crate::answer::{Answer, Spoken, Told, unknown_tool};
use crate::arguments::typed;
use crate::caller::Caller;
use crate::window::Window;
use crate::{outside, words};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::Object;
use baton_agent_base::view::View;
use baton_agent_code::actions::Lines as ActionLines;
use baton_agent_code::change::{Change, Wish, Wishes};
use baton_agent_code::complete::Place;
use baton_agent_code::edits;
use baton_agent_code::navigate::Direction;
use baton_agent_code::plan::Plan;
use baton_agent_code::references::Wanted;
use baton_link::blocking;
use serde_json::{Value, json};

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
pub async fn call(window: &Window, tool: &str, arguments: Object, caller: Caller) -> Answer {
    let client = caller.owner().unwrap_or_default();
    let answered = tokio::select! {
        answered = answer(window, tool, arguments, &client) => answered,
        () = caller.cancelled.cancelled() => Err(Fault::new(Kind::Interrupted, "The call was interrupted.")),
    };
    // Nobody reads the answer to a call that was canceled.
    let notice = if caller.cancelled.is_cancelled() { None } else { window.code.take_news() };
    let answer = match answered {
        Ok((object, text)) => Answer::Spoken(Spoken { texts: vec![text], object, ..Spoken::default() }),
        Err(error) => {
            let view = window.workspace().view();
            let error = hints::with_hint(tool, words::with_relative_candidates(error, &view));
            Answer::Error(outside::with_owner(window, error).await)
        }
    };
    answer.telling(Told { notice, label: None })
}

/// What a tool answers: the structure, and a text that says the same in fewer tokens. `client`: whose change it is.
pub async fn answer(
    window: &Window,
    tool: &str,
    arguments: Object,
    client: &str,
) -> Result<(Object, String), Fault> {
    let view = window.workspace().view();
    let rendered = match tool {
        "lcp_get_outline" => get_outline(window, &view, arguments).await,
        "lcp_read_symbol" => read_symbol(window, &view, arguments).await,
        "lcp_find_references" => find_references(window, &view, arguments).await,
        "lcp_get_diagnostics" => get_diagnostics(window, &view, arguments).await,
        "lcp_navigate" => navigate(window, &view, arguments).await,
        "lcp_rename" => rename(window, &view, arguments, client).await,
        "lcp_apply_edit" => apply_edit(window, &view, arguments, client).await,
        "lcp_undo" => undo(window, &view, client).await,
        "lcp_complete" => complete(window, arguments).await,
        "lcp_code_action" => code_action(window, &view, arguments, client).await,
        other => Err(unknown_tool(other)),
    };
    rendered.map(|rendered| (rendered.object, rendered.text))
}

fn deadline(timeout: Option<Timeout>) -> Instant {
    let seconds = timeout.map_or(TIMEOUT_S, |timeout| timeout.0);
    Instant::now() + Duration::from_secs_f64(seconds.clamp(1.0, 300.0))
}

async fn get_outline(window: &Window, view: &View, arguments: Object) -> Result<Rendered, Fault> {
    let arguments: GetOutline = typed(arguments)?;
    let outline =
        window.code.outline(&window.workspace(), &arguments.file_path.0, deadline(arguments.timeout)).await?;
    let as_lines = arguments.format == Some(Format::Lines);
    Ok(render::outline(&outline, view, arguments.depth, as_lines))
}

async fn read_symbol(window: &Window, view: &View, arguments: Object) -> Result<Rendered, Fault> {
    let arguments: ReadSymbol = typed(arguments)?;
    let outline =
        window.code.outline(&window.workspace(), &arguments.file_path.0, deadline(arguments.timeout)).await?;
    let lines = Lines {
        start: arguments.start_line,
        end: arguments.end_line,
        max_tokens: arguments.max_tokens.unwrap_or(MAX_TOKENS),
    };
    let view = view.clone();
    aside(move || {
        let chosen = outline.choose(&arguments.symbol_name.0, arguments.line.map(|line| line.0))?;
        render::symbol(&outline, &chosen, &view, lines)
    })
    .await
}

/// Counts tokens or compares texts on a thread of its own: other calls do not wait for it.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let is_closing = || Err(Fault::new(Kind::Interrupted, "The window is closing."));
    blocking::finish(work).await.unwrap_or_else(is_closing)
}

async fn find_references(window: &Window, view: &View, arguments: Object) -> Result<Rendered, Fault> {
    let arguments: FindReferences = typed(arguments)?;
    let wanted = Wanted {
        symbol: arguments.symbol_name.0,
        context_file: arguments.context_file.0,
        line: arguments.line.map(|line| line.0),
        with_declaration: arguments.include_declaration.unwrap_or(true),
        n_texts: arguments.limit.unwrap_or(N_TEXTS),
    };
    let found = window.code.references(&window.workspace(), &wanted, deadline(arguments.timeout)).await?;
    Ok(render::references(&found, view))
}

async fn get_diagnostics(window: &Window, view: &View, arguments: Object) -> Result<Rendered, Fault> {
    let arguments: GetDiagnostics = typed(arguments)?;
    let (workspace, deadline) = (window.workspace(), deadline(arguments.timeout));
    let found = match &arguments.file_path {
        Some(file) => window.code.file_problems(&workspace, &file.0, deadline).await?,
        None => window.code.all_problems(&workspace, deadline).await?,
    };
    let mildest = render::severity(arguments.severity.as_deref().unwrap_or("warning"));
    Ok(render::problems(&found, view, mildest, arguments.limit.unwrap_or(N_PROBLEMS)))
}

async fn navigate(window: &Window, view: &View, arguments: Object) -> Result<Rendered, Fault> {
    let arguments: Navigate = typed(arguments)?;
    let (workspace, deadline) = (window.workspace(), deadline(arguments.timeout));
    let limit = arguments.limit.unwrap_or(N_SPOTS);
    if let Target::Symbols = arguments.to {
        let found = window.code.project_symbols(&workspace, &arguments.symbol_name.0, deadline).await?;
        return Ok(render::spots(&found, view, limit));
    }
    let Some(context_file) = arguments.context_file else {
        return Err(Fault::new(Kind::InvalidArguments, "context_file is missing.")
            .hint("Pass a file that defines or uses the symbol; only `to: symbols` needs none."));
    };
    let wanted = Wanted::place(arguments.symbol_name.0, context_file.0, arguments.line.map(|line| line.0));
    let found = match arguments.to {
        Target::Hover => {
            let (told, found) = window.code.hover(&workspace, &wanted, deadline).await?;
            return Ok(render::hover(&told, &found));
        }
        Target::Callers => window.code.calls(&workspace, &wanted, Direction::Callers, deadline).await?,
        Target::Callees => window.code.calls(&workspace, &wanted, Direction::Callees, deadline).await?,
        Target::Definition | Target::Symbols => window.code.definition(&workspace, &wanted, deadline).await?,
    };
    Ok(render::spots(&found, view, limit))
}

async fn rename(window: &Window, view: &View, arguments: Object, client: &str) -> Result<Rendered, Fault> {
    let arguments: Rename = typed(arguments)?;
    let file = exact(window, &arguments.context_file.0).await?;
    let wanted = Wanted::place(arguments.symbol_name.0, file, arguments.line.map(|line| line.0));
    let deadline = deadline(arguments.timeout);
    let new_name = &arguments.new_name;
    let (change, renamed) = window.code.renaming(&window.workspace(), &wanted, new_name, deadline).await?;
    let taken = render::taken(&change.plan, new_name, view);
    let subject = ("symbol", N_RENAMED);
    let apply = (arguments.apply, client);
    let mut rendered = preview_or_make(window, view, subject, change, apply).await?;
    let defined_at = format!("{}:{}", view.relative(&renamed.file), renamed.line);
    rendered.text = format!("{} ({defined_at}) becomes {new_name}. {}", renamed.name, rendered.text);
    rendered.object.insert("defined_at".to_owned(), defined_at.into());
    if let Some(taken) = taken {
        rendered.text.push_str(&format!("\n{taken}"));
        if let Some(Value::String(note)) = rendered.object.get_mut("note") {
            note.push_str(&format!(" {taken}"));
        }
    }
    Ok(rendered)
}

fn out_of_date() -> Fault {
    Fault::new(Kind::ChangedMeanwhile, "The preview is out of date; nothing was changed.")
        .hint("Call without apply for a new preview.")
}

/// The first call shows a change, the second one makes it, when it is still the same.
async fn preview_or_make(
    window: &Window,
    view: &View,
    (subject_name, n_shown): (&str, usize),
    change: Change,
    (apply, client): (Option<String>, &str),
) -> Result<Rendered, Fault> {
    let (n_files, plan) = (change.n_files(), change.plan.clone());
    window.code.ensure_unprotected(&window.workspace(), &plan)?;
    let is_made = apply.is_some();
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
    if is_made {
        window.code.write(&window.workspace(), change, client).await?;
    }
    let (view, n_shown) = (view.clone(), if is_made { 0 } else { n_shown });
    aside(move || Ok(render::changes(&plan, &view, n_shown, more))).await
}

/// The path of a file that will be changed: one that is merely called alike is good enough to read only.
async fn exact(window: &Window, given: &str) -> Result<String, Fault> {
    let path = window.workspace().resolve_exactly(given).await?;
    Ok(path.to_str().map_or_else(|| given.to_owned(), str::to_owned))
}

async fn complete(window: &Window, arguments: Object) -> Result<Rendered, Fault> {
    let arguments: Complete = typed(arguments)?;
    let place = Place {
        file: arguments.file_path.0,
        line: arguments.line,
        column: arguments.column,
        typed: arguments.text,
    };
    let limit = arguments.limit.unwrap_or(N_COMPLETIONS);
    let deadline = deadline(arguments.timeout);
    let found = window.code.completions(&window.workspace(), &place, limit, deadline).await?;
    Ok(render::completions(&found))
}

async fn code_action(
    window: &Window,
    view: &View,
    arguments: Object,
    client: &str,
) -> Result<Rendered, Fault> {
    let arguments: CodeAction = typed(arguments)?;
    let (workspace, deadline) = (window.workspace(), deadline(arguments.timeout));
    let file = match arguments.action {
        Some(_) => exact(window, &arguments.file_path.0).await?,
        None => arguments.file_path.0,
    };
    let lines = ActionLines {
        file,
        first: arguments.line,
        last: arguments.end_line.unwrap_or(arguments.line),
        kind: arguments.kind,
    };
    match arguments.action {
        None if arguments.apply.is_some() => {
            Err(Fault::new(Kind::InvalidArguments, "apply needs action, as in the preview.")
                .hint("Call again with both."))
        }
        None => Ok(render::actions(&window.code.actions(&workspace, &lines, deadline).await?)),
        Some(title) => {
            let change = window.code.action(&workspace, &lines, &title, deadline).await.map_err(|error| {
                match arguments.apply.is_some() && error.kind == Kind::ActionNotFound {
                    true => out_of_date(),
                    false => error,
                }
            })?;
            let apply = (arguments.apply, client);
            preview_or_make(window, view, ("action", N_CHANGED), change, apply).await
        }
    }
}

async fn apply_edit(
    window: &Window,
    view: &View,
    arguments: Object,
    client: &str,
) -> Result<Rendered, Fault> {
    let arguments: ApplyEdit = typed(arguments)?;
    if arguments.edits.is_empty() {
        return Err(Fault::new(Kind::InvalidArguments, "There are no edits.").hint("Give at least one."));
    }
    let wishes = arguments.edits.into_iter().map(|edit| Wish {
        start_line: edit.start_line,
        end_line: edit.end_line,
        old_text: edit.old_text,
        new_text: edit.new_text,
    });
    let file = exact(window, &arguments.file_path.0).await?;
    let wishes = Wishes { edits: wishes.collect(), hash: arguments.hash };
    let change = window.code.edit(&window.workspace(), &file, wishes, deadline(arguments.timeout)).await?;
    let plan = change.plan.clone();
    let n_lines = plan.edits.first().map_or(0, |edit| edit.new.lines().count());
    window.code.write(&window.workspace(), change, client).await?;
    let more = json!({"n_lines": n_lines, "note": "1 file was changed."});
    Ok(marked(render::changes(&plan, view, 0, more), &plan))
}

async fn undo(window: &Window, view: &View, client: &str) -> Result<Rendered, Fault> {
    let plan = window.code.undo(&window.workspace(), client).await?;
    let more = json!({"note": "Your last change is undone."});
    Ok(marked(render::changes(&plan, view, 0, more), &plan))
}

/// With the hash of the text of the one file that has another now, for the next edit of it.
fn marked(mut rendered: Rendered, plan: &Plan) -> Rendered {
    if let [edit] = &plan.edits[..]
        && edit.to.is_some()
    {
        let hash = edits::mark(&edit.new);
        rendered.text.push_str(&format!(" #{hash}"));
        rendered.object.insert("hash".to_owned(), hash.into());
    }
    rendered
}
