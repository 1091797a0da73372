//! Stops are told, programs go on, calls wait for what comes.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::waits::{Wait, WaitId};
use super::{Early, Engine, Live};
use crate::breakpoints::SessionKey;
use crate::dap::body::{self, read};
use crate::error::DebugError;
use crate::from_dap;
use crate::handles::{Lookup, Owner};
use crate::session::Input;
use crate::session::capture::Captured;
use crate::session::motion::Motion;
use crate::types::control::{Gate, Granularity, News, ResumeWish, UserAct, What, gates};
use crate::types::triggers::TriggerKind;
use crate::types::{Breakpoint, Given, Phase, Resume, SessionId, StopEvent, Waited};

impl Engine {
    pub(super) fn on_resume(&mut self, wish: ResumeWish, id: WaitId) {
        let key = match self.session_of(&wish) {
            Ok(key) => key,
            Err(error) => {
                let untold = self.untold_end(wish.session.as_ref());
                return self.answer(id, untold.unwrap_or(Err(error)));
            }
        };
        self.forget_closed();
        if let Err(error) = self.free(key) {
            return self.answer(id, Err(error));
        }
        let Some(live) = self.sessions.get_mut(&key) else { return self.give_up(id) };
        let thread_id = wish.thread_id.unwrap_or_else(|| live.core.last_thread());
        if self.waits.is_busy(key, thread_id) {
            return self.answer(id, Err(DebugError::Busy { thread_id }));
        }
        let wait = live.wait(key, id, Some(thread_id));
        if live.plan.session.opens_core() {
            return self.answer(wait.id, Err(DebugError::CoreDump));
        }
        if let Some(stop) = take_untold(live) {
            // It stopped after an earlier wait had ended: that is news.
            return self.tell_stop(key, stop, vec![wait]);
        }
        if let Some(error) = gate_of(&wish).and_then(|gate| gate_error(live, gate)) {
            return self.answer(wait.id, Err(error));
        }
        let is_continue = wish.how == Resume::Continue;
        match (live.core.phase(), live.core.is_stopped(thread_id)) {
            // A stop that is about to be told: nobody may run past it unheard.
            (Phase::Stopped, _) if live.core.is_capturing() => self.waits.push(wait),
            (Phase::Stopped, Some(true)) => self.resume(wait, thread_id, &wish),
            (Phase::Stopped, _) => self.ask_threads(wait, thread_id, wish),
            (Phase::Terminating | Phase::Terminated, _) => self.waits.push(wait),
            _ if is_continue => match live.core.left_behind() {
                // The thread that was stepped waits for one that stands still.
                Some(thread_id) => self.resume(wait, thread_id, &wish),
                None => self.wait_on(wait),
            },
            _ => self.answer(wait.id, Err(DebugError::NotStopped { thread_id })),
        }
    }

    /// A frame that is to be restarted names its session.
    fn session_of(&mut self, wish: &ResumeWish) -> Result<SessionKey, DebugError> {
        match (&wish.session, wish.how) {
            (None, Resume::RestartFrame { frame_id }) => Ok(self.frame(frame_id)?.0.session),
            (session, _) => self.resolve(session.as_ref()),
        }
    }

    /// Lets a thread that is known to be stopped go on. The wait is armed before the request goes out.
    pub(super) fn resume(&mut self, wait: Wait, thread_id: i64, wish: &ResumeWish) {
        let frame_id = match wish.how {
            Resume::RestartFrame { frame_id } => match self.frame(frame_id) {
                Ok((owner, theirs)) if owner.session == wait.session => Some(theirs),
                Ok(_) => {
                    return self.answer(wait.id, Err(DebugError::NoSuchFrame { frame_id }));
                }
                Err(error) => return self.answer(wait.id, Err(error)),
            },
            _ => None,
        };
        let key = wait.session;
        self.wait_on(wait);
        self.feed(key, Input::Resume { thread_id, how: Motion::new(wish, frame_id) });
    }

    /// Arms a wait; a stop in its compound that nobody was told answers it at once.
    fn wait_on(&mut self, wait: Wait) {
        let untold = self.sessions.iter_mut().filter(|(_, live)| live.compound == wait.compound);
        let untold = untold.map(|(&key, live)| (key, take_untold(live))).find(|(_, stop)| stop.is_some());
        match untold {
            Some((key, Some(stop))) => self.tell_stop(key, stop, vec![wait]),
            _ => self.waits.push(wait),
        }
    }

