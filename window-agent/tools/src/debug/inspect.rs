//! Actions that look at a stopped program: evaluate, stack, threads, scopes, variables; and what it printed.

use serde_json::{Value, json};

use super::arguments::given;
use super::{Call, Reply, details, fault, text};
use crate::redact;
use crate::words::{self, shorten};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::object;
use baton_agent_debug::types::control::{Activity, Category, Doing, OutputPage, OutputWish, Thread};
use baton_agent_debug::types::{Evaluate, Paging, SessionId};

/// Frames when the client does not say.
const DEFAULT_LEVELS: u32 = 20;
/// Variables when the client does not say.
const DEFAULT_VARIABLES: usize = 50;
/// Characters of an evaluation when the client does not say.
const DEFAULT_RESULT: usize = 4_096;
/// Bytes of output when the client does not say.
const DEFAULT_OUTPUT: usize = 8 * 1024;

impl Call<'_> {
    pub(super) async fn evaluate(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let expression = given(&arguments.expression).unwrap_or_default();
        let wish = Evaluate {
            expression: expression.clone(),
            frame_id: self.frame_id().await?,
            context: given(&arguments.context),
        };
        let limit = arguments.timeout.map(|_| arguments.timeout());
        let asked = self.window.debugger.evaluate_within(wish, limit);
        let evaluated = tokio::select! {
            answered = asked => answered.map_err(|error| self.fault(error))?,
            () = self.caller.cancelled.cancelled() => return Err(fault::interrupted("evaluate")),
        };
        let result = if self.window.redacts() {
            redact::value(&expression, &evaluated.result)
        } else {
            evaluated.result.clone()
        };
        let n_chars = result.chars().count();
        let max_length = arguments.max_length.unwrap_or(DEFAULT_RESULT);
        let shown = shorten(&result, max_length);
        let mut told = shown.clone();
        if let Some(kind) = &evaluated.type_name {
            told.push_str(&format!(" ({kind})"));
        }
        if told.is_empty() {
            told.push_str("Done; it has no value.");
        }
        if evaluated.variables_reference > 0 {
            told.push_str(&format!(
                "\nMembers: variables with variable_ref {}",
                evaluated.variables_reference
            ));
        }
        if n_chars > max_length {
            told.push_str(&format!("\nCut from {n_chars} characters; max_length gives more."));
        }
        let reply = Reply::new(told, json!({"evaluation": details::evaluation(&evaluated, &shown)}));
        self.finish(reply).await
    }

    pub(super) async fn stack_trace(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let start = arguments.start.and_then(|start| u32::try_from(start).ok()).unwrap_or(0);
        let levels = arguments.levels.unwrap_or(DEFAULT_LEVELS);
        let session = self.session();
        if let Some(activity) = self.activity(session.as_ref()).await
            && (arguments.thread_id.is_none() || activity.doing == Doing::Native)
        {
            let told = words::doing(&activity.doing, &self.speaker.view);
            return self.finish(Reply::new(told, details::doing(&activity.doing).into())).await;
        }
        let asked =
            self.window.debugger.stack_trace(session.as_ref(), arguments.thread_id, start, levels).await;
        let trace = asked.map_err(|error| self.fault(error))?;
        let is_whole = arguments.levels.is_some() || arguments.start.is_some();
        let lines = self.speaker.stack(&trace.frames, is_whole);
        let state = if trace.is_running { " (running, values are not available)" } else { "" };
        let heading = format!("Stack of thread {}{state}", trace.thread_id);
        let mut told = text::list(&heading, &lines, "There are no more frames.");
        let frames: Vec<Value> = trace.frames.iter().map(details::frame).collect();
        let mut more = object(json!({"stackFrames": frames}));
        details::insert(&mut more, "total", trace.total);
        if let Some(total) = trace.total {
            let shown = i64::from(start) + i64::try_from(trace.frames.len()).unwrap_or(0);
            if total > shown {
                told.push_str(&format!("\n{} more frames; start {shown} gives them.", total - shown));
            }
        }
        self.finish(Reply::new(told, more.into())).await
    }

    pub(super) async fn threads(&self) -> Result<Reply, Fault> {
        let session = self.session();
        let activity = self.activity(session.as_ref()).await;
        if let Some(Activity { doing: doing @ Doing::Native, .. }) = &activity {
            let told = words::doing(doing, &self.speaker.view);
            return self.finish(Reply::new(told, details::doing(doing).into())).await;
        }
        let threads =
            self.window.debugger.threads(session.as_ref()).await.map_err(|error| self.fault(error))?;
        if threads.is_empty() {
            return Err(Fault::new(Kind::NoThreads, "Debugger reported no threads."));
        }
        let line = |thread: &Thread| self.speaker.thread(thread, activity.as_ref());
        let lines: Vec<String> = threads.iter().map(line).collect();
        let entries: Vec<Value> = threads.iter().map(details::thread).collect();
        self.finish(Reply::new(text::list("Threads", &lines, ""), json!({"threads": entries}))).await
    }

    /// What a program does that runs, as far as its debugger tells it.
    async fn activity(&self, session: Option<&SessionId>) -> Option<Activity> {
        self.window.debugger.activity(session).await.ok().flatten()
    }

    pub(super) async fn scopes(&self) -> Result<Reply, Fault> {
        let frame_id = self.frame_id().await?;
        let scopes = self.window.debugger.scopes(frame_id).await.map_err(|error| self.fault(error))?;
        let lines: Vec<String> = scopes.iter().map(text::scope).collect();
        let entries: Vec<Value> = scopes.iter().map(details::scope).collect();
        let told = text::list(&format!("Scopes of frame {frame_id}"), &lines, "The frame has no scopes.");
        self.finish(Reply::new(told, json!({"scopes": entries}))).await
    }

    pub(super) async fn variables(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let reference = arguments.variable_ref.or(arguments.scope_id).unwrap_or_default();
        let paging = Paging {
            start: arguments.start,
            count: Some(arguments.count.filter(|count| *count > 0).unwrap_or(DEFAULT_VARIABLES)),
        };
        let page = self.window.debugger.variables(reference, paging).await;
        let mut page = page.map_err(|error| self.fault(error))?;
        if self.window.redacts() {
            redact::variables(&mut page.variables);
        }
        let lines: Vec<String> = page.variables.iter().map(text::variable).collect();
        let none = match arguments.start.filter(|start| *start > 0) {
            Some(start) => format!("There are no variables from {start} on."),
            None => "There are no variables.".to_owned(),
        };
        let mut told = text::list("Variables", &lines, &none);
        let variables: Vec<Value> = page.variables.iter().map(details::variable).collect();
        let mut more = object(json!({"variables": variables}));
        if page.omitted > 0 {
            let next = arguments.start.unwrap_or(0) + page.variables.len();
            more.insert("total".to_owned(), (next + page.omitted).into());
            told.push_str(&format!("\n{} more; start {next} gives them.", page.omitted));
        }
        self.finish(Reply::new(told, more.into())).await
    }

    pub(super) async fn output(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let categories = match arguments.category.as_deref() {
            Some("stdout") => vec![Category::Stdout],
            Some("stderr") => vec![Category::Stderr],
            Some("console") => vec![Category::Console],
            _ => Vec::new(),
        };
        let wish = OutputWish {
            session: self.session(),
            since: arguments.since,
            categories,
            max_bytes: arguments.max_length.unwrap_or(DEFAULT_OUTPUT),
        };
        let page = self.window.debugger.output(wish).await.map_err(|error| self.fault(error))?;
        let plain: String = page.entries.iter().map(|entry| entry.text.as_str()).collect();
        let more = json!({"output": plain, "outputCursor": page.next});
        self.finish(Reply::new(told_output(&page), more)).await
    }

    /// With the session as it stands.
    pub(super) async fn finish(&self, reply: Reply) -> Result<Reply, Fault> {
        Ok(match self.window.debugger.status(self.session().as_ref()).await {
            Ok(status) => reply.with_snapshot(&self.shown(status)),
            Err(_) => reply,
        })
    }
}

