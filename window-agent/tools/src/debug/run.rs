//! Actions that let the program run: continue, steps, pause.

use serde_json::json;

use super::action::Action;
use super::{Call, Reply, details};
use crate::{programs, redact, stepping, words};
use baton_agent_base::fault::Fault;
use baton_agent_base::object::object;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{Activity, Paused, ResumeWish, Status, Stdin};
use baton_agent_debug::types::{OutputTail, Resume, SessionId, Waited};

impl Call<'_> {
    pub(super) async fn resume(&self) -> Result<Reply, Fault> {
        let how = match self.arguments.action {
            Action::StepOver => Resume::StepOver,
            Action::StepIn => Resume::StepInto,
            Action::StepOut => Resume::StepOut,
            _ => Resume::Continue,
        };
        let wish = ResumeWish::new(self.session(), self.arguments.thread_id, how);
        if let Some(text) = self.arguments.stdin.clone().filter(|_| how == Resume::Continue) {
            let stdin = Stdin { text, is_last: false };
            let written = self.window.debugger.write_stdin(wish.session.as_ref(), stdin).await;
            written.map_err(|error| self.fault(error))?;
        }
        match self.arguments.count.filter(|_| how != Resume::Continue) {
            Some(n_steps) if n_steps > 1 => self.step(wish, n_steps).await,
            _ => self.go(wish).await,
        }
    }

    /// Several steps, each told in a line.
    async fn step(&self, wish: ResumeWish, n_steps: usize) -> Result<Reply, Fault> {
        let stepped = stepping::run(self.window, wish, n_steps.min(stepping::MAX_STEPS), self.wait()).await;
        let (steps, last) = stepped.map_err(|error| self.fault(error))?;
        let lines: Vec<String> = steps.iter().map(|step| self.speaker.step(step)).collect();
        let mut reply = self.about_wait(last).await?;
        if !lines.is_empty() {
            reply.text = format!("{}\n{}", lines.join("\n"), reply.text);
            reply.details.insert("steps".to_owned(), details::steps(&steps).into());
        }
        Ok(reply)
    }

    /// Lets the program go on, and waits.
    pub(super) async fn go(&self, wish: ResumeWish) -> Result<Reply, Fault> {
        let waited = self.window.debugger.resume_as(wish, self.wait()).await;
        let waited = waited.map_err(|error| self.fault(error))?;
        self.about_wait(waited).await
    }

    pub(super) async fn pause(&self) -> Result<Reply, Fault> {
        let session = self.session();
        programs::begun(self.window, session.as_ref(), self.arguments.timeout()).await;
        let debugger = &self.window.debugger;
        let asked = debugger.pause_or_tell(session.as_ref(), self.arguments.thread_id, self.wait()).await;
        let waited = match asked.map_err(|error| self.fault(error))? {
            Paused::Waited(waited) => waited,
            Paused::Pending(activity) => return self.about_pending(&activity).await,
        };
        if matches!(waited, Waited::TimedOut { .. }) {
            // Without one there is nothing that could be paused.
            let threads = self.window.debugger.threads(session.as_ref()).await;
            if threads.is_ok_and(|threads| threads.is_empty()) {
                return Err(self.fault(DebugError::NoThreads));
            }
        }
        self.about_wait(waited).await
    }

    /// What a program does that a pause has not stopped.
    async fn about_pending(&self, activity: &Activity) -> Result<Reply, Fault> {
        let text = words::pending(activity, &self.speaker.view, "continue");
        let mut more = details::doing(&activity.doing);
        more.insert("timedOut".to_owned(), true.into());
        let reply = Reply::new(with_output(text, &activity.output), more.into());
        self.finish(reply).await
    }

    /// How a wait ended: where it stopped, how it ended, or that it runs on.
    pub(super) async fn about_wait(&self, waited: Waited) -> Result<Reply, Fault> {
        let (session, text, state, output, more) = match waited {
            Waited::Stopped(mut stop) => {
                if self.window.redacts() {
                    redact::stop(&mut stop);
                }
                let more = json!({"state": "stopped", "timedOut": false});
                let mut text = self.speaker.stop(&stop);
                if let Some(source) = &stop.source {
                    let path = source.path.as_ref();
                    let note = programs::changed(self.window, path, &stop.session).await;
                    text.extend(note.map(|note| format!("\n{note}.")));
                }
                (stop.session.clone(), text, "stopped", stop.output, more)
            }
            Waited::Completed(completed) => {
                let text = words::end(&completed, &self.speaker.view);
                let lines = completed.never_hit.iter().map(details::breakpoint);
                let functions = completed.never_called.iter().map(details::trigger);
                let never_hit: Vec<_> = lines.chain(functions).collect();
                let mut more = object(json!({"state": "terminated", "timedOut": false}));
                let never_hit = Some(never_hit).filter(|never_hit| !never_hit.is_empty());
                details::insert(&mut more, "breakpointsNotHit", never_hit);
                (completed.session, text, "terminated", completed.output, more.into())
            }
            Waited::TimedOut { session, output, waits_for_input } => {
                let text = "The program is still running; continue waits on, pause stops it.";
                let text = match waits_for_input {
                    true => format!("{text} {}", self.about_input(&session).await),
                    false => text.to_owned(),
                };
                (session, text, "running", output, json!({"state": "running", "timedOut": true}))
            }
            Waited::Interrupted { session, output } => {
                let text = "The wait was interrupted; the program is still running.".to_owned();
                (session, text, "running", output, json!({"state": "running", "timedOut": false}))
            }
        };
        let mut reply = Reply::new(with_output(text, &output), more);
        if let Ok(status) = self.window.debugger.status(Some(&session)).await {
            if state == "running" && status.needs_configuration_done {
                reply.text.push_str("\nThe debugger is still starting.");
            }
            reply = reply.with_snapshot(&self.shown(status));
        }
        Ok(reply)
    }

    /// What helps a program that waits for something to read.
    async fn about_input(&self, session: &SessionId) -> String {
        const WAITS: &str = "It is waiting on stdin";
        let debugger = &self.window.debugger;
        let Ok(status) = debugger.status(Some(session)).await else { return format!("{WAITS}.") };
        if status.has_terminal {
            return format!("{WAITS}: continue with `stdin` gives it more to read.");
        }
        if status.is_attached {
            return format!("{WAITS}: it reads from where it was started.");
        }
        match debugger.reader(&status.adapter).await {
            Some(reader) if reader == status.adapter => {
                format!("{WAITS}: end it, and launch it again with `stdin`.")
            }
            Some(reader) => {
                format!("{WAITS}: end it, and launch it again with `stdin` and `adapter` {reader}.")
            }
            None => words::running("", true).trim_start().to_owned(),
        }
    }

    /// A status as clients may see it.
    pub(super) fn shown(&self, mut status: Status) -> Status {
        if let Some(stop) = status.last_stop.as_deref_mut().filter(|_| self.window.redacts()) {
            redact::stop(stop);
        }
        status
    }
}

/// What the program printed since the last answer belongs to the answer.
fn with_output(text: String, output: &OutputTail) -> String {
    if output.is_empty() { text } else { format!("{text}\nOutput:\n{}", words::output(output).trim_end()) }
}