    pub(super) fn on_pause(&mut self, session: Option<&SessionId>, thread_id: Option<i64>, id: WaitId) {
        let Some((key, wait)) = self.wait_for(session, id, true) else { return };
        let thread_id = thread_id.or_else(|| {
            let live = self.sessions.get(&key)?;
            live.core.has_stopped().then(|| live.core.last_thread())
        });
        match thread_id {
            Some(thread_id) => {
                self.waits.push(wait);
                self.feed(key, Input::Pause { thread_id });
            }
            // It never stopped: the adapter has to tell its threads, once it runs for sure.
            None => self.early_pauses.push(EarlyPause::new(Instant::now(), wait)),
        }
    }

    pub(super) fn on_wait_stop(&mut self, session: Option<&SessionId>, id: WaitId) {
        if let Some((_, wait)) = self.wait_for(session, id, false) {
            self.waits.push(wait);
        }
    }

    /// A wait for a session that runs; one that is stopped or has ended is the answer at once.
    fn wait_for(
        &mut self,
        session: Option<&SessionId>,
        id: WaitId,
        pauses: bool,
    ) -> Option<(SessionKey, Wait)> {
        let key = match self.resolve(session) {
            Ok(key) => key,
            Err(error) => {
                let untold = self.untold_end(session);
                self.answer(id, untold.unwrap_or(Err(error)));
                return None;
            }
        };
        if let Err(error) = self.free(key) {
            self.answer(id, Err(error));
            return None;
        }
        let Some(live) = self.sessions.get_mut(&key) else {
            self.give_up(id);
            return None;
        };
        let wait = Wait { pauses, ..live.wait(key, id, None) };
        if let Some(stop) = take_untold(live) {
            self.tell_stop(key, stop, vec![wait]);
            return None;
        }
        match live.core.phase() {
            Phase::Stopped if !live.core.is_capturing() => {
                match live.stops.get(&live.core.last_thread()).or(live.stops.values().next()).cloned() {
                    Some(stop) => self.tell_stop(key, stop, vec![wait]),
                    None => self.waits.push(wait),
                }
                None
            }
            Phase::Running => Some((key, wait)),
            Phase::Starting | Phase::Configuring if pauses => {
                self.early_pauses.push(EarlyPause::new(Instant::now(), wait));
                None
            }
            // What comes next answers it.
            _ => {
                self.waits.push(wait);
                None
            }
        }
    }

    pub(super) fn on_end_wait(&mut self, id: WaitId, early: Early) {
        let early_pause = self.early_pauses.iter().position(|early| early.wait.id == id);
        let early_pause = early_pause.map(|at| self.early_pauses.remove(at).wait);
        if let Some(wait) = early_pause.or_else(|| self.waits.take(id)).or_else(|| self.take_asking(id)) {
            self.answer_early(wait, early);
        }
    }

    /// Answers a call that waits.
    pub(super) fn answer(&mut self, id: WaitId, answer: Result<Waited, DebugError>) {
        self.tell(id, answer);
    }

    /// The same; false when it listens no more.
    fn tell(&mut self, id: WaitId, answer: Result<Waited, DebugError>) -> bool {
        self.waiting.remove(&id).is_some_and(|reply| reply.send(answer).is_ok())
    }

    /// A call that waits for what is gone: it learns that there is no answer.
    pub(super) fn give_up(&mut self, id: WaitId) {
        self.waiting.remove(&id);
    }

    pub(super) fn is_alive(&self, id: WaitId) -> bool {
        self.waiting.get(&id).is_some_and(|reply| !reply.is_closed())
    }

    /// Forgets calls that gave up.
    pub(super) fn forget_closed(&mut self) {
        self.waiting.retain(|_, reply| !reply.is_closed());
        self.waits.retain(|id| self.waiting.contains_key(&id));
    }

    pub(super) fn answer_early(&mut self, wait: Wait, early: Early) {
        let output = self.take_output(wait.root);
        let session = self
            .sessions
            .get(&wait.session)
            .map_or_else(|| SessionId(self.prefix.clone()), |live| live.id.clone());
        let waited = match early {
            Early::TimedOut => Waited::TimedOut { session, output, waits_for_input: false },
            Early::Interrupted => Waited::Interrupted { session, output },
        };
        self.answer(wait.id, Ok(waited));
    }

    pub(super) fn on_resumed(&mut self, key: SessionKey, thread_id: Option<i64>) {
        self.ids.forget(key, thread_id);
        let Some(live) = self.sessions.get_mut(&key) else { return };
        match thread_id {
            Some(thread_id) => {
                live.stops.remove(&thread_id);
                live.untold.retain(|untold| *untold != thread_id);
            }
            None => {
                live.stops.clear();
                live.untold.clear();
            }
        }
    }

