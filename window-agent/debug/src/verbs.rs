//! More verbs: triggers, pausing and restarting, state, output, requests of any kind.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{BREAKPOINT_TIMEOUT, Debugger, Wait};
use crate::breakpoints::hits::HitCondition;
use crate::engine::Command;
use crate::error::DebugError;
use crate::types::control::{
    Activity, Doing, News, OutputPage, OutputWish, Paused, PendingPause, Request, ResumeWish, StackTrace,
    Status, Stdin, Thread,
};
use crate::types::triggers::{RemoveTriggers, SetTrigger, Trigger, TriggerBreakpoint};
use crate::types::{OutputTail, Phase, SessionId, Waited};

/// How long a pause may take until it is told what the program does instead of stopping.
const PAUSE_PATIENCE: Duration = Duration::from_secs(1);
/// The same where nothing but silence says that it idles or is blocked. One that works is led out of node's own code
/// first, step by step; in VS Code that takes a second or two, and more on a busy machine.
const SILENCE_PATIENCE: Duration = Duration::from_secs(5);
/// How long an adapter may take to tell the stacks of a program that runs; debugpy takes 0.6 s.
const STACKS_TIMEOUT: Duration = Duration::from_secs(3);
/// Threads of a running program that are told.
const MAX_TOLD_THREADS: usize = 8;
/// Frames of each.
const MAX_TOLD_FRAMES: u32 = 8;

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

    /// The filters of exceptions are these now, in every session of this owner. `None` leaves the choice to each
    /// adapter.
    pub async fn set_exception_filters(
        &self,
        owner: Option<String>,
        wishes: Option<Vec<SetTrigger>>,
    ) -> Result<Vec<TriggerBreakpoint>, DebugError> {
        wishes.iter().flatten().try_for_each(check)?;
        let command = |reply| Command::SetExceptions { owner, wishes, reply };
        let set = self.ask_adapter("setExceptionBreakpoints", BREAKPOINT_TIMEOUT, command).await;
        self.settle_editor().await;
        set
    }

    /// Removes triggers; gives the removed ones.
    pub async fn remove_triggers(&self, which: RemoveTriggers) -> Result<Vec<TriggerBreakpoint>, DebugError> {
        let what = match &which {
            RemoveTriggers::Id(id) => Some(format!("with id {id}")),
            RemoveTriggers::Trigger(trigger, _) => Some(trigger.describe()),
            RemoveTriggers::Kind(_) | RemoveTriggers::Of(..) | RemoveTriggers::All => None,
        };
        let id = if let RemoveTriggers::Id(id) = which { Some(id) } else { None };
        let command = |reply| Command::RemoveTriggers { which, reply };
        let removed = self.ask_adapter("breakpoints", BREAKPOINT_TIMEOUT, command).await?;
        self.settle_editor().await;
        match what {
            Some(what) if removed.is_empty() => Err(self.no_breakpoint(id, what)),
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

    /// The same, for a program that may hang: one that does not stop soon, and of which the adapter can tell what it
    /// does, is told as that. The pause stands: it takes effect as soon as it can.
    pub async fn pause_or_tell(
        &self,
        session: Option<&SessionId>,
        thread_id: Option<i64>,
        wait: Wait,
    ) -> Result<Paused, DebugError> {
        let end = wait.cancelled.child_token();
        let own = Wait { timeout: wait.timeout, cancelled: end.clone() };
        let asked_at = Instant::now();
        let mut pausing = std::pin::pin!(self.pause(session, thread_id, own));
        let doing = loop {
            tokio::select! {
                waited = &mut pausing => return waited.map(Paused::Waited),
                () = tokio::time::sleep(PAUSE_PATIENCE) => {}
            }
            let Ok(status) = self.status(session).await else { continue };
            if status.phase != Phase::Running || !status.is_started {
                continue;
            }
            let is_silent = !status.tells_running_stacks && asked_at.elapsed() < SILENCE_PATIENCE;
            match self.doing(&status).await {
                Some(Doing::Idle | Doing::Native) if is_silent => {}
                // The adapter may not even have told the thread to pause.
                Some(doing) if status.pending_pause.is_some() || doing == Doing::Native => break doing,
                _ => {}
            }
        };
        end.cancel();
        // The engine answers at once: with a stop that came first, or that it goes on.
        match pausing.await? {
            Waited::Interrupted { session, output } if !wait.cancelled.is_cancelled() => {
                Ok(Paused::Pending(Activity { session, doing, output }))
            }
            waited => Ok(Paused::Waited(waited)),
        }
    }

    /// What a running program does, as far as its adapter tells it without a stop.
    pub async fn activity(&self, session: Option<&SessionId>) -> Result<Option<Activity>, DebugError> {
        let status = self.status(session).await?;
        let doing = if status.phase == Phase::Running { self.doing(&status).await } else { None };
        let session = status.id;
        Ok(doing.map(|doing| Activity { session, doing, output: OutputTail::default() }))
    }

    async fn doing(&self, status: &Status) -> Option<Doing> {
        if !status.tells_running_stacks {
            let pending = status.pending_pause.filter(|_| status.takes_idle_pauses)?;
            return Some(if pending == PendingPause::Taken { Doing::Idle } else { Doing::Native });
        }
        match tokio::time::timeout(STACKS_TIMEOUT, self.stacks(&status.id)).await {
            Ok(stacks) => stacks.ok(),
            // What answers is a thread of the program, which native code can keep from running.
            Err(_) => Some(Doing::Native),
        }
    }

    /// Asked together: one alone takes its time.
    async fn stacks(&self, session: &SessionId) -> Result<Doing, DebugError> {
        let mut threads = self.threads(Some(session)).await?;
        let n_more = threads.len().saturating_sub(MAX_TOLD_THREADS);
        threads.truncate(MAX_TOLD_THREADS);
        let mut asked = JoinSet::new();
        for (idx, thread) in threads.into_iter().enumerate() {
            let (debugger, session) = (self.clone(), session.clone());
            asked.spawn(async move {
                let stack = debugger.stack_trace(Some(&session), Some(thread.id), 0, MAX_TOLD_FRAMES).await;
                // It may have ended meanwhile.
                stack.ok().map(|stack| (idx, (thread, stack.frames)))
            });
        }
        let told: BTreeMap<_, _> = asked.join_all().await.into_iter().flatten().collect();
        Ok(Doing::Stacks { threads: told.into_values().collect(), n_more })
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
        self.ask_adapter("threads", self.answer_timeout(), command).await
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
        self.ask_adapter("stackTrace", self.answer_timeout(), command).await
    }

    /// Sends a request of any kind, and gives the body of the answer.
    pub async fn request(&self, request: Request) -> Result<Value, DebugError> {
        let name = request.command.clone();
        let timeout = request.timeout.unwrap_or_else(|| self.expression_timeout());
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

    /// Where those sessions stand that run and whose adapter debugs this file.
    pub async fn serving(&self, path: PathBuf) -> Vec<Status> {
        self.ask(|reply| Command::Serving { path, reply }).await.unwrap_or_default()
    }

    /// What happened to the programs of this client, of which it has not been told; told once.
    pub async fn take_news(&self, client: String) -> Vec<News> {
        let was_used = self.last_wait.load(Ordering::Relaxed) > 0;
        match self.has_editor() || was_used {
            true => self.ask(|reply| Command::News { client, reply }).await.unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// Part of what a program printed; also after its end, as long as it is remembered.
    pub async fn output(&self, wish: OutputWish) -> Result<OutputPage, DebugError> {
        self.ask(|reply| Command::Output { wish, reply }).await?
    }

    /// Gives a program that runs in a terminal of ours something to read.
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