/// A page of output: kinds are told apart where there are several, and what is missing is said.
fn told_output(page: &OutputPage) -> String {
    let mut told = String::new();
    if page.dropped_bytes > 0 {
        told.push_str(&format!("[{} earlier bytes omitted]\n", page.dropped_bytes));
    }
    let first = page.entries.first().map(|entry| entry.category);
    let is_mixed = page.entries.iter().any(|entry| Some(entry.category) != first);
    for entry in &page.entries {
        if is_mixed || entry.category != Category::Stdout {
            if !told.is_empty() && !told.ends_with('\n') {
                told.push('\n');
            }
            told.push_str(&format!("[{}]\n", entry.category.as_str()));
        }
        told.push_str(&entry.text);
    }
    if page.entries.is_empty() {
        told.push_str("No output.");
    }
    if !told.ends_with('\n') {
        told.push('\n');
    }
    let rest = if page.has_more { "there is more" } else { "the end for now" };
    told.push_str(&format!("[{rest}; since {} gives what follows]", page.next));
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_agent_debug::types::control::OutputEntry;

    #[test]
    fn output_tells_kinds_apart_and_what_is_missing() {
        let entry = |category, text: &str| OutputEntry { category, text: text.to_owned() };
        let page =
            |entries, dropped_bytes, has_more| OutputPage { entries, next: 9, has_more, dropped_bytes };
        assert_eq!(
            told_output(&page(vec![], 0, false)),
            "No output.\n[the end for now; since 9 gives what follows]"
        );
        assert_eq!(
            told_output(&page(vec![entry(Category::Stdout, "a\n")], 0, false)),
            "a\n[the end for now; since 9 gives what follows]"
        );
        assert_eq!(
            told_output(&page(vec![entry(Category::Stdout, "a"), entry(Category::Stderr, "b\n")], 7, true)),
            "[7 earlier bytes omitted]\n[stdout]\na\n[stderr]\nb\n[there is more; since 9 gives what follows]"
        );
    }
}