    /// The user did something in the editor to the program of a session.
    pub(super) fn on_user_acts(&mut self, key: SessionKey, act: UserAct) {
        let Some(live) = self.sessions.get(&key) else { return };
        let root_key = live.root;
        let Some(root) = self.sessions.get(&root_key) else { return };
        // VS Code ends children, and what has ended, by itself.
        let is_ending = [live, root]
            .iter()
            .any(|live| matches!(live.core.phase(), Phase::Terminating | Phase::Terminated));
        if let Some(owner) = root.owner.as_deref().filter(|_| !is_ending) {
            let news = News { session: root.id.clone(), name: root.name.clone(), what: What::Act(act) };
            self.untold.note(owner, news);
        }
        if act == UserAct::Stopped {
            for wait in self.waits.take_ended(key).into_iter().chain(self.waits.take_ended(root_key)) {
                self.answer_early(wait, Early::Interrupted);
            }
        }
    }

    pub(super) fn on_stopped(&mut self, key: SessionKey, captured: &Captured) {
        let Some(live) = self.sessions.get(&key) else { return };
        let (root, compound, id) = (live.root, live.compound, live.id.clone());
        let mut stop = from_dap::stop_event(captured, (key, id), jiff::Timestamp::now(), &mut self.ids);
        let passed = self.passed(key, &stop);
        if is_trap(&stop) && !passed.is_empty() {
            read_trap(&mut stop, &passed);
        }
        if stop.reason.contains("breakpoint") {
            let here = self.at_stop(key, &stop);
            let told = stop.hit_breakpoint_ids.iter().flatten();
            // Some give two breakpoints one id: the place tells them apart.
            let is_elsewhere = told.clone().all(|id| self.breakpoints.is_on_line(*id) && !here.contains(id));
            if is_elsewhere && !here.is_empty() {
                stop.hit_breakpoint_ids = Some(here);
            }
        }
        for &id in stop.hit_breakpoint_ids.iter().flatten() {
            self.breakpoints.note_hit(key, id);
        }
        // Some do not tell which function: it can be any.
        let functions = self.breakpoints.triggers().into_iter();
        let client = self.client_of(key);
        let functions = functions.filter(|known| {
            known.trigger.kind() == TriggerKind::Function && self.breakpoints.concerns(&known.owner, client)
        });
        let is_untold = stop.reason == "function breakpoint" && stop.hit_breakpoint_ids.is_none();
        let mut may_be_hit: Vec<i64> = functions.filter(|_| is_untold).map(|known| known.id).collect();
        let tells_one = self.sessions.get(&key).is_some_and(|live| live.plan.session.adapter.tells_one_hit);
        if tells_one && stop.hit_breakpoint_ids.is_some() {
            may_be_hit.extend(self.at_stop(key, &stop));
        }
        if let Some(root) = self.sessions.get_mut(&root) {
            root.hit.extend(may_be_hit);
            root.hit.extend(stop.hit_breakpoint_ids.iter().flatten());
            // A step that ended there has reached it, whatever the adapter calls that.
            root.hit.extend(passed);
        }
        if let Some(live) = self.sessions.get_mut(&key) {
            live.stops.insert(stop.thread_id, stop.clone());
        }
        let all = stop.all_threads_stopped.unwrap_or(true);
        self.forget_closed();
        let waits = self.waits.take_stopped(compound, key, stop.thread_id, all);
        self.tell_stop(key, stop, waits);
    }

    /// Breakpoints at the place of this stop, whatever their conditions.
    fn at_stop(&self, key: SessionKey, stop: &StopEvent) -> Vec<i64> {
        let path = stop.source.as_ref().map_or("", |source| &source.path);
        self.breakpoints.at(path, stop.line.unwrap_or(0), self.client_of(key))
    }

    /// Breakpoints that stop whoever comes to the place of this stop.
    fn passed(&self, key: SessionKey, stop: &StopEvent) -> Vec<i64> {
        let here = self.at_stop(key, stop);
        if here.is_empty() {
            return here;
        }
        let stops_always = |known: &Breakpoint| {
            known.condition.is_none() && known.hit_condition.is_none() && known.log_message.is_none()
        };
        let all = self.breakpoints.list().into_iter();
        all.filter(|known| here.contains(&known.id) && stops_always(known)).map(|known| known.id).collect()
    }

