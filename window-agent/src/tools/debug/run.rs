//! Actions that let the program run: continue, steps, pause.

use serde_json::json;

use super::action::Action;
use super::{Call, Reply, details};
use crate::debug::error::DebugError;
use crate::debug::types::control::{ResumeWish, Status};
use crate::debug::types::{OutputTail, Resume, Waited};
use crate::tools::{ToolError, programs, redact, words};

impl Call<'_> {
    pub(super) async fn resume(&self) -> Result<Reply, ToolError> {
        let how = match self.arguments.action {
            Action::StepOver => Resume::StepOver,
            Action::StepIn => Resume::StepInto,
            Action::StepOut => Resume::StepOut,
            _ => Resume::Continue,
        };
        self.go(ResumeWish::new(self.session(), self.arguments.thread_id, how)).await
    }

    /// Lets the program go on, and waits.
    pub(super) async fn go(&self, wish: ResumeWish) -> Result<Reply, ToolError> {
        let waited = self.window.debugger.resume_as(wish, self.wait()).await;
        let waited = waited.map_err(|error| self.fault(error))?;
        self.about_wait(waited).await
    }

    pub(super) async fn pause(&self) -> Result<Reply, ToolError> {
        let session = self.session();
        programs::begun(self.window, session.as_ref(), self.arguments.timeout()).await;
        let asked = self.window.debugger.pause(session.as_ref(), self.arguments.thread_id, self.wait()).await;
        let waited = asked.map_err(|error| self.fault(error))?;
        if matches!(waited, Waited::TimedOut { .. }) {
            // Without one there is nothing that could be paused.
            let threads = self.window.debugger.threads(session.as_ref()).await;
            if threads.is_ok_and(|threads| threads.is_empty()) {
                return Err(self.fault(DebugError::NoThreads));
            }
        }
        self.about_wait(waited).await
    }

    /// How a wait ended: where it stopped, how it ended, or that it runs on.
    pub(super) async fn about_wait(&self, waited: Waited) -> Result<Reply, ToolError> {
        let (session, text, state, output, more) = match waited {
            Waited::Stopped(mut stop) => {
                if self.window.redacts() {
                    redact::stop(&mut stop);
                }
                let more = json!({"state": "stopped", "timedOut": false});
                let mut text = self.speaker.stop(&stop);
                if let Some(source) = &stop.source
                    && let Some(note) = programs::changed(self.window, source.path.as_ref()).await
                {
                    text.push_str(&format!("\n{note}."));
                }
                (stop.session.clone(), text, "stopped", stop.output, more)
            }
            Waited::Completed(completed) => {
                let text = words::end(&completed, &self.speaker.folders);
                let lines = completed.never_hit.iter().map(details::breakpoint);
                let functions = completed.never_called.iter().map(details::trigger);
                let never_hit: Vec<_> = lines.chain(functions).collect();
                let mut more = json!({"state": "terminated", "timedOut": false});
                if !never_hit.is_empty() {
                    more["breakpointsNotHit"] = json!(never_hit);
                }
                (completed.session, text, "terminated", completed.output, more)
            }
            Waited::TimedOut { session, output, waits_for_input } => {
                let text = "The program is still running; continue waits on, pause stops it.";
                let text = words::running(text, waits_for_input);
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
