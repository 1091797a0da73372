//! Verbs that an adapter answers: breakpoints in running sessions, threads, scopes, variables, expressions.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::debug::types::MAX_VALUE_LEN;

use super::{
    Breakpoint, DebugError, EditorBreakpoint, Engine, Evaluate, Evaluated, Input, Lookup, MAX_VARIABLES,
    Paging, PathBuf, Phase, RemoveBreakpoint, Resume, Scope, SessionKey, SetBreakpoint, Ticket, Variables,
    Wait, WaitId, from_dap,
};

/// What an answer of an adapter is for.
pub(super) enum Asked {
    Breakpoints { gather: u64 },
    Threads { wait: Wait, thread_id: i64, how: Resume },
    Scopes { key: SessionKey, reply: oneshot::Sender<Result<Vec<Scope>, DebugError>> },
    Variables { key: SessionKey, paging: Paging, reply: oneshot::Sender<Result<Variables, DebugError>> },
    Evaluate { key: SessionKey, reply: oneshot::Sender<Result<Evaluated, DebugError>> },
}

/// A breakpoint verb that waits until every session has taken the change.
pub(super) struct Gather {
    n_left: usize,
    then: Then,
}

enum Then {
    Set { id: i64, reply: oneshot::Sender<Breakpoint> },
    Removed { removed: Vec<Breakpoint>, reply: oneshot::Sender<Vec<Breakpoint>> },
    Nothing,
}

impl Engine {
    pub(super) fn on_set_breakpoint(&mut self, wish: SetBreakpoint, reply: oneshot::Sender<Breakpoint>) {
        let path = wish.path.clone();
        if let Some(editor) = &self.editor {
            editor.add_breakpoint(&wish);
        }
        let id = self.breakpoints.set(wish);
        self.hand_over(&BTreeSet::from([path]), Then::Set { id, reply });
    }

    pub(super) fn on_remove_breakpoint(
        &mut self,
        which: &RemoveBreakpoint,
        reply: oneshot::Sender<Vec<Breakpoint>>,
    ) {
        let removed = self.breakpoints.remove(which);
        if let Some(editor) = &self.editor {
            editor.remove_breakpoints(&removed);
        }
        let paths = removed.iter().map(|breakpoint| breakpoint.path.clone()).collect();
        self.hand_over(&paths, Then::Removed { removed, reply });
    }

    /// The user's changes; what the editor has not heard of yet stays.
    pub(super) fn on_editor_breakpoints(&mut self, all: Vec<EditorBreakpoint>) {
        let Some(editor) = &self.editor else { return };
        let (wishes, unheard) = editor.on_breakpoints(all);
        let changed = self.breakpoints.replace(wishes, &unheard);
        self.hand_over(&changed, Then::Nothing);
    }

    /// Tells every session the breakpoints of these files; the verb is answered when all have answered.
    fn hand_over(&mut self, paths: &BTreeSet<PathBuf>, then: Then) {
        let keys: Vec<SessionKey> = self.sessions.keys().copied().collect();
        self.last_ticket += 1;
        let gather = self.last_ticket;
        self.gathers.insert(gather, Gather { n_left: keys.len() * paths.len() + 1, then });
        for path in paths {
            for &key in &keys {
                let wanted = self.breakpoints.of_file(path);
                let ticket = self.ask(Asked::Breakpoints { gather });
                self.feed(key, Input::SetBreakpoints { ticket, path: path.clone(), wanted });
            }
        }
        self.on_gathered(gather);
    }

    fn on_gathered(&mut self, gather: u64) {
        let Some(entry) = self.gathers.get_mut(&gather) else { return };
        entry.n_left -= 1;
        if entry.n_left > 0 {
            return;
        }
        match self.gathers.remove(&gather).map(|gather| gather.then) {
            Some(Then::Set { id, reply }) => {
                if let Some(breakpoint) = self.breakpoints.find(id) {
                    let _ = reply.send(breakpoint);
                }
            }
            Some(Then::Removed { removed, reply }) => drop(reply.send(removed)),
            Some(Then::Nothing) | None => {}
        }
    }

    /// The adapter has to tell whether it knows the thread: some let everything go on, whatever the id.
    pub(super) fn ask_threads(&mut self, wait: Wait, thread_id: i64, how: Resume) {
        let key = wait.session;
        let ticket = self.ask(Asked::Threads { wait, thread_id, how });
        self.feed(key, Input::Request { ticket, command: "threads", arguments: json!({}) });
    }

    /// Takes the wait of this id, when it stands behind a question about threads.
    pub(super) fn take_asking(&mut self, id: WaitId) -> Option<Wait> {
        let is_meant = |asked: &Asked| matches!(asked, Asked::Threads { wait, .. } if wait.id == id);
        let ticket = self.asked.iter().find(|(_, asked)| is_meant(asked)).map(|(&ticket, _)| ticket)?;
        match self.asked.remove(&ticket) {
            Some(Asked::Threads { wait, .. }) => Some(wait),
            _ => None,
        }
    }