    /// Tells a stop to those who wait; when none of them listens any more, it stays untold.
    fn tell_stop(&mut self, key: SessionKey, mut stop: StopEvent, waits: Vec<Wait>) {
        let Some(root) = self.sessions.get(&key).map(|live| live.root) else {
            return waits.iter().for_each(|wait| self.give_up(wait.id));
        };
        let waits: Vec<Wait> = waits.into_iter().filter(|wait| self.is_alive(wait.id)).collect();
        if waits.is_empty() {
            return self.keep_untold(key, stop.thread_id);
        }
        self.active = Some(key);
        stop.output = self.take_output(root);
        let mut is_told = false;
        for wait in waits {
            is_told |= self.tell(wait.id, Ok(Waited::Stopped(Box::new(stop.clone()))));
        }
        if !is_told {
            self.keep_untold(key, stop.thread_id);
        }
    }

    fn keep_untold(&mut self, key: SessionKey, thread_id: i64) {
        if let Some(live) = self.sessions.get_mut(&key)
            && !live.untold.contains(&thread_id)
        {
            live.untold.push_back(thread_id);
        }
    }

    pub(super) fn on_threads(
        &mut self,
        wait: Wait,
        thread_id: i64,
        wish: &ResumeWish,
        result: Result<Value, String>,
    ) {
        let Some(live) = self.sessions.get(&wait.session) else { return self.give_up(wait.id) };
        let threads = match &result {
            Ok(body) => read::<body::Threads>(body).threads,
            Err(message) => {
                let error = DebugError::Refused { command: "threads".to_owned(), message: message.clone() };
                return self.answer(wait.id, Err(error));
            }
        };
        if !threads.iter().any(|thread| thread.id == Some(thread_id)) {
            let name = |thread: &body::Thread| Some(format!("{} ({})", thread.id?, thread.name));
            let known = threads.iter().filter_map(name).collect::<Vec<_>>().join(", ");
            return self.answer(wait.id, Err(DebugError::NoSuchThread { thread_id, known }));
        }
        if live.core.phase() != Phase::Stopped || !live.core.all_stopped() {
            return self.answer(wait.id, Err(DebugError::NotStopped { thread_id }));
        }
        self.resume(wait, thread_id, wish);
    }

    /// The threads are known: the first one is asked to stop.
    pub(super) fn on_threads_to_pause(
        &mut self,
        key: SessionKey,
        wait: Option<Wait>,
        result: &Result<Value, String>,
    ) {
        let first = match result {
            Ok(body) => read::<body::Threads>(body).threads.first().and_then(|thread| thread.id),
            // lldb-dap tells threads of a running program once, and in a window VS Code has asked before. It pauses all.
            Err(_) => self.sessions.get(&key).map(|live| live.core.last_thread()),
        };
        let Some(thread_id) = first else {
            // The program is about to begin.
            let early = |wait| EarlyPause { has_begun: true, ..EarlyPause::new(Instant::now(), wait) };
            return self.early_pauses.extend(wait.map(early));
        };
        if let Some(wait) = wait {
            self.waits.push(wait);
        }
        self.feed(key, Input::Pause { thread_id });
    }

    /// When to ask for threads again.
    pub(super) fn next_pause(&self) -> Option<Instant> {
        self.early_pauses.iter().map(|early| early.at).min()
    }

