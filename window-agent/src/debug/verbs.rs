//! More verbs: triggers, pausing and restarting, state, output, requests of any kind.

use serde_json::Value;

use super::{BREAKPOINT_TIMEOUT, Debugger, EVALUATE_TIMEOUT, REQUEST_TIMEOUT};
use crate::debug::breakpoints::HitCondition;
use crate::debug::engine::Command;
use crate::debug::error::DebugError;
use crate::debug::types::control::{
    OutputPage, OutputWish, Request, ResumeWish, StackTrace, Status, Stdin, Thread,
};
use crate::debug::types::triggers::{RemoveTriggers, SetTrigger, Trigger, TriggerBreakpoint};
use crate::debug::types::{SessionId, Wait, Waited};

impl Debugger {
    /// Sets a trigger, or changes the one at the same place; `session` is the one whose data or instruction is meant,
    /// the active one when not given. Answers once every running session has taken it.
    pub async fn set_trigger(
        &self,
        session: Option<&SessionId>,
        wish: SetTrigger,
    ) -> Result<TriggerBreakpoint, DebugError> {
        check(&wish)?;
        let session = session.cloned();
        let set = self
            .ask_adapter("breakpoints", BREAKPOINT_TIMEOUT, |reply| Command::SetTrigger {
                session,
                wish,
                reply,
            })
            .await?;
        self.settle_editor().await;
        set.into_iter().next().ok_or(DebugError::ShuttingDown)
    }

    /// The filters of exceptions are these now, in every session. `None` leaves the choice to each adapter.
    pub async fn set_exception_filters(
        &self,
        wishes: Option<Vec<SetTrigger>>,
    ) -> Result<Vec<TriggerBreakpoint>, DebugError> {
        wishes.iter().flatten().try_for_each(check)?;
        let command = |reply| Command::SetExceptions { wishes, reply };
        let set = self.ask_adapter("setExceptionBreakpoints", BREAKPOINT_TIMEOUT, command).await;
        self.settle_editor().await;
        set
    }

    /// Removes triggers; gives the removed ones.
    pub async fn remove_triggers(&self, which: RemoveTriggers) -> Result<Vec<TriggerBreakpoint>, DebugError> {
        let what = match &which {
            RemoveTriggers::Id(id) => Some(format!("with id {id}")),
            RemoveTriggers::Trigger(trigger) => Some(trigger.describe()),
            RemoveTriggers::Kind(_) | RemoveTriggers::All => None,
        };
        let command = |reply| Command::RemoveTriggers { which, reply };
        let removed = self.ask_adapter("breakpoints", BREAKPOINT_TIMEOUT, command).await?;
        self.settle_editor().await;
        match what {
            Some(what) if removed.is_empty() => Err(DebugError::NoSuchBreakpoint { what }),
            _ => Ok(removed),
        }
    }

    /// All triggers, by id.
    pub async fn triggers(&self) -> Vec<TriggerBreakpoint> {
        self.ask(|reply| Command::Triggers { reply }).await.unwrap_or_default()
    }

    /// Lets a stopped thread go on, in any way; see [`Debugger::resume`].
    pub async fn resume_as(&self, wish: ResumeWish, wait: Wait) -> Result<Waited, DebugError> {
        self.wait(wait, |id, reply| Command::Resume { wish, wait: id, reply }).await
    }

    /// Stops a running program, and waits until it has. One that is stopped already is the answer at once.
    pub async fn pause(
        &self,
        session: Option<&SessionId>,
        thread_id: Option<i64>,
        wait: Wait,
    ) -> Result<Waited, DebugError> {
        let session = session.cloned();
        self.wait(wait, |id, reply| Command::Pause { session, thread_id, wait: id, reply }).await
    }

    /// Waits for the next stop or the end. A program that is stopped already is the answer at once.
    pub async fn wait_stop(&self, session: Option<&SessionId>, wait: Wait) -> Result<Waited, DebugError> {
        let session = session.cloned();
        self.wait(wait, |id, reply| Command::WaitStop { session, wait: id, reply }).await
    }

    /// Ends a session with its children and begins it again under the same id, with the same configuration; waits for
    /// the first stop or the end.
    pub async fn restart(&self, session: Option<&SessionId>, wait: Wait) -> Result<Waited, DebugError> {
        let session = session.cloned();
        self.wait(wait, |id, reply| Command::Restart { session, wait: id, reply }).await
    }

    /// The threads of a program.
    pub async fn threads(&self, session: Option<&SessionId>) -> Result<Vec<Thread>, DebugError> {
        let session = session.cloned();
        let command = |reply| Command::Threads { session, reply };
        self.ask_adapter("threads", REQUEST_TIMEOUT, command).await
    }

    /// `levels` frames of a stopped thread from `start` on (0 is the innermost); without a thread, of the one that
    /// stopped last.
    pub async fn stack_trace(
        &self,
        session: Option<&SessionId>,
        thread_id: Option<i64>,
        start: u32,
        levels: u32,
    ) -> Result<StackTrace, DebugError> {
        let (session, page) = (session.cloned(), (i64::from(start), i64::from(levels)));
        let command = |reply| Command::StackTrace { session, thread_id, page, reply };
        self.ask_adapter("stackTrace", REQUEST_TIMEOUT, command).await
    }

    /// Sends a request of any kind, and gives the body of the answer.
    pub async fn request(&self, request: Request) -> Result<Value, DebugError> {
        let name = request.command.clone();
        let timeout = request.timeout.unwrap_or(EVALUATE_TIMEOUT);
        self.ask_adapter(&name, timeout, |reply| Command::Request { request, reply }).await
    }

    /// Where a session stands; also one that has ended, as long as it is remembered.
    pub async fn status(&self, session: Option<&SessionId>) -> Result<Status, DebugError> {
        let session = session.cloned();
        self.ask(|reply| Command::Status { session, reply }).await?
    }

    /// Where all sessions stand: those that have ended, as far as remembered, then those that run.
    pub async fn statuses(&self) -> Vec<Status> {
        self.ask(|reply| Command::Statuses { reply }).await.unwrap_or_default()
    }

    /// Part of what a program printed; also after its end, as long as it is remembered.
    pub async fn output(&self, wish: OutputWish) -> Result<OutputPage, DebugError> {
        self.ask(|reply| Command::Output { wish, reply }).await?
    }

    /// Gives a program that runs in a terminal of ours something to read. No tool asks for it yet.
    pub async fn write_stdin(&self, session: Option<&SessionId>, stdin: Stdin) -> Result<(), DebugError> {
        let session = session.cloned();
        self.ask(|reply| Command::WriteStdin { session, stdin, reply }).await?
    }
}

fn check(wish: &SetTrigger) -> Result<(), DebugError> {
    let (place, what) = match &wish.trigger {
        Trigger::Function { name } => (name, "function name"),
        Trigger::Instruction { reference, .. } => (reference, "instruction reference"),
        Trigger::Data { data_id, .. } => (data_id, "data id"),
        Trigger::Exception { filter } => (filter, "filter"),
    };
    if place.trim().is_empty() {
        return Err(DebugError::NoPlace { what });
    }
    match &wish.hit_condition {
        Some(text) if HitCondition::parse(text).is_none() => {
            Err(DebugError::BadHitCondition { text: text.clone() })
        }
        _ => Ok(()),
    }
}