    fn on_threads(&mut self, wait: Wait, thread_id: i64, how: Resume, result: Result<Value, String>) {
        let Some(live) = self.sessions.get(&wait.session) else { return };
        let threads = match &result {
            Ok(body) => body["threads"].as_array().map(Vec::as_slice).unwrap_or_default(),
            Err(message) => {
                let error = DebugError::Refused { command: "threads".to_owned(), message: message.clone() };
                return drop(wait.reply.send(Err(error)));
            }
        };
        if !threads.iter().any(|thread| thread["id"].as_i64() == Some(thread_id)) {
            let name =
                |thread: &Value| format!("{} ({})", thread["id"], thread["name"].as_str().unwrap_or(""));
            let known = threads.iter().map(name).collect::<Vec<_>>().join(", ");
            return drop(wait.reply.send(Err(DebugError::NoSuchThread { thread_id, known })));
        }
        if live.core.phase() != Phase::Stopped || !live.core.all_stopped() {
            return drop(wait.reply.send(Err(DebugError::NotStopped { thread_id })));
        }
        self.resume(wait, thread_id, how);
    }

    pub(super) fn on_scopes(
        &mut self,
        frame_id: i64,
        reply: oneshot::Sender<Result<Vec<Scope>, DebugError>>,
    ) {
        match self.frame(frame_id) {
            Ok((key, theirs)) => {
                let ticket = self.ask(Asked::Scopes { key, reply });
                self.feed(
                    key,
                    Input::Request { ticket, command: "scopes", arguments: json!({"frameId": theirs}) },
                );
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    pub(super) fn on_variables(
        &mut self,
        reference: i64,
        paging: Paging,
        reply: oneshot::Sender<Result<Variables, DebugError>>,
    ) {
        match self.container(reference) {
            Ok((key, theirs)) => {
                let arguments = json!({"variablesReference": theirs});
                let ticket = self.ask(Asked::Variables { key, paging, reply });
                self.feed(key, Input::Request { ticket, command: "variables", arguments });
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    pub(super) fn on_evaluate(
        &mut self,
        evaluate: Evaluate,
        reply: oneshot::Sender<Result<Evaluated, DebugError>>,
    ) {
        match self.frame(evaluate.frame_id) {
            Ok((key, theirs)) => {
                // `repl` is the command line of the debugger itself in some adapters.
                let context = evaluate.context.as_deref().unwrap_or("watch");
                let arguments =
                    json!({"expression": evaluate.expression, "frameId": theirs, "context": context});
                let ticket = self.ask(Asked::Evaluate { key, reply });
                self.feed(key, Input::Request { ticket, command: "evaluate", arguments });
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    fn ask(&mut self, asked: Asked) -> Ticket {
        self.last_ticket += 1;
        self.asked.insert(self.last_ticket, asked);
        self.last_ticket
    }

    pub(super) fn on_answer(&mut self, ticket: Ticket, result: Result<Value, String>) {
        let refused =
            |command: &str, message: String| DebugError::Refused { command: command.to_owned(), message };
        match self.asked.remove(&ticket) {
            Some(Asked::Breakpoints { gather }) => self.on_gathered(gather),
            Some(Asked::Threads { wait, thread_id, how }) => self.on_threads(wait, thread_id, how, result),
            Some(Asked::Scopes { key, reply }) => {
                let scopes = result.map_err(|message| refused("scopes", message)).map(|body| {
                    let bodies = body["scopes"].as_array().map(Vec::as_slice).unwrap_or_default();
                    bodies.iter().map(|body| from_dap::scope(body, key, &mut self.ids)).collect()
                });
                let _ = reply.send(scopes);
            }
            Some(Asked::Variables { key, paging, reply }) => {
                let variables = result.map_err(|message| refused("variables", message));
                let _ = reply.send(variables.map(|body| self.page(&body, key, paging)));
            }
            Some(Asked::Evaluate { key, reply }) => {
                let evaluated = result.map_err(|message| DebugError::EvaluationFailed {
                    message: from_dap::evaluation_problem(&message),
                });
                let _ = reply.send(evaluated.map(|body| from_dap::evaluated(&body, key, &mut self.ids)));
            }
            None => {}
        }
    }

    fn page(&mut self, body: &Value, key: SessionKey, paging: Paging) -> Variables {
        let bodies = body["variables"].as_array().map(Vec::as_slice).unwrap_or_default();
        let count = paging.count.unwrap_or(MAX_VARIABLES).min(MAX_VARIABLES);
        let start = paging.start.unwrap_or(0).min(bodies.len());
        let page = &bodies[start..bodies.len().min(start.saturating_add(count))];
        Variables {
            variables: page
                .iter()
                .map(|body| from_dap::variable(body, key, &mut self.ids, MAX_VALUE_LEN))
                .collect(),
            omitted: bodies.len() - start - page.len(),
        }
    }

    fn frame(&self, frame_id: i64) -> Result<(SessionKey, i64), DebugError> {
        match self.ids.frames.look_up(frame_id) {
            Lookup::Alive(key, theirs) if self.is_stopped(key) => Ok((key, theirs)),
            Lookup::Alive(..) | Lookup::Stale => Err(DebugError::StaleFrame { frame_id }),
            Lookup::Unknown => Err(DebugError::NoSuchFrame { frame_id }),
        }
    }

    fn container(&self, reference: i64) -> Result<(SessionKey, i64), DebugError> {
        match self.ids.references.look_up(reference) {
            Lookup::Alive(key, theirs) if self.is_stopped(key) => Ok((key, theirs)),
            Lookup::Alive(..) | Lookup::Stale => Err(DebugError::StaleReference { reference }),
            Lookup::Unknown => Err(DebugError::NoSuchReference { reference }),
        }
    }

    fn is_stopped(&self, key: SessionKey) -> bool {
        self.sessions.get(&key).is_some_and(|live| live.core.phase() == Phase::Stopped)
    }
}