    /// Pauses that found no thread are tried again, until the caller gives up or the session ends.
    pub(super) fn retry_pauses(&mut self, now: Instant) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.early_pauses).into_iter().partition(|early| early.at <= now);
        self.early_pauses = later;
        self.forget_closed();
        for EarlyPause { mut wait, has_begun, .. } in due {
            if !self.is_alive(wait.id) {
                continue;
            }
            let Some(id) = self.sessions.get(&wait.session).map(|live| live.id.clone()) else {
                self.answer(wait.id, Err(DebugError::NoThreads));
                continue;
            };
            // Meanwhile a child may stand for it.
            match self.find(Some(&id)) {
                Ok(key) => wait.session = key,
                Err(error) => {
                    self.answer(wait.id, Err(error));
                    continue;
                }
            }
            let core = self.sessions.get(&wait.session).map(|live| &live.core);
            let is_started = core.is_some_and(|core| core.is_started());
            match core.map(|core| core.phase()) {
                // gdb never answers what it is asked in the moment in which the program begins.
                Some(Phase::Running) if is_started && has_begun => self.ask_threads_to_pause(wait),
                Some(Phase::Running) => {
                    let early = EarlyPause { has_begun: is_started, ..EarlyPause::new(now, wait) };
                    self.early_pauses.push(early);
                }
                Some(Phase::Starting | Phase::Configuring) => {
                    self.early_pauses.push(EarlyPause::new(now, wait));
                }
                _ => self.waits.push(wait),
            }
        }
    }

    pub(super) fn frame(&self, frame_id: i64) -> Result<(Owner, i64), DebugError> {
        match self.ids.frames.look_up(frame_id) {
            Lookup::Alive(owner, theirs) if self.is_stopped(owner.session) => {
                self.free(owner.session).map(|()| (owner, theirs))
            }
            Lookup::Alive(..) | Lookup::Stale => Err(DebugError::StaleFrame { frame_id }),
            Lookup::OfAnotherRun => Err(DebugError::OfAnotherRun { what: format!("frame {frame_id}") }),
            Lookup::Unknown => Err(DebugError::NoSuchFrame { frame_id }),
        }
    }

    pub(super) fn container(&self, reference: i64) -> Result<(Owner, i64), DebugError> {
        match self.ids.references.look_up(reference) {
            Lookup::Alive(owner, theirs) if self.is_stopped(owner.session) => {
                self.free(owner.session).map(|()| (owner, theirs))
            }
            Lookup::Alive(..) | Lookup::Stale => Err(DebugError::StaleReference { reference }),
            Lookup::OfAnotherRun => {
                Err(DebugError::OfAnotherRun { what: format!("variables reference {reference}") })
            }
            Lookup::Unknown => Err(DebugError::NoSuchReference { reference }),
        }
    }

    /// The session that an id is of which is still good.
    pub(super) fn session_of_id(&self, id: Given) -> Option<SessionId> {
        let found = match id {
            Given::Frame(frame_id) => self.frame(frame_id),
            Given::Reference(reference) => self.container(reference),
        };
        Some(self.sessions.get(&found.ok()?.0.session)?.id.clone())
    }

    pub(super) fn is_stopped(&self, key: SessionKey) -> bool {
        self.sessions.get(&key).is_some_and(|live| live.core.phase() == Phase::Stopped)
    }
}

/// A pause that waits for a program to begin.
pub(super) struct EarlyPause {
    /// When it is looked at again.
    at: Instant,
    wait: Wait,
    /// At the last look it had.
    has_begun: bool,
}

impl EarlyPause {
    fn new(now: Instant, wait: Wait) -> Self {
        Self { at: now + PAUSE_RETRY, wait, has_begun: false }
    }
}

/// Between two looks for a thread that can be paused.
const PAUSE_RETRY: Duration = Duration::from_millis(30);

/// The oldest stop that nobody was told.
fn take_untold(live: &mut Live) -> Option<StopEvent> {
    while let Some(thread_id) = live.untold.pop_front() {
        if let Some(stop) = live.stops.get(&thread_id) {
            return Some(stop.clone());
        }
    }
    None
}

/// What the adapter has to be able to do for a wish.
fn gate_of(wish: &ResumeWish) -> Option<Gate> {
    match wish.how {
        Resume::StepBack | Resume::ReverseContinue => Some(gates::STEP_BACK),
        Resume::RestartFrame { .. } => Some(gates::RESTART_FRAME),
        Resume::Goto { .. } => Some(gates::GOTO),
        _ if wish.granularity == Some(Granularity::Instruction) => Some(gates::GRANULARITY),
        _ if wish.single_thread => Some(gates::SINGLE_THREAD),
        _ if wish.target_id.is_some() => Some(gates::STEP_IN_TARGETS),
        _ => None,
    }
}

/// Why a session cannot do what needs this capability.
pub(super) fn gate_error(live: &Live, gate: Gate) -> Option<DebugError> {
    let adapter = || live.plan.session.adapter.name.clone();
    (!live.core.can(gate.capability)).then(|| DebugError::Unsupported { adapter: adapter(), what: gate.what })
}

/// lldb tells a breakpoint as the bare signal of its trap, when a running program comes to it in the moment in which it
/// is set.
fn read_trap(stop: &mut StopEvent, here: &[i64]) {
    stop.reason = "breakpoint".to_owned();
    stop.description = None;
    stop.text = None;
    stop.hit_breakpoint_ids = Some(here.to_vec());
}

/// A stop by the signal that debuggers' own breakpoints raise, told as an exception.
fn is_trap(stop: &StopEvent) -> bool {
    let is_named = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains("SIGTRAP"));
    stop.reason == "exception" && (is_named(&stop.description) || is_named(&stop.text))
}
